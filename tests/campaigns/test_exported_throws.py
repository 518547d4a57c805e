"""Aimed throws by a machine in C99 and by units for FMI."""

import pytest

from tests.campaigns import exported_throws
from tests.exports.building import quick_units

THROWS = 40


def test_no_touch_is_missed_in_c99():
    found = exported_throws.c99_case(0, THROWS)
    assert found["ok"], found["reason"]


@pytest.mark.parametrize("seed", [0, 3, 5, 6])  # every shape, both versions
def test_no_touch_is_missed_by_units(seed, monkeypatch):
    pytest.importorskip("fmpy")
    quick_units(monkeypatch)
    found = exported_throws.fmu_case(seed, THROWS)
    assert found["ok"], found["reason"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(len(exported_throws.C99)))
def test_no_touch_of_a_thousand_is_missed_in_c99(seed):
    """Many throws of a scene by one compiled machine."""
    found = exported_throws.c99_case(seed, 15)
    assert found["ok"], found["reason"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2 * len(exported_throws.SHAPES)))
def test_no_touch_of_a_thousand_is_missed_by_units(seed, monkeypatch):
    pytest.importorskip("fmpy")
    quick_units(monkeypatch)
    found = exported_throws.fmu_case(seed, 125)
    assert found["ok"], found["reason"]
