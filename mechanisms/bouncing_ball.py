"""The bouncing ball in closed form: what ``yaml_models/bouncing_ball.yaml`` is checked against.

Run it as ``python mechanisms/bouncing_ball.py`` to see the impacts of the compiled model next to the formulas.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

G = 9.81


def impact_times(e: float, height: float, count: int, g: float = G) -> NDArray[np.float64]:
    """Instants of the first impacts (s) of a ball dropped from ``height`` (m) with restitution ``e``."""
    first = np.sqrt(2.0 * height / g)
    return np.asarray(first * (1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(e ** np.arange(1, count))])))


def zeno_time(e: float, height: float, g: float = G) -> float:
    """The instant (s) at which the impacts have run together: ``t₁ (1 + e) / (1 - e)``."""
    return float(np.sqrt(2.0 * height / g) * (1.0 + e) / (1.0 - e))


def main() -> None:
    """Print the impacts of the model and of the closed form side by side."""
    import fsm_dyn

    graph = fsm_dyn.compile("bouncing_ball")
    run = fsm_dyn.simulate(graph, until=5.0)
    bounces = [x.time for x in run.transitions if x.target == "flight"]
    for k, (found, exact) in enumerate(zip(bounces, impact_times(0.8, 1.0, len(bounces)), strict=True), 1):
        print(f"impact {k:2d}: {found:.12f} s, closed form {exact:.12f} s")
    print(f"at rest from {run.transitions[-1].time:.12f} s, Zeno time {zeno_time(0.8, 1.0):.12f} s")


if __name__ == "__main__":
    main()
