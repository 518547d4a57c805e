"""How a run's end depends on where it began and on parameters, across all transitions on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.saltation import propagate_variations, saltation_matrices
from fsm_dyn.analysis.start_derivatives import parameter_derivatives, start_derivatives
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, RunError, did_you_mean
from fsm_dyn.programs import support
from fsm_dyn.run_inputs import InputValue, schedule_parameters
from fsm_dyn.simulation.time_switches import choices
from fsm_dyn.spec.values import Parameters, parameter_values


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of the state at the end of a run.

    Attributes
    ----------
    t : float
        End of the run, s.
    x : ndarray, shape (n_x,)
        Coordinates and speeds there.
    names : tuple of str
        Names of coordinates and speeds, in order.
    by_initial : mapping of str to ndarray, shape (n_x,)
        By each initial value asked for, as it is written under ``initial``: what is not given follows.
    by_parameters : mapping of str to ndarray, shape (n_x,)
        By each parameter asked for, the start and the parameters that depend on it following.
    saltations : tuple of ndarray, shape (n_x, n_x)
        The saltation matrix of every transition, in order of time; one of those that follow each other in an instant.
    """

    t: float
    x: Array
    names: tuple[str, ...]
    by_initial: Mapping[str, Array]
    by_parameters: Mapping[str, Array]
    saltations: tuple[Array, ...]


def sensitivities(
    graph: ModeGraph,
    until: float,
    *,
    by_initial: Sequence[str] = (),
    by_parameters: Sequence[str] = (),
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    initial: Mapping[str, float | str] | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Sensitivities:
    """Return how the state at the end of a run depends on initial values and parameters.

    The transitions must stay the same ones in the same order; where they change, there is no derivative.  Memory is
    part of the state, the start is differentiated exactly.

    Parameters
    ----------
    graph : ModeGraph
        The compiled model.
    until : float
        End of the run, s.
    by_initial, by_parameters : sequences of str
        Coordinates and speeds of the start, and parameters (``lip[0]`` for an element), by which to differentiate.
    parameters, inputs, initial, rtol, atol
        As for ``fsm_dyn.simulate``.

    Raises
    ------
    InputError
        A name is unknown, or a schedule or an instant at which the model switches depends on a parameter named.
    RunError
        The run fails, its start has no derivative, or one of its transitions cannot be differentiated.
    """
    layout = graph.automaton.terms.layout
    follow = parameter_directions(graph, parameters or {}, by_parameters)
    moved = tuple(name for name, row in zip(layout.p, follow, strict=True) if np.any(row != 0.0))
    follow = follow[[layout.p.index(name) for name in moved]]
    _refuse_schedules(graph, inputs or {}, moved)
    setting = AnalysisSetup.of(graph, parameters, inputs, rtol, atol, moved)
    for name in by_initial:
        if name not in layout.x:
            raise InputError(f"'{name}' is no coordinate or speed", remedy=did_you_mean(name, layout.x))
    start = setting.start(initial)
    raw = setting.run(start.x, start.context, start.states, until)
    if raw.outcome.failed:
        raise RunError(f"{graph.name}: {raw.outcome} (at t = {raw.t[-1]:.9g} s)")
    begin = start_derivatives(setting, start, initial or {}, tuple(by_initial))
    Y = propagate_variations(setting, raw, len(raw.t) - 1, begin)[: layout.n_x]
    k = len(by_initial)
    P = Y[:, k:] @ follow
    return Sensitivities(
        float(raw.t[-1]),
        raw.x[-1],
        layout.x,
        {name: Y[:, i] for i, name in enumerate(by_initial)},
        {name: P[:, i] for i, name in enumerate(by_parameters)},
        tuple(matrix[: layout.n_x, : layout.n_x] for matrix in saltation_matrices(setting, raw)),
    )


def _refuse_schedules(graph: ModeGraph, inputs: Mapping[str, InputValue], moved: Sequence[str]) -> None:
    """Refuse parameters on which inputs, or instants at which the model switches, depend."""
    automaton, names = graph.automaton, {name.partition("[")[0] for name in moved}
    read = {
        f"the input '{name}'": schedule_parameters(automaton, [inputs.get(name, item.schedule)])
        for name, item in automaton.mechanism.inputs.items()
    }
    jumps = choices(automaton.terms)
    if jumps:
        found = frozenset().union(*(support(choice.jump.graph()[2]["jump"].ravel()) for choice in jumps))
        read["an instant at which the model switches"] = frozenset(symbol.name.partition("[")[0] for symbol in found)
    for what, parameters in read.items():
        for name in sorted(names & parameters):
            raise InputError(
                f"no derivative by '{name}': {what} depends on it",
                remedy="write the parameter as a factor into the load, or the condition as a transition (`when`)",
            )


def parameter_directions(graph: ModeGraph, given: Parameters, names: Sequence[str]) -> Array:
    """How all parameters follow those named, shape (n_p, n_names): a file's parameters may depend on earlier ones.

    Raises
    ------
    InputError
        A name is no parameter.
    """
    mechanism, layout = graph.automaton.mechanism, graph.automaton.terms.layout
    for name in names:
        if name not in layout.p:
            raise InputError(
                f"'{name}' is no parameter of '{graph.name}'",
                allowed=", ".join(layout.p),
                remedy=did_you_mean(name, layout.p),
            )
    return parameter_derivatives(
        mechanism, layout, parameter_vector(parameter_values(mechanism, given)), names, tuple(given)
    )
