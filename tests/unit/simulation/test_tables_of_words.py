"""The table of tolerances and the table of outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from fsm_dyn.simulation import outcomes, tolerances
from fsm_dyn.simulation.tolerances import Tolerances


def test_every_outcome_has_words() -> None:
    codes = {value for name, value in vars(outcomes).items() if name.isupper() and isinstance(value, int)}
    assert set(outcomes.OUTCOMES) == codes
    for outcome in outcomes.OUTCOMES.values():
        assert outcome.sentence.endswith(".")
        assert outcome.name in str(outcome)
        if outcome.failed and outcome.code != outcomes.INTERRUPTED:
            assert outcome.remedy


def test_outcomes_that_ask_for_something_come_first() -> None:
    for code, outcome in outcomes.OUTCOMES.items():
        if code <= outcomes.STOPPED:
            assert not outcome.failed


def test_array_follows_the_index_constants() -> None:
    array = Tolerances(gap=1.0, graze=2.0, projection=3.0).as_array()
    assert array.shape == (tolerances.TOLERANCE_COUNT,)
    assert array[tolerances.GAP] == 1.0
    assert array[tolerances.GRAZE] == 2.0
    assert array[tolerances.PROJECTION] == 3.0
    assert array[tolerances.PIVOT] == 1e-6
    assert array[tolerances.HYSTERESIS] == 10.0


def test_scaling_follows_the_dimensions() -> None:
    scaled = Tolerances().scaled(length=1e-3, time=1e-2)
    assert scaled.gap == pytest.approx(1e-12)
    assert scaled.speed == pytest.approx(1e-10)
    assert scaled.acceleration == pytest.approx(1e-8)
    assert scaled.time == pytest.approx(1e-16)
    assert scaled.pivot == Tolerances().pivot


def test_description_names_every_entry() -> None:
    rows = Tolerances().describe()
    assert [row[0] for row in rows][:3] == ["gap", "speed", "acceleration"]
    assert np.array_equal([row[1] for row in rows], Tolerances().as_array())
    assert all(unit and text for _, _, unit, text in rows)
