"""Aimed throws at shapes within components of components."""

import pytest

from tests.campaigns import component_throws

TRIALS = 4  # of each scene


@pytest.mark.parametrize(("shape", "base"), component_throws.SCENES)
def test_what_is_used_is_touched_as_if_written_flat(shape, base):
    trials = [(seed, *component_throws.trial(shape, base, seed)) for seed in range(TRIALS)]
    assert any(true for _, true, _ in trials)
    found = [f"throw {seed}: {wrong}" for seed, _, wrong in trials if wrong]
    assert not found, "\n".join(found)


def test_the_judge_sees_a_component_that_is_misplaced(monkeypatch):
    """Of arms that the truth has a hundredth of a radian farther."""
    placed = component_throws.placed
    monkeypatch.setattr(component_throws, "placed", lambda n, t: placed(n | {"c": n["c"] + 0.01}, t))
    wrong = [component_throws.trial("polygon", "driven", seed)[1] for seed in range(TRIALS)]
    assert sum(text is not None and "truly at" in text for text in wrong) >= 2
