"""Polyhedra that slide, strike and spin on each other: closed forms, momentum and energy."""

import numpy as np
import pytest

import fsm_dyn
from tests.physics.polyhedra import MASS, SIZE, TABLE, G, on_free_base, polyhedron, rotation, two

pytestmark = pytest.mark.filterwarnings("ignore:.*nothing uses")  # of sizes of other shapes

INERTIA = MASS * (np.sum(np.square(SIZE)) - np.square(SIZE)) / 12.0
BASE = MASS * (np.sum(np.square(TABLE)) - np.square(TABLE)) / 4.0  # of three times the mass
ABOVE = {"z2": TABLE[2] / 2, "z": TABLE[2] + SIZE[2] / 2}


def free_pair(friction=None, upper=None, lower=None, below=None, **more):
    """A block above a free base of three times its mass; `below`: a plane under it, with this coefficient or 0."""
    model = two(friction=friction, upper=upper, lower=lower, **more)
    on_free_base(model)
    if lower is not None:
        model["shapes"]["table"] = lower
    if below is not None:
        model["parameters"]["mu2"] = below
        model["shapes"]["ground"] = {"plane": {"from": "O"}, "side": "N.z"}
        model["contacts"]["stands"] = {"between": ["table", "ground"], **({"friction": "mu2"} if below else {})}
    return model


def turn(axis, angle):
    """Euler parameters of a rotation about an axis of the frame."""
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * np.eye(3)[axis])])


def both(first, second):
    """Euler parameters of one rotation after another, about its own axes."""
    a, b = first[1:], second[1:]
    return np.array([first[0] * second[0] - a @ b, *(first[0] * b + second[0] * a + np.cross(a, b))])


def momenta(run, k):
    """Momentum, and angular momentum about O, of both bodies in row k."""
    p, about = np.zeros(3), np.zeros(3)
    for mass, inertia, e, r, v, w in (
        (MASS, INERTIA, "e", ("x", "y", "z"), ("vx", "vy", "vz"), ("w1", "w2", "w3")),
        (3 * MASS, BASE, "f", ("x2", "y2", "z2"), ("vx2", "vy2", "vz2"), ("n1", "n2", "n3")),
    ):
        place, speed, spin = (np.array([run[name][k] for name in names]) for names in (r, v, w))
        p += mass * speed
        about += mass * np.cross(place, speed)
        about += rotation([run[f"{e}{i}"][k] for i in range(4)]) @ (inertia * spin)
    return p, about


def normal_speed(run, k, push, changes):
    """Speed along an impulse at which the points of contact part in row k, from the changes of both bodies' spins."""
    pushed = np.linalg.norm(push)
    apart = (run.u[k][:3] - run.u[k][6:9]) @ push / pushed
    return apart + sum(run.u[k][at : at + 3] @ change for at, change in zip((3, 9), changes, strict=True)) / pushed


def test_friction_makes_two_boxes_on_ice_as_fast_as_each_other():
    """One slows by mu g, the other of three times the mass gains mu g/3; both turn freely about the vertical."""
    graph = fsm_dyn.compile(free_pair(friction=0.4, below=0.0))
    run = fsm_dyn.simulate(graph, 0.3, initial={**ABOVE, "vx": 0.5, "x": -0.05})
    until = 0.5 / (0.4 * G * 4 / 3)
    assert run.transitions[0].time == pytest.approx(until, rel=1e-9)
    assert [run["vx"][-1], run["vx2"][-1]] == pytest.approx([0.125, 0.125], rel=1e-9)
    assert run["x"][-1] - run["x2"][-1] + 0.05 == pytest.approx(0.25 * until, rel=1e-9)
    assert run.energy.relative_residual < 1e-12


@pytest.mark.long
@pytest.mark.parametrize(("upper", "lower"), [(0.3, 0.5), (0.5, 0.3), (0.3, 0.33), (0.33, 0.3), (0.5, 0.5)])
def test_on_a_slope_the_weaker_friction_gives_way(upper, lower):
    """A box on a box on a plane tilted by 0.35 rad: either slides, both as one, both at their own rates, or none."""
    model = free_pair(friction=0.4, below=0.4, loads=[{"gravity": "-g*(cos(s)*N.z - sin(s)*N.x)"}])
    model["parameters"]["s"] = 0.35
    run = fsm_dyn.simulate(
        fsm_dyn.compile(model), 0.2, initial=ABOVE, parameters={"mu": upper, "mu2": lower}
    )  # fmt: skip
    along, across = G * np.sin(0.35), G * np.cos(0.35)
    first = second = max(along - lower * across, 0.0)  # as one
    if along - first > upper * across:
        first = along - upper * across
        second = max(along + (upper * across - 4 * lower * across) / 3, 0.0)
    assert [run["vx"][-1] / 0.2, run["vx2"][-1] / 0.2] == pytest.approx([first, second], abs=1e-9)


def test_crossed_bars_strike_with_their_edges():
    """Free bars: momentum and angular momentum are kept, and the points of contact rebound by the restitution."""
    bars = [{"box": {"frame": frame, "size": size}}
            for frame, size in (("B", ["1 m", "0.06 m", "0.06 m"]), ("L", ["0.08 m", "1 m", "0.06 m"]))]  # fmt: skip
    model = free_pair(upper=bars[0], lower=bars[1], restitution=0.6)
    del model["loads"]
    e, f = both(turn(2, 0.5), turn(0, 0.6)), both(turn(2, 0.1), turn(1, 0.7))
    start = {"z": 0.3, "x": 0.03, "vz": -1.0, "vx": 0.1, "w2": 0.2, "n3": 0.3}
    start |= {f"e{i}": e[i] for i in range(4)} | {f"f{i}": f[i] for i in range(4)}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.3, initial=start)
    assert "edge" in str(run.transitions[0])
    for before, after in zip(momenta(run, 0), momenta(run, -1), strict=True):
        assert after == pytest.approx(before, abs=1e-10)
    k = int(np.searchsorted(run.t, run.transitions[0].time))
    turns = [rotation([run[f"{name}{i}"][k] for i in range(4)]) for name in "ef"]
    normal = np.cross(turns[0][:, 0], turns[1][:, 1])
    push = run.u[k + 1][:3] - run.u[k][:3]
    assert np.cross(push, normal) == pytest.approx(np.zeros(3), abs=1e-9)
    push *= MASS
    changes = [inertia * (run.u[k + 1] - run.u[k])[at : at + 3] for at, inertia in ((3, INERTIA), (9, BASE))]
    before, after = (normal_speed(run, i, push, changes) for i in (k, k + 1))
    assert after == pytest.approx(-0.6 * before, rel=1e-9)
    assert before < -0.5
    assert run.energy.relative_residual < 1e-9


def test_a_box_that_lies_on_a_face_spins_down():
    """Its four corners carry a quarter each at half the diagonal: I w' = -mu m g r."""
    graph = fsm_dyn.compile(two(friction=0.4))
    run = fsm_dyn.simulate(graph, 0.1, initial={"z": (TABLE[2] + SIZE[2]) / 2, "w3": 2.0}, parameters={"p": 4, "q": 4})
    slowing = 0.4 * MASS * G * np.hypot(*SIZE[:2]) / 2 / INERTIA[2]
    assert run.transitions[0].time == pytest.approx(2.0 / slowing, rel=1e-7)
    assert 2 * np.arctan2(run["e3"][-1], run["e0"][-1]) == pytest.approx(4.0 / (2 * slowing), rel=1e-7)


@pytest.mark.parametrize("lower", [None, {"plane": {"from": "O"}, "side": "N.z"}])
def test_a_tetrahedron_spins_down(lower):
    """On three corners at the radius of the circle about them, on a plane as on a box."""
    edge = 0.2
    around = 2 * np.pi * np.arange(3) / 3
    corners = [(edge / np.sqrt(3) * np.cos(a), edge / np.sqrt(3) * np.sin(a), -edge * np.sqrt(6) / 12) for a in around]
    upper = polyhedron([*corners, (0.0, 0.0, edge * np.sqrt(6) / 4)], frame="B")
    graph = fsm_dyn.compile(two(friction=0.4, upper=upper, lower=lower))
    height = edge * np.sqrt(6) / 12 + (0.0 if lower else TABLE[2] / 2)
    run = fsm_dyn.simulate(graph, 0.3, initial={"z": height, "w3": 5.0}, parameters={} if lower else {"p": 2, "q": 2})
    slowing = 0.4 * MASS * G * edge / np.sqrt(3) / INERTIA[2]
    assert run.transitions[0].time == pytest.approx(5.0 / slowing, rel=1e-9)
    assert 2 * np.arctan2(run["e3"][-1], run["e0"][-1]) == pytest.approx(25.0 / (2 * slowing), rel=1e-9)
    assert run.energy.relative_residual < 1e-9


@pytest.mark.long
@pytest.mark.parametrize("method", [{}, {"method": "radau"}, {"method": "rk4", "step": 1e-3}])
def test_a_tall_box_on_a_slope_stands_slides_or_tips(method):
    """Its lower corners carry most: it still slides by tan s > mu, and tips by tan s > a/c."""
    model = two(friction=0.4, loads=[{"gravity": "-g*(cos(s)*N.z - sin(s)*N.x)"}])
    model["parameters"]["s"] = 0.3
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(model))
    for slope, friction, height in ((0.3, 0.32, 0.9), (0.3, 0.301, 0.98), (0.3, 0.32, 0.999), (0.3, 0.28, 0.9)):
        s = np.arctan(slope)
        run = simulator.run(
            0.1, initial={"z": (TABLE[2] + height) / 2}, **method,
            parameters={"mu": friction, "s": s, "c": height, "p": 2, "q": 2},
        )  # fmt: skip
        expected = max(G * (np.sin(s) - friction * np.cos(s)), 0.0)
        assert run["vx"][-1] / 0.1 == pytest.approx(expected, abs=1e-6)
        assert run["w2"][-1] == pytest.approx(0.0, abs=1e-9)
    s = np.arctan(0.4)
    run = simulator.run(
        0.01, initial={"z": (TABLE[2] + 0.9) / 2}, **method,
        parameters={"mu": 0.6, "s": s, "c": 0.9, "p": 2, "q": 2},
    )  # fmt: skip
    about = INERTIA[1] * (0.3**2 + 0.9**2) / (0.3**2 + 0.1**2) + MASS * (0.15**2 + 0.45**2)
    moment = MASS * G * (0.45 * np.sin(s) - 0.15 * np.cos(s))
    assert run["w2"][-1] / 0.01 == pytest.approx(moment / about, rel=1e-3)
