"""Energy of time stepping: rest and sliding leave nothing unexplained, impacts what the order of the step says."""

import warnings

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import EnergyWarning
from tests.physics import flush

MASS = 2.0
STEPS = (1e-3, 5e-4)


def stepped(model, until, step, allowed=False):
    """Return a run that no energy warning comes with, unless it is ``allowed``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if allowed else "error", EnergyWarning)
        return fsm_dyn.simulate(fsm_dyn.compile(model), until, method="moreau_jean", step=step)


def brick(speed=(0.0, 0.0, 0.0), y=0.05, friction=0.2, restitution=0.0):
    """Return a brick of 0.2 m by 0.1 m on or above a table at height 0."""
    body = flush.brick(0.2, 0.1, 0.0, y, speed=speed, mass=MASS)
    table = flush.polygon([(-5.0, -1.0), (5.0, -1.0), (5.0, 0.0), (-5.0, 0.0)])
    return flush.scene({"box": body}, {"table": table}, friction=friction, restitution=restitution)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("y", [0.05, 0.05 + 1e-3])
def test_a_brick_at_rest_exchanges_nothing(y, step):
    """From the first step at which it rests, the account stays what it is."""
    run = stepped(brick(y=y), 0.5, step)
    rests = run.t >= 0.1
    assert np.abs(run.u[rests]).max() <= 1e-12
    assert np.abs(run.energy.residual).max() <= 1e-12


@pytest.mark.parametrize("step", STEPS)
def test_friction_makes_the_heat_of_the_way(step):
    """Mu m g s while it slides; the kinetic energy of the start in all, to the step in which it comes to rest."""
    model = brick(speed=(1.0, 0.0, 0.0))
    run = stepped(model, 0.4, step)
    heat = sum(run.energy.friction.values())
    way = run["x_box"] - run["x_box"][0]
    np.testing.assert_allclose(heat, 0.2 * MASS * flush.G * way, rtol=0.0, atol=1e-11)
    assert np.abs(run.energy.residual).max() <= 1e-11
    run = stepped(model, 1.0, step)
    assert sum(run.energy.friction.values())[-1] == pytest.approx(0.5 * MASS, abs=MASS * (0.2 * flush.G * step) ** 2)


@pytest.mark.parametrize(
    ("model", "until", "order"),
    [("rocking_block", 1.2, 2), ("stick_slip_belt", 2.1, 2), ("sliding_rod", 0.3, 1), ("cam_flat_follower", 1.5, 1)],
)
def test_steps_with_changes_of_contacts_leave_over_what_others_do(model, until, order):
    """Corners that strike, friction that turns round, a foot that rattles, a motor that contacts load."""
    coarse, fine = (stepped(model, until, step, allowed=True) for step in STEPS)
    assert len(fine.transitions) > 1
    left = [np.abs(run.energy.residual).max() for run in (coarse, fine)]
    assert left[1] <= 1.1 * left[0] / 2**order
    begins = fine.record.starts
    changes = np.abs(np.diff(fine.energy.residual))
    ends = ~begins[1:-1] & begins[2:]  # steps that end before a transition
    others = ~begins[1:-1] & ~ends
    assert changes[:-1][ends].max() <= 3.0 * changes[:-1][others].max() + 1e-14


def test_rest_on_felts_is_no_open_balance():
    """Steps move a mechanism that rests on compliant contacts by little: its scale is the energy they store."""
    run = stepped("piano_action_simple", 0.02, 2e-4)
    assert run.warnings == ()
    assert np.abs(run.energy.residual).max() <= 0.01 * run.rows.report["stored"].sum(axis=1).max()


@pytest.mark.parametrize("step", STEPS)
def test_a_body_that_falls_and_turns_keeps_its_energy(step):
    run = stepped(brick(speed=(1.0, 2.0, 3.0), y=5.0), 0.8, step)
    assert np.abs(run.energy.residual).max() <= 1e-12 * run.energy.exchanged


@pytest.mark.parametrize("restitution", [0.0, 0.8])
@pytest.mark.parametrize("step", STEPS)
def test_impacts_take_the_work_of_the_weight_along_half_the_jump_too(step, restitution):
    """Within its step the scheme moves on at the speed after it, m g h/2 times the jump."""
    run = stepped(brick(y=0.55, restitution=restitution), 1.0, step)
    speeds, starts = run["y_box_dot"], np.flatnonzero(run.record.starts[1:]) + 1
    taken = 0.5 * MASS * (speeds[starts] ** 2 - speeds[starts - 1] ** 2)
    taken += 0.5 * MASS * flush.G * step * (speeds[starts] - speeds[starts - 1])
    assert np.abs(run.energy.residual).max() <= 1e-11
    assert run.energy.transitions[-1] == pytest.approx(taken.sum(), abs=1e-9)
    assert run.energy.transitions[-1] <= -(1.0 - restitution**2) * MASS * flush.G * 0.5 * 0.99


# model: end (s) and step (s)
SHIPPED = {
    "rolling_disk": (2.0, 1e-3),
    "rocking_block": (0.9, 5e-4),
    "box_on_table": (1.0, 5e-4),
    "billiard_ball": (1.5, 1e-3),
    "latch_door": (0.9, 1e-3),
    "cam_flat_follower": (0.1, 1e-3),
    "push_button": (0.2, 5e-5),
    "seat_belt_reel": (0.1, 2e-5),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models_give_no_warning(name):
    until, step = SHIPPED[name]
    stepped(name, until, step)


def test_rolling_does_no_work():
    """A coin rolls along a circle: its rows are held at the ends of steps, and over each step do no work."""
    coarse, fine = (stepped("rolling_coin", 3.0, step) for step in STEPS)
    left = [np.abs(run.energy.residual).max() for run in (coarse, fine)]
    assert left[0] <= 3e-5 * coarse.energy.exchanged
    assert left[1] <= 0.3 * left[0]
    exact = fsm_dyn.simulate(fsm_dyn.compile("rolling_coin"), 3.0, rtol=1e-10)
    for run, far in ((coarse, 2e-2), (fine, 5e-3)):
        assert np.abs(run["lean"] - exact.sample(run.t)["lean"]).max() <= far


@pytest.mark.parametrize("name", ["cam_flat_follower", "gripper"])
def test_the_balance_of_shipped_models_closes_in_proportion_to_the_step(name):
    """More than 1 % is open at a step of 1 ms; what is open falls with the step, so it is the error of the scheme."""
    coarse, fine = (stepped(name, 2.0, step, allowed=True).energy.relative_residual for step in (1e-3, 2.5e-4))
    assert 3.5 < coarse / fine < 4.5
