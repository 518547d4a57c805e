"""Force over displacement of latch, switch and button: by slow and fast prescribed motion, and pushed.

``python mechanisms/latches_and_switches.py FOLDER`` writes the picture of the gallery.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style


@dataclass(frozen=True)
class Curve:
    """A model, its two prescribed motions and their ends (s), the slow push by force, and how to label the axes."""

    model: str
    slow: tuple[str, float]
    fast: tuple[str, float]
    push: str
    unit: tuple[str, float]
    across: str
    up: str
    sign: float
    lever: float


CURVES = (
    Curve("latch_door", ("gently", 4.0), ("slam", 0.5), "push", ("x", 1e3), "door, mm", "force, N", 1.0, 1.0),
    Curve(
        "toggle_switch", ("slowly", 2.0), ("flick", 0.02), "finger", ("q", 57.29578),
        "lever, degrees", "moment, N m", -1.0, 25e-3,
    ),
    Curve("push_button", ("slowly", 4.0), ("tap", 0.02), "finger", ("y", 1e3), "cap, mm", "force, N", 1.0, 1.0),
)  # fmt: skip
GROWTH = {"latch_door": 3.0, "toggle_switch": 2.0, "push_button": 0.5}  # N/s


def _led(curve: Curve, drive: str, until: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    run = fsm_dyn.simulate(fsm_dyn.compile(f"{curve.model}:motion"), until=until, scenario=drive)
    rows = run.sample(np.linspace(1e-6, until, 4000))
    name, scale = curve.unit
    return rows[name] * scale, curve.sign * rows.multipliers["led"][:, 0]


def _pushed(curve: Curve) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Pushed with a force that grows slowly: where the curve falls, the mechanism jumps."""
    rate = GROWTH[curve.model]
    others = {"handle": 0.0} if curve.model == "latch_door" else {}
    graph = fsm_dyn.compile(curve.model)
    run = fsm_dyn.simulate(graph, until=6.0, inputs={curve.push: f"{rate}*t", **others})
    times = np.linspace(0.0, 6.0, 12000)
    name, scale = curve.unit
    return run.sample(times)[name] * scale, rate * times * curve.lever


@style.settings()
def figure() -> Figure:
    """Three panels, one for each mechanism."""
    picture = style.new_figure(9.6, 3.4)
    picture.set_layout_engine("constrained", w_pad=0.08)
    for axes, curve in zip(picture.subplots(1, 3), CURVES, strict=True):
        slow, fast, pushed = palette.LINES[:3]
        axes.plot(*_led(curve, *curve.slow), label="slow motion", color=slow, lw=1.6)
        axes.plot(*_led(curve, *curve.fast), label="fast motion", color=fast, lw=1.0)
        axes.plot(*_pushed(curve), ":", label="pushed", color=pushed, lw=1.6)
        axes.grid(color="#EEEEEE", lw=0.8)
        axes.set(xlabel=curve.across, ylabel=curve.up)
        axes.set_title(curve.model, loc="left", fontsize=9, fontweight="bold")
    first, switch, button = picture.axes
    first.set_ylim(-5, 20)
    switch.set_ylim(-0.16, 0.16)
    button.set_ylim(0, 2.2)
    first.legend(loc="upper left")
    return picture


def main() -> None:
    """Write the picture into the folder named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    plot.save(figure(), folder / "latches_and_switches.png")


if __name__ == "__main__":
    main()
