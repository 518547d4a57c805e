"""Runs through configurations in which one choice of independent speeds degenerates."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load

FOUR_BAR = """
fsm_dyn: 1
name: four_bar
parameters: {a: 0.1, b: 0.28, c: 0.25, d: 0.3, m: 0.4, g: 9.81, torque: 0.05}
coordinates: [q1, q2, q3]
frames:
  A: {parent: N, rotate: {z: q1}}
  B: {parent: N, rotate: {z: q2}}
  C: {parent: N, rotate: {z: q3}}
points:
  P: {from: O, at: a*A.x}
  Q: {from: P, at: b*B.x}
  D: {from: O, at: d*N.x}
  R: {from: D, at: c*C.x}
  Ao: {from: O, at: 0.5*a*A.x}
  Bo: {from: P, at: 0.5*b*B.x}
  Co: {from: D, at: 0.5*c*C.x}
bodies:
  crank:   {frame: A, center: Ao, mass: m, inertia: {zz: m*a**2/12}}
  coupler: {frame: B, center: Bo, mass: m, inertia: {zz: m*b**2/12}}
  rocker:  {frame: C, center: Co, mass: m, inertia: {zz: m*c**2/12}}
constraints:
  loop_x: {position: "dot(pos(Q, R), N.x)"}
  loop_y: {position: "dot(pos(Q, R), N.y)"}
loads:
  - {gravity: -g*N.y}
  - {torque: torque*N.z, on: crank}
initial: {q1: 0.3, q1_dot: 12}
"""

SLIDER_CRANK = """
fsm_dyn: 1
name: slider_crank
parameters: {a: 0.1, b: 0.3, m: 0.4}
coordinates: [q1, q2, x]
frames:
  A: {parent: N, rotate: {z: q1}}
  B: {parent: N, rotate: {z: q2}}
points:
  P: {from: O, at: a*A.x}
  Q: {from: P, at: b*B.x}
  S: {from: O, at: x*N.x}
  Ao: {from: O, at: 0.5*a*A.x}
  Bo: {from: P, at: 0.5*b*B.x}
bodies:
  crank:  {frame: A, center: Ao, mass: m, inertia: {zz: m*a**2/12}}
  rod:    {frame: B, center: Bo, mass: m, inertia: {zz: m*b**2/12}}
  slider: {center: S, mass: m}
constraints:
  pin_x: {position: "dot(pos(Q, S), N.x)"}
  pin_y: {position: "dot(pos(Q, S), N.y)"}
initial: {q1: 1.5707963267948966, q1_dot: -9}
"""


PENDULUM = """
fsm_dyn: 1
name: pendulum_by_its_bob
parameters: {m: 1.0, g: 9.81, L: 0.5}
coordinates: [x, y]
points:
  P: {from: O, at: x*N.x + y*N.y}
bodies:
  bob: {center: P, mass: m}
constraints:
  rod: {position: x**2 + y**2 - L**2}
loads:
  - {gravity: -g*N.y}
initial: {x: 0.3, y: -0.4, x_dot: 8.0}
"""


@pytest.mark.parametrize("strategy", ["compiled", "online"])
@pytest.mark.parametrize(
    ("method", "limit"), [({"rtol": 1e-10, "atol": 1e-12}, 1e-8), ({"method": "rk4", "step": 1e-3}, 4e-6)]
)
def test_a_chart_is_left_long_before_it_degenerates(strategy, method, limit):
    """A pendulum that goes round in Cartesian coordinates: each of the two charts degenerates twice a turn.

    Errors in the independent speed are divided by the pivot in the other.  A fixed step that passes a degenerate
    configuration unseen loses all; left in time, both methods keep their accuracy (rk4: 2,000 steps of 0.02 rad).
    """
    graph = fsm_dyn.compile(load("text", text=PENDULUM))
    run = fsm_dyn.simulate(graph, until=2.0, strategy=strategy, **method)
    x, y = run.q.T
    assert np.ptp(np.unwrap(np.arctan2(y, x))) > 4 * np.pi
    assert run.energy.relative_residual <= limit
    if strategy == "compiled":
        assert len(run.model.charts) == 2


def closed(text, until, **initial):
    """Run a loop and check that it stays closed and keeps its energy balance."""
    graph = fsm_dyn.compile(load("text", text=text), cache=False)
    run = fsm_dyn.simulate(graph, until=until, rtol=1e-10, atol=1e-12, initial=initial or None)
    terms = graph.automaton.terms.evaluate(run.t, run.rows.x, run.rows.context)
    assert np.abs(terms["residual"]).max() <= 1e-9
    assert run.energy.relative_residual <= 1e-8
    return graph, run


def test_a_crank_turns_through_every_chart():
    _graph, run = closed(FOUR_BAR, 3.0)
    assert run.q[-1, 0] - run.q[0, 0] > 4 * np.pi


def test_speed_of_the_crank_is_independent_of_where_the_run_starts():
    """The same revolution entered at another configuration passes through the same states."""
    _, run = closed(FOUR_BAR, 2.0)
    later = run.at(0.5)
    start = dict(zip(("q1", "q2", "q3"), later.q, strict=True))
    start["q1_dot"] = later.u[0]
    _, again = closed(FOUR_BAR, 1.0, **start)
    np.testing.assert_allclose(again.q[-1], run.at(1.5).q, atol=1e-6)


@pytest.mark.parametrize("q1", [0.0, np.pi / 2, np.pi, -np.pi / 2])
def test_slider_crank_starts_at_right_angles_and_passes_its_dead_points(q1):
    """At the dead points the slider cannot be the independent speed, at right angles others cannot."""
    guess = {"q1": q1, "x": 0.1 * np.cos(q1) + np.sqrt(0.09 - 0.01 * np.sin(q1) ** 2)}
    _, run = closed(SLIDER_CRANK, 2.0, **guess)
    assert abs(run.q[-1, 0] - run.q[0, 0]) > 2 * np.pi
