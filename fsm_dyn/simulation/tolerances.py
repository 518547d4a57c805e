"""The one table of tolerances of a run, with its scales.

Everything that decides "is this zero?" during a run reads this table; ``fsm-dyn check`` prints it.  The
values suit mechanisms of about a metre, a second and a kilogram; :meth:`Tolerances.scaled` moves them to
other sizes.  The compiled loop sees the array of :meth:`Tolerances.as_array`, indexed by the constants below.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

GAP: Final = 0
SPEED: Final = 1
ACCELERATION: Final = 2
MULTIPLIER: Final = 3
ENERGY: Final = 4
PIVOT: Final = 5
HYSTERESIS: Final = 6
TIME: Final = 7
COINCIDENCE: Final = 8
GRAZE: Final = 9
PROJECTION: Final = 10
TOLERANCE_COUNT: Final = 11


def _entry(value: float, unit: str, text: str) -> Any:
    return field(default=value, metadata={"unit": unit, "text": text})


@dataclass(frozen=True)
class Tolerances:
    """What counts as zero, by kind of quantity (SI units).

    The order of the fields is the order of :meth:`as_array`.
    """

    gap: float = _entry(1e-9, "m", "a contact whose gap is within this is closed; trains of lower impacts end")
    speed: float = _entry(1e-9, "m/s", "a normal or slip speed within this is zero")
    acceleration: float = _entry(1e-9, "m/s^2", "a contact acceleration within this (relative to its terms) is zero")
    multiplier: float = _entry(1e-9, "1", "a force within this fraction of the largest force at play is zero")
    energy: float = _entry(1e-12, "1", "fraction of the kinetic energy that an impact may appear to gain")
    pivot: float = _entry(1e-6, "1", "smallest scaled pivot before another choice of independent speeds is taken")
    hysteresis: float = _entry(10.0, "1", "such a choice is left when its pivot falls so many times below its best")
    time: float = _entry(1e-14, "s", "accuracy to which the instant of an event is located")
    coincidence: float = _entry(1e-11, "s", "guards that reach zero within this of each other are resolved together")
    graze: float = _entry(1e-12, "unit of the guard", "a guard that dips below zero by less than this has not fired")
    projection: float = _entry(1e-12, "m", "residual of configuration rows above which the state is projected back")

    def as_array(self) -> NDArray[np.float64]:
        """Return the table as a float64 array of shape (:data:`TOLERANCE_COUNT`,)."""
        return np.array([getattr(self, item.name) for item in fields(self)], dtype=np.float64)

    def scaled(self, length: float = 1.0, time: float = 1.0) -> Tolerances:
        """Return the table for a mechanism of the given typical length (m) and time (s)."""
        return replace(
            self,
            gap=self.gap * length,
            speed=self.speed * length / time,
            acceleration=self.acceleration * length / time**2,
            time=self.time * time,
            coincidence=self.coincidence * time,
            projection=self.projection * length,
        )

    def describe(self) -> tuple[tuple[str, float, str, str], ...]:
        """Return (name, value, unit, meaning) of every entry, for printing."""
        return tuple(
            (item.name, float(getattr(self, item.name)), str(item.metadata["unit"]), str(item.metadata["text"]))
            for item in fields(self)
        )
