"""The geometry of shapes as numbers: points and pieces of curves; corners, faces and thickness of polyhedra."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import PARAMETER, POLAR
from fsm_dyn.language.shapes import VERTICES, BoxShape, CurvePiece, CurveShape, PolyhedronShape, SolidShape

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline


# -- Convex polyhedra ------------------------------------------------------------------------------------------


Values = Mapping[str, ParameterValue]

FLAT_FACE = 1e-9  # of a polyhedron's size: corners as near to one plane make a face


def solid_corners(shape: SolidShape, values: Values) -> Floats:
    """Return the corners of a box or polyhedron in its frame, from its point, shape (n, 3), m.

    ``values``: all parameters, SI.
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

    Raises ModelError: the corners lie in one plane, or one of them is no corner of their hull.
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
        frozenset(np.flatnonzero(np.abs(places @ equation[:3] + equation[3]) <= FLAT_FACE * size).tolist()): equation[
            :3
        ]
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


def _around(places: Floats, members: Sequence[int], normal: Floats) -> tuple[int, ...]:
    """Return the corners of a face anticlockwise about its outward normal, the lowest first."""
    arms = places[list(members)] - places[list(members)].mean(axis=0)
    across = np.cross(normal, arms[0])
    angles = np.arctan2(arms @ across, arms @ arms[0])
    order = [members[k] for k in np.argsort(angles, kind="stable")]
    first = order.index(min(order))
    return (*order[first:], *order[:first])


# -- Curves: points along them, and pieces with at most one contact point on a circle --------------------------


# -- Curves as numbers: places by a formula, and the periodic spline through points --------------------------

TURN = 2.0 * math.pi


def formula_at(formula: tuple[Text, ...], angle: float, values: Mapping[str, ParameterValue]) -> tuple[float, float]:
    """Return the place of a curve at a value of its parameter (rad), in its frame, m."""
    if len(formula) == 1:
        r = evaluate_expression(formula[0], {**values, POLAR: angle})
        return r * math.cos(angle), r * math.sin(angle)
    x, y = (evaluate_expression(text, {**values, PARAMETER: angle}) for text in formula)
    return x, y


def periodic_spline(places: Sequence[Sequence[float]] | Floats) -> CubicSpline:
    """Return the periodic cubic spline through places (m), its parameter in proportion to the chords, over a turn."""
    from scipy.interpolate import CubicSpline  # only models with splines wait for it

    closed = np.array([*places, places[0]], dtype=np.float64)
    chords = np.hypot(*np.diff(closed, axis=0).T)
    knots = np.concatenate([[0.0], np.cumsum(chords)]) * TURN / chords.sum()
    knots[-1] = TURN
    return CubicSpline(knots, closed, bc_type="periodic")


# -- Pieces of curves ----------------------------------------------------------------------------------------
#
# A curve with hollows is divided into pieces with at most one contact point on a circle or a face. A piece turns by at
# most :data:`MOST_TURN` and bends one way. Its projection along the outward normal in its middle assigns one point of
# the piece to every point before it, and this point moves smoothly.


LOOKS = 1440  # samples of a curve
MOST_TURN = math.radians(110.0)  # of a piece
FLAT = 1e-3  # rad; a curve with a smaller total inward bend counts as convex
BORDER = math.radians(2.0)  # of a convex part at an inflection, out of reach of a face
SHARED = 1e-6  # rad; overlap of a piece with the next one
ROOM = 0.02  # least difference of the curvatures of a circle and of a touched hollow, relative to the circle's


@dataclass(frozen=True)
class _Samples:
    """A curve at equal steps of its parameter: points (n, 2) and the turns of the outline there, positive at bulges."""

    xi: Floats
    points: Floats
    turns: Floats
    chords: Floats


def curve_pieces(shape: CurveShape, values: Mapping[str, ParameterValue]) -> tuple[CurvePiece, ...]:
    """Return the pieces of a curve in the order of its parameter; none for a convex curve.

    ``shape``: the curve, with its sense; ``values``: all parameters, SI.
    """
    samples = _sampled(shape, values)
    if -samples.turns[samples.turns < 0.0].sum() <= FLAT:
        return ()
    cuts = {0, *_inflections(samples.turns), *_deepest(samples)}
    ordered = sorted(cuts)
    pieces = []
    for first, last in zip(ordered, [*ordered[1:], LOOKS], strict=True):
        pieces += _of_equal_turns(samples, shape.turn, first, last)
    return tuple(pieces)


def touched_part(
    shape: CurveShape, piece: CurvePiece, radius: float | None, values: Mapping[str, ParameterValue]
) -> tuple[float, float] | None:
    """Return the part of a piece within reach of contact, as bounds of the parameter (rad); None if there is none.

    ``radius``: of a circle (m), 0 of a point; None of a straight face, which touches convex parts only.
    """
    samples = _sampled(shape, values)
    step = TURN / LOOKS
    inside = np.flatnonzero((samples.xi > piece.start + step) & (samples.xi < piece.end - step))
    if radius is not None:
        curvature = 2.0 * samples.turns / (samples.chords + np.roll(samples.chords, 1))
        keep = inside[1.0 + curvature[inside] * radius >= ROOM]
        if not len(keep):
            return None
        start = piece.start if keep[0] == inside[0] else float(samples.xi[keep[0]])
        end = piece.end if keep[-1] == inside[-1] else float(samples.xi[keep[-1]])
        return start - SHARED, end + SHARED
    if not piece.bulges:
        return None
    border = min(BORDER, 0.25 * float(samples.turns[inside].sum()))
    turned = np.cumsum(samples.turns[inside])
    start = float(samples.xi[inside[np.searchsorted(turned, border)]]) if piece.hollows[0] else piece.start
    end = float(samples.xi[inside[np.searchsorted(turned, turned[-1] - border)]]) if piece.hollows[1] else piece.end
    return start - SHARED, end + SHARED


def _sampled(shape: CurveShape, values: Mapping[str, ParameterValue]) -> _Samples:
    xi = TURN * np.arange(LOOKS) / LOOKS
    if shape.points:
        spline = periodic_spline(
            [(evaluate_expression(x, values), evaluate_expression(y, values)) for x, y in shape.points]
        )
        places = np.asarray(spline(xi), np.float64)
    else:
        places = np.array([formula_at(shape.formula, float(angle), values) for angle in xi])
    ahead = np.roll(places, -1, axis=0) - places
    angles = np.arctan2(ahead[:, 1], ahead[:, 0])
    turns = angles - np.roll(angles, 1)
    turns = shape.turn * ((turns + math.pi) % TURN - math.pi)
    return _Samples(xi, places, turns, np.hypot(*ahead.T))


def _inflections(turns: Floats) -> list[int]:
    """Return the samples at the inflections."""
    return [int(i) for i in np.flatnonzero((turns < 0.0) != (np.roll(turns, 1) < 0.0))]


def _deepest(samples: _Samples) -> list[int]:
    """Return the samples of largest and least curvature of hollows: between them a circle touches one part of it."""
    bend = samples.turns / (samples.chords + np.roll(samples.chords, 1))
    before, after = np.roll(bend, 1), np.roll(bend, -1)
    hollow = (bend < 0.0) & (before < 0.0) & (after < 0.0)
    return [int(i) for i in np.flatnonzero(hollow & ((bend - before) * (after - bend) < 0.0))]


def _of_equal_turns(samples: _Samples, turn: int, first: int, last: int) -> list[CurvePiece]:
    """Return pieces of the samples ``first`` to ``last`` with equal turns, within the allowed one."""
    turned = np.concatenate([[0.0], np.cumsum(samples.turns[first:last])])
    total = abs(float(turned[-1]))
    count = max(1, math.ceil(total / MOST_TURN))
    inner = [first + int(np.searchsorted(np.abs(turned), total * k / count)) for k in range(1, count)]
    step = TURN / LOOKS
    hollow = (samples.turns[first - 1] < 0.0, samples.turns[last % LOOKS] < 0.0)
    pieces = []
    for start, end in pairwise([first, *inner, last]):
        x, y = samples.points[start + 1 if start + 1 < LOOKS else 0] - samples.points[start]
        half = 0.5 * float(samples.turns[start + 1 : end].sum())
        facing = math.atan2(y, x) + turn * (half - math.pi / 2)
        speed = float(samples.chords[start:end].sum()) / ((end - start) * step)
        hollows = (start == first and bool(hollow[0]), end == last and bool(hollow[1]))
        pieces.append(CurvePiece(start * step, end * step, facing, speed, bool(turned[-1] >= 0.0), hollows))
    return pieces
