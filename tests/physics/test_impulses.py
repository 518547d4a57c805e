"""Impulses of transitions against the equations of impulse and momentum, written out by hand or solved by NumPy.

A run adds the change of speeds to sums of a few products: they differ by rounding, some 1e-15 of numbers
around 1, for which ``ROUNDING`` leaves room.
"""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError

ROUNDING = 1e-13
AT = 0.25  # s
BLOCK = {
    "fsm_dyn": 1,
    "name": "block",
    "parameters": {"m": "2 kg", "mu": 0.5},
    "coordinates": {"x": "m", "y": "m"},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"block": {"center": "C", "mass": "m"}},
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    "contacts": {"ground": {"gap": "y", "slip": "rate(x)", "friction": {"static": "mu", "kinetic": "mu"}}},
}


def tapped(model, *impulses, when=f"t - {AT} s", **keys):
    """Return a model with impulses at a time."""
    return {**model, "transitions": [{"from": "*", "when": when, "impulse": list(impulses), **keys}]}


def jump(run, number=0):
    """Return how a transition changes the speeds."""
    return run.transitions[number].u_after - run.transitions[number].u_before


@pytest.mark.parametrize("method", ["dopri5", "rk4", "heun", "euler", "radau", "bdf"])
def test_a_tap_off_the_center_of_a_free_rod(method):
    rod = {
        "fsm_dyn": 1,
        "name": "rod",
        "coordinates": {"x": "m", "y": "m", "q": "rad"},
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}, "E": {"from": "C", "at": "0.3 m*B.x"}},
        "bodies": {"rod": {"center": "C", "frame": "B", "mass": "2 kg", "inertia": {"zz": "0.06 kg*m^2"}}},
        "initial": {"q": "0.4 rad"},
    }
    graph = fsm_dyn.compile(tapped(rod, {"linear": "0.5 N*s*N.y", "at": "E"}, because="a tap"))
    run = fsm_dyn.simulate(graph, 0.5, method=method, step=0.01 if method in ("rk4", "heun", "euler") else None)
    assert [item.cause for item in run.transitions] == ["a tap"]
    assert run.transitions[0].time == pytest.approx(AT, abs=2e-12)  # where it falls on a step
    wanted = [0.0, 0.5 / 2.0, 0.5 * 0.3 * math.cos(0.4) / 0.06]
    assert jump(run) == pytest.approx(wanted, abs=ROUNDING)
    assert run.u[-1] == pytest.approx(wanted, abs=1e-9)  # no force afterwards


def test_an_explosion_between_two_carts_keeps_momentum():
    carts = {
        "fsm_dyn": 1,
        "name": "carts",
        "coordinates": {"a": "m", "b": "m"},
        "points": {"A": {"from": "O", "at": "a*N.x"}, "B": {"from": "O", "at": "b*N.x"}},
        "bodies": {"left": {"center": "A", "mass": "3 kg"}, "right": {"center": "B", "mass": "0.7 kg"}},
        "initial": {"a": "0 m", "b": "0.5 m", "a_dot": "0.2 m/s", "b_dot": "0.2 m/s"},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(tapped(carts, {"along": "0.9 N*s", "between": ["A", "B"]})), 0.5)
    change = jump(run)
    assert change == pytest.approx([-0.9 / 3.0, 0.9 / 0.7], abs=ROUNDING)
    assert 3.0 * change[0] + 0.7 * change[1] == pytest.approx(0.0, abs=ROUNDING)


def test_a_couple_and_its_reaction():
    wheels = {
        "fsm_dyn": 1,
        "name": "wheels",
        "coordinates": {"a": "rad", "b": "rad"},
        "frames": {"A": {"rotate": {"z": "a"}}, "B": {"rotate": {"z": "b"}}},
        "bodies": {
            "wheel": {"center": "O", "frame": "A", "mass": "1 kg", "inertia": {"zz": "0.5 kg*m^2"}},
            "rotor": {"center": "O", "frame": "B", "mass": "1 kg", "inertia": {"zz": "0.2 kg*m^2"}},
        },
    }
    couple = {"angular": "0.1 N*m*s*N.z", "on": "wheel", "reaction": "rotor"}
    run = fsm_dyn.simulate(fsm_dyn.compile(tapped(wheels, couple, {"along": "0.3 N*m*s", "coordinate": "b"})), 0.5)
    assert jump(run) == pytest.approx([0.1 / 0.5, (0.3 - 0.1) / 0.2], abs=ROUNDING)


@pytest.mark.parametrize(("down", "aside"), [(3.0, 1.0), (3.0, 1.5 - 1e-6), (3.0, 2.5), (3.0, -2.5), (-1.0, 2.0)])
def test_a_block_on_a_floor_is_struck(down, aside):
    """The floor answers by at most ``mu`` times what presses on it (Coulomb); pulled up, the block leaves it."""
    struck = tapped(BLOCK, {"linear": f"{aside} N*s*N.x - {down} N*s*N.y", "at": "C"})
    run = fsm_dyn.simulate(fsm_dyn.compile(struck), 0.26, initial={"y": 0.0, "x": 0.0})
    reaction = max(down, 0.0)
    friction = min(0.5 * reaction, abs(aside))
    wanted = [(aside - math.copysign(friction, aside)) / 2.0, max(-down, 0.0) / 2.0]
    assert jump(run) == pytest.approx(wanted, abs=ROUNDING)
    found = run.transitions[0].impulse.get("ground", np.zeros(2))
    assert np.abs(found) == pytest.approx([reaction, friction], abs=ROUNDING)


def test_what_holds_a_loop_together_answers():
    """A pendulum in Cartesian coordinates: the rod takes what is along it."""
    pendulum = {
        **{key: BLOCK[key] for key in ("fsm_dyn", "parameters", "coordinates", "points", "bodies", "loads")},
        "name": "pendulum",
        "constraints": {"rod": {"position": "x**2 + y**2 - 1 m^2"}},
        "initial": {"x": "0.6 m", "y": "-0.8 m", "x_dot": 0, "y_dot": 0},
    }
    graph = fsm_dyn.compile(tapped(pendulum, {"linear": "1.2 N*s*N.x + 0.3 N*s*N.y", "at": "C"}))
    run = fsm_dyn.simulate(graph, 0.5)
    (at,) = np.flatnonzero(run.t == run.transitions[0].time)[[-1]]
    along = run.q[at] / np.linalg.norm(run.q[at])
    push = np.array([1.2, 0.3])
    assert jump(run) == pytest.approx((push - push @ along * along) / 2.0, abs=1e-11)  # speeds off by the projection
    assert run.energy.residual == pytest.approx(0.0, abs=1e-7)


def test_a_knife_edge_takes_what_is_across_it():
    """Fewer speeds than coordinates: the constraint is part of the speeds, and nothing is left of a push across."""
    sledge = {
        "fsm_dyn": 1,
        "name": "sledge",
        "coordinates": {"x": "m", "y": "m", "q": "rad"},
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}, "E": {"from": "C", "at": "0.3 m*B.x"}},
        "bodies": {"sledge": {"center": "C", "frame": "B", "mass": "2 kg", "inertia": {"zz": "0.06 kg*m^2"}}},
        "speeds": {"v": "dot(vel(C), B.x)", "w": "rate(q)"},
        "constraints": {"edge": {"velocity": "dot(vel(C), B.y)", "kinematic": True}},
        "initial": {"q": "0.4 rad"},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(tapped(sledge, {"linear": "0.5 N*s*N.y", "at": "E"})), 0.5)
    assert jump(run) == pytest.approx([0.5 * math.sin(0.4) / 2.0, 0.5 * 0.3 * math.cos(0.4) / 0.06], abs=ROUNDING)


@pytest.mark.parametrize("count", [3, 14])
def test_the_end_of_a_chain_is_struck(count):
    """Against ``M du = J``, with M from the mode and J by central differences; 14 links are derived along the tree."""
    data = {
        "fsm_dyn": 1,
        "name": "links",
        "coordinates": {f"q{i}": "rad" for i in range(count)},
        "frames": {f"B{i}": {"parent": f"B{i - 1}" if i else "N", "rotate": {"z": f"q{i}"}} for i in range(count)},
        "points": {
            **{f"P{i + 1}": {"from": f"P{i}" if i else "O", "at": f"0.2 m*B{i}.x"} for i in range(count)},
            **{f"C{i}": {"from": f"P{i}" if i else "O", "at": f"0.1 m*B{i}.x"} for i in range(count)},
        },
        "bodies": {
            f"link{i}": {"center": f"C{i}", "frame": f"B{i}", "mass": "1 kg", "inertia": {"zz": "0.01 kg*m^2"}}
            for i in range(count)
        },
        "initial": {f"q{i}": f"{0.3 + 0.1 * i} rad" for i in range(count)},
    }
    push = np.array([0.4, -0.7])
    graph = fsm_dyn.compile(tapped(data, {"linear": "0.4 N*s*N.x - 0.7 N*s*N.y", "at": f"P{count}"}, when="t - 1 us"))
    run = fsm_dyn.simulate(graph, 2e-6)
    q = np.array([0.3 + 0.1 * i for i in range(count)])

    def end(q):
        angles = np.cumsum(q)
        return 0.2 * np.array([np.cos(angles).sum(), np.sin(angles).sum()])

    partial = np.array([(end(q + 1e-6 * e) - end(q - 1e-6 * e)) / 2e-6 for e in np.eye(count)])
    mass = np.asarray(next(iter(graph.modes.values())).mass_matrix(q))
    wanted = np.linalg.solve(mass, partial @ push)
    assert jump(run) == pytest.approx(wanted, abs=1e-8 * np.abs(wanted).max())  # of the differences


def test_on_an_event_of_a_contact_and_counted():
    """A kick at every landing, three times; memory is set with it."""
    ball = {
        **{key: BLOCK[key] for key in ("fsm_dyn", "parameters", "coordinates", "points", "bodies", "loads")},
        "name": "kicked",
        "contacts": {"ground": {"gap": "y", "restitution": 0.5}},
        "memory": {"kicks": 0},
        "transitions": [
            {
                "from": "*",
                "on": "ground closes",
                "impulse": [{"linear": "where(kicks < 3, 4 N*s, 0 N*s)*N.y", "at": "C"}],
                "set": {"kicks": "kicks + 1"},
            }
        ],
        "initial": {"x": 0, "y": "1 m"},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(ball), 2.0)
    speed = math.sqrt(2 * 9.81)
    for number in range(2):
        before, speed = -speed, 0.5 * speed + 2.0
        assert run.transitions[number].u_before[1] == pytest.approx(before, rel=1e-9)
        assert run.transitions[number].u_after[1] == pytest.approx(speed, rel=1e-9)


def test_strategies_agree_to_the_bit():
    struck = tapped(BLOCK, {"linear": "2 N*s*N.x - 3 N*s*N.y", "at": "C"})
    runs = [
        fsm_dyn.simulate(fsm_dyn.compile(struck), 0.5, initial={"y": 0.0, "x": 0.0}, strategy=strategy)
        for strategy in ("compiled", "auto")
    ]
    assert np.array_equal(jump(runs[0]), jump(runs[1]))
    with pytest.raises(InputError, match="user-defined transitions"):
        fsm_dyn.simulate(fsm_dyn.compile(struck), 0.5, method="moreau_jean", step=1e-3)


def test_written_by_calls_and_back(tmp_path):
    model = fsm_dyn.Model("rod")
    model.coordinate("x", "m").point("C", from_="O", at="x*N.x").body("b", center="C", mass="2 kg")
    model.transition(from_="*", when="t - 0.1 s", impulse=[{"linear": "1 N*s*N.x", "at": "C"}])
    (tmp_path / "rod.yaml").write_text(model.to_yaml(), encoding="utf-8")
    again = fsm_dyn.load(fsm_dyn.Model.from_yaml(tmp_path / "rod.yaml"))
    assert again.transitions[0].impulses[0].value.text == "1 N*s*N.x"
    assert jump(fsm_dyn.simulate(fsm_dyn.compile(again), 0.2)) == pytest.approx([0.5], abs=ROUNDING)


DRIVEN = {"constraints": {"motor": {"position": "x - 0.1 m*sin(3*t/1 s)"}}}


@pytest.mark.parametrize(
    ("impulse", "more", "words"),
    [
        ({"linear": "1 N*N.x", "at": "C"}, {}, "N"),
        ({"linear": "1 N*s*N.x"}, {}, "lacks the key 'at'"),
        ({"linear": "1 N*s*N.x", "at": "Q"}, {}, "point"),
        ({"linear": "1 N*s", "at": "C"}, {}, "vector"),
        ({"linear": "1 N*s*N.x", "at": "C", "between": ["C", "O"]}, {}, "does not go with"),
        ({"angular": "1 N*m*s*N.z", "on": "block"}, {}, "particle"),
        ({"along": "1 N*s"}, {}, "coordinate"),
        ({"along": "1 N*s", "coordinate": "x"}, DRIVEN, "driven coordinate"),
        ({"force": "1 N*s*N.x", "at": "C"}, {}, "no key 'force'"),
        ([], {}, "without an effect"),
        ("1 N*s*N.x", {}, "an impulse"),
    ],
)
def test_what_is_no_impulse_is_refused(impulse, more, words):
    entry = impulse if isinstance(impulse, list) else [impulse]
    with pytest.raises(ModelError, match=words):
        fsm_dyn.load({**tapped(BLOCK, *entry), **more})


def test_impulses_with_a_reset_or_on_massless_points_are_refused():
    struck = tapped(BLOCK, {"linear": "1 N*s*N.x", "at": "C"}, reset={"x": "0 m"})
    with pytest.raises(ModelError, match="does not go with 'reset'"):
        fsm_dyn.load(struck)
    light = {**BLOCK, "coordinates": {"x": "m", "y": "m", "z": "m"}, "loads": []}
    light["points"] = {**BLOCK["points"], "Z": {"from": "O", "at": "z*N.x"}}
    with pytest.raises(ModelError, match="singular along z_dot"):
        fsm_dyn.compile(tapped(light, {"linear": "1 N*s*N.x", "at": "Z"}))


def test_a_lock_with_a_limit_is_released():
    """An impulse is a force without bound: the lock that holds up to 5 N does not hold it."""
    magnet = {
        **{key: BLOCK[key] for key in ("fsm_dyn", "parameters", "coordinates", "points", "bodies")},
        "name": "magnet",
        "contacts": {"magnet": {"lock": {"position": "x", "holds_to": "5 N"}}},
        "modes": {"held": {"magnet": "engaged"}, "free": {"magnet": "released"}},
        "initial": {"x": "0 m", "y": "0 m", "mode": "held"},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(tapped(magnet, {"linear": "2 N*s*N.x", "at": "C"})), 0.3)
    assert [(item.source, item.target) for item in run.transitions] == [("held", "free")]
    assert run.u[-1] == pytest.approx([1.0, 0.0], abs=ROUNDING)


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_a_lock_engages_with_an_impulse_while_a_contact_is_closed(order):
    """Two masses on one axis take their common speed; a block that is on the floor stays there."""
    model = {
        "fsm_dyn": 1, "name": "coupling", "impacts": order,
        "coordinates": {"a": "m", "b": "m", "y": "m"},
        "points": {"A": {"from": "O", "at": "a*N.x"}, "B": {"from": "O", "at": "b*N.x"},
                   "Y": {"from": "O", "at": "y*N.y"}},
        "bodies": {"one": {"center": "A", "mass": "1 kg"}, "two": {"center": "B", "mass": "3 kg"},
                   "third": {"center": "Y", "mass": "2 kg"}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "contacts": {"clutch": {"lock": {"velocity": "rate(a) - rate(b)"}}, "ground": {"gap": "y", "restitution": 0.5}},
        "modes": {"apart": {"clutch": "released", "ground": "closed"},
                  "together": {"clutch": "engaged", "ground": "closed"}},
        "transitions": [{"from": "apart", "to": "together", "when": f"t - {AT} s"}],
        "initial": {"a_dot": "2 m/s", "b_dot": "-1 m/s", "mode": "apart"},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 2 * AT)
    common = (1.0 * 2.0 + 3.0 * -1.0) / 4.0
    engaged = run.transitions[-1]
    assert engaged.u_after == pytest.approx([common, common, 0.0], abs=ROUNDING)
    assert engaged.energy_lost == pytest.approx(0.5 * 0.75 * 3.0**2, rel=1e-12)  # of the reduced mass
    assert run.u[-1] == pytest.approx([common, common, 0.0], abs=1e-9)


def test_newtons_and_poissons_law_in_one_impact():
    """A point that strikes floor and wall at once rebounds from each by the law of each."""
    model = {
        **BLOCK,
        "contacts": {
            "ground": {"gap": "y", "restitution": 0.5},
            "wall": {"gap": "x", "restitution": 0.8, "restitution_law": "poisson"},
        },
        "loads": [],
        "initial": {"x": "0.5 m", "y": "0.25 m", "x_dot": "-2 m/s", "y_dot": "-1 m/s"},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.5)
    (strike,) = run.transitions
    assert strike.time == pytest.approx(AT, rel=1e-12)
    assert strike.u_after == pytest.approx([1.6, 0.5], abs=1e-12)
