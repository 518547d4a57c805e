"""Check of one expression: folding, kind and dimension, errors with their location."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fsm_dyn.errors import ExpressionError, ModelError
from fsm_dyn.expressions import (
    DIMENSIONLESS,
    Call,
    Dimension,
    Number,
    Text,
    dimension_text,
    fold,
    parse,
    parse_unit,
    walk,
)
from fsm_dyn.expressions.tokens import excerpt
from fsm_dyn.expressions.units import dimension, quantity_text
from fsm_dyn.spec.checks.dimension_algebra import DimensionedValue, Kind, QuantityAlgebra, Scope
from fsm_dyn.spec.checks.names import Declaration
from fsm_dyn.spec.yaml_tree import where_of

LENGTH = dimension(m=1)
MASS = dimension(kg=1)
TIME = dimension(s=1)
FORCE = dimension(m=1, kg=1, s=-2)
ENERGY = dimension(m=2, kg=1, s=-2)
POWER = dimension(m=2, kg=1, s=-3)
INERTIA = dimension(m=2, kg=1)
ACCELERATION = dimension(m=1, s=-2)


def expression_type(
    text: Text, scope: Scope, what: str, wanted: Iterable[Dimension] | None = None, kind: Kind = "scalar"
) -> DimensionedValue:
    """Return the kind and dimension of an expression.

    Parameters
    ----------
    text : Text
        The expression.
    scope : Scope
        What may be named in it.
    what : str
        What it is, for messages: ``"the mass of 'ball'"``.
    wanted : dimensions, optional
        The dimensions it may have; None for any.
    kind : {'scalar', 'vector', 'condition'}
        What it must be.

    Raises
    ------
    ModelError
        With the place of the expression.
    """
    try:
        quantity = fold(parse(text), QuantityAlgebra(scope))
    except ExpressionError as error:
        raise ExpressionError(
            f"{what}: {error.message}",
            text.where,
            found=excerpt(text.text),
            allowed=error.allowed,
            remedy=error.remedy or _misread(text, scope.known),
        ) from None
    if quantity.kind != kind:
        raise ModelError(
            f"{what} must be a {kind}, found a {quantity.kind}",
            text.where,
            found=excerpt(text.text),
            remedy=_KIND_REMEDIES.get((kind, quantity.kind), ""),
        )
    if wanted is not None and quantity.dimension is not None and not quantity.zero:
        choices = list(wanted)
        if quantity.dimension not in choices:
            raise _wrong_unit(text, what, quantity.dimension, choices, scope.known)
    return quantity


_KIND_REMEDIES: Mapping[tuple[str, str], str] = {
    ("vector", "scalar"): "multiply by an axis: 2*N.x; the zero vector is 0*N.x",
    ("scalar", "vector"): "take a component: dot(v, N.x), or the length: norm(v)",
    ("condition", "scalar"): "write a comparison: x > 0",
    ("scalar", "condition"): "write where(condition, 1, 0)",
}


def unit_dimension(unit: str, what: str) -> Dimension:
    """Return the dimension of an SI unit, none for no unit; raise ModelError for any other unit."""
    if not unit:
        return DIMENSIONLESS
    factor, dimension = parse_unit(unit, where_of(unit))
    if factor != 1.0:
        raise ModelError(
            f"{what} must be in an SI unit",
            where_of(unit),
            found=unit,
            allowed=dimension_text(dimension) if dimension != DIMENSIONLESS else "rad",
            remedy="values elsewhere may be in any unit: they are converted",
        )
    return dimension


def _wrong_unit(
    text: Text, what: str, found: Dimension, wanted: list[Dimension], known: Mapping[str, Declaration]
) -> ModelError:
    units = " or ".join(dict.fromkeys(dimension_text(d) if d != DIMENSIONLESS else "no unit" for d in wanted))
    angle = misplaced_angle(text.text, found, wanted)
    unit = angle or ("has no unit" if found == DIMENSIONLESS else f"is in {dimension_text(found)}")
    remedy = _misread(text, known)
    if not remedy and found == DIMENSIONLESS and not angle:
        declared = known.get(text.text)
        if _is_number(text):
            remedy = f"write the unit: {excerpt(text.text)} {dimension_text(wanted[0])}"
        elif declared is not None and declared.where.line:
            place = f"{declared.role} of line {declared.where.line}"
            remedy = f"{text.text} is {place}: give it the unit {dimension_text(wanted[0])} there"
        else:
            remedy = "once a model uses units, every quantity needs its own; coordinates in a list have none"
    return ModelError(f"{what} {unit}", text.where, found=excerpt(text.text), allowed=units, remedy=remedy)


def misplaced_angle(text: str, found: Dimension, wanted: Iterable[Dimension]) -> str:
    """Return ``"is an angle where a length is expected"`` for an angle, nothing for another text."""
    nodes = walk(parse(text))
    angle = any(isinstance(node, Number) and node.dimension == DIMENSIONLESS for node in nodes)
    if found != DIMENSIONLESS or not angle or any(isinstance(node, Call) for node in nodes):
        return ""
    return f"is an angle where {' or '.join(dict.fromkeys(map(quantity_text, wanted)))} is expected"


def _is_number(text: Text) -> bool:
    return isinstance(parse(text), Number)


def _misread(text: Text, known: Mapping[str, Declaration]) -> str:
    """Return a hint where a unit in the text has the name of something in the model."""
    try:
        numbers = [node for node in walk(parse(text)) if isinstance(node, Number) and node.dimension is not None]
    except ExpressionError:
        return ""
    for number in numbers:
        for word in re.findall(r"[*/(]\s*([A-Za-z]\w*)", number.text):
            if word in known:
                return (
                    f"{word!r} in {number.text!r} is read as a unit; for {known[word].role} put brackets: (2 N)*{word}"
                )
    return ""
