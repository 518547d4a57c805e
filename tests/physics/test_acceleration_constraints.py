"""Constraints on accelerations against closed forms."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load

SERVO = """
fsm_dyn: 1
parameters: {m: 2 kg, k: 8 N/m, c: 2 N*s/m, M: 1 kg, l: 0.5 m}
inputs: {push: {constant: 1 m/s^2}}
coordinates: {x: m, q: rad}
frames: {B: {rotate: {z: q}}}
points: {C: {from: O, at: x*N.x}, P: {from: C, at: -l*B.y}}
bodies: {cart: {center: C, mass: m}, bob: {center: P, mass: M}}
constraints:
  servo: {of: rate(x), acceleration: push - k/m*x - c/m*rate(x)}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {q: 30 deg, servo_speed: 0.3 m/s}
"""
LIFTED = """
fsm_dyn: 1
parameters: {m: 2 kg}
coordinates: {x: m, y: m}
points: {C: {from: O, at: x*N.x + y*N.y}}
bodies: {block: {center: C, mass: m}}
constraints:
  lift: {of: "dot(vel(C), 0.6*N.x + 0.8*N.y)", acceleration: 1 m/s^2}
contacts:
  wall: {gap: 0.1 m - x}
loads: [{gravity: -9.81 m/s^2*N.y}]
"""


def graph_of(text):
    return fsm_dyn.compile(load(text=text))


def servo_position(t):
    """x'' = 1 - 4 x - x' from x = 0, x' = 0.3, however the bob swings."""
    w = math.sqrt(4 - 0.25)
    return 0.25 + math.exp(-0.5 * t) * (-0.25 * math.cos(w * t) + (0.3 - 0.125) / w * math.sin(w * t))


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"method": "radau"}])
def test_a_servo_leads_its_cart_as_its_equation_says(options):
    run = fsm_dyn.simulate(graph_of(SERVO), 1.0, **options)
    assert run["x"][-1] == pytest.approx(servo_position(1.0), abs=1e-10)  # rtol 1e-9 of a step of 0.3 m
    np.testing.assert_array_equal(run["x_dot"], run["servo_speed"])  # no drift: the same number
    assert run.energy.relative_residual < 1e-7  # the work of the servo is in the balance


def test_time_stepping_is_of_first_order():
    graph = graph_of(SERVO)
    errors = [
        abs(fsm_dyn.simulate(graph, 1.0, method="moreau_jean", step=h)["x"][-1] - servo_position(1.0))
        for h in (4e-3, 4e-4)
    ]
    assert errors[1] < 0.2 * errors[0] < 1e-3


def test_the_force_of_the_row_gives_the_acceleration():
    run = fsm_dyn.simulate(graph_of(LIFTED), 0.1)
    # along e = (0.6, 0.8): a_e = 1, freely across it; m a = m g + lambda e
    np.testing.assert_allclose(run.multipliers["lift"][:, 0], 2 * (1 + 0.8 * 9.81), rtol=1e-13)
    np.testing.assert_allclose(0.6 * run["x_dot"] + 0.8 * run["y_dot"], run.t, rtol=0, atol=1e-13)


def test_an_impact_leaves_the_speed_that_the_constraint_integrates():
    run = fsm_dyn.simulate(graph_of(LIFTED), 1.0)
    assert "wall" in run.transitions[0].target  # a wall without rebound stops x, and y takes over
    np.testing.assert_allclose(0.6 * run["x_dot"] + 0.8 * run["y_dot"], run.t, rtol=0, atol=1e-12)
    assert run["x_dot"][-1] == pytest.approx(0.0, abs=1e-12)


def test_independent_derivations_agree():
    assert fsm_dyn.verify(load(text=SERVO)).passed


def test_a_linearised_mode_keeps_the_speed_as_a_state():
    found = fsm_dyn.linearise(graph_of(SERVO), "motion")
    wanted = np.array([-0.5 + 1j * math.sqrt(3.75), -0.5 - 1j * math.sqrt(3.75)])
    for value in wanted:  # of x'' = -4 x - x'; the bob's two are others
        assert np.abs(found.eigenvalues - value).min() < 1e-9


def test_in_a_component_it_has_the_prefix():
    inner = {
        "fsm_dyn": 1,
        "coordinates": {"x": "m"},
        "points": {"C": {"from": "O", "at": "x*N.x"}},
        "bodies": {"cart": {"center": "C", "mass": "2 kg"}},
        "constraints": {"servo": {"of": "rate(x)", "acceleration": "3 m/s^2"}},
    }
    graph = fsm_dyn.compile({"fsm_dyn": 1, "bodies": {}, "use": {"one": {"model": inner}}})
    assert fsm_dyn.simulate(graph, 1.0)["one_servo_speed"][-1] == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{acceleration: 1 m/s^2}", "lacks the speed whose rate"),
        ("{of: rate(x), velocity: rate(x)}", "'of' does not go with 'velocity'"),
        ("{of: rate(x), acceleration: 1 m/s^2, kinematic: true}", "'kinematic' does not go with 'acceleration'"),
        ("{of: rate(x), acceleration: 1 m/s}", "units do not match"),
        ("{of: rate(x), acceleration: rate(x)**2/(1 m)}", "servo_rate"),
    ],
)
def test_what_is_refused_with_its_place(entry, message):
    text = SERVO.replace("{of: rate(x), acceleration: push - k/m*x - c/m*rate(x)}", entry)
    with pytest.raises(ModelError, match=message) as refused:
        graph_of(text)
    assert refused.value.where.line == 10


def test_a_start_that_contradicts_it_is_refused_by_its_rows():
    with pytest.raises(ModelError, match="servo"):
        fsm_dyn.simulate(graph_of(SERVO), 1.0, initial={"x_dot": 1.0})
