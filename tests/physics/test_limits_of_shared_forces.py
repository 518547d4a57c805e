"""Limits of forces that contacts share hold wherever the motion goes, by every strategy.

A bead rests in the vertex of two rough faces that turn.  Its weight is in balance as long as the vertical lies within
the hull of both cones of friction, a pure matter of angles; which pairs of limits bound the shares changes on the way.
"""

import math
import os

import numpy as np
import pytest

import fsm_dyn

UNTIL = 1.5  # s
FACES = {"R": "-(a + p*t/(1 s))", "L": "-(b + r*t/(1 s))"}


def bead(order):
    """The bead on both faces, declared in an order."""
    return {
        "fsm_dyn": 1,
        "name": "bead",
        "parameters": {"mu": 0.3, "a": 0.6, "p": 0, "b": -0.6, "r": 0, "g": "9.81 m/s^2"},
        "coordinates": {"x": "m", "y": "m"},
        "frames": {name: {"parent": "N", "rotate": {"z": angle}} for name, angle in FACES.items()},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"bead": {"center": "P", "mass": "1 kg"}},
        "contacts": {
            f"on_{name}": {"gap": f"dot(pos(P), {name}.y)", "slip": f"dot(vel(P), {name}.x)", "friction": "mu"}
            for name in order
        },
        "loads": [{"gravity": "-g*N.y"}],
    }


def time_of_release(mu, a, b, p, r):
    """When the vertical leaves the hull of both cones (s), infinity if it never does; normals lean by a+pt, b+rt."""
    t = np.linspace(0.0, UNTIL, 200_001)
    one, two = a + p * t, b + r * t
    edges = np.array([one - math.atan(mu), one + math.atan(mu), two - math.atan(mu), two + math.atan(mu)])
    edges = np.sort(np.mod(edges, 2 * np.pi), axis=0)
    gaps = np.diff(edges, axis=0, append=edges[:1] + 2 * np.pi)
    k = gaps.argmax(axis=0)  # the hull ends at either side of a gap of more than half a turn; without one it is all
    begin, wide = np.take_along_axis(edges, k[None], 0)[0], gaps.max(axis=0)
    out = (wide > np.pi) & (np.mod(-begin, 2 * np.pi) < wide)
    return t[out.argmax()] if out.any() else np.inf


def starts(count, seed):
    """Random turning faces that hold the bead at first."""
    rng = np.random.default_rng(seed)
    while count:
        a, b, p, r = rng.uniform([-0.8, -0.8, -1.5, -1.5], [0.8, 0.8, 1.5, 1.5])
        given = {"mu": float(rng.choice([0.1, 0.3, 0.6])), "a": a, "b": b, "p": p, "r": r}
        if time_of_release(**given) > 0.0:
            count -= 1
            yield given


@pytest.mark.parametrize(("order", "strategy"), [("RL", "auto"), ("LR", "compiled"), ("RL", "online")])
def test_bead_between_turning_faces(order, strategy):
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(bead(order)))
    released, count = 0, round(5 * float(os.environ.get("FSM_DYN_CAMPAIGN", "1")))
    for given in starts(count, 3):
        run = simulator.run(UNTIL, strategy=strategy, parameters=given)
        first = next((each.time for each in run.transitions if each.time > 0.0), np.inf)
        expected = time_of_release(**given)
        assert first == pytest.approx(expected, abs=2e-5), given
        released += math.isfinite(expected)
    assert 0 < released < count
