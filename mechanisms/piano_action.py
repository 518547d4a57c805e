"""Key strokes of the piano action drawn: what the hammer does, what the finger feels, how fast the hammer strikes.

``python mechanisms/piano_action.py FOLDER`` writes the pictures of the gallery.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style

PRESSED, RELEASED = 0.02, 0.25  # s
STROKES = {"piano": 2.0, "mezzo": 5.0, "forte": 10.0}  # N
STAGES = {
    "o": ("regulating_button closes", "toe touches the button"),
    "v": ("string closes", "hammer strikes the string"),
    "s": ("backcheck_face closes", "check catches the hammer"),
}
FORCES = tuple(np.geomspace(0.9, 25.0, 14))  # N, from a key that hardly sinks to more than a finger has
DURATIONS = tuple(np.geomspace(0.25, 0.018, 12))  # s, of key strokes by motion
KEY_MEZZO, KEY_FASTEST = (0.3, 0.5), 1.0  # m/s: measured largest key speeds, Askenfelt and Jansson (1991)
LED, BOTTOM = 8e-3, 9.9e-3  # m/s and m: of a key in slow motion, to before its bottom
BOTTOM_PIANO, BOTTOM_FORTE = 0.160, 0.025  # s from the key's beginning to its bottom, Askenfelt and Jansson (1990)


@dataclass(frozen=True)
class Touch:
    """A key stroke in the terms of a player: speeds in m/s, times in s from the beginning of the key's motion.

    Attributes
    ----------
    key : float
        Largest speed of the key's front on its way to the strike.
    hammer : float
        Speed of the hammer's crown as it meets the string.
    strike, bottom : float
        When the hammer meets the string, and the key the front rail; NaN where it does not.
    """

    key: float
    hammer: float
    strike: float
    bottom: float


def touch(run: fsm_dyn.Trajectory, begins: float = 0.0) -> Touch | None:
    """Return the first strike of a run whose key is set in motion at a time (s), None where there is none."""
    struck = next((x for x in run.transitions if "string closes" in x.cause), None)
    if struck is None:
        return None
    times = np.linspace(begins, struck.time, 1000)
    speeds = np.gradient(run.sample(times)["key_travel"], times)
    bottom = next((x.time for x in run.transitions if "front_rail closes" in x.cause), np.nan)
    return Touch(
        float(speeds.max()), float(run.sample([struck.time - 1e-7])["hammer_speed"][0]), struck.time - begins,
        bottom - begins,
    )  # fmt: skip


def pressed_touches(graph: fsm_dyn.ModeGraph, forces: Sequence[float] = FORCES) -> list[Touch]:
    """Key strokes by constant forces (N): a finger at rest on the key that presses at once, those that strike."""
    found = (touch(stroke(graph, force), PRESSED) for force in forces)
    return [item for item in found if item is not None]


def led_touches(led: fsm_dyn.ModeGraph, durations: Sequence[float] = DURATIONS) -> list[Touch]:
    """Key strokes along half a cosine in times (s), by the force needed; those that strike."""
    found = (touch(led_stroke(led, duration)) for duration in durations)
    return [item for item in found if item is not None]


@style.settings()
def touch_figure() -> Figure:
    """Hammer speed over key speed on the left, the duration of a key stroke over the hammer speed on the right."""
    picture = style.new_figure(9.6, 5.0)
    picture.set_layout_engine("constrained", w_pad=0.12)
    left, right = picture.subplots(1, 2)
    kinds = {
        "constant force": (pressed_touches(fsm_dyn.compile("piano_action")), "o-"),
        "motion along a cosine": (led_touches(fsm_dyn.compile("piano_action:motion")), "s-"),
    }
    left.axvspan(*KEY_MEZZO, color=palette.GROUND, label="keys at mezzo forte, measured", zorder=0)
    left.axvline(KEY_FASTEST, color=palette.FAINT, lw=0.8, ls="--", label="fastest keys, measured")
    speeds = np.array([0.05, 1.0])
    left.plot(speeds, 5.0 * speeds, color=palette.FAINT, lw=1.0, label="five times the key's speed")
    for colour, (label, (touches, mark)) in zip(palette.LINES, kinds.items(), strict=False):
        key, hammer, strike, bottom = np.array([(x.key, x.hammer, x.strike, x.bottom) for x in touches]).T
        left.plot(key, hammer, mark, color=colour, label=label, ms=4)
        right.plot(hammer, 1e3 * strike, mark, color=colour, ms=4, label=f"{label}: strike")
        if np.isfinite(bottom).all():  # a prescribed motion ends before
            right.plot(hammer, 1e3 * bottom, ":", color=colour, label=f"{label}: key at its bottom")
    left.set(xlabel="largest speed of the key, m/s", ylabel="hammer at the string, m/s", xlim=(0, 1.05), ylim=(0, 6))
    for time, word in ((BOTTOM_PIANO, "piano"), (BOTTOM_FORTE, "forte")):
        right.axhline(1e3 * time, color=palette.FAINT, lw=0.8, ls="--")
        right.text(5.95, 1.03e3 * time, f"bottom, {word}, measured", ha="right", va="bottom", fontsize=8,
                   color=palette.SOFT)  # fmt: skip
    right.set(xlabel="hammer at the string, m/s", ylabel="after the key's beginning, ms", xlim=(0, 6), ylim=(10, 300))
    right.set_yscale("log")
    right.set_yticks([10, 20, 50, 100, 200], ["10", "20", "50", "100", "200"])
    right.minorticks_off()
    for axes in (left, right):
        axes.grid(color="#EEEEEE", lw=0.8)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return picture


def stroke(graph: fsm_dyn.ModeGraph, force: float, until: float = 0.4) -> fsm_dyn.Trajectory:
    """A key pressed with a constant force (N) and released."""
    finger = {"steps": [(0.0, 0.0), (PRESSED, force), (RELEASED, 0.0)]}
    return fsm_dyn.simulate(graph, until=until, inputs={"finger": finger})


def led_stroke(graph: fsm_dyn.ModeGraph, duration: float) -> fsm_dyn.Trajectory:
    """A key led down by motion in ``duration`` (s), along one half of a cosine; ``graph`` of the variant `motion`."""
    return fsm_dyn.simulate(graph, until=duration, inputs={"speed": f"0.0049*pi/{duration}*sin(pi*t/{duration})"})


@style.settings()
def figure() -> Figure:
    """Three key strokes by force above, the force of a slow and of a fast key stroke by motion below."""
    picture = style.new_figure(9.6, 7.2)
    picture.set_layout_engine("constrained", h_pad=0.12)
    above, below = picture.subplots(2, 1)
    graph = fsm_dyn.compile("piano_action")
    for colour, (name, force) in zip(palette.LINES, STROKES.items(), strict=False):
        _hammer(above, stroke(graph, force), f"{name}, {force:g} N", colour)
    for mark, (_, words) in STAGES.items():
        above.plot([], [], mark, color=palette.SOFT, ms=5, label=words)
    above.set(xlabel="time, ms", ylabel="hammer below the string, mm", xlim=(0.0, 400.0), ylim=(50.0, -5.0))
    above.axhline(0.0, color=palette.FAINT, lw=0.8)
    above.axvspan(1e3 * PRESSED, 1e3 * RELEASED, color=palette.GROUND, zorder=0, label="key pressed")
    above.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    led = fsm_dyn.compile("piano_action:motion")
    for colour, (duration, label) in zip(palette.LINES, ((1.2, "slow: 1.2 s"), (0.12, "fast: 0.12 s")), strict=False):
        run = led_stroke(led, duration)
        times = np.linspace(0.0, run.t[-1], 3000)
        rows = run.sample(times)
        below.plot(rows["key_travel"] * 1e3, -rows.multipliers["led"][:, 0], color=colour, label=label)
    below.set(
        xlabel="travel of the key's front, mm", ylabel="force on the finger, N", xlim=(0.2, 9.4), ylim=(-0.5, 2.5)
    )
    for axes in (above, below):
        axes.grid(color="#EEEEEE", lw=0.8)
    below.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), title="key led down")
    picture.align_ylabels((above, below))
    return picture


def key_curve(graph: fsm_dyn.ModeGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time (s), travel of the key's front (m) and the force on it (N), down and up again at ``LED``.

    Parameters
    ----------
    graph : ModeGraph
        Of the variant ``motion``.
    """
    down = BOTTOM / LED
    turn = 0.02  # s, in which the speed changes
    speed = {
        "linear": [(0.0, 0.0), (turn, LED), (down, LED), (down + turn, 0.0), (down + 0.1, 0.0),
                   (down + 0.1 + turn, -LED), (2.0 * down + 0.1, -LED), (2.0 * down + 0.1 + turn, 0.0)],
    }  # fmt: skip
    run = fsm_dyn.simulate(graph, until=2.0 * down + 0.1, inputs={"speed": speed})
    times = np.linspace(0.0, run.t[-1], 6000)
    rows = run.sample(times)
    return times, rows["key_travel"], -rows.multipliers["led"][:, 0]


@style.settings()
def key_curve_figure() -> Figure:
    """The force on a key in slow motion down and up again, over its travel."""
    picture = style.new_figure(7.2, 4.2)
    axes = picture.subplots()
    times, travel, force = key_curve(fsm_dyn.compile("piano_action:motion"))
    turned = times > BOTTOM / LED + 0.05
    for colour, part, label in zip(palette.LINES, (~turned, turned), ("down", "up"), strict=False):
        axes.plot(1e3 * travel[part], force[part], color=colour, label=label, lw=1.2)
    axes.axvspan(7.7, 8.9, color=palette.GROUND, zorder=0, label="let-off")
    axes.set(xlabel="travel of the key's front, mm", ylabel="force on the finger, N", xlim=(0, 10), ylim=(0, 1.6))
    axes.grid(color="#EEEEEE", lw=0.8)
    axes.legend(loc="upper left")
    return picture


def _hammer(axes: Axes, run: fsm_dyn.Trajectory, label: str, colour: str) -> None:
    times = np.linspace(0.0, run.t[-1], 4000)
    axes.plot(times * 1e3, run.sample(times)["hammer_below"] * 1e3, color=colour, label=label)
    for mark, (cause, _) in STAGES.items():
        time = next((x.time for x in run.transitions if cause in x.cause), None)
        if time is not None:
            axes.plot(time * 1e3, run.sample([time])["hammer_below"] * 1e3, mark, color=colour, ms=5)


def main() -> None:
    """Write the pictures into the folder named, or here."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    plot.save(figure(), folder / "piano_action_strokes.png")
    plot.save(key_curve_figure(), folder / "piano_action_key.png")
    plot.save(touch_figure(), folder / "piano_action_touch.png")


if __name__ == "__main__":
    main()
