"""Values in addition to the model file: a number is in SI units; a text is an expression that may carry a unit.

The one rule for ``--set``, ``--input``, ``--initial``, ``--tolerance`` and their arguments in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.errors import ExpressionError, InputError
from fsm_dyn.expressions import DIMENSIONLESS, Dimension, Index, Name, Number, dimension_text, fold, parse, walk
from fsm_dyn.expressions.units import dimension
from fsm_dyn.spec.checks.dimension_algebra import DimensionedValue, QuantityAlgebra, Scope
from fsm_dyn.spec.checks.expression_types import misplaced_angle
from fsm_dyn.spec.checks.expressions import parameter_scope, scopes_and_dimensions
from fsm_dyn.spec.checks.names import declarations
from fsm_dyn.spec.model import Mechanism

TIME = dimension(s=1)


class _PlainNumbersFit(QuantityAlgebra):
    """A number without a unit is in SI units and fits any dimension."""

    def number(self, node: Number, /) -> DimensionedValue:
        """Return the quantity of a number."""
        found = super().number(node)
        return found if node.dimension is not None else replace(found, dimension=None)


def is_plain(text: str) -> bool:
    """Whether a text has neither names nor units: what it gives is in SI units."""
    try:
        nodes = list(walk(parse(text)))
    except ExpressionError:
        return False  # what is wrong is found where it is checked
    return not any(
        isinstance(node, (Name, Index)) or (isinstance(node, Number) and node.dimension is not None) for node in nodes
    )


def _has_unit(text: str) -> bool:
    """Whether a number in an expression carries a unit."""
    return any(isinstance(node, Number) and node.dimension is not None for node in walk(parse(text)))


def check_unit(text: str, expected: Dimension, scope: Scope, what: str) -> None:
    """Refuse a text that carries another unit than the expected one.

    Parameters
    ----------
    text : str
        An expression; numbers without a unit in it fit any, and so does a dimensionless one without a unit.
    expected : Dimension
    scope : Scope
        What may be named in it.
    what : str
        What it is, for messages.

    Raises
    ------
    InputError
        The unit is another one, or the units in it contradict each other.
    """
    try:
        found = fold(parse(text), _PlainNumbersFit(scope))
    except ExpressionError as error:
        raise InputError(f"{what}: {error.message}", found=text, allowed=error.allowed, remedy=error.remedy) from None
    if found.kind != "scalar":
        raise InputError(f"{what} must be a number", found=text)
    if found.dimension == DIMENSIONLESS and not _has_unit(text):
        return  # cos(9*t): a number in SI units
    if found.dimension is not None and not found.zero and found.dimension != expected:
        raise InputError(
            f"{what} {misplaced_angle(text, found.dimension, [expected]) or 'has the wrong unit'}",
            found=text,
            allowed=f"{dimension_text(expected)}, or a plain number in SI units",
        )


class ArgumentUnits:
    """The units of what may be given for a run of a mechanism; found when a text first needs one."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self._dimensions: Mapping[str, Dimension] | None = None

    def check(self, name: str, text: str, what: str, *, over_time: bool = False) -> None:
        """Refuse a text of another unit than that of a coordinate, speed or input.

        ``over_time``: it may depend on the time ``t``.
        """
        if not self._mechanism.uses_units or is_plain(text):
            return
        if self._dimensions is None:
            _, found = scopes_and_dimensions(self._mechanism, declarations(self._mechanism), True)
            self._dimensions = {**found.coordinates, **found.inputs, **found.speeds}
        if name in self._dimensions:
            check_unit(text, self._dimensions[name], self._scope(over_time), what)

    def check_time(self, text: str, what: str) -> None:
        """Refuse a text that is no time."""
        if self._mechanism.uses_units and not is_plain(text):
            check_unit(text, TIME, self._scope(False), what)

    def _scope(self, over_time: bool) -> Scope:
        scope = parameter_scope(self._mechanism, declarations(self._mechanism), True)
        if not over_time:
            return scope
        return replace(scope, scalars={**scope.scalars, "t": DimensionedValue("scalar", TIME)})
