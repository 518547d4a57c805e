"""Root isolation against numpy.roots on random quintics, and the cases that go wrong elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from fsm_dyn.runtime.abi import ROOT_ROOM
from tests.runtime.internals import internals

NONE = 2.0  # what is reported instead of a root


def _analyse(g0, s0, gm, sm, g1, s1, h, tolerance, waiting, work):  # type: ignore[no-untyped-def]
    runtime = internals()
    size, sixth = runtime.quintic(g0, s0, gm, sm, g1, s1, h, work)
    sure = runtime.surely_positive(work, tolerance, sixth)
    return runtime.first_crossing(work, tolerance, waiting), sure, size, sixth


def analyse(p: Any, h: float = 1.0, tolerance: float = 0.0, waiting: bool = False) -> tuple[float, bool, float, float]:
    """Return crossing (in s), surety, size and error estimate for a guard p(t) on [0, h]."""
    d = p.deriv()
    work = np.zeros(ROOT_ROOM)
    return _analyse(  # type: ignore[no-any-return]
        p(0.0), d(0.0), p(h / 2), d(h / 2), p(h), d(h), h, tolerance, waiting, work
    )


def reference(p: Any) -> float:
    """Return the first falling real root in (0, 1] by numpy, for a polynomial that is positive at 0."""
    found = p.roots()
    real = np.sort(found[np.abs(found.imag) < 1e-9].real)
    slopes = p.deriv()(real)
    ok = real[(real > 0) & (real <= 1) & (slopes < 0)]
    return float(ok[0]) if len(ok) else NONE


def test_random_quintics_agree_with_numpy() -> None:
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(3000):
        p = Polynomial.fromroots(np.concatenate([rng.uniform(-0.5, 1.5, 3), rng.uniform(-3, 3, 2)]))
        p = p if p(0.0) > 0 else -p
        expected = reference(p)
        real = p.roots().real
        # leave out what double precision cannot tell: roots closer than 1e-4, or at the ends
        if np.min(np.abs(np.subtract.outer(real, real) + np.eye(5))) < 1e-4 or abs(expected - 1) < 1e-9:
            continue
        compared += 1
        assert analyse(p)[0] == pytest.approx(expected, abs=1e-9)
    assert compared > 2500


def test_quintics_with_complex_roots_agree_with_numpy() -> None:
    rng = np.random.default_rng(2)
    for _ in range(2000):
        p = Polynomial(rng.normal(size=6))
        p = p if p(0.0) > 0 else -p
        assert analyse(p)[0] == pytest.approx(reference(p), abs=1e-7)


def test_two_crossings_in_one_step_give_the_first() -> None:
    p = Polynomial.fromroots([0.3, 0.6])
    assert analyse(p)[0] == pytest.approx(0.3, abs=1e-14)
    assert analyse(p, waiting=True)[0] == NONE


def test_waiting_guard_fires_after_it_has_risen() -> None:
    p = -Polynomial.fromroots([0.3, 0.6])
    assert analyse(p, waiting=True)[0] == pytest.approx(0.6, abs=1e-14)


def test_known_root_at_the_start_does_not_fire() -> None:
    p = Polynomial([0.0, 1.0, -2.0])  # zero at 0 rising, falls at 0.5
    assert analyse(p, tolerance=1e-12)[0] == pytest.approx(0.5, abs=1e-11)
    assert analyse(Polynomial([0.0, 1.0, -0.5]), tolerance=1e-12)[0] == NONE


@pytest.mark.parametrize("apex", [1e-3, 1e-6, 1e-9, 1e-11])
def test_tiny_hop_from_the_surface_is_seen_in_a_long_step(apex: float) -> None:
    v = np.sqrt(2 * 9.81 * apex)
    p = Polynomial([0.0, v, -9.81 / 2])
    fraction = analyse(p, h=2.0, tolerance=1e-12)[0]
    # the crossing reported is that of -tolerance
    fall = (v + np.sqrt(v * v + 2 * 9.81e-12)) / 9.81
    assert 2.0 * fraction == pytest.approx(fall, rel=1e-6)


def test_near_start_root_is_found() -> None:
    for first in (1e-3, 1e-6, 1e-9):
        p = -Polynomial.fromroots([first]) * Polynomial([1.0, 0.3])
        assert analyse(p)[0] == pytest.approx(first, rel=1e-6)


def test_touch_within_tolerance_is_no_event() -> None:
    for depth in (0.0, 1e-13, 9e-13):
        p = Polynomial([0.25 - depth, -1.0, 1.0])  # (s - 1/2)^2 - depth
        assert analyse(p, tolerance=1e-12)[0] == NONE
    assert analyse(Polynomial([0.25 - 1e-9, -1.0, 1.0]), tolerance=1e-12)[0] == pytest.approx(0.5, abs=1e-4)


def test_double_root_off_the_halvings() -> None:
    p = Polynomial.fromroots([1 / 3, 1 / 3])
    assert analyse(p, tolerance=1e-12)[0] == NONE
    assert analyse(p - 1e-8, tolerance=1e-12)[0] == pytest.approx(1 / 3 - 1e-4, abs=1e-8)


def test_root_at_the_very_end_counts() -> None:
    p = Polynomial([1.0, -1.0])
    assert analyse(p)[0] == pytest.approx(1.0, abs=4e-15)


def test_triple_root_falls() -> None:
    p = -Polynomial.fromroots([0.4, 0.4, 0.4])
    assert analyse(p)[0] == pytest.approx(0.4, abs=1e-4)


def test_positive_guard_is_surely_positive_and_a_doubtful_one_is_not() -> None:
    assert analyse(Polynomial([1.0, -0.5, 0.1]))[1]
    assert analyse(Polynomial([1e-9, 1.0]))[1]
    assert not analyse(Polynomial([1.0, -2.0]))[1]


@pytest.mark.parametrize("omega", [2.0, 4.0, 6.0])
def test_no_dip_is_missed_up_to_nearly_a_period_a_step(omega: float) -> None:
    rng = np.random.default_rng(4)
    t = np.linspace(0, 1, 1001)
    work = np.zeros(ROOT_ROOM)
    dips = 0
    for phase, shift in zip(rng.uniform(0, 2 * np.pi, 1000), rng.uniform(-1, 1, 1000), strict=True):
        g = lambda s, a=phase, b=shift: b + np.cos(omega * s + a)  # noqa: E731
        d = lambda s, a=phase: -omega * np.sin(omega * s + a)  # noqa: E731
        values = g(t)
        if values[0] > 1e-3 and values.min() < -1e-6:
            dips += 1
            found, sure, _, _ = _analyse(g(0), d(0), g(0.5), d(0.5), g(1), d(1), 1.0, 0.0, False, work)
            assert found <= 1 or not sure
    assert dips > 200


def test_estimate_bounds_the_error_of_the_interpolant() -> None:
    t = np.linspace(0, 1, 401)
    weight = np.max(t**2 * (t - 0.5) ** 2 * (1 - t) ** 2)
    rng = np.random.default_rng(3)
    for omega in (0.5, 1.0, 2.0, 3.0):
        for phase in rng.uniform(0, 2 * np.pi, 20):
            g = lambda s, w=omega, a=phase: np.cos(w * s + a)  # noqa: E731
            d = lambda s, w=omega, a=phase: -w * np.sin(w * s + a)  # noqa: E731
            work = np.zeros(ROOT_ROOM)
            _, _, _, sixth = _analyse(g(0), d(0), g(0.5), d(0.5), g(1), d(1), 1.0, 0.0, False, work)
            b = work[:6]
            basis = (
                np.array([1, 5, 10, 10, 5, 1]) * t[:, None] ** np.arange(6) * (1 - t[:, None]) ** np.arange(5, -1, -1)
            )
            assert np.max(np.abs(basis @ b - g(t))) <= sixth * weight + 1e-15


def test_not_a_number_never_hangs() -> None:
    work = np.zeros(ROOT_ROOM)
    crossing, sure, _, _ = _analyse(np.nan, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, False, work)
    assert crossing == NONE
    assert not sure
