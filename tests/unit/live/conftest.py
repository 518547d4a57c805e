"""Coupled mechanisms and motions of a hand, shared by the tests of the live loop."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices.scripted import Driver
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import DeviceMap, add_couplers
from fsm_dyn.live.stepper import LiveStepper

# axis, amplitude (m), frequency (Hz), phase (rad)
MOTIONS = {
    "shopping_cart": [[0, 0.12, 0.5, 0.0], [1, 0.1, 0.7, 0.3], [2, 0.5, 0.6, 0.0]],
    "latch": [[0, 0.09, 0.6, 0.0]],
    "bouncing_ball": [[0, 0.28, 0.8, -1.5]],
    "virtual_wall": [[0, 0.05, 0.9, 0.0], [1, 0.03, 1.1, 3.0]],
    "latch_door": [[0, 0.08, 0.9, 0.0], [0, 0.027, 7.3, 0.0]],
    "push_button": [[0, 0.004, 0.9, 0.0], [0, 0.0013, 7.3, 0.0]],
    "toggle_switch": [[0, 1.0, 0.9, 0.0], [0, 0.33, 7.3, 0.0]],
    "piano_action": [[0, 0.012, 0.9, 0.0], [0, 0.004, 7.3, 0.0]],
    "piano_action_simple": [[0, 0.012, 0.9, 0.0], [0, 0.004, 7.3, 0.0]],
}

# model metres per metre of the hand: the ball hangs a metre above the floor
SCALES = {"bouncing_ball": 4.0}


@pytest.fixture(scope="session")
def motions():
    """Return for some shipped models the motion of the hand and the scale."""
    return {name: (motion, SCALES.get(name, 1.0)) for name, motion in MOTIONS.items()}


@pytest.fixture(scope="session")
def held():
    """Return a function from the name of a shipped model to its coupled graph."""
    known = {}

    def graph(name):
        if name not in known:
            known[name] = fsm_dyn.compile(add_couplers(fsm_dyn.load(name)))
        return known[name]

    return graph


class Bench:
    """A controller with a scripted hand, in this process; keeps inputs, times and transitions of every tick."""

    def __init__(self, graph, motion=(), *, axes=None, **options):
        axes = axes or 1 + max((item[0] for item in motion), default=0)
        controls = {key: options.pop(key) for key in ("stall_ticks", "paused") if key in options}
        self.stepper = LiveStepper(graph, axes, **options)
        self.events = []
        self.controller = RunController(self.stepper, self.events.append, **controls)
        self.hand = Driver({"axes": axes, "motion": list(motion), "period": self.stepper.period})
        self.times, self.inputs = [0.0], [self.stepper.tick_data.now.copy()]
        self.transitions, self.forces, self.grips = [], [], []

    def run(self, ticks, buttons=0):
        for _ in range(ticks):
            self.one(self.hand.read()._replace(buttons=buttons))
        return self

    def one(self, sample):
        tick = self.stepper.tick_data
        status = self.controller.tick(sample)
        self.hand.write(tick.force)
        if tick.counts[5] and not tick.counts[6]:
            self.times.append(self.stepper.t)
            self.inputs.append(tick.now.copy())
            self.transitions += [tuple(record[:3]) for record in self.stepper.records()]
        self.forces.append(tick.force.copy())
        self.grips.append(float(tick.numbers[0]))
        return status

    def tables(self):
        """The inputs of the run as tables for ``simulate``."""
        names = self.stepper.graph.automaton.terms.layout.w
        columns = np.array(self.inputs).T
        return {name: {"sampled": np.column_stack([self.times, v])} for name, v in zip(names, columns, strict=True)}


@pytest.fixture
def bench(held):
    """Return a function to make a bench for a shipped model and its motion, or for a coupled graph."""

    def make(name, **options):
        if not isinstance(name, str):
            return Bench(name, options.pop("motion"), **options)
        options.setdefault("mapping", DeviceMap(scale=SCALES.get(name, 1.0)))
        return Bench(held(name), options.pop("motion", MOTIONS[name]), **options)

    return make
