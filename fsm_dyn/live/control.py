"""What a live run does from tick to tick: phases, commands, letting go and taking hold.

Whatever could jerk the hand waits until the grip is open: pause, reset, another speed, other parameters, another port.
The grip opens at its rate, the command is carried out, the device is anchored at the port and the grip closes again.
A fault lets go at once and stays until a person clears it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from fsm_dyn.errors import InputError
from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live.device import Sample
from fsm_dyn.live.memory import plain
from fsm_dyn.live.stepping import Stepper
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation.outcomes import OUTCOMES

RUNNING: Final = 0
PAUSED: Final = 1
FAULT: Final = 2  # a person has to clear it
FAILED: Final = 3  # the model cannot go on: reset
STOPPED: Final = 4  # a transition marked stop: reset
PHASES: Final = ("running", "paused", "fault", "failed", "stopped")

FAULTS: Final = {
    ct.NONE: "",
    ct.NOT_A_NUMBER: "a position, velocity or force was not a number",
    ct.TOO_FAST: "the device moved faster than its limit",
    ct.OUT_OF_WORKSPACE: "the device left its workspace",
    ct.DRIVER_RAISED: "the driver raised an exception",
    ct.STALLED: "the device gave no new sample",
    ct.GUARD_LOST: "the guard process is gone",
    ct.OVERRUN: "a tick took too long",
}
SLOWEST: Final = 1e-3


class Controller:
    """Phases and commands of a live run.

    Parameters
    ----------
    stepper : Stepper
    tell : callable
        Called with a mapping for everything worth telling: faults, phases, commands carried out or refused.
    stall_ticks : int
        Ticks without a new sample after which the device counts as stalled.
    busy : callable
        Called with True before something that may take long, the grip being open, and with False after it.
    paused : bool
        Whether to begin paused.
    """

    def __init__(
        self,
        stepper: Stepper,
        tell: Callable[[dict[str, Any]], None],
        stall_ticks: int = 100,
        busy: Callable[[bool], None] = lambda begins: None,
        *,
        paused: bool = False,
    ) -> None:
        self.stepper, self._tell, self._stall_ticks = stepper, tell, stall_ticks
        self._busy = busy
        self.phase = PAUSED if paused else RUNNING
        self.pending: list[Mapping[str, Any]] = []
        self.ticks = 0
        self.transitions = 0
        self.advanced = False
        self._held = False
        self._sequence, self._unchanged = -1, 0
        self._steps_left = 0
        self._until_transition = False
        limits = stepper.limits
        self._counts, self._numbers = plain(stepper.tick_data.counts), plain(stepper.tick_data.numbers)
        self._device = plain(stepper.tick_data.device)
        self._dead_man = 1 << limits.dead_man if limits.dead_man >= 0 else 0
        self._clutch = 1 << limits.clutch if limits.clutch >= 0 else 0
        self._now: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "input": self._input, "clear": self._clear, "run": self._run, "step": self._step,
        }  # fmt: skip
        self._quiet: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "pause": self._pause, "reset": self._reset, "speed": self._speed, "set": self._set, "port": self._port,
        }  # fmt: skip

    # -- commands ------------------------------------------------------------------------------------------

    def command(self, message: Mapping[str, Any]) -> None:
        """Take a command: at once where nothing can jerk, else once the grip is open."""
        name = message.get("do")
        if name in self._now:
            self._carry_out(self._now, message)
        elif name in self._quiet:
            self.pending.append(message)
        else:
            known = ", ".join((*self._now, *self._quiet))
            self._tell({"event": "refused", "command": dict(message), "why": f"no such command; there are {known}"})

    def _carry_out(self, table: Mapping[str, Callable[[Mapping[str, Any]], None]], message: Mapping[str, Any]) -> None:
        try:
            table[str(message["do"])](message)
        except (InputError, KeyError, TypeError, ValueError) as error:
            self._tell({"event": "refused", "command": dict(message), "why": str(error)[:500]})
        else:
            self._tell({"event": "done", "tick": self.ticks, "t": self.stepper.t, "command": dict(message)})

    def _input(self, message: Mapping[str, Any]) -> None:
        names = self.stepper.graph.automaton.terms.layout.w
        held = {name for port in self.stepper.ports for name in port.inputs}
        for name, value in dict(message["values"]).items():
            if name not in names or name in held:
                raise InputError(f"no input '{name}' to set", allowed=", ".join(n for n in names if n not in held))
            self.stepper.tick_data.targets[names.index(name)] = float(value)

    def _clear(self, message: Mapping[str, Any]) -> None:
        if self.phase == FAULT:
            self.stepper.tick_data.counts[ct.FAULT] = ct.NONE
            self.stepper.tick_data.numbers[ct.GRIP] = 0.0
            self._unchanged = 0
            self._enter(PAUSED)

    def _run(self, message: Mapping[str, Any]) -> None:
        if self.phase == PAUSED:
            self._until_transition = message.get("until") == "transition"
            self._enter(RUNNING)

    def _step(self, message: Mapping[str, Any]) -> None:
        if self.phase == PAUSED:
            self._steps_left = int(message.get("ticks", 1))

    def _pause(self, message: Mapping[str, Any]) -> None:
        if self.phase == RUNNING:
            self._enter(PAUSED)

    def _reset(self, message: Mapping[str, Any]) -> None:
        self.stepper.reset()
        if self.phase in (FAILED, STOPPED):
            self._enter(RUNNING)

    def _speed(self, message: Mapping[str, Any]) -> None:
        speed = float(message["value"])
        if not SLOWEST <= speed <= 1.0:
            raise InputError("speed", found=str(speed), allowed=f"{SLOWEST:g} to 1")
        self.stepper.set_speed(speed)

    def _set(self, message: Mapping[str, Any]) -> None:
        waiting = self.stepper.set_parameters({name: float(v) for name, v in dict(message["values"]).items()})
        if waiting:
            self._tell({"event": "at reset", "parameters": list(waiting)})

    def _port(self, message: Mapping[str, Any]) -> None:
        changes = {key: message[key] for key in ("port", "scale", "force_scale") if key in message}
        if "axes" in message:
            changes["axes"] = tuple(int(axis) for axis in message["axes"])
        self.stepper.use(replace(self.stepper.mapping, **changes))

    def _enter(self, phase: int) -> None:
        if phase != self.phase:
            self.phase = phase
            self._tell({"event": "phase", "tick": self.ticks, "t": self.stepper.t, "phase": PHASES[phase]})

    # -- a tick --------------------------------------------------------------------------------------------

    def fault(self, number: int, detail: str = "") -> None:
        """Let go at once, and stay so."""
        self.stepper.tick_data.counts[ct.FAULT] = number
        if self.phase != FAULT:
            self._tell({"event": "fault", "tick": self.ticks, "why": FAULTS[number], "detail": detail[:1000]})
            self._enter(FAULT)

    def tick(self, sample: Sample) -> int:
        """Carry out one tick with what the device gave; return the stepper's status."""
        stepper, counts, numbers = self.stepper, self._counts, self._numbers
        self.ticks += 1
        if self.pending and (numbers[ct.GRIP] == 0.0 or self.phase != RUNNING):
            self._busy(True)
            for message in self.pending:
                self._carry_out(self._quiet, message)
            self.pending.clear()
            self._busy(False)
        self._take_sample(sample)
        held = bool(self.phase == RUNNING and not self.pending)
        buttons = sample.buttons
        if (self._dead_man and not buttons & self._dead_man) or buttons & self._clutch:
            held = False
        if held and not self._held:
            # whoever takes hold while the grip still opens waits until it is open
            held = numbers[ct.GRIP] == 0.0
            counts[ct.ANCHOR] = held
        self._held = held
        numbers[ct.GRIP_TARGET] = 1.0 if held else 0.0
        advancing = self.phase == RUNNING or (self.phase == PAUSED and self._steps_left > 0)
        counts[ct.ADVANCING] = advancing
        if advancing and stepper.schedule:
            stepper.follow_schedule()
        status = stepper.tick(self.phase == RUNNING)
        if self.phase == PAUSED and self._steps_left > 0:
            self._steps_left -= 1
        if counts[ct.FAULT] != ct.NONE and self.phase != FAULT:
            self.fault(counts[ct.FAULT])
        self.advanced = advancing
        if advancing:
            self._look_at(status)
        return status

    def let_go(self) -> None:
        """Open the grip and take hold anew: the device has gone its own way for a while."""
        self.stepper.tick_data.force[:] = 0.0
        self._held = False

    def _take_sample(self, sample: Sample) -> None:
        device, n = self._device, self.stepper.n_device
        for i in range(n):
            device[i] = sample.position[i]
            device[n + i] = sample.velocity[i]
        if sample.sequence != self._sequence:
            self._sequence, self._unchanged = sample.sequence, 0
        else:
            self._unchanged += 1
            if self._unchanged > self._stall_ticks and self.phase == RUNNING:
                self.fault(ct.STALLED)

    def _look_at(self, status: int) -> None:
        """See whether the model can go on."""
        made = self.stepper.counters[st.TRANSITIONS]
        self.transitions += made
        if made and self._until_transition:
            self._until_transition = False
            self.pending.append({"do": "pause"})
        if status <= outcomes.DONE:
            return
        outcome = OUTCOMES[status]
        self._enter(FAILED if outcome.failed else STOPPED)
        if outcome.failed:
            self._tell({"event": "failed", "t": self.stepper.t, "why": str(outcome)})

    def wants(self, status: int) -> bool:
        """Whether the stepper asks for a mode, a chart or room."""
        return outcomes.PAUSED < status <= outcomes.LAST_INTERNAL

    def supply(self, status: int) -> None:
        """Give the stepper what it asks for; the caller has let go of the device."""
        before = len(self.stepper.machine.chart_names)
        refused = self.stepper.supply(status)
        machine = self.stepper.machine
        self._tell(
            {
                "event": "supplied", "t": self.stepper.t, "what": OUTCOMES[status].name,
                "modes": list(machine.chart_names[before:]),
                "states": [list(chart.programs.states) for chart in machine.charts[before:]],
            }
        )  # fmt: skip
        if refused is not None:
            self._look_at(refused)
