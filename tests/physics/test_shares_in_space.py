"""Contacts in space that share friction hold as long as any forces within their cones do, by every method.

In closed form for a ball in a straight groove, and by linear programs on cones of many faces for one in a corner.
"""

from math import atan, cos, pi, radians, sin, sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

import fsm_dyn
from fsm_dyn.core.errors import InputError
from tests.exports.building import built
from tests.exports.test_c99 import check_same

M, R, G = 2.0, 0.1, 9.81
WAYS = [
    {}, {"strategy": "online"}, {"strategy": "compiled"}, {"method": "rk4", "step": 1e-3}, {"method": "radau"},
    {"method": "bdf"}, {"method": "moreau_jean", "step": 1e-3},
]  # fmt: skip
EXACT = [way for way in WAYS if way.get("method") not in ("moreau_jean", "bdf")]


def ball(normals, weight, **more):
    """A ball on planes through the origin, with these normals; each is named, its normal a vector."""
    contacts, points = {}, {}
    for name, normal in normals.items():
        along = np.linalg.svd(np.array([normal]))[2][1:]
        out, first, second = (" + ".join(f"({x!r})*A.{i}" for x, i in zip(v.tolist(), "xyz", strict=True))
                              for v in (np.asarray(normal), *along))  # fmt: skip
        points[f"P{name}"] = {"from": "C", "at": f"-r*({out})"}
        contacts[name] = {
            "gap": f"dot(pos(C), {out}) - r", "friction": "mu",
            "slip": [f"dot(vel(P{name}, B), {axis})" for axis in (first, second)],
        }  # fmt: skip
    return {
        "fsm_dyn": 1, "name": "ball",
        "parameters": {"m": f"{M} kg", "r": f"{R} m", "g": f"{G} m/s^2", "mu": 0.5, "b": "0.2 rad", "p": "0 rad/s",
                       "turned": 0.4},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "frames": {"A": {"parent": "N", "rotate": {"z": "turned"}}, "B": {"parent": "N", "euler_parameters": "e"}},
        "points": {"C": {"from": "O", "at": "x*A.x + y*A.y + z*A.z"}, **points},
        "bodies": {"ball": {"frame": "B", "center": "C", "mass": "m",
                            "inertia": dict.fromkeys(("xx", "yy", "zz"), "0.4*m*r**2")}},
        "speeds": {**{f"v{i}": f"rate({i})" for i in "xyz"}, **{f"w{i}": f"dot(omega(B), N.{i})" for i in "xyz"}},
        "contacts": contacts,
        "loads": [{"force": weight, "at": "C"}],
        "initial": {axis: f"{x!r} m" for axis, x in zip("xyz", place_of(normals).tolist(), strict=True)},
        **more,
    }  # fmt: skip


def place_of(normals):
    """The center of the ball that touches all planes."""
    return np.linalg.lstsq(np.array([*normals.values()]), np.full(len(normals), R), rcond=None)[0]


def groove(order, faces, mirrored=False):
    """A ball in a groove along x whose faces have the normals leaning by an angle to either side."""
    sides = {"L": (0.0, -sin(faces), cos(faces)), "R": (0.0, sin(faces), cos(faces))}
    way = "-" if mirrored else ""
    return ball({name: sides[name] for name in order}, f"m*g*({way}sin(b + p*t)*A.x - cos(b + p*t)*A.z)")


def rolling(faces):
    """Part of its weight along the groove that accelerates the ball."""
    return 1.0 / (1.0 + 0.4 / cos(faces) ** 2)


@pytest.mark.parametrize(("order", "mirrored", "degrees"), [("LR", False, 45.0), ("RL", True, 60.0)])
def test_a_ball_rolls_down_a_groove(order, mirrored, degrees):
    """The forces of least norm are vertical, beyond the cones; others within them hold."""
    faces = radians(degrees)
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(groove(order, faces, mirrored)))
    for way in WAYS:
        run = simulator.run(0.5, **way)
        expected = (-1 if mirrored else 1) * 0.125 * G * sin(0.2) * rolling(faces)
        assert not run.transitions
        assert run.q[-1, 0] == pytest.approx(expected, rel=1e-7), way
        assert run.energy.relative_residual < 1e-6
        assert run.admissible.all()


@pytest.mark.parametrize(("order", "mirrored", "mu"), [("LR", False, 0.1), ("RL", True, 0.3)])
def test_a_ball_slips_in_a_groove_that_is_tilted(order, mirrored, mu):
    """At F = mu L / sqrt(c² - mu² s²) along each face, of a load L on each, pressed together by friction across."""
    faces = radians(45.0)
    limit = atan(mu / sqrt(cos(faces) ** 2 - (mu * sin(faces)) ** 2) / (1.0 - rolling(faces)))
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(groove(order, faces, mirrored)))
    for way in EXACT:
        run = simulator.run(limit + 0.02, parameters={"b": 0.0, "p": 1.0, "mu": mu}, **way)
        assert run.transitions[0].time == pytest.approx(limit, rel=1e-7), way
        assert set(str(run.transitions[0].target).split("+")) == {"L_slide", "R_slide"}
        assert run.outcome.name == "done"
    for step in (1e-3, 2e-4):
        stepped = simulator.run(
            limit + 0.02, parameters={"b": 0.0, "p": 1.0, "mu": mu}, method="moreau_jean", step=step
        )
        assert 0.0 <= stepped.transitions[0].time - limit < 2.0 * step
        assert set(str(stepped.transitions[0].target).split("+")) == {"L_slide", "R_slide"}
        assert stepped.q[-1, 0] == pytest.approx(run.q[-1, 0], abs=step * abs(run.u[-1, 0]))
        assert not stepped.warnings


def release(normals, axis, mu, faces=720):
    """The angle about an axis at which the weight leaves the sum of the cones, by bisection."""
    columns = []
    for normal in normals.values():
        along = np.linalg.svd(np.array([normal]))[2][1:]
        for angle in np.arange(faces) * 2.0 * pi / faces:
            force = np.asarray(normal) + mu * (cos(angle) * along[0] + sin(angle) * along[1])
            columns.append([*force, *np.cross(-np.asarray(normal), force)])
    matrix = np.array(columns).T

    def holds(angle):
        down = np.array([0.0, 0.0, -1.0])
        turned = down * cos(angle) + np.cross(axis, down) * sin(angle) + axis * (axis @ down) * (1.0 - cos(angle))
        right = np.array([*-turned, 0.0, 0.0, 0.0])
        return linprog(np.ones(matrix.shape[1]), A_eq=matrix, b_eq=right, method="highs").status == 0

    low, high = 0.0, pi / 2
    assert holds(low)
    assert not holds(high)
    while high - low > 1e-7:
        low, high = (0.5 * (low + high), high) if holds(0.5 * (low + high)) else (low, 0.5 * (low + high))
    return low


@pytest.mark.parametrize("seed", range(3))
def test_a_ball_leaves_a_corner_when_no_forces_hold_it(seed):
    """Three planes, the weight turned about an axis: nothing moves before, so balance alone decides."""
    rng = np.random.default_rng(seed)
    leans, mu = rng.uniform(0.5, 0.9, 3), float(rng.uniform(0.15, 0.4))
    angles = np.arange(3) * 2.0 * pi / 3 + rng.uniform(-0.3, 0.3, 3)
    normals = {
        name: (sin(lean) * cos(angle), sin(lean) * sin(angle), cos(lean))
        for name, lean, angle in zip("ijk", leans, angles, strict=True)
    }
    normals = {name: tuple(map(float, normals[name])) for name in ("ijk", "kij", "jki")[seed]}
    direction = rng.uniform(0.0, 2.0 * pi)
    axis = np.array([cos(direction), sin(direction), 0.0])
    x, y = (float(v) for v in np.cross(axis, [0.0, 0.0, -1.0])[:2])
    graph = fsm_dyn.compile(ball(normals, f"m*g*(sin(p*t)*(({x!r})*A.x + ({y!r})*A.y) - cos(p*t)*A.z)"))
    expected = release(normals, axis, mu)
    for way in EXACT:
        run = fsm_dyn.simulate(graph, expected + 0.01, parameters={"mu": mu, "p": 1.0}, **way)
        moving = np.flatnonzero(np.abs(run.u).max(axis=1) > 1e-9)
        assert run.t[moving[0] - 1] == pytest.approx(expected, abs=1e-5), way
        assert run.transitions[0].time == pytest.approx(expected, abs=1e-5), way
    run = fsm_dyn.simulate(graph, expected + 0.01, parameters={"mu": mu, "p": 1.0}, method="moreau_jean", step=1e-3)
    assert 0.0 <= run.transitions[0].time - expected < 2e-3


def test_exports_embed_such_modes_online_and_refuse_a_start_they_cannot_hold(tmp_path):
    dropped = groove("LR", radians(45.0))
    dropped["initial"]["z"] = f"{1.2 * R / cos(radians(45.0))} m"
    graph = fsm_dyn.compile(dropped | {"name": "dropped"})
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "c99"), "dropped"))
    with pytest.raises(InputError, match="share friction in space"):
        fsm_dyn.export(fsm_dyn.compile(groove("LR", radians(45.0))), tmp_path / "refused")
