"""Parameters as numbers: with overrides, flattened, and the units of everything that has a value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence

from fsm_dyn.errors import InputError, ModelError, did_you_mean
from fsm_dyn.expressions import DIMENSIONLESS, Dimension, dimension_text
from fsm_dyn.spec.argument_units import check_unit, is_plain
from fsm_dyn.spec.checks.dimension_algebra import Scope
from fsm_dyn.spec.checks.expressions import check_expressions, parameter_scope
from fsm_dyn.spec.checks.names import declarations
from fsm_dyn.spec.checks.outlines import Values, check_outlines
from fsm_dyn.spec.checks.value_ranges import check_numbers
from fsm_dyn.spec.evaluate import ParameterValue, evaluate, evaluate_parameters
from fsm_dyn.spec.forms.parameter_tolerances import SIGNS
from fsm_dyn.spec.model import Mechanism, Parameter

__all__ = [
    "ParameterValue",
    "Parameters",
    "coordinate_bounds",
    "evaluate",
    "flat_parameters",
    "flat_values",
    "named_values",
    "override_values",
    "parameter_values",
    "units",
]

Given = float | str | Sequence[float | str]
Parameters = Mapping[str, Given]  # SI numbers or text with units, by name
LONGEST_LISTING = 200  # characters


def parameter_values(mechanism: Mechanism, overrides: Parameters | None = None) -> dict[str, ParameterValue]:
    """Return every parameter in SI units, in file order.

    Parameters
    ----------
    mechanism : Mechanism
        A loaded model.
    overrides : mapping, optional
        Values that replace those of the file: numbers in SI units, texts that may carry a unit (``"12 kg"``), and for
        vector parameters sequences of them.  Parameters that depend on a replaced one follow it.

    Returns
    -------
    dict
        A float for each scalar parameter, a tuple for each vector.

    Raises
    ------
    InputError
        For an unknown name, a text of the wrong unit, a wrong number of elements, a value not finite, and for all
        that the file could not hold either: see :func:`check_values`.
    """
    given = override_values(mechanism, overrides or {})
    values = evaluate_parameters(mechanism, given)
    if given:
        check_values(mechanism, values, {name: values[name] for name in given})
    return values


def override_values(mechanism: Mechanism, overrides: Parameters) -> dict[str, tuple[float, ...]]:
    """Return the numbers of overrides, SI, a tuple each; they are not checked together with other parameters.

    Raises
    ------
    InputError
        For an unknown name, a text of the wrong unit, a wrong number of elements, a value not finite.
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
    """Refuse parameters that the file could not hold.

    Parameters
    ----------
    values : mapping
        All parameters, SI.
    given : mapping
        Those of them that replace the file's.

    Raises
    ------
    InputError
        A check that the file passes is failed with these values.
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
        return evaluate(item, {})
    if not isinstance(item, bool) and isinstance(item, numbers.Real) and math.isfinite(item):
        return float(item)
    raise InputError(f"parameter {parameter.name!r} wants a finite number or a text with a unit", found=repr(item)[:60])


def _dimension_of(mechanism: Mechanism, parameter: Parameter, at: int) -> Dimension:
    scope = parameter_scope(mechanism, declarations(mechanism), True)
    if parameter.is_vector:
        return scope.vectors[parameter.name][at].dimension or DIMENSIONLESS
    return scope.scalars[parameter.name].dimension or DIMENSIONLESS


def coordinate_bounds(mechanism: Mechanism, values: Mapping[str, ParameterValue]) -> dict[str, tuple[float, float]]:
    """Return lower and upper bound (SI) of each coordinate with a stated range, infinite where a side is open."""
    return {
        str(name): (
            -math.inf if coordinate.range[0] is None else evaluate(coordinate.range[0], values),
            math.inf if coordinate.range[1] is None else evaluate(coordinate.range[1], values),
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

    Raises
    ------
    InputError
        Their number is not that of the model's.
    """
    if len(numbers) != len(flat_parameters(mechanism)):
        raise InputError(
            "a wrong number of parameters", found=str(len(numbers)), allowed=str(len(flat_parameters(mechanism)))
        )
    rest = iter(float(number) for number in numbers)
    given = {name: tuple(next(rest) for _ in p.values) for name, p in mechanism.parameters.items()}
    return {name: value if mechanism.parameters[name].is_vector else value[0] for name, value in given.items()}


def units(mechanism: Mechanism) -> dict[str, str]:
    """Return the SI unit of each parameter, coordinate, input, speed and output; empty where units are not used.

    Coordinates and inputs keep the unit text of the file (``rad`` rather than ``1``); elements of vector
    parameters stand under ``lip[0]``.
    """
    if not mechanism.uses_units:
        return {}
    found: dict[str, Dimension] = check_expressions(mechanism, declarations(mechanism), True)
    written = {c.name: c.unit for c in (*mechanism.coordinates.values(),) if c.unit}
    written |= {i.name: i.unit for i in mechanism.inputs.values() if i.unit}
    return {name: written.get(name) or dimension_text(dimension) for name, dimension in found.items()}
