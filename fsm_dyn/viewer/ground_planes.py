"""Ground planes: planes of N that bodies can touch, identified from the equations.

If a gap is the distance ``n · r_P - h`` of a point P from a plane of N, its normal row gives the same ``n`` and ``h``
at every configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn.contact_forces.locations import ContactLocation, contact_at, neighbours
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import PLANAR, Picture

SAME: Final = 1e-5
SHORT: Final = 0.18  # of the mechanism's size: half length of a stop for motion along one line


@dataclass(frozen=True)
class Ground:
    """Plane drawn as a line: through ``at`` (2,), m, outward ``normal`` (2,); half length ``half``, m, 0: infinite."""

    at: Floats
    normal: Floats
    half: float = 0.0

    def payload(self) -> dict[str, Any]:
        """Return the payload."""
        return {"at": self.at.tolist(), "normal": self.normal.tolist(), "half": self.half}


def find_grounds(
    evaluator: RowEvaluator, picture: Picture, locations: tuple[ContactLocation, ...], x: Floats, c: Floats
) -> tuple[Ground, ...]:
    """Return the ground planes of a planar model; empty for a spatial one.

    Parameters
    ----------
    evaluator : RowEvaluator
        Evaluates rows of the model.
    picture : Picture
        The drawing.
    locations : tuple[ContactLocation, ...]
        Where contacts act.
    x : ndarray, shape (n_x,)
        A state, SI.
    c : ndarray, shape (n_c,)
        Its context, SI.
    """
    if picture.flat is not PLANAR:
        return ()
    found: list[Ground] = []
    for location in locations:
        contact = evaluator.automaton.contacts[location.contact]
        if location.kind == "force" and location.other is None and contact.contact_law.has_gap:
            ground = _ground(evaluator, location, (contact.normal_row, *contact.tangent_rows), x, c)
            if ground is not None and not any(_same(ground, other) for other in found):
                found.append(ground)
    return tuple(found)


def _ground(
    evaluator: RowEvaluator, location: ContactLocation, rows: tuple[int, ...], x: Floats, c: Floats
) -> Ground | None:
    point, row = location.one, rows[0]
    normals, heights, ranks = [], [], []
    for there in neighbours(evaluator, x):
        at = evaluator.configuration(there, c)
        touching, directions = contact_at(location, at, rows)
        across = directions[0]
        length = float(np.linalg.norm(across))
        if not length > 0.0:
            return None
        normals.append(across[:2] / length)
        heights.append(float(across @ touching - at.terms["residual"][row]) / length)
        ranks.append(int(np.linalg.matrix_rank(at.linear[point], tol=1e-6)))
    if np.ptp(normals, axis=0).max() > SAME or np.ptp(heights) > SAME:
        return None
    normal = normals[0]
    if max(ranks) > 1 or len(evaluator.layout.q) == 1:
        return Ground(heights[0] * normal, normal)
    points = evaluator.points(x, c)[0][:, :2]
    foot = points[point] - (normal @ points[point] - heights[0]) * normal
    return Ground(foot, normal, SHORT * float(np.ptp(points, axis=0).max()))


def _same(one: Ground, other: Ground) -> bool:
    return bool(
        np.abs(one.normal - other.normal).max() < SAME
        and abs(one.normal @ (one.at - other.at)) < SAME
        and one.half == other.half
    )
