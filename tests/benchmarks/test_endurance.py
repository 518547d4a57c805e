"""Five minutes of play in one process; two hours are a campaign."""

import pytest

from tests.campaigns.endurance import play

pytestmark = pytest.mark.benchmark


def test_five_minutes_of_play():
    found = play(300.0)
    print(found)
    assert found["ok"], found["found"]
