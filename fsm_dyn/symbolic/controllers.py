"""Sampled controllers: their memory after a sample, as nodes."""

from __future__ import annotations

from collections.abc import Mapping

from fsm_dyn.expressions import Text
from fsm_dyn.programs import ExpressionGraph, Node, functions
from fsm_dyn.programs.layout import TIME
from fsm_dyn.spec.controller_memory import count_name, later_values, next_name
from fsm_dyn.spec.model import Controller
from fsm_dyn.symbolic.algebra import NodeAlgebra
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols
from fsm_dyn.symbolic.partial_velocities import Motion


def sample_terms(system: MechanismSymbols, motion: Motion, names: Mapping[str, Node]) -> dict[str, Node]:
    """Return what memory of controllers becomes at an instant, by name.

    A controller changes where its next sample is not later than the time.  All controllers due in one instant see the
    values before; `names` are those of speeds and memory.

    Parameters
    ----------
    system : MechanismSymbols
        The symbols of the mechanism.
    motion : Motion
        Velocities of points and frames.
    names : Mapping[str, Node]
        What further names mean.
    """
    graph, algebra = system.graph, system.algebra(motion, names)
    found: dict[str, Node] = {}
    for controller in system.mechanism.controllers.values():
        sampled = {item.name: _rounded(algebra, item.value, item.quantum) for item in controller.inputs}
        inner = system.algebra(motion, {**names, **sampled})
        new = {
            **sampled,
            **{item.name: inner.scalar(item.value) for item in controller.memory},
            **_outputs(graph, controller, inner),
            **_clock(graph, controller, algebra.scalar(controller.period)),
        }
        due = functions.compare("<=", graph.symbol(next_name(controller)), graph.symbol(TIME))
        found |= {str(name): functions.where(due, value, graph.symbol(name)) for name, value in new.items()}
    return found


def _rounded(algebra: NodeAlgebra, value: Text, quantum: Text | None) -> Node:
    """Return a value, rounded to the nearest multiple of a quantum if there is one, halves upwards."""
    exact = algebra.scalar(value)
    if quantum is None:
        return exact
    step = algebra.scalar(quantum)
    return functions.floor(exact / step + 0.5) * step


def _outputs(graph: ExpressionGraph, controller: Controller, algebra: NodeAlgebra) -> dict[str, Node]:
    """Return the outputs, each with its values that wait, moved up by one sample."""
    found: dict[str, Node] = {}
    for item in controller.outputs:
        places = [item.name, *later_values(controller, item.name)]
        values = [*map(graph.symbol, places[1:]), _rounded(algebra, item.value, item.quantum)]
        found |= dict(zip(places, values, strict=True))
    return found


def _clock(graph: ExpressionGraph, controller: Controller, period: Node) -> dict[str, Node]:
    """Return number and instant of the samples: a product, as a sum of periods would gather rounding."""
    count = graph.symbol(count_name(controller)) + 1.0
    return {count_name(controller): count, next_name(controller): period * count}
