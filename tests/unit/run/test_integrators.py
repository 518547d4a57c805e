"""One harness for all integrators: order conditions, measured order, dense output, step control."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fsm_dyn.run.extremes import quartic
from fsm_dyn.run.integrators import DOPRI5, METHODS, RK4, Tableau, order_residuals
from fsm_dyn.run.loop_state import RunArrays
from tests.unit.run import fakes

EXPLICIT = list(METHODS.values())
FIXED = [method for method in EXPLICIT if not method.adaptive]


def _dense(raw: RunArrays, at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    k = np.clip(np.searchsorted(raw.t, at, side="right"), 1, len(raw.t) - 1)
    h = raw.t[k] - raw.t[k - 1]
    theta = (at - raw.t[k - 1]) / h
    return quartic(theta, h, raw.x[k - 1], raw.x_dot[k - 1], raw.x_mid[k], raw.x[k], raw.x_dot[k])


@pytest.fixture(scope="module")
def oscillator() -> Any:
    """q'' = -q + cos(2 t), from q = 1, u = 0: q = 4/3 cos t - 1/3 cos 2 t."""
    return fakes.written(lambda t, q, u: -q + np.cos(2.0 * t), [])


def _exact(t: Any) -> Any:
    return np.column_stack([(4 * np.cos(t) - np.cos(2 * t)) / 3, (-4 * np.sin(t) + 2 * np.sin(2 * t)) / 3])


@pytest.mark.parametrize("method", EXPLICIT, ids=lambda m: m.name)
def test_order_conditions_hold_up_to_the_order_and_not_beyond(method: Tableau) -> None:
    residuals = method.order_residuals()
    assert all(value == 0 for order, value in residuals if order <= method.order)
    assert method.order == 5 or any(value != 0 for order, value in residuals if order == method.order + 1)


def test_embedded_method_of_dormand_prince_has_order_four() -> None:
    a = (*DOPRI5.a, DOPRI5.b)
    b = tuple(x - e for x, e in zip((*DOPRI5.b, Fraction(0)), DOPRI5.error, strict=True))
    residuals = order_residuals(a, b)
    assert all(value == 0 for order, value in residuals if order <= 4)
    assert any(value != 0 for order, value in residuals if order == 5)


def test_dense_output_of_dormand_prince_has_order_four_in_the_middle() -> None:
    a = (*DOPRI5.a, DOPRI5.b)
    residuals = order_residuals(a, DOPRI5.middle, Fraction(1, 2))
    assert all(value == 0 for order, value in residuals if order <= 4)


def test_tableau_checks_itself() -> None:
    with pytest.raises(ValueError, match="condition of order 2"):
        replace(RK4, a=((), (Fraction(1, 2),), (Fraction(0), Fraction(1, 3)), (Fraction(0), Fraction(0), Fraction(1))))
    with pytest.raises(ValueError, match="add up to"):
        replace(RK4, b=(Fraction(1), Fraction(1), Fraction(0), Fraction(0)))
    with pytest.raises(ValueError, match="strictly lower"):
        replace(RK4, a=((), (), (), ()))
    with pytest.raises(ValueError, match="needs 7 weights"):
        replace(DOPRI5, error=(Fraction(0),))


@pytest.mark.parametrize("method", FIXED, ids=lambda m: m.name)
def test_measured_order_of_fixed_steps(method: Tableau, oscillator: Any) -> None:
    errors = []
    for n in (64, 128):
        raw = fakes.run_automaton(oscillator, [1.0, 0.0], [], 0, 0.0, 4.0, method=method.name, step=4.0 / n)
        assert len(raw.t) == n + 1
        errors.append(np.max(np.abs(raw.x[-1] - _exact(raw.t[-1:]))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(method.order, abs=0.25)


def test_error_of_dormand_prince_follows_its_tolerance(oscillator: Any) -> None:
    for rtol in (1e-5, 1e-8, 1e-11):
        raw = fakes.run_automaton(oscillator, [1.0, 0.0], [], 0, 0.0, 10.0, rtol=rtol, atol=rtol)
        error = np.max(np.abs(raw.x[-1] - _exact(raw.t[-1:])))
        assert error < 30 * rtol
        assert raw.steps < 8 * 10 * rtol ** (-1 / 5)


@pytest.mark.parametrize(("name", "order"), [("dopri5", 4), ("rk4", 3), ("heun", 2), ("euler", 1)])
def test_dense_output_converges(name: str, order: int, oscillator: Any) -> None:
    at = np.linspace(0.0, 4.0, 1001)
    errors = []
    for n in (64, 128):
        h = 4.0 / n
        adaptive = METHODS[name].adaptive
        options: dict[str, float] = {"max_step": h, "rtol": 1.0, "atol": 1.0} if adaptive else {"step": h}
        raw = fakes.run_automaton(oscillator, [1.0, 0.0], [], 0, 0.0, 4.0, method=name, **options)  # type: ignore[arg-type]
        errors.append(np.max(np.abs(_dense(raw, at) - _exact(at))))
    assert np.log2(errors[0] / errors[1]) > order - 0.3


@pytest.mark.parametrize("name", ["radau", "bdf"])
def test_implicit_methods_run_the_same_model(name: str, oscillator: Any) -> None:
    raw = fakes.run_automaton(oscillator, [1.0, 0.0], [], 0, 0.0, 4.0, method=name, rtol=1e-8, atol=1e-10)
    assert raw.outcome.name == "done"
    assert raw.t[-1] == 4.0
    assert np.max(np.abs(raw.x - _exact(raw.t))) < 1e-5
    at = np.linspace(0.0, 4.0, 301)
    assert np.max(np.abs(_dense(raw, at) - _exact(at))) < 1e-4


def test_mask_leaves_a_state_out_of_the_error_norm(oscillator: Any) -> None:
    stiff = fakes.written(lambda t, q, u: -100.0 * q, [])
    both = fakes.run_automaton(stiff, [1.0, 0.0], [], 0, 0.0, 1.0, rtol=1e-9, atol=1e-9)
    none = fakes.run_automaton(
        stiff, [1.0, 0.0], [], 0, 0.0, 1.0, rtol=1e-9, atol=1e-9, mask=np.zeros((1, 2), dtype=np.int8)
    )
    assert none.steps < both.steps / 3
