"""The bouncing ball against its closed form, with every method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fsm_dyn.run.loop_state import RunArrays
from fsm_dyn.runtime.abi import Event, Reason, Status
from tests.unit.run import fakes

G = 9.81


def closed_form(e: float, n: int, height: float = 1.0) -> tuple[np.ndarray[Any, Any], float]:
    """Return the first n impact times and the time at which the bouncing ends."""
    first = np.sqrt(2 * height / G)
    flights = 2 * first * e ** np.arange(1, n)
    end = first * (1 + e) / (1 - e)
    return first + np.concatenate([[0.0], np.cumsum(flights)]), end


def bounce(e: float, until: float, **options: Any) -> RunArrays:
    return fakes.run_automaton(fakes.ball(), [1.0, 0.0], [G, 1.0, e, 0.0], 0, 0.0, until, **options)


@pytest.mark.parametrize("e", [0.3, 0.5, 0.8, 0.95])
def test_impacts_and_end_of_bouncing(e: float) -> None:
    raw = bounce(e, 25.0)
    assert raw.outcome.code == Status.DONE
    impacts, end = closed_form(e, len(raw.transitions) - 1)
    assert np.allclose(raw.transitions.time[:-1], impacts, rtol=1e-12, atol=0)
    assert raw.transitions.time[-1] == pytest.approx(end, rel=1e-9)
    assert raw.transitions.reason[-1] == Reason.ZENO
    assert raw.x[:, 0].min() > -1e-12
    assert raw.t[-1] == 25.0
    assert raw.mode[-1] == 1
    assert np.allclose(raw.x[-1], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "options", "accuracy"),
    [
        ("rk4", {"step": 0.01}, 1e-12),
        ("heun", {"step": 0.01}, 1e-12),
        ("euler", {"step": 1e-3}, 2e-2),
        ("dopri5", {"max_step": 0.003}, 1e-12),
        ("radau", {"rtol": 1e-9, "atol": 1e-12}, 1e-9),
        ("bdf", {"rtol": 1e-9, "atol": 1e-12}, 1e-6),
    ],
)
def test_every_method_bounces(method: str, options: dict[str, float], accuracy: float) -> None:
    raw = bounce(0.7, 1.6, method=method, **options)
    impacts, _ = closed_form(0.7, len(raw.transitions))
    assert len(impacts) == 3
    assert np.allclose(raw.transitions.time, impacts, rtol=accuracy, atol=0)
    assert raw.t[-1] == 1.6


def test_fixed_step_comes_to_rest_too() -> None:
    raw = bounce(0.5, 3.0, method="rk4", step=0.01)
    _, end = closed_form(0.5, 1)
    assert raw.transitions.time[-1] == pytest.approx(end, rel=1e-9)
    assert raw.mode[-1] == 1


def test_grid_of_fixed_steps_is_kept_across_events() -> None:
    raw = bounce(0.7, 1.2, method="rk4", step=0.05)
    for k in range(25):
        assert np.min(np.abs(raw.t - 0.05 * k)) < 1e-15
    off = [t for t in raw.t if abs(t / 0.05 - round(t / 0.05)) > 1e-9]
    assert set(off) == set(raw.transitions.time)


def test_transition_is_two_rows_and_a_record() -> None:
    raw = bounce(0.8, 1.0)
    t = raw.transitions
    row = t.row[0]
    assert raw.t[row - 1] == raw.t[row] == t.time[0]
    assert raw.x[row - 1, 1] == pytest.approx(-np.sqrt(2 * G))
    assert raw.x[row, 1] == pytest.approx(0.8 * np.sqrt(2 * G))
    assert t.u_before[0, 0] == raw.x[row - 1, 1]
    assert t.u_after[0, 0] == raw.x[row, 1]
    assert t.impulse[0, 0] == pytest.approx(1.8 * np.sqrt(2 * G))
    assert (t.event[0, 0], t.contact[0, 0], t.fired[0]) == (Event.CLOSES, 0, 1)
    assert abs(t.value[0, 0]) < 1e-13
    assert t.slope[0, 0] == pytest.approx(-np.sqrt(2 * G))
    assert np.isnan(t.value[0, 1])
    assert t.energy_before[0] == pytest.approx(G)
    assert t.energy_after[0] == pytest.approx(0.64 * G)
    assert (t.source[0], t.target[0]) == (0, 0)


def test_plastic_impact_ends_the_motion_at_once() -> None:
    raw = bounce(0.0, 2.0)
    assert len(raw.transitions) == 1
    assert raw.transitions.time[0] == pytest.approx(np.sqrt(2 / G), rel=1e-14)
    assert list(raw.mode[raw.t > 0.5]) == [1] * int(np.sum(raw.t > 0.5))


def test_start_on_the_floor_moving_up_flies() -> None:
    raw = fakes.run_automaton(fakes.ball(), [0.0, 2.0], [G, 1.0, 0.5, 0.0], 0, 0.0, 0.5)
    assert raw.transitions.time[0] == pytest.approx(4.0 / G, rel=1e-12)


def test_start_on_the_floor_moving_down_bounces_at_once() -> None:
    raw = fakes.run_automaton(fakes.ball(), [0.0, -2.0], [G, 1.0, 0.5, 0.0], 0, 0.0, 0.15)
    assert raw.transitions.reason[0] == Reason.START
    assert raw.transitions.time[0] == 0.0
    assert raw.transitions.u_after[0, 0] == pytest.approx(1.0)
    assert raw.x[:, 0].min() > -1e-12


def test_start_at_rest_on_the_floor_stays() -> None:
    raw = fakes.run_automaton(fakes.ball(), [0.0, 0.0], [G, 1.0, 0.5, 0.0], 1, 0.0, 5.0)
    assert len(raw.transitions) == 0
    assert np.array_equal(raw.x, np.zeros_like(raw.x))


def test_runs_are_the_same_bit_for_bit_whatever_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsm_dyn.run import loop as run_module
    from fsm_dyn.run import loop_state

    plain = bounce(0.8, 6.0, max_step=0.02)
    monkeypatch.setattr(loop_state, "_FIRST_ROWS", 6)
    monkeypatch.setattr(loop_state, "_FIRST_TRANSITIONS", 1)
    monkeypatch.setattr(run_module, "_FIRST_CHUNK", 1)
    small = bounce(0.8, 6.0, max_step=0.02)
    for name in ("t", "x", "x_dot", "x_mid", "mode", "held"):
        assert np.array_equal(getattr(plain, name), getattr(small, name)), name
    for name in ("time", "impulse", "energy_after", "value"):
        assert np.array_equal(getattr(plain.transitions, name), getattr(small.transitions, name), equal_nan=True), name


def test_progress_is_reported_and_interruption_keeps_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsm_dyn.run import loop as run_module

    monkeypatch.setattr(run_module, "_FIRST_CHUNK", 1)
    seen: list[float] = []

    def look(t: float) -> None:
        seen.append(t)
        if len(seen) == 3:
            raise KeyboardInterrupt

    raw = bounce(0.8, 1e6, max_step=1e-3, progress=look)
    assert raw.outcome.code == Status.INTERRUPTED
    assert seen == sorted(seen)
    assert raw.t[-1] == seen[-1]
