"""The block on a belt in closed form: what ``yaml_models/stick_slip_belt.yaml`` is checked against.

With static friction ``k x_s`` and kinetic friction ``k x_k`` the block is carried to ``x_s``, swings about ``x_k`` and
is caught at ``2 x_k - x_s``, the mirror image of where it began to slide.
"""

from __future__ import annotations

import numpy as np


def slip_time(m: float, k: float, static: float, kinetic: float, belt: float) -> float:
    """Time (s) from break-away to the next sticking; ``static`` and ``kinetic`` are forces (N)."""
    omega = np.sqrt(k / m)
    return float(2.0 / omega * (np.pi - np.arctan((static - kinetic) / k * omega / belt)))


def stick_time(k: float, static: float, kinetic: float, belt: float) -> float:
    """Time (s) for which the belt carries the block along."""
    return float(2.0 * (static - kinetic) / k / belt)


def caught_at(k: float, static: float, kinetic: float) -> float:
    """Displacement (m) at which the slip ends."""
    return (2.0 * kinetic - static) / k


def main() -> None:
    """Print the instants of the model next to the closed form."""
    import fsm_dyn

    run = fsm_dyn.simulate(fsm_dyn.compile("stick_slip_belt"), until=10.0, rtol=1e-11, atol=1e-13)
    times = [x.time for x in run.transitions]
    print(f"slips for {times[1] - times[0]:.12f} s, closed form {slip_time(1.0, 40.0, 6.0, 4.0, 0.2):.12f} s")
    print(f"sticks for {times[2] - times[1]:.12f} s, closed form {stick_time(40.0, 6.0, 4.0, 0.2):.12f} s")


if __name__ == "__main__":
    main()
