"""Constraints imposed in a run: the motion of declared ones, the laws of impacts, energy that is never gained."""

import math
import random
from typing import Any

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import with_scenario, with_settings
from fsm_dyn.run.trajectory import Trajectory

Tree = dict[str, Any]


def chain(rods: int = 3, **more: Any) -> Tree:
    """Return a planar chain of rods of 0.4 m and 1 kg from the origin; J<k> is the end of rod k, W is fixed."""
    letters = range(1, rods + 1)
    points: Tree = {"W": {"from": "O", "at": "0.5 m*N.x"}}
    for k in letters:
        origin = f"J{k - 1}" if k > 1 else "O"
        points |= {f"C{k}": {"from": origin, "at": f"l/2*B{k}.x"}, f"J{k}": {"from": origin, "at": f"l*B{k}.x"}}
    return {
        "fsm_dyn": 1, "name": "chain_of_rods",
        "parameters": {"m": "1 kg", "l": "0.4 m", "g": "9.81 m/s^2"},
        "coordinates": {f"q{k}": "rad" for k in letters},
        "frames": {f"B{k}": {"rotate": {"z": f"q{k}"}} for k in letters},
        "points": points,
        "bodies": {
            f"rod{k}": {"frame": f"B{k}", "center": f"C{k}", "mass": "m", "inertia": {"zz": "m*l**2/12"}}
            for k in letters
        },
        "loads": [{"gravity": "-g*N.y"}],
        **more,
    }  # fmt: skip


def closed_four_bar(q1: float) -> Tree:
    """Return angles of three rods with the end of the last one at W."""
    dx, dy = 0.5 - 0.4 * math.cos(q1), -0.4 * math.sin(q1)
    way, half = math.atan2(dy, dx), math.acos(math.hypot(dx, dy) / 0.8)
    return {"q1": f"{q1!r} rad", "q2": f"{way + half!r} rad", "q3": f"{way - half!r} rad"}


def run_of(model: Tree, until: float = 1.0, **options: Any) -> Trajectory:
    return fsm_dyn.simulate(fsm_dyn.compile(model), until, **options)


def last(run: Trajectory) -> np.ndarray:
    return np.concatenate([run.q[-1], run.u[-1]])


ROWS = {
    "pin": ({"pin": ["J3", "W"]}, ["dot(pos(J3) - pos(W), N.x)", "dot(pos(J3) - pos(W), N.y)"]),
    "line": ({"line": ["J3", "W"], "along": "N.y"}, ["dot(pos(J3) - pos(W), N.x)"]),
    "coordinate": ({"coordinate": "q2"}, ["q2 - {q2}"]),
    "angle": ({"angle": ["rod3", "rod2"]}, ["q3 - q2 - ({q3} - {q2})"]),
    "weld": (
        {"weld": ["rod3", "ground"]},
        ["q3 - {q3}", "dot(pos(C3), N.x) - {x}*1 m", "dot(pos(C3), N.y) - {y}*1 m"],
    ),
    "distance": ({"distance": ["J3", "O"]}, ["dot(pos(J3), pos(J3)) - 0.25 m^2"]),
}


@pytest.mark.parametrize("kind", ROWS)
def test_the_motion_is_that_of_declared_rows(kind: str) -> None:
    imposed, rows = ROWS[kind]
    start = closed_four_bar(1.2)
    q1, q2, q3 = (float(text.split()[0]) for text in start.values())
    values = {
        **start,
        "x": repr(0.4 * (math.cos(q1) + math.cos(q2) + 0.5 * math.cos(q3))),
        "y": repr(0.4 * (math.sin(q1) + math.sin(q2) + 0.5 * math.sin(q3))),
    }
    declared = {f"row{k}": {"position": text.format(**values)} for k, text in enumerate(rows)}
    options = {"strategy": "online", "rtol": 1e-11, "atol": 1e-13}
    first = run_of(chain(constraints=declared, initial=start), 0.6, **options)
    second = run_of(chain(imposed={"held": {**imposed, "at": "0 s"}}, initial=start), 0.6, **options)
    assert second.outcome.name == "done"
    np.testing.assert_allclose(last(second), last(first), rtol=0.0, atol=1e-12 * max(1.0, np.abs(last(first)).max()))


def test_what_is_imposed_in_motion_changes_the_speeds_by_an_impulse_of_its_rows() -> None:
    """M (u+ - u-) = A^T Lambda with A u+ = 0, by the mass matrix of three rods written by hand."""
    run = run_of(chain(imposed={"catch": {"pin": ["J3", "ground"], "at": "0.3 s"}}), 0.4)
    number = next(k for k, t in enumerate(run.transitions) if "is imposed" in t.cause)
    time = run.transitions[number].time
    before = run.u[np.flatnonzero(run.t == time)[0]]
    after, q = run.u[np.flatnonzero(run.t == time)[-1]], run.q[np.flatnonzero(run.t == time)[0]]
    m, length = 1.0, 0.4
    share = np.array([[7 / 3, 1.5, 0.5], [1.5, 4 / 3, 0.5], [0.5, 0.5, 1 / 3]])
    mass = m * length**2 * share * np.cos(q[:, None] - q[None, :])
    rows = length * np.array([-np.sin(q), np.cos(q)])
    impulse, *_ = np.linalg.lstsq(rows.T, mass @ (after - before), rcond=None)
    np.testing.assert_allclose(rows @ after, 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.T @ impulse, mass @ (after - before), atol=1e-12)
    assert 0.5 * after @ mass @ after < 0.5 * before @ mass @ before
    assert abs(run.energy.relative_residual) < 1e-6


def test_points_apart_are_refused_or_drawn_together() -> None:
    far = {"pin": ["J3", "W"], "at": "0.1 s"}
    refused = run_of(chain(imposed={"catch": far}))
    assert refused.t[-1] == 0.1
    assert "catch cannot be imposed: J3 and W are too far apart" in refused.transitions[-1].cause
    drawn = run_of(chain(imposed={"catch": {**far, "draw_in": "0.4 s"}}), 1.0, rtol=1e-10, atol=1e-12)
    t = np.array([0.1, 0.3, 0.5, 0.8])
    q = drawn.sample(t).q
    apart = np.hypot(0.4 * np.cos(q).sum(axis=1) - 0.5, 0.4 * np.sin(q).sum(axis=1))
    np.testing.assert_allclose(apart[1], 0.5 * apart[0], rtol=1e-8)  # the course is symmetric about its middle
    np.testing.assert_allclose(apart[2:], 0.0, atol=1e-8)


def test_a_limit_of_force_releases_all_rows() -> None:
    run = run_of(chain(imposed={"catch": {"pin": ["J1", "ground"], "at": "0 s", "holds_to": "25 N"}}), 1.0)
    causes = [item.cause for item in run.transitions]
    assert any("lets go" in cause for cause in causes)
    held = next(item for item in run.transitions if "lets go" in item.cause)
    assert run.at(held.time).mode == "all_free"
    assert run.at(0.5).mode == "all_free"


def test_a_scenario_imposes_at_its_times() -> None:
    times = {"at": "0.2 s", "until": "0.5 s"}
    model = chain(scenarios={"caught": {"constraints": {"catch": {"pin": ["J2", "ground"], **times}}}})
    graph = fsm_dyn.compile(model)
    run = fsm_dyn.simulate(graph, 0.8, scenario="caught")
    assert [round(item.time, 9) for item in run.transitions] == [0.2, 0.2, 0.5]
    assert not fsm_dyn.simulate(graph, 0.8).transitions
    followed = fsm_dyn.compile(with_scenario(graph.automaton.mechanism, "caught"))
    np.testing.assert_array_equal(last(fsm_dyn.simulate(followed, 0.8)), last(run))
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(chain())).constrain("catch", pin=("J2", "ground"), at=0.2, until=0.5)
    np.testing.assert_allclose(last(simulator.run(0.8)), last(run), rtol=0.0, atol=1e-12)


def test_space() -> None:
    """A weld in space holds a spinning box; a pin of its corner leaves a spherical pendulum."""
    box = {
        "fsm_dyn": 1, "name": "box_in_space",
        "joints": {"free": {"ball": {"child": "B", "at": "O"}}},
        "points": {"C": {"from": "O", "at": "0.2 m*B.x"}, "P": {"from": "C", "at": "0.1 m*B.y + 0.1 m*B.z"}},
        "bodies": {"box": {"frame": "B", "center": "C", "mass": "2 kg",
                           "inertia": {"xx": "0.02 kg*m^2", "yy": "0.03 kg*m^2", "zz": "0.04 kg*m^2"}}},
        "loads": [{"gravity": "-9.81 m/s^2*N.z"}],
        "imposed": {"grip": {"weld": ["box", "ground"]}, "tip": {"distance": ["P", "Q"]}},
    }  # fmt: skip
    box["points"]["Q"] = {"from": "O", "at": "0.5 m*N.z"}
    graph = fsm_dyn.compile(box)
    run = fsm_dyn.simulate(graph, 0.6, inputs={"grip": {"steps": [[0, 0], [0.2, 1], [0.4, 0]]}})
    np.testing.assert_allclose(run.sample(np.array([0.25, 0.39])).u, 0.0, atol=1e-9)
    run = fsm_dyn.simulate(graph, 0.6, inputs={"tip": {"steps": [[0, 0], [0.1, 1]]}}, rtol=1e-9, atol=1e-11)
    assert abs(run.energy.relative_residual) < 1e-6
    assert run.outcome.name == "done"


def disc_above_box(**more: Any) -> Tree:
    """Return a box that falls on a bench, and a disc that falls on the box."""
    square = [[f"{i}*0.1 m", f"{j}*0.1 m"] for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return {
        "fsm_dyn": 1, "name": "disc_above_box",
        "coordinates": {"x": "m", "y": "m", "q": "rad", "z": "m"},
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}, "D": {"from": "O", "at": "0.02 m*N.x + z*N.y"}},
        "bodies": {"box": {"frame": "B", "center": "C", "mass": "1 kg", "inertia": {"zz": "0.01 kg*m^2"}},
                   "ball": {"center": "D", "mass": "0.5 kg"}},
        "shapes": {"bench": {"line": {"frame": "N", "along": "N.x"}, "side": "N.y"},
                   "block": {"polygon": {"frame": "B", "from": "C", "points": square}},
                   "disc": {"circle": {"frame": "N", "center": "D", "radius": "0.05 m"}}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "initial": {"y": "0.3 m", "q": "0.2 rad", "z": "0.6 m", "x_dot": "0.3 m/s"},
        **more,
    }  # fmt: skip


ON_BENCH = {"on_bench": {"between": ["block", "bench"], "friction": 0.3}}
SURFACES = {"friction": {"static": 0.4, "kinetic": 0.3}, "restitution": 0.3}


@pytest.mark.parametrize("options", [{"rtol": 1e-11, "atol": 1e-13}, {"method": "rk4", "step": 1e-3}])
def test_the_motion_is_that_of_a_declared_contact(options: dict[str, Any]) -> None:
    """Impacts, sliding and rest of a disc on a box, whose contact is imposed before they meet."""
    declared = {**ON_BENCH, "touch": {"between": ["disc", "block"], **SURFACES}}
    imposed = {"touch": {"contact": ["disc", "block"], **SURFACES, "at": "10 ms"}}
    first = run_of(disc_above_box(contacts=declared), 0.6, strategy="online", **options)
    second = run_of(disc_above_box(contacts=ON_BENCH, imposed=imposed), 0.6, strategy="online", **options)
    assert sum("impacts" in item.cause for item in first.transitions) > 5
    np.testing.assert_allclose(last(second), last(first), rtol=0.0, atol=1e-12)
    assert second.transitions[0].cause == "touch is imposed: disc and block touch each other"
    assert abs(second.energy.relative_residual) < 1e-5


def test_shapes_pass_through_each_other_once_their_contact_is_released() -> None:
    imposed = {"touch": {"contact": ["disc", "block"], "at": "0 s", "until": "0.8 s"}}
    run = run_of(disc_above_box(contacts=ON_BENCH, imposed=imposed), 1.0)
    released = next(item for item in run.transitions if "touch is released" in item.cause)
    assert released.time == 0.8
    held, free = (float(run.sample(np.array([t]))["z"][0]) for t in (0.8, 1.0))
    assert held > 0.24  # the height of the box, and the disc's radius
    assert free == pytest.approx(held - 0.5 * 9.81 * 0.04, abs=1e-3)
    caught = run_of(disc_above_box(contacts=ON_BENCH, imposed={"touch": {**imposed["touch"], "at": "0.45 s"}}), 0.6,
                    on_failure="return")  # fmt: skip
    assert caught.outcome.name, "imposed on shapes that overlap: behind a face nothing touches, or the run ends by name"
    assert np.isfinite(last(caught)).all()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"contact": ["disc", "block"]}, "contact 'own' lists them"),
        ({"contact": ["disc", "disc"]}, "do not move relative to each other"),
        ({"contact": ["disc", "C"]}, "there is no shape 'C'"),
        ({"contact": ["bench", "block"], "within": "1 mm"}, "does not go with 'contact'"),
        ({"contact": ["bench", "block"], "holds_to": "1 N"}, "does not go with 'contact'"),
        ({"coordinate": "x", "friction": 0.2}, "does not go with 'coordinate'"),
        ({"contact": ["bench", "block"], "restitution": 2}, "impossible"),
    ],
)
def test_a_contact_that_cannot_be_is_refused(entry: Tree, message: str) -> None:
    listed = {"own": {"between": ["disc", "block"]}}
    with pytest.raises(fsm_dyn.InputError, match=message):
        fsm_dyn.load(disc_above_box(contacts=listed, imposed={"touch": entry}))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"pin": ["J1", "nobody"]}, "names no body"),
        ({"pin": ["J1", "W"], "weld": ["rod1", "rod2"]}, "both 'pin' and 'weld'"),
        ({"holds_to": "3 N"}, "needs one of pin"),
        ({"distance": ["J1", "rod2"]}, "names no point"),
        ({"line": ["J1", "W"]}, "direction of its line"),
        ({"line": ["J1", "W"], "along": "K.x"}, "direction of its line"),
        ({"weld": ["ground", "rod1"]}, "only a body is welded"),
        ({"angle": ["ground", "ground"]}, "neither of them turns"),
        ({"coordinate": "x"}, "names no coordinate"),
        ({"pin": ["J1", "W"], "within": "-1 mm"}, "not positive"),
        ({"weld": ["rod1", "rod2"], "draw_in": "1 s"}, "does not go with 'weld'"),
        ({"pin": ["J1", "W"], "holds_to": "3 m"}, "allowed: N"),
        ({"angle": ["rod1", "ground"], "holds_to": "3 N"}, "N\\*m"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(entry: Tree, message: str) -> None:
    with pytest.raises(fsm_dyn.InputError, match=message):
        fsm_dyn.load(chain(imposed={"catch": entry}))


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(fsm_dyn.InputError, match="has the name of an input"):
        fsm_dyn.load(chain(inputs={"catch": "N"}, imposed={"catch": {"coordinate": "q1"}}))
    with pytest.raises(fsm_dyn.InputError, match="already"):
        fsm_dyn.load(chain(memory={"catch_on": 0}, imposed={"catch": {"coordinate": "q1"}}))
    twice = {"caught": {"constraints": {"catch": {"coordinate": "q2"}}}}
    with pytest.raises(fsm_dyn.InputError, match="imposed twice"):
        fsm_dyn.load(chain(imposed={"catch": {"coordinate": "q1"}}, scenarios=twice))


def random_impositions(rods: int) -> Tree:
    """Return constraints of all kinds between random parts of a chain."""
    ends = [f"J{k}" for k in range(1, rods + 1)]
    bodies = [f"rod{k}" for k in range(1, rods + 1)]
    return {
        "pin_a": {"pin": [ends[-1], "ground"]}, "pin_b": {"pin": [ends[0], bodies[-1]]},
        "weld": {"weld": [bodies[-1], bodies[0]]}, "angle": {"angle": [bodies[1], "ground"]},
        "rod": {"distance": [ends[-1], "O"]}, "rail": {"line": [ends[1], "W"], "along": "N.x", "within": "10 m"},
        "brake": {"coordinate": "q1"}, "magnet": {"pin": [ends[1], "ground"], "holds_to": "40 N"},
    }  # fmt: skip


def check_random_run(graph: Any, seed: int, until: float = 0.6, *, random_start: bool = True) -> None:
    """Impose and release at random; no energy is gained at a transition, and no failure is without a name."""
    draw = random.Random(seed)
    names = [*graph.automaton.mechanism.imposed]
    inputs = {}
    for name in draw.sample(names, draw.randint(1, min(4, len(names)))):
        times = sorted(draw.uniform(0.0, until) for _ in range(draw.randint(1, 4)))
        inputs[name] = {"steps": [[0.0, 0.0], *([time, float((k + 1) % 2)] for k, time in enumerate(times))]}
    moved = [q for q in graph.automaton.mechanism.coordinates if random_start and q.startswith("q")]
    initial = {f"{q}": draw.uniform(-3.0, 3.0) for q in moved}
    run = fsm_dyn.simulate(graph, until, inputs=inputs, initial=initial, on_failure="return", max_steps=20_000)
    assert run.outcome.name, seed
    balance = run.energy
    scale = np.abs(balance.kinetic).max() + np.abs(balance.potential).max()
    assert np.diff(balance.transitions).max(initial=0.0) <= 1e-9 * scale, f"seed {seed}: energy gained"
    assert not run.warnings, f"seed {seed}: {run.warnings}"


@pytest.mark.parametrize("rods", [2, 4])
def test_random_impositions_gain_no_energy(rods: int) -> None:
    graph = fsm_dyn.compile(chain(rods, imposed=random_impositions(rods)))
    for seed in range(4):
        check_random_run(graph, seed)


def test_random_contacts_and_pins_gain_no_energy() -> None:
    imposed = {"touch": {"contact": ["disc", "block"], **SURFACES}, "pin": {"pin": ["D", "ground"]},
               "weld": {"weld": ["box", "ball"]}}  # fmt: skip
    graph = fsm_dyn.compile(disc_above_box(contacts=ON_BENCH, imposed=imposed))
    for seed in range(6):
        check_random_run(graph, seed, 0.8, random_start=False)


@pytest.mark.long
@pytest.mark.parametrize(("name", "until"), [("cart_on_ramp", 0.5), ("latch_door", 0.3), ("piano_action", 0.05)])
def test_random_impositions_on_shipped_models_gain_no_energy(name: str, until: float) -> None:
    """Pins and welds of their bodies, and held coordinates, with contacts that open and close meanwhile."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(name))
    mechanism = simulator.graph.automaton.mechanism
    for k, (body, one) in enumerate(list(mechanism.bodies.items())[:2]):
        simulator = simulator.constrain(f"pin_{k}", pin=(str(one.center), "ground"), at=10.0, until=11.0)
        if one.frame:
            simulator = simulator.constrain(f"weld_{k}", weld=(str(body), "ground"), at=10.0, until=11.0)
    held = str(next(iter(mechanism.coordinates)))
    simulator = simulator.constrain("held", coordinate=held, at=10.0, until=11.0)
    for seed in range(20):
        check_random_run(simulator.graph, seed, until, random_start=False)


def test_rows_that_no_motion_breaks_are_redundant() -> None:
    """A wheel about its own centre, welded to its rod: two of three rows are rounding."""
    wheel = {
        "frame": "K", "center": "J2", "mass": "0.5 kg", "inertia": {"zz": "0.01 kg*m^2"},
    }  # fmt: skip
    model = chain(2, imposed={"weld": {"weld": ["wheel", "rod2"]}, "pin": {"pin": ["J1", "ground"]}})
    model["coordinates"]["k"] = "rad"
    model["frames"]["K"] = {"rotate": {"z": "k"}}
    model["bodies"]["wheel"] = wheel
    graph = fsm_dyn.compile(model)
    inputs = {
        "weld": {"steps": [[0, 0], [0.1, 1], [0.9, 0]]}, "pin": {"steps": [[0, 0], [0.2, 1], [0.35, 0], [0.6, 1]]}
    }  # fmt: skip
    for seed in range(4):
        draw = random.Random(seed)
        initial = {name: draw.uniform(-3.0, 3.0) for name in ("q1", "q2", "k", "k_dot")}
        run = fsm_dyn.simulate(graph, 1.0, inputs=inputs, initial=initial)
        q = run.sample(np.array([0.15, 0.5, 0.85])).q
        np.testing.assert_allclose(q[:, 2] - q[:, 1], q[0, 2] - q[0, 1], atol=1e-9)
        assert abs(run.energy.relative_residual) < 1e-6


def test_a_wheel_is_welded_to_a_cart_in_contact_and_pinned() -> None:
    """Rows of rounding next to those of a sliding contact, in decisions and in steps."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile("cart_on_ramp"))
    center = simulator.graph.automaton.mechanism.bodies["front_wheel"].center
    simulator = simulator.constrain("weld", weld=("front_wheel", "cart"), at=0.33, until=0.731)
    simulator = simulator.constrain("pin", pin=(str(center), "ground"), at=0.38, until=0.483)
    run = simulator.run(1.0)
    assert run.outcome.name == "done"
    assert abs(run.energy.relative_residual) < 1e-6


@pytest.mark.parametrize("strategy", ["online", "auto"])
def test_a_chart_of_other_bodies_is_not_kept_where_its_row_vanishes(strategy):
    """A bolt is pinned to the ground, later to the door in which it slides: one of the two rows has nothing to hold."""
    door = fsm_dyn.load("latch_door")
    graph = fsm_dyn.compile(with_settings(door, imposable=1))
    number = {name: k for k, name in enumerate(["ground", *door.bodies])}
    hand = {
        "hand_kind": 1, "hand_a": number["bolt"], "hand_b": {"steps": [[0, 0], [0.02, number["door"]]]},
        "hand_1": {"steps": [[0, 0], [0.005, 1], [0.01, 0], [0.03, 1]]},
    }  # fmt: skip
    run = fsm_dyn.simulate(graph, 0.05, inputs={**dict.fromkeys(door.inputs, 0.0), **hand}, strategy=strategy)
    assert run.modes[-1] == "out_closed+hand_1_x_engaged+hand_1_y_engaged"
    assert np.abs(run.q).max() < 1e-12
