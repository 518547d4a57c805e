"""Bricard's mechanism of A04 as one equation: its hinge angles alternate between two values tied by the closure."""

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import solve_ivp

G = 9.81
AXES = "yzxyz"
STEPS = np.array([[1, 0, 0], [0, -1, 0], [0, 0, 1], [-1, 0, 0], [0, 1, 0]], float)


def turn(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    return {
        "x": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "y": np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "z": np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[axis]


def chain(angles):
    """Ends and turning axes of the bars: (6, 3) corners, (5, 3) axes in space."""
    frame, corners, axes = np.eye(3), [np.zeros(3)], []
    for axis, step, angle in zip(AXES, STEPS, angles, strict=True):
        axes.append(frame @ np.eye(3)["xyz".index(axis)])
        frame = frame @ turn(axis, angle)
        corners.append(corners[-1] + frame @ step)
    return np.array(corners), np.array(axes)


def second_angle(first):
    """The other hinge angle, by Newton's method from the branch through the cube."""
    second = -first / (1 + first) if first > 0 else -first
    for _ in range(60):
        corners, axes = chain([first, second, first, second, first])
        off = corners[-1] - [0, 0, 1]
        slope = sum(np.cross(axes[k], corners[-1] - corners[k]) for k in (1, 3))
        change = -(slope @ off) / (slope @ slope)
        second += change
        if abs(change) < 1e-15:
            break
    return second, float(np.abs(off).max())


def reduced(first):
    """Inertia and potential along the first angle, the second angle, and how far the loop is from being closed."""
    second, off = second_angle(first)
    corners, axes = chain([first, second, first, second, first])
    end = [np.cross(axes[k], corners[-1] - corners[k]) for k in range(5)]
    ratio = -((end[0] + end[2] + end[4]) @ (end[1] + end[3])) / ((end[1] + end[3]) @ (end[1] + end[3]))
    rates = np.array([1, ratio, 1, ratio, 1])
    inertia, potential = 0.0, 0.0
    velocity, omega = np.zeros(3), np.zeros(3)
    for k in range(5):
        omega = omega + rates[k] * axes[k]
        bar = corners[k + 1] - corners[k]
        middle, swing = velocity + np.cross(omega, bar / 2), np.cross(omega, bar)
        inertia += middle @ middle + swing @ swing / 12  # a thin bar: 1/12 of the square of its ends' relative speed
        potential += G * (corners[k] + bar / 2)[1]
        velocity = velocity + np.cross(omega, bar)
    return inertia, potential, second, off


def motion(times, low, high):
    """First and second angle at ``times``, released at rest from the cube; the first one stays in (low, high)."""
    nodes = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * (np.arange(120) + 0.5) / 120)
    values = np.array([reduced(first) for first in nodes])
    assert values[:, 3].max() < 1e-12
    scaled = (2 * nodes - low - high) / (high - low)
    inertia, potential, second = (chebyshev.chebfit(scaled, values[:, i], 100) for i in range(3))
    slopes = [chebyshev.chebder(series) * 2 / (high - low) for series in (inertia, potential)]

    def rates(_, y):
        s = (2 * y[0] - low - high) / (high - low)
        M, dM, dV = (chebyshev.chebval(s, series) for series in (inertia, *slopes))
        return [y[1], -(0.5 * dM * y[1] ** 2 + dV) / M]

    first = solve_ivp(rates, (0.0, times[-1]), [0.0, 0.0], "DOP853", times, rtol=1e-12, atol=1e-13).y[0]
    return first, chebyshev.chebval((2 * first - low - high) / (high - low), second)
