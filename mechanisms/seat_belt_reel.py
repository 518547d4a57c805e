"""The inertial reel drawn: the belt that goes out, its force, and the pawl, while leaning forward and in a crash.

``python mechanisms/seat_belt_reel.py FOLDER`` writes the picture of the gallery.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style

RADIUS = 0.02  # m
WHOLE, CRASH = (0.0, 2.4), (1.99, 2.26)  # s
LEAST_FORCE = 1.0  # N, for the logarithm: the belt is slack below


@style.settings()
def figure() -> Figure:
    """Passenger and belt above, the belt's force and the pawl below; on the right the crash by itself."""
    run = fsm_dyn.simulate(fsm_dyn.compile("seat_belt_reel"), until=2.4)
    picture = style.new_figure(9.6, 6.0)
    picture.set_layout_engine("constrained", w_pad=0.08)
    panels = picture.subplots(3, 2, sharex="col", width_ratios=(2, 1))
    passenger, belt, force, tilt = palette.LINES[:4]
    for column, (first, last) in enumerate((WHOLE, CRASH)):
        times = np.linspace(first, last, 3000)
        rows = run.sample(times)
        way, pull, pawl = panels[:, column]
        way.plot(times, rows["x"] * 1e2, color=passenger, label="passenger")
        way.plot(times, rows["q"] * RADIUS * 1e2, color=belt, label="belt paid out")
        pull.semilogy(times, np.maximum(rows.multipliers["taut"][:, 0], LEAST_FORCE), color=force)
        pull.set_yticks([1, 10, 100, 1000, 10000], ["1", "10", "100", "1000", "10 000"])
        pull.minorticks_off()
        pawl.plot(times, np.rad2deg(rows["b"]), color=tilt)
        pawl.set(xlabel="time, s", xlim=(first, last))
        for panel in (way, pull, pawl):
            panel.grid(color="#EEEEEE", lw=0.8)
            if column == 0:
                panel.axvspan(*CRASH, color=palette.GROUND, zorder=0)
    for panel, text in zip(panels[:, 0], ("forward, cm", "force of the belt, N", "pawl, degrees"), strict=True):
        panel.set_ylabel(text)
    picture.align_ylabels(panels[:, 0])
    panels[0, 0].legend(loc="upper left")
    panels[0, 0].set_title("leaning forward, then a crash", fontsize=9, color=palette.SOFT)
    panels[0, 1].set_title("the crash (shaded on the left)", fontsize=9, color=palette.SOFT)
    return picture


def main() -> None:
    """Write the picture into the folder named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    plot.save(figure(), folder / "seat_belt_reel.png")


if __name__ == "__main__":
    main()
