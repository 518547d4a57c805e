"""Narrow conditions, waves and bumps of load by every method: no event is missed, late or invented."""

import pytest

from tests.campaigns import narrow_guards

CASES = 12


PAIRS = [
    (kind, way)
    for kind in narrow_guards.KINDS
    for way in narrow_guards.WAYS
    if kind not in narrow_guards.SOLVED or way in ("dopri5", "online")
]


@pytest.mark.parametrize(("kind", "way"), PAIRS)
def test_no_event_is_missed(kind, way):
    trials = [(seed, narrow_guards.trial(kind, seed, way)) for seed in range(CASES)]
    assert any(true for _, (true, _) in trials)
    found = [f"case {seed} {wrong[0]}: {wrong[1]}" for seed, (_, wrong) in trials if wrong]
    assert not found, "\n".join(found)
