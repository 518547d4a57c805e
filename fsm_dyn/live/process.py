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
from fsm_dyn.live import compiled_publishing as cp
from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live import control, memory
from fsm_dyn.live.control import Controller
from fsm_dyn.live.device import Device, Waiting, driver_class
from fsm_dyn.live.realtime import ask_for_privileges, wait_until
from fsm_dyn.live.rows import Columns
from fsm_dyn.live.stepping import DeviceMap, Limits, Stepper
from fsm_dyn.simulation import state as st

WARM_UP: Final = 200  # ticks of a copy before the loop begins, so that nothing is loaded or grown in it
_LOOK: Final = 20  # ticks between looks at the guard
_FAR: Final = 20  # periods that a tick may be late before the device is let go


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
    discrete = layout.c[layout.sigma_slice.start :]
    return Columns(layout.w, layout.x, stepper.n_device, tuple(axis.name for axis in stepper.axes), discrete)


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
        self.controller = Controller(
            self.stepper, self.tell, settings["stall_ticks"], self._busy, paused=settings["paused"]
        )
        self.device: Device = driver_class(settings["driver"])(settings["options"], settings["transport"])
        if hasattr(self.device, "attach"):  # a driver that the session feeds
            self.device.attach(self.block)
        self._read = self.device.read
        self._waiting: Waiting | None = None
        block = self.block
        self._ring = cp.RING.pack(cp.Ring(block.header, block.rows, block.durations, block.latenesses, block.processor))
        finished, self._finished = cp.FINISHED.allocate(cp.FINISHED_COUNT)
        self._said = memory.plain(finished.numbers)
        self._beats = memory.plain(self.header)
        self._mail = 0
        self._farewell = -1  # the tick in which the run ends, once it is to end
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
            self.tell({"event": "ready", "privileges": told})
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
        shape = self.block.shape
        bins = [np.zeros(memory.BINS, np.int64) for _ in range(3)]
        elsewhere = cp.RING.pack(cp.Ring(np.zeros(memory.HEADER, np.int64), np.zeros((1, shape.row)), *bins))
        addresses = self.stepper.addresses
        cp.publish(addresses[4], addresses[7], elsewhere.address, self._finished.address)
        self.stepper.reset()

    def _let_go(self) -> None:
        """Show no force any more, whatever the driver has to say to that."""
        self._busy(True)
        try:
            self.device.close()
        except Exception as error:  # a driver may raise anything
            self.tell({"event": "driver", "why": repr(error)[:500]})
        if self._waiting is not None:
            self._waiting.stop()

    # -- the loop ------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        period = int(self.settings["period"] * 1e9) if self.settings["paced"] else 0
        most = self.settings["ticks"]
        beats, said = self._beats, self._said
        began = deadline = time.monotonic_ns()
        spent = 0
        beats[memory.TICK_STATE] = memory.RUNNING
        while (most < 0 or self.controller.ticks < most) and not (beats[memory.STOPPING] and self._may_end()):
            woke = wait_until(deadline) if period else time.monotonic_ns()
            if not period:
                self._wait_for_recorder()
                deadline = woke
            before = time.thread_time_ns()
            if not self._tick():
                break
            done = time.monotonic_ns()
            said[cp.WALL], said[cp.DURATION], said[cp.LATENESS] = woke - began, done - woke, woke - deadline
            said[cp.PROCESSOR] = spent
            stepper = self.stepper
            cp.publish(stepper.addresses[4], stepper.addresses[7], self._ring.address, self._finished.address)
            spent = time.thread_time_ns() - before
            deadline += period
            if period and done > deadline:
                self._late(done - deadline, period)
                deadline = done  # the time lost is lost

    def _may_end(self) -> bool:
        """Whether the device is let go, or has had the time for it, since the end of the run was asked for."""
        if self._farewell < 0:
            self.controller.command({"do": "pause"})
            self._farewell = self.controller.ticks + 2 * int(self.stepper.limits.ramp / self.stepper.period) + 2
        return self.controller.phase != control.RUNNING or self.controller.ticks >= self._farewell

    def _busy(self, begins: bool) -> None:
        """Tell the guard that something takes long, after the force is zero; or that ticks go on."""
        if begins:
            try:
                self.device.write([0.0] * self.stepper.n_device)
            except Exception as error:  # a driver may raise anything
                self.controller.fault(ct.DRIVER_RAISED, repr(error))
                return  # and the guard goes on watching closely
        self.header[memory.TICK_STATE] = memory.BUSY if begins else memory.RUNNING

    def _late(self, delay: int, period: int) -> None:
        """Do what a tick that ended after the next one's deadline asks for."""
        self.header[memory.OVERRUNS] += 1
        if self.settings["overrun"] == "stop" and self.controller.phase == control.RUNNING:
            self.controller.fault(ct.OVERRUN)
        elif delay > _FAR * period:
            self.controller.let_go()

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
        beats, controller = self._beats, self.controller
        beats[memory.BEATS] += 1
        if beats[memory.MAIL] != self._mail:
            messages, self._mail = memory.take_texts(self.block.mail, self.header, memory.MAIL, self._mail)
            beats[memory.MAIL_READ] = self._mail
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
        said = self._said
        said[cp.NUMBER], said[cp.STATUS], said[cp.PHASE] = controller.ticks, status, controller.phase
        said[cp.TRANSITIONS], said[cp.BUTTONS] = controller.transitions, sample.buttons
        if controller.advanced and self.stepper.counters[st.TRANSITIONS]:
            for record in self.stepper.records():
                memory.put_row(self.block.records, self.header, memory.TRANSITIONS, self._stamped(record))
        if controller.wants(status):
            self._supply(status)
        return controller.ticks % _LOOK != 0 or self._guard_is_there()

    def _driver_failed(self, error: Exception) -> bool:
        self.controller.fault(ct.DRIVER_RAISED, repr(error))
        return False  # in order: zero is written, the device closed

    def _supply(self, status: int) -> None:
        """Have something derived while the device is let go."""
        self._busy(True)
        self.controller.supply(status)
        self.controller.let_go()
        self._busy(False)

    def _guard_is_there(self) -> bool:
        beats, now = int(self.header[memory.GUARD_BEATS]), time.monotonic()
        if beats != self._guard_beats:
            self._guard_beats, self._guard_seen = beats, now
        elif self.settings["guarded"] and now - self._guard_seen > self.settings["guard_timeout"]:
            self.controller.fault(ct.GUARD_LOST)
            return False
        return True

    def _stamped(self, record: Any) -> Any:
        """Return a record of a transition with the number of its tick in front."""
        stamped = np.zeros(self.settings["record"])
        stamped[0] = self.controller.ticks
        stamped[1 : 1 + len(record)] = record
        return stamped


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
