"""Forces that rise in plain ramps until a contact gives way: no run ends where one close by does not (``ramps.py``).

``FSM_DYN_CAMPAIGN=20`` makes twenty times as many.
"""

import dataclasses
import os

import numpy as np
import pytest

import fsm_dyn
from tests.physics.ramps import LAWS, campaign, ramp

TIMES = float(os.environ.get("FSM_DYN_CAMPAIGN", "1"))
RUNS = {"in_space": 10, "compliant_in_space": 10, "slot": 100}
OF_A_LAW = 60

SAME = 1e-6  # of the end states of runs whose forces differ by a factor


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", LAWS)
def test_no_ramp_ends_falsely(model):
    wrong = list(campaign(model, max(1, round(TIMES * RUNS.get(model, OF_A_LAW)))))
    assert not wrong, "\n".join(f"{one}\n  {why}" for one, why in wrong[:10])


def spring_moment(angle):
    """Moment about the pivot of the spring of toggle_switch, from its line alone."""
    anchor, end = np.array([0.0, 0.020]), 0.012 * np.array([-np.sin(angle), np.cos(angle)])
    along = anchor - end
    length = np.hypot(*along)
    force = 800.0 * (length - 0.026) * along / length
    return end[0] * force[1] - end[1] * force[0]


@pytest.mark.parametrize(("seconds", "newtons"), [(1.0, 6.0), (0.25, 6.0), (5.0, 6.0), (1.0, 7.0), (1e-4, 6.0)])
def test_a_switch_snaps_where_the_finger_balances_the_spring(seconds, newtons):
    """In closed form: at the stop the finger's moment and that of the spring are equal and opposite."""
    graph = fsm_dyn.compile("toggle_switch")
    run = fsm_dyn.simulate(graph, seconds, inputs={"finger": {"linear": [[0.0, 0.0], [seconds, newtons]]}})
    released = run.transitions[0]
    stop = np.deg2rad(25.0)
    assert released.source == "left"
    assert released.target == "between"
    assert released.time == pytest.approx(abs(spring_moment(stop)) / 0.025 * seconds / newtons, rel=1e-12)
    assert run.energy.relative_residual < 1e-7


@pytest.mark.parametrize("rest", [-3.0, -1e-6, 0.0, 1e-6, 3.0])
@pytest.mark.parametrize("shape", ["linear", "steps"])
def test_a_ramp_may_bend_where_the_contact_just_bears_nothing(shape, rest):
    """At a start, at a bend and at a step: the finger balances the spring to some units of the last digit, or 1e-9."""
    graph = fsm_dyn.compile("toggle_switch")
    balance = abs(spring_moment(np.deg2rad(25.0))) / 0.025
    for units in range(-6, 7):
        for off in (0.0, -1e-14, 1e-12, -1e-12, -1e-9):
            force = float(balance * (1.0 + off) + units * np.spacing(balance))
            for before in (0.0, force):
                run = fsm_dyn.simulate(
                    graph, 0.6, inputs={"finger": {shape: [[0.0, before], [0.3, force], [0.6, force + rest]]}}
                )
                assert not run.outcome.failed


@pytest.mark.parametrize("model", ["release", "friction", "never_slides", "slot", "compliant", "drawer", "box"])
@pytest.mark.parametrize("seed", range(6))
def test_masses_and_forces_of_another_size_make_the_same_motion(model, seed):
    """Times a million or a millionth: the same modes in the same order, at the same times."""
    graph = fsm_dyn.compile(LAWS[model][0])
    runs = [dataclasses.replace(ramp(model, seed), parameters={"s": size}).run(graph) for size in (1.0, 1e6, 1e-6)]
    modes = [[x.target for x in run.transitions] for run in runs]
    for other, names in zip(runs[1:], modes[1:], strict=True):
        assert names == modes[0]
        np.testing.assert_allclose(
            [x.time for x in other.transitions], [x.time for x in runs[0].transitions], rtol=0.0, atol=SAME
        )
        np.testing.assert_allclose(other.q[-1], runs[0].q[-1], rtol=0.0, atol=SAME)
