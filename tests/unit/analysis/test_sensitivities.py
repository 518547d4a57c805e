"""Sensitivities across transitions against central differences of whole runs, to 1e-6."""

import math

import numpy as np
import pytest
import yaml

import fsm_dyn
from fsm_dyn.analysis.sensitivities import sensitivities
from tests.physics.variants import STACK, shipped

CASES = {
    "two rebounds": ("bouncing_ball", 1.5, {"y": 1.0, "v": 0.2}, ["e", "g"], 2),
    "four strokes": ("pendulum_with_stop", 1.9, {"theta": 1.2, "omega_b": 0.1}, ["e", "l", "stop"], 4),
    "slides, then rolls": ("rolling_disk", 0.9, {"u2": -4.0, "u1": 0.1}, ["mu", "phi", "r"], 1),
    "lifted off and landed": ("rolling_disk", 3.0, {"u2": -4.0, "u1": 0.1}, ["mu", "r"], 4),
    "strokes on wall and ground": (
        "ball_in_corner",
        0.6,
        {"x": 0.3, "y": 0.3, "vx": -1.0, "vy": 0.2, "w": 5.0},
        ["mu", "e_ground", "slope"],
        3,
    ),
    "a ball by Poisson": (
        shipped("ball_in_corner", law="poisson"),
        0.6,
        {"x": 0.3, "y": 0.3, "vx": -1.0, "vy": 0.2, "w": 5.0},
        ["mu", "e_ground", "slope"],
        3,
    ),
    "a ball in sequence": (
        shipped("ball_in_corner", impacts="sequential"),
        0.6,
        {"x": 0.3, "y": 0.3, "vx": -1.0, "vy": 0.2, "w": 5.0},
        ["mu", "e_ground"],
        3,
    ),
    "a box on one corner, until it rests there": (
        "box_on_table",
        0.35,
        {"mode": "in_air", "q": 0.4, "y": 0.4, "vx": 0.5, "w": 1.0},
        ["mu", "e"],
        7,
    ),
    "a stack of bodies": (yaml.safe_load(STACK), 0.36, {"y1": 0.1, "y2": 0.35, "y3": 0.5}, ["e", "m2"], 10),
    "caster breaks away": ("shopping_cart", 4.0, {"u1": 0.5, "q4": 0.4}, ["tau_slip", "tau_stick", "L3"], 4),
}


def end(graph, until, parameters, initial):
    run = fsm_dyn.simulate(graph, until=until, parameters=parameters, initial=initial, rtol=1e-12, atol=1e-14)
    return np.concatenate([run.q[-1], run.u[-1]])


@pytest.mark.parametrize("case", CASES)
def test_against_differences_of_runs(case):
    model, until, initial, parameters, transitions = CASES[case]
    graph = fsm_dyn.compile(model)
    found = sensitivities(
        graph, until, by_initial=[name for name in initial if name != "mode"], by_parameters=parameters, initial=initial
    )
    assert len(found.saltations) >= transitions
    for name, column in (found.by_initial | found.by_parameters).items():
        here = initial.get(name, graph.values.get(name))
        step = 1e-6 * max(1e-2, abs(here))
        ends = [
            end(graph, until, {name: here + h} if name in parameters else None,
                initial if name in parameters else {**initial, name: here + h})
            for h in (step, -step)
        ]  # fmt: skip
        expected = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(column, expected, atol=1e-6 * max(1.0, np.abs(expected).max()), err_msg=name)


@pytest.mark.parametrize(
    ("model", "until", "initial", "why"),
    [
        (
            shipped("box_on_table", law="poisson"),
            0.35,
            {"mode": "in_air", "q": 0.4, "y": 0.4, "vx": 0.5, "w": 1.0},
            "Poisson",
        ),
        ("newtons_cradle", 1.2, None, "impacts were sequential"),
        (yaml.safe_load(STACK) | {"impacts": "sequential"}, 0.5, {"y1": 0.1, "y2": 0.35, "y3": 0.5}, "sequential"),
    ],
    ids=["poisson", "cradle", "stack"],
)
def test_an_impact_without_a_fixed_linear_system_is_refused_by_its_law(model, until, initial, why):
    with pytest.raises(fsm_dyn.RunError, match=why):
        sensitivities(fsm_dyn.compile(model), until, initial=initial)


def test_a_limited_rebound_is_refused_with_its_share():
    thrown = {"mode": "in_air", "q": 1.54, "y": 0.5, "vx": 1.64, "w": 1.98}
    with pytest.raises(fsm_dyn.RunError, match=r"reduced to 0\.943"):
        sensitivities(fsm_dyn.compile("box_on_table"), 0.5, initial=thrown, parameters={"e": 0.9, "mu": 0.6})


def test_a_fall_without_transitions_is_the_closed_form():
    found = sensitivities(
        fsm_dyn.compile("bouncing_ball"), 0.4, by_initial=["y", "v"], by_parameters=["g"], initial={"y": 1.0}
    )
    np.testing.assert_allclose(found.by_initial["y"], [1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(found.by_initial["v"], [0.4, 1.0], atol=1e-9)
    np.testing.assert_allclose(found.by_parameters["g"], [-0.08, -0.4], atol=1e-9)


def test_saltation_of_a_rebound_is_the_closed_form():
    """For a ball: S = [[-e, 0], [(1 + e) g / v⁻, -e]] with its speed v⁻ < 0 before."""
    found = sensitivities(fsm_dyn.compile("bouncing_ball"), 0.7, initial={"y": 1.0})
    speed = -np.sqrt(2 * 9.81)
    np.testing.assert_allclose(
        found.saltations[0], [[-0.8, 0.0], [-(1.8) * 9.81 / speed, -0.8]], atol=1e-8, err_msg=str(found.saltations)
    )


def test_unknown_names():
    graph = fsm_dyn.compile("bouncing_ball")
    with pytest.raises(fsm_dyn.InputError, match="no coordinate or speed"):
        sensitivities(graph, 1.0, by_initial=["z"])
    with pytest.raises(fsm_dyn.InputError, match="no parameter"):
        sensitivities(graph, 1.0, by_parameters=["gg"])


def differences(graph, until, name, parameters=None, initial=None, step=1e-6):
    """Central differences of the end of a run, by a parameter or an initial value."""
    sides = []
    for sign in (1.0, -1.0):
        given = [dict(parameters or {}), dict(initial or {})]
        kind = 0 if name in graph.values else 1
        given[kind][name] = given[kind].get(name, graph.values.get(name)) + sign * step
        sides.append(end(graph, until, given[0], given[1]))
    return (sides[0] - sides[1]) / (2 * step)


def model(coordinates, **sections):
    """Particles of 1 kg, one for each coordinate, along N.y, with weight."""
    return {
        "fsm_dyn": 1, "name": "particles", "parameters": {"e": 0.5, "g": 9.81}, "coordinates": list(coordinates),
        "points": {f"P{q}": {"from": "O", "at": f"{q}*N.y"} for q in coordinates},
        "bodies": {f"b{q}": {"center": f"P{q}", "mass": 1} for q in coordinates},
        "loads": [{"gravity": "-g*N.y"}, *sections.pop("loads", [])],
        **sections,
    }  # fmt: skip


KEPT = model(
    "y",
    memory={"v": 0, "n": 0},
    contacts={"gr": {"gap": "y", "restitution": "e"}},
    loads=[{"force": "-0.3*v*N.y - 0.1*n*N.y", "at": "Py"}],
    transitions=[{"from": "*", "on": "gr closes", "set": {"v": "y_dot + 0.5*v", "n": "n + 1"}}],
    initial={"y": 1},
)


def test_memory_that_keeps_a_speed_varies_with_it():
    graph = fsm_dyn.compile(KEPT)
    found = sensitivities(graph, 1.3, by_initial=["y"], by_parameters=["e", "g"], initial={"y": 1.0})
    assert len(found.saltations) >= 2
    for name, column in (found.by_initial | found.by_parameters).items():
        expected = differences(graph, 1.3, name, initial={"y": 1.0})
        np.testing.assert_allclose(column, expected, rtol=1e-6, atol=1e-7, err_msg=name)


def flat(other):
    """Two particles on the ground, or one on two grounds."""
    names = "y" if other == "y" else "yz"
    contacts = {"one": {"gap": "y", "restitution": "e"}, "two": {"gap": other, "restitution": "e"}}
    return model(names, contacts=contacts, initial=dict.fromkeys(names, 1))


def test_guards_that_fire_together_are_refused_by_name():
    graph = fsm_dyn.compile(flat("z"))
    with pytest.raises(fsm_dyn.RunError, match="gap of one and gap of two fire together") as refused:
        sensitivities(graph, 0.6, by_initial=["y"])
    assert "initial=" in str(refused.value)
    found = sensitivities(graph, 0.6, by_initial=["y"], initial={"z": 1.2})  # the remedy
    assert len(found.saltations) == 2
    with pytest.raises(fsm_dyn.RunError, match="fire together"):
        sensitivities(fsm_dyn.compile("box_on_table"), 0.5, by_parameters=["e"], initial={"mode": "in_air", "y": 0.6})


def test_guards_on_one_surface_fire_together_and_pass():
    graph = fsm_dyn.compile(flat("y"))
    found = sensitivities(graph, 0.6, by_initial=["y"], by_parameters=["e"], initial={"y": 1.0})
    for name, column in (found.by_initial | found.by_parameters).items():
        np.testing.assert_allclose(column, differences(graph, 0.6, name, initial={"y": 1.0}), atol=1e-6)


@pytest.mark.parametrize("bound", [0.0, 1.0])
def test_a_parameter_at_its_bound_is_differentiated_from_within(bound):
    graph = fsm_dyn.compile(model("y", contacts={"gr": {"gap": "y", "restitution": "e"}}, initial={"y": 1}))
    until = 0.6
    found = sensitivities(graph, until, by_parameters=["e"], parameters={"e": bound}).by_parameters["e"]
    impact = math.sqrt(2 / 9.81)
    expected = [9.81 * impact * (until - impact), 9.81 * impact]
    # with little restitution the ball rests by then
    np.testing.assert_allclose(found, expected if bound else [0.0, 0.0], atol=1e-8)


def test_a_start_at_a_bound_is_differentiated_from_within():
    """The range ends at the start of the motion, and differences would leave it."""
    falls = model("y", initial={"y": "2*h"})
    falls["parameters"]["h"] = 0.5
    falls["coordinates"] = {"y": {"range": [-10, "1"]}}
    found = sensitivities(fsm_dyn.compile(falls), 0.3, by_initial=["y"], by_parameters=["h"])
    np.testing.assert_allclose(found.by_initial["y"], [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.by_parameters["h"], [2.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "initial", "parameters"),
    [
        ("four_bar", None, ("l1", "l2", "l3")),  # loops
        ("slider_crank", None, ("r",)),
        ("cam_roller_follower", None, ("I1", "k")),
        ("rattleback", None, ("a", "b")),  # Euler parameters
        ("escapement_anchor", None, ("m_weight",)),
        ("push_button", {"settle": True}, ("w", "h", "pretension", "m")),  # a rest
        ("pendulum_with_stop", {"theta": 0.5, "settle": True, "mode": "leaning"}, ("stop",)),
    ],
)
def test_starts_are_differentiated_exactly(name, initial, parameters):
    graph = fsm_dyn.compile(name)
    for parameter in parameters:
        if parameter not in graph.values:
            parameter = next(key for key, value in graph.values.items() if isinstance(value, float))
        found = sensitivities(graph, 1e-7, by_parameters=[parameter], initial=initial).by_parameters[parameter]
        step = 1e-5 * max(abs(graph.values[parameter]), 1e-3)
        expected = differences(graph, 1e-7, parameter, initial=initial, step=step)
        np.testing.assert_allclose(found, expected, atol=1e-6 * max(1.0, np.abs(expected).max()), err_msg=parameter)


def test_a_start_that_what_is_given_determines_no_longer_is_refused():
    with pytest.raises(fsm_dyn.RunError, match="with q given it satisfies 'stops_upper'") as refused:
        sensitivities(fsm_dyn.compile("toggle_switch"), 0.1, by_parameters=["stop"])
    assert "leave q out" in str(refused.value)


def test_schedules_that_depend_on_a_parameter_are_refused():
    driven = model("y", inputs={"w": {"expression": "F*sin(t)"}}, loads=[{"force": "w*N.y", "at": "Py"}])
    driven["parameters"] |= {"F": 2, "T": 0.3}
    graph = fsm_dyn.compile(driven)
    with pytest.raises(fsm_dyn.InputError, match="no derivative by 'F': the input 'w' depends on it"):
        sensitivities(graph, 1.0, by_parameters=["F"])
    sensitivities(graph, 1.0, by_parameters=["F"], inputs={"w": 1.0})
    switched = model("y", loads=[{"force": "where(t < T, 1, 0)*N.y", "at": "Py"}])
    switched["parameters"]["T"] = 0.3
    with pytest.raises(fsm_dyn.InputError, match="no derivative by 'T': an instant at which the model switches"):
        sensitivities(fsm_dyn.compile(switched), 1.0, by_parameters=["T"])


def test_zeno_ends_of_several_contacts_pass():
    """Two particles one above the other come to rest at once; a third is driven by how far they are apart."""
    stack = model(
        "xyz",
        contacts={"low": {"gap": "x", "restitution": "e"}, "high": {"gap": "y - x", "restitution": "e"}},
        loads=[{"force": "g*N.y + 20*(x + y)*N.y", "at": "Pz"}],
    )
    graph = fsm_dyn.compile(stack)
    initial = {"x": 0.3, "y": 0.5, "z": 0.0}
    found = sensitivities(graph, 1.0, by_initial=["x", "y"], initial=initial)
    assert fsm_dyn.simulate(graph, until=1.0, initial=initial).transitions[-1].cause.startswith("Zeno")
    for name, column in found.by_initial.items():
        np.testing.assert_allclose(column, differences(graph, 1.0, name, initial=initial), atol=1e-5, err_msg=name)
