"""Placement of a scene at the times of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsm_dyn.errors import InputError
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.scene import NEWTONIAN, ORIGIN, Scene, SceneShape


@dataclass(frozen=True)
class Placed:
    """A scene at n instants: ``positions`` (n, n_points, 3), m, and ``rotations`` (n, n_frames, 3, 3)."""

    scene: Scene
    positions: FloatArray
    rotations: FloatArray

    def point(self, name: str) -> FloatArray:
        """Return the path of a point, shape (n, 3); the Newtonian origin rests."""
        if name == ORIGIN:
            return np.zeros((len(self.positions), 3))
        path: FloatArray = self.positions[:, self.scene.points.index(name)]
        return path

    def outline(self, shape: SceneShape) -> FloatArray:
        """Return a shape's points in the Newtonian frame, shape (n, k, 3)."""
        origin = self.point(shape.origin)[:, None, :]
        count, dimensions = shape.points.shape
        solid = np.hstack([shape.points, np.zeros((count, 3 - dimensions))])
        if shape.frame == NEWTONIAN:
            return np.asarray(origin + solid)
        rotation = self.rotations[:, self.scene.frames.index(shape.frame)]
        placed: FloatArray = origin + np.einsum("nij,kj->nki", rotation, solid)
        return placed

    def is_planar(self) -> bool:
        """Return whether everything moves in planes across N.z."""
        level = np.ptp(self.positions[..., 2]) if self.positions.size else 0.0
        turned = np.abs(self.rotations[..., 2, 2] - 1.0).max(initial=0.0)
        return bool(level < 1e-9 and turned < 1e-9)


def place_scene(scene: Scene, samples: Samples) -> Placed:
    """Return where everything of ``scene`` is at the times of ``samples``.

    Raises
    ------
    InputError
        Something is nowhere: its position is not finite.
    """
    out = scene.geometry.evaluate(samples.t, samples.x, samples.context)
    if not all(np.isfinite(out[name]).all() for name in ("points", "frames")):
        raise InputError(
            "the model cannot be drawn", found="positions that are infinite or not a number",
            remedy="look for a division by zero in the positions of points",
        )  # fmt: skip
    n, n_points, n_frames = len(samples), len(scene.points), len(scene.frames)
    return Placed(
        scene,
        positions=np.broadcast_to(out["points"], (n, n_points, 3)),
        rotations=np.broadcast_to(out["frames"], (n, n_frames, 3, 3)),
    )
