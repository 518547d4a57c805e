"""The rate of a clock against the swing of its pendulum, for an anchor and a deadbeat escapement.

``python mechanisms/escapements.py FOLDER`` writes the picture of the gallery.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style

WEIGHTS = {
    "escapement_anchor": (0.009, 0.012, 0.016, 0.02, 0.026, 0.034),
    "escapement_deadbeat": (0.014, 0.017, 0.02, 0.025, 0.03, 0.036),
}  # kg
MINUTES = 1440.0  # a day


def rates(name: str) -> tuple[list[float], list[float]]:
    """Amplitudes (rad) and periods (s) of the cycles that weights lead to."""
    graph = fsm_dyn.compile(name)
    found = [
        fsm_dyn.limit_cycle(graph, "p falling", advancing={"w": "pitch"}, parameters={"m_weight": weight})
        for weight in WEIGHTS[name]
    ]
    return [float(cycle.trajectory["p"].max()) for cycle in found], [cycle.period for cycle in found]


def free_period(amplitude: float, values: dict[str, float]) -> float:
    """Of the pendulum alone (s), by the arithmetic-geometric mean."""
    inertia = values["m_bob"] * values["length"] ** 2 + values["J_bob"]
    a, b = 1.0, float(np.cos(amplitude / 2))
    for _ in range(6):
        a, b = (a + b) / 2, float(np.sqrt(a * b))
    return float(2 * np.pi * np.sqrt(inertia / (values["m_bob"] * values["g"] * values["length"])) / a)


def figure() -> Figure:
    """Gain per day against amplitude, both escapements and the pendulum alone."""
    with style.settings():
        picture = style.new_figure(8.0, 4.2)
        _draw(picture.add_axes((0.09, 0.13, 0.88, 0.83)))
    return picture


def _draw(axes: Axes) -> None:
    values = {"m_bob": 0.3, "length": 0.25, "J_bob": 1e-4, "g": 9.81}
    small = free_period(1e-6, values)
    for name, label in (("escapement_anchor", "anchor"), ("escapement_deadbeat", "deadbeat")):
        amplitudes, periods = rates(name)
        places = [(np.rad2deg(a), (small / T - 1) * MINUTES) for a, T in zip(amplitudes, periods, strict=True)]
        axes.plot(*zip(*places, strict=True), "o-", label=label, color=palette.LINES[label == "deadbeat"])
        aside = (0, 7) if label == "anchor" else (0, -14)
        for place, weight in zip(places, WEIGHTS[name], strict=True):
            axes.annotate(f"{weight * 1e3:g} g", place, aside, textcoords="offset points", ha="center", fontsize=8)
    swing = np.linspace(np.deg2rad(3.5), np.deg2rad(10), 60)
    alone = [(small / free_period(float(a), values) - 1) * MINUTES for a in swing]
    axes.plot(np.rad2deg(swing), alone, color="0.5", linewidth=1.0, label="the pendulum alone")
    axes.set(xlabel="amplitude, degrees", ylabel="gain against small swings, minutes a day")
    axes.margins(x=0.06, y=0.12)  # room for the weights next to the dots
    axes.legend()


def main() -> None:
    """Write the picture into the folder named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    plot.save(figure(), folder / "escapement_rates.png")


if __name__ == "__main__":
    main()
