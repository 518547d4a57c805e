"""Aimed throws in live ticks: the first touch against its closed form, while a hand holds another mass.

A drive is linear from tick to tick in live runs, and steps with large errors lose the point of a curve:
such scenes are left out.
"""

from functools import cache

import numpy as np

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.scripted import Driver, usual_motion
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.stepper import LiveStepper
from tests.campaigns.exported_throws import C99, result, wrong_of
from tests.campaigns.throw_scenes import Motion

BATCH = 10
SCENES = [scene for scene in C99 if scene.moves != "driven" and scene.target != "curve"]
PERIODS = (1e-3, 1e-2)  # s, of a tick
LONGEST = 2000  # ticks of a throw


@cache
def coupled(scene):
    """The scene with a mass in a hand, once a process."""
    model = scene.model()
    model["coordinates"] = [*model["coordinates"], "held"]
    model["points"] = model.get("points", {}) | {"Held": {"from": "O", "at": "held*N.z"}}
    model["bodies"] = model["bodies"] | {"held_mass": {"center": "Held", "mass": 1}}
    if "speeds" in model:
        model["speeds"] = model["speeds"] | {"held_dot": "rate(held)"}
    model["ports"] = {"hand": {"coordinate": "held"}}
    return fsm_dyn.compile(add_couplers(fsm_dyn.load(model)))


def touch_of(scene, one, period):
    """How far the ticks of a throw went, s, to the first with a transition, and the times of its transitions."""
    initial = {name: float(value) for name, value in one.initial.items()}
    stepper = LiveStepper(coupled(scene), 1, period, initial=initial)
    stepper.set_parameters({name: float(value) for name, value in one.numbers.items()})
    stepper.reset()
    controller = RunController(stepper, lambda event: None)
    hand = Driver({"axes": 1, "motion": usual_motion(1)})
    until = min(one.until, LONGEST * period)
    while stepper.t < until - 1e-9 and not len(stepper.records()):
        controller.tick(hand.read())
        hand.write(stepper.tick_data.force)
    return min(until, max(stepper.t, period)), np.array(stepper.records())[:, 0]


def case(seed, count=BATCH):
    """A batch of throws of one scene."""
    scene, found, refused = SCENES[seed % len(SCENES)], [], 0
    for number in range(seed * BATCH, seed * BATCH + count):
        one = scene.throw(number)
        try:
            until, times = touch_of(scene, one, PERIODS[number % len(PERIODS)])
        except InputError:  # too stiff for ticks of this length
            refused += 1
            continue
        q = np.array([*list(one.initial.values())[: scene.moving], one.initial.get("q", 0.0)])
        u = np.array([one.initial[f"{name}_dot"] for name in "xypzq" if f"{name}_dot" in one.initial])
        if scene.moving == 4:
            u[[2, 3]] = u[[3, 2]]
        if wrong := wrong_of(scene, Motion(scene, one.numbers, 0.0, q, u), until, times):
            found.append(f"{wrong[0]}: {wrong[1]} [{scene.name}, {one}]")
    return result(scene.name, count - refused, found)
