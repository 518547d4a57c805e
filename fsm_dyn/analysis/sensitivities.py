"""How a run's end depends on where it began and on parameters, across all transitions on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.saltation import crossing, jump_rows, propagate_variations
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, RunError, did_you_mean
from fsm_dyn.run_inputs import InputValue
from fsm_dyn.spec.values import Parameters, parameter_values

STEP = 1e-6  # of the differences by which a start depends on what is given


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
        The saltation matrix of every transition, in order of time.
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

    The transitions must stay the same ones in the same order; where they change, there is no derivative.  Times that
    a schedule computes from parameters count as fixed.

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
        A name is unknown.
    RunError
        The run fails, or one of its transitions cannot be differentiated.
    """
    layout = graph.automaton.terms.layout
    follow = parameter_directions(graph, parameters or {}, by_parameters)
    moved = tuple(name for name, row in zip(layout.p, follow, strict=True) if np.any(row != 0.0))
    follow = follow[[layout.p.index(name) for name in moved]]
    setting = AnalysisSetup.of(graph, parameters, inputs, rtol, atol, moved)
    for name in by_initial:
        if name not in layout.x:
            raise InputError(f"'{name}' is no coordinate or speed", remedy=did_you_mean(name, layout.x))
    start = setting.start(initial)
    raw = setting.run(start.x, start.context, start.states, until)
    if raw.outcome.failed:
        raise RunError(f"{graph.name}: {raw.outcome} (at t = {raw.t[-1]:.9g} s)")
    Y, _ = propagate_variations(
        setting, raw, len(raw.t) - 1, _start_variations(setting, initial or {}, start.x, tuple(by_initial))
    )
    k = len(by_initial)
    P = Y[:, k:] @ follow
    return Sensitivities(
        float(raw.t[-1]),
        raw.x[-1],
        layout.x,
        {name: Y[:, i] for i, name in enumerate(by_initial)},
        {name: P[:, i] for i, name in enumerate(by_parameters)},
        tuple(crossing(setting, raw, n, row).saltation for row, n in sorted(jump_rows(raw).items()) if row > 0),
    )


def parameter_directions(graph: ModeGraph, given: Parameters, names: Sequence[str]) -> Array:
    """How all parameters follow those named, shape (n_p, n_names): a file's parameters may depend on earlier ones.

    Raises
    ------
    InputError
        A name is no parameter.
    """
    mechanism, layout = graph.automaton.mechanism, graph.automaton.terms.layout
    numbers = parameter_values(mechanism, given)
    columns = []
    for name in names:
        if name not in layout.p:
            raise InputError(
                f"'{name}' is no parameter of '{graph.name}'",
                allowed=", ".join(layout.p),
                remedy=did_you_mean(name, layout.p),
            )
        owner, _, element = name.partition("[")
        value = numbers[owner]
        place = int(element.rstrip("]")) if element else 0
        here = value[place] if isinstance(value, tuple) else value
        step = STEP * max(abs(here), 1e-3)
        sides = []
        for moved in (here + step, here - step):
            new = [*value[:place], moved, *value[place + 1 :]] if isinstance(value, tuple) else moved
            sides.append(parameter_vector(parameter_values(mechanism, {**given, owner: new})))
        column = (sides[0] - sides[1]) / (2.0 * step)
        column[layout.p.index(name)] = 1.0
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(layout.p)).T


def _start_variations(
    setting: AnalysisSetup, initial: Mapping[str, float | str], x: Array, names: Sequence[str]
) -> Array:
    """How the start depends on what is given: central differences through the assembly, (n_x, k + n_m)."""
    layout = setting.executable.automaton.terms.layout
    columns = []
    for name in names:
        here = float(x[layout.x.index(name)])
        step = STEP * max(1.0, abs(here))
        ends = [setting.start({**initial, name: here + sign * step}).x for sign in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2.0 * step))
    for name in setting.names:
        place = layout.p.index(name)
        step = STEP * max(abs(setting.vector[place]), 1e-3)
        sides = []
        for sign in (1.0, -1.0):
            vector = setting.vector.copy()
            vector[place] += sign * step
            sides.append(setting.start(initial, vector).x)
        columns.append((sides[0] - sides[1]) / (2.0 * step))
    return np.array(columns).reshape(len(columns), len(x)).T
