"""A live run as its owner sees it: start it, look at it, tell it what to do, end it.

The session makes the shared memory, saves the automaton, opens the device's transport and starts the guard process,
which starts the tick process.  It never steps physics and never talks to the device.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.compiling import Parameters
from fsm_dyn.errors import RunError
from fsm_dyn.live import compiled_pacing, guard, memory
from fsm_dyn.live.control import FAILED, FAULTS, PHASES
from fsm_dyn.live.device import Spec, driver_class
from fsm_dyn.live.process import columns_of, new_stepper, wants_compiled
from fsm_dyn.live.realtime import percentiles
from fsm_dyn.live.recording import Recorder
from fsm_dyn.live.rows import Columns
from fsm_dyn.live.settings import Settings as Settings
from fsm_dyn.live.sign_of_life import SignOfLife
from fsm_dyn.live.starting import allowed, held, merged, release_time, saved, spawn
from fsm_dyn.live.stepping import Stepper
from fsm_dyn.live.ticks import load_compiled
from fsm_dyn.simulation import state as st

CODE: Final = "making machine code of the stepper: once after an installation, up to a minute; then it is kept"
_PATIENCE: Final = 5.0  # s that a process asked to end may take


class LiveSession:
    """A live run under way; make it with :meth:`start` and leave it with :meth:`close` or ``with``."""

    def __init__(
        self,
        block: memory.Block,
        columns: Columns,
        stepper: Stepper,
        process: subprocess.Popen[bytes],
        log: IO[bytes],
        folder: Path,
    ) -> None:
        self.columns = columns
        self.graph = stepper.graph
        self._stepper = stepper
        self._block, self._process, self._log, self._folder = block, process, log, folder
        self._life = SignOfLife(block.header)
        self._lock = threading.Lock()
        self._events_at = 0
        self._told: list[dict[str, Any]] = []
        self._given = 0
        self.recorder: Recorder | None = None
        self.modes: tuple[str, ...] = stepper.machine.chart_names
        self.states: tuple[tuple[int, ...], ...] = tuple(chart.programs.states for chart in stepper.machine.charts)

    @classmethod
    def start(
        cls,
        graph: ModeGraph,
        driver: str = "scripted",
        options: Mapping[str, Any] | None = None,
        *,
        settings: Settings | None = None,
        parameters: Parameters | None = None,
        record: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> LiveSession:
        """Start a live run.

        Parameters
        ----------
        graph : ModeGraph
            With ports; held or not.
        driver, options
            A shipped driver by name, or ``module:Class``, and what it is told.
        settings : Settings, optional
        parameters : mapping, optional
            Values that replace the file's, the couplers' among them (``<axis>_stiffness``, ``<axis>_damping``).
        record : path, optional
            A new file for the recording.
        progress : callable, optional
            Called with a few words before everything that may take long.

        Raises
        ------
        InputError
            The model has no port, or something given cannot be.
        """
        settings = settings or Settings()
        settings.check()
        parameters = merged(graph, parameters)
        progress("deriving the model with its ports held")
        graph = held(graph, parameters)
        device = driver_class(driver)
        options = dict(getattr(device, "complete", dict)(options or {}))  # a driver may find out what was left open
        spec: Spec = device.describe(options)
        limits = allowed(settings.limits, spec)
        plain = {
            **asdict(settings), "limits": asdict(limits), "axes": spec.axes, "turns": spec.turns, "driver": driver,
            "options": options, "parameters": parameters, "device_damping": spec.handle.damping,
            "device_delay": spec.handle.delay, "release": release_time(settings, spec), "felt": spec.felt,
        }  # fmt: skip
        progress(CODE)
        stepper = new_stepper(plain, graph)
        load_compiled(stepper.tick_data, stepper.address)
        if wants_compiled(plain, driver_class(driver)):
            compiled_pacing.load()
        columns = columns_of(stepper)
        record_width = 1 + stepper.loop.buffers.transitions.shape[1]
        block = memory.Block.create(memory.Shape(columns.width, record_width))
        transport = device.open_transport(options)
        plain |= {"memory": block.address, "transport": transport, "guarded": True, "record": record_width}
        plain["recorded"] = record is not None
        progress("starting the tick process and its guard, laying in modes for what nobody foresaw")
        log = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the session)
        session = None
        try:
            process, folder = spawn(graph, plain, spec, log)
            session = cls(block, columns, stepper, process, log, folder)
            if record is not None:
                kept = {**plain, "modes": list(session.modes)}
                session.recorder = Recorder(Path(record), block, columns, kept, saved(graph))
        except BaseException:
            if session is not None:
                session.close()
            else:
                block.close(remove=True)
                log.close()
            raise
        finally:
            if transport is not None:
                os.close(transport)
        return session

    # -- looking -------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any] | None:
        """Return the latest tick by names, or None before the first; never waits."""
        rows, _, _ = memory.take_rows(
            self._block.rows, self._block.header, memory.ROWS, max(0, int(self._block.header[memory.ROWS]) - 1)
        )
        if not len(rows):
            return None
        self._listen()
        found = self.columns.as_dict(rows[-1], self.modes)
        found["phase"] = PHASES[found["phase"]]
        found["fault"] = FAULTS[found["fault"]]
        return found

    def rows(self, since: int = 0) -> tuple[NDArray[np.float64], int]:
        """Return rows (one per tick, in ``columns``) from number ``since`` on, and the number to ask from next."""
        rows, following, _ = memory.take_rows(self._block.rows, self._block.header, memory.ROWS, since)
        return rows, following

    def transitions(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Return transitions from number ``since`` on (tick, time, source, target), and the number to ask from next."""
        self._listen()
        records, following, _ = memory.take_rows(self._block.records, self._block.header, memory.TRANSITIONS, since)
        return [
            {
                "tick": int(record[0]),
                "time": float(record[1 + st.RECORD_TIME]),
                "source": self._mode_name(record[1 + st.RECORD_SOURCE]),
                "target": self._mode_name(record[1 + st.RECORD_TARGET]),
            }
            for record in records
        ], following

    def records(self, since: int = 0) -> tuple[NDArray[np.float64], int]:
        """Return the records behind :meth:`transitions`, the number of the tick in front, and the number to ask next.

        The modes they name are known when this returns: ``modes`` are the names, ``states`` the contact states.
        """
        records, following, _ = memory.take_rows(self._block.records, self._block.header, memory.TRANSITIONS, since)
        self._listen()
        return records, following

    def _mode_name(self, number: float) -> str:
        return self.modes[int(number)] if 0 <= number < len(self.modes) else f"mode {int(number)}"

    def events(self) -> list[dict[str, Any]]:
        """Return what the run has told since this was asked last: faults, phases, commands carried out or refused."""
        self._listen()
        found, self._given = self._told[self._given :], len(self._told)
        return found

    def _listen(self) -> None:
        """Take in what was told; a mode derived on the way has its name there."""
        if self._block.header[memory.EVENTS] == self._events_at:
            return
        found, self._events_at = memory.take_texts(
            self._block.events, self._block.header, memory.EVENTS, self._events_at
        )
        for event in found:
            if event.get("event") == "supplied":
                self.modes += tuple(event["modes"])
                self.states += tuple(tuple(codes) for codes in event["states"])
            elif event.get("event") == "done" and event["command"]["do"] == "reset":
                self.modes = tuple(dict.fromkeys(self.modes))  # charts are forgotten
                self.states = tuple(dict.fromkeys(self.states))
        self._told += found

    @property
    def structural(self) -> frozenset[str]:
        """Parameters that wait for a reset: they enter gaps, constraints or inertia."""
        return self._stepper.structural

    @property
    def alive(self) -> bool:
        """Whether the run is under way."""
        return self._process.poll() is None

    @property
    def tick_pid(self) -> int:
        """Process number of the tick process, 0 before it has started."""
        return int(self._block.header[memory.TICK_PID])

    @property
    def guard_pid(self) -> int:
        """Process number of the guard process."""
        return self._process.pid

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended; return whether it has."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait_for_ticks(self, count: int, timeout: float = 120.0) -> None:
        """Wait until so many ticks are done.

        Raises
        ------
        RunError
            The run ended before, or it takes longer than ``timeout`` (s).
        """
        until = time.monotonic() + timeout
        while self._block.header[memory.ROWS] < count:
            if not self.alive and self._block.header[memory.ROWS] < count:
                raise RunError(f"the live run ended early\n{self.log()}")
            if time.monotonic() > until:
                raise RunError(f"no {count} ticks in {timeout:g} s")
            time.sleep(0.002)

    def log(self) -> str:
        """Return what guard and tick process wrote to their error output."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def report(self) -> dict[str, Any]:
        """Return how the run went: times of the ticks, overruns, faults, what the system granted."""
        self._listen()
        header = self._block.header
        ready: dict[str, Any] = next((event for event in self._told if event.get("event") == "ready"), {})
        failed = [event for event in self._told if event.get("event") == "failed"]
        return {
            "ticks": int(header[memory.ROWS]),
            "transitions": int(header[memory.TRANSITIONS]),
            "phase": PHASES[header[memory.PHASE]],
            "fault": FAULTS[header[memory.FAULT]],
            "failure": f"at {failed[-1]['t']:g} s: {failed[-1]['why']}"
            if failed and header[memory.PHASE] == FAILED
            else "",
            "duration": percentiles(self._block.durations),
            "processor": percentiles(self._block.processor),
            "lateness": percentiles(self._block.latenesses),
            "overruns": int(header[memory.OVERRUNS]),
            "limited": int(header[memory.LIMITED]),
            "releases": int(header[memory.RELEASES]),
            "faded": int(header[memory.FADED]),
            "rejected": int(header[memory.REJECTED]),
            "leak": float(header[memory.LEAK]) * 1e-9 if header[memory.WATCHED] else None,
            "leak_opening": float(header[memory.LEAK_OPENING]) * 1e-9 if header[memory.WATCHED] else None,
            "taken_back": float(header[memory.TAKEN_BACK]) * 1e-9 if header[memory.WATCHED] else None,
            "privileges": ready.get("privileges", []),
            "guard": self._word_of_guard(),
            "rows_lost": self.recorder.lost if self.recorder is not None else 0,
        }

    def _word_of_guard(self) -> str:
        """Return what the guard had to do, if anything.

        The end of a tick process is told to its guard only when its memory is freed, a tenth of a second later: whoever
        asks in between waits for it.
        """
        header = self._block.header
        if (
            self.tick_pid
            and header[memory.TICK_STATE] != memory.ENDED
            and self.alive
            and guard.is_ending(self.tick_pid)
        ):
            self.wait(_PATIENCE)
        if header[memory.GUARD_ACTION]:
            return {guard.KILLED: "ended the tick process", guard.FOUND_DEAD: "found the tick process dead"}[
                int(header[memory.GUARD_ACTION])
            ]
        if not self.alive and self._process.returncode < 0:
            return f"was ended itself, by signal {-self._process.returncode}"
        return ""

    # -- telling -------------------------------------------------------------------------------------------

    def send(self, command: str, **arguments: Any) -> None:
        """Tell the run what to do; the answer comes as an event.

        Commands: ``run`` (``until="transition"``), ``pause``, ``step`` (``ticks``), ``reset``, ``scrub`` (back to
        model time ``t``), ``clear``, ``speed`` (``value``), ``set`` (``values``: parameters), ``input`` (``values``),
        ``port`` (``port axes scale force_scale offset``).

        Raises
        ------
        RunError
            The mailbox is full: the tick process does not read it.
        """
        header = self._block.header
        with self._lock:
            if header[memory.MAIL] - header[memory.MAIL_READ] >= memory.TEXT_SLOTS - 1:
                raise RunError("the live run takes no commands: its mailbox is full")
            memory.put_text(self._block.mail, header, memory.MAIL, {"do": command, **arguments})

    def point(self, position: tuple[float, ...], velocity: tuple[float, ...], buttons: int = 0) -> None:
        """Give the driver ``pointer`` a sample: up to six axes, m and m/s."""
        row = np.zeros(memory.POINTER_WIDTH)
        row[0] = time.monotonic()
        row[1 : 1 + len(position)] = position
        row[7 : 7 + len(velocity)] = velocity
        row[13] = buttons
        with self._lock:
            memory.put_row(self._block.pointer, self._block.header, memory.POINTER, row)

    def close(self) -> dict[str, Any]:
        """End the run, wait for its processes, close the recording; return the report.  May be called again."""
        if not self._log.closed:
            self._block.header[memory.STOPPING] = 1
            if self._process.stdin is not None:
                self._process.stdin.close()
            if not self.wait(_PATIENCE):
                self._kill()
            if self.recorder is not None:
                self.recorder.close()
            self._report = self.report()
            self._life.stop()
            if self._block.header[memory.TICK_STATE] != memory.ENDED:
                self._report["log"] = self.log()
            self._log.close()
            self._block.close(remove=True)
            shutil.rmtree(self._folder, ignore_errors=True)  # a process that ended early has left it
        return self._report

    def _kill(self) -> None:
        """End processes that did not end when asked, the one that moves the device first."""
        if self.tick_pid and self._block.header[memory.TICK_STATE] != memory.ENDED:
            with contextlib.suppress(OSError):
                os.kill(self.tick_pid, 9)
        if not self.wait(1.0):  # the guard still has a safe frame to write
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> LiveSession:
        """Return the session."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End the run."""
        self.close()
