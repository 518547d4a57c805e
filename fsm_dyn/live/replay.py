"""A live run without its device: a recording again, and a copy that runs ahead."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import model_start
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import FsmDynError
from fsm_dyn.core.records import dataclass
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.mode_pool import OwnKernels
from fsm_dyn.live.recording import Recording, recorded_graph
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import ADVANCED, FIXED, INCOMPLETE_COLUMN, STATUS_COLUMN, TickColumns
from fsm_dyn.live.tick_process import new_stepper
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.run.executable import compiled_together
from fsm_dyn.run.online import own_programs
from fsm_dyn.run.simulator import simulate
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.runtime.abi import RecordColumn, Status, TickCounts, TickNumbers

# -- Running ahead: a copy, some milliseconds before its run ---------------------------------------------------


States = tuple[int, ...]
_TIME, _MODE, _ENGAGEMENT = (FIXED.index(name) for name in ("t", "mode", "engagement"))
_SUPPLIES: Final = 8  # most modes supplied in a tick of the copy


@dataclass(frozen=True)
class Expectation:
    """Events met by a copy of the run within its horizon."""

    time: float  # model time of the first transition, s
    # source, target: contact states before and after it
    source: States
    target: States
    states: tuple[States, ...]  # contact states of all modes reached, in their order, each once


class Foresight:
    """A copy of a live run, to run ahead of it. ``graph``: with the parameters of the run; ``columns``: of its rows."""

    def __init__(self, settings: LiveSettings, graph: ModeGraph, columns: TickColumns) -> None:
        self._stepper = new_stepper(settings, graph)
        self._stepper.prepare()
        self._columns = columns
        self._layout = graph.automaton.terms.layout
        n_a, tick = len(self._stepper.axes), self._stepper.tick_data
        coupled = np.flatnonzero(tick.row == -1)
        self._place, self._rate, self._grip = (tick.slot[k * n_a + coupled] for k in range(3))

    def follow(self, command: Mapping[str, Any]) -> None:
        """Take over the changes by a command of the run: parameters or its speed."""
        if command["do"] == "set":
            self._stepper.set_parameters(command["values"])
        elif command["do"] == "speed":
            self._stepper.set_speed(float(command["value"]))

    def look(self, row: Floats, states: States, horizon: float) -> Expectation | None:
        """Run ahead from a row.

        ``row``, shape (columns,): of a tick that was completed; ``states``: contact states of its mode; ``horizon``:
        time to look ahead, s of the model. None: nothing is met.
        """
        stepper = self._stepper
        if not stepper.executable.stocked:
            stepper.reset()
            if not stepper.executable.stocked:
                return None
        self._begin(row, states)
        tick, met = stepper.tick_data, []
        count = max(1, round(horizon / (stepper.period * float(tick.numbers[TickNumbers.SPEED]))))
        for _ in range(count):
            self._guess(stepper.period * float(tick.numbers[TickNumbers.SPEED]))
            met += self._advance()
            if int(tick.counts[TickCounts.STATUS]) != Status.DONE:
                break
        if not met:
            return None
        found = dict.fromkeys(target for _, _, target in met)
        return Expectation(*met[0], tuple(found))

    def _begin(self, row: Floats, states: States) -> None:
        """Put the copy at the state of a row."""
        stepper, columns, layout = self._stepper, self._columns, self._layout
        tick, places = stepper.tick_data, columns.places
        context = np.zeros(layout.n_c)
        context[: len(stepper.parameters)] = stepper.parameters
        context[layout.sigma_slice.start : layout.memory_slice.stop] = row[places["discrete"]]
        tick.now[:], tick.motion[:] = row[places["inputs"]], row[places["motion"]]
        tick.next[:], tick.motion_next[:] = tick.now, tick.motion
        tick.counts[TickCounts.INPUTS_SET] = tick.counts[TickCounts.ADVANCING] = 1
        tick.counts[TickCounts.PERIODS] = 1
        stepper.begin_at(float(row[_TIME]), InitialState(row[places["state"]].copy(), states, context))

    def _guess(self, step: float) -> None:
        """Write the inputs at the end of the next tick, a ``step`` (s) later."""
        tick = self._stepper.tick_data
        tick.next[self._place] = tick.now[self._place] + step * tick.now[self._rate]

    def _advance(self) -> list[tuple[float, States, States]]:
        """Advance by a tick; return time, source and target of its transitions."""
        stepper, found = self._stepper, []
        status = stepper.tick(shown=False)
        found += self._transitions()
        for _ in range(_SUPPLIES):
            if not stepper.is_available(status):
                break
            if stepper.supply(status) is not None:
                break
            status = stepper.tick(shown=False, again=True)
            found += self._transitions()
        return found

    def _transitions(self) -> list[tuple[float, States, States]]:
        charts = self._stepper.executable.charts
        return [
            (
                float(record[RecordColumn.TIME]),
                charts[int(record[RecordColumn.SOURCE])].programs.states,
                charts[int(record[RecordColumn.TARGET])].programs.states,
            )
            for record in self._stepper.records()
        ]


INTERVAL: Final = 0.005  # s between looks
_QUIET: Final = 0.05  # s between looks at a run that rests


class Lookout:
    """Thread of the session: lets a copy run ahead, and reports its findings to the tick process.

    ``make``: makes the copy; called in the thread, as this takes a second. ``latest``: returns the latest row and the
    contact states of its mode; None while the run rests. ``events``: returns the commands carried out since the last
    call. ``publish``: called with the time of the next transition (s of the model; None: none within the horizon), and
    with the modes that are to be made ready. ``horizon``: time to look ahead, s of the model.
    """

    def __init__(
        self,
        make: Callable[[], Foresight],
        latest: Callable[[], tuple[Floats, States] | None],
        events: Callable[[], Sequence[Mapping[str, Any]]],
        publish: Callable[[float | None, Sequence[States]], None],
        horizon: float,
    ) -> None:
        self._make, self._latest, self._events, self._publish, self._horizon = make, latest, events, publish, horizon
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="running ahead", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; may be called again."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        foresight = self._make()
        sent: set[States] = set()
        wait = 0.0
        while not self._stopped.wait(wait):
            begun = time.monotonic()
            for event in self._events():
                foresight.follow(event["command"])
            found = self._latest()
            if found is None:
                self._publish(None, ())
                wait = _QUIET
                continue
            met = self._look(foresight, *found)
            more = [states for states in met.states if states not in sent] if met else []
            sent.update(more)
            self._publish(met.time if met else None, more)
            wait = max(INTERVAL - (time.monotonic() - begun), 0.2 * INTERVAL)

    def _look(self, foresight: Foresight, row: Floats, states: States) -> Expectation | None:
        try:
            return foresight.look(row, states, self._horizon)
        except FsmDynError:  # the run may be able to do what its copy is not
            return None


# -- Recordings again, with their inputs -----------------------------------------------------------------------


_ASKING: Final = (Status.NEED_MODE, Status.NEED_CHART, Status.BUFFER_FULL)
_REPEATED: Final = ("reset", "scrub", "speed", "set")  # commands with effects beyond the recorded inputs


def replay(recorded: Recording) -> tuple[Floats, LiveStepper]:
    """Repeat the run of a recording tick by tick.

    Parameters
    ----------
    recorded : Recording
        An opened recording.

    Returns
    -------
    records : float64 array
        The transitions, in the form of ``recorded.records`` and equal to them bit for bit.
    stepper : LiveStepper
        In its state at the end.
    """
    stepper = new_stepper(recorded.settings, recorded_graph(recorded))
    stepper.prepare()
    commands: dict[int, list[dict[str, Any]]] = {}
    for event in recorded.events:
        if event.get("event") == "command_done" and event["command"]["do"] in _REPEATED:
            commands.setdefault(int(event["tick"]), []).append(event["command"])
        elif event.get("event") == "kernel_adopted":
            commands.setdefault(int(event["tick"]), []).append({"do": "take over", "states": tuple(event["states"])})
    inputs = recorded.rows[:, recorded.columns.places["inputs"]]
    motion = recorded.columns.places["motion"]
    found = []
    tick = stepper.tick_data
    tick.counts[TickCounts.INPUTS_SET] = 1
    for row, values in zip(recorded.rows, inputs, strict=True):
        for command in commands.get(int(row[0]), ()):
            _carry_out(stepper, command)
        tick.counts[TickCounts.ADVANCING] = int(row[ADVANCED])
        if not tick.counts[TickCounts.ADVANCING]:
            continue
        tick.next[:] = values
        tick.motion_next[:] = row[motion]
        status = stepper.tick(shown=False)
        found += _stamped(row, stepper)
        while status in _ASKING and status != int(row[STATUS_COLUMN]):  # supplied within the tick, as in the live run
            stepper.supply(status)
            status = stepper.tick(shown=False, again=True)
            found += _stamped(row, stepper)
        if status in _ASKING:
            stepper.supply(status)
    width = recorded.settings.record
    return np.array(found).reshape(-1, width), stepper


def _own_kernels(graph: ModeGraph, states: tuple[int, ...]) -> OwnKernels | None:
    """Derive a mode and make its kernels, as the derivation process of the live run did."""
    begin = model_start(graph.automaton)
    programs = own_programs(graph.automaton, states, (begin.x, begin.context))
    if programs is None:
        return None
    parts = [compile_programs(part, optimisation=level) for part, level in compiled_together(programs)]
    rhs, full = (kernel.address for part in parts for kernel in part)
    return OwnKernels(rhs, full, parts)


def _stamped(row: Floats, stepper: LiveStepper) -> list[Floats]:
    """Return the records of the latest transitions, the number of the tick in front."""
    return [np.concatenate([row[:1], record]) for record in stepper.records()]


def off_line(recorded: Recording) -> Trajectory:
    """Simulate a recording without commands offline, with the recorded inputs; the result is equal bit for bit.

    The run ends with the last complete tick.  As in the live run, modes not derived at its start are embedded online
    and switch to derived kernels at the same times; these have the same equations, but round differently.
    """
    settings, graph = recorded.settings, recorded_graph(recorded)
    taken_over = {
        graph.automaton.name_of(event["states"]).name: int(event["evaluations"])
        for event in recorded.events
        if event.get("event") == "kernel_adopted"
    }
    return simulate(
        graph,
        until=float(recorded.rows[recorded.rows[:, INCOMPLETE_COLUMN] == 0.0][-1, 1]),
        method=settings.method,
        step=settings.period / (settings.substeps or 1),
        inputs=input_tables(recorded),
        derive_after=taken_over or math.inf,
        initial=dict(settings.initial),
    )


def input_tables(recorded: Recording) -> dict[str, dict[str, Floats]]:
    """Return the inputs of a recording as tables for :func:`fsm_dyn.run.simulator.simulate`.

    A run without commands makes the same transitions offline, bit for bit: see :func:`off_line`.
    """
    stepper = new_stepper(recorded.settings, recorded_graph(recorded))
    tick, columns, rows = stepper.tick_data, recorded.columns, recorded.rows[recorded.rows[:, INCOMPLETE_COLUMN] == 0.0]
    rows = rows[rows[:, ADVANCED] != 0.0]
    times = np.concatenate([[0.0], rows[:, 1]])
    values = np.vstack([tick.now, rows[:, columns.places["inputs"]]])
    rates = np.vstack([tick.motion, rows[:, columns.places["motion"]]])
    n = len(columns.smooth)
    tables = {}
    for i, name in enumerate(columns.inputs):
        parts = [times, values[:, i]]
        if name in columns.smooth:
            k = columns.smooth.index(name)
            parts += [rates[:, k], rates[:, n + k]]
        tables[name] = {"sampled": np.column_stack(parts)}
    return tables


def _carry_out(stepper: LiveStepper, command: dict[str, Any]) -> None:
    match command["do"]:
        case "take over":
            kernels = _own_kernels(stepper.graph, command["states"])
            if kernels is not None:
                stepper.take_over(command["states"], kernels)
        case "reset":
            stepper.reset()
        case "scrub":
            stepper.rewind(float(command["t"]))
        case "speed":
            stepper.set_speed(float(command["value"]))
        case "set":
            stepper.set_parameters({name: float(value) for name, value in command["values"].items()})
