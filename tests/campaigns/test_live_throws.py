"""A handful of aimed throws in live ticks."""

import pytest

from tests.campaigns import live_throws


@pytest.mark.parametrize("seed", [0, 15, 30])
def test_no_touch_is_missed_in_ticks(seed):
    found = live_throws.case(seed, 6)
    assert found["tried"]
    assert found["ok"], found["reason"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(len(live_throws.SCENES)))
def test_no_touch_of_a_thousand_is_missed_in_ticks(seed):
    found = live_throws.case(seed, 30)
    assert found["ok"], found["reason"]
