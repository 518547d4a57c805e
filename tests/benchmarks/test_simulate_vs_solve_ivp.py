"""A whole ``simulate`` call against the loop people write with ``solve_ivp``: terminal events and restarts.

Both are held to the same accuracy of the events and timed in turns in one process; what counts is the ratio.
"""

import time

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from mechanisms.bouncing_ball import impact_times
from mechanisms.rolling_disk import push_that_breaks_rolling, slip_ends

pytestmark = pytest.mark.benchmark
REPEATS = 9


def ratio(ours, theirs):
    """Median over rounds of the time of ``theirs`` over that of ``ours``."""
    ratios = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        ours()
        middle = time.perf_counter()
        theirs()
        ratios.append((time.perf_counter() - middle) / (middle - begin))
    return float(np.median(ratios))


def ball_by_solve_ivp(e=0.8, g=9.81, lowest=1e-9):
    """Impacts until the apex is below ``lowest`` (m): the usual loop."""

    def hits(t, x):
        return x[0]

    hits.terminal, hits.direction = True, -1
    t, x, times = 0.0, [1.0, 0.0], []
    while t < 6.0:
        part = solve_ivp(lambda t, x: (x[1], -g), (t, 6.0), x, events=hits, rtol=1e-9, atol=1e-12)
        if part.status != 1:
            break
        t, v = part.t[-1], -e * part.y[1, -1]
        times.append(t)
        if v * v / (2 * g) < lowest:
            break
        x = [1e-14, v]
    return np.array(times)


def test_ball_to_rest():
    graph = fsm_dyn.compile("bouncing_ball")
    options = {"until": 6.0, "rtol": 1e-9, "atol": 1e-12}
    run = fsm_dyn.simulate(graph, **options)
    ours = np.array([x.time for x in run.transitions[:20]])
    theirs = ball_by_solve_ivp()[:20]
    exact = impact_times(0.8, 1.0, 20)
    assert np.abs(ours - exact).max() <= np.abs(theirs - exact).max()
    found = ratio(lambda: fsm_dyn.simulate(graph, **options), ball_by_solve_ivp)
    assert found >= 20


MU, PHI, M, G = 0.35, np.deg2rad(12.0), 2.0, 9.81
DOWN, PRESS = G * np.sin(PHI), G * np.cos(PHI)


def push(t):
    return float(np.interp(t, [1.2, 1.6, 1.8], [0.0, 40.0, 0.0]))


def disk_by_solve_ivp(until=2.0, rtol=1e-9, atol=1e-12):
    """Slide, roll, slide, roll: u1 and u2 with an event for each change, restarted at the corners of the push."""

    def slides(sigma):
        def rates(t, x):
            friction = -sigma * MU * M * PRESS
            return ((push(t) + friction) / M - DOWN, 2 * friction / M, x[0], x[1] / 0.1)

        def slip_ends_here(t, x):
            return sigma * (x[0] + x[1])

        slip_ends_here.terminal, slip_ends_here.direction = True, -1
        return rates, slip_ends_here

    def rolls(t, x):
        a = (push(t) - M * DOWN) / (1.5 * M)
        return (a, -a, x[0], x[1] / 0.1)

    def slip_begins(t, x):
        return MU * M * PRESS - abs(push(t) - M * DOWN) / 3.0

    slip_begins.terminal, slip_begins.direction = True, -1
    t, x, times, sigma, sliding = 0.0, np.array([0.0, -4.0, 0.0, 0.0]), [], -1.0, True
    stops = [1.2, 1.6, 1.8, until]
    while t < until:
        end = next(s for s in stops if s > t + 1e-12)
        rates, event = slides(sigma) if sliding else (rolls, slip_begins)
        part = solve_ivp(rates, (t, end), x, events=event, rtol=rtol, atol=atol)
        t, x = part.t[-1], part.y[:, -1].copy()
        if part.status == 1:
            times.append(t)
            if sliding:
                x[1] = -x[0]
            else:
                sigma = np.sign(push(t) - M * DOWN)
                x[1] += 1e-13 * sigma
            sliding = not sliding
    return np.array(times)


def test_disk():
    graph = fsm_dyn.compile("rolling_disk")
    options = {"until": 2.0, "rtol": 1e-9, "atol": 1e-12, "inputs": {"lift": 0.0}}
    run = fsm_dyn.simulate(graph, **options)
    ours = np.array([x.time for x in run.transitions])
    theirs = disk_by_solve_ivp()
    exact = [slip_ends(4.0, MU, PHI), 1.2 + 0.4 * push_that_breaks_rolling(M, MU, PHI) / 40.0]
    assert np.abs(ours[:2] - exact).max() <= max(np.abs(theirs[:2] - exact).max(), 1e-12)
    assert ours[2] == pytest.approx(theirs[2], abs=1e-6)
    found = ratio(lambda: fsm_dyn.simulate(graph, **options), disk_by_solve_ivp)
    assert found >= 20
