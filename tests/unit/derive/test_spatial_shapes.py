"""Gaps of spheres, planes and disks in space, and their rates."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

MODEL = {
    "fsm_dyn": 1,
    "parameters": {"r": 0.3},
    "coordinates": ["x", "y", "z", "a", "b", "c"],
    "frames": {"A": {"body": "zxy", "angles": ["a", "b", "c"]}},
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}, "K": {"from": "P", "at": "0.2*A.x + 0.1*A.z"}},
    "bodies": {"body": {"frame": "A", "center": "P", "mass": 2, "inertia": {"xx": 1, "yy": 2, "zz": 3}}},
    "shapes": {
        "ball": {"sphere": {"frame": "A", "center": "K", "radius": "r"}},
        "coin": {"disk": {"frame": "A", "axis": "A.x + 2*A.y", "radius": "r"}},
        "slope": {"plane": {"from": "O"}, "side": "N.x + 2*N.z"},
        "globe": {"sphere": {"radius": "0.5"}},
        "shell": {"sphere": {"radius": "6"}, "side": "inside"},
    },
    "contacts": {
        "ball_slope": {"between": ["ball", "slope"]},
        "coin_slope": {"between": ["coin", "slope"]},
        "ball_globe": {"between": ["globe", "ball"]},
        "ball_shell": {"between": ["ball", "shell"]},
        "K_slope": {"point": "K", "on": "slope"},
        "K_globe": {"point": "K", "on": "globe"},
    },
    "loads": [{"gravity": "-9.81*N.z"}],
}


def turn(k, w):
    c, s = np.cos(w), np.sin(w)
    about_x = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.roll(np.roll(about_x, k, 0), k, 1)


def gaps(q):
    x, y, z, a, b, c = q
    R = turn(2, a) @ turn(0, b) @ turn(1, c)
    P = np.array([x, y, z])
    K = P + R @ [0.2, 0, 0.1]
    n = np.array([1, 0, 2]) / np.sqrt(5)
    axis = R @ np.array([1, 2, 0]) / np.sqrt(5)
    e1 = np.cross(axis, [0.3, 0.4, 0.5])
    e1 /= np.linalg.norm(e1)
    e2 = np.cross(axis, e1)
    rim = minimize_scalar(lambda s: (P + 0.3 * (np.cos(s) * e1 + np.sin(s) * e2)) @ n, tol=1e-14).fun
    away = np.linalg.norm(K)
    return [K @ n - 0.3, rim, away - 0.8, 6 - 0.3 - away, K @ n, away - 0.5]


def test_gaps_and_their_rates(model):
    shapes = model(load(MODEL))
    random = np.random.default_rng(3)
    feet = [contact.normal_row for contact in shapes.terms.contacts if contact.name.startswith("coin_slope_")]
    normal = [contact.normal_row for contact in shapes.terms.contacts if contact.normal_row not in feet]
    rim = next(contact.normal_row for contact in shapes.terms.contacts if contact.name == "coin_slope")
    for _ in range(10):
        q, u = random.uniform(-1.5, 1.5, 6), random.uniform(-1, 1, 6)
        c = np.zeros(shapes.layout.n_c)
        c[shapes.layout.p_slice] = 0.3
        out = shapes.terms.program(["A", "b", "gamma", "residual"]).evaluate(0.0, np.concatenate([q, u]), c)
        np.testing.assert_allclose(out["residual"][normal], gaps(q), atol=1e-10)
        assert len(feet) == 3
        assert (out["residual"][feet] >= out["residual"][rim]).all()
        h = 1e-3
        near = {k: np.array(gaps(q + k * h * u)) for k in (-2, -1, 1, 2)}
        rate = (8 * (near[1] - near[-1]) - (near[2] - near[-2])) / (12 * h)
        np.testing.assert_allclose((out["A"] @ u + out["b"])[normal], rate, atol=1e-7)


def test_a_ball_slides_down_a_slope():
    more = {
        "initial": {"mode": "lies", "x": 0, "y": 0, "a": 0, "b": 0, "c": 0},
        "modes": {"lies": {"ball_slope": "closed"}},
    }
    mechanism = {**MODEL, **more, "contacts": {"ball_slope": MODEL["contacts"]["ball_slope"]}}
    mechanism["points"] = {**MODEL["points"], "K": {"from": "P", "at": "0*A.x"}}
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism, cache=False), until=1.0)
    assert set(run.modes) == {"lies"}
    last = run.record.x[-1]
    acceleration = 9.81 / np.sqrt(5) * np.array([2, 0, -1]) / np.sqrt(5)
    np.testing.assert_allclose(last[6:9], acceleration, atol=1e-9)


@pytest.mark.parametrize(
    ("contact", "message"),
    [
        ({"between": ["coin", "globe"]}, "can touch"),
        ({"between": ["ball", "rim"]}, "can touch"),
    ],
)
def test_what_shapes_in_space_cannot(contact, message):
    shapes = {**MODEL["shapes"], "rim": {"circle": {"radius": "1"}}}
    with pytest.raises(ModelError, match=message):
        load({**MODEL, "shapes": shapes, "contacts": {"c": contact}})
