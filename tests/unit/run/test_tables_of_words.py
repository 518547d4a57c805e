"""The table of tolerances and the table of outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.language.mechanism_form import NUMERICS
from fsm_dyn.language.scales import Scales
from fsm_dyn.run import outcomes
from fsm_dyn.run.tolerances import Tolerances
from fsm_dyn.runtime import abi
from fsm_dyn.runtime.abi import Status


def test_every_outcome_has_a_message() -> None:
    assert set(outcomes.OUTCOMES) == set(Status)
    for outcome in outcomes.OUTCOMES.values():
        assert outcome.sentence.endswith(".")
        assert outcome.name in str(outcome)
        if outcome.failed and outcome.code != Status.INTERRUPTED:
            assert outcome.remedy


def test_outcomes_that_ask_for_something_come_first() -> None:
    for code, outcome in outcomes.OUTCOMES.items():
        if code <= Status.STOPPED:
            assert not outcome.failed


def test_array_follows_the_index_constants() -> None:
    array = Tolerances(gap=1.0, graze=2.0, projection=3.0, time_scale=4.0).as_array()
    assert array.shape == (abi.ToleranceTable.COUNT,)
    assert array[abi.ToleranceTable.GAP] == 1.0
    assert array[abi.ToleranceTable.GRAZE] == 2.0
    assert array[abi.ToleranceTable.PROJECTION] == 3.0
    assert array[abi.ToleranceTable.PIVOT] == 1e-6
    assert array[abi.ToleranceTable.HYSTERESIS] == 10.0
    assert array[abi.ToleranceTable.TIME_SCALE] == 4.0


def test_scaling_follows_the_dimensions() -> None:
    scaled = Tolerances(gap=1e-7).scaled(Scales(length=1e-3, time=1e-2))
    assert scaled.gap == 1e-7
    assert scaled.projection == pytest.approx(1e-15)
    assert scaled.speed == pytest.approx(1e-10)
    assert scaled.least_acceleration == pytest.approx(1e-2)
    assert scaled.time == pytest.approx(1e-16)
    assert scaled.pivot == Tolerances().scaled().pivot
    assert scaled.scales == Scales(1e-3, 1.0, 1e-2)


def test_description_names_every_entry() -> None:
    rows = Tolerances().describe()
    assert [row[0] for row in rows] == list(NUMERICS)
    assert np.array_equal([row[1] for row in rows][2:], Tolerances().as_array())
    assert all(unit and text for _, _, unit, text in rows)
    assert all(f"    {name} : float" in (Tolerances.__doc__ or "") or f"{name}, " in (Tolerances.__doc__ or "")
               or f", {name} : float" in (Tolerances.__doc__ or "") for name in NUMERICS)  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"gap": 0.0}, "must be positive and finite"),
        ({"gap": float("nan")}, "must be positive and finite"),
        ({"gap": True}, "is no number"),
        ({"gap": "1 kg"}, "has the wrong unit"),
        ({"gaps": 1.0}, "there is no tolerance 'gaps'"),
        ({"gap": "-1 um"}, "must be positive and finite"),
    ],
)
def test_impossible_tolerances_are_refused(entries: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Tolerances.of(entries)


def test_what_is_given_comes_first() -> None:
    given = Tolerances.of({"gap": "2 um"}).or_else(Tolerances(gap=1.0, speed=3.0))
    assert (given.gap, given.speed, given.time) == (2e-6, 3.0, None)
