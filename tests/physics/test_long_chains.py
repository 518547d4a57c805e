"""Elimination leaf to root against embedding with the mass matrix formed: two derivations that share only the geometry.

The tolerance, 1e-9 of the largest entry, leaves room for mass matrices whose condition is 1e5.
"""

import importlib

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from fsm_dyn.derive.derivation import derive
from fsm_dyn.derive.embedding import ActiveSet, embed
from fsm_dyn.derive.tree_embedding import embed_along_tree
from fsm_dyn.language.loader import load
from fsm_dyn.programs.program import Program
from mechanisms.chain import chain
from mechanisms.four_bar_row import four_bar_row, pendulum

TOLERANCE = 1e-9
LINKS = 9


def branched_in_space():
    """A trunk with branches, by joints of most kinds, one of them with Euler parameters; a spring between branches."""
    kinds = ["ball", "revolute", "universal", "revolute", "prismatic", "cylindrical", "revolute", "ball", "revolute"]
    joints, points, bodies = {}, {}, {}
    for i, (kind, before) in enumerate(zip(kinds, [0, 1, 2, 2, 4, 3, 6, 5, 1], strict=True), start=1):
        parent, at = (f"B{before}", f"P{before}") if before else ("N", "O")
        joint = {"parent": parent, "child": f"B{i}", "at": at}
        if kind == "universal":
            joint["axis"] = [f"{parent}.x", f"B{i}.y"]
        elif kind != "ball":
            joint["axis"] = f"{parent}.{'xyz'[i % 3]}"
        elif i > 1:
            joint["angles"] = "xyz"
        joints[f"j{i}"] = {kind: joint}
        points[f"P{i}"] = {"from": f"B{i}_origin", "at": f"0.5*B{i}.x + 0.2*B{i}.y"}
        points[f"G{i}"] = {"from": f"B{i}_origin", "at": f"0.2*B{i}.x - 0.1*B{i}.z"}
        inertia = {"xx": 0.1, "yy": 0.2, "zz": 0.25, "xy": 0.01, "yz": -0.02}
        bodies[f"b{i}"] = {"frame": f"B{i}", "center": f"G{i}", "mass": 1.0 + 0.1 * i, "inertia": inertia}
    loads = [
        {"gravity": "-g*N.z"},
        {"force": "2*B7.x - N.y", "at": "P8"},
        {"torque": "0.3*B5.y", "on": "b5", "reaction": "b3"},
        {"spring": {"between": ["P8", "P7"], "stiffness": 30, "free": 0.4, "damping": 2}},
    ]
    return {"fsm_dyn": 1, "name": "branched", "parameters": {"g": 9.81}, "joints": joints, "points": points,
            "bodies": bodies, "loads": loads}  # fmt: skip


def touching_the_ground():
    """A chain on a moved support, with springs at its hinges, a kinematic row, and contacts of all kinds at its end."""
    model = chain(LINKS)
    model["inputs"] = {"shift": "m", "pull": "N"}
    model["schedule"] = {"shift": {"expression": "0.01 m*sin(3 rad/s*t)"}}
    model["parameters"] |= {"k": "0.2 N*m", "mu": 0.4}
    model["coordinates"] = {"x": "m", "y": "m"}
    model["points"] |= {"S": {"from": "O", "at": "x*N.x + (y + shift)*N.y"}}
    for name in ("G1", "P1"):
        model["points"][name]["from"] = "S"
    model["joints"]["q1"]["revolute"]["at"] = "S"
    model["bodies"]["slider"] = {"center": "S", "mass": "0.3 kg"}
    model["speeds"] = {"v": "rate(x)"}
    model["constraints"] = {"rail": {"velocity": "dot(vel(S), N.y)", "kinematic": True}}
    model["contacts"] = {
        "ground": {
            "gap": "dot(pos(P9), N.y) + 0.7 m",
            "slip": "dot(vel(P9), N.x)",
            "friction": {"static": "mu", "kinetic": "mu"},
        },
        "felt": {"gap": "dot(pos(P5), N.y) + 0.4 m", "compliant": {"stiffness": "100 N/m", "exponent": 1}},
        "brake": {"dry_friction": {"speed": "v", "static": "2 N", "kinetic": "1 N"}},
    }
    model["loads"] += [{"torsion_spring": {"coordinate": f"q{i}", "stiffness": "k", "damping": "0.01 N*m*s"}}
                       for i in range(1, LINKS + 1)]  # fmt: skip
    model["loads"].append({"force": "pull*N.x", "at": "P9"})
    return model


def absolute_speeds():
    """Speeds that are not those of the joints."""
    model = chain(LINKS)
    model["speeds"] = {f"u{i}": f"dot(omega(B{i}), N.z)" for i in range(1, LINKS + 1)}
    for joint in model["joints"].values():
        joint["revolute"]["rates"] = False
    return model


def let_go():
    """Absolute coordinates: every joint is rows, and all inertia is on the diagonal."""
    return chain(LINKS) | {"joint_coordinates": "absolute", "initial": {}}


MODELS = {
    "chain": lambda: chain(LINKS),
    "loops": lambda: four_bar_row(4),
    "space": branched_in_space,
    "contacts": touching_the_ground,
    "speeds": absolute_speeds,
    "absolute": let_go,
}


@pytest.fixture(scope="module", params=MODELS)
def mechanism(request):
    return load(MODELS[request.param]())


def states(layout, quaternions, count=4):
    random = np.random.default_rng(11)
    for _ in range(count):
        x, c = random.uniform(-1.5, 1.5, layout.n_x), random.uniform(0.5, 1.5, layout.n_c)
        for first in quaternions:
            x[first : first + 4] /= np.linalg.norm(x[first : first + 4])
        yield random.uniform(0.0, 1.0), x, c


def assert_same(found, wanted):
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=TOLERANCE * max(1.0, np.abs(value).max(initial=0)))


def terms_program(terms):
    names = ["q_dot", "W", "X", "M", "f", "kinetic_energy", "potential_energy"]
    outputs = {name: getattr(terms, name) for name in names}
    outputs |= {"A": [node for row in terms.rows for node in row.A]}
    outputs |= {name: [getattr(row, name) for row in terms.rows] for name in ("b", "gamma")}
    outputs |= {"powers": list(terms.load_powers.values()), "points": [terms.points[name] for name in terms.points]}
    return terms.program(outputs)


def test_terms_are_those_derived_speed_by_speed(mechanism, monkeypatch):
    terms = derive(mechanism)
    assert terms.tree is not None
    monkeypatch.setattr(importlib.import_module("fsm_dyn.derive.derivation"), "is_long", lambda system: False)
    usual = derive(mechanism)
    assert usual.tree is None
    found, wanted = terms_program(terms), terms_program(usual)
    for state in states(terms.layout, terms.quaternions):
        assert_same(found.evaluate(*state), wanted.evaluate(*state))


def test_accelerations_and_forces_are_those_of_the_dense_embedding(mechanism):
    automaton = fsm_dyn.compile(mechanism).automaton
    system = automaton.system
    assert system.tree is not None
    layout, n_c = automaton.terms.layout, len(automaton.contacts)
    combinations = [(0,) * n_c] if n_c == 0 else [(0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 0)]
    for codes in combinations:
        active = ActiveSet.of(system, codes)
        t, x, c = next(states(layout, automaton.quaternions, 1))
        samples = automaton.samples(codes, t, x, c, loops_closed=False)
        with system.graph.scratch():
            usual = embed(system, active, samples)
            along = embed_along_tree(system, active, samples, usual.chart)
            programs = [
                Program.from_nodes(
                    layout, {"u_dot": one.accelerations, "u": one.speeds, "force": one.multipliers, "pivot": one.pivots}
                )
                for one in (along, usual)
            ]
        for state in states(layout, automaton.quaternions):
            found, wanted = (program.evaluate(*state) for program in programs)
            for name in ("u_dot", "u", "force"):
                assert_same({name: found[name]}, {name: wanted[name]})


def test_a_sliding_contact_is_embedded_with_the_mass_matrix():
    """Friction in units of the normal force makes the equations unsymmetric, which the recursion is not made for."""
    automaton = fsm_dyn.compile(load(touching_the_ground())).automaton
    active = ActiveSet.of(automaton.system, (2, 0, 0))
    assert embed_along_tree(automaton.system, active, {}) is None


def test_operations_grow_with_the_number_of_links():
    counts = {n: fsm_dyn.compile(chain(n)).automaton.modes[0].programs.full.counts().total for n in (10, 20, 40)}
    assert counts[40] - counts[20] == pytest.approx(2 * (counts[20] - counts[10]), rel=0.02)
    assert counts[40] <= 115 * 40


def test_a_row_of_parallelograms_is_one_pendulum():
    """Integrated apart as ``I q'' = K sin(q)``, with a step whose error is below 1e-10."""
    graph = fsm_dyn.compile(four_bar_row(5))
    run = fsm_dyn.simulate(graph, until=1.0, rtol=1e-11, atol=1e-12)
    inertia, moment = pendulum(5, 1.0, 1.0, 9.81)
    q, rate, h = 0.5, 1.0, 1e-3

    def slope(q, rate):
        return np.array([rate, moment / inertia * np.sin(q)])

    y = np.array([q, rate])
    for _ in range(1000):
        k1 = slope(*y)
        k2 = slope(*(y + 0.5 * h * k1))
        k3 = slope(*(y + 0.5 * h * k2))
        k4 = slope(*(y + h * k3))
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    rods = [graph.automaton.terms.layout.q.index(f"rod{i}") for i in range(6)]
    np.testing.assert_allclose(run.q[-1, rods], y[0], rtol=0, atol=1e-8)


def test_a_long_row_passes_its_change_points_when_its_pendulum_lies_flat():
    """Rows of many loops are looked at every some hundred short steps, unless they may lose rank before."""
    graph = fsm_dyn.compile(four_bar_row(24))
    run = fsm_dyn.simulate(graph, until=1.0, method="rk4", step=2e-4)
    inertia, moment = pendulum(24, 1.0, 1.0, 9.81)
    flat = solve_ivp(
        lambda t, y: [y[1], moment / inertia * np.sin(y[0])], (0.0, 1.0), [0.5, 1.0], method="DOP853",
        events=lambda t, y: np.cos(y[0]), rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    assert len(flat.t_events[0]) == 2
    np.testing.assert_allclose([passage.time for passage in run.change_points], flat.t_events[0], rtol=0, atol=1e-7)


def test_a_saved_long_chain_gives_the_same_modes(tmp_path):
    graph = fsm_dyn.compile(chain(LINKS))
    graph.save(tmp_path / "chain.json")
    automaton = fsm_dyn.open_graph(tmp_path / "chain.json").automaton
    assert automaton.pattern == graph.automaton.pattern
    x, c = np.full(2 * LINKS, 0.3), np.ones(automaton.terms.layout.n_c)
    again = automaton.derive((), 0.0, x, c)
    np.testing.assert_array_equal(
        again.programs.rhs.evaluate(0.0, x, c)["x_dot"],
        graph.automaton.modes[0].programs.rhs.evaluate(0.0, x, c)["x_dot"],
    )


@pytest.mark.parametrize(("name", "twin"), [("chain", chain(10)), ("four_bar_row", four_bar_row(4))])
def test_the_shipped_models_are_those_of_their_twins(name, twin):
    found, wanted = fsm_dyn.load(name), load(twin)
    assert list(found.points) == list(wanted.points)
    assert list(found.joints) == list(wanted.joints)
    one, other = (fsm_dyn.compile(model).automaton.modes[0].programs.full for model in (found, wanted))
    assert one == other
