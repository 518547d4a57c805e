"""The tick process: device, model and clock.

Started by the guard as ``python -m fsm_dyn.live.process``; never imports SymPy.  In every tick it reads the device,
advances the model by one period, writes the force, and leaves a row in shared memory.  It sleeps until absolute
deadlines; a tick that comes too late moves the deadlines after it, so that time slows down instead of being caught up
with force on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.compiling import open_graph
from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live import control, memory
from fsm_dyn.live.control import Controller
from fsm_dyn.live.device import Device, Sample, Waiting, driver_class
from fsm_dyn.live.realtime import ask_for_privileges, bin_of, wait_until
from fsm_dyn.live.rows import Columns
from fsm_dyn.live.stepping import DeviceMap, Limits, Stepper
from fsm_dyn.simulation import state as st

WARM_UP: Final = 200  # ticks of a copy before the loop begins, so that nothing is loaded or grown in it
_LOOK: Final = 20  # ticks between looks at the guard


def new_stepper(settings: dict[str, Any], graph: Any) -> Stepper:
    """Return the stepper that a live run's settings describe."""
    return Stepper(
        graph,
        int(settings["axes"]),
        float(settings["period"]),
        int(settings["substeps"]),
        str(settings["method"]),
        DeviceMap(**{**settings["mapping"], "axes": tuple(settings["mapping"]["axes"])}),
        Limits(
            **{**settings["limits"], "low": tuple(settings["limits"]["low"]), "high": tuple(settings["limits"]["high"])}
        ),
        bool(settings["schedule"]),
    )


def columns_of(stepper: Stepper) -> Columns:
    """Return the columns of the rows of a stepper."""
    layout = stepper.graph.automaton.terms.layout
    return Columns(layout.w, layout.x, stepper.n_device, tuple(axis.name for axis in stepper.axes))


class TickProcess:
    """The loop with all it needs.

    Parameters
    ----------
    settings : dict
        As the session wrote them.
    folder : path
        Where the saved automaton lies.
    """

    def __init__(self, settings: dict[str, Any], folder: Path) -> None:
        self.settings = settings
        graph = open_graph(folder / "graph.json", settings["parameters"])
        self.stepper = new_stepper(settings, graph)
        self.columns = columns_of(self.stepper)
        self.block = memory.Block.open(memory.Shape(self.columns.width, settings["record"]), settings["memory"])
        self.header = self.block.header
        self.header[memory.TICK_PID] = os.getpid()
        self.controller = Controller(self.stepper, self.tell, settings["stall_ticks"], paused=settings["paused"])
        self.device: Device = driver_class(settings["driver"])(settings["options"], settings["transport"])
        if hasattr(self.device, "attach"):  # a driver that the session feeds
            self.device.attach(self.block)
        self._read = self.device.read
        self._waiting: Waiting | None = None
        self.row = np.zeros(self.columns.width)
        self._mail = 0
        self._guard_beats, self._guard_seen = -1, time.monotonic()

    def tell(self, event: dict[str, Any]) -> None:
        """Leave a message for whoever listens."""
        event.setdefault("wall", time.time())
        try:
            memory.put_text(self.block.events, self.header, memory.EVENTS, event)
        except ValueError:
            memory.put_text(self.block.events, self.header, memory.EVENTS, {"event": event.get("event"), "long": True})

    def run(self) -> None:
        """Go through the life of a live run."""
        try:
            self.device.open()
            self.device.calibrate()
            if self.device.spec.waits:
                self._waiting = Waiting(self.device)
                self._read = self._waiting.read
            self._warm_up()
            told = ask_for_privileges() if self.settings["privileges"] else ["privileges: not asked for"]
            self.tell({"event": "ready", "privileges": told, "modes": list(self.stepper.machine.chart_names)})
            self._loop()
        finally:
            self._let_go()

    def _warm_up(self) -> None:
        """Run the model for some ticks and put it back: every page is touched, every function loaded."""
        counts = self.stepper.tick_data.counts
        counts[ct.ADVANCING] = 1
        for _ in range(WARM_UP):
            self.stepper.tick(shown=False)
            if counts[ct.UNFINISHED] or counts[ct.FAULT]:
                break
        counts[ct.FAULT] = ct.NONE
        self.stepper.reset()

    def _let_go(self) -> None:
        """Show no force any more, whatever the driver has to say to that."""
        for action in (lambda: self.device.write([0.0] * self.stepper.n_device), self.device.close):
            try:
                action()
            except Exception as error:  # a driver may raise anything
                self.tell({"event": "driver", "why": repr(error)[:500]})
        if self._waiting is not None:
            self._waiting.stop()

    # -- the loop ------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        period = int(self.settings["period"] * 1e9) if self.settings["paced"] else 0
        most = self.settings["ticks"]
        header, stop_on_overrun = self.header, self.settings["overrun"] == "stop"
        began = deadline = time.monotonic_ns()
        header[memory.TICK_STATE] = memory.RUNNING
        while header[memory.STOPPING] == 0 and (most < 0 or self.controller.ticks < most):
            woke = wait_until(deadline) if period else time.monotonic_ns()
            lateness = woke - deadline if period else 0
            if not period:
                self._wait_for_recorder()
            if not self._tick():
                break
            done = time.monotonic_ns()
            self._count(woke - began, done - woke, lateness)
            deadline += period
            if period and done > deadline:
                header[memory.OVERRUNS] += 1
                deadline = done  # the time lost is lost
                if stop_on_overrun and self.controller.phase == control.RUNNING:
                    self.controller.fault(ct.OVERRUN)

    def _wait_for_recorder(self) -> None:
        """Where ticks are not paced, let a recorder keep up: they would outrun it."""
        header = self.header
        while (
            self.settings["recorded"]
            and header[memory.ROWS] - header[memory.RECORDED] > memory.ROW_SLOTS // 2
            and header[memory.STOPPING] == 0
        ):
            header[memory.BEATS] += 1
            time.sleep(0.001)

    def _tick(self) -> bool:
        """Carry out one tick; return whether there may be another one."""
        header, controller = self.header, self.controller
        header[memory.BEATS] += 1
        if header[memory.MAIL] != self._mail:
            messages, self._mail = memory.take_texts(self.block.mail, header, memory.MAIL, self._mail)
            header[memory.MAIL_READ] = self._mail
            for message in messages:
                controller.command(message)
        try:
            sample = self._read()
        except Exception as error:  # a driver may raise anything
            return self._driver_failed(error)
        status = controller.tick(sample)
        try:
            self.device.write(self.stepper.tick_data.force.tolist())
        except Exception as error:
            return self._driver_failed(error)
        self._fill(sample, status)
        if controller.wants(status):
            self._supply(status)
        return controller.ticks % _LOOK != 0 or self._guard_is_there()

    def _driver_failed(self, error: Exception) -> bool:
        self.controller.fault(ct.DRIVER_RAISED, repr(error))
        return False  # in order: zero is written, the device closed

    def _supply(self, status: int) -> None:
        """Have something derived while the device is let go."""
        self.device.write([0.0] * self.stepper.n_device)
        self.header[memory.TICK_STATE] = memory.BUSY
        self.controller.supply(status)
        self.header[memory.TICK_STATE] = memory.RUNNING

    def _guard_is_there(self) -> bool:
        beats, now = int(self.header[memory.GUARD_BEATS]), time.monotonic()
        if beats != self._guard_beats:
            self._guard_beats, self._guard_seen = beats, now
        elif self.settings["guarded"] and now - self._guard_seen > self.settings["guard_timeout"]:
            self.controller.fault(ct.GUARD_LOST)
            return False
        return True

    def _fill(self, sample: Sample, status: int) -> None:
        """Write what the tick came to into the row; times follow."""
        row, stepper, controller = self.row, self.stepper, self.controller
        tick, state = stepper.tick_data, stepper.loop.state
        places = self.columns.places
        counts = tick.counts
        row[0] = controller.ticks
        row[1] = state.clock[st.TIME]
        row[5:14] = (
            state.counters[st.MODE], status, controller.phase, counts[ct.FAULT], counts[ct.ADVANCING],
            counts[ct.UNFINISHED], controller.transitions, tick.numbers[ct.GRIP], sample.buttons,
        )  # fmt: skip
        row[places["inputs"]] = tick.next
        row[places["state"]] = state.x
        row[places["position"]] = sample.position
        row[places["velocity"]] = sample.velocity
        row[places["force"]] = tick.force
        row[places["ports"]] = tick.ports
        if counts[ct.ADVANCING] and state.counters[st.TRANSITIONS]:
            for record in stepper.records():
                memory.put_row(self.block.records, self.header, memory.TRANSITIONS, self._stamped(record))

    def _stamped(self, record: Any) -> Any:
        """Return a record of a transition with the number of its tick in front."""
        stamped = np.zeros(self.settings["record"])
        stamped[0] = self.controller.ticks
        stamped[1 : 1 + len(record)] = record
        return stamped

    def _count(self, wall: int, duration: int, lateness: int) -> None:
        """Publish the row and enter the times into the histograms."""
        block, header, row = self.block, self.header, self.row
        row[2:5] = wall * 1e-9, duration * 1e-9, lateness * 1e-9
        header[memory.PHASE] = self.controller.phase
        header[memory.FAULT] = self.stepper.tick_data.counts[ct.FAULT]
        header[memory.LIMITED] = self.stepper.tick_data.counts[ct.LIMITED]
        memory.put_row(block.rows, header, memory.ROWS, row)
        block.durations[bin_of(duration)] += 1
        block.latenesses[bin_of(lateness)] += 1


def main() -> None:
    """Run the tick process; the one argument is the folder with its settings, which it removes."""
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    process = TickProcess(settings, folder)
    for path in (folder / "graph.json", folder / "settings.json"):
        path.unlink(missing_ok=True)
    folder.rmdir()
    process.run()
    process.header[memory.TICK_STATE] = memory.ENDED


if __name__ == "__main__":
    main()
