"""Tolerances of parameters as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.evaluate import evaluate
from fsm_dyn.spec.model import Mechanism


@dataclass(frozen=True, slots=True)
class Deviation:
    """Deviation of a parameter from its value, SI: uniform from ``lower`` to ``upper``, or normal (``sigma`` > 0)."""

    lower: float = 0.0
    upper: float = 0.0
    sigma: float = 0.0


def deviations(mechanism: Mechanism, values: Mapping[str, float | Sequence[float]]) -> dict[str, Deviation]:
    """Return the deviations of all parameters that have a tolerance, by name.

    Parameters
    ----------
    mechanism : Mechanism
        The model.
    values : mapping
        All parameters, SI.

    Raises
    ------
    ModelError
        A lower limit is positive, an upper one or a standard deviation is negative.
    """
    found: dict[str, Deviation] = {}
    for name, parameter in mechanism.parameters.items():
        tolerance = parameter.tolerance
        if tolerance is None:
            continue
        what = f"parameter {str(name)!r}"
        found[str(name)] = Deviation(
            _signed(tolerance.lower, values, -1.0, f"the lower limit of {what}"),
            _signed(tolerance.upper, values, 1.0, f"the upper limit of {what}"),
            _signed(tolerance.sigma, values, 1.0, f"the standard deviation of {what}"),
        )
    return found


def _signed(text: Text | None, values: Mapping[str, float | Sequence[float]], sign: float, what: str) -> float:
    value = 0.0 if text is None else evaluate(text, values)
    if text is not None and value * sign < 0.0:
        raise ModelError(
            f"{what} has the wrong sign",
            text.where,
            found=text.text,
            allowed="zero or positive" if sign > 0.0 else "zero or negative",
        )
    return value
