"""Parameters of a model, with the tolerances that studies sample."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.errors import NOWHERE, Location
from fsm_dyn.expressions import Text


@dataclass(frozen=True, slots=True)
class ParameterTolerance:
    """By what a parameter of a made part differs from its value, as expressions of parameters.

    ``lower`` and ``upper`` limit the deviation, uniform between them; or ``sigma`` is the standard deviation of a
    normal distribution.
    """

    lower: Text | None = None
    upper: Text | None = None
    sigma: Text | None = None

    @property
    def texts(self) -> tuple[Text, ...]:
        """Its expressions: both limits, or the standard deviation."""
        return tuple(text for text in (self.lower, self.upper, self.sigma) if text is not None)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant of the model, scalar (one value) or vector; it may depend on earlier ones."""

    name: str
    values: tuple[Text, ...]
    is_vector: bool = False
    where: Location = NOWHERE
    tolerance: ParameterTolerance | None = None
