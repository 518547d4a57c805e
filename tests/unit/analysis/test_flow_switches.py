"""Derivatives at switches without an event: choices of the state in loads, transitions triggered by jumps."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.limit_cycle import limit_cycle
from fsm_dyn.analysis.sensitivities import sensitivities
from fsm_dyn.core.errors import RunError

STEP = 1e-4


def point(parameters, initial, **sections):
    """A point of mass m on the x axis."""
    return fsm_dyn.load(
        {
            "fsm_dyn": 1, "name": "point", "coordinates": {"x": "m"}, "points": {"P": {"from": "O", "at": "x*N.x"}},
            "bodies": {"b": {"center": "P", "mass": "m"}}, "parameters": {"m": "1 kg", **parameters},
            "initial": initial, **sections,
        }
    )  # fmt: skip


def pushed(force, *, v=1.0, **parameters):
    return point({"v": f"{v} m/s", **parameters}, {"x_dot": "v"}, loads=[{"force": f"({force})*N.x", "at": "P"}])


def test_a_load_that_jumps_at_a_place():
    """``x = a + v s + F s^2/2`` and ``x_dot = v + F s`` with ``s = t - a/v`` after the place."""
    graph = fsm_dyn.compile(pushed("where(x > a, F, 0 N)", F="5 N", a="0.5 m"))
    found = sensitivities(graph, 1.0, by_initial=("x", "x_dot"), by_parameters=("F", "a", "v"))
    expected = {"F": [0.125, 0.5], "a": [-2.5, -5.0], "v": [2.25, 3.5]}
    for name, values in expected.items():
        np.testing.assert_allclose(found.by_parameters[name], values, rtol=1e-7)
    np.testing.assert_allclose(found.by_initial["x"], [3.5, 5.0], rtol=1e-7)
    np.testing.assert_allclose(found.by_initial["x_dot"], [2.25, 3.5], rtol=1e-7)


def test_a_spring_that_begins_at_a_place():
    """After half a swing of ``k max(x - a, 0)`` it comes back: ``x = 2 a - v (t - pi sqrt(m/k))``."""
    graph = fsm_dyn.compile(pushed("-k*max(x - a, 0 m)", k="50 N/m", a="0.3 m"))
    found = sensitivities(graph, 1.0, by_initial=("x",), by_parameters=("k", "a", "v", "m"))
    by_k = -0.5 * np.pi * 50.0**-1.5
    expected = {
        "k": [by_k, 0.0],
        "a": [2.0, 0.0],
        "v": [-(1.0 - np.pi / np.sqrt(50.0)), -1.0],
        "m": [-50.0 * by_k, 0.0],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found.by_parameters[name], values, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.by_initial["x"], [-1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize(
    "force",
    [
        "k*floor(x/a)",
        "-20*k*mod(x, a)/a",
        "where(x > a*(1 + t/1 s), k*(1 + x/a), -k*x_dot/(1 m/s))",
        "-k*sign(x_dot) - 2*k",
    ],
)
def test_other_choices_against_differences_of_runs(force):
    graph = fsm_dyn.compile(pushed(force, v=1.3, k="0.5 N", a="0.3 m"))
    found = sensitivities(graph, 1.2, by_parameters=("k", "a", "v"))

    def end(**parameters):
        run = fsm_dyn.simulate(graph, until=1.2, parameters=parameters, rtol=1e-12, atol=1e-13)
        return np.append(run.q[-1], run.u[-1])

    for name, value in (("k", 0.5), ("a", 0.3), ("v", 1.3)):
        difference = (end(**{name: value + STEP}) - end(**{name: value - STEP})) / (2.0 * STEP)
        np.testing.assert_allclose(found.by_parameters[name], difference, rtol=1e-4, atol=1e-5)


def test_the_cycle_of_a_relay_in_closed_form():
    """Swings about ``-F/k`` and ``F/k`` in turn: deviations fall by ``exp(-2 pi zeta/sqrt(1 - zeta^2))``."""
    graph = fsm_dyn.compile(pushed("F*sign(x_dot) - k*x - c*x_dot", v=2.0, F="3 N", k="4 N/m", c="0.6 N*s/m"))
    found = limit_cycle(graph, "x_dot falling", initial={"x": 1.0, "x_dot": 0.1})
    zeta = 0.6 / (2.0 * np.sqrt(4.0))
    half = np.exp(-np.pi * zeta / np.sqrt(1.0 - zeta**2))
    assert found.q[0] == pytest.approx(0.75 * (1.0 + half) / (1.0 - half), rel=1e-8)
    assert found.floquet_multipliers[0].real == pytest.approx(half**2, rel=1e-6)


@pytest.mark.parametrize("when", ["floor(x/a) > 0.5", "mod(x, a) < a/2", "where(x >= a, 2, t/1 s) > 1.5"])
def test_a_condition_that_jumps_at_a_place(when):
    """``x = a + k v (t - a/v)`` behind the switch of a choice in the condition."""
    slow = {"from": "*", "when": f"x > a/4 and {when}", "reset": {"x_dot": "k*x_dot"}}
    model = point({"v": "1 m/s", "a": "0.8 m", "k": 0.7}, {"x": "a/2", "x_dot": "v"}, transitions=[slow])
    found = sensitivities(fsm_dyn.compile(model), 1.0, by_initial=("x",), by_parameters=("a", "v", "k"))
    np.testing.assert_allclose(found.x, [0.8 + 0.7 * 0.6, 0.7], rtol=1e-9)
    np.testing.assert_allclose(found.by_initial["x"], [0.7, 0.0], atol=1e-9)
    np.testing.assert_allclose(found.by_parameters["a"], [1.0 - 0.7 * 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(found.by_parameters["v"], [0.7, 0.7], atol=1e-9)
    np.testing.assert_allclose(found.by_parameters["k"], [0.6, 1.0], atol=1e-9)


WALL = {"contacts": {"w": {"gap": "a - x", "restitution": "e"}}}
BRAKE = {"from": "*", "when": "x_dot < 0 m/s", "reset": {"x_dot": "k*x_dot"}}


@pytest.mark.parametrize("more", [{}, {"memory": {"n": 0}}])
def test_a_condition_that_an_impact_makes_true(more):
    """``x = a - e k v (t - a/v)``, with one transition after the impact or with two."""
    transitions = [{**BRAKE, "set": {"n": "n + 1"}}, {"from": "*", "when": "n >= 1", "reset": {"x_dot": "2*x_dot"}}]
    factor = 2.0 if more else 1.0
    model = point(
        {"v": "1 m/s", "a": "0.5 m", "e": 0.5, "k": 0.7}, {"x_dot": "v"}, **WALL, **more,
        transitions=transitions if more else [BRAKE],
    )  # fmt: skip
    found = sensitivities(fsm_dyn.compile(model), 1.0, by_initial=("x",), by_parameters=("v", "a", "e", "k"))
    speed = 0.35 * factor
    expected = {
        "v": [-speed, -speed],
        "a": [1.0 + speed, 0.0],
        "e": [-speed, -2.0 * speed],
        "k": [-speed / 1.4, -speed / 0.7],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found.by_parameters[name], values, atol=1e-9)
    np.testing.assert_allclose(found.by_initial["x"], [-speed, 0.0], atol=1e-9)
    assert len(found.saltations) == 1
    np.testing.assert_allclose(found.saltations[0], [[-speed, 0.0], [0.0, -speed]], atol=1e-9)


def test_a_condition_that_an_input_makes_true_has_a_fixed_instant():
    model = point(
        {"v": "1 m/s"}, {"x_dot": "v"},
        inputs={"F": "N"}, schedule={"F": {"steps": [["0 s", "0 N"], ["0.3 s", "2 N"]]}},
        transitions=[{"from": "*", "when": "F > 1 N", "reset": {"x_dot": "-x_dot*x/(1 m)"}}],
    )  # fmt: skip
    found = sensitivities(fsm_dyn.compile(model), 1.0, by_initial=("x",), by_parameters=("v",))
    np.testing.assert_allclose(found.by_parameters["v"], [0.3 - 0.7 * 0.6, -0.6], atol=1e-9)
    np.testing.assert_allclose(found.by_initial["x"], [1.0 - 0.7, -1.0], atol=1e-9)


def test_what_follows_infinitely_many_impacts_is_refused():
    model = fsm_dyn.load(
        {
            "fsm_dyn": 1, "name": "rests", "coordinates": {"y": "m"}, "points": {"P": {"from": "O", "at": "y*N.y"}},
            "bodies": {"b": {"center": "P", "mass": "1 kg"}}, "parameters": {"h": "0.1 m"},
            "contacts": {"g": {"gap": "y", "restitution": 0.6}}, "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
            "modes": {"flies": {"g": "open"}, "rests": {"g": "closed"}}, "memory": {"n": 0},
            "transitions": [{"from": "rests", "when": "y < 1 m", "set": {"n": 1}}], "initial": {"y": "h"},
        }
    )  # fmt: skip
    with pytest.raises(RunError, match="infinitely many impacts"):
        sensitivities(fsm_dyn.compile(model), 1.0, by_parameters=("h",))


@pytest.mark.parametrize(("force", "expected"), [(-2.0, [-1.0, -np.sqrt(2.0)]), (2.0, [0.0, 0.0]), (0.0, None)])
def test_no_rebound_is_differentiated_from_within(force, expected):
    """Pulled off after the impact a rebound adds ``e v``; pressed on it adds nothing; left alone it would open."""
    model = point(
        {"e": 0.0, "a": "0.5 m", "F": f"{force} N"}, {"x_dot": "2 m/s"}, **WALL, loads=[{"force": "F*N.x", "at": "P"}]
    )
    graph = fsm_dyn.compile(model)
    if expected is None:
        with pytest.raises(RunError, match="with any restitution it opens"):
            sensitivities(graph, 1.0, by_parameters=("e",))
        assert sensitivities(graph, 1.0, by_parameters=("a",)).by_parameters["a"] == pytest.approx([1.0, 0.0])
        return
    found = sensitivities(graph, 1.0, by_parameters=("e",)).by_parameters["e"]
    np.testing.assert_allclose(found, expected, atol=1e-8)
