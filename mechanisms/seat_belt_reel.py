"""The inertial reel drawn: the belt that goes out, its force, and the pawl, while leaning forward and in a crash.

``python mechanisms/seat_belt_reel.py FOLDER`` writes the picture of the gallery.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fsm_dyn

RADIUS = 0.02  # m


def figure() -> Figure:
    """Passenger and belt above, the belt's force and the pawl below; on the right the crash by itself."""
    run = fsm_dyn.simulate(fsm_dyn.compile("seat_belt_reel"), until=2.4)
    picture = Figure(figsize=(8.0, 5.0), layout="constrained")
    panels = picture.subplots(3, 2, sharex="col", width_ratios=(2, 1))
    for column, (first, last) in enumerate(((0.0, 2.4), (1.99, 2.26))):
        times = np.linspace(first, last, 3000)
        rows = run.sample(times)
        way, pull, pawl = panels[:, column]
        way.plot(times, rows["x"] * 1e2, label="passenger")
        way.plot(times, rows["q"] * RADIUS * 1e2, label="belt paid out")
        pull.semilogy(times, np.maximum(rows.multipliers["taut"][:, 0], 1.0), color="C2")
        pawl.plot(times, np.rad2deg(rows["b"]), color="C3")
        pawl.set(xlabel="time, s")
    for panel, text in zip(panels[:, 0], ("forward, cm", "belt's force, N", "pawl, degrees"), strict=True):
        panel.set_ylabel(text)
    panels[0, 0].legend(frameon=False)
    panels[0, 1].set_title("the crash", fontsize=9)
    return picture


def main() -> None:
    """Write the picture into the folder named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    figure().savefig(folder / "seat_belt_reel.png", dpi=110)


if __name__ == "__main__":
    main()
