"""The rocking block in closed form: what ``yaml_models/rocking_block.yaml`` is checked against (Housner 1963).

About a corner ``theta'' = -p² sin(alpha - theta)`` with ``p² = 3 g / (4 R)``, R half the diagonal and alpha the angle
at which the block would topple.  An impact passes the rotation on from corner to corner.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad

G = 9.81


def restitution(alpha: float) -> float:
    """Ratio of the angular velocities after and before an impact: ``1 - (3/2) sin² alpha``."""
    return float(1.0 - 1.5 * np.sin(alpha) ** 2)


def rate(b: float, h: float, g: float = G) -> float:
    """Housner's p (1/s) of a block of half width ``b`` and half height ``h`` (m)."""
    return float(np.sqrt(3.0 * g / (4.0 * np.hypot(b, h))))


def linear_period(tilt: float, alpha: float, p: float) -> float:
    """Period (s) of a slender block that rocks with amplitude ``tilt``: ``(4/p) acosh(1/(1 - tilt/alpha))``."""
    return float(4.0 / p * np.arccosh(1.0 / (1.0 - tilt / alpha)))


def fall_time(tilt: float, alpha: float, p: float) -> float:
    """Time (s) from rest at ``tilt`` to the impact, without linearisation; a quarter of the period."""
    # theta = tilt (1 - s²) takes the root out of the speed at the start

    def time(s: float) -> float:
        theta = tilt * (1.0 - s * s)
        # cos(alpha - tilt) - cos(alpha - theta) as a product, which does not cancel
        speed = 2.0 * p * np.sqrt(np.sin(alpha - 0.5 * (tilt + theta)) * np.sin(0.5 * tilt * s * s))
        return float(2.0 * tilt * s / speed) if s > 0.0 else float(np.sqrt(2.0 * tilt / np.sin(alpha - tilt)) / p)

    return float(quad(time, 0.0, 1.0, epsabs=1e-13, epsrel=1e-13)[0])


def next_tilt(tilt: float, alpha: float) -> float:
    """Angle (rad) to which the block swings after the impact that follows on rest at ``tilt``.

    The energy over that of standing goes with ``sin(alpha - tilt/2) sin(tilt/2)`` and the impact keeps the square of
    the restitution of it; solved for the tangent of half the angle, without taking near equals from each other.
    """
    energy = restitution(alpha) ** 2 * np.sin(alpha - 0.5 * tilt) * np.sin(0.5 * tilt)
    root = np.sqrt(np.sin(alpha) ** 2 - 4.0 * energy * (np.cos(alpha) + energy))
    return float(2.0 * np.arctan(2.0 * energy / (np.sin(alpha) + root)))


def standing_time(tilt: float, alpha: float, p: float) -> float:
    """Time (s) from rest at ``tilt`` to standing, after impacts without number.

    The swings are added up until they are so small (1e-8 rad) that their durations are a geometric series.
    """
    time = fall_time(tilt, alpha, p)
    while tilt > 1e-8:
        tilt = next_tilt(tilt, alpha)
        swing = 2.0 * fall_time(tilt, alpha, p)
        time += swing
    ratio = restitution(alpha)
    return time + swing * ratio / (1.0 - ratio)


def main() -> None:
    """Print the first impacts of the model next to the closed forms."""
    import fsm_dyn

    b, h, tilt = 0.1, 0.5, np.deg2rad(6.0)
    alpha = np.arctan2(b, h)
    run = fsm_dyn.simulate(fsm_dyn.compile("rocking_block"), until=4.0, rtol=1e-11, atol=1e-13)
    first = run.transitions[0]
    print(f"first impact {first.time:.12f} s, closed form {fall_time(tilt, alpha, rate(b, h)):.12f} s")
    print(f"keeps {first.u_after[2] / first.u_before[2]:.12f} of the rotation, Housner {restitution(alpha):.12f}")


if __name__ == "__main__":
    main()
