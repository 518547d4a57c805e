"""Exact derivatives of a mode: of its flow, its speeds and its guards, by the tangent sweep over its saved program.

Nothing symbolic is needed beyond the saved programs, so an automaton from a file has them as well
(docs/theory.md, "Derivatives of a mode").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fsm_dyn.modes.programs import ModePrograms
from fsm_dyn.programs import ExpressionGraph, Layout, Node, Program, gradient, tangent

Array = npt.NDArray[np.float64]
Nodes = npt.NDArray[np.object_]


@dataclass(frozen=True)
class ModeDerivatives:
    """The derivative programs of a mode in one chart; n_m is the number of parameters asked for.

    Attributes
    ----------
    flow : Program
        ``x_dot`` (n_x,), ``by_state`` (n_x, n_x) and ``by_parameters`` (n_x, n_m): the derivatives of ``x_dot``.
        The columns of the dependent speeds are zero, for the flow does not read them.
    ends : Program
        ``x_dot``; ``guards`` and ``slopes`` (n_g,) with the gradients ``guards_by_state`` (n_g, n_x) and
        ``guards_by_parameters`` (n_g, n_m); ``u`` (n_u,) with ``u_by_state`` (n_u, n_x), ``u_by_parameters``.
    """

    flow: Program
    ends: Program


def mode_derivatives(programs: ModePrograms, parameters: Sequence[str] = ()) -> ModeDerivatives:
    """Derive the derivative programs of a mode.

    Parameters
    ----------
    programs : ModePrograms
        The mode in one chart.
    parameters : sequence of str
        Names of parameters (flattened: ``lip[0]``), memory or inputs by which to differentiate.

    Raises
    ------
    InputError
        A name is none of the kernels' arguments.
    """
    layout = programs.full.layout
    _, symbols, nodes = programs.full.graph()
    for name in parameters:
        layout.position(name)
    x, p = [symbols[name] for name in layout.x], [symbols[name] for name in parameters]
    rate = nodes["x_dot"]
    flow = {"x_dot": rate, "by_state": jacobian(rate, x), "by_parameters": jacobian(rate, p)}
    ends = {"x_dot": rate, "slopes": nodes["slopes"]}
    for name in ("guards", "u"):
        ends |= {
            name: nodes[name],
            f"{name}_by_state": jacobian(nodes[name], x),
            f"{name}_by_parameters": jacobian(nodes[name], p),
        }
    return ModeDerivatives(Program.from_nodes(layout, flow), Program.from_nodes(layout, ends))


def jacobian(outputs: Sequence[Node] | Nodes, symbols: Sequence[Node]) -> Nodes:
    """Return the derivatives of ``outputs`` (m,) by ``symbols`` (n,) as an array (m, n) of nodes."""
    table = np.empty((len(outputs), len(symbols)), dtype=object)
    for i, row in enumerate(gradient(list(outputs), list(symbols))):
        table[i, :] = row
    return table


def time_derivative(outputs: Sequence[Node], layout: Layout, symbols: dict[str, Node], graph: ExpressionGraph) -> Nodes:
    """Return the derivatives of ``outputs`` by the time at a fixed state, the inputs moving at their rates."""
    seeds = {symbols["t"]: graph.constant(1.0)}
    for name in layout.w:
        seeds[symbols[name]] = symbols[f"{name}.rate"]
        seeds[symbols[f"{name}.rate"]] = symbols[f"{name}.rate2"]
        seeds[symbols[f"{name}.rate2"]] = symbols[f"{name}.rate3"]
    found = np.empty(len(outputs), dtype=object)
    found[:] = tangent(list(outputs), seeds)
    return found
