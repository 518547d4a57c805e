"""Some five minutes of the clock, 1400 s of play, in one process; two hours are a campaign."""

import pytest

from tests.campaigns.endurance import WARM, play

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]


def test_play():
    found = play(2.0 * WARM)
    print(found)
    assert found["ok"], found["found"]
