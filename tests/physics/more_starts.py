"""Random starts of the shipped models with contacts that ``starts.py`` leaves out: mostly random inputs from rest."""

from __future__ import annotations

import numpy as np

from tests.physics.starts import either, friction, restitution


def ramps(rng, most, until):
    """An input that rises and falls along straight lines, or jumps, at random times."""
    times = np.sort(rng.uniform(0.0, until, 3))
    values = rng.uniform(-0.2, 1.0, 3) * most
    rows = [[0.0, 0.0], *([float(t), float(v)] for t, v in zip(times, values, strict=True))]
    return {either(rng, "linear", "linear", "steps"): rows}


def billiard_ball(rng):
    return {"initial": {"vx": float(rng.uniform(0.1, 3.0)), "wx": float(rng.uniform(-60.0, 60.0))},
            "parameters": {"mu": friction(rng) + 0.05}}, 0.6  # fmt: skip


def felt_drop(rng):
    return {"initial": {"y": float(rng.uniform(0.005, 0.2))}}, 0.4


def push_button(rng):
    return {"inputs": {"finger": ramps(rng, 5.0, 1.0)}}, 1.0


def toggle_switch(rng):
    return {"inputs": {"finger": ramps(rng, 12.0, 1.0)}}, 1.0


def piano_action_simple(rng):
    return {"inputs": {"finger": ramps(rng, 12.0, 0.3)}}, 0.3


def piano_action(rng):
    return {"inputs": {"finger": ramps(rng, 12.0, 0.2)}}, 0.2


def seat_belt_reel(rng):
    lean, crash = ramps(rng, 40.0, 0.3), ramps(rng, 120.0, 0.2)
    return {"inputs": {"lean": lean, "deceleration": crash}}, 0.25


def geneva_drive(rng):
    return {"inputs": {"handle": float(rng.uniform(0.5, 12.0))}}, 0.8


def virtual_wall(rng):
    return {"inputs": {"push": ramps(rng, -5.0, 1.0), "pull": ramps(rng, 3.0, 1.0)}}, 1.0


def gripper(rng):
    return {"inputs": {"height": {"linear": [[0.0, 0.0], [0.5, 0.0], [float(rng.uniform(0.6, 1.2)), 0.08]]}}}, 1.2


def latch_door(rng):
    return {"inputs": {"push": float(rng.uniform(-25.0, 60.0)), "handle": ramps(rng, 20.0, 0.5)}}, 0.5


def cart_on_ramp(rng):
    return {"inputs": {"drive": ramps(rng, 9.0, 1.0)}, "parameters": {"e": min(restitution(rng), 0.9)}}, 1.0


def compass_gait(rng):
    return {"initial": {"qL_dot": float(rng.normal(-0.4, 0.1)), "qR_dot": float(rng.normal(0.4, 0.1))}}, 0.8


def escapement_anchor(rng):
    return {"initial": {"w": float(rng.uniform(-1.0, 1.0))}}, 0.8


def escapement_deadbeat(rng):
    return {"initial": {"w": float(rng.uniform(-1.0, 1.0))}}, 0.8


MORE_STARTS = {
    function.__name__: function
    for function in (
        billiard_ball, felt_drop, push_button, toggle_switch, piano_action_simple, piano_action, seat_belt_reel,
        geneva_drive, virtual_wall, gripper, latch_door, cart_on_ramp, compass_gait, escapement_anchor,
        escapement_deadbeat,
    )
}  # fmt: skip
