"""Sensitivities across transitions against central differences of whole runs, to 1e-6."""

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
