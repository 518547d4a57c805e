"""Running ahead: a copy of a live run, some milliseconds before it, under a stated guess of the hand.

The copy begins at the state of a row, in another process than the ticks, and moves on by whole ticks. The guess: the
device keeps its velocity, the engagement its direction, every other input its value. What the copy meets is an
expectation; modes among it are made ready between ticks, and no result depends on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import FsmDynError
from fsm_dyn.core.records import dataclass
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.tick import FIXED, TickColumns
from fsm_dyn.live.tick_process import new_stepper
from fsm_dyn.runtime.abi import RecordColumn, Status, TickCounts, TickNumbers

Floats = NDArray[np.float64]
States = tuple[int, ...]
_TIME, _MODE, _ENGAGEMENT = (FIXED.index(name) for name in ("t", "mode", "engagement"))
_SUPPLIES: Final = 8  # most modes supplied in a tick of the copy


@dataclass(frozen=True)
class Expectation:
    """What a copy of the run met within its horizon.

    Attributes
    ----------
    time : float
        Model time of the first transition, s.
    source, target : tuple of int
        Contact states before and after it.
    states : tuple of tuple of int
        Contact states of all modes reached, in their order, each once.
    """

    time: float
    source: States
    target: States
    states: tuple[States, ...]


class Foresight:
    """A copy of a live run, to run ahead of it.

    Parameters
    ----------
    settings : LiveSettings
        Of the run.
    graph : ModeGraph
        With the parameters of the run.
    columns : TickColumns
        Of its rows.
    """

    def __init__(self, settings: LiveSettings, graph: ModeGraph, columns: TickColumns) -> None:
        self._stepper = new_stepper(settings, graph)
        self._stepper.prepare()
        self._columns = columns
        self._layout = graph.automaton.terms.layout
        n_a, tick = len(self._stepper.axes), self._stepper.tick_data
        coupled = np.flatnonzero(tick.row == -1)
        self._place, self._rate, self._grip = (tick.slot[k * n_a + coupled] for k in range(3))

    def follow(self, command: Mapping[str, Any]) -> None:
        """Take over what a command of the run changed: parameters or its speed."""
        if command["do"] == "set":
            self._stepper.set_parameters(command["values"])
        elif command["do"] == "speed":
            self._stepper.set_speed(float(command["value"]))

    def look(self, row: Floats, states: States, horizon: float) -> Expectation | None:
        """Run ahead from a row.

        Parameters
        ----------
        row : ndarray, shape (columns,)
            Of a tick that was completed.
        states : tuple of int
            Contact states of its mode.
        horizon : float
            Time to look ahead, s of the model.

        Returns
        -------
        Expectation or None
            None: nothing is met.
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
    """Thread of the session that lets a copy run ahead, and reports to the tick process what it found.

    Parameters
    ----------
    make : callable
        Makes the copy; called in the thread, as this takes a second.
    latest : callable
        Returns the latest row and the contact states of its mode; None while the run rests.
    events : callable
        Returns the commands carried out since the last call.
    publish : callable
        Called with the time of the next transition (s of the model; None: none within the horizon), and with the modes
        that are to be made ready.
    horizon : float
        Time to look ahead, s of the model.
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
