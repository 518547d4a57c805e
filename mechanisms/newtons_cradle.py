"""The cradle in closed form: what ``yaml_models/newtons_cradle.yaml`` is checked against.

Equal balls that collide one after the other: a ball at speed v hands ``(1 + e)/2 v`` on to one at rest.  A ball on a
thread is a pendulum; its time of swing is a complete elliptic integral.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ellipk

G = 9.81


def share_of_the_last(e: float, balls: int) -> float:
    """Speed of the last ball after the impacts, as a share of the first one's before."""
    return float((0.5 * (1.0 + e)) ** (balls - 1))


def swing_time(raised: float, length: float, g: float = G) -> float:
    """Time (s) from rest at the angle ``raised`` (rad) to the bottom: a quarter of the pendulum's period."""
    return float(np.sqrt(length / g) * ellipk(np.sin(0.5 * raised) ** 2))


def speed_at_the_bottom(raised: float, length: float, g: float = G) -> float:
    """Angular velocity (rad/s) with which a ball released at the angle ``raised`` arrives."""
    return float(2.0 * np.sqrt(g / length) * np.sin(0.5 * raised))


def main() -> None:
    """Print the first impact of the model next to the closed forms."""
    import fsm_dyn

    raised = np.deg2rad(40.0)
    run = fsm_dyn.simulate(fsm_dyn.compile("newtons_cradle"), until=0.5, parameters={"e": 0.9}, rtol=1e-11)
    first = next(x for x in run.transitions if x.impulse)
    print(f"first impact {first.time:.12f} s, closed form {swing_time(raised, 0.4):.12f} s")
    print(
        f"share of the last {first.u_after[4] / first.u_before[0]:.12f}, closed form {share_of_the_last(0.9, 5):.12f}"
    )


if __name__ == "__main__":
    main()
