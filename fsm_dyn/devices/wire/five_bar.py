"""Kinematics of a pantograph of five bars: two motors on a base, two links each, joined at the handle.

The first motor is the origin, the second is at ``(base, 0)``; angles are measured from the x axis.  With ``A`` and
``B`` the elbows, the handle ``P`` is ``outer`` away from both, on the far side from the motors.  Differentiating
``|P - A|`` and ``|P - B|``, which are constant, gives the Jacobian: with ``u = P - A`` and ``v = P - B``

    u . dP = u . dA,    v . dP = v . dB.
"""

from __future__ import annotations

import math
from typing import NamedTuple

Pair = tuple[float, float]


class FiveBar(NamedTuple):
    """Lengths, m: of the links at the motors, of those at the handle, and from motor to motor."""

    inner: float
    outer: float
    base: float


class Pose(NamedTuple):
    """Handle and Jacobian.

    Attributes
    ----------
    position : (x, y)
        m.
    jacobian : ((dx/da, dx/db), (dy/da, dy/db))
        m/rad, with a and b the angles of the motors.
    """

    position: Pair
    jacobian: tuple[Pair, Pair]


def pose_of(bars: FiveBar, a: float, b: float) -> Pose | None:
    """Return the pose at angles of the motors (rad); None where the links do not meet or are in line."""
    ax, ay = bars.inner * math.cos(a), bars.inner * math.sin(a)
    bx, by = bars.base + bars.inner * math.cos(b), bars.inner * math.sin(b)
    dx, dy = 0.5 * (bx - ax), 0.5 * (by - ay)
    half = math.hypot(dx, dy)
    square = bars.outer**2 - half**2
    if half == 0.0 or square <= 0.0:
        return None
    along = math.sqrt(square) / half
    x, y = ax + dx - along * dy, ay + dy + along * dx
    ux, uy, vx, vy = x - ax, y - ay, x - bx, y - by
    determinant = ux * vy - uy * vx
    by_a = (-ux * ay + uy * ax) / determinant
    by_b = (-vx * by + vy * (bx - bars.base)) / determinant
    return Pose((x, y), ((by_a * vy, -by_b * uy), (-by_a * vx, by_b * ux)))


def angles_of(bars: FiveBar, x: float, y: float) -> Pair | None:
    """Return the angles of the motors (rad) at which the handle is there, elbows outwards; None out of reach."""
    found = []
    for side, from_motor in ((1.0, x), (-1.0, x - bars.base)):
        reach = math.hypot(from_motor, y)
        if not abs(bars.inner - bars.outer) < reach < bars.inner + bars.outer:
            return None
        cosine = (bars.inner**2 + reach**2 - bars.outer**2) / (2.0 * bars.inner * reach)
        found.append(math.atan2(y, from_motor) + side * math.acos(cosine))
    return found[0], found[1]


def torques_of(pose: Pose, force: Pair) -> Pair:
    """Return the torques of the motors (N m) that show a force (N) at the handle: the transpose of the Jacobian."""
    (xa, xb), (ya, yb) = pose.jacobian
    return xa * force[0] + ya * force[1], xb * force[0] + yb * force[1]


def force_of(pose: Pose, torques: Pair) -> Pair:
    """Return the force (N) that torques of the motors (N m) show at the handle."""
    (xa, xb), (ya, yb) = pose.jacobian
    determinant = xa * yb - xb * ya
    return (yb * torques[0] - ya * torques[1]) / determinant, (xa * torques[1] - xb * torques[0]) / determinant
