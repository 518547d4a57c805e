"""Events of every awkward kind, on mechanisms with user-defined transitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.run.input_signals import assemble_inputs, linear, steps
from fsm_dyn.run.loop_state import RunArrays
from fsm_dyn.run.tolerances import Tolerances
from fsm_dyn.runtime.abi import Status
from tests.unit.run import fakes

METHODS = [("dopri5", {}), ("rk4", {"step": 0.05}), ("radau", {"rtol": 1e-10, "atol": 1e-12})]


def go(tables: Any, x0: list[float], until: float, t0: float = 0.0, **options: Any) -> RunArrays:
    return fakes.run_automaton(tables, x0, [], 0, t0, until, **options)


@pytest.fixture(scope="module")
def swing() -> Any:
    """q'' = -q with a transition when q falls through 1/2."""
    return fakes.written(lambda t, q, u: -q, [(lambda t, q, u: q - 0.5, lambda t, q, u: u)])


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_every_fall_through_the_surface_is_found_once(swing: Any, method: str, options: dict[str, float]) -> None:
    raw = go(swing, [1.0, 0.0], 30.0, method=method, **options)
    expected = np.pi / 3 + 2 * np.pi * np.arange(5)
    assert len(raw.transitions) == 5
    accuracy = {"dopri5": 1e-7, "rk4": 1e-4, "radau": 1e-6}[method]
    assert np.allclose(raw.transitions.time, expected, rtol=0, atol=accuracy)


def test_event_lies_on_the_solution_and_on_the_surface(swing: Any) -> None:
    raw = go(swing, [1.0, 0.0], 2.0, rtol=1e-12, atol=1e-14)
    row = raw.transitions.row[0]
    assert raw.t[row] == pytest.approx(np.pi / 3, abs=1e-11)
    assert raw.x[row, 0] == pytest.approx(0.5, abs=1e-14)
    assert raw.x[row, 1] == pytest.approx(-np.sqrt(3) / 2, abs=1e-11)


def test_rounding_of_a_slow_guard_takes_no_further_steps() -> None:
    # near a sum of one, a guard is never closer to zero than 5e-17, which a ball at 10 µm/s passes in 5 ps
    tables = fakes.written(lambda t, q, u: 0.0, [(lambda t, q, u: ((q + 1.0) - 1.0) + 5e-17, lambda t, q, u: u)])
    raw = go(tables, [3.1e-6, -1e-5], 1.0)
    assert raw.transitions.time == pytest.approx([0.31], abs=2e-11)
    assert raw.retakes <= 5


def test_start_on_the_surface(swing: Any) -> None:
    falling = go(swing, [0.5, -1.0], 3.0)
    assert len(falling.transitions) == 0
    rising = go(swing, [0.5, 1.0], 3.0)
    assert rising.transitions.time == pytest.approx([2 * np.arctan(2.0)], abs=1e-7)
    # below, rising through: armed on the way up, fires on the way down
    below = go(swing, [0.4, 1.0], 3.0)
    assert len(below.transitions) == 1


def test_same_event_does_not_fire_again_after_a_reset_onto_its_surface() -> None:
    @fakes.kernel
    def again(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = 0.5
        out[1] = -1.0

    tables = fakes.written(lambda t, q, u: 0.0, [(lambda t, q, u: q - 0.5, lambda t, q, u: u)], resets=[again])
    raw = go(tables, [1.0, -1.0], 3.0)
    assert raw.transitions.time == pytest.approx([0.5])


def test_of_two_guards_at_once_the_first_in_the_file_stops() -> None:
    tables = fakes.written(
        lambda t, q, u: -1.0,
        [
            (lambda t, q, u: q, lambda t, q, u: u),
            (lambda t, q, u: 3.0 * q * (2.0 + q), lambda t, q, u: 6.0 * u * (1.0 + q)),
            (lambda t, q, u: q + 0.1, lambda t, q, u: u),
        ],
        stop=True,
    )
    raw = go(tables, [1.0, 0.0], 3.0)
    assert raw.outcome.code == Status.STOPPED
    assert raw.transitions.time == pytest.approx([np.sqrt(2.0)], abs=1e-13)
    assert raw.transitions.written[0] == 0
    assert raw.t[-1] == raw.transitions.time[0]


@pytest.mark.parametrize(("method", "options"), [("dopri5", {}), ("rk4", {"step": 1.0}), ("radau", {})])
def test_two_crossings_in_one_step_are_both_seen(method: str, options: dict[str, float]) -> None:
    # positive at both ends of the step, negative between
    tables = fakes.written(
        lambda t, q, u: 0.0, [(lambda t, q, u: (t - 0.4) * (t - 0.45), lambda t, q, u: 2 * t - 0.85)]
    )
    raw = go(tables, [0.0, 1.0], 1.0, method=method, **options)
    assert raw.transitions.time == pytest.approx([0.4], abs=1e-12)


def test_earlier_of_two_guards_wins_though_the_later_one_is_seen_at_the_end() -> None:
    tables = fakes.written(
        lambda t, q, u: 0.0,
        [
            (lambda t, q, u: 0.9 - t, lambda t, q, u: -1.0),
            (lambda t, q, u: (t - 0.4) * (t - 0.45), lambda t, q, u: 2 * t - 0.85),
        ],
    )
    raw = go(tables, [0.0, 1.0], 1.0, method="rk4", step=1.0)
    assert raw.transitions.time == pytest.approx([0.4, 0.9], abs=1e-12)
    assert list(raw.transitions.contact[:, 0]) == [1, 0]


@pytest.mark.parametrize(("dip", "count"), [(0.0, 0), (5e-13, 0), (1e-9, 1)])
def test_grazing(dip: float, count: int) -> None:
    tables = fakes.written(
        lambda t, q, u: 0.0, [(lambda t, q, u: (t - 0.37) ** 2 - dip, lambda t, q, u: 2 * (t - 0.37))]
    )
    for options in ({}, {"method": "rk4", "step": 0.05}, {"max_step": 0.37}):
        raw = go(tables, [0.0, 1.0], 1.0, **options)
        assert len(raw.transitions) == count
        assert raw.t[-1] == 1.0


def test_short_dip_of_a_fast_guard_is_not_stepped_over() -> None:
    # the state is trivially smooth, the guard is not: steps must shorten by themselves
    tables = fakes.written(
        lambda t, q, u: 0.0, [(lambda t, q, u: 1.02 + np.cos(7.0 * t), lambda t, q, u: -7.0 * np.sin(7.0 * t))]
    )
    quiet = go(tables, [0.0, 1.0], 5.0, max_step=0.8)
    assert len(quiet.transitions) == 0
    tables = fakes.written(
        lambda t, q, u: 0.0, [(lambda t, q, u: 0.98 + np.cos(7.0 * t), lambda t, q, u: -7.0 * np.sin(7.0 * t))]
    )
    raw = go(tables, [0.0, 1.0], 5.0, max_step=0.8)
    first = (np.pi - np.arccos(0.98)) / 7.0
    assert raw.transitions.time == pytest.approx(first + 2 * np.pi / 7.0 * np.arange(6), abs=1e-12)


def test_chatter_is_named() -> None:
    @fakes.kernel
    def flip(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[0]
        out[1] = -x[1]

    # whichever way it moves, one of the two guards at the same place fires
    tables = fakes.written(
        lambda t, q, u: 0.0,
        [
            (lambda t, q, u: 1e-14 + q, lambda t, q, u: u),
            (lambda t, q, u: 1e-14 - q, lambda t, q, u: -u),
        ],
        resets=[flip, flip],
        tolerances=Tolerances(graze=1e-16, coincidence=1e-16),
    )
    raw = go(tables, [0.0, 1.0], 1.0)
    assert raw.outcome.code == Status.CHATTERING
    assert len(raw.transitions) > 50


def test_fast_regular_transitions_are_not_called_chatter() -> None:
    @fakes.kernel
    def back(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = 1e-3
        out[1] = x[1]

    tables = fakes.written(lambda t, q, u: 0.0, [(lambda t, q, u: q, lambda t, q, u: u)], resets=[back])
    raw = go(tables, [1e-3, -1.0], 1.0005)
    assert raw.outcome.code == Status.DONE
    assert len(raw.transitions) == 1000


def test_lands_exactly_on_the_end_and_on_breakpoints() -> None:
    @fakes.kernel
    def rhs(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = c[0]

    @fakes.kernel
    def full(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = c[0]
        out[2] = x[1]
        out[3] = 1.0

    tables = fakes.make_tables(1, 1, n_w=1, modes=[(rhs, full, [], [])])
    drive = assemble_inputs(["w"], 0, {"w": steps([[0.0, 1.0], [1 / 3, -2.0], [0.7, 0.0]])})
    exact_u = 1 / 3 - 2 * (0.7 - 1 / 3)
    exact_q = (1 / 3) ** 2 / 2 + (0.7 - 1 / 3) / 3 - (0.7 - 1 / 3) ** 2
    for method, options in [*METHODS, ("heun", {"step": 0.1})]:
        raw = fakes.run_automaton(
            tables, [0.0, 0.0], [0.0, 0.0, 0.0, 0.0], 0, 0.0, 0.7, drive=drive, method=method, **options
        )
        assert 1 / 3 in raw.t
        assert raw.t[-1] == 0.7
        assert raw.x[-1] == pytest.approx([exact_q, exact_u], abs=1e-12)
        # two rows where the input jumps: from the left and from the right
        k = int(np.flatnonzero(raw.t == 1 / 3)[0])
        assert raw.t[k + 1] == 1 / 3
        assert (raw.held[k, 0], raw.held[k + 1, 0]) == (1.0, -2.0)
        assert (raw.x_dot[k, 1], raw.x_dot[k + 1, 1]) == (1.0, -2.0)
    ramp = assemble_inputs(["w"], 0, {"w": linear([[0.0, 0.0], [1.0, 6.0], [2.0, 0.0]])})
    raw = fakes.run_automaton(tables, [0.0, 0.0], [0.0, 0.0, 0.0, 0.0], 0, 0.0, 2.0, drive=ramp)
    assert raw.x[-1] == pytest.approx([6.0, 6.0], abs=1e-12)


def test_steps_run_out() -> None:
    tables = fakes.written(lambda t, q, u: -q, [])
    raw = go(tables, [1.0, 0.0], 100.0, max_steps=20)
    assert raw.outcome.code == Status.TOO_MANY_STEPS
    assert raw.steps <= 21


def test_blow_up_is_named() -> None:
    tables = fakes.written(lambda t, q, u: u * u, [])
    raw = go(tables, [0.0, 1.0], 2.0)
    assert raw.outcome.code in (Status.STEP_TOO_SMALL, Status.NON_FINITE)
    assert raw.t[-1] == pytest.approx(1.0, abs=1e-6)
    raw = go(tables, [0.0, 1.0], 2.0, method="euler", step=1e-3)
    assert raw.outcome.code == Status.NON_FINITE
    assert np.all(np.isfinite(raw.x))
    root = fakes.written(lambda t, q, u: math.sqrt(1.0 - t) if t <= 1.0 else math.nan, [])
    assert go(root, [0.0, 0.0], 2.0).outcome.code in (Status.STEP_TOO_SMALL, Status.NON_FINITE)
    assert go(root, [0.0, 0.0], 2.0, method="radau").outcome.failed


def test_zero_length_run() -> None:
    raw = go(fakes.written(lambda t, q, u: -q, []), [1.0, 0.0], 3.0, t0=3.0)
    assert list(raw.t) == [3.0]
    assert raw.outcome.code == Status.DONE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "rk5"}, "did you mean"),
        ({"method": "rk4"}, "length of its steps"),
        ({"until": -1.0}, "forward"),
        ({"until": np.inf}, "finite"),
        ({"x0": [1.0]}, "x0 has the wrong length"),
        ({"c0": [1.0]}, "c0 has the wrong length"),
        ({"mode0": 3}, "mode number"),
        ({"rtol": 0.0}, "must be positive"),
    ],
)
def test_impossible_arguments_are_refused(swing: Any, change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"x0": [1.0, 0.0], "c0": [], "mode0": 0, "t0": 0.0, "until": 1.0}
    arguments.update(change)
    with pytest.raises(InputError, match=message):
        fakes.run_automaton(swing, **arguments)
