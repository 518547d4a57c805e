"""Live session: the owner's interface to start, observe, command and end a live run."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NotRequired, TypedDict

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import RunError
from fsm_dyn.core.interrupts import held_back
from fsm_dyn.language.values import Parameters
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live import watchdog
from fsm_dyn.live.controller import FAILED, FAULTS, PHASES
from fsm_dyn.live.driver_protocol import descriptors
from fsm_dyn.live.launch import Prepared, derives, prepare, saved, start_processes
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.pacing import percentiles
from fsm_dyn.live.recording import Recorder
from fsm_dyn.live.replay import Foresight, Lookout
from fsm_dyn.live.tick import ADVANCED, INCOMPLETE_COLUMN, MODE_COLUMN
from fsm_dyn.live.tick_process import columns_of
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import LiveHeader, RecordColumn, TickState, WatchdogAction

if TYPE_CHECKING:
    from fsm_dyn.live.tick_samples import RunModels
    from fsm_dyn.run.samples import Samples

# -- Owner heartbeat -----------------------------------------------------------------------------------------
#
# Owner heartbeat: a thread of the owner's process increases a counter in shared memory.
#
# If the runtime can sleep (``runtime/pacing.c``), the thread never takes the interpreter lock: a derivation or a long
# notebook cell does not stop the heartbeat.


INTERVAL: Final = 0.02  # s
_BEATS: Final = LiveHeader.OWNER_BEATS


class SignOfLife:
    """Heartbeat thread: increases a counter in the header of shared memory until stopped.

    ``header``, int64 array: header of the block shared by tick process and owner.
    """

    def __init__(self, header: Integers) -> None:
        self._header = header
        self._ends = np.zeros(1, np.int64)
        self._stopped = threading.Event()
        target: Any = self._beat
        arguments: tuple[Any, ...] = ()
        if library.has_pacing():
            beats = header.ctypes.data + header.itemsize * _BEATS
            target, arguments = library.function("fsm_beat_on"), (beats, self._ends.ctypes.data, int(INTERVAL * 1e9))
        self._thread = threading.Thread(target=target, args=arguments, name="owner heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._header[_BEATS] += 1

    def stop(self) -> None:
        """Stop the thread; may be called again."""
        self._ends[0] = 1
        self._stopped.set()
        self._thread.join()


# -- The report of a live run: its statistics by name --------------------------------------------------------


class RunReport(TypedDict):
    """Statistics of a live run, as ``LiveSession.report()`` returns and ``fsm-dyn live --json`` prints them.

    Times are in s: ``p50``, ``p99``, ``p99.9`` and ``worst`` of all ticks.  Energies are in J, None if passivity is
    not observed. ``running_time`` is the wall-clock time in which the model had to advance, ``real_time_ratio`` its
    advance over that; None before the first tick.  ``sample_interval`` is the median time between samples of the
    device, at least a tick.  ``interruptions``: zero forces that the watchdog process sent for lack of ticks.
    ``warnings``: of an ended run, an energy balance of its latest 4095 ticks that does not close.  ``log`` is the error
    output of an abnormally ended run.
    """

    ticks: int
    transition_count: int
    phase: str
    fault: str
    failure: str
    execution_time: dict[str, float]
    cpu_time: dict[str, float]
    wakeup_latency: dict[str, float]
    overruns: int
    saturated_ticks: int
    saturations: int
    interruptions: int
    releases: int
    faded_ticks: int
    lagging_ticks: int
    running_time: float
    real_time_ratio: float | None
    sample_interval: float
    rejected: int
    excess_energy: float | None
    release_excess_energy: float | None
    dissipated_energy: float | None
    kernels_adopted: int
    realtime_privileges: list[str]
    watchdog_action: str
    rows_lost: int
    recording_failed: str
    warnings: tuple[str, ...]
    log: NotRequired[str]


# -- Live session: the owner's interface to start, observe, command and end a live run -----------------------
#
# The session creates the shared memory, saves the automaton, opens the device's transport and starts the watchdog
# process, which starts the tick process. It never steps the model and never communicates with the device.

STARTING: Final = "starting the tick process and its guard, preparing for modes that are met while it runs"
_RESETS: Final = 64  # resets for which mode names are kept
_PATIENCE: Final = 5.0  # s for a process to end
_LISTENS: Final = 0.1  # s between looks for events while the end of the run is waited for

States = tuple[tuple[int, ...], ...]


class LiveSession:
    """Live session; made with :meth:`start`, ended with :meth:`close` or ``with``.

    Attributes
    ----------
    graph : ModeGraph
        Coupled, with the parameters of the run.
    parameters : mapping
        Those unlike the model's file, with the usual dampings of couplers.
    """

    def __init__(self, ready: Prepared, record: str | os.PathLike[str] | None = None) -> None:
        stepper = ready.stepper
        self.columns = columns_of(stepper)
        self.graph, self.parameters = stepper.graph, dict(ready.settings.parameters)
        self._stepper = stepper
        self._lock, self._listening = threading.Lock(), threading.Lock()
        self._events_at = 0
        self._told: list[dict[str, Any]] = []
        self._recording_ended = False
        self._given = 0
        self._models: RunModels = {}
        self.recorder: Recorder | None = None
        self._lookout: Lookout | None = None
        states = tuple(chart.programs.states for chart in stepper.executable.charts)
        self._known: list[tuple[float, tuple[str, ...], States]] = [(-math.inf, stepper.executable.chart_names, states)]
        with contextlib.ExitStack() as made:
            with held_back():
                self._begin(ready, record, made)
            made.pop_all()

    def _begin(self, ready: Prepared, record: str | os.PathLike[str] | None, made: contextlib.ExitStack) -> None:
        """Create shared resources, start processes and recorder; all are entered in ``made`` for clean-up."""
        self._log: IO[bytes] = made.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (entered)
        shape = tick_data.BlockLayout(self.columns.width, 1 + self._stepper.loop.buffers.transitions.shape[1])
        self._block = tick_data.SharedBlock.create(shape)
        made.callback(self._block.close, remove=True)
        self._life = SignOfLife(self._block.header)
        made.callback(self._life.stop)
        transport = ready.driver.open_transport(ready.settings.options)
        between = list(os.pipe()) if derives(self.graph, ready.settings) else []
        try:
            settings = replace(
                ready.settings, memory=self._block.address, transport=transport, guarded=True, record=shape.record,
                recorded=record is not None, row=shape.row, kernels=tuple(between), states=self.states,
            )  # fmt: skip
            self._process = start_processes(self.graph, settings, ready.spec, self._log)
        finally:
            for descriptor in [*descriptors(transport), *between]:
                os.close(descriptor)
        made.pop_all()
        made.callback(self.close)
        weakref.finalize(self, _let_go, self._process)
        weakref.finalize(self, self._life.stop)
        if record is not None:
            kept = replace(settings, modes=self.modes)
            self.recorder = Recorder(Path(record), self._block, self.columns, kept, saved(self.graph))
        self._block.header[LiveHeader.NEXT_EVENT] = -1
        if settings.look_ahead > 0.0:
            self._followed = 0
            self._lookout = Lookout(
                lambda: Foresight(settings, self.graph, self.columns), self._latest, self._commands_done,
                self._expect, settings.look_ahead,
            )  # fmt: skip

    @classmethod
    def start(
        cls,
        graph: ModeGraph,
        driver: str = "scripted",
        options: Mapping[str, Any] | None = None,
        *,
        settings: LiveSettings | None = None,
        parameters: Parameters | None = None,
        record: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> LiveSession:
        """Start a live run.

        Parameters
        ----------
        graph : ModeGraph
            With ports; coupled or not.
        driver, options
            A shipped driver by name, ``FILE.py`` or ``module:Class``, and its options.
        parameters : mapping, optional
            Replacements for the file's values, the couplers' among them (``<axis>_stiffness``, ``<axis>_damping``).
        record : path, optional
            A new file for the recording.
        progress : callable, optional
            Called with a text before every slow stage; raising an exception cancels the start.

        Raises
        ------
        InputError
            The model has no port, or an argument is invalid.
        """
        ready = prepare(graph, driver, options, settings=settings, parameters=parameters, progress=progress)
        progress(STARTING)
        return cls(ready, record)

    # -- running ahead -------------------------------------------------------------------------------------

    def _latest(self) -> tuple[Floats, tuple[int, ...]] | None:
        """Return the latest row with its contact states, None while the run rests or is behind."""
        header = self._block.header
        rows, _, _ = tick_data.take_rows(
            self._block.rows, header, LiveHeader.ROWS, max(0, int(header[LiveHeader.ROWS]) - 1)
        )
        if not len(rows) or header[LiveHeader.STOP_REQUESTED]:
            return None
        row = rows[-1]
        self._listen()
        states = self.modes_at(row[0])[1]
        moves = row[ADVANCED] and not row[INCOMPLETE_COLUMN] and int(row[MODE_COLUMN]) < len(states)
        return (row, states[int(row[MODE_COLUMN])]) if moves else None

    def _commands_done(self) -> list[dict[str, Any]]:
        """Return events of commands carried out since the last call."""
        begin, self._followed = self._followed, len(self._told)
        return [event for event in self._told[begin : self._followed] if event.get("event") == "command_done"]

    def _expect(self, when: float | None, states: Sequence[tuple[int, ...]]) -> None:
        """Publish the time of the next transition, and let modes be made ready."""
        self._block.header[LiveHeader.NEXT_EVENT] = -1 if when is None else int(1e9 * when)
        more = [item for item in states if item not in self.states]
        if more:
            with contextlib.suppress(RunError):  # a full mailbox has more to do
                self.send("expect", states=more)

    # -- looking -------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any] | None:
        """Return the latest tick by names, or None before the first; never waits."""
        rows, _, _ = tick_data.take_rows(
            self._block.rows,
            self._block.header,
            LiveHeader.ROWS,
            max(0, int(self._block.header[LiveHeader.ROWS]) - 1),
        )
        if not len(rows):
            return None
        self._listen()
        found = self.columns.as_dict(rows[-1], self.modes)
        found["phase"] = PHASES[found["phase"]]
        found["fault"] = FAULTS[found["fault"]]
        when = self.next_event
        found["next_event"] = when if when is not None and when >= found["t"] else None
        return found

    @property
    def next_event(self) -> float | None:
        """Model time (s) of the next transition, foreseen by the copy that runs ahead; None: none, or no copy."""
        when = int(self._block.header[LiveHeader.NEXT_EVENT])
        return 1e-9 * when if when >= 0 else None

    def rows(self, since: int = 0) -> tuple[Floats, int]:
        """Return rows (one per tick, in ``columns``) from number ``since`` on, and the number to ask from next.

        Their modes are known when this returns, see :meth:`modes_at`. The ring keeps the latest 4095 rows; an event
        ``overwritten`` has the number of requested rows no longer in it.
        """
        rows, following, lost = tick_data.take_rows(self._block.rows, self._block.header, LiveHeader.ROWS, since)
        self._listen()  # the event of a mode precedes its first row
        self._report_lost("rows", lost)
        return rows, following

    def samples(self, since: int = 0) -> tuple[Samples, int]:
        """Return rows as of :meth:`rows` as samples, and the number to ask from next.

        They have all quantities determined by a row: ``multipliers``, ``outputs``, energies, ``pins`` with the forces
        in all connections. They are computed here when asked for; a tick does no more for them. Equations of
        connections are derived at their first use.
        """
        # loaded on request: no tick waits for it
        from fsm_dyn.live.tick_samples import samples_of_rows

        rows, following = self.rows(since)
        return samples_of_rows(
            self.graph,
            self._stepper.executable,
            self.columns,
            rows,
            lambda tick: self.modes_at(tick)[1],
            self._told,
            self._models,
        ), following

    def _report_lost(self, what: str, count: int) -> None:
        """Report requested data no longer in its ring as an event."""
        if count > 0:
            reason = f"the ring no longer has the first {count} of the {what} asked for: ask more often, or record"
            self._told.append({"event": "overwritten", "what": what, "count": count, "reason": reason})

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of the modes in the latest row, by their numbers."""
        return self._known[-1][1]

    @property
    def states(self) -> States:
        """Contact states of the modes in the latest row, by their numbers."""
        return self._known[-1][2]

    def modes_at(self, tick: float) -> tuple[tuple[str, ...], States]:
        """Return names and contact states of the modes by the numbers in a tick's row and records.

        A mode gets a number when first reached; a reset keeps one number for each mode.
        """
        for begins, names, states in reversed(self._known):
            if begins <= tick:
                return names, states
        return self._known[0][1:]

    def transitions(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Return transitions from number ``since`` on (tick, time, source, target), and the number to ask from next."""
        records, following = self.records(since)
        return [
            {
                "tick": int(record[0]),
                "time": float(record[1 + RecordColumn.TIME]),
                "source": self._mode_name(record[0], record[1 + RecordColumn.SOURCE]),
                "target": self._mode_name(record[0], record[1 + RecordColumn.TARGET]),
            }
            for record in records
        ], following

    def records(self, since: int = 0) -> tuple[Floats, int]:
        """Return the records behind :meth:`transitions`, the number of the tick in front, and the number to ask next.

        The modes they name are known when this returns: ``modes`` are the names, ``states`` the contact states.
        """
        records, following, lost = tick_data.take_rows(
            self._block.records, self._block.header, LiveHeader.TRANSITIONS, since
        )
        self._listen()
        self._report_lost("transitions", lost)
        return records, following

    @property
    def transition_count(self) -> int:
        """Transitions since the run began."""
        return int(self._block.header[LiveHeader.TRANSITIONS])

    def _mode_name(self, tick: float, number: float) -> str:
        names, _ = self.modes_at(tick)
        return names[int(number)] if 0 <= number < len(names) else f"mode {int(number)}"

    def events(self) -> list[dict[str, Any]]:
        """Return events since the last call: faults, run states, commands carried out or refused."""
        self._listen()
        found, self._given = self._told[self._given :], len(self._told)
        return found

    def _listen(self) -> None:
        """Read new events; they have the names of modes added during the run."""
        with self._listening:  # the thread that runs ahead listens too
            self._take_events()

    def _take_events(self) -> None:
        if self.recorder is not None and self.recorder.failure and not self._recording_ended:
            self._recording_ended = True
            self._told.append({"event": "recording", "reason": self.recorder.failure, "wall": time.time()})
        if self._block.header[LiveHeader.EVENTS] == self._events_at:
            return
        found, self._events_at = tick_data.take_texts(
            self._block.events, self._block.header, LiveHeader.EVENTS, self._events_at
        )
        for event in found:
            begins, names, states = self._known[-1]
            if event.get("event") == "mode_added":
                more = tuple(tuple(codes) for codes in event["states"])
                lost = range(len(names), event["first"])  # the ring of events no longer had them
                names, states = (*names, *(f"mode {number}" for number in lost)), (*states, *(() for _ in lost))
                self._known[-1] = begins, names + tuple(event["modes"]), states + more
            elif event.get("event") == "command_done" and event["command"]["do"] == "reset":  # charts are forgotten
                self._known.append((event["tick"], tuple(dict.fromkeys(names)), tuple(dict.fromkeys(states))))
                del self._known[:-_RESETS]
        self._told += found

    @property
    def structural(self) -> frozenset[str]:
        """Parameters effective after a reset: they enter gaps, constraints or inertia."""
        return self._stepper.structural

    @property
    def alive(self) -> bool:
        """Whether the run is under way."""
        return self._process.poll() is None

    @property
    def tick_count(self) -> int:
        """Ticks since the run began."""
        return int(self._block.header[LiveHeader.ROWS])

    @property
    def tick_pid(self) -> int:
        """Process number of the tick process, 0 before it has started."""
        return int(self._block.header[LiveHeader.TICK_PID])

    @property
    def watchdog_pid(self) -> int:
        """Process number of the watchdog process."""
        return self._process.pid

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended; return whether it has. Events are read meanwhile, so that none is lost."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                self._process.wait(max(0.0, min(until - time.monotonic(), _LISTENS)))
            except subprocess.TimeoutExpired:
                self._listen()
                if time.monotonic() >= until:
                    return False
            else:
                return True

    def wait_for_ticks(self, count: int, timeout: float = 120.0) -> None:
        """Wait for a number of ticks.

        Raises
        ------
        RunError
            The run ended before, or it takes longer than ``timeout`` (s).
        """
        until = time.monotonic() + timeout
        while self._block.header[LiveHeader.ROWS] < count:
            if not self.alive and self._block.header[LiveHeader.ROWS] < count:
                raise RunError(f"the live run ended early\n{self.log()}")
            if time.monotonic() > until:
                raise RunError(f"no {count} ticks in {timeout:g} s")
            self._listen()
            time.sleep(0.002)

    def log(self) -> str:
        """Return the error output of watchdog process and tick process."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def report(self) -> RunReport:
        """Return statistics of the run: times of the ticks, overruns, faults, privileges granted."""
        self._listen()
        header = self._block.header
        ready: dict[str, Any] = next((event for event in self._told if event.get("event") == "ready"), {})
        failed = [event for event in self._told if event.get("event") == "model_failed"]
        return {
            "ticks": int(header[LiveHeader.ROWS]),
            "transition_count": int(header[LiveHeader.TRANSITIONS]),
            "phase": PHASES[header[LiveHeader.PHASE]],
            "fault": FAULTS[header[LiveHeader.FAULT]],
            "failure": f"at {failed[-1]['t']:g} s: {failed[-1]['reason']}"
            if failed and header[LiveHeader.PHASE] == FAILED
            else "",
            "execution_time": percentiles(self._block.durations),
            "cpu_time": percentiles(self._block.processor),
            "wakeup_latency": percentiles(self._block.latenesses),
            "overruns": int(header[LiveHeader.OVERRUNS]),
            "saturated_ticks": int(header[LiveHeader.SATURATED_TICKS]),
            "saturations": int(header[LiveHeader.SATURATIONS]),
            "interruptions": int(header[LiveHeader.ZERO_FORCE_PACKETS]),
            "releases": int(header[LiveHeader.RELEASES]),
            "faded_ticks": int(header[LiveHeader.FADED_TICKS]),
            "lagging_ticks": int(header[LiveHeader.LAGGING_TICKS]),
            "running_time": float(header[LiveHeader.RUNNING_TIME]) * 1e-9,
            "real_time_ratio": self._real_time_ratio(),
            "sample_interval": float(header[LiveHeader.SAMPLE_INTERVAL]) * 1e-9,
            "rejected": int(header[LiveHeader.REJECTED]),
            "excess_energy": float(header[LiveHeader.EXCESS_ENERGY]) * 1e-9
            if header[LiveHeader.PASSIVITY_ON]
            else None,
            "release_excess_energy": float(header[LiveHeader.RELEASE_EXCESS_ENERGY]) * 1e-9
            if header[LiveHeader.PASSIVITY_ON]
            else None,
            "dissipated_energy": float(header[LiveHeader.DISSIPATED]) * 1e-9
            if header[LiveHeader.PASSIVITY_ON]
            else None,
            "kernels_adopted": sum(event.get("event") == "kernel_adopted" for event in self._told),
            "realtime_privileges": ready.get("realtime_privileges", []),
            "watchdog_action": self._word_of_guard(),
            "rows_lost": self.recorder.lost if self.recorder is not None else 0,
            "recording_failed": self.recorder.failure if self.recorder is not None else "",
            "warnings": (),
        }

    def _real_time_ratio(self) -> float | None:
        """Return the model's advance over the time in which it was to advance, None before the first tick."""
        running = int(self._block.header[LiveHeader.RUNNING_TIME])
        return int(self._block.header[LiveHeader.PROGRESS]) / running if running > 0 else None

    def _word_of_guard(self) -> str:
        """Return the action of the watchdog process, empty for none.

        The system reports the end of a tick process about 0.1 s late, after its memory is freed; this waits for it.
        """
        header = self._block.header
        if (
            self.tick_pid
            and header[LiveHeader.TICK_STATE] != TickState.ENDED
            and self.alive
            and watchdog.is_ending(self.tick_pid)
        ):
            self.wait(_PATIENCE)
        if header[LiveHeader.WATCHDOG_ACTION]:
            return {
                WatchdogAction.KILLED: "ended the tick process",
                WatchdogAction.FOUND_TERMINATED: "found the tick process dead",
            }[WatchdogAction(header[LiveHeader.WATCHDOG_ACTION])]
        if not self.alive and self._process.returncode < 0:
            return f"was ended itself, by signal {-self._process.returncode}"
        return ""

    # -- events and texts ----------------------------------------------------------------------------------

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command to the run; the answer is an event.

        Commands: ``run`` (``until="transition"``), ``pause``, ``step`` (``ticks``), ``reset``, ``scrub`` (back to
        model time ``t``), ``clear``, ``speed`` (``value``), ``set`` (``values``: parameters), ``input`` (``values``),
        ``port`` (``port axes scale force_scale offset``), ``constrain`` (``kind a b``: a body or ``ground``, or
        it and a point along its axes; ``along`` of a ``line``; ``coordinate``), ``release`` (``number``, or all).

        Raises
        ------
        RunError
            The mailbox is full: the tick process does not read it.
        """
        header = self._block.header
        with self._lock:
            if header[LiveHeader.COMMANDS] - header[LiveHeader.COMMANDS_READ] >= tick_data.COMMAND_SLOTS - 1:
                raise RunError("the live run takes no commands: its mailbox is full")
            tick_data.put_text(self._block.mail, header, LiveHeader.COMMANDS, {"do": command, **arguments})

    def send_pointer(self, position: tuple[float, ...], velocity: tuple[float, ...], buttons: int = 0) -> None:
        """Give the driver ``pointer`` a sample: up to six axes, m and m/s."""
        row = np.zeros(tick_data.POINTER_WIDTH)
        row[0] = time.monotonic()
        row[1 : 1 + len(position)] = position
        row[7 : 7 + len(velocity)] = velocity
        row[13] = buttons
        with self._lock:
            tick_data.put_row(self._block.pointer, self._block.header, LiveHeader.POINTER, row)

    def close(self) -> RunReport:
        """End the run, wait for its processes, close the recording; return the report.  May be called again.

        Ctrl-C is deferred until then.
        """
        with held_back():
            if not self._log.closed:
                self._end()
        return self._report

    def _end(self) -> None:
        if self._lookout is not None:
            self._lookout.stop()
        self._block.header[LiveHeader.STOP_REQUESTED] = 1
        _let_go(self._process)
        if not self.wait(_PATIENCE):
            self._kill()
        if self.recorder is not None:
            self.recorder.close()
        self._report = self.report()
        self._report["warnings"] = self._energy_warnings()
        self._life.stop()
        if self._block.header[LiveHeader.TICK_STATE] != TickState.ENDED:
            self._report["log"] = self.log()
        self._log.close()
        self._block.close(remove=True)

    def _energy_warnings(self) -> tuple[str, ...]:
        """Return the warning of an energy balance that does not close, of the rows that the ring still has."""
        # loaded after the run: no tick waits for it
        from fsm_dyn.live.tick_samples import energy_warnings

        if any(len(codes) != len(self.graph.automaton.contacts) for codes in self.states):  # of a mode that was lost
            return ()
        rows, _, _ = tick_data.take_rows(self._block.rows, self._block.header, LiveHeader.ROWS, 0)
        return energy_warnings(
            self.graph, self._stepper.executable, self.columns, rows, self.states, self.modes, self._told
        )

    def _kill(self) -> None:
        """Kill processes that have not ended, the tick process first."""
        if self.tick_pid and self._block.header[LiveHeader.TICK_STATE] != TickState.ENDED:
            with contextlib.suppress(OSError):
                os.kill(self.tick_pid, 9)
        if not self.wait(1.0):  # the watchdog process still writes the safe packet
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> LiveSession:
        """Return the session."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End the run."""
        self.close()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """End the run by closing the standard input of its watchdog process."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
