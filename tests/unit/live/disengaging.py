"""Every way to disengage a device pressing the virtual wall, on the clock of the loop."""

from __future__ import annotations

import math
from dataclasses import replace

from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle, Meter
from fsm_dyn.live.controller import RUNNING, RunController
from fsm_dyn.live.device_map import DeviceMap, Limits, device_map_for
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import watch_port
from fsm_dyn.runtime.abi import Fault, TickCounts, TickNumbers

PERIOD = 1e-3
PRESSED = 600  # ticks until the hand presses the wall at rest
RELEASE = 0.012  # s
WATCHED = 400  # ticks observed after the release
BUTTONS = 0b10  # the dead man's is 1, the clutch 0
# axes, kg, N s/m, N: the last two exert a fifth of their force; inverse3 and force_dimension are as udp
DEVICES = {
    "hapkit": (1, 0.05, 0.2, 5.0),
    "udp": (2, 0.2, 0.5, 5.0),
    "pantograph": (2, 0.1, 0.5, 1.6),
    "touch": (2, 0.1, 0.5, 0.66),
}
COMMANDS = {
    "pause": {"do": "pause"},
    "reset": {"do": "reset"},
    "scrub": {"do": "scrub", "t": 0.2},
    "speed": {"do": "speed", "value": 0.5},
    "set": {"do": "set", "values": {"k": 1e4}},
    "port": {"do": "port", "force_scale": 0.9},
}
WAYS = (*COMMANDS, "clutch", "dead man", "not a number", "jump", "stall", "overrun", "supply", "held up", "owner")


class Pressed:
    """A stepper of the wall, pressed anew by a hand for every measurement."""

    def __init__(self, graph, device):
        self.axes, self.mass, self.damping, self.most = DEVICES[device]
        mapping = device_map_for(graph, "", 1) if device == "hapkit" else DeviceMap()
        limits = Limits(force=self.most, clutch_button=0, dead_man_button=1)
        self.stepper = LiveStepper(graph, self.axes, PERIOD, mapping=mapping, limits=limits)

    def begin(self, stiffness, passivity="off"):
        """Press the wall through a coupler of this stiffness (N/m) until all rests."""
        stepper = self.stepper
        tick = stepper.tick_data
        tick.counts[
            [
                TickCounts.FAULT,
                TickCounts.SAMPLE_ACCEPTED,
                TickCounts.REJECTED,
                TickCounts.STALE_TICKS,
                TickCounts.OWNER_SILENT,
            ]
        ] = 0
        tick.numbers[TickNumbers.SPEED] = 1.0
        stepper.set_device_map(replace(stepper.mapping, force_scale=1.0))
        stepper.set_parameters({"handle_2_stiffness": stiffness, "k": 2e4})
        stepper.reset()
        watch_port(tick, passivity, None)
        tick.numbers[[TickNumbers.EXCESS_ENERGY, TickNumbers.RELEASE_EXCESS_ENERGY]] = 0.0
        self.events = []
        self.controller = RunController(stepper, self.events.append, stall_ticks=10**6)
        tick.counts[[TickCounts.RELEASE_TIME, TickCounts.RELEASE_TICKS]] = (
            int(1e9 * RELEASE),
            int(RELEASE / PERIOD),
        )
        self.handles = [
            EmulatedHandle(self.mass, self.damping, hand_stiffness=60.0, hand_damping=1.0) for _ in range(self.axes)
        ]
        self.meter, self.sequence, self.buttons = Meter(), 0, BUTTONS
        self.tick(250)
        self.handles[-1].target = -0.05
        self.tick(PRESSED)
        assert self.handles[-1].force > min(1.5, 0.99 * self.most), "it is pressed"

    def tick(self, count=1, **changed):
        """Tick with the sample of the device, some of it ``changed``; then let it move."""
        for _ in range(count):
            self.sequence += 1
            position, velocity = [h.position for h in self.handles], [h.velocity for h in self.handles]
            sample = Sample(0.0, self.sequence, position, velocity, self.buttons)
            self.controller.tick(sample._replace(**changed))
            for handle, force in zip(self.handles, self.stepper.tick_data.force, strict=True):
                handle.force = float(force)
            self.meter.advance(self.handles, PERIOD)

    def let_go(self, way, gone):
        """Disengage in a given way or not, the hand then gone or not; return the meter until it engages again."""
        counts, controller = self.stepper.tick_data.counts, self.controller
        self.meter = Meter()
        if gone:
            for handle in self.handles:
                handle.hand_stiffness = handle.hand_damping = 0.0
        bad, ticks = {}, WATCHED
        match way:
            case "":
                pass
            case "clutch" | "dead man":
                self.buttons ^= {"clutch": 0b01, "dead man": 0b10}[way]
            case "not a number":
                bad = {"velocity": [math.nan] * self.axes}
            case "jump":
                bad = {"position": [h.position + 0.2 for h in self.handles]}
            case "stall":
                counts[TickCounts.STALL_TICKS], bad = 8, {"sequence": self.sequence}
            case "overrun":
                controller.fault(Fault.OVERRUN)
            case "supply":
                controller.disengage()
            case "held up":
                bad = {"sequence": self.sequence}
            case "owner":
                counts[TickCounts.OWNER_SILENT] = 1
            case _:
                controller.command(COMMANDS[way])
        opened = False
        for _ in range(ticks):
            self.tick(**bad)
            opened = opened or counts[TickCounts.ENGAGED] == 0
            if opened and counts[TickCounts.ENGAGED] != 0:
                break
        assert opened == bool(way) or controller.phase != RUNNING, way
        return self.meter
