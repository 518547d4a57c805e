"""Strokes of the piano action drawn: what the hammer does, and what the finger feels.

``python mechanisms/piano_action.py FOLDER`` writes the picture of the gallery.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fsm_dyn

PRESSED, RELEASED = 0.02, 0.25  # s
STROKES = {"piano": 2.0, "mezzo": 5.0, "forte": 10.0}  # N
STAGES = (
    ("regulating_button closes", "toe meets button"),
    ("string closes", "string"),
    ("backcheck_face closes", "check"),
)


def stroke(graph: fsm_dyn.ModeGraph, force: float, until: float = 0.4) -> fsm_dyn.Trajectory:
    """A key pressed with a constant force (N) and let go."""
    finger = {"steps": [(0.0, 0.0), (PRESSED, force), (RELEASED, 0.0)]}
    return fsm_dyn.simulate(graph, until=until, inputs={"finger": finger})


def led_stroke(graph: fsm_dyn.ModeGraph, duration: float) -> fsm_dyn.Trajectory:
    """A key led down by motion in ``duration`` (s), along one half of a cosine; ``graph`` of the variant `motion`."""
    return fsm_dyn.simulate(graph, until=duration, inputs={"speed": f"0.0049*pi/{duration}*sin(pi*t/{duration})"})


def figure() -> Figure:
    """Three strokes by force above, the force of a slow and of a fast stroke by motion below."""
    picture = Figure(figsize=(8.0, 6.4), layout="constrained")
    above, below = picture.subplots(2, 1)
    graph = fsm_dyn.compile("piano_action")
    for name, force in STROKES.items():
        _hammer(above, stroke(graph, force), f"{name}, {force:g} N")
    above.set(xlabel="time, ms", ylabel="hammer below the string, mm", ylim=(50.0, -5.0))
    above.axhline(0.0, color="0.6", linewidth=0.8)
    above.legend(frameon=False)
    led = fsm_dyn.compile("piano_action:motion")
    for duration, label in ((1.2, "slow: 1.2 s"), (0.12, "fast: 0.12 s")):
        run = led_stroke(led, duration)
        times = np.linspace(0.0, run.t[-1], 3000)
        rows = run.sample(times)
        below.plot(rows["key_travel"] * 1e3, -rows.multipliers["led"][:, 0], label=label, linewidth=1.2)
    below.set(
        xlabel="travel of the key's front, mm", ylabel="force on the finger, N", xlim=(0.2, 9.4), ylim=(-0.5, 3.5)
    )
    below.legend(frameon=False)
    return picture


def _hammer(axes: Axes, run: fsm_dyn.Trajectory, label: str) -> None:
    times = np.linspace(0.0, run.t[-1], 4000)
    (line,) = axes.plot(times * 1e3, run.sample(times)["hammer_below"] * 1e3, label=label, linewidth=1.2)
    for words, mark in zip((words for words, _ in STAGES), "ovs", strict=True):
        time = next((x.time for x in run.transitions if words in x.cause), None)
        if time is not None:
            axes.plot(time * 1e3, run.sample([time])["hammer_below"] * 1e3, mark, color=line.get_color(), markersize=5)


def main() -> None:
    """Write the picture into the folder named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    figure().savefig(folder / "piano_action_strokes.png", dpi=110)


if __name__ == "__main__":
    main()
