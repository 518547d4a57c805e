"""Two contacts: events in the same instant, trains of impacts that interlace, modes asked for on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fsm_dyn.run.loop_state import RunArrays
from fsm_dyn.runtime.abi import Reason, Status
from fsm_dyn.runtime.layouts import Tables
from tests.unit.run import fakes

E = 0.6


def drop(
    x0: list[float], pull: tuple[float, float] = (9.81, 9.81), tables: Tables | None = None, **options: Any
) -> RunArrays:
    return fakes.run_automaton(tables or fakes.corner(), x0, [*pull, E, 0.0, 0.0], 0, 0.0, 8.0, **options)


def end_of_train(height: float, speed: float, pull: float) -> float:
    """Return when a ball at this height and speed (upwards) has come to rest."""
    impact = np.sqrt(speed**2 + 2 * pull * height)
    return float((speed + impact) / pull + 2 * E * impact / pull / (1 - E))


def rest_times(raw: RunArrays) -> list[float]:
    return [
        float(t)
        for t, reason in zip(raw.transitions.time, raw.transitions.reason, strict=True)
        if reason == Reason.ZENO
    ]


def test_both_contacts_strike_together_all_the_way() -> None:
    raw = drop([1.0, 1.0, 0.0, 0.0])
    assert raw.outcome.code == Status.DONE
    assert np.all(raw.transitions.fired == 2)
    assert np.all(raw.transitions.impulse > 0)
    assert rest_times(raw) == pytest.approx([end_of_train(1.0, 0.0, 9.81)], rel=1e-9)
    assert raw.mode[-1] == 3


def test_each_train_ends_in_its_own_time() -> None:
    raw = drop([1.0, 0.31, 0.0, 0.7], (9.81, 3.0))
    expected = sorted([end_of_train(1.0, 0.0, 9.81), end_of_train(0.31, 0.7, 3.0)])
    assert rest_times(raw) == pytest.approx(expected, rel=1e-9)
    assert raw.mode[-1] == 3
    assert raw.x[:, :2].min() > -1e-12


def test_interlaced_trains_with_a_common_end_are_one_cycle() -> None:
    speed = end_of_train(1.0, 0.0, 9.81) * 9.81 * (1 - E) / 2
    raw = drop([1.0, 0.0, 0.0, speed])
    assert end_of_train(0.0, speed, 9.81) == pytest.approx(end_of_train(1.0, 0.0, 9.81))
    assert raw.outcome.code == Status.DONE
    assert raw.mode[-1] == 3
    # near the end both gaps are within the gap tolerance, where contacts strike together: 1e-9 m are 1.4e-5 s here
    assert rest_times(raw)[-1] == pytest.approx(end_of_train(1.0, 0.0, 9.81), abs=5e-5)
    assert np.array_equal(raw.x[-1], [raw.x[-1, 0], raw.x[-1, 1], 0.0, 0.0])
    assert np.max(np.abs(raw.x[-1])) < 1e-8


class Source:
    """Gives the modes of the corner one by one."""

    def __init__(self) -> None:
        self.held = [(False, False)]
        self.asked: list[tuple[float, tuple[int, ...]]] = []
        self.tables = fakes.corner(self.held)

    def provide_mode(self, states: Any, t: float, x: Any, c: Any) -> Tables:
        self.asked.append((t, tuple(int(code) for code in states)))
        self.held.append((bool(states[0]), bool(states[1])))
        self.tables = fakes.corner(self.held)
        return self.tables

    def provide_chart(self, number: int, t: float, x: Any, c: Any) -> Tables:
        return self.tables


def test_modes_are_asked_for_when_they_are_reached() -> None:
    source = Source()
    start = [1.0, 0.31, 0.0, 0.7], (9.81, 3.0)
    raw = drop(*start, tables=source.tables, mode_source=source)
    assert [states for _, states in source.asked] == [(1, 0), (1, 1)]
    whole = drop(*start)
    assert np.array_equal(raw.t, whole.t)
    assert np.array_equal(raw.x, whole.x)
    assert np.array_equal(raw.transitions.energy_after, whole.transitions.energy_after)


def test_without_a_source_the_missing_mode_is_named() -> None:
    raw = drop([1.0, 0.31, 0.0, 0.7], (9.81, 3.0), tables=fakes.corner([(False, False)]))
    assert raw.outcome.code == Status.MODE_NOT_LISTED
    assert sorted(raw.requested_states) == [0, 1]
    assert len(raw.t) > 10
