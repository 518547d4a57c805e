"""The follower on an eccentric cam in closed form: what ``yaml_models/cam_flat_follower.yaml`` is checked against.

A flat face on a disk of eccentricity d moves as ``y = r + d sin(phi)``, harmonically; the force that keeps it there is
``m g + preload + k d sin(phi) - m d w² sin(phi)`` at constant speed w and without damping.
"""

from __future__ import annotations

import numpy as np

G = 9.81


def lift_off_speed(m: float, d: float, k: float, preload: float, g: float = G) -> float:
    """Speed (rad/s) of the cam above which the follower leaves it."""
    return float(np.sqrt((m * g + preload + k * d) / (m * d)))


def lift_off_angle(w: float, m: float, d: float, k: float, preload: float, g: float = G) -> float:
    """Angle (rad) of the cam at which the follower leaves it, at a speed ``w`` above the limit."""
    return float(np.arcsin((m * g + preload) / (d * (m * w * w - k))))


def main() -> None:
    """Print where the model's follower lifts next to the closed form."""
    import fsm_dyn

    limit = lift_off_speed(0.4, 0.01, 500.0, 10.0)
    w = 1.05 * limit
    run = fsm_dyn.simulate(
        fsm_dyn.compile("cam_flat_follower"), until=0.1, inputs={"speed": w}, parameters={"c": 0.0}, rtol=1e-11
    )
    found = w * run.transitions[0].time
    print(f"speed limit {limit:.6f} rad/s; at {w:.6f} rad/s it lifts at {found:.12f} rad,")
    print(f"closed form {lift_off_angle(w, 0.4, 0.01, 500.0, 10.0):.12f} rad")


if __name__ == "__main__":
    main()
