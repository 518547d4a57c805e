"""Tick process: runs the servo loop of device and model."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Any, Final

import numpy as np

from fsm_dyn.automaton import storage
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import FsmDynError
from fsm_dyn.live import controller as run_controller
from fsm_dyn.live import pacing
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.driver_protocol import BlockingReader, Device, driver_class
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.mode_pool import OwnKernels
from fsm_dyn.live.pacing import ask_for_privileges, clock, wait_until
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import TickColumns, watch_port
from fsm_dyn.programs.kernels import link
from fsm_dyn.run.structures import Bundle, Packed
from fsm_dyn.runtime import abi, library
from fsm_dyn.runtime.abi import Back, Fault, LiveHeader, PaceNumbers, TickCounts, TickNumbers, TickState
from fsm_dyn.runtime.layouts import Ring
from fsm_dyn.runtime.library import finish_tick

# -- Outputs of a tick ---------------------------------------------------------------------------------------
#
# Outputs of a tick (``runtime/tick_step.c``): rings in shared memory and histograms of times.


RING: Final = Bundle(Ring)


# -- Kernel loading in a thread of the tick process, for modes from the derivation process -------------------

# below the ticks, above normal processes: a preempted thread with the interpreter lock would delay a tick
_PRIORITY: Final = 10
Arrived = tuple[tuple[int, ...], OwnKernels]


class Receiver:
    """Thread to read machine code from a pipe and load it, without the interpreter lock.

    ``pipe``: descriptor of the pipe from :mod:`fsm_dyn.live.derivation_process`; closed by this thread. ``privileges``:
    whether to ask for real-time scheduling. ``arrived``, deque: contact states and kernels for the ticks; None after
    the end of the derivation process. ``wake``: called after each arrival.
    """

    def __init__(self, pipe: int, privileges: bool) -> None:
        self.arrived: deque[Arrived | None] = deque()
        self.wake: Callable[[], None] = lambda: None
        self._privileges = privileges
        self._file = os.fdopen(pipe, "rb")
        threading.Thread(target=self._run, name="receiver", daemon=True).start()

    def _run(self) -> None:
        with self._file as file:
            if self._privileges:  # of this thread alone
                with contextlib.suppress(OSError, AttributeError):
                    os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(_PRIORITY))
            while (found := received(file)) is not None:
                self.arrived.append(found)
                self.wake()
        self.arrived.append(None)
        self.wake()


def received(file: IO[bytes]) -> Arrived | None:
    """Read and load the kernels of one mode; None at the end of the pipe. ``file``: the pipe from the deriver."""
    line = file.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    addresses: list[int] = []
    libraries = []
    for size, names in head["parts"]:
        code = file.read(size)
        library = link(code, names) if len(code) == size else None
        if library is None:
            return None
        libraries.append(library)
        addresses += [int(library[name]) for name in names]
    rhs, full = addresses
    return tuple(head["states"]), OwnKernels(rhs, full, libraries)


# -- Tick process: runs the servo loop of device and model ---------------------------------------------------
#
# The watchdog process starts it as ``python -m fsm_dyn.live.tick_process``; it never imports SymPy. In every tick it
# reads the device, advances the model by one period, writes the force, and writes a row to shared memory. It sleeps
# until absolute deadlines; an overrun shifts all later deadlines, so model time slows down and is not caught up.

SWITCHING: Final = 2e-4  # s, longest time another thread may keep the interpreter
WARM_UP: Final = 200  # ticks of a copy before the loop, so the loop loads and allocates nothing
SPARE: Final = 500_000  # ns until the next tick, from which on a mode is made ready
PYTHON_PERIOD: Final = 4.9e-4  # s, shortest tick in Python
_LONGEST: Final = 2000  # most ticks of delay of the end by the slew limit
_TELLING: Final = 250  # ticks between queries of a driver's diagnostics
_LAST: Final = 2  # ticks with zero force before a run ends


def new_stepper(settings: LiveSettings, graph: Any) -> LiveStepper:
    """Return the stepper described by the settings of a live run."""
    stepper = LiveStepper(
        graph,
        settings.axes,
        settings.period,
        settings.substeps or 1,
        settings.method,
        settings.device_map,
        settings.limits,
        settings.schedule,
        settings.rotational_axes,
        dict(settings.initial),
        settings.work_per_tick,
        settings.parts,
    )
    watch_port(stepper.tick_data, settings.passivity, settings.device_damping, settings.device_delay)
    stepper.tick_data.counts[TickCounts.MAY_JUMP] = not settings.felt
    return stepper


def columns_of(stepper: LiveStepper) -> TickColumns:
    """Return the columns of the rows of a stepper."""
    layout = stepper.graph.automaton.terms.layout
    axes = tuple(axis.name for axis in stepper.axes)
    discrete = layout.c[layout.sigma_slice.start : layout.memory_slice.stop]
    return TickColumns(layout.w, layout.x, stepper.n_device, axes, discrete, stepper.smooth)


class TickProcess:
    """Servo loop with device, stepper and shared memory.

    ``settings``: as the session wrote them; ``graph``: with the run's parameters.
    """

    def __init__(self, settings: LiveSettings, graph: ModeGraph) -> None:
        self.settings = settings
        self.stepper = new_stepper(settings, graph)
        self.columns = columns_of(self.stepper)
        self.block = tick_data.SharedBlock.open(
            tick_data.BlockLayout(self.columns.width, settings.record), settings.memory
        )
        self.header = self.block.header
        self.header[LiveHeader.TICK_PID] = os.getpid()
        if self.header[LiveHeader.STOP_REQUESTED]:  # in this order: a stop requested before the write ends this process
            self.header[LiveHeader.TICK_STATE] = TickState.ENDED
            raise SystemExit
        self.controller = RunController(
            self.stepper, self.emit_event, settings.stall_ticks, self._busy, paused=settings.paused
        )
        self.device: Device = driver_class(settings.driver)(settings.options, settings.transport)
        if hasattr(self.device, "attach"):  # a driver fed by the session
            self.device.attach(self.block)
        if hasattr(self.device, "foresee"):  # event-based haptics
            self.device.foresee(self._time_to_event)
        self._read = self.device.read
        self._waiting: BlockingReader | None = None
        self._ring = ring_of(self.block)
        self._force = self.stepper.tick_data.force
        self._counts = tick_data.plain(self.stepper.tick_data.counts)
        self._beats = tick_data.plain(self.header)
        self._mail = 0
        self._receiver: Receiver | None = None
        self._arrived: deque[Arrived | None] = deque()
        if settings.kernels:
            ours, theirs = settings.kernels
            os.close(theirs)
            self._receiver = Receiver(ours, settings.realtime_privileges)
            self._arrived = self._receiver.arrived
        self._last_tick = -1  # of the end of the run, once requested
        # older name in drivers
        self._diagnostics = getattr(self.device, "diagnostics", None)
        self._last_diagnostics: dict[str, Any] = {}
        self._look_at_driver = _TELLING if self._diagnostics else sys.maxsize

    def emit_event(self, event: dict[str, Any]) -> None:
        """Write an event to the ring buffer."""
        event.setdefault("wall", time.time())
        try:
            tick_data.put_text(self.block.events, self.header, LiveHeader.EVENTS, event, tick_data.MAX_EVENT_SLOTS)
        except ValueError as error:
            told = {"event": "too long", "of": event.get("event"), "reason": str(error)}
            tick_data.put_text(self.block.events, self.header, LiveHeader.EVENTS, told)

    def run(self) -> None:
        """Go through the life of a live run."""
        try:
            if not self._opened():
                return
            self._warm_up()
            io = self._compiled_io()
            told = ask_for_privileges() if self.settings.realtime_privileges else ["privileges: not asked for"]
            self.emit_event({"event": "ready", "realtime_privileges": told})
            if io is None:
                self._loop()
            else:
                self._loop_compiled(io)
        finally:
            self._let_go()

    def _opened(self) -> bool:
        """Make the device ready; return whether it is."""
        try:
            self.device.open()
            self.device.calibrate()
            self._narrow_limits()
            if self.device.spec.blocking_read:
                self._waiting = BlockingReader(self.device)
                self._read = self._waiting.read
        except Exception as error:  # a driver may raise anything
            self._driver_failed(error)
            return False
        return True

    def _narrow_limits(self) -> None:
        """Limit commands to the force reported by the opened device, so that it exerts the commanded force."""
        numbers, spec = self.stepper.tick_data.numbers, self.device.spec
        numbers[TickNumbers.FORCE_LIMIT] = min(numbers[TickNumbers.FORCE_LIMIT], spec.force)
        numbers[TickNumbers.TORQUE_LIMIT] = min(numbers[TickNumbers.TORQUE_LIMIT], spec.torque)

    def _warm_up(self) -> None:
        """Run the model for some ticks and reset it, to touch every memory page and load every function."""
        self.stepper.prepare()
        counts = self.stepper.tick_data.counts
        counts[TickCounts.ADVANCING] = 1
        for _ in range(WARM_UP):
            self.stepper.tick(shown=False)
            if counts[TickCounts.INCOMPLETE] or counts[TickCounts.FAULT]:
                break
        counts[TickCounts.FAULT] = Fault.NONE
        self.stepper.reset()
        self._rehearse()
        self.stepper.publish_to(self._ring)

    def _rehearse(self) -> None:
        """Run ticks without effect: the model rests, and the rows go to a scratch ring."""
        data, shape = self.stepper.tick_data, self.block.shape
        kept = data.counts.copy(), data.numbers.copy()
        bins = [np.zeros(abi.BINS, np.int64) for _ in range(3)]
        header = np.zeros(tick_data.HEADER, np.int64)
        elsewhere = RING.pack(Ring(header, np.zeros((1, shape.row)), np.zeros((1, shape.record)), *bins))
        self.stepper.publish_to(elsewhere)
        data.counts[TickCounts.PHASE] = abi.LivePhase.PAUSED
        for k in range(WARM_UP):
            self.controller.run_tick(k, 0, k, 0, 0, 0)
            tick_data.plain(self._force).tolist()
        finish_tick(self.stepper.address, False)
        data.counts[:], data.numbers[:] = kept

    def _let_go(self) -> None:
        """Remove the force and close the device; exceptions of the driver are only reported."""
        self._busy(True)
        try:
            self.controller.tell_rest()
            self._report_driver()
            self.device.close()
        except Exception as error:  # a driver may raise anything
            self.emit_event({"event": "driver", "reason": repr(error)[:500]})
        if self._waiting is not None:
            self._waiting.stop()

    # -- the loop ------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        """Tick until the end; per tick, Python only reads, makes one compiled call, and writes."""
        period = int(self.settings.period * 1e9) if self.settings.paced else 0
        beats, force, controller = self._beats, tick_data.plain(self._force), self.controller
        read, write, take, go = self._read, self.device.write, controller.take, controller.run_tick
        processor_clock, counts, nothing = time.thread_time_ns, self._counts, [0.0] * self.stepper.n_device
        felt, arrived = self.device.spec.felt, self._arrived
        self._set_patience()
        watched = self._watched_from()
        began = deadline = clock()
        duration = spent = -1
        beats[LiveHeader.TICK_STATE] = TickState.RUNNING
        while True:
            if (controller.ticks >= watched or beats[LiveHeader.STOP_REQUESTED]) and self._is_over():
                return
            woke = wait_until(deadline) if period else clock()
            if not period:
                self._wait_for_recorder()
                deadline = woke
            before = processor_clock()
            if beats[LiveHeader.COMMANDS] != self._mail:
                self._take_mail()
            if arrived:
                self._take_over()
            try:
                sample = read()
                take(sample)
            except Exception as error:  # a driver may raise anything
                self._driver_failed(error)
                return
            looked = go(sample.sequence, sample.buttons, woke - began, woke - deadline, duration, spent)
            try:
                # a zero packet of the watchdog process overrides this force
                sent = write(
                    force.tolist()
                    if beats[LiveHeader.ZERO_FORCE_PACKETS] == counts[TickCounts.ZERO_FORCE_PACKETS]
                    else nothing
                )
                if felt and sent is not None:
                    _take_sent(self._force, sent)
                if controller.ticks >= self._look_at_driver:
                    self._report_driver()
            except Exception as error:
                self._driver_failed(error)
                return
            if looked and not self._look():
                return
            spent = processor_clock() - before
            done = clock()
            duration = done - woke
            deadline += period
            if period and done > deadline:
                self._late(done - deadline, period)
                deadline = done  # the time lost is lost
            elif controller.expected and (not period or deadline - clock() > SPARE):
                controller.prepare_expected()

    def _set_patience(self) -> None:
        """Set the timeouts of ticks, samples, watchdog process and owner, and the largest lag of the model."""
        counts, settings = self._counts, self.settings
        counts[TickCounts.WATCHDOG_TIMEOUT] = int(settings.watchdog_timeout * 1e9) * settings.guarded
        counts[TickCounts.OWNER_TIMEOUT] = int(settings.owner_timeout * 1e9) * settings.guarded
        self.stepper.tick_data.numbers[TickNumbers.PROGRESS] = 0.0  # without the progress of the warm-up
        counts[TickCounts.PACED] = settings.paced
        felt = settings.paced and self.device.spec.felt
        counts[TickCounts.LAG_LIMIT] = int(settings.lag_limit * 1e9) * felt
        counts[TickCounts.RELEASE_TIME] = int(settings.release * 1e9)
        counts[TickCounts.RELEASE_TICKS] = int(settings.release / settings.period)

    def _compiled_io(self) -> pacing.CompiledIO | None:
        """Return the compiled reading and writing of the device, if ticks are too fast for Python."""
        if not wants_compiled(self.settings, type(self.device)):
            return None
        io: pacing.CompiledIO | None = self.device.compiled()  # type: ignore[attr-defined]
        return io

    def _loop_compiled(self, io: pacing.CompiledIO) -> None:
        """Tick in compiled code until the end, and handle the reasons of its returns."""
        period = int(self.settings.period * 1e9) if self.settings.paced else 0
        pace, packed = pacing.new_pace(io, self.stepper.tick_data, period, self._watched_from())
        numbers, controller, counts = tick_data.plain(pace.numbers), self.controller, self._counts
        self._set_patience()
        if self._receiver is not None:  # new kernels wake the loop like commands
            self._receiver.wake = lambda: numbers.__setitem__(PaceNumbers.COMMANDS_READ, -1)
            if self._arrived:
                self._receiver.wake()
        numbers[PaceNumbers.START] = numbers[PaceNumbers.DEADLINE] = time.monotonic_ns()
        self._beats[LiveHeader.TICK_STATE] = TickState.RUNNING
        while True:
            reason = library.function("fsm_run_ticks")(self.stepper.address, packed.address)
            if reason == Back.CHECK_END:
                if self._is_over():
                    return
                numbers[PaceNumbers.MUST_RUN] = 1
            elif reason == Back.COMMANDS_ARRIVED:
                self._take_mail()
                numbers[PaceNumbers.COMMANDS_READ] = self._mail  # set first: later arrivals wake the loop again
                controller.hand.step()
                if self._arrived:
                    self._take_over()
                if self._arrived or controller.hand.waiting:
                    numbers[PaceNumbers.COMMANDS_READ] = -1
            elif reason == Back.COMMAND_PENDING:
                controller.carry_out_pending()
            elif reason == Back.RECORDER_CHECK:
                self._wait_for_recorder()
            elif reason in (Back.READ_FAILED, Back.WRITE_FAILED):
                what = "reading" if reason == Back.READ_FAILED else "writing"
                self._driver_failed(RuntimeError(f"{what} failed in compiled code"))
                return
            else:
                wants = reason == Back.SUPPLY_NEEDED
                looked = controller.conclude(abi.TickResult.SUPPLY_NEEDED if wants else counts[TickCounts.ATTENTION])
                if wants:
                    self.device.write(tick_data.plain(self._force).tolist())
                    library.function("fsm_end_tick")(packed.address)
                if looked and not self._look():
                    return
                if numbers[PaceNumbers.OVERRUN]:
                    self._late(numbers[PaceNumbers.OVERRUN], period)

    def _is_over(self) -> bool:
        """Whether the run ends here: asked to, or after the ticks it was to have, with the device disengaged before."""
        controller, most = self.controller, self.settings.ticks
        if self._last_tick < 0:
            running = controller.phase == run_controller.RUNNING
            opening = self._ticks_to_open(self.stepper.tick_data.numbers[TickNumbers.ENGAGEMENT]) if running else 0
            if not self._beats[LiveHeader.STOP_REQUESTED] and controller.ticks + opening < most:
                return False
            controller.command({"do": "pause"})
            self._last_tick = controller.ticks + opening
            if 0 <= most < self._last_tick:
                self._last_tick = max(most, controller.ticks)
        resting = controller.phase != run_controller.RUNNING and self._beats[LiveHeader.STOP_REQUESTED]
        return bool(resting or controller.ticks >= self._last_tick)

    def _watched_from(self) -> int:
        """Return the first tick with a check whether a run with an end has to disengage."""
        most = self.settings.ticks
        return max(0, most - self._ticks_to_open(1.0)) if most >= 0 else sys.maxsize

    def _ticks_to_open(self, grip: float) -> int:
        """Return the number of ticks from an engagement ``grip`` to zero engagement and force."""
        numbers, limits = self.stepper.tick_data.numbers, self.stepper.limits
        opening = int(grip / numbers[TickNumbers.ENGAGEMENT_STEP])
        most = max(
            limits.force / numbers[TickNumbers.SLEW_LIMIT],
            limits.torque / numbers[TickNumbers.TORQUE_SLEW_LIMIT],
        )
        return opening + (int(min(most, _LONGEST)) if opening else 0) + _LAST

    def _driver_failed(self, error: Exception) -> None:
        """Report an exception of the driver; the run ends cleanly, with zero force and a closed device."""
        self.controller.fault(Fault.DRIVER_EXCEPTION, error_text(error))
        self._beats[LiveHeader.PHASE], self._beats[LiveHeader.FAULT] = (
            run_controller.FAULT,
            Fault.DRIVER_EXCEPTION,
        )

    def _time_to_event(self) -> float | None:
        """Return the time to the next transition, as the driver may ask for it: see :func:`time_to_event`."""
        speed = float(self.stepper.tick_data.numbers[TickNumbers.SPEED])
        return time_to_event(self._beats[LiveHeader.NEXT_EVENT], self.stepper.t, speed)

    def _report_driver(self) -> None:
        """Emit the diagnostics of the driver if they have changed."""
        self._look_at_driver += _TELLING if self._look_at_driver < sys.maxsize else 0
        counts = dict(self._diagnostics()) if self._diagnostics else {}
        if counts != self._last_diagnostics:
            self._last_diagnostics = counts
            self.emit_event({"event": "device", "counts": counts})

    def _take_mail(self) -> None:
        messages, self._mail = tick_data.take_texts(self.block.mail, self.header, LiveHeader.COMMANDS, self._mail)
        self._beats[LiveHeader.COMMANDS_READ] = self._mail
        for message in messages:
            self.controller.command(message)

    def _take_over(self) -> None:
        """Take over the kernels of one mode, or note the end of the derivation process."""
        found = self._arrived.popleft()
        if found is not None:
            self.controller.take_over(*found)
        else:
            self.emit_event(
                {"event": "deriver", "tick": self.controller.ticks, "reason": "it has ended: modes stay online"}
            )

    def _look(self) -> bool:
        """Handle the request of a tick; return whether the loop continues."""
        if self._counts[TickCounts.FAULT] == Fault.WATCHDOG_LOST:
            return False
        status = self._counts[TickCounts.STATUS]
        if self.controller.wants(status):
            self._supply(status)
        return True

    def _busy(self, begins: bool) -> None:
        """Report to the watchdog process slow work, after the force is zero, or its end."""
        if begins:
            try:
                self.device.write([0.0] * self.stepper.n_device)
            except Exception as error:  # a driver may raise anything
                self.controller.fault(Fault.DRIVER_EXCEPTION, error_text(error))
                return  # the watchdog process keeps its short timeout
        self.header[LiveHeader.TICK_STATE] = TickState.BUSY if begins else TickState.RUNNING

    def _late(self, delay: int, period: int) -> None:
        """Handle a tick that ended after the next one's deadline."""
        self.header[LiveHeader.OVERRUNS] += 1
        if self.settings.overrun == "stop" and self.controller.phase == run_controller.RUNNING:
            self.controller.fault(Fault.OVERRUN)

    def _wait_for_recorder(self) -> None:
        """Let a recorder keep up: unpaced ticks would outrun it."""
        header = self.header
        while (
            self.settings.recorded
            and header[LiveHeader.ROWS] - header[LiveHeader.RECORDED] > tick_data.ROW_SLOTS // 2
            and header[LiveHeader.STOP_REQUESTED] == 0
        ):
            header[LiveHeader.BEATS] += 1
            time.sleep(0.001)

    def _supply(self, status: int) -> None:
        """Supply a mode or chart while the device is disengaged."""
        self._busy(True)
        if not self.controller.supply(status):
            self.controller.on_model_end(self._counts[TickCounts.STATUS])
        self.controller.disengage()
        self._busy(False)


def _take_sent(force: Floats, sent: Sequence[float]) -> None:
    """Replace the force by the exerted force if it is smaller: the energy balance needs the exerted one."""
    for i, value in enumerate(sent):
        if abs(value) < abs(force[i]):
            force[i] = value


def time_to_event(event: int, t: float, speed: float) -> float | None:
    """Return the time by the clock until the next foreseen transition, s; None if none is foreseen.

    ``event``: its model time, ns; negative: none within the horizon, or no copy runs ahead. ``t``: present model time,
    s. ``speed``: of the model, in its seconds a second of the clock.
    """
    left = 1e-9 * event - t
    return left / speed if event >= 0 and left >= 0.0 else None


def error_text(error: Exception) -> str:
    """Return the text of an exception, with its class unless its message is meant for users."""
    return str(error) if isinstance(error, FsmDynError | OSError) and str(error) else repr(error)


def wants_compiled(settings: LiveSettings, driver: type) -> bool:
    """Return whether a run uses compiled reading and writing: too fast for Python, supported by driver and system."""
    return settings.period < PYTHON_PERIOD and hasattr(driver, "compiled") and library.has_pacing()


def ring_of(block: tick_data.SharedBlock) -> Packed:
    """Return the rings of a block as every tick writes to them."""
    return RING.pack(Ring(block.header, block.rows, block.records, block.durations, block.latenesses, block.processor))


def main() -> None:
    """Run the tick process; settings and automaton come from its standard input."""
    sys.setswitchinterval(SWITCHING)
    given = json.loads(sys.stdin.buffer.read())
    settings = LiveSettings.of_data(given["settings"])
    process = TickProcess(settings, graph_with_parameters(storage.from_data(given["graph"]), settings.parameters))
    process.run()
    process.header[LiveHeader.TICK_STATE] = TickState.ENDED


if __name__ == "__main__":
    main()
