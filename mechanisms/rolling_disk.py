"""The disk on a ramp in closed form: what ``yaml_models/rolling_disk.yaml`` is checked against.

For a uniform disk of mass m on a slope φ with friction μ (Gillespie 2003, Example 1, equation (42) and below): rolling
takes a third of the force along the ramp as friction, and a slip dies at ``3 μ g cos φ ± g sin φ``.
"""

from __future__ import annotations

import numpy as np

G = 9.81


def slip_ends(spin: float, mu: float, slope: float, g: float = G) -> float:
    """Time (s) after which a disk set down with rim speed ``-spin`` (m/s) and no other motion rolls."""
    return float(spin / (3.0 * mu * g * np.cos(slope) - g * np.sin(slope)))


def push_that_breaks_rolling(mass: float, mu: float, slope: float, g: float = G) -> float:
    """Force (N) up the ramp, at the centre, at which rolling gives way to slip."""
    return float(mass * g * (3.0 * mu * np.cos(slope) + np.sin(slope)))


def rolling_acceleration(slope: float, g: float = G) -> float:
    """Acceleration (m/s²) along the ramp of a disk that rolls freely: ``-(2/3) g sin φ``."""
    return float(-2.0 / 3.0 * g * np.sin(slope))


def main() -> None:
    """Print the model's instants next to the closed forms."""
    import fsm_dyn

    slope = np.deg2rad(12.0)
    run = fsm_dyn.simulate(fsm_dyn.compile("rolling_disk"), until=4.0, rtol=1e-10, atol=1e-12)
    push = push_that_breaks_rolling(2.0, 0.35, slope)
    print(f"slip ends   {run.transitions[0].time:.12f} s, closed form {slip_ends(4.0, 0.35, slope):.12f} s")
    print(f"slip begins {run.transitions[1].time:.12f} s, closed form {1.2 + 0.4 * push / 40.0:.12f} s")
    for transition in run.transitions:
        print(transition)


if __name__ == "__main__":
    main()
