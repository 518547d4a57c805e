"""Curves: places and derivatives along a smooth closed outline, as nodes of its parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text, free_names, parse
from fsm_dyn.programs import Node, functions, tangent
from fsm_dyn.spec.curve_shapes import TURN, periodic_spline
from fsm_dyn.spec.evaluate import evaluate
from fsm_dyn.spec.model import PARAMETER, POLAR
from fsm_dyn.spec.shape import CurvePiece, CurveShape
from fsm_dyn.symbolic.vectors import Vector

Pair = tuple[Node, Node]


@dataclass(frozen=True)
class PieceSeen:
    """A piece of a curve with the directions along which it is seen.

    Attributes
    ----------
    piece : CurvePiece
    outward, along : Vector
        The unit vector of its normal in its middle, and that at right angles which the parameter follows.
    part : callable
        The part that a circle of a given radius touches, or a face (None): bounds of the parameter (rad), or None.
    """

    piece: CurvePiece
    outward: Vector
    along: Vector
    part: Callable[[Node | None], tuple[float, float] | None]


@dataclass(frozen=True)
class Curve:
    """A smooth closed outline, touched from outside.

    Attributes
    ----------
    frame, origin : str
        What it turns and moves with.
    place, direction, bend : callable
        The vector from the origin to a place of the curve and its first and second derivative by the parameter, which
        runs over a whole turn (m, m/rad, m/rad²).
    turn : int
        +1 where the parameter runs round against the clock, else -1.
    piece : PieceSeen or None
        Which piece of it, of a curve with hollows.
    """

    frame: str
    origin: str
    place: Callable[[Node], Vector]
    direction: Callable[[Node], Vector]
    bend: Callable[[Node], Vector]
    turn: int
    piece: PieceSeen | None = None


def components(shape: CurveShape, xi: Node, scalar: Callable[[Text, dict[str, Node]], Node]) -> Pair:
    """Return x and y of a curve at the parameter ``xi``, in its frame.

    Parameters
    ----------
    scalar : callable
        Gives the meaning of an expression of parameters and the names added.

    Raises
    ------
    ModelError
        The points of a spline depend on parameters.
    """
    if shape.points:
        return _spline(shape, xi)
    if len(shape.formula) == 1:
        r = scalar(shape.formula[0], {POLAR: xi})
        return r * functions.cos(xi), r * functions.sin(xi)
    x, y = (scalar(text, {PARAMETER: xi}) for text in shape.formula)
    return x, y


def derivative(pair: Sequence[Node], xi: Node) -> Pair:
    """Return the derivatives of x and y by the parameter."""
    x, y = tangent(list(pair), {xi: xi.graph.one})
    return x, y


def _spline(shape: CurveShape, xi: Node) -> Pair:
    """Return x and y of a spline: one cubic, its coefficients chosen by the piece in which the parameter is."""
    for point in shape.points:
        for text in point:
            if free_names(parse(text)) - {"pi"}:
                raise ModelError(
                    f"the spline '{shape.name}' goes through a point that depends on a parameter",
                    text.where,
                    found=f"'{text.text}'",
                    allowed="numbers",
                    remedy="give the curve by a formula, `r` or `x` and `y`",
                )
    curve = periodic_spline([(evaluate(x, {}), evaluate(y, {})) for x, y in shape.points])
    along = functions.mod(xi, TURN)
    knots = curve.x.tolist()
    chosen = [[_chosen(along, knots, curve.c[k, :, axis].tolist()) for k in range(4)] for axis in range(2)]
    step = along - _chosen(along, knots, knots[:-1])
    values = [((a * step + b) * step + c) * step + d for a, b, c, d in chosen]
    return values[0], values[1]


def _chosen(along: Node, knots: Sequence[float], values: Sequence[float]) -> Node:
    """Return the value that belongs to the piece in which ``along`` is, by halving."""
    if len(values) == 1:
        return along.graph.constant(float(values[0]))
    half = len(values) // 2
    low, high = _chosen(along, knots[: half + 1], values[:half]), _chosen(along, knots[half:], values[half:])
    if low is high:
        return low
    return functions.where(functions.compare("<", along, float(knots[half])), low, high)
