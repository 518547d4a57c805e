"""Solids of a spatial mechanism: spheres, disks, planes and boxes for the page's 3-D scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.results.outlines import vector_of
from fsm_dyn.spec.shape import BoxShape
from fsm_dyn.spec.values import evaluate
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator

PLACED = 12  # numbers of a placement: rotation matrix of a frame, then its origin


@dataclass(frozen=True)
class Solid:
    """A sphere (``radius``), a disk (``radius``, across ``axis``), a plane (facing ``axis``) or a box (``size``).

    Each is fixed in a frame.  The radius of a box is that of the sphere through its corners (m); ``size`` is None of
    all else.
    """

    name: str
    kind: str
    frame: str
    origin: str
    radius: float
    axis: tuple[float, float, float]
    size: tuple[float, float, float] | None = None

    def payload(self) -> dict[str, Any]:
        """Return the payload."""
        about = {"name": self.name, "kind": self.kind, "radius": self.radius, "axis": list(self.axis)}
        return about if self.size is None else {**about, "size": list(self.size)}


def find_solids(graph: ModeGraph, evaluator: RowEvaluator, x: Floats, c: Floats) -> tuple[Solid, ...]:
    """Return the spatial shapes of a model; the state resolves their axes.

    Parameters
    ----------
    graph : ModeGraph
        The compiled model.
    evaluator : RowEvaluator
        Evaluates rows of the model.
    x : ndarray, shape (n_x,)
        A state, SI.
    c : ndarray, shape (n_c,)
        Its context, SI.
    """
    _, frames = evaluator.points(x, c)
    turns = dict(zip(evaluator.automaton.frame_names, frames, strict=True))
    found = []
    for shape in graph.automaton.mechanism.shapes.values():
        if not shape.spatial:
            continue
        text = next((text for _, text in shape.vectors), None)  # the axis of a disk, the free side of a plane
        own = turns.get(shape.frame, np.eye(3))
        axis = np.array([0.0, 0.0, 1.0]) if text is None else own.T @ vector_of(text, graph.values, turns)
        axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
        size = None
        if isinstance(shape, BoxShape):
            edges = np.array([float(np.sum(evaluate(text, graph.values))) for text in shape.size])
            radius, size = 0.5 * float(np.linalg.norm(edges)), _triple(edges)
        else:
            radius = float(sum(np.sum(evaluate(text, graph.values)) for text in shape.lengths))  # a plane has none
        found.append(Solid(shape.name, shape.kind, shape.frame, shape.origin, radius, _triple(axis), size))
    return tuple(found)


def _triple(vector: Floats) -> tuple[float, float, float]:
    x, y, z = vector.tolist()
    return x, y, z
