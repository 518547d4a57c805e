"""Convex polyhedra with numbers: their corners, faces and thickness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.shapes import VERTICES, BoxShape, PolyhedronShape, SolidShape

Array = npt.NDArray[np.float64]
Values = Mapping[str, ParameterValue]

FLAT = 1e-9  # of a polyhedron's size: corners as near to one plane make a face


def solid_corners(shape: SolidShape, values: Values) -> Array:
    """Return the corners of a box or polyhedron in its frame, from its point, shape (n, 3), m.

    Parameters
    ----------
    values : mapping
        All parameters, SI.
    """
    if isinstance(shape, BoxShape):
        return 0.5 * np.array(VERTICES) * [evaluate_expression(text, values) for text in shape.size]
    assert isinstance(shape, PolyhedronShape)
    return np.array([[evaluate_expression(text, values) for text in point] for point in shape.points])


def solid_thickness(shape: SolidShape, values: Values) -> float:
    """Return the least distance (m) between two parallel planes that hold a polyhedron, one of them on a face."""
    places = solid_corners(shape, values)
    found = []
    for face in shape.corners_of_faces:
        first, second, third = places[list(face[:3])]
        normal = np.cross(second - first, third - first)
        found.append(float(np.ptp(places @ normal) / max(float(np.linalg.norm(normal)), 1e-300)))
    return min(found)


def polyhedron_faces(shape: PolyhedronShape, values: Values) -> tuple[tuple[int, ...], ...]:
    """Return the corners of each face of a convex hull, anticlockwise seen from outside, the lowest corner first.

    Raises
    ------
    ModelError
        The corners lie in one plane, or one of them is no corner of their hull.
    """
    from scipy.spatial import ConvexHull, QhullError  # only models with polyhedra wait for it

    name = f"polyhedron {str(shape.name)!r}"
    places = solid_corners(shape, values)
    try:
        hull = ConvexHull(places)
    except (QhullError, ValueError):
        raise ModelError(
            f"{name} encloses nothing", shape.where, remedy="give four corners or more, not in one plane"
        ) from None
    size = float(np.ptp(places, axis=0).max())
    on_face = {
        frozenset(np.flatnonzero(np.abs(places @ equation[:3] + equation[3]) <= FLAT * size).tolist()): equation[:3]
        for equation in hull.equations
    }
    faces = sorted(_around(places, sorted(members), normal) for members, normal in on_face.items())
    meeting = [sum(corner in face for face in faces) for corner in range(len(places))]
    inner = next((corner for corner, count in enumerate(meeting) if count < 3), None)
    if inner is not None:
        raise ModelError(
            f"corner {inner + 1} of {name} is inside its convex hull, or on a face or an edge of it",
            shape.points[inner][0].where, remedy="leave it out; a hollow body is made of several convex ones",
        )  # fmt: skip
    return tuple(faces)


def _around(places: Array, members: Sequence[int], normal: Array) -> tuple[int, ...]:
    """Return the corners of a face anticlockwise about its outward normal, the lowest first."""
    arms = places[list(members)] - places[list(members)].mean(axis=0)
    across = np.cross(normal, arms[0])
    angles = np.arctan2(arms @ across, arms @ arms[0])
    order = [members[k] for k in np.argsort(angles, kind="stable")]
    first = order.index(min(order))
    return (*order[first:], *order[:first])
