"""The names of tolerances as a model file may give them, and their dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fsm_dyn.expressions import DIMENSIONLESS, Dimension
from fsm_dyn.expressions.units import dimension

_LENGTH, _TIME = dimension(m=1), dimension(s=1)
_SPEED, _ACCELERATION = dimension(m=1, s=-1), dimension(m=1, s=-2)

#: What each tolerance is a quantity of.  What they mean: ``fsm_dyn.Tolerances``.
NUMERICS: Final[Mapping[str, Dimension]] = {
    "rtol": DIMENSIONLESS,
    "atol": DIMENSIONLESS,
    "gap": _LENGTH,
    "speed": _SPEED,
    "acceleration": DIMENSIONLESS,
    "multiplier": DIMENSIONLESS,
    "energy": DIMENSIONLESS,
    "pivot": DIMENSIONLESS,
    "hysteresis": DIMENSIONLESS,
    "time": _TIME,
    "coincidence": _TIME,
    "graze": DIMENSIONLESS,
    "projection": _LENGTH,
    "drift": _LENGTH,
    "impact": DIMENSIONLESS,
    "slip": _SPEED,
    "least_acceleration": _ACCELERATION,
    "redundancy": DIMENSIONLESS,
    "length_scale": _LENGTH,
    "mass_scale": dimension(kg=1),
    "time_scale": _TIME,
}
