"""Contacts that share a load so that the motion depends on it: bricks that slide and turn on equal springs."""

from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn

A, B, M, G = 0.4, 0.3, 2.0, 9.81
WAYS = {
    "compiled": ({"strategy": "compiled"}, 1e-7),
    "online": ({"strategy": "online"}, 1e-7),
    "radau": ({"method": "radau"}, 1e-7),
    "bdf": ({"method": "bdf"}, 1e-6),
    "rk4": ({"method": "rk4", "step": 1e-3}, 1e-4),
    "moreau_jean": ({"method": "moreau_jean", "step": 1e-3}, 5e-4),
}


def brick(height=0.2, friction=0.3, **initial):
    """A brick flat on a table, 2 kg, 0.4 m by 0.3 m by ``height``."""
    return {
        "fsm_dyn": 1,
        "name": "brick",
        "parameters": {"m": f"{M} kg", "a": f"{A} m", "b": f"{B} m", "c": f"{height} m"},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "frames": {"F": {"parent": "N", "euler_parameters": "p"}},
        "points": {"S": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
        "bodies": {"box": {"frame": "F", "center": "S", "mass": "m", "inertia": {
            "xx": "m*(b**2+c**2)/12", "yy": "m*(a**2+c**2)/12", "zz": "m*(a**2+b**2)/12"}}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)", "vz": "rate(z)", "w1": "dot(omega(F), F.x)",
                   "w2": "dot(omega(F), F.y)", "w3": "dot(omega(F), F.z)"},
        "shapes": {"brick": {"box": {"frame": "F", "center": "S", "size": ["a", "b", "c"]}},
                   "table": {"plane": {"from": "O"}, "side": "N.z"}},
        "contacts": {"touch": {"between": ["brick", "table"], "friction": friction}},
        "loads": [{"gravity": f"-{G} m/s^2*N.z"}],
        "initial": {"z": "c/2", "vx": "2 m/s", "w3": "10 rad/s", **initial},
    }  # fmt: skip


def forces_of_springs(places, ways, height, friction):
    """Return what four corners carry on equal springs of any stiffness, without pulling, shape (4,)."""
    free = np.c_[np.ones(4), places]  # displacements of a rigid base: rise and two tilts
    for count in (4, 3):
        for corners in combinations(range(4), count):
            bears = np.isin(np.arange(4), corners)
            system = np.empty((3, 3))
            for k in range(3):
                normal = np.where(bears, free[:, k], 0.0)
                push = -friction * normal[:, None] * ways
                system[:, k] = [normal.sum(), places[:, 1] @ normal + height / 2 * push[:, 1].sum(),
                                -places[:, 0] @ normal - height / 2 * push[:, 0].sum()]  # fmt: skip
            normal = free @ np.linalg.solve(system, [M * G, 0.0, 0.0])
            if (normal[bears] >= 0.0).all() and (normal[~bears] <= 0.0).all():
                return np.where(bears, normal, 0.0)
    raise AssertionError("the brick tips over")


def rest_by_springs(height=0.2, friction=0.3, velocity=(2.0, 0.0), spin=10.0, turned=0.0):
    """Return time and place (x, y, angle) at which the brick comes to rest, from the equations of its plane motion."""
    corners = np.array([[i * A / 2, j * B / 2] for i in (1, -1) for j in (1, -1)])
    inertia = M * (A**2 + B**2) / 12

    def rates(_, state):
        angle, speed, turn = state[2], state[3:5], state[5]
        c, s = np.cos(angle), np.sin(angle)
        places = corners @ np.array([[c, s], [-s, c]])
        slips = speed + turn * np.c_[-places[:, 1], places[:, 0]]
        ways = slips / np.maximum(np.linalg.norm(slips, axis=1), 1e-9)[:, None]
        normal = forces_of_springs(places, ways, height, friction)
        push = -friction * normal[:, None] * ways
        torque = (places[:, 0] * push[:, 1] - places[:, 1] * push[:, 0]).sum()
        return [*speed, turn, *(push.sum(axis=0) / M), torque / inertia]

    def at_rest(_, state):
        return np.hypot(state[3], state[4]) + 0.1 * abs(state[5]) - 1e-6

    at_rest.terminal = True
    found = solve_ivp(rates, (0.0, 2.0), [0, 0, turned, *velocity, spin], rtol=1e-9, atol=1e-11, events=at_rest)
    assert found.status == 1
    return found.t[-1], found.y[:3, -1]


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(brick())


@pytest.mark.parametrize("way", WAYS)
def test_a_brick_slides_and_turns_as_on_equal_springs(graph, way):
    options, close = WAYS[way]
    time, (x, y, _) = rest_by_springs()
    run = fsm_dyn.simulate(graph, 1.0, **options)
    assert x == pytest.approx(0.87749, abs=1e-5)
    assert [run["x"][-1], run["y"][-1]] == pytest.approx([x, y], abs=close)
    stops = run.transitions[-1].time
    assert stops == pytest.approx(time, abs=2e-3 if way == "moreau_jean" else 1e-4 if way == "rk4" else 1e-5)
    assert run.labels[-1] == "touch: face z- flat on table, stick"


@pytest.mark.parametrize("way", ["compiled", "online", "moreau_jean"])
@pytest.mark.parametrize(
    "variant",
    [
        {"w3": "-10 rad/s"},  # mirrored in the plane of x and z
        {"p0": "0", "p3": "1"},  # every corner in the place of the opposite one
        {"p0": "0", "p1": "1", "w3": "-10 rad/s"},  # upside down: the other four corners
        {"vx": "0 m/s", "vy": "2 m/s", "p0": "sqrt(0.5)", "p3": "sqrt(0.5)"},  # turned as a whole
    ],
)
def test_mirrored_and_renumbered_bricks_move_alike(graph, variant, way):
    options, close = WAYS[way]
    run = fsm_dyn.simulate(fsm_dyn.compile(brick(**variant)), 1.0, **options)
    expected = fsm_dyn.simulate(graph, 1.0, **options)
    x, y = (run["y"][-1], -run["x"][-1]) if "vy" in variant else (run["x"][-1], run["y"][-1])
    mirrored = variant.get("w3") == "-10 rad/s" and "p1" not in variant
    assert [x, -y if mirrored else y] == pytest.approx([expected["x"][-1], expected["y"][-1]], abs=min(close, 1e-6))


@pytest.mark.parametrize("way", ["compiled", "online"])
@pytest.mark.parametrize(("height", "friction"), [(0.4, 0.3), (0.4, 0.5)])
def test_a_tall_brick_carries_more_in_front(height, friction, way):
    _, (x, y, _) = rest_by_springs(height, friction)
    run = fsm_dyn.simulate(fsm_dyn.compile(brick(height, friction)), 1.0, **WAYS[way][0])
    assert [run["x"][-1], run["y"][-1]] == pytest.approx([x, y], abs=1e-7)
    shares = np.array([run[f"lambda.touch_{k}.normal"][0] for k in range(1, 5)])
    turned = np.array([run[f"lambda.touch_{k}.normal"][0] for k in range(5, 9)])
    assert not turned.any()
    assert shares.sum() == pytest.approx(M * G)
    assert abs(shares @ [1.0, -1.0, -1.0, 1.0]) < 1e-9 * M * G or abs(shares @ [1.0, -1.0, 1.0, -1.0]) < 1e-9 * M * G


@pytest.mark.parametrize("seed", range(4))
def test_a_brick_that_drops_tilted_comes_to_rest(seed):
    random = np.random.default_rng(seed)
    turn = random.normal(size=4)
    turn /= np.linalg.norm(turn)
    start = {"z": "0.5 m"} | {f"p{k}": float(turn[k]) for k in range(4)}
    start |= {f"w{k}": f"{random.normal(scale=3.0)} rad/s" for k in (1, 2, 3)}
    run = fsm_dyn.simulate(fsm_dyn.compile(brick(**start)), 3.0)
    assert run.outcome.name == "done"
    assert min(abs(run["z"][-1] - half) for half in (0.2, 0.15, 0.1)) < 1e-9
    assert run.energy.relative_residual < 1e-8
    assert np.abs(run.u[-1]).max() < 1e-9


def on_belts(speeds, friction, height, sign=1):
    """A block of 1 kg on belts side by side, or above them; ``sign``: of how the slip on the second is written."""
    contacts = {
        f"belt{k}": {
            "gap": "y", "friction": mu, "slip": f"{sign if k == 1 else 1}*(rate(x) - {v} m/s)"
        }
        for k, (v, mu) in enumerate(zip(speeds, friction, strict=True))
    }  # fmt: skip
    return {
        "fsm_dyn": 1,
        "name": "on_belts",
        "coordinates": {"x": "m", "y": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"block": {"center": "P", "mass": "1 kg"}},
        "contacts": contacts,
        "loads": [{"gravity": f"-{G} m/s^2*N.y"}],
        "initial": {"x_dot": "0.2 m/s", "y": f"{height} m"},
    }


@pytest.mark.parametrize(("height", "sign"), [(0.0, 1), (0.01, -1)])
@pytest.mark.parametrize(
    ("speeds", "friction"),
    [((-2, 2), (0.3, 0.3)), ((2, -2), (0.2, 0.3)), ((-2, 2, 1.5), (0.3, 0.3, 0.3)), ((1.5, 2, -2), (0.1, 0.3, 0.3))],
)
@pytest.mark.parametrize("way", ["compiled", "online", "moreau_jean"])
def test_belts_that_run_apart_drag_by_equal_shares(way, speeds, friction, height, sign):
    """The weight, or the impulse of landing, is shared equally: speed by the mean of the signed friction and time."""
    pull = np.mean(np.sign(speeds) * friction)
    run = fsm_dyn.simulate(fsm_dyn.compile(on_belts(speeds, friction, height, sign)), 0.2, **WAYS[way][0])
    assert run.outcome.name == "done"
    assert run.u[-1, 0] == pytest.approx(0.2 + pull * G * 0.2, abs=1e-9)
