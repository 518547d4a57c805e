"""Starts with which the campaign found something wrong that is not cured yet: one of each kind.

A test here that passes should move to the tests of what it was about, and its words leave ``KNOWN`` in the campaign.
"""

import pytest

from tests.physics.campaign import Checked
from tests.physics.test_campaign import start

FINDINGS = [
    pytest.param("rocking_block", 7, id="two corners strike in turn without end"),
    pytest.param("ball_in_corner", 50, id="a train of two contacts ends in penetration"),
    pytest.param("box_on_table", 44, id="a corner sinks into the table"),
    pytest.param("double_pendulum_with_stop", 49, id="chatter on the knee's stop"),
]


def test_a_long_step_does_not_miss_a_peg():
    """The gap to a peg turns within one step of free flight; the tangents at its known values tell."""
    checked = Checked("twelve_contacts")
    run = checked.run(start("twelve_contacts", 73))
    assert not run.outcome.failed
    assert not checked.complaints(run)


@pytest.mark.xfail(strict=False, reason="found by the campaign, not cured yet")
@pytest.mark.parametrize(("name", "seed"), FINDINGS)
def test_finding(name, seed):
    checked = Checked(name)
    run = checked.run(start(name, seed))
    assert not run.outcome.failed
    assert not checked.complaints(run)
