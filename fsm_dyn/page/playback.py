"""Playback of a recorded run: its rows in one form, its display frames, answers to pages."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.compilation import compile as compile_mechanism
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.values import named_values, parameter_values
from fsm_dyn.language.values import units as units_of
from fsm_dyn.live.controller import PAUSED
from fsm_dyn.live.recording import Recording, read_recording, recorded_graph
from fsm_dyn.live.tick import ADVANCED, FIXED, TickColumns
from fsm_dyn.live.tick_samples import parameter_changes
from fsm_dyn.page.broadcast import Listener, error_payload, package_error
from fsm_dyn.page.frames import FrameEncoder, Impact, RowSamples, loads_payload
from fsm_dyn.page.live_view import entry, independent_parameters
from fsm_dyn.page.scene_drawing import MODE, TIME
from fsm_dyn.page.story import in_words, instants, quantity_words, story_payload, usual_charts, visit_times
from fsm_dyn.run.loop_state import read_transitions
from fsm_dyn.run.pins import PinImpulses
from fsm_dyn.run.record import transition_of
from fsm_dyn.run.run_timeline import merged_samples
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition

# -- Recorded runs, live or offline, in one form: rows in order, transitions, frame encoder ------------------

States = tuple[int, ...]

_TICK = FIXED.index("tick")
TRAVEL: Final = 200  # states of a run, from which its drawing is found


@dataclass(frozen=True)
class Instant:
    """One row: contact states, state, context, and the tick row of a live run."""

    states: States
    x: Floats
    c: Floats
    row: Floats | None = None


@dataclass(frozen=True)
class RecordedRun:
    """Finished run."""

    encoder: FrameEncoder
    source: str  # text that names the origin
    t: Floats  # shape (n,): model time of every row, s; decreases where a live run was reset
    clock: Floats  # shape (n,): accumulated model time, s, without decrease at resets: the time axis of the page
    mode: Integers  # shape (n,): index into ``states``
    states: tuple[States, ...]  # contact states of the modes visited
    at: Callable[[int], Instant]  # returns the row with a number
    changes: Integers  # shape (m, 2): mode before and after every transition, indices into ``states``
    when: Floats  # shape (m,): ``clock`` of every transition
    transition: Callable[[int], Transition]  # returns the transition with a number
    trajectory: Trajectory | None = None  # the run, if it was made offline: the page shows its visits

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
    within[np.abs(within) > recorded.settings.period] = 0.0
    return RecordedRun(encoder, source, times, clock, mode, states, at, changes, clock[made] + within, transition)


def _modes_of(
    graph: ModeGraph, recorded: Recording, ticks: Floats, charts: Floats
) -> tuple[tuple[States, ...], Integers, Callable[[Floats], list[list[int]]]]:
    """Return the contact states visited, the mode of every row, and a lookup of the mode numbers in records.

    A live run numbers charts: ``charts``, shape (n,), are the numbers in the rows of ``ticks``. Events name the modes
    added during the run; a reset keeps one chart per mode.
    """
    by_name = {mode.name: mode.states for mode in graph.automaton.modes}
    current: list[States] = [by_name[name] for name in recorded.settings.modes if name in by_name]
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
    begins, values = zip(*parameter_changes(graph, recorded.events), strict=True)
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
        graph, TickColumns(layout.w, layout.x, 0, ()), rows.x[0], np.array(rows.context[0]), coupled=False,
        travel=trajectory.sample(np.linspace(rows.t[0], rows.t[-1], TRAVEL)),
    )  # fmt: skip
    charts: Sequence[Any] = model.charts
    states = tuple(dict.fromkeys(tuple(chart.states) for chart in charts))
    lookup = np.array([states.index(tuple(chart.states)) for chart in charts], dtype=np.int64)
    between = trajectory.sample(instants(trajectory))
    order = np.argsort(np.concatenate([rows.t, between.t]), kind="stable")

    def with_instants(own: Any, further: Any) -> Any:
        return np.concatenate([own, further])[order]

    t, mode = with_instants(rows.t, between.t), lookup[with_instants(record.mode, between.mode)]
    x, context = with_instants(rows.x, between.x), with_instants(rows.context, between.context)
    transitions = trajectory.transitions
    named = {name: lookup[k] for k, name in enumerate(model.modes)}
    changes = np.array([[named[i.source], named[i.target]] for i in transitions], dtype=np.int64).reshape(-1, 2)

    def at(number: int) -> Instant:
        return Instant(states[mode[number]], x[number], np.array(context[number]))

    when = np.array([item.time for item in transitions])
    return RecordedRun(
        encoder, source, t, t, mode, states, at, changes, when, lambda number: in_words(trajectory, number), trajectory
    )


# -- Forces in the connections of a recorded run -------------------------------------------------------------

MOST_LOADED: Final = 20_000  # rows of a recording at which they are evaluated
MOST_IMPACTS: Final = 2000  # the same, of impacts: those with the largest impulses of rows


def row_samples(run: RecordedRun, numbers: Integers) -> Samples:
    """Return rows of a recording as samples, by their numbers."""
    rows = [run.at(int(number)) for number in numbers]
    x, c = np.array([row.x for row in rows]), np.array([row.c for row in rows])
    return RowSamples(run.encoder.evaluator).at(run.states, run.mode[numbers], run.t[numbers], x, c)


def recorded_impacts(run: RecordedRun) -> list[Impact]:
    """Return the impulses in connections at the impacts of a recording.

    They are between two rows: from the row before, coordinates move on with the speeds just before the impact.
    """
    hits = [(k, item) for k, item in enumerate(map(run.transition, range(len(run.when)))) if item.impulse]
    sizes = [sum(float(np.abs(part).sum()) for part in item.impulse.values()) for _, item in hits]
    kept = np.sort(np.argsort(-np.array(sizes), kind="stable")[:MOST_IMPACTS])
    if not len(kept):
        return []
    numbers = np.array([run.number(np.nextafter(run.when[hits[k][0]], -np.inf)) for k in kept], dtype=np.int64)
    rows, found = row_samples(run, numbers), []
    layout = rows.model.layout
    for i, k in enumerate(kept.tolist()):
        number, item = hits[k]
        x = rows.x[i].copy()
        x[layout.u_slice] = item.u_before
        row = replace(rows.only(np.array([i])), x=x[None])
        q_dot = rows.model.terms.evaluate(row.t, row.x, row.context, {"q_dot": None})["q_dot"]
        row.x[:, layout.q_slice] += (run.when[number] - run.clock[numbers[i]]) * q_dot
        found.append(Impact(float(run.when[number]), PinImpulses(row)(item)))
    return found


# -- Display frames of a recorded run ------------------------------------------------------------------------
#
# Display frames of a recorded run: constant payload, one frame per row, strip charts, event log.

CHARTED: Final = 1500  # rows in the strip charts
MAX_DETAILS: Final = 60  # transitions in one message


class PlaybackFrames:
    """Encoder of the display frames of a recorded run.

    ``number``: number of the run, which the page compares with that of frames; ``before``: earlier run of the same
    mechanism, shown behind it at the same time.
    """

    def __init__(self, run: RecordedRun, number: int = 1, before: RecordedRun | None = None) -> None:
        self.run, self.number, self.before = run, number, before
        for states in run.states:
            run.encoder.evaluator.number(states)
        self._payload: dict[str, Any] | None = None
        self._loads: dict[str, Any] | None = None

    def payload(self) -> dict[str, Any]:
        """Return the constant payload of the run."""
        if self._payload is None:
            run = self.run
            self._payload = {
                "kind": "model",
                "number": self.number,
                **run.encoder.payload(),
                "port": "",
                "speed": 1.0,
                "schedule": None,
                "period": 0.0,
                "recording": "",
                "transitions": [],
                "totals": self._totals(),
                "playback": {
                    "source": run.source,
                    "span": [float(run.clock[0]), float(run.clock[-1])],
                    "rows": len(run.t if run.trajectory is None else run.trajectory.t),
                    "when": packed(run.when),
                    "bands": self._bands(),
                },
                "offers_loads": "at once",
                "ghost": None if self.before is None else self.before.encoder.picture.payload(),
                "story": self._story(),
            }
        return self._payload

    def frame(self, number: int) -> Floats:
        """Return the display frame of a row, see :meth:`.FrameEncoder.frame`.

        Its one sample contains clock, s, mode and all quantities.
        """
        run = self.run
        instant, clock = run.at(number), float(run.clock[number])
        made = int(np.searchsorted(run.when, clock, side="right"))
        head = (self.number, number, float(run.t[number]), PAUSED, 0, made)
        values = run.encoder.values(instant.states, instant.x, instant.c)
        sample = np.concatenate([[clock, run.encoder.evaluator.number(instant.states)], values])
        ghost = () if self.before is None else self._ghost(self.before, clock)
        return run.encoder.frame(head, instant.states, instant.x, instant.c, instant.row, [sample], ghost)

    @staticmethod
    def _ghost(before: RecordedRun, clock: float) -> Floats:
        """Return the placements of the drawing of the run before, at a time of the clock or its end, s."""
        instant, encoder = before.at(before.number(clock)), before.encoder
        with np.errstate(all="ignore"):
            return encoder.picture.placed(*encoder.evaluator.points(instant.x, instant.c))

    def _story(self) -> dict[str, Any] | None:
        trajectory, before = self.run.trajectory, self.before
        if trajectory is None:
            return None
        quantities, earlier = self.run.encoder.quantities, None if before is None else before.trajectory
        return {
            **story_payload(trajectory, quantities.row_places, earlier),
            "quantities": quantity_words(trajectory, quantities.row_places, len(quantities.all)),
            "charts": usual_charts(trajectory, [(item.name, item.group) for item in quantities.all]),
        }

    def loads(self) -> dict[str, Any]:
        """Return the payload of the forces in connections."""
        if self._loads is None:
            run, flat = self.run, self.run.encoder.flat
            if run.trajectory is not None:
                trajectory = run.trajectory
                samples = merged_samples(trajectory.rows, trajectory.sample(instants(trajectory)))
                impacts = [Impact(item.time, item.pin_impulse) for item in trajectory.transitions if item.impulse]
                self._loads = loads_payload(samples, samples.t, impacts, trajectory.reading.words, flat, packed)
            else:
                count = len(run.t)
                numbers = np.arange(count) if count <= MOST_LOADED else self.chosen(MOST_LOADED)
                samples = row_samples(run, numbers)
                self._loads = loads_payload(
                    samples, run.clock[numbers], recorded_impacts(run), run.encoder.words, flat, packed
                )
        return {"kind": "loads", "number": self.number, "loads": self._loads}

    def readers(self) -> int:
        """Return the number of guard lists so far."""
        return len(self.run.encoder.evaluator.readers)

    def transition_details(self, first: int, count: int = MAX_DETAILS) -> list[dict[str, Any]]:
        """Return the log entries of at most ``count`` transitions from number ``first``."""
        last = min(first + count, len(self.run.when))
        return [entry(k, self.run.transition(k)) for k in range(max(0, first), last)]

    def _modes(self) -> Integers:
        """Return the number in the page's mode graph of every mode of the run."""
        return np.array([self.run.encoder.evaluator.number(states) for states in self.run.states], dtype=np.int64)

    def _bands(self) -> dict[str, str]:
        """Return the begin of each mode, s of the clock, and its number."""
        run = self.run
        modes = self._modes()[run.mode]
        begins = np.concatenate([[0], np.flatnonzero(np.diff(modes)) + 1])
        return {"begins": packed(run.clock[begins]), "modes": packed(modes[begins], "<i4")}

    def _totals(self) -> dict[str, Any]:
        run = self.run
        names = [run.encoder.evaluator.automaton.labels.of(states) for states in run.states]
        pairs = Counter((names[a], names[b]) for a, b in run.changes.tolist() if a == b or names[a] != names[b])
        visits: Counter[str] = Counter()
        for (_, target), count in pairs.items():
            visits[target] += count
        spent = np.bincount(run.mode[1:], np.diff(run.clock), len(names)) if len(run.mode) > 1 else np.zeros(0)
        seconds: Counter[str] = Counter()
        for name, s in zip(names, spent.tolist(), strict=False):
            if s > 0.0:
                seconds[name] += s
        return {
            "visits": dict(visits),
            "crossings": [[a, b, count] for (a, b), count in pairs.items()],
            "seconds": dict(seconds),
            "transitions": len(run.when),
        }

    def sampled(self, chosen: Integers) -> Floats:
        """Return all quantities at some rows, shape (quantities, len(chosen))."""
        run = self.run
        rows = (run.at(int(number)) for number in chosen)
        return np.array([run.encoder.values(one.states, one.x, one.c) for one in rows]).T

    def charts(self, chosen: Integers, values: Floats) -> dict[str, Any]:
        """Return the payload of the strip charts; ``values`` are those of :meth:`sampled`."""
        run = self.run
        return {
            "kind": "charts",
            "number": self.number,
            "times": packed(run.clock[chosen]),
            "modes": packed(self._modes()[run.mode[chosen]], "<i4"),
            "values": packed(values, "<f4"),
        }

    def chosen(self, count: int, low: float = -np.inf, high: float = np.inf) -> Integers:
        """Return the numbers of about ``count`` rows between two times of the clock, s.

        They are evenly spaced over the clock, and as many over all visits, on both sides of transitions, and
        one beyond either end.
        """
        run = self.run
        first, last = run.number(low), run.number(high, after=True)
        even = np.linspace(run.clock[first], run.clock[last], max(2, count // 2))
        if run.trajectory is not None:
            even = np.concatenate([even[::2], visit_times(run.trajectory, max(2, count // 4))])
        numbers = np.searchsorted(run.clock, even, side="right") - 1
        jumps = first + np.flatnonzero(np.diff(run.mode[first : last + 1]))
        jumps = jumps[:: max(1, -(-4 * len(jumps) // count))]
        return np.unique(np.clip(np.concatenate([numbers, jumps, jumps + 1, [first, last]]), first, last))


def packed(values: Floats | Integers, kind: str = "<f8") -> str:
    """Return numbers as base 64 of their bytes (``base64_arrays.js`` decodes them)."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def plain_json(data: Any) -> str:
    """Return data as JSON for a ``<script>`` element: no character in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# -- Playback of a recorded run: serves the display frames that pages request --------------------------------

COARSE: Final = 200  # rows of the first, coarse strip charts
AT_ONCE: Final = 10  # rows evaluated between yields to the event loop


def open_recorded_run(path: Path) -> RecordedRun:
    """Open a recording of a live run (``.mcap``) or a saved run (``.run.json``).

    ``path``: the file. Raises InputError: the file is neither, is inconsistent, or has no rows.
    """
    if path.suffix == ".mcap":
        recorded = read_recording(path)
        if not len(recorded.table):
            raise InputError(f"no ticks in '{path}'", remedy="record a run that ticks")
        return from_recording(recorded, f"recording {path.name}")
    # deferred: recordings do not require it
    from fsm_dyn.run.simulator import open_run

    return from_trajectory(open_run(path), f"run {path.name}")


@dataclass(frozen=True)
class Reruns:
    """Runs of a model with changed parameters."""

    graph: ModeGraph
    parameters: Mapping[str, Any] = field(default_factory=dict)  # values unlike the file's
    until: float | None = None  # s; by default the end that the model names

    def run(self, changes: Mapping[str, float]) -> RecordedRun:
        """Return the finished run with further values of parameters."""
        from fsm_dyn.run.simulator import simulate  # deferred: recordings do not require it

        own = {**self.parameters, **changes}
        trajectory = simulate(self.graph, until=self.until, parameters=own, on_failure="return")
        return from_trajectory(trajectory, "run", graph_with_parameters(self.graph.automaton, own))

    def payload(self, changes: Mapping[str, float]) -> dict[str, Any]:
        """Return the payload of the parameters."""
        mechanism, own = self.graph.automaton.mechanism, {**self.parameters, **changes}
        now, units = parameter_values(mechanism, own), units_of(mechanism)
        begun = parameter_values(mechanism, self.parameters)
        items = [
            {"name": name, "value": value, "now": now[name], "unit": units.get(name, ""), "reset": False, "hand": False}
            for name, value in independent_parameters(mechanism, begun, self.parameters)
        ]
        return {"parameters": items, "drives": [], "waiting": [], "mode": ""}


class PlaybackSession:
    """Recorded run and its pages, all at the same row.

    ``make``: returns the recorded run; may take seconds. ``name``: shown until then. ``before``: returns an earlier
    run, shown behind it. ``live``: whether pages can go back to a live run.
    """

    def __init__(
        self,
        make: Callable[[], RecordedRun] | Reruns,
        name: str,
        before: Callable[[], RecordedRun] | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._reruns = make if isinstance(make, Reruns) else None
        self._make = partial(make.run, {}) if isinstance(make, Reruns) else make
        self._before, self._name, self._live = before, name, live
        self._first: RecordedRun | None = None
        self._changes: dict[str, float] = {}
        self._rerunning: asyncio.Task[None] | None = None
        self._playback: PlaybackFrames | None = None
        self._error: dict[str, Any] | None = None
        self._listeners: list[Listener] = []
        self._since = time.monotonic()
        self._row = 0
        self._charting: asyncio.Task[None] | None = None
        self.summary: list[dict[str, Any]] = []

    def join(self, listener: Listener) -> None:
        """Add a page and send it the present row, the error or the stage."""
        self._listeners.append(listener)
        if self._error is not None:
            listener(self._error)
        elif self._playback is None:
            stage = f"running {self._name}" if self._reruns else f"reading {self._name} and compiling its model"
            listener(
                {
                    "kind": "starting",
                    "name": self._name,
                    "stage": stage,
                    "seconds": time.monotonic() - self._since,
                    "finished": True,
                }
            )
        else:
            listener(self._payload(self._playback))
            self._show(self._playback, [listener])

    def leave(self, listener: Listener) -> None:
        """Remove a page."""
        with contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    async def play(self) -> None:
        """Load the run and show its first row."""
        try:
            self._playback = await asyncio.to_thread(self._ready)
        except Exception as error:
            self._error = error_payload(package_error(error, "the run cannot be shown"))
            for listener in list(self._listeners):
                listener(self._error)
            return
        for listener in list(self._listeners):
            listener(self._payload(self._playback))
        self._show(self._playback, self._listeners)

    def _ready(self) -> PlaybackFrames:
        self._first = self._make()
        playback = PlaybackFrames(self._first, before=None if self._before is None else self._before())
        playback.payload()
        return playback

    def _payload(self, playback: PlaybackFrames) -> dict[str, Any]:
        setup = {} if self._reruns is None else {"setup": self._reruns.payload(self._changes)}
        return {**playback.payload(), **setup, "offers_live": self._live}

    async def _rerun(self, reruns: Reruns) -> None:
        """Run again until no parameter has changed meanwhile; pages show the first run behind the new one."""
        made: dict[str, float] = {}
        while made != self._changes and self._playback is not None:
            made, before = dict(self._changes), self._playback
            try:
                after = await asyncio.to_thread(self._after, reruns, made, before.number + 1)
            except Exception as error:
                self._tell(
                    {**error_payload(package_error(error, "it cannot run with these parameters")), "kind": "refused"}
                )
                return
            if self._charting is not None:
                self._charting.cancel()
            self._row = after.run.number(float(before.run.clock[self._row]))
            self._playback = after
            self._tell(self._payload(after))
            self._show(after, self._listeners)

    def _after(self, reruns: Reruns, changes: Mapping[str, float], number: int) -> PlaybackFrames:
        playback = PlaybackFrames(reruns.run(changes), number, self._first)
        playback.payload()
        return playback

    def _tell(self, message: Mapping[str, Any]) -> None:
        for listener in list(self._listeners):
            listener(message)

    async def close(self) -> None:
        """Cancel the evaluation of strip charts, and a run under way."""
        for task in (self._charting, self._rerunning):
            if task is not None:
                task.cancel()

    async def carry_out(self, command: Mapping[str, Any]) -> None:
        """Execute a page command: show another row, send strip charts or details of transitions.

        Raises InputError: the command is not available in playback, or no run is loaded yet.
        """
        playback = self._playback
        if playback is None:
            raise InputError("no run loaded")
        match command["do"]:
            case "seek":
                self._row = playback.run.number(command["at"], after=command["after"])
                self._show(playback, self._listeners)
            case "seek_row":
                self._row = max(0, min(command["number"], len(playback.run.t) - 1))
                self._show(playback, self._listeners)
            case "view_direction":
                playback.run.encoder.picture.look(command["azimuth"], command["elevation"])
                self._show(playback, self._listeners)
            case "charts":
                if self._charting is not None:
                    self._charting.cancel()  # superseded by the new request
                self._charting = asyncio.create_task(self._chart(playback, command["from"], command["to"]))
            case "loads":
                found = await asyncio.to_thread(playback.loads)
                if playback is self._playback:
                    self._tell(found)
            case "transition_details":
                items = playback.transition_details(command["first"])
                for listener in list(self._listeners):
                    listener(
                        {
                            "kind": "transition_details",
                            "number": playback.number,
                            "first": command["first"],
                            "items": items,
                        }
                    )
            case "set" if self._reruns is not None:
                parameter_values(self._reruns.graph.automaton.mechanism, {command["name"]: command["value"]})
                self._changes = {**self._changes, command["name"]: command["value"]}
                if self._rerunning is None or self._rerunning.done():
                    self._rerunning = asyncio.create_task(self._rerun(self._reruns))
            case what:
                raise InputError(
                    f"command '{what}' is not available in playback",
                    allowed="seek, seek_row, transition_details, charts, loads, view_direction",
                )

    async def _chart(self, playback: PlaybackFrames, low: float, high: float) -> None:
        """Send the quantities between two times of the clock, s, first coarsely; yields to other commands."""
        try:
            for count in (COARSE, CHARTED):
                chosen = playback.chosen(count, low, high)
                parts = []
                for begin in range(0, len(chosen), AT_ONCE):
                    parts.append(playback.sampled(chosen[begin : begin + AT_ONCE]))
                    await asyncio.sleep(0.0)
                payload = {**playback.charts(chosen, np.concatenate(parts, axis=1)), "span": [low, high]}
                for listener in list(self._listeners):
                    listener(payload)
        except Exception as error:
            refusal = {**error_payload(package_error(error, "there are no charts of this")), "kind": "refused"}
            for listener in list(self._listeners):
                listener(refusal)

    def _show(self, playback: PlaybackFrames, listeners: Sequence[Listener]) -> None:
        known = playback.readers()
        data = playback.frame(self._row).astype("<f8").tobytes()
        for listener in list(listeners):
            if playback.readers() > known:
                listener({"kind": "guards", "number": playback.number, "guards": playback.run.encoder.guards()})
            listener(data)
