"""Runs that start in a change point or close to it, with one angle and its speed given, against exact motions.

What is not given there is badly determined by the rows: the error of a residual is divided by what is left of them.
"""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from tests.reference.linkages import bricard, four_bar, parallelogram_angle, parallelograms

OFFSETS = [0.0, *(sign * 10.0**power for power in range(-12, -2) for sign in (1, -1))]
RESOLVED = [offset for offset in OFFSETS if abs(offset) >= 9e-9]
A, B, C, D = mp.mpf(1), mp.mpf(2), mp.mpf(3) / 2, mp.mpf(3) / 2
DIGITS = 30


def run_of(graph, until, rtol):
    run = fsm_dyn.simulate(graph, until, rtol=rtol, atol=1e-2 * rtol)
    assert run.energy.relative_residual <= 10 * rtol
    return run


@pytest.mark.parametrize("speed", [-3.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_parallelograms_turn_as_one_pendulum(n, speed):
    """For any guess of the other angles: on the other branches the first rocker is at rest."""
    for spread, offset in [(1.0, offset) for offset in OFFSETS[:: 2 * n]] + [(0.0, 0.0), (0.0, 1e-11), (0.0, -1e-5)]:
        model = parallelograms(n)
        guess = {name: spread * offset * (name[0] == "r") for name in model["coordinates"] if name != "r0"}
        model["initial"] = {"r0": offset, "r0_dot": speed, "guess": guess}
        graph = fsm_dyn.compile(model)
        exact = parallelogram_angle(n, [0.0, 1.0], r0=offset, r0_dot=speed)[-1]
        for rtol in (1e-6, 1e-8, 1e-10):
            run = run_of(graph, 1.0, rtol)
            rockers = [run.q[-1, list(model["coordinates"]).index(f"r{i}")] for i in range(n + 1)]
            np.testing.assert_allclose(rockers, exact, rtol=0, atol=10 * rtol * max(1.0, abs(exact)))


def angles(q):
    """Coupler and rocker of :func:`four_bar` on the branch of tests/reference/linkages.py, to many digits."""
    x, y = A * mp.cos(q) - D, A * mp.sin(q)
    square = x * x + y * y
    root = 2 * mp.sqrt(A * D) * mp.sin(q / 2) * mp.sqrt((B + C) ** 2 - square)
    cosine, sine = (square + C * C - B * B) / (2 * C), root / (2 * C)
    rocker = mp.atan2(y * cosine - x * sine, x * cosine + y * sine)
    return mp.atan2(C * mp.sin(rocker) - y, D - A * mp.cos(q) + C * mp.cos(rocker)), rocker


def ratios(q):
    q = q if abs(q) > mp.mpf(10) ** -14 else mp.mpf(10) ** -14  # the limit
    coupler, rocker = angles(q)
    sine = mp.sin(rocker - coupler)
    return A * mp.sin(q - rocker) / (B * sine), A * mp.sin(q - coupler) / (C * sine)


def inertia(q):
    coupler, _ = angles(q)
    k2, k3 = ratios(q)
    return float(A * A / 3 + A * A + B * B * k2 * k2 / 3 + A * B * k2 * mp.cos(q - coupler) + C * C * k3 * k3 / 3)


def four_bar_after(offset, speed, until):
    """Angles after a time, from the energy: without loads I(q1) q1'^2 is constant."""
    with mp.workdps(DIGITS):
        energy = inertia(mp.mpf(offset)) * speed**2

        def rate(_, q):
            return [np.sign(speed) * np.sqrt(energy / inertia(mp.mpf(q[0])))]

        q = solve_ivp(rate, (0.0, until), [offset], "DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
        return np.array([q, *map(float, angles(mp.mpf(q)))])


@pytest.mark.parametrize("speed", [-3.0, 3.0])
def test_a_four_bar_near_its_change_point(speed):
    """The configuration determines the branch where it is known better than the distance from the change point."""
    for offset in RESOLVED[::2]:
        with mp.workdps(DIGITS):
            guess = [1.01 * float(angle) for angle in angles(mp.mpf(offset))]
        model = four_bar()
        model["initial"] = {"q1": offset, "q1_dot": speed, "guess": {"q2": guess[0], "q3": guess[1]}}
        graph, exact = fsm_dyn.compile(model), four_bar_after(offset, speed, 0.5)
        for rtol in (1e-6, 1e-8):
            np.testing.assert_allclose(run_of(graph, 0.5, rtol).q[-1], exact, rtol=0, atol=3 * rtol)


@pytest.mark.parametrize("speed", [-3.0, 3.0])
def test_speeds_of_a_branch_near_the_change_point(speed):
    """Angles that the rows hardly determine do not contradict speeds that are right."""
    for offset in OFFSETS[::3]:
        with mp.workdps(DIGITS):
            exact = [float(angle) for angle in angles(mp.mpf(offset))]
            k2, k3 = map(float, ratios(mp.mpf(offset)))
        model = four_bar()
        model["initial"] = {
            "q1": offset, "q1_dot": speed, "q2_dot": k2 * speed, "q3_dot": k3 * speed,
            "guess": {"q2": 1.01 * exact[0], "q3": 1.01 * exact[1]},
        }  # fmt: skip
        run = run_of(fsm_dyn.compile(model), 0.5, 1e-8)
        np.testing.assert_allclose(run.q[0], [offset, *exact], rtol=0, atol=1e-12)
        np.testing.assert_allclose(run.q[-1], four_bar_after(offset, speed, 0.5), rtol=0, atol=3e-8)


@pytest.mark.parametrize("offset", [0.0, 1e-12, -1e-10])
def test_two_branches_are_named(offset):
    model = four_bar()
    model["initial"] = {"q1": offset, "q1_dot": 3.0, "guess": {"q2": 0.0, "q3": 0.0}}
    with pytest.raises(ModelError, match="several motions have the speeds given") as error:
        fsm_dyn.compile(model)
    # a + b k2 = c k3 and a + b k2^2 = c k3^2 in all in line
    assert "q2_dot = 0.363961, q3_dot = 2.48528" in str(error.value)
    assert "q2_dot = -12.364, q3_dot = -14.4853" in str(error.value)


def test_speeds_of_no_branch_are_refused():
    model = four_bar()
    model["initial"] = {"q1": 0.0, "q1_dot": 3.0, "q2_dot": 0.0, "q3_dot": 2.0, "guess": {"q2": 0.0, "q3": 0.0}}
    with pytest.raises(fsm_dyn.RunError, match="speeds belong to no branch"):
        fsm_dyn.simulate(fsm_dyn.compile(model), 0.1)


def test_a_row_that_is_always_redundant_is_no_change_point():
    model = bricard()
    model["initial"] = {"q0_dot": 0.3}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.5, rtol=1e-8, atol=1e-10)
    assert run.energy.relative_residual <= 1e-6
