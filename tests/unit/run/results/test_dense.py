"""The quartic of a step meets its five data and is of fourth order."""

import numpy as np
from numpy.testing import assert_allclose

from fsm_dyn.run.extremes import locate, quartic, quartic_bounds


def interpolate(function, rate, theta, t0, h):
    at = [
        np.array([[f(t)]])
        for f, t in ((function, t0), (rate, t0), (function, t0 + h / 2), (function, t0 + h), (rate, t0 + h))
    ]
    x0, d0, xm, x1, d1 = at
    return quartic(np.array([theta]), np.array([h]), x0, d0, xm, x1, d1)[0, 0]


def test_a_quartic_is_reproduced_exactly():
    p = np.polynomial.Polynomial([0.3, -1.0, 2.0, 0.7, -1.1])
    for theta in np.linspace(0.0, 1.0, 7):
        assert_allclose(interpolate(p, p.deriv(), theta, 0.4, 1.3), p(0.4 + 1.3 * theta), rtol=1e-13)


def test_the_error_falls_with_the_fifth_power_of_the_step():
    errors = []
    for h in (0.2, 0.1):
        errors.append(
            max(abs(interpolate(np.sin, np.cos, s, 0.3, h) - np.sin(0.3 + h * s)) for s in np.linspace(0, 1, 21))
        )
    assert 25.0 < errors[0] / errors[1] < 40.0


def test_locate_takes_the_later_of_two_rows():
    t = np.array([0.0, 1.0, 1.0, 2.0])
    first, last = locate(t, np.array([0.0, 0.5, 1.0, 1.5, 2.0]))
    assert first.tolist() == [0, 0, 2, 2, 3]
    assert last.tolist() == [1, 1, 3, 3, 3]


def test_bounds_of_steps_contain_their_quartics_and_are_met_at_their_ends():
    rng = np.random.default_rng(5)
    h, x0, d0, xm, x1, d1 = rng.normal(size=(6, 200))
    h = abs(h)
    lower, upper = quartic_bounds(h, x0, d0, xm, x1, d1)
    for theta in np.linspace(0.0, 1.0, 101):
        columns = (each[:, None] for each in (x0, d0, xm, x1, d1))
        values = quartic(np.full(200, theta), h, *columns)[:, 0]
        assert np.all((lower <= values) & (values <= upper))
    straight = quartic_bounds(np.ones(1), np.zeros(1), np.ones(1), np.full(1, 0.5), np.ones(1), np.ones(1))
    assert_allclose(np.ravel(straight), [0.0, 1.0], atol=1e-12)
