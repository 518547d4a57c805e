"""The rod that slides on its foot in closed form: what ``yaml_models/sliding_rod.yaml`` is checked against.

A uniform rod of half length l is at the angle q, on its foot, which slides with direction s = +1 or -1.  The foot
answers a normal force with ``(1 + 3 cos² q + 3 s mu sin q cos q)/m``; where that becomes zero, which it first does
for mu = 4/3 at tan q = 2 (s cos q < 0), the equations of the sliding foot fail (Painleve 1895).
"""

from __future__ import annotations

import numpy as np

G = 9.81


def foot_compliance(q: float, mu: float, s: float) -> float:
    """Normal acceleration of the foot per normal force, times the mass."""
    return float(1.0 + 3.0 * np.cos(q) ** 2 + 3.0 * s * mu * np.sin(q) * np.cos(q))


def normal_force(q: float, w: float, mu: float, s: float, m: float, half: float, g: float = G) -> float:
    """Force (N) on the foot while it slides: negative where it would lift, or where the equations fail."""
    return float(m * (g - half * w * w * np.sin(q)) / foot_compliance(q, mu, s))


def lift_off_rate(q: float, half: float, g: float = G) -> float:
    """Angular velocity (rad/s) above which the foot lifts, for any friction below its critical value."""
    return float(np.sqrt(g / (half * np.sin(q))))


def main() -> None:
    """Print the force on the model's foot next to the closed form."""
    import fsm_dyn

    q = np.arctan(2.0)
    run = fsm_dyn.simulate(
        fsm_dyn.compile("sliding_rod"), until=1e-3, initial={"mode": "sliding", "q": q, "vx": -2.0, "w": 0.0},
        parameters={"mu": 1.0},
    )  # fmt: skip
    print(
        f"force {run.multipliers['foot'][0][0]:.12f} N, closed form {normal_force(q, 0.0, 1.0, -1.0, 1.0, 0.5):.12f} N"
    )


if __name__ == "__main__":
    main()
