"""Scene drawing of a mechanism: outlines sent once, their placements per display frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.results.result_builder import scene_of
from fsm_dyn.results.scene import NEWTONIAN, ORIGIN, Scene, SceneShape
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator

LONGEST_LINE: Final = 50.0  # m, half length of infinite lines

AZIMUTH, ELEVATION = 0.36, 0.35  # rad, initial view direction of spatial mechanisms
PLANAR: Final = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def seen_from(azimuth: float, elevation: float) -> Floats:
    """Return the directions in N of right and up on the page, shape (2, 3), for a view direction, rad; z is up.

    Parameters
    ----------
    azimuth : float
        About z, rad.
    elevation : float
        Above the plane of x and y, rad.
    """
    (sa, ca), (se, ce) = ((np.sin(angle), np.cos(angle)) for angle in (azimuth, elevation))
    return np.array([[-sa, ca, 0.0], [-ca * se, -sa * se, ce]])


@dataclass(frozen=True)
class Picture:
    """Drawn scene of a mechanism.

    Attributes
    ----------
    scene : Scene
    flat : ndarray, shape (2, 3)
        Projection from N to the page: x to the right, y up.
    """

    scene: Scene
    flat: Floats

    @classmethod
    def of(cls, graph: ModeGraph, evaluator: RowEvaluator, x: Floats, c: Floats) -> Picture:
        """Return the picture of a graph; ``x`` and ``c`` are its initial state and context."""
        scene = scene_of(graph.automaton, graph.parameters, graph.values, solids=False)
        return cls(scene, PLANAR if _is_planar(evaluator, x, c) else seen_from(AZIMUTH, ELEVATION))

    @property
    def planar(self) -> bool:
        """Whether all motion is in planes normal to N.z."""
        return self.flat is PLANAR

    def look(self, azimuth: float, elevation: float) -> None:
        """Set the view direction of a spatial mechanism, rad."""
        if not self.planar:
            self.flat[:] = seen_from(azimuth, elevation)

    def payload(self) -> dict[str, Any]:
        """Return the payload: outlines, each in its own plane."""
        return {
            "planar": self.planar,
            "shapes": [_payload(shape) for shape in self.scene.shapes],
            "links": len(self.scene.links),
        }

    def moving_corners(self, evaluator: RowEvaluator, x: Floats, c: Floats) -> Floats:
        """Return the corners of all outlines of parts that can move, in N, m, shape (n, 2)."""
        points, frames = evaluator.points(x, c)
        linear, angular = evaluator.partial_velocities(x, c)
        found = [np.zeros((0, 2))]
        for shape in self.scene.shapes:
            turn, moves = np.eye(3), shape.origin != ORIGIN and linear[self.scene.points.index(shape.origin)].any()
            if shape.frame != NEWTONIAN:
                number = self.scene.frames.index(shape.frame)
                turn, moves = frames[number], moves or angular[number].any()
            if moves and not shape.endless:
                found.append(
                    (self.point(points, shape.origin) + shape.points @ turn[:, : shape.points.shape[1]].T)[:, :2]
                )
        return np.concatenate(found)

    def placed(self, points: Floats, frames: Floats) -> Floats:
        """Return where everything is: per shape the matrix ``a b c d e f`` of SVG, then two ends per link."""
        out = np.empty(6 * len(self.scene.shapes) + 4 * len(self.scene.links))
        for i, shape in enumerate(self.scene.shapes):
            turn = np.eye(3) if shape.frame == NEWTONIAN else frames[self.scene.frames.index(shape.frame)]
            out[6 * i : 6 * i + 4] = (self.flat @ turn[:, :2]).T.ravel()
            out[6 * i + 4 : 6 * i + 6] = self.flat @ self.point(points, shape.origin)
        at = 6 * len(self.scene.shapes)
        for a, b in self.scene.links:
            out[at : at + 2] = self.flat @ self.point(points, a)
            out[at + 2 : at + 4] = self.flat @ self.point(points, b)
            at += 4
        return out

    def point(self, points: Floats, name: str) -> Floats:
        """Return a point's position in N, m, shape (3,)."""
        return np.zeros(3) if name == ORIGIN else points[self.scene.points.index(name)]


def _payload(shape: SceneShape) -> dict[str, Any]:
    points = shape.points
    if shape.endless:
        middle, along = points.mean(axis=0), points[-1] - points[0]
        points = middle + np.outer([-LONGEST_LINE, LONGEST_LINE], along / np.linalg.norm(along))
    return {
        "body": shape.body,
        "points": [[round(float(x), 7) for x in point] for point in points],
        "closed": shape.closed,
        "endless": shape.endless,
        "text": shape.text,
    }


def _is_planar(evaluator: RowEvaluator, x: Floats, c: Floats) -> bool:
    """Return whether all motion is in planes normal to N.z, for every speed."""
    points, frames = evaluator.points(x, c)
    if len(points) and np.ptp(points[:, 2]) > 1e-9:
        return False
    if np.abs(frames[:, 2, 2] - 1.0).max(initial=0.0) > 1e-9:
        return False
    linear, angular = evaluator.partial_velocities(x, c)
    return bool(np.abs(linear[:, 2]).max(initial=0.0) < 1e-6 and np.abs(angular[:, :2]).max(initial=0.0) < 1e-6)
