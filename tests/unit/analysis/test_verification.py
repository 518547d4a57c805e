"""Verification agrees on every shipped kind of model, and notices defects."""

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.analysis.newton_euler import Momenta, NewtonEuler
from fsm_dyn.analysis.verification import COMPLEMENT, INERTIA, LAGRANGE, MOMENTA, NEWTON_EULER, ModeRoutes
from fsm_dyn.cli.console import app
from fsm_dyn.derive import velocities as bias_accelerations

MODELS = [
    "four_bar", "seven_body_mechanism", "chaplygin_sleigh", "rattleback", "spatial_two_body", "shopping_cart",
    "spherical_wrist", "rolling_disk", "newtons_cradle", "cam_flat_follower", "billiard_ball", "chain",
    "cart_on_ramp", "box_on_table", "felt_drop", "stick_slip_belt", "sliding_rod", "virtual_wall", "bevel_gears",
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_all_derivations_agree(name):
    found = fsm_dyn.verify(name, states=3)
    assert found.passed, str(found)
    assert set(found.modes) == set(fsm_dyn.compile(name).modes)
    for mode, states in found.modes.items():
        compared = {c.name for c in found.comparisons if c.mode == mode and c.difference is not None}
        # friction of every kind included: none of these modes is left out
        assert states == 3
        assert {LAGRANGE, COMPLEMENT, NEWTON_EULER} <= compared, mode
    assert str(found).endswith("all derivations agree")
    assert not [c for c in found.comparisons if c.name == INERTIA and c.difference is None]


@pytest.mark.parametrize("name", ["planar_three_body", "spatial_two_body", "billiard_ball", "spatial_robot"])
def test_momenta_are_audited_where_all_can_move_as_one(name):
    found = [c.difference for c in fsm_dyn.verify(name, states=6).comparisons if c.name == MOMENTA]
    assert max(difference for difference in found if difference is not None) <= 1e-12


def test_a_lost_weight_shows_in_the_momenta(monkeypatch):
    """Accelerations are of the mode as compiled; the loads given to the audit are a tenth too small."""
    whole = Momenta.compare
    monkeypatch.setattr(
        Momenta, "compare", lambda self, values, u_dot, A, loads: whole(self, values, u_dot, A, 0.9 * loads)
    )
    found = fsm_dyn.verify("planar_three_body", states=3)
    assert not found.passed


def test_a_wrong_inertia_term_is_noticed(monkeypatch):
    """Centripetal accelerations ten percent too large: Lagrange's equations do not have them so."""
    whole = bias_accelerations.Accelerations.spin

    def wrong(self, frame):
        return tuple(1.1 * node for node in whole(self, frame))

    monkeypatch.setattr(bias_accelerations.Accelerations, "spin", wrong)
    found = fsm_dyn.verify(fsm_dyn.load("spatial_robot"), states=3)
    assert not found.passed
    assert "DIFFER" in str(found)


def test_wrong_friction_is_noticed(monkeypatch):
    """The mode's programs with a tenth less friction than the rows and slips say."""
    monkeypatch.setattr(ModeRoutes, "_slip_direction", _shortened(ModeRoutes._slip_direction))
    found = fsm_dyn.verify("rolling_disk", states=3)
    assert {c.mode for c in found.comparisons if not c.passed} == {"sliding"}


def _shortened(whole):
    return lambda *arguments: 0.9 * whole(*arguments)


def test_a_wrong_load_is_noticed_by_newton_and_euler(monkeypatch):
    """Loads a tenth too small, unnoticed by all other derivations."""
    monkeypatch.setattr(NewtonEuler, "_virtual_power", _shortened(NewtonEuler._virtual_power))
    found = fsm_dyn.verify("spatial_robot", states=3)
    assert {c.name for c in found.comparisons if not c.passed} == {NEWTON_EULER}


def test_newton_and_euler_for_a_pendulum():
    """Closed form: ``ω̇ = -g/l sin θ``, and the force on the bob is m times its acceleration."""
    mechanism = fsm_dyn.load("pendulum_with_stop")
    m, length, g, angle, rate = 0.5, 0.4, 9.81, 0.4, 2.0
    values = {"m": m, "l": length, "g": g, "theta": angle, "omega_b": rate}
    bodies = NewtonEuler(mechanism).equations(values, np.ones((1, 1)), np.array([rate]), np.zeros(1))
    u_dot = bodies.force / bodies.mass[0]
    np.testing.assert_allclose(u_dot, -g / length * np.sin(angle), rtol=1e-14)
    along, inward = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([-np.sin(angle), np.cos(angle), 0.0])
    force, moment = bodies.wrenches(u_dot)[0]
    np.testing.assert_allclose(force, m * length * (u_dot * along + rate**2 * inward), rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(moment, 0.0)


def test_only_some_modes():
    assert list(fsm_dyn.verify("rolling_disk", states=2, modes=["flying"]).modes) == ["flying"]
    with pytest.raises(fsm_dyn.InputError, match="no mode 'diving'"):
        fsm_dyn.verify("rolling_disk", modes=["diving"])


def test_the_command_line_tells_what_was_compared():
    result = CliRunner().invoke(app, ["verify", "slider_crank", "--states", "3"])
    assert result.exit_code == 0
    assert "agree to" in result.stdout


def test_states_must_be_positive():
    with pytest.raises(fsm_dyn.InputError, match="positive"):
        fsm_dyn.verify("four_bar", states=0)


def test_modes_that_are_left_out_are_named():
    found = fsm_dyn.verify("latch_door", states=1)
    assert found.passed
    assert not found.complete
    assert len(found.modes) == 1
    assert "--successors" in str(found)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_modes_to_which_guards_lead():
    found = fsm_dyn.verify("latch_door", states=2, successors=True)
    assert found.passed
    assert found.complete
    assert len(found.modes) == 24
