"""Ground planes: planes of N that bodies can touch, identified from the equations.

If a gap is the distance ``n · r_P - h`` of a point P from a plane of N, its normal row gives the same ``n`` and ``h``
at every configuration.  Faces that end are drawn as the shapes they are.  A stop, and a plane behind which other
parts of the mechanism are, is drawn as a short piece where its point is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn.contact_forces.locations import ContactLocation, contact_at, neighbours
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.spec.contact import GapContact
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import PLANAR, Picture

SAME: Final = 1e-5
SHORT: Final = 0.18  # of the mechanism's size: half length of a stop
BEHIND: Final = 0.02  # of the mechanism's size: depth of a part behind a plane that is no ground for it


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
    parts = picture.moving_corners(evaluator, x, c)
    for location in locations:
        contact = evaluator.automaton.contacts[location.contact]
        if location.kind != "force" or location.other is not None:
            continue
        if contact.contact_law.has_gap and not contact.bounded_face:
            ground = _ground(evaluator, location, contact, parts, x, c)
            if ground is not None and not any(_same(ground, other) for other in found):
                found.append(ground)
    return tuple(found)


def _ground(
    evaluator: RowEvaluator, location: ContactLocation, contact: ContactInfo, parts: Floats, x: Floats, c: Floats
) -> Ground | None:
    point, row = location.one, contact.normal_row
    rows = (row, *contact.tangent_rows)
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
    normal, height = normals[0], heights[0]
    entry = evaluator.automaton.mechanism.contacts.get(contact.name)
    stops, in_plane = isinstance(entry, GapContact) and bool(entry.limit), max(ranks) > 1
    if stops and in_plane:  # between two bodies, as far as a coordinate says
        return None
    points = evaluator.points(x, c)[0][:, :2]
    size = float(np.ptp(np.concatenate([points, parts]), axis=0).max())
    behind = float((height - parts @ normal).max(initial=0.0)) > BEHIND * size
    if not (stops or behind) and (in_plane or len(evaluator.layout.q) == 1):
        return Ground(height * normal, normal)
    return Ground(points[point] - (normal @ points[point] - height) * normal, normal, SHORT * size)


def _same(one: Ground, other: Ground) -> bool:
    return bool(
        np.abs(one.normal - other.normal).max() < SAME
        and abs(one.normal @ (one.at - other.at)) < SAME
        and one.half == other.half
    )
