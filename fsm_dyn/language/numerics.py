"""Tolerances of a model's runs: their names, meanings, units and usual values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import KeyedMapping, in_place_of, keys_of
from fsm_dyn.language.keys import POSITIVE, expression
from fsm_dyn.language.units import ACCELERATION, DIMENSIONLESS, LENGTH, MASS, SPEED, TIME, Dimension

_tolerance = partial(expression, default=None, unit=DIMENSIONLESS, bounds=POSITIVE, noun="the tolerance {key!r}")


@dataclass(frozen=True, kw_only=True)
class ModelTolerances(KeyedMapping):
    """Tolerances of the model's runs that differ from the usual ones.

    The usual values are in the mechanism's own units of length, mass and time.
    """

    what: ClassVar[str] = "numerics"
    example: ClassVar[str] = "numerics: {gap: 1e-8 m}"
    unknown: ClassVar[str] = "there is no tolerance {key!r}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(rtol="tolerance tol reltol", atol="abstol"),
        **dict.fromkeys(("method", "solver", "integrator"), "an option of runs: --method radau"),
        **dict.fromkeys(("timestep", "step", "dt", "max_step"), "an option of runs: --step '1 ms'"),
    }
    #: Units of those that have no unit of their own.
    varying: ClassVar[Mapping[str, str]] = {"atol": "unit of the state", "graze": "unit of the guard"}

    rtol: Text | None = _tolerance("relative error of a step", usual="1e-9")
    atol: Text | None = _tolerance("absolute error of a step", usual="1e-11")
    gap: Text | None = _tolerance(
        "a contact whose gap is within this is closed; Zeno sequences end", unit=LENGTH, usual="1e-9"
    )
    speed: Text | None = _tolerance("a normal or slip speed within this is zero", unit=SPEED, usual="1e-9")
    acceleration: Text | None = _tolerance("a contact law on accelerations violated by less is kept", usual="1e-9")
    multiplier: Text | None = _tolerance("a force within this fraction of the largest one is zero", usual="1e-9")
    energy: Text | None = _tolerance("fraction of its work by which an impact may raise the energy", usual="1e-15")
    pivot: Text | None = _tolerance("smallest scaled pivot before other independent speeds are taken", usual="1e-6")
    hysteresis: Text | None = _tolerance("they are left when it falls so many times below its best", usual="10")
    time: Text | None = _tolerance("accuracy to which the instant of an event is located", unit=TIME, usual="1e-14")
    coincidence: Text | None = _tolerance(
        "guards that reach zero within this are resolved together", unit=TIME, usual="1e-11"
    )
    graze: Text | None = _tolerance("a guard that falls below zero by less has not fired", usual="1e-12")
    projection: Text | None = _tolerance(
        "residual of configuration rows that asks for a projection", unit=LENGTH, usual="1e-12"
    )
    drift: Text | None = _tolerance("residual after a projection that is a failure", unit=LENGTH, usual="1e-5")
    impact: Text | None = _tolerance("a contact law of an impact violated by less is kept", usual="1e-9")
    slip: Text | None = _tolerance(
        "slip speed in space from which friction follows its direction", unit=SPEED, usual="1e-7"
    )
    least_acceleration: Text | None = _tolerance(
        "acceleration distinguished from rounding", unit=ACCELERATION, usual="1e-3"
    )
    redundancy: Text | None = _tolerance("independent fraction below which a row is redundant", usual="1e-6")
    length_scale: Text | None = _tolerance("the mechanism's own unit of length", unit=LENGTH, usual="1")
    mass_scale: Text | None = _tolerance("the mechanism's own unit of mass", unit=MASS, usual="1")
    time_scale: Text | None = _tolerance("the mechanism's own unit of time", unit=TIME, usual="1")


#: Dimension of each tolerance. Their meaning: ``fsm_dyn.Tolerances``.
NUMERICS: Final[Mapping[str, Dimension]] = {
    name: key.unit for name, (_, key) in keys_of(ModelTolerances).items() if isinstance(key.unit, tuple)
}
