"""Shapes repeated along a vector: a stair in closed form, and the same shapes written one by one."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.scene import Outlines

G, TREAD, RISE = 9.81, 0.3, 0.1
FALL = math.sqrt(2 * RISE / G)


def stair(shapes, contacts):
    return {
        "fsm_dyn": 1,
        "name": "stair",
        "coordinates": {"x": "m", "y": "m", "q": "rad"},
        "frames": {"S": {"rotate": {"z": "q"}}, "T": {"rotate": {"z": "0.3"}}},
        "points": {"K": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"bead": {"center": "K", "mass": "1 kg"}, "ring": {"frame": "S", "center": "K", "mass": "1 g",
                                                                    "inertia": {"zz": "1 kg*m^2"}}},
        "shapes": shapes,
        "contacts": contacts,
        "loads": [{"gravity": f"-{G} m/s^2*N.y"}],
        "initial": {"x": "0.01 m", "x_dot": "1 m/s", "q_dot": "1 rad/s"},
    }  # fmt: skip


def tread(x, y):
    return {"segment": {"points": [[f"{x} m", f"{y} m"], [f"{x + TREAD} m", f"{y} m"]]}, "side": "N.y"}


def landings(model):
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.2)
    return [item.time for item in run.transitions if "closes" in item.cause or "impact" in item.cause], run


def test_a_bead_falls_from_tread_to_tread_as_in_closed_form():
    repeated = {**tread(0, 0), "repeat": {"count": 4, "step": f"{TREAD} m*N.x - {RISE} m*N.y"}}
    times, run = landings(stair({"treads": repeated}, {"lands": {"point": "K", "on": "treads"}}))
    expected = [k * TREAD - 0.01 + FALL for k in (1, 2, 3)]
    assert times == pytest.approx(expected, abs=1e-9)
    single = {f"t{k}": tread(k * TREAD, -k * RISE) for k in range(4)}
    apart, other = landings(stair(single, {f"c{k}": {"point": "K", "on": f"t{k}"} for k in range(4)}))
    assert times == pytest.approx(apart, abs=1e-12)
    assert run["y"][-1] == pytest.approx(other["y"][-1], abs=1e-12)


@pytest.mark.parametrize(
    ("repeat", "message"),
    [
        ({"count": 3}, "a repetition needs one of about, step"),
        ({"count": 3, "about": "O", "step": "0.1 m*N.x"}, "a repetition has both 'about' and 'step'"),
        ({"count": 3, "angle": "3 deg", "step": "0.1 m*N.x"}, "'angle' does not go with 'step'"),
        ({"count": 3, "step": "0.1 m"}, "the step of shape 'treads' must be a vector"),
        ({"count": 3, "step": "0.1 N*N.x"}, "the step of shape 'treads' is in N"),
        ({"count": 3, "step": "0.1 m*S.x"}, "step of repetition"),
    ],
)
def test_what_is_refused(repeat, message):
    model = stair({"treads": {**tread(0, 0), "repeat": repeat}}, {"lands": {"point": "K", "on": "treads"}})
    with pytest.raises(fsm_dyn.ModelError, match=message):
        fsm_dyn.compile(model)


def test_the_copies_are_drawn_where_they_are():
    repeated = {**tread(0, 0), "repeat": {"count": 4, "step": f"{TREAD} m*N.x - {RISE} m*N.y"}}
    graph = fsm_dyn.compile(stair({"treads": repeated}, {"lands": {"point": "K", "on": "treads"}}))
    drawn = [outline.points for outline in Outlines(graph.automaton, np.zeros(0), {}).planar()]
    expected = [[(k * TREAD, -k * RISE), ((k + 1) * TREAD, -k * RISE)] for k in range(4)]
    assert np.allclose(drawn, expected, rtol=0, atol=1e-15)
