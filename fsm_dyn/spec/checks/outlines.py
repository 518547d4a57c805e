"""What the numbers of a shape decide for its equations: which way it goes round, where its faces look.

The equations are derived for the decisions that the file's own parameters make; other parameters must make the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.errors import InputError, ModelError
from fsm_dyn.expressions import FloatAlgebra, Text, fold, free_names, parse
from fsm_dyn.expressions.nodes import AxisLetter
from fsm_dyn.spec.curve_pieces import curve_pieces
from fsm_dyn.spec.curve_shapes import formula_at
from fsm_dyn.spec.evaluate import ParameterValue, evaluate, evaluate_parameters
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.shape import ArcShape, CurveShape, LineShape, PolygonShape, SegmentShape, Shape

Values = Mapping[str, ParameterValue]
Place = tuple[float, float]

LOOKS = 360  # points at which a curve is sampled
CLOSED = 1e-9  # of a curve's size
LIKE = 0.2  # rad; pieces of a curve that begin as near as that are the same


def polygon_sense(shape: PolygonShape, values: Values) -> tuple[int, tuple[int, ...]]:
    """Return in which sense the corners go round (+1: against the clock), and which of them nothing outside can touch.

    Raises
    ------
    ModelError
        Neighbouring points coincide, or the polygon encloses nothing.
    """
    points = places(shape, values)
    count = len(points)
    bends = []
    area = 0.0
    for i, (x, y) in enumerate(points):
        (x0, y0), (x1, y1) = points[i - 1], points[(i + 1) % count]
        bends.append((x - x0) * (y1 - y) - (y - y0) * (x1 - x))
        area += x * y1 - y * x1
        if (x1, y1) == (x, y):
            raise ModelError(
                f"two neighbouring points of polygon {str(shape.name)!r} coincide", shape.points[i][0].where,
                found=f"[{x:g}, {y:g}]", remedy="leave one of them out",
            )  # fmt: skip
    if area == 0.0:
        where = shape.points[0][0].where
        raise ModelError(f"polygon {str(shape.name)!r} encloses nothing", where, remedy="correct its points")
    turn = 1 if area > 0.0 else -1
    outward = -turn if shape.inside else turn
    return turn, tuple(i for i, bend in enumerate(bends) if bend * outward <= 0.0)


def curve_sense(shape: CurveShape, values: Values) -> int:
    """Return +1 for a curve that goes round against the clock, else -1; it must close.

    Raises
    ------
    ModelError
        It does not close, or encloses nothing.
    """
    if shape.points:
        found = places(shape, values)
    else:
        found = [formula_at(shape.formula, 2.0 * math.pi * k / LOOKS, values) for k in range(LOOKS + 1)]
        (x0, y0), (x1, y1) = found[0], found.pop()
        if math.hypot(x1 - x0, y1 - y0) > CLOSED * (1.0 + math.hypot(x0, y0)):
            raise ModelError(
                f"curve {str(shape.name)!r} does not close", shape.formula[0].where,
                found=f"from [{x0:g}, {y0:g}] to [{x1:g}, {y1:g}]",
                remedy="its formula must come back after a whole turn",
            )  # fmt: skip
    area = sum(x0 * y1 - y0 * x1 for (x0, y0), (x1, y1) in zip(found, found[1:] + found[:1], strict=True))
    if area == 0.0:
        raise ModelError(f"curve {str(shape.name)!r} encloses nothing", shape.where)
    return 1 if area > 0.0 else -1


def check_outlines(mechanism: Mechanism, values: Values) -> None:
    """Refuse parameters with which a shape is none, or not the one that the equations were derived for.

    Parameters
    ----------
    values : mapping
        All parameters, SI.

    Raises
    ------
    ModelError
        A polygon or curve encloses nothing, a shape goes round or looks the other way than with the file's parameters.
    """
    own = evaluate_parameters(mechanism, {})
    changed = {name for name, value in values.items() if value != own[name]}
    for shape in mechanism.shapes.values():
        if _names(shape, mechanism) & changed and _decisions(shape, mechanism, values) != _decisions(
            shape, mechanism, own
        ):
            raise ModelError(
                f"shape {str(shape.name)!r} is turned over or bends another way, and its equations hold for the "
                "values in the file",
                shape.where,
                remedy="change these values in the file, and compile it again",
            )


def _names(shape: Shape, mechanism: Mechanism) -> set[str]:
    """Return the names that the numbers of a shape depend on."""
    texts = [*shape.lengths, *shape.angles_given, *(text for _, text in shape.vectors)]
    if isinstance(shape, CurveShape):
        texts += shape.formula
    if isinstance(shape, SegmentShape) and shape.ends is not None:
        texts += [text for name in shape.ends for text in _way(name, mechanism)]
    return {name for text in texts for name in free_names(parse(text))}


def _way(name: str, mechanism: Mechanism) -> list[Text]:
    """Return the steps by which a point of the model is reached from the Newtonian origin."""
    found = []
    while name in mechanism.points:
        found.append(mechanism.points[name].at)
        name = mechanism.points[name].origin
    return found[::-1]


def _chord(shape: SegmentShape, mechanism: Mechanism, values: Values) -> Place | None:
    """Return the vector between the ends of a segment, as :func:`_vector` does."""
    if shape.ends is None:
        (x0, y0), (x1, y1) = places(shape, values)
        return x1 - x0, y1 - y0
    first, last = (_way(name, mechanism) for name in shape.ends)
    while first and last and first[0] is last[0]:  # what both have in common may move as it likes
        first, last = first[1:], last[1:]
    steps = [(sign, _vector(shape, text, values)) for sign, way in ((-1.0, first), (1.0, last)) for text in way]
    total = [0.0, 0.0]
    for sign, step in steps:
        if step is None:
            return None
        total = [total[0] + sign * step[0], total[1] + sign * step[1]]
    return total[0], total[1]


def places(shape: SegmentShape | PolygonShape | CurveShape, values: Values) -> list[Place]:
    """Return the points of a shape (m)."""
    return [(evaluate(point[0], values), evaluate(point[1], values)) for point in shape.points]


def _decisions(shape: Shape, mechanism: Mechanism, values: Values) -> tuple[object, ...]:
    """Return all that the equations of a shape take from numbers."""
    match shape:
        case PolygonShape():
            points = places(shape, values)
            edges = zip(shape.points, points, shape.points[1:] + shape.points[:1], points[1:] + points[:1], strict=True)
            return (*polygon_sense(shape, values), *[_along_axis(*edge) for edge in edges])
        case CurveShape():
            sense = curve_sense(shape, values)
            pieces = curve_pieces(replace(shape, turn=sense), values)
            return (sense, len(pieces), *(round(piece.start / LIKE) for piece in pieces))
        case SegmentShape():
            return (_looks(shape, _chord(shape, mechanism, values), values),)
        case LineShape():
            return (_looks(shape, _vector(shape, shape.along, values), values),)
        case ArcShape():
            first, last = (evaluate(text, values) for text in shape.angles)
            return (last - first > math.pi,)
    return ()


def _along_axis(first: tuple[Text, ...], at: Place, last: tuple[Text, ...], to: Place) -> tuple[int, int]:
    """Return the direction of an edge where the texts of its points put it along an axis, zeros elsewhere."""
    same = [_always_equal(a, b) for a, b in zip(first[:2], last[:2], strict=True)]
    return (_sign(to[0] - at[0]) if same[1] else 0, _sign(to[1] - at[1]) if same[0] else 0)


def _always_equal(a: Text, b: Text) -> bool:
    """Whether two coordinates are equal for all parameters."""
    if a.text.split() == b.text.split():
        return True
    return not free_names(parse(a)) and not free_names(parse(b)) and evaluate(a, {}) == evaluate(b, {})


def _looks(shape: LineShape | SegmentShape, along: Place | None, values: Values) -> int:
    """Return +1 where the free side is on the left of a face, -1 where on the right, 0 if undecided numerically."""
    side = _vector(shape, shape.side, values)
    return 0 if along is None or side is None else _sign(along[0] * side[1] - along[1] * side[0])


def _sign(value: float) -> int:
    return (value > 0.0) - (value < 0.0)


def _vector(shape: Shape, text: Text, values: Values) -> Place | None:
    """Return a vector's components in the shape's frame; None where more than parameters and its axes are in it."""
    try:
        parts = [fold(parse(text), _Component(values, shape.frame, axis)) for axis in ("x", "y")]
    except InputError:
        return None
    return parts[0], parts[1]


class _Component(FloatAlgebra):
    """Folds a vector that is linear in the axes of one frame to its component along one of them."""

    def __init__(self, values: Values, frame: str, axis: str) -> None:
        super().__init__(values)
        self._kept = (frame, axis)

    def axis(self, frame: str, axis: AxisLetter, /) -> float:
        """Return the share of an axis in the component."""
        if frame != self._kept[0]:
            raise ModelError("another frame")
        return float((frame, axis) == self._kept)
