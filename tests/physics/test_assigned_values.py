"""Values that transitions assign: what is no number ends the run in that instant, and nothing is assigned."""

import math

import pytest

import fsm_dyn
from fsm_dyn.language.loader import load

ASSIGNED = {  # to a ball that strikes the ground at 3 m/s
    "a root in memory": "set: {n: sqrt(n)}",
    "a quotient in memory": "set: {n: 1/(n + 3)}",
    "a root in a speed": "reset: {y_dot: sqrt(y_dot/(1 m/s) - 9)*1 m/s}",
    "a logarithm in a coordinate": "reset: {x: log(n)*1 m}",
    "an impulse": "impulse: [{along: sqrt(n)*1 N*s, coordinate: x}]",
}


def ball(assignment):
    return fsm_dyn.compile(
        load(
            text=f"""
fsm_dyn: 1
name: ball
coordinates: {{x: m, y: m}}
memory: {{n: -3}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{center: P, mass: 1 kg}}}}
contacts: {{ground: {{gap: y, restitution: 0.5}}}}
loads: [{{gravity: -9 m/s^2*N.y}}]
transitions: [{{from: "*", on: ground closes, {assignment}}}]
outputs: {{count: n}}
initial: {{y: 0.5 m}}
"""
        )
    )


@pytest.mark.parametrize("assignment", ASSIGNED.values(), ids=ASSIGNED)
@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_what_is_no_number_ends_the_run(assignment, strategy):
    run = fsm_dyn.simulate(ball(assignment), 2.0, strategy=strategy, on_failure="return")
    assert run.outcome.name == "non-finite state"
    assert run.t[-1] == pytest.approx(1.0 / 3.0, abs=1e-12)
    assert all(math.isfinite(run[name][-1]) for name in ("x", "y", "x_dot", "y_dot", "n", "count"))
    assert run["n"][-1] == -3.0


def test_a_number_need_not_be_whole():
    run = fsm_dyn.simulate(ball("set: {n: n + 0.5}"), 0.9)
    assert run["n"][-1] == -3.0 + 0.5 * len(run.transitions)
    assert len(run.transitions) == 3  # at 1/3, 2/3 and 5/6 s, by a half of the speed each
