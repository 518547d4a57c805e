"""The piano action moving next to its mode graph, as the animation at the top of the README.

``python mechanisms/piano_animation.py FILE.gif`` writes it.  The modes of a key stroke are many; those of one
pattern of the model's section ``modes`` are drawn as one node.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import fsm_dyn
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene, set_box
from fsm_dyn.plot.scene_projection import View, project, trajectory_scene, with_force_arrows

WIDTH, HEIGHT, DPI = 9.0, 4.2, 90  # inches
# Strike, check and release, s; what lies between them is at rest.
TIMES = np.concatenate([np.linspace(0.045, 0.125, 64), np.linspace(0.126, 0.345, 8), np.linspace(0.346, 0.42, 38)])
FRAME_MS = 90
COLOURS = 64
OTHER = "others"  # modes that are an instance of no pattern


def pattern(mode: str, patterns: set[str]) -> str:
    """Return the pattern that a mode is an instance of."""
    name = mode.split("+")[0]
    return name if name in patterns else OTHER


def positions(nodes: list[str]) -> dict[str, tuple[float, float]]:
    """Place nodes on an ellipse, clockwise from the top in the order in which the run enters them."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(nodes)) / len(nodes)
    return {node: (1.25 * float(np.cos(a)), float(np.sin(a))) for node, a in zip(nodes, angles, strict=True)}


def draw_graph(axes: Axes, places: dict[str, tuple[float, float]], edges: set[tuple[str, str]], active: str) -> None:
    """Draw the patterns, the transitions taken between them so far, and the active one."""
    axes.set_xlim(-1.75, 1.75)
    axes.set_ylim(-1.3, 1.3)
    axes.set_axis_off()
    for a, b in sorted(edges):
        arrow = {"arrowstyle": "-|>", "color": palette.FAINT, "lw": 1.0, "shrinkA": 17, "shrinkB": 17,
                 "connectionstyle": "arc3,rad=0.12"}  # fmt: skip
        axes.annotate("", places[b], places[a], arrowprops=arrow)
    for node, place in places.items():
        box = {"boxstyle": "round,pad=0.45", "fc": palette.AREAS[1] if node == active else "white", "ec": palette.INK}
        weight = "bold" if node == active else "normal"
        axes.text(*place, node.replace("_", " "), ha="center", va="center", fontsize=10, bbox=box, fontweight=weight)


def draw_action(axes: Axes, view: View, i: int) -> None:
    """Draw the mechanism at one instant, in the limits of all."""
    low, high = view.limits()
    margin = 0.04 * (high - low).max()
    set_box(axes, low - margin, high + margin)
    axes.set_axis_off()
    draw_scene(axes, view, i)


def frames(run: fsm_dyn.Trajectory, patterns: set[str]) -> list[Figure]:
    """Return a figure for each of the times."""
    view = with_force_arrows(run, project(run, trajectory_scene(run), TIMES))
    passed = [(x.time, pattern(x.source, patterns), pattern(x.target, patterns)) for x in run.transitions]
    passed = [x for x in passed if x[0] <= TIMES[-1] and x[1] != x[2]]
    places = positions(list(dict.fromkeys(itertools.chain.from_iterable(x[1:] for x in passed))))
    drawn = []
    for i, time in enumerate(TIMES):
        figure = style.new_figure(WIDTH, HEIGHT)
        draw_action(figure.add_axes((0.01, 0.1, 0.5, 0.8)), view, i)
        edges = {(a, b) for when, a, b in passed if when <= time}
        active = pattern(run.sample(time).modes[0], patterns)
        draw_graph(figure.add_axes((0.52, 0.02, 0.47, 0.94)), places, edges, active)
        figure.text(0.02, 0.93, "piano_action, forte", fontsize=11, fontweight="bold")
        figure.text(0.02, 0.04, f"{1000 * time:.0f} ms", fontsize=10)
        drawn.append(figure)
    return drawn


def main() -> None:
    """Write the animation into the file named on the command line."""
    graph = fsm_dyn.compile("piano_action")
    run = fsm_dyn.simulate(graph, scenario="forte", until=float(TIMES[-1]) + 0.01)
    images = []
    with style.settings():
        for figure in frames(run, set(graph.automaton.mechanism.modes)):
            figure.set_dpi(DPI)
            figure.canvas.draw()
            rgba = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
            picture = Image.fromarray(rgba[..., :3])
            images.append(picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE))
    images[0].save(Path(sys.argv[1]), save_all=True, append_images=images[1:], duration=FRAME_MS, loop=0, optimize=True)


if __name__ == "__main__":
    main()
