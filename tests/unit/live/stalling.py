"""The virtual wall with parts for too many steps, switched on by inputs, unseen by bounds on parameters."""

from __future__ import annotations

import copy
from pathlib import Path

import yaml

from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle, Meter
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import TickCounts

PERIOD = 1e-3
WALL = Path(__file__).parents[3] / "yaml_models" / "virtual_wall.yaml"
STALLS = {
    "stiff damper": {"drag": 1e6},  # N s/m, at the plate
    "stiff spring": {"tie": 1e14},  # N/m, at the tool
    "1e5 transitions a second": {"kick": 100.0},  # N, on a grain of 0.1 g with a play of 10 um
}


def stalling_wall():
    """The wall as a mapping, with a damper, a spring and a rattling grain switched on by inputs."""
    model = copy.deepcopy(yaml.safe_load(WALL.read_text(encoding="utf-8")))
    model["name"] = "stalling_wall"
    model["inputs"] |= {"drag": "N*s/m", "tie": "N/m", "kick": "N"}
    model["parameters"] |= {"m_grain": "0.1 g", "room": "10 um"}
    model["coordinates"] |= {"p": "m"}
    model["points"] |= {"G": {"from": "O", "at": "p*N.x"}}
    model["bodies"] |= {"grain": {"center": "G", "mass": "m_grain"}}
    model["contacts"] |= {
        "lower_stop": {"gap": "p", "restitution": 1},
        "upper_stop": {"gap": "room - p", "restitution": 1},
    }
    model["loads"] += [
        {"force": "-drag*vz*N.y", "at": "W"},
        {"force": "-tie*x*N.x - tie*(y - 0.01 m)*N.y", "at": "P"},
        {"force": "-kick*N.x", "at": "G"},
    ]
    model["speeds"] |= {"vp": "rate(p)"}
    model["modes"] = {"free": {"face": "open"}, "pressing": {"face": "stick"}, "sliding": {"face": "slide"}}
    model["initial"] = {"y": "10 mm", "p": "10 um"}
    return model


class Stalled:
    """A stepper of the wall, pressed by a hand of two axes, with ticks on a simulated clock."""

    def __init__(self, graph, lag_limit=0.1, **options):
        self.stepper = LiveStepper(graph, 2, PERIOD, limits=Limits(), **options)
        self.events = []
        self.controller = RunController(self.stepper, self.events.append)
        counts = self.stepper.tick_data.counts
        counts[TickCounts.PACED], counts[TickCounts.LAG_LIMIT] = 1, int(1e9 * lag_limit)
        counts[TickCounts.RELEASE_TIME], counts[TickCounts.RELEASE_TICKS] = 12_000_000, 12
        self.handles = [EmulatedHandle(0.2, 0.5, hand_stiffness=60.0, hand_damping=10.0) for _ in range(2)]
        self.sequence, self.wall = 0, 0
        self.meter = Meter()

    def press(self):
        """Press the wall until all rests."""
        self.tick(250)
        self.handles[1].target = -0.06
        self.tick(600)
        assert self.handles[1].force > 1.5, "it is pressed"
        self.meter = Meter()
        return self

    def tick(self, count=1, late=0.0):
        """Tick, each ``late`` (s) more than a period after the one before; return the force shown after each."""
        found = []
        for _ in range(count):
            self.sequence += 1
            self.wall += int(1e9 * (PERIOD + late))
            sample = Sample(0.0, self.sequence, [h.position for h in self.handles], [h.velocity for h in self.handles])
            self.controller.take(sample)
            self.controller.run_tick(sample.sequence, 0, self.wall)
            for handle, force in zip(self.handles, self.stepper.tick_data.force, strict=True):
                handle.force = float(force)
            self.meter.advance(self.handles, PERIOD + late)
            found.append(max(abs(h.force) for h in self.handles))
        return found

    def let_go_of_device(self):
        """The hand is gone."""
        for handle in self.handles:
            handle.hand_stiffness = handle.hand_damping = 0.0
