"""Verification agrees on every shipped kind of model, and notices what is wrong."""

import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.analysis.momentum import Momenta
from fsm_dyn.analysis.verification import INERTIA, MOMENTA
from fsm_dyn.cli import app
from fsm_dyn.symbolic import bias_accelerations

MODELS = [
    "four_bar", "seven_body_mechanism", "chaplygin_sleigh", "rattleback", "spatial_two_body", "shopping_cart",
    "spherical_wrist", "rolling_disk", "newtons_cradle", "cam_flat_follower", "billiard_ball", "chain",
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_all_routes_agree(name):
    found = fsm_dyn.verify(name, states=9)
    assert found.passed, str(found)
    assert len([c for c in found.comparisons if c.difference is not None]) >= 2
    assert str(found).endswith("all derivations agree")
    assert not [c for c in found.comparisons if c.name == INERTIA and c.difference is None]


@pytest.mark.parametrize("name", ["planar_three_body", "spatial_two_body", "billiard_ball", "spatial_robot"])
def test_momenta_are_audited_where_all_can_move_as_one(name):
    found = {c.name: c for c in fsm_dyn.verify(name, states=6).comparisons}
    assert found[MOMENTA].difference <= 1e-12


def test_a_lost_weight_shows_in_the_momenta(monkeypatch):
    """Accelerations are of the mode as compiled; the loads the audit is told of are a tenth too small."""
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


def test_the_command_line_tells_what_was_compared():
    result = CliRunner().invoke(app, ["verify", "slider_crank", "--states", "3"])
    assert result.exit_code == 0
    assert "agree to" in result.stdout


def test_states_must_be_positive():
    with pytest.raises(fsm_dyn.InputError, match="positive"):
        fsm_dyn.verify("four_bar", states=0)
