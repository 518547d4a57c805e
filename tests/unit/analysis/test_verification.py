"""Verification agrees on every shipped kind of model, and notices what is wrong."""

import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.analysis.verification import INERTIA
from fsm_dyn.cli import app
from fsm_dyn.symbolic import accelerations

MODELS = [
    "four_bar", "seven_body_mechanism", "chaplygin_sleigh", "rattleback", "spatial_two_body", "shopping_cart",
    "spherical_wrist", "rolling_disk", "newtons_cradle", "cam_flat_follower", "billiard_ball", "chain",
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_all_routes_agree(name):
    found = fsm_dyn.verify(name, states=9)
    assert found.good, str(found)
    assert len([c for c in found.comparisons if c.difference is not None]) >= 2
    assert str(found).endswith("all routes agree")
    assert not [c for c in found.comparisons if c.name == INERTIA and c.difference is None]


def test_a_wrong_inertia_term_is_noticed(monkeypatch):
    """Centripetal accelerations ten percent too large: Lagrange's equations do not have them so."""
    whole = accelerations.Accelerations.spin

    def wrong(self, frame):
        return tuple(1.1 * node for node in whole(self, frame))

    monkeypatch.setattr(accelerations.Accelerations, "spin", wrong)
    found = fsm_dyn.verify(fsm_dyn.load("spatial_robot"), states=3)
    assert not found.good
    assert "DIFFER" in str(found)


def test_the_command_line_tells_what_was_compared():
    result = CliRunner().invoke(app, ["verify", "slider_crank", "--states", "3"])
    assert result.exit_code == 0
    assert "agree to" in result.stdout


def test_states_must_be_positive():
    with pytest.raises(fsm_dyn.InputError, match="positive"):
        fsm_dyn.verify("four_bar", states=0)
