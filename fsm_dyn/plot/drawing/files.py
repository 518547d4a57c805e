"""Files of diagrams, in the format of their suffix."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import networkx as nx

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.graphics.diagram import Diagram
from fsm_dyn.plot.drawing.diagram import diagram
from fsm_dyn.plot.drawing.exchange import EXCHANGE
from fsm_dyn.plot.drawing.graph_text import to_dot, to_mermaid
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.whole_files import write_file

_SUFFIXES = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid",
             ".graphml": "graphml", ".json": "json", ".xml": "uppaal"}  # fmt: skip
FORMATS = (*dict.fromkeys(_SUFFIXES.values()), "transitions")


def has_graphviz() -> bool:
    """Return whether pygraphviz is installed (the extra ``graphviz``)."""
    return importlib.util.find_spec("pygraphviz") is not None


def format_of(path: Path) -> str:
    """Return the format of a file's suffix.

    Raises
    ------
    InputError
        If the suffix is none of those known.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"a mode graph cannot be written as '{path.name}'",
            found=suffix or "no suffix",
            allowed=", ".join(_SUFFIXES),
            remedy=did_you_mean(suffix, _SUFFIXES),
        )
    return _SUFFIXES[suffix]


def known_format(kind: str) -> str:
    """Return ``kind`` if it is one of :data:`FORMATS`.

    Raises
    ------
    InputError
        If it is not.
    """
    if kind not in FORMATS:
        raise InputError(
            f"there is no graph format '{kind}'",
            found=kind,
            allowed=", ".join(FORMATS),
            remedy=did_you_mean(kind, FORMATS),
        )
    return kind


def draw(
    graph: nx.MultiDiGraph[Any],
    path: str | Path,
    kind: str | None = None,
    *,
    trajectory: Trajectory | None = None,
    graphviz: bool = False,
) -> Path:
    """Write a mode graph as a picture or as text and return the path.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        See :func:`fsm_dyn.plot.drawing.diagram.diagram` for the attributes it reads.
    path : str or Path
    kind : str, optional
        One of :data:`FORMATS`; by default what the suffix says.
    trajectory : Trajectory, optional
        A run whose visits and transitions are counted in the picture.
    graphviz : bool, optional
        Whether to lay the graph out with Graphviz, from the extra of this name.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If the format is not known, or Graphviz is asked for and not installed.
    """
    target = Path(path)
    kind = known_format(kind) if kind else format_of(target)
    if kind in EXCHANGE:
        write_file(target, EXCHANGE[kind](graph))
        return target
    reduced = diagram(graph, trajectory=trajectory)
    if kind in ("dot", "mermaid"):
        write_file(target, to_dot(reduced) if kind == "dot" else to_mermaid(reduced))
    elif graphviz:
        _with_graphviz(reduced, target, kind)
    else:
        _with_matplotlib(reduced, target, kind)
    return target


def _with_graphviz(reduced: Diagram, target: Path, kind: str) -> None:
    if not has_graphviz():
        raise InputError("Graphviz is not installed", remedy='pip install "fsm-dyn[graphviz]"')
    # an extra
    import pygraphviz

    layout = pygraphviz.AGraph(string=to_dot(reduced))
    layout.graph_attr["dpi"] = "160" if kind == "png" else "72"
    write_file(target, layout.draw(format=kind, prog="dot"))


def _with_matplotlib(reduced: Diagram, target: Path, kind: str) -> None:
    # Matplotlib takes half a second to import, which DOT, Mermaid and Graphviz need not pay.
    from fsm_dyn.plot import style
    from fsm_dyn.plot.drawing.picture import picture

    style.save(picture(reduced), target, kind)
