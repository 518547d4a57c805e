"""Contacts that stick, strike and let go: a whole ``simulate`` call against a hand-written ``solve_ivp`` loop.

Both find the same events; ours must be no less accurate against the closed form, and the ratio of times counts.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from mechanisms import stick_slip_belt
from tests.benchmarks.timing import ratio

pytestmark = pytest.mark.benchmark
OPTIONS = {"rtol": 1e-9, "atol": 1e-12}


def fires(function, direction):
    """Mark an event as one that ends the integration when it is crossed in a direction."""
    function.terminal, function.direction = True, direction
    return function


def belt_by_solve_ivp(until, k=40.0, static=6.0, kinetic=4.0, belt=0.2):
    """Stick and slip in turn; the block is carried first."""
    t, x, carried, times = 0.0, [0.0, belt], True, []
    breaks = fires(lambda t, x: static - k * x[0], -1)
    catches = fires(lambda t, x: belt - x[1], -1)
    while t < until:
        rates = (lambda t, x: (belt, 0.0)) if carried else (lambda t, x: (x[1], kinetic - k * x[0]))
        part = solve_ivp(rates, (t, until), x, events=breaks if carried else catches, **OPTIONS)
        t, x = part.t[-1], part.y[:, -1]
        if part.status == 1:
            times.append(t)
            carried = not carried
            x[1] = belt if carried else belt - 1e-13
    return np.array(times)


def test_belt():
    graph, until = fsm_dyn.compile("stick_slip_belt"), 20.0
    run = fsm_dyn.simulate(graph, until, **OPTIONS)
    ours, theirs = np.array([x.time for x in run.transitions]), belt_by_solve_ivp(until)
    slip = stick_slip_belt.slip_time(1.0, 40.0, 6.0, 4.0, 0.2)
    stick = stick_slip_belt.stick_time(40.0, 6.0, 4.0, 0.2)
    steps = np.arange(len(ours))
    exact = 0.75 + (steps + 1) // 2 * slip + steps // 2 * stick
    assert len(theirs) == len(ours)
    assert np.abs(ours - exact).max() <= np.abs(theirs - exact).max()
    found = ratio(lambda: fsm_dyn.simulate(graph, until, **OPTIONS), lambda: belt_by_solve_ivp(until))
    print(f"belt: {found:.1f} times as fast; event error {np.abs(ours - exact).max():.1e} s, "
          f"solve_ivp {np.abs(theirs - exact).max():.1e} s")  # fmt: skip
    assert found >= 10


M1, M2, L1, L2, G = 1.0, 0.8, 0.45, 0.42, 9.81
THIGH, SHANK = M1 * L1**2 / 3 + M2 * L1**2, M2 * L2**2 / 3
COUPLE = 0.5 * M2 * L1 * L2


def leg(t, x):
    """Rates of hip, knee and their rates for two uniform rods, the knee bending backward."""
    hip, knee, w1, w2 = x
    couple, sine = COUPLE * np.cos(knee), COUPLE * np.sin(knee)
    shank = hip - knee
    pull = 0.5 * M2 * G * L2 * np.sin(shank)
    a, b, d = THIGH + SHANK + 2 * couple, -SHANK - couple, SHANK
    f1 = sine * (2 * w1 * w2 - w2 * w2) - (0.5 * M1 + M2) * G * L1 * np.sin(hip) - pull
    f2 = pull - sine * w1 * w1
    det = a * d - b * b
    return w1, w2, (d * f1 - b * f2) / det, (a * f2 - b * f1) / det


def knee_by_solve_ivp(until, e=0.6, **options):
    """Swing until the knee strikes, reflect its rate with the hip's momentum kept, swing on."""
    strikes = fires(lambda t, x: x[1], -1)
    t, x, times = 0.0, np.array([np.deg2rad(70), np.deg2rad(50), 0.0, 0.0]), []
    a, b = THIGH + SHANK + 2 * COUPLE, -SHANK - COUPLE
    while t < until:
        part = solve_ivp(leg, (t, until), x, events=strikes, **(options or OPTIONS))
        t, x = part.t[-1], part.y[:, -1]
        if part.status == 1:
            times.append(t)
            change = -(1 + e) * x[3]
            x[1], x[2], x[3] = 1e-13, x[2] - b / a * change, x[3] + change
    return np.array(times)


def test_knee():
    graph, until = fsm_dyn.compile("double_pendulum_with_stop"), 1.7
    run = fsm_dyn.simulate(graph, until, **OPTIONS)
    ours, theirs = np.array([x.time for x in run.transitions]), knee_by_solve_ivp(until)
    sharp = knee_by_solve_ivp(until, rtol=1e-12, atol=1e-14, method="DOP853")
    assert len(ours) == len(theirs) == len(sharp)
    assert np.abs(ours - sharp).max() <= max(np.abs(theirs - sharp).max(), 1e-10)
    found = ratio(lambda: fsm_dyn.simulate(graph, until, **OPTIONS), lambda: knee_by_solve_ivp(until))
    print(f"knee: {found:.1f} times as fast; event error {np.abs(ours - sharp).max():.1e} s, "
          f"solve_ivp {np.abs(theirs - sharp).max():.1e} s")  # fmt: skip
    assert found >= 10


SLOPE, ALPHA = 0.08, np.pi / 8


def wheel_by_solve_ivp(until, spin=1.2, **options):
    """An inverted pendulum on each spoke: the next one strikes, and takes cos 2 alpha of the rotation."""
    lands = fires(lambda t, x: x[0] - SLOPE - ALPHA, 1)
    t, x, times = 0.0, np.array([SLOPE, spin]), []
    while t < until:
        rates = lambda t, x: (x[1], G * np.sin(x[0]))  # noqa: E731
        part = solve_ivp(rates, (t, until), x, events=lands, **(options or OPTIONS))
        t, x = part.t[-1], part.y[:, -1]
        if part.status == 1:
            times.append(t)
            x = np.array([SLOPE - ALPHA, np.cos(2 * ALPHA) * x[1]])
    return np.array(times)


def test_wheel():
    """Two coordinates of the hub where the loop has one angle: held to the loop's error, not to its rtol.

    At the loop's rtol of 1e-9 the model's events are off by 5e-9 s, the loop's by 2e-9 s.
    """
    graph, until = fsm_dyn.compile("rimless_wheel"), 20.0
    options = {"rtol": 2e-10, "atol": 1e-12}
    # a spoke square to the slope leans by SLOPE from the vertical: that is where both start
    run = fsm_dyn.simulate(graph, until, **options)
    ours, theirs = np.array([x.time for x in run.transitions]), wheel_by_solve_ivp(until)
    sharp = wheel_by_solve_ivp(until, rtol=1e-12, atol=1e-14, method="DOP853")
    assert len(ours) == len(theirs) == len(sharp)
    errors = [np.abs(times - sharp).max() for times in (ours, theirs)]
    found = ratio(lambda: fsm_dyn.simulate(graph, until, **options), lambda: wheel_by_solve_ivp(until))
    print(f"wheel: {found:.1f} times as fast; event error {errors[0]:.1e} s, solve_ivp {errors[1]:.1e} s")
    assert errors[0] <= errors[1]
    assert found >= 11
