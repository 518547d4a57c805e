"""The gallery of all shipped models by theme: each in motion, its mode graph, the score of one with contacts.

``python mechanisms/gallery.py FOLDER`` writes ``gallery/models.md`` and ``pictures/models/`` into a folder, by default
``docs``.  It fails where a model does not come to a picture on which there is something to be seen.
"""

from __future__ import annotations

import html
import multiprocessing
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image  # Matplotlib requires it

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.automaton.mode_graph import graph_svg
from fsm_dyn.language import models

WORKERS = 2
DPI = 100
LEAST_DRAWN = 0.004  # of a picture's points that are not white
MOST_BYTES = 45_000  # of a picture or a graph
SCORE_DPI = 76
SCORE_COLOURS = 48

# What shows the most of a model, where its own schedule from the beginning to its end does not.
SHOWN: dict[str, dict[str, Any]] = {
    "ball_chain": {"until": 0.6},
    "billiard_ball": {"until": 1.2},
    "four_bar_row": {"until": 1.2},
    "geneva_drive": {"until": 0.45},
    "gripper": {"until": 2.5},
    "magnetic_latch": {"until": 0.6},
    "piano_action": {"scenario": "forte", "until": 0.5},
    "piano_action_simple": {"until": 0.5},
    "ratchet": {"until": 2.5},
    "planetary_gear": {"until": 0.9},
    "rocking_block": {"until": 2.0},
    "rolling_coin": {"until": 1.6},
    "seat_belt_reel": {"until": 0.9},
    "seven_body_mechanism": {"until": 0.03},
    "spatial_robot": {"until": 2.0},
    "stick_slip_belt": {"until": 3.0},
    "tray": {"until": 0.8},
    "virtual_wall": {"until": 1.3},
    "carried_bar": {"until": 1.2},
}


@dataclass(frozen=True)
class Entry:
    """What the page shows of a model."""

    name: str
    summary: str
    source: str
    modes: str
    command: str
    has_score: bool = False


def entry(name: str, folder: Path) -> Entry:
    """Run a model, write its pictures into the folder and return what the page shows of it.

    Raises
    ------
    RuntimeError
        There is nothing to be seen, or it became too large.
    """
    graph = fsm_dyn.compile(name)
    options = SHOWN.get(name, {})
    simulator = fsm_dyn.Simulator(graph)
    run = simulator.run(**options, strategy="compiled")  # so that all modes it reaches are in the graph
    extended = simulator.extended_graph()
    picture = plot.thumbnail(run)
    picture.savefig(folder / f"{name}.png", dpi=DPI)
    drawn = np.asarray(picture.canvas.buffer_rgba())[..., :3].min(axis=-1) < 250  # type: ignore[attr-defined]
    if drawn.mean() < LEAST_DRAWN:
        raise RuntimeError(f"there is next to nothing on the picture of {name}: {drawn.mean():.2%}")
    target = folder / f"{name}_modes.svg"
    target.write_text(graph_svg(extended.automaton, graph.initial) + "\n", encoding="utf-8")
    mechanism = graph.automaton.mechanism
    scores = [_score(run, folder / f"{name}_score.png")] if mechanism.contacts else []
    for path in (target, folder / f"{name}.png", *scores):
        if path.stat().st_size > MOST_BYTES:
            raise RuntimeError(f"{path.name} has {path.stat().st_size} bytes")
    told = _modes(graph, run), _command(name, options)
    return Entry(name, mechanism.summary, mechanism.source, *told, has_score=bool(mechanism.contacts))


def _score(run: fsm_dyn.Trajectory, path: Path) -> Path:
    """Write the score of a run, in few colours."""
    figure = plot.score(run)
    figure.savefig(path, dpi=SCORE_DPI)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(SCORE_COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return path


def _modes(graph: fsm_dyn.ModeGraph, run: fsm_dyn.Trajectory) -> str:
    met = len({*run.labels, *(x.target_label for x in run.transitions)})
    listed = len(graph.modes)
    pruned = f", {len(graph.infeasible)} more infeasible" if graph.infeasible else ""
    if not graph.automaton.contacts:
        return "one mode"
    if graph.automaton.fully_enumerated:
        return f"{listed} modes{pruned}; {met} in this run"
    by_name = "one mode" if listed == 1 else f"{listed} modes"
    return f"{by_name} by name, others as they are reached; {met} in this run"


def _command(name: str, options: dict[str, Any]) -> str:
    given = " ".join(f"--{key} {value}" for key, value in options.items() if not isinstance(value, dict))
    assigned = [f"--{key[:-1] if key == 'inputs' else key} {a}={b}" for key, value in options.items()
                if isinstance(value, dict) for a, b in value.items()]  # fmt: skip
    return " ".join(filter(None, [f"fsm-dyn run {name}", given, *assigned, "--motion"]))


def page(entries: list[Entry], pages: dict[str, str]) -> str:
    """Return the page; ``pages`` are those that describe a model further, by its name."""
    parts = [
        "# All models",
        "",
        f"The {len(entries)} models of the package by theme, each at some instants of a run. Open the number of modes",
        "to see their graph, and the score to see which contacts touched when, and why. Made by `make gallery`.",
        "",
    ]
    by_name = {one.name: one for one in entries}
    for theme, names in models.by_theme().items():
        own = [by_name[name] for name in names if name in by_name]
        if own:
            parts += [f"## {theme}", "", *_cards(own, pages), ""]
    return "\n".join(parts)


def _cards(entries: list[Entry], pages: dict[str, str]) -> list[str]:
    parts = ['<div class="models">']
    for one in entries:
        more = f' <a href="{pages[one.name]}.html">More</a>' if one.name in pages else ""
        source = f' <span class="source">{html.escape(one.source)}</span>' if one.source else ""
        parts += [
            f'<figure id="{one.name}">',
            _image(f"{one.name}.png", f"{one.name} in motion", 'width="360" height="240" '),
            f"<figcaption><b>{one.name}</b> {html.escape(one.summary)}{more}{source}",
            f"<details><summary>{one.modes}</summary>",
            _image(f"{one.name}_modes.svg", f"Mode graph of {one.name}") + "</details>",
            *([f"<details><summary>score</summary>{_linked_score(one.name)}</details>"] if one.has_score else []),
            f"<code>{html.escape(one.command)}</code></figcaption>",
            "</figure>",
        ]
    return [*parts, "</div>"]


def _linked_score(name: str) -> str:
    picture = _image(f"{name}_score.png", f"Score of {name}: phases with causes, close-ups, contacts over time")
    return f'<a href="../pictures/models/{name}_score.png">{picture}</a>'


def _image(name: str, words: str, size: str = "") -> str:
    return f'<img src="../pictures/models/{name}" alt="{words}" {size}loading="lazy">'


def told_elsewhere(folder: Path, names: list[str]) -> dict[str, str]:
    """Return for every model the page that counts its modes, and so describes it."""
    marked = re.compile(r"<!-- modes of ([\w: ]+) -->")
    found = {}
    for path in sorted(folder.glob("*.md")):
        for line in marked.findall(path.read_text(encoding="utf-8")):
            found.update({name: path.stem for name in line.split() if name in names})
    return found


def make(folder: Path, names: list[str] | None = None) -> list[str]:
    """Write the gallery into a folder; return what went wrong, one line per model."""
    names = names or models.names()
    (folder / "pictures" / "models").mkdir(parents=True, exist_ok=True)
    (folder / "gallery").mkdir(exist_ok=True)
    context = multiprocessing.get_context("spawn")  # the compiled code of one process is no good to another
    entries, wrong = [], []
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        waiting = {name: pool.submit(entry, name, folder / "pictures" / "models") for name in names}
        for name, result in waiting.items():
            try:
                entries.append(result.result())
            except Exception as error:  # of any kind: all models are tried, and those that failed are listed at the end
                wrong.append(f"{name}: {error}")
    pages = told_elsewhere(Path(__file__).parents[1] / "docs" / "gallery", names)
    (folder / "gallery" / "models.md").write_text(page(entries, pages), encoding="utf-8")
    return wrong


def main() -> None:
    """Write the gallery into the folder named, and print what failed."""
    wrong = make(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
