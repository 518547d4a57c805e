"""Parameters as numbers, with overrides and their units, of one run and of many."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from fsm_dyn.core.errors import ExpressionError, InputError, ModelError, did_you_mean
from fsm_dyn.language.body_forms import SIGNS
from fsm_dyn.language.check_expressions import check_expressions, parameter_scope, scopes_and_dimensions
from fsm_dyn.language.check_values import Values, check_numbers, check_outlines
from fsm_dyn.language.dimensions import (
    DimensionedValue,
    QuantityAlgebra,
    Scope,
    declarations,
    expression_type,
    misplaced_angle,
    texts_of,
)
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression, evaluate_parameters, names_in
from fsm_dyn.language.expression_tree import Index, Name, Number, Text, fold, walk
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.interfaces import DRIVE, listed_outputs
from fsm_dyn.language.memory import later_values, next_name
from fsm_dyn.language.model import Mechanism, Parameter
from fsm_dyn.language.units import DIMENSIONLESS, Dimension, dimension, dimension_text

# -- Values in addition to the model file --------------------------------------------------------------------
#
# A number is in SI units; a text is an expression with an optional unit: the one rule for ``--set``, ``--input``,
# ``--initial``, ``--tolerance`` and their arguments in Python.

TIME = dimension(s=1)


class _PlainNumbersFit(QuantityAlgebra):
    """A number without a unit is in SI units and fits any dimension."""

    def number(self, node: Number, /) -> DimensionedValue:
        """Return the quantity of a number."""
        found = super().number(node)
        return found if node.dimension is not None else replace(found, dimension=None)


def is_plain(text: str) -> bool:
    """Whether a text has neither names nor units: its value is in SI units."""
    try:
        nodes = list(walk(parse(text)))
    except ExpressionError:
        return False  # the later check reports the error
    return not any(
        isinstance(node, (Name, Index)) or (isinstance(node, Number) and node.dimension is not None) for node in nodes
    )


def _has_unit(text: str) -> bool:
    """Whether a number in an expression carries a unit."""
    return any(isinstance(node, Number) and node.dimension is not None for node in walk(parse(text)))


def check_unit(text: str, expected: Dimension, scope: Scope, what: str) -> None:
    """Refuse a text with another unit than the expected one.

    ``text``: an expression; numbers without a unit in it fit any, and so does a dimensionless one without a unit.
    ``scope``: its visible names. ``what``: its role, for messages. Raises InputError: the unit is another one, or the
    units in it contradict each other.
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


def seconds(value: float | str, what: str) -> float:
    """Return a time in s: a number, or a text with a unit (``"20 ms"``).

    Raises InputError: the text is no expression, or has another unit.
    """
    if isinstance(value, str):
        check_unit(value, TIME, Scope("a time", {}, {}, units=True), what)
        return evaluate_expression(value, {})
    return value


class ArgumentUnits:
    """The units of the arguments of a run of a mechanism; found when a text first needs one."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self._dimensions: Mapping[str, Dimension] | None = None

    def check(self, name: str, text: str, what: str, *, over_time: bool = False) -> None:
        """Refuse a text with another unit than its coordinate, speed or input.

        ``over_time``: it may depend on the time ``t``.
        """
        if not self._mechanism.uses_units or is_plain(text):
            return
        if self._dimensions is None:
            _, found = scopes_and_dimensions(self._mechanism, declarations(self._mechanism), True)
            self._dimensions = {**found.coordinates, **found.inputs, **found.speeds}
        if name in self._dimensions:
            check_unit(text, self._dimensions[name], self._scope(over_time), what)

    def check_condition(self, text: str, what: str) -> None:
        """Refuse a text other than a condition of parameters and the time."""
        scope = parameter_scope(self._mechanism, declarations(self._mechanism), self._mechanism.uses_units)
        time = DimensionedValue("scalar", TIME if scope.units else None)
        try:
            expression_type(Text(text), replace(scope, scalars={**scope.scalars, "t": time}), what, kind="condition")
        except ModelError as error:
            raise InputError(error.message, found=text, allowed=error.allowed, remedy=error.remedy) from None

    def check_time(self, text: str, what: str) -> None:
        """Refuse a text other than a time."""
        if self._mechanism.uses_units and not is_plain(text):
            check_unit(text, TIME, self._scope(False), what)

    def _scope(self, over_time: bool) -> Scope:
        scope = parameter_scope(self._mechanism, declarations(self._mechanism), True)
        if not over_time:
            return scope
        return replace(scope, scalars={**scope.scalars, "t": DimensionedValue("scalar", TIME)})


# -- Parameters as numbers -----------------------------------------------------------------------------------
#
# Overrides applied, vectors flattened; and the units of all quantities with a value.

Given = float | str | Sequence[float | str]
Parameters = Mapping[str, Given]  # SI numbers or text with units, by name
LONGEST_LISTING = 200  # characters


def parameter_values(mechanism: Mechanism, overrides: Parameters | None = None) -> dict[str, ParameterValue]:
    """Return every parameter in SI units, in file order.

    ``mechanism``: a loaded model. ``overrides``: values instead of those of the file: numbers in SI units, texts with
    an optional unit (``"12 kg"``), and for vector parameters sequences of them. Parameters computed from a replaced one
    follow it. A scalar parameter has a float, a vector a tuple. Raises InputError for an unknown name, a text of the
    wrong unit, a wrong number of elements, a value not finite, and for all values refused in a file: see
    :func:`check_values`.
    """
    given = override_values(mechanism, overrides or {})
    values = evaluate_parameters(mechanism, given)
    if given:
        check_values(mechanism, values, {name: values[name] for name in given})
    return values


def override_values(mechanism: Mechanism, overrides: Parameters) -> dict[str, tuple[float, ...]]:
    """Return the numbers of overrides, SI, a tuple each; they are not checked together with other parameters.

    Raises InputError for an unknown name, a text of the wrong unit, a wrong number of elements, a value not finite.
    """
    given: dict[str, tuple[float, ...]] = {}
    for name, value in overrides.items():
        if name not in mechanism.parameters:
            raise InputError(
                f"the model has no parameter {name!r}",
                found=str(name),
                allowed=", ".join(mechanism.parameters) or "no parameters",
                remedy=did_you_mean(str(name), mechanism.parameters),
            )
        given[name] = _override(mechanism, mechanism.parameters[name], value)
    return given


def check_values(mechanism: Mechanism, values: Values, given: Values) -> None:
    """Refuse parameters not allowed in the file.

    ``values``: all parameters, SI; ``given``: those that replace the file's. Raises InputError: these values fail a
    check passed by the file.
    """
    try:
        check_numbers(mechanism, values)
        check_outlines(mechanism, values)
    except ModelError as error:
        said = "; ".join(f"{name} = {_listing(value)}" for name, value in given.items())
        raise InputError(
            f"these parameters are impossible, {said[:LONGEST_LISTING]}: {error.message}",
            found=error.found,
            allowed=error.allowed,
            remedy=error.remedy or "give other values, as the file would need them",
        ) from error


def _listing(value: float | Sequence[float]) -> str:
    numbers = value if isinstance(value, Sequence) else [value]
    return ", ".join(f"{number:g}" for number in numbers)


def _override(mechanism: Mechanism, parameter: Parameter, value: Given) -> tuple[float, ...]:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    items = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if several != parameter.is_vector or len(items) != len(parameter.values):
        wanted = f"{len(parameter.values)} values" if parameter.is_vector else "one value"
        raise InputError(f"parameter {parameter.name!r} wants {wanted}", found=repr(value)[:60])
    return tuple(_number(mechanism, parameter, item, at) for at, item in enumerate(items))


def _number(mechanism: Mechanism, parameter: Parameter, item: object, at: int) -> float:
    if isinstance(item, str):
        if any(sign in item for sign in SIGNS):
            raise InputError(
                f"parameter {parameter.name!r} takes one value",
                found=item,
                remedy="write the tolerance in the model file",
            )
        if mechanism.uses_units and not is_plain(item):
            check_unit(
                item,
                _dimension_of(mechanism, parameter, at),
                Scope("an override", {}, {}, units=True),
                f"parameter {parameter.name!r}",
            )
        return evaluate_expression(item, {})
    if not isinstance(item, bool) and isinstance(item, numbers.Real) and math.isfinite(item):
        return float(item)
    raise InputError(f"parameter {parameter.name!r} wants a finite number or a text with a unit", found=repr(item)[:60])


def _dimension_of(mechanism: Mechanism, parameter: Parameter, at: int) -> Dimension:
    scope = parameter_scope(mechanism, declarations(mechanism), True)
    if parameter.is_vector:
        return scope.vectors[parameter.name][at].dimension or DIMENSIONLESS
    return scope.scalars[parameter.name].dimension or DIMENSIONLESS


def coordinate_bounds(mechanism: Mechanism, values: Mapping[str, ParameterValue]) -> dict[str, tuple[float, float]]:
    """Return lower and upper bound (SI) of each coordinate with a stated range, infinite on an open side."""
    return {
        str(name): (
            -math.inf if coordinate.range[0] is None else evaluate_expression(coordinate.range[0], values),
            math.inf if coordinate.range[1] is None else evaluate_expression(coordinate.range[1], values),
        )
        for name, coordinate in mechanism.coordinates.items()
        if coordinate.range
    }


def flat_parameters(mechanism: Mechanism) -> list[str]:
    """Return the names of all numbers among the parameters: ``m``, ``lip[0]``, ``lip[1]``, in file order."""
    names: list[str] = []
    for name, parameter in mechanism.parameters.items():
        names += [f"{name}[{i}]" for i in range(len(parameter.values))] if parameter.is_vector else [name]
    return names


def flat_values(mechanism: Mechanism, overrides: Parameters | None = None) -> dict[str, float]:
    """Return `parameter_values` under the names of `flat_parameters`."""
    flat: dict[str, float] = {}
    for name, value in parameter_values(mechanism, overrides).items():
        if isinstance(value, tuple):
            flat |= {f"{name}[{i}]": element for i, element in enumerate(value)}
        else:
            flat[name] = value
    return flat


def named_values(mechanism: Mechanism, numbers: Sequence[float]) -> dict[str, ParameterValue]:
    """Return parameters given as numbers in the order of `flat_parameters` by name.

    Raises InputError: their number differs from the model's.
    """
    if len(numbers) != len(flat_parameters(mechanism)):
        raise InputError(
            "a wrong number of parameters", found=str(len(numbers)), allowed=str(len(flat_parameters(mechanism)))
        )
    rest = iter(float(number) for number in numbers)
    given = {name: tuple(next(rest) for _ in p.values) for name, p in mechanism.parameters.items()}
    return {name: value if mechanism.parameters[name].is_vector else value[0] for name, value in given.items()}


def units(mechanism: Mechanism) -> dict[str, str]:
    """Return the SI units of parameters and columns; empty for a model without units.

    Coordinates and inputs keep the unit text of the file (``rad`` rather than ``1``); elements of vector
    parameters stand under ``lip[0]``.
    """
    if not mechanism.uses_units:
        return {}
    found: dict[str, Dimension] = check_expressions(mechanism, declarations(mechanism), True)
    written = {c.name: c.unit for c in (*mechanism.coordinates.values(),) if c.unit}
    written |= {i.name: i.unit for i in mechanism.inputs.values() if i.unit and not i.is_boolean}
    found_units = {name: written.get(name) or dimension_text(dimension) for name, dimension in found.items()}
    for controller in mechanism.controllers.values():
        found_units[next_name(controller)] = "s"
        for output in controller.outputs:
            found_units |= dict.fromkeys(later_values(controller, output.name), found_units[output.name])
    for names in listed_outputs(mechanism.pins):
        quantity = names[1].rsplit(".", 1)[1]
        if quantity != DRIVE:  # its unit is that of the joint
            found_units |= dict.fromkeys(names, "N*m" if quantity.startswith("torque") else "N")
    return found_units


# -- Parameters of many runs ---------------------------------------------------------------------------------
#
# Runs differ in some parameters: only values computed from these are evaluated and checked again.

T = TypeVar("T")


class VariedValues:
    """Values of all parameters, SI, of runs with different values of some of them.

    ``given``: overrides of all runs, as for :func:`fsm_dyn.language.values.parameter_values`; ``names``: differing
    scalar parameters. ``base``: the values with ``given`` alone; ``affected``: the named parameters, and all computed
    from them. Raises InputError: ``given`` is impossible.
    """

    def __init__(self, mechanism: Mechanism, given: Mapping[str, Given], names: Iterable[str]) -> None:
        self._mechanism, self._given, self._names = mechanism, given, frozenset(names)
        self.base = parameter_values(mechanism, given)
        affected = set(self._names)
        self._dependent = []
        for name, parameter in mechanism.parameters.items():
            if name not in affected and name not in given and affected & names_of(parameter.values):
                affected.add(str(name))
                self._dependent.append(parameter)
        self.affected = frozenset(affected)
        shapes = self._part(mechanism.shapes)
        known = all(name in mechanism.parameters and not mechanism.parameters[name].is_vector for name in self._names)
        self._whole = bool(shapes) or not known  # the arrangement of shapes is checked
        contacts = mechanism.contacts if self._part(mechanism.contacts) else {}  # stops are checked in pairs
        self._checked = replace(
            mechanism,
            parameters={
                name: item for name, item in mechanism.parameters.items()
                if item.tolerance is not None and self.concerns(item.tolerance)
            },
            bodies=self._part(mechanism.bodies), joints=self._part(mechanism.joints), shapes=shapes, contacts=contacts,
            coordinates=self._part(mechanism.coordinates) if not contacts else mechanism.coordinates,
            loads=tuple(item for item in mechanism.loads if self._computes([text for _, text in item.coefficients])),
            inputs=self._part(mechanism.inputs), scenarios=self._part(mechanism.scenarios),
            initial=replace(
                mechanism.initial,
                values={name: text for name, text in mechanism.initial.values.items() if self._computes([text])},
                guess={name: text for name, text in mechanism.initial.guess.items() if self._computes([text])},
            ),
            numerics=self._part(mechanism.numerics), controllers=self._part(mechanism.controllers),
            ports=self._part(mechanism.ports),
            view={name: forms for name, forms in mechanism.view.items() if self._computes([*texts_of(forms)])},
        )  # fmt: skip

    def concerns(self, part: object) -> bool:
        """Return whether an expression in a part of the mechanism names a differing parameter."""
        return bool(self.affected & names_of(part))

    def of(self, case: Mapping[str, float]) -> dict[str, ParameterValue]:
        """Return the values of a run.

        ``case``: values of the differing parameters, SI. Raises InputError: they are impossible: as of
        :func:`fsm_dyn.language.values.parameter_values`.
        """
        values: dict[str, ParameterValue] = {**self.base, **case}
        try:
            if case.keys() != self._names or self._whole or not all(map(math.isfinite, case.values())):
                return parameter_values(self._mechanism, {**self._given, **case})
            for parameter in self._dependent:
                numbers = tuple(evaluate_expression(text, values) for text in parameter.values)
                values[str(parameter.name)] = numbers if parameter.is_vector else numbers[0]
            check_numbers(self._checked, values)
        except ModelError:
            return parameter_values(self._mechanism, {**self._given, **case})  # with the error of the whole file
        return values

    def _computes(self, texts: Iterable[Text]) -> bool:
        """Return whether one of some expressions is computed from differing parameters, and not a parameter itself."""
        return any(self.concerns(text) and text.text not in self._mechanism.parameters for text in texts)

    def _part(self, section: Mapping[str, T]) -> dict[str, T]:
        """Return the entries of a section of the file with a differing parameter."""
        return {name: item for name, item in section.items() if self.concerns(item)}


def names_of(part: object) -> frozenset[str]:
    """Return the names in the expressions of a part of a mechanism."""
    found: set[str] = set()
    for text in texts_of(part):
        try:
            found |= names_in(text.text)
        except ExpressionError:  # no expression of names
            continue
    return frozenset(found)
