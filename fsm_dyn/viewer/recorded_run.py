"""Recorded runs, live or offline, in one form: rows in order, transitions, frame encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.compilation import compile as compile_mechanism
from fsm_dyn.errors import InputError
from fsm_dyn.live.recording_reader import Recording, recorded_graph
from fsm_dyn.live.tick_columns import ADVANCED, FIXED, TickColumns
from fsm_dyn.results.result_builder import transition_of
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import Transition
from fsm_dyn.simulation.run_arrays import read_transitions
from fsm_dyn.spec import load as load_mechanism
from fsm_dyn.spec.values import named_values
from fsm_dyn.viewer.frame_encoder import FrameEncoder
from fsm_dyn.viewer.row_evaluation import MODE, TIME, Floats

Integers = NDArray[np.int64]
States = tuple[int, ...]

_TICK = FIXED.index("tick")


@dataclass(frozen=True)
class Instant:
    """One row: contact states, state, context, and the tick row of a live run."""

    states: States
    x: Floats
    c: Floats
    row: Floats | None = None


@dataclass(frozen=True)
class RecordedRun:
    """Finished run.

    Attributes
    ----------
    encoder : FrameEncoder
    source : str
        Text that names the origin.
    t : ndarray, shape (n,)
        Model time of every row, s; decreases where a live run was reset.
    clock : ndarray, shape (n,)
        Accumulated model time, s, without decrease at resets: the time axis of the page.
    mode : ndarray of int, shape (n,)
        Index into ``states``.
    states : tuple of tuple of int
        Contact states of the modes visited.
    at : callable
        Returns the row with a number.
    changes : ndarray of int, shape (m, 2)
        Mode before and after every transition, indices into ``states``.
    when : ndarray, shape (m,)
        ``clock`` of every transition.
    transition : callable
        Returns the transition with a number.
    """

    encoder: FrameEncoder
    source: str
    t: Floats
    clock: Floats
    mode: Integers
    states: tuple[States, ...]
    at: Callable[[int], Instant]
    changes: Integers
    when: Floats
    transition: Callable[[int], Transition]

    def number(self, clock: float, *, after: bool = False) -> int:
        """Return the number of the last row not after a time of the clock, s, at least 0.

        With ``after`` the first row not before it, and of several at one time the last.
        """
        last = int(np.searchsorted(self.clock, clock, side="right")) - 1
        if after:
            last = max(last, int(np.searchsorted(self.clock, clock, side="left")))
        return max(0, min(last, len(self.clock) - 1))


def from_recording(recorded: Recording, source: str = "") -> RecordedRun:
    """Return the recorded run of a live session; raises InputError if the recording is inconsistent."""
    graph = recorded_graph(recorded)
    table, records = recorded.table, recorded.records
    ticks, times, charts = table.columns((_TICK, TIME, MODE))
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    encoder = FrameEncoder(graph, recorded.columns, start.x, start.context)
    automaton = graph.automaton
    states, mode, names = _modes_of(graph, recorded, ticks, charts)
    parameters = _parameters_of(graph, recorded)
    clock = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(times), 0.0))]) + (times[0] if len(times) else 0.0)

    def at(number: int) -> Instant:
        row = table[number]
        before = table[number - 1] if number and row[ADVANCED] else None
        x, c = encoder.evaluator.state(row, before)
        c[encoder.evaluator.layout.p_slice] = parameters(row[_TICK])
        return Instant(states[mode[number]], x, c, row)

    made = np.minimum(np.searchsorted(ticks, records[:, 0]), max(len(ticks) - 1, 0))
    found = read_transitions(records[:, 1:], len(automaton.rows), len(automaton.terms.layout.u))
    known = names(records[:, 0])
    changes = np.array(
        [_looked_up(lookup, np.array([a, b])) for lookup, a, b in zip(known, found.source, found.target, strict=True)],
        dtype=np.int64,
    ).reshape(-1, 2)

    def transition(number: int) -> Transition:
        own = known[number]
        labels = [automaton.name_of(states[k]).name for k in own]
        return transition_of(automaton, labels, found, [states[k] for k in own], number)

    # a transition is between two ticks; its own time gives the offset
    within = found.time - times[made]
    within[np.abs(within) > recorded.settings["period"]] = 0.0
    return RecordedRun(encoder, source, times, clock, mode, states, at, changes, clock[made] + within, transition)


def _modes_of(
    graph: ModeGraph, recorded: Recording, ticks: Floats, charts: Floats
) -> tuple[tuple[States, ...], Integers, Callable[[Floats], list[list[int]]]]:
    """Return the contact states visited, the mode of every row, and a lookup of the mode numbers in records.

    A live run numbers charts: ``charts``, shape (n,), are the numbers in the rows of ``ticks``. Events name the modes
    added during the run; a reset keeps one chart per mode.
    """
    by_name = {mode.name: mode.states for mode in graph.automaton.modes}
    current: list[States] = [by_name[name] for name in recorded.settings["modes"] if name in by_name]
    stretches: list[tuple[float, list[States]]] = [(-np.inf, current)]
    for event in recorded.events:
        if event.get("event") == "mode_added":
            current += [tuple(codes) for codes in event["states"]]
        elif event.get("event") == "command_done" and event["command"]["do"] == "reset":
            current = list(dict.fromkeys(current))
            stretches.append((float(event["tick"]), current))
    states = tuple(dict.fromkeys(codes for _, known in stretches for codes in known))
    numbers = {codes: k for k, codes in enumerate(states)}
    lookups = [[numbers[codes] for codes in known] for _, known in stretches]
    begins = np.array([begin for begin, _ in stretches])

    def known_at(some: Floats) -> list[list[int]]:
        return [lookups[k] for k in np.searchsorted(begins, some, side="right") - 1]

    mode = np.zeros(len(ticks), dtype=np.int64)
    which = np.searchsorted(begins, ticks, side="right") - 1
    for k, lookup in enumerate(lookups):
        own = which == k
        mode[own] = _looked_up(lookup, charts[own].astype(np.int64))
    return states, mode, known_at


def _looked_up(lookup: Sequence[int], numbers: Integers) -> Integers:
    """Return the modes of chart numbers; raises InputError for an unknown number."""
    if not ((numbers >= 0) & (numbers < len(lookup))).all():
        raise InputError("the recording does not fit its model", found="an unknown mode number")
    return np.array(lookup, dtype=np.int64)[numbers]


def _parameters_of(graph: ModeGraph, recorded: Recording) -> Callable[[float], Floats]:
    """Return a function of the tick that gives the parameters, with those set during the run."""
    names = list(graph.automaton.terms.layout.p)
    begins, values = [-np.inf], [graph.parameters]
    for event in recorded.events:
        if event.get("event") == "command_done" and event["command"]["do"] == "set":
            changed = values[-1].copy()
            for name, value in event["command"]["values"].items():
                if name in names:
                    changed[names.index(name)] = float(value)
            begins.append(float(event["tick"]))
            values.append(changed)
    return lambda tick: values[int(np.searchsorted(begins, tick, side="right")) - 1]


def from_trajectory(trajectory: Trajectory, source: str = "", graph: ModeGraph | None = None) -> RecordedRun:
    """Return the recorded run of an offline trajectory; without a graph its model is compiled from its text."""
    model, record = trajectory.model, trajectory.record
    if graph is None:
        mechanism = load_mechanism("run", text=model.text)
        values = named_values(mechanism, model.parameters.tolist())
        graph = graph_with_parameters(compile_mechanism(mechanism).automaton, values)
    layout = graph.automaton.terms.layout
    rows = trajectory.rows
    encoder = FrameEncoder(
        graph, TickColumns(layout.w, layout.x, 0, ()), rows.x[0], np.array(rows.context[0]), coupled=False
    )
    charts: Sequence[Any] = model.charts
    states = tuple(dict.fromkeys(tuple(chart.states) for chart in charts))
    lookup = np.array([states.index(tuple(chart.states)) for chart in charts], dtype=np.int64)
    mode = lookup[record.mode]
    transitions = trajectory.transitions
    named = {name: lookup[k] for k, name in enumerate(model.modes)}
    changes = np.array([[named[x.source], named[x.target]] for x in transitions], dtype=np.int64).reshape(-1, 2)

    def at(number: int) -> Instant:
        return Instant(states[mode[number]], rows.x[number], np.array(rows.context[number]))

    when = np.array([x.time for x in transitions])
    return RecordedRun(
        encoder, source, record.t, record.t, mode, states, at, changes, when, lambda number: transitions[number]
    )
