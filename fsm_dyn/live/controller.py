"""Run controller of a live session: run states, commands, faults, engagement and release.

Commands with a possible force step wait until the device is disengaged: pause, reset, rewind, speed, parameters, port.
The engagement ramps down, the command is carried out, the device is anchored at the port and engages again. A fault
disengages at once and stays until cleared.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.hand_commands import HandCommands
from fsm_dyn.live.mode_pool import OwnKernels
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import plain
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.runtime.abi import Fault, LivePhase, ReleaseReason, Status, TickCounts, TickNumbers, TickResult
from fsm_dyn.runtime.library import finish_tick, live_tick, release_device

RUNNING: Final = LivePhase.RUNNING
PAUSED: Final = LivePhase.PAUSED
FAULT: Final = LivePhase.FAULT
FAILED: Final = LivePhase.FAILED
STOPPED: Final = LivePhase.STOPPED
PHASES: Final = tuple(phase.name.lower() for phase in LivePhase)

FAULTS: Final[dict[int, str]] = {
    Fault.NONE: "",
    Fault.NON_FINITE: "a position, velocity or force was not a number",
    Fault.VELOCITY_EXCEEDED: "the device moved faster than its limit",
    Fault.OUT_OF_WORKSPACE: "the device left its workspace",
    Fault.DRIVER_EXCEPTION: "the driver raised an exception",
    Fault.STALLED: "the device gave no new sample",
    Fault.WATCHDOG_LOST: "the watchdog process is gone",
    Fault.OVERRUN: "a tick took too long",
    Fault.JUMPED: "the device's position jumped farther than its velocity limit allows",
    Fault.LAGGED: "the model fell behind the clock",
    Fault.HAND_FORCE_EXCEEDED: "the measured force of the hand exceeded its limit",
    Fault.HAND_FORCE_JUMPED: "the measured force of the hand changed faster than its limit",
    Fault.DISAGREED: "position and velocity of the device contradict each other",
    Fault.OUTRUN: "the port moved faster than the device may follow",
}
EMULATED: Final = "it is emulated by a process of this computer, which had no time for it: the computer is busy"


def fault_text(reason: str, detail: str, emulated: bool) -> str:
    """Return the text of a fault, with the likely cause if samples of an emulated device are missing.

    ``reason``, ``detail``: of the event; ``emulated``: whether the device is a process of this computer.
    """
    hosted = [EMULATED] if emulated and reason == FAULTS[Fault.STALLED] else []
    return ": ".join(filter(None, (reason, detail, *hosted)))


RELEASES: Final = {
    ReleaseReason.NO_SAMPLE: "the device gave no new sample for a while",
    ReleaseReason.TICK_DELAYED: "the loop was held up",
    ReleaseReason.WATCHDOG_SILENT: "the watchdog process gave no heartbeat for a while",
    ReleaseReason.LOOP_ABSENT: "the loop was away",
}
INTERRUPTED: Final = "no tick for a while: the watchdog process sent a force of zero"
_MOST_EXPECTED: Final = 16
_TELLING: Final = 250  # ticks between events on rejected samples or releases
SLOWEST: Final = 1e-3


class RunController:
    """Run states and commands of a live run.

    Parameters
    ----------
    stepper : LiveStepper
    tell : callable
        Called with a mapping for every event: faults, run states, commands carried out or refused.
    stall_ticks : int
        Ticks without a new sample after which the device counts as stalled.
    busy : callable
        Called with True before slow work, with the device disengaged, and with False after it.
    paused : bool
        Whether to begin paused.
    """

    def __init__(
        self,
        stepper: LiveStepper,
        tell: Callable[[dict[str, Any]], None],
        stall_ticks: int = 100,
        busy: Callable[[bool], None] = lambda begins: None,
        *,
        paused: bool = False,
    ) -> None:
        self.stepper, self._tell = stepper, tell
        self._busy = busy
        self.pending: list[Mapping[str, Any]] = []
        self.hand = HandCommands(stepper)
        #: contact states of modes that may be reached soon, made ready between ticks
        self.expected: deque[tuple[int, ...]] = deque(maxlen=_MOST_EXPECTED)
        limits, counts = stepper.limits, stepper.tick_data.counts
        counts[TickCounts.PHASE] = self._told_phase = int(PAUSED if paused else RUNNING)
        counts[TickCounts.LAST_SEQUENCE] = -1
        counts[TickCounts.STALL_TICKS] = stall_ticks
        counts[TickCounts.DEAD_MAN] = 1 << limits.dead_man_button if limits.dead_man_button >= 0 else 0
        counts[TickCounts.CLUTCH] = 1 << limits.clutch_button if limits.clutch_button >= 0 else 0
        self._counts, self._numbers = plain(counts), plain(stepper.tick_data.numbers)
        self._device = plain(stepper.tick_data.device).cast("B")
        self._pack = struct.Struct(f"{2 * stepper.n_device}d").pack_into
        self._address = stepper.address
        self._told_silent, self._next_word, self._told_saturations = 0, 0, 0
        self._told_of: dict[str, int] = {}
        self._told_slow = False
        self._now: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "input": self._input, "clear": self._clear, "run": self._run, "step": self._step,
            "constrain": self._constrain, "release": self._release,
        }  # fmt: skip
        self._quiet: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "pause": self._pause, "reset": self._reset, "scrub": self._scrub, "speed": self._speed, "set": self._set,
            "port": self._port,
        }  # fmt: skip

    @property
    def phase(self) -> int:
        """``RUNNING``, ``PAUSED``, ``FAULT``, ``FAILED`` or ``STOPPED``."""
        return int(self._counts[TickCounts.PHASE])

    @property
    def ticks(self) -> int:
        """Number of ticks carried out, or the one under way."""
        return int(self._counts[TickCounts.TICKS])

    # -- commands ------------------------------------------------------------------------------------------

    def command(self, message: Mapping[str, Any]) -> None:
        """Carry out a command: at once if no force step can follow, else when disengaged."""
        name = message.get("do")
        if name == "expect":
            self._expect(message)
        elif name in self._now:
            self._carry_out(self._now, message)
        elif name in self._quiet:
            self._wait(message)
        else:
            known = ", ".join((*self._now, *self._quiet))
            self._tell(
                {"event": "command_rejected", "command": dict(message), "reason": f"no such command; there are {known}"}
            )

    def _wait(self, message: Mapping[str, Any]) -> None:
        self.pending.append(message)
        self._counts[TickCounts.PENDING_COMMANDS] = 1

    def _carry_out(self, table: Mapping[str, Callable[[Mapping[str, Any]], None]], message: Mapping[str, Any]) -> None:
        try:
            table[str(message["do"])](message)
        except (InputError, KeyError, TypeError, ValueError) as error:
            self._tell({"event": "command_rejected", "command": dict(message), "reason": str(error)[:500]})
        else:
            # active from the next tick on
            done = {"event": "command_done", "tick": self.ticks + 1, "t": self.stepper.t, "command": dict(message)}
            self._tell({**done, "imposed": self.hand.imposed} if message["do"] == "release" else done)

    def _input(self, message: Mapping[str, Any]) -> None:
        names = self.stepper.graph.automaton.terms.layout.w
        held = {name for port in self.stepper.ports for name in port.inputs}
        values = {name: float(value) for name, value in dict(message["values"]).items()}
        for name, value in values.items():
            if name not in names or name in held:
                raise InputError(f"no input '{name}' to set", allowed=", ".join(n for n in names if n not in held))
            if not math.isfinite(value):
                raise InputError(f"input '{name}' wants a finite number", found=repr(value))
            if self.stepper.graph.automaton.mechanism.inputs[name].is_boolean and value not in (0.0, 1.0):
                raise InputError(f"input '{name}' is boolean", found=repr(value), allowed="true, false, 1, 0")
        for name, value in values.items():
            self.stepper.tick_data.targets[names.index(name)] = value

    def _constrain(self, message: Mapping[str, Any]) -> None:
        number = self.hand.constrain(message)
        self.expected.append(self.stepper.states_after(self.hand.transition(number, message["kind"])))
        self._tell({"event": "constraint", "t": self.stepper.t, "number": number, "imposed": self.hand.imposed})

    def _release(self, message: Mapping[str, Any]) -> None:
        held = self.hand.release(message)
        self.expected.extend(self.stepper.states_after(self.hand.transition(k, "released")) for k in held)

    def _expect(self, message: Mapping[str, Any]) -> None:
        """Note modes that may be reached soon; without an event, as nothing depends on it."""
        contacts = self.stepper.graph.automaton.contacts
        for states in message["states"]:
            if len(states) == len(contacts) and all(code in c.codes for code, c in zip(states, contacts, strict=True)):
                self.expected.append(tuple(states))

    def prepare_expected(self) -> None:
        """Make one of the expected modes ready, in about 0.2 ms, between ticks; no result depends on it."""
        while self.expected:
            if self.stepper.executable.make_ready(self.expected.popleft()):
                return

    def _clear(self, message: Mapping[str, Any]) -> None:
        if self.phase == FAULT:
            self._counts[TickCounts.FAULT] = Fault.NONE
            release_device(self._address, ReleaseReason.LOOP_ABSENT)
            self._counts[TickCounts.STALE_TICKS] = self._counts[TickCounts.REJECTED] = self._counts[
                TickCounts.BEHIND
            ] = 0
            self._enter(PAUSED)

    def _run(self, message: Mapping[str, Any]) -> None:
        if self.phase == PAUSED:
            self._counts[TickCounts.UNTIL_TRANSITION] = message.get("until") == "transition"
            self._enter(RUNNING)

    def _step(self, message: Mapping[str, Any]) -> None:
        if self.phase == PAUSED:
            self._counts[TickCounts.STEPS_LEFT] = int(message.get("ticks", 1))

    def _pause(self, message: Mapping[str, Any]) -> None:
        if self.phase == RUNNING:
            self._enter(PAUSED)

    def _reset(self, message: Mapping[str, Any]) -> None:
        self.hand.forget()
        self.stepper.reset()
        if self.phase in (FAILED, STOPPED):
            self._enter(RUNNING)

    def _scrub(self, message: Mapping[str, Any]) -> None:
        self.stepper.rewind(float(message["t"]))
        self.hand.follow_back()
        if self.phase in (FAILED, STOPPED):
            self._enter(PAUSED)

    def _speed(self, message: Mapping[str, Any]) -> None:
        speed = float(message["value"])
        if not SLOWEST <= speed <= 1.0:
            raise InputError("speed", found=str(speed), allowed=f"{SLOWEST:g} to 1")
        self.stepper.set_speed(speed)

    def _set(self, message: Mapping[str, Any]) -> None:
        waiting = self.stepper.set_parameters({name: float(v) for name, v in dict(message["values"]).items()})
        if waiting:
            self._tell({"event": "pending_reset", "parameters": list(waiting)})

    def _port(self, message: Mapping[str, Any]) -> None:
        if isinstance(self.stepper.mapping, tuple):
            raise InputError("several devices stay at their ports", remedy="end the run and start another one")
        names = {item.name for item in fields(DeviceMap)}
        changes = {key: value for key, value in message.items() if key in names}
        self.stepper.set_device_map(DeviceMap.from_data({**asdict(self.stepper.mapping), **changes}))

    def _enter(self, phase: int) -> None:
        self._counts[TickCounts.PHASE] = phase
        if phase != self._told_phase:
            self._told_phase = phase
            self._tell({"event": "phase", "tick": self.ticks, "t": self.stepper.t, "phase": PHASES[phase]})

    # -- a tick --------------------------------------------------------------------------------------------

    def fault(self, number: int, detail: str = "") -> None:
        """Enter the fault state: disengaged until cleared."""
        self._counts[TickCounts.FAULT] = number
        if self._told_phase != FAULT:
            self._tell({"event": "fault", "tick": self.ticks, "reason": FAULTS[number], "detail": detail[:1000]})
            self._enter(FAULT)

    def tick(self, sample: Sample) -> int:
        """Carry out one tick with a sample of the device; return the stepper's status."""
        self.take(sample)
        self.run_tick(sample.sequence, sample.buttons)
        return int(self._counts[TickCounts.STATUS])

    def take(self, sample: Sample) -> None:
        """Take position, velocity and time from a sample; raises struct.error if its axes do not fit."""
        self._pack(self._device, 0, *sample.position, *sample.velocity)
        self._numbers[TickNumbers.SAMPLE_TIME] = sample.time

    def run_tick(
        self, sequence: int, buttons: int, wall: int = 0, lateness: int = 0, duration: int = -1, spent: int = -1
    ) -> bool:
        """Carry out one tick, see ``runtime/tick_step.c``; return whether to look at the status."""
        if self.pending and (self._numbers[TickNumbers.ENGAGEMENT] == 0.0 or self._counts[TickCounts.PHASE] != RUNNING):
            self.carry_out_pending()
        if self.hand.waiting:
            self.hand.step()
        return self.conclude(live_tick(self._address, sequence, buttons, wall, lateness, duration, spent))

    def conclude(self, found: int) -> bool:
        """Handle the result of a tick (:mod:`fsm_dyn.live.tick`); return whether it was not ``OK``."""
        while found == TickResult.SUPPLY_NEEDED:
            found = finish_tick(self._address, self._served())
        if not found:
            return False
        self._look()
        return True

    def _served(self) -> bool:
        """Supply the requested mode or chart if the mode pool has it; return whether it did."""
        return self.stepper.is_available(self._counts[TickCounts.STATUS]) and self.supply(
            self._counts[TickCounts.STATUS]
        )

    def carry_out_pending(self) -> None:
        """Carry out the pending commands; the device is disengaged."""
        self._busy(True)
        for message in self.pending:
            self._carry_out(self._quiet, message)
        self.pending.clear()
        self._counts[TickCounts.PENDING_COMMANDS] = 0
        self._busy(False)

    def take_over(self, states: tuple[int, ...], kernels: OwnKernels) -> None:
        """Switch a mode to derived kernels, from the next tick on."""
        evaluations = self.stepper.take_over(states, kernels)
        if evaluations is not None:
            where = {"tick": self.ticks + 1, "t": self.stepper.t}
            self._tell({"event": "kernel_adopted", **where, "states": list(states), "evaluations": evaluations})

    def disengage(self) -> None:
        """Release the device after slow work; it engages again from its present position."""
        release_device(self._address, ReleaseReason.LOOP_ABSENT)

    def _look(self) -> None:
        """Handle the report of the tick: a fault, the end of the model, an awaited transition."""
        counts = self._counts
        self._tell_of_device()
        if counts[TickCounts.FAULT] != Fault.NONE:
            self.fault(counts[TickCounts.FAULT])
        if counts[TickCounts.ADVANCING] and counts[TickCounts.UNTIL_TRANSITION] and counts[TickCounts.NEW_TRANSITIONS]:
            counts[TickCounts.UNTIL_TRANSITION] = 0
            self._wait({"do": "pause"})
        if counts[TickCounts.ADVANCING] and counts[TickCounts.STATUS] > Status.DONE:
            self.on_model_end(counts[TickCounts.STATUS])

    def tell_rest(self) -> None:
        """Emit at the end the events deferred by their limited rate."""
        self._next_word = 0
        self._tell_of_device()

    def _tell_of_device(self) -> None:
        """Emit events on owner heartbeat, saturation and, at a limited rate, interruptions, releases and rejections."""
        counts = self._counts
        if counts[TickCounts.OWNER_SILENT] != self._told_silent:
            self._told_silent = counts[TickCounts.OWNER_SILENT]
            self._tell({"event": "owner", "tick": self.ticks, "t": self.stepper.t, "silent": bool(self._told_silent)})
        if counts[TickCounts.SATURATIONS] != self._told_saturations:
            self._told_saturations = counts[TickCounts.SATURATIONS]
            self._tell_of_saturation()
        if counts[TickCounts.SLOW_DEVICE] and not self._told_slow:
            self._told_slow = True
            self._tell_of_interval()
        if self.ticks < self._next_word:
            return
        where = {"tick": self.ticks, "t": self.stepper.t}
        for name, count, why in (
            ("interrupted", counts[TickCounts.ZERO_FORCE_PACKETS], INTERRUPTED),
            ("released", counts[TickCounts.RELEASES], RELEASES.get(counts[TickCounts.RELEASE_REASON], "")),
            ("rejected", counts[TickCounts.REJECTED_TOTAL], "samples that cannot be"),
            (
                "lagging",
                counts[TickCounts.LAGGING_TICKS],
                "more work than a tick may take: the model goes on in the next one",
            ),
        ):
            if count != self._told_of.get(name, 0):
                self._told_of[name] = count
                self._next_word = self.ticks + _TELLING
                self._tell({"event": name, **where, "count": count, "reason": why})

    def _tell_of_interval(self) -> None:
        """Emit the event of a device with a longer sampling interval than the tick."""
        period, interval = self._numbers[TickNumbers.PERIOD], self._numbers[TickNumbers.SAMPLE_INTERVAL]
        reason = (
            f"the device gives a sample every {1e3 * interval:.3g} ms, the loop ticks every {1e3 * period:.3g} ms: "
            "couplers are to suit the slower of both, see fsm-dyn passivity --period"
        )
        self._tell({"event": "slow device", "tick": self.ticks, "t": self.stepper.t, "reason": reason})

    def _tell_of_saturation(self) -> None:
        """Emit the event of a saturated force, which is not a fault."""
        numbers = self._numbers
        more = [
            f"{numbers[wanted]:.3g} {unit} wanted, {numbers[limit]:.3g} {unit} shown"
            for wanted, limit, unit in (
                (TickNumbers.FORCE_REQUESTED, TickNumbers.FORCE_LIMIT, "N"),
                (TickNumbers.TORQUE_REQUESTED, TickNumbers.TORQUE_LIMIT, "N*m"),
            )
            if numbers[wanted] > 0.0
        ]  # fmt: skip
        self._tell(
            {
                "event": "saturated", "tick": self.ticks, "t": self.stepper.t, "count": self._told_saturations,
                "reason": "the force is saturated: " + "; ".join(more),
            }
        )  # fmt: skip

    def on_model_end(self, status: int) -> None:
        """Enter the state ``FAILED`` or ``STOPPED`` after an outcome of the model."""
        outcome = OUTCOMES[status]
        if self.phase != FAULT:
            self._enter(FAILED if outcome.failed else STOPPED)
        if outcome.failed:
            self._tell({"event": "model_failed", "t": self.stepper.t, "reason": str(outcome)})

    def wants(self, status: int) -> bool:
        """Whether the stepper requests a mode, a chart or room in a buffer."""
        return Status.PAUSED < status <= Status.LAST_INTERNAL

    def supply(self, status: int) -> bool:
        """Supply a request of the stepper; return whether it can continue.

        Slow if the mode pool lacks it: the caller has then disengaged the device.
        """
        executable = self.stepper.executable
        before = len(executable.chart_names)
        refused = self.stepper.supply(status)
        if len(executable.chart_names) > before or refused is not None:
            self._tell(
                {
                    "event": "mode_added", "t": self.stepper.t, "what": OUTCOMES[status].name,
                    "first": before, "modes": list(executable.chart_names[before:]),
                    "states": [list(chart.programs.states) for chart in executable.charts[before:]],
                }
            )  # fmt: skip
        if refused is not None:
            self._counts[TickCounts.STATUS] = refused
        return refused is None
