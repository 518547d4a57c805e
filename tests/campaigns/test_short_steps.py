"""Published runs have the transitions that short steps find."""

import pytest

from tests.campaigns.short_steps import CASES, RECIPES, difference, published

SLOW = ("ball_chain", "escapement", "geneva_drive", "piano", "seat_belt", "stack_of_boxes", "tray")


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, marks=pytest.mark.long if any(word in one.name for word in SLOW) else (), id=one.name)
        for one in published()
    ],
)
def test_published_run_has_the_transitions_of_short_steps(one):
    reason, undecided = difference(one)
    assert not reason or undecided, reason


def test_all_recipes_are_run():
    assert len(published()) == CASES
    assert {one.model for one in published()} >= {str(path) for path in RECIPES}
    assert all(one.until for one in published()[: len(RECIPES)])
