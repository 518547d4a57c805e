"""A whole ``simulate`` call against the loop people write with ``solve_ivp``: terminal events and restarts.

Both are held to the same accuracy of the events and timed in turns in one process; what counts is the ratio.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from mechanisms.bouncing_ball import impact_times
from mechanisms.rolling_disk import push_that_breaks_rolling, slip_ends
from tests.benchmarks.timing import ratio

pytestmark = pytest.mark.benchmark


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
    print(f"\nball: {found:.0f} times faster than solve_ivp with restarts (goal 50)")
    assert found >= 50


MU, PHI, M, G = 0.35, np.deg2rad(12.0), 2.0, 9.81
DOWN, PRESS = G * np.sin(PHI), G * np.cos(PHI)


def push(t):
    return float(np.interp(t, [1.2, 1.6, 1.8], [0.0, 40.0, 0.0]))


def lift(t):
    return 30.0 if 2.2 <= t < 2.6 else 0.0


def disk_by_solve_ivp(until=4.0, rtol=1e-9, atol=1e-12, lowest=1e-9):
    """The shipped run as people write it: one set of rates and events per mode, restarted at every change.

    State: x, y, u1, u2, u3.  Returns (time, mode after) of every change.
    """
    e, r = 0.2, 0.1

    def rates(mode, sigma):
        def slide(t, x):
            friction = -sigma * MU * M * PRESS
            return (x[2], 0.0, (push(t) + friction) / M - DOWN, 2 * friction / M, 0.0)

        def roll(t, x):
            a = (push(t) - M * DOWN) / (1.5 * M)
            return (x[2], 0.0, a, -a, 0.0)

        def fly(t, x):
            return (x[2], x[4], push(t) / M - DOWN, 0.0, lift(t) / M - PRESS)

        def slip(t, x):
            return sigma * (x[2] + x[3])

        def grip(t, x):
            return MU * M * PRESS - abs(push(t) - M * DOWN) / 3.0

        def gap(t, x):
            return x[1] - r

        function, event = {"sliding": (slide, slip), "rolling": (roll, grip), "flying": (fly, gap)}[mode]
        event.terminal, event.direction = True, -1
        return function, event

    def strike(x):
        normal = -(1 + e) * M * x[4]
        tangent = -np.clip((x[2] + x[3]) * M / 3.0, -MU * normal, MU * normal)
        return x + np.array([0, 0, tangent / M, 2 * tangent / M, normal / M])

    t, x, mode, sigma, changes = 0.0, np.array([0.0, r, 0.0, -4.0, 0.0]), "sliding", -1.0, []
    stops = [1.2, 1.6, 1.8, 2.2, 2.6, until]
    while t < until:
        end = next(s for s in stops if s > t + 1e-12)
        function, event = rates(mode, sigma)
        part = solve_ivp(function, (t, end - 1e-13), x, events=event, rtol=rtol, atol=atol)
        t, x = (part.t[-1] if part.status == 1 else end), part.y[:, -1].copy()
        if part.status == 1 and mode == "sliding":
            mode, x[3] = "rolling", -x[2]
        elif part.status == 1 and mode == "rolling":
            mode, sigma = "sliding", np.sign(push(t) - M * DOWN)
            x[3] += 1e-13 * sigma
        elif part.status == 1:
            x = strike(x)
            x[1] = r + 1e-14
            if x[4] ** 2 / (2 * PRESS) < lowest:
                x[4], mode = 0.0, "rolling"
        elif t == 2.2:
            mode = "flying"
        if part.status == 1 or t == 2.2:
            changes.append((t, mode))
    return changes


def test_disk():
    """The shipped run: slides, rolls, slides, rolls, is lifted, lands, bounces to rest and rolls."""
    graph = fsm_dyn.compile("rolling_disk")
    options = {"until": 4.0, "rtol": 1e-9, "atol": 1e-12}
    run = fsm_dyn.simulate(graph, **options)
    ours = [x.time for x in run.transitions]
    theirs = [time for time, _ in disk_by_solve_ivp()]
    assert len(ours) >= 10
    assert ours[:8] == pytest.approx(theirs[:8], abs=1e-6)
    exact = [slip_ends(4.0, MU, PHI), 1.2 + 0.4 * push_that_breaks_rolling(M, MU, PHI) / 40.0]
    assert np.abs(np.array(ours[:2]) - exact).max() <= max(np.abs(np.array(theirs[:2]) - exact).max(), 1e-12)
    found = ratio(lambda: fsm_dyn.simulate(graph, **options), disk_by_solve_ivp)
    print(f"\ndisk: {found:.0f} times faster than solve_ivp with restarts (goal 20)")
    assert found >= 20
