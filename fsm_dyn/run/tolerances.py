"""Tolerances of a run in SI units, and the units of states, constraint rows and guards."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, replace
from typing import Any

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.guards import Guard
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.dimensions import Scope
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import keys_of
from fsm_dyn.language.mechanism_form import NUMERICS, ModelTolerances
from fsm_dyn.language.scales import SI, Measures, Scales, measures, units_of
from fsm_dyn.language.units import DIMENSIONLESS, ENERGY, LENGTH, TIME, Dimension, dimension_text, divide, power
from fsm_dyn.language.values import check_unit
from fsm_dyn.runtime.abi import GuardQuantity, ToleranceTable, fields_of

# -- Tolerances of a run: one frozen object, in SI units, scaled from the mechanism by default ---------------
#
# All tests "is this zero?" during a run read this table; ``fsm-dyn check`` prints it. The runtime sees
# the array of :meth:`Tolerances.as_array`, in the order of ``struct fsm_tolerances``.


def _entry(name: str) -> Any:
    """A field: its value in the mechanism's own units, its meaning, and its unit if this varies; from the language."""
    key = keys_of(ModelTolerances)[name][1]
    return field(
        default=None,
        metadata={"value": float(key.usual), "text": key.doc, "unit": ModelTolerances.varying.get(name, "")},
    )


@dataclass(frozen=True)
class Tolerances:
    """Limits of zero, by kind of quantity, and the accuracy of the integration (SI units).

    An entry None takes the model's own (``numerics`` in its file), or its default: the number in the table, in
    the mechanism's own units of length, mass and time.  Those are 1 m, 1 kg and 1 s for mechanisms neither a thousand
    times as large nor as small as usual; see the page on tolerances.  If a row or state is an angle instead of a
    length, the tolerance over the mechanism's length holds for it.

    Parameters
    ----------
    rtol, atol : float
        Relative and absolute tolerance of a step's error; ``atol`` in the SI unit of each state.
    gap : float
        A contact whose gap is within this is closed, m; Zeno sequences of lower impacts end.
    speed : float
        A normal or slip speed within this is zero, m/s.
    acceleration : float
        Violation of a contact law on accelerations counting as none, relative to the accelerations and forces there.
    multiplier : float
        A force within this fraction of the largest one is zero.
    energy : float
        Fraction of the work of an impact by which its energy may rise before restitution is reduced.
    pivot : float
        Smallest scaled pivot before another chart is taken.
    hysteresis : float
        Such a choice is left when its pivot falls so many times below its best.
    time : float
        Accuracy to which the instant of an event is located, s; never below the resolution of the clock.
    coincidence : float
        Guards reaching zero within this of each other are resolved together, s.
    graze : float
        A guard falling below zero by less than this has not fired, in the guard's unit in the mechanism's own units.
    projection : float
        Residual of configuration rows above which the state is projected back, m.
    drift : float
        Residual of configuration rows to be reached by projection, else the run fails, m.
    impact : float
        Violation of a contact law of an impact counting as none, relative to the impulses and speeds there.
    slip : float
        Slip speed in space above which its direction is the one of the friction, m/s.
    least_acceleration : float
        Accelerations below this are not distinguished from rounding, m/s^2.
    redundancy : float
        A row of which less than this fraction is independent of the others is redundant.
    length_scale, mass_scale, time_scale : float
        The mechanism's own units, m, kg, s; found from its numbers if not given.
    """

    rtol: float | None = _entry("rtol")
    atol: float | None = _entry("atol")
    gap: float | None = _entry("gap")
    speed: float | None = _entry("speed")
    acceleration: float | None = _entry("acceleration")
    multiplier: float | None = _entry("multiplier")
    energy: float | None = _entry("energy")
    pivot: float | None = _entry("pivot")
    hysteresis: float | None = _entry("hysteresis")
    time: float | None = _entry("time")
    coincidence: float | None = _entry("coincidence")
    graze: float | None = _entry("graze")
    projection: float | None = _entry("projection")
    drift: float | None = _entry("drift")
    impact: float | None = _entry("impact")
    slip: float | None = _entry("slip")
    least_acceleration: float | None = _entry("least_acceleration")
    redundancy: float | None = _entry("redundancy")
    length_scale: float | None = _entry("length_scale")
    mass_scale: float | None = _entry("mass_scale")
    time_scale: float | None = _entry("time_scale")

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
                raise InputError(f"the tolerance '{item.name}' is no number", found=repr(value)[:60])
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"the tolerance '{item.name}' must be positive and finite", found=f"{value:g}")
            object.__setattr__(self, item.name, float(value))

    @classmethod
    def of(cls, entries: Mapping[str, float | str | Text], values: Mapping[str, Any] | None = None) -> Tolerances:
        """Return tolerances from names and values: numbers in SI units, or texts with units such as ``"1 um"``.

        Parameters
        ----------
        entries : mapping
        values : mapping, optional
            Parameters for the texts.

        Raises
        ------
        InputError
            A name is unknown, or a value is not a positive number.
        """
        for name in entries:
            if name not in NUMERICS:
                raise InputError(
                    f"there is no tolerance '{name}'",
                    allowed=", ".join(NUMERICS),
                    remedy=did_you_mean(str(name), NUMERICS),
                )
        return cls(**{str(name): _number(str(name), value, values or {}) for name, value in entries.items()})

    def specified_entries(self) -> dict[str, float]:
        """Return the entries with a value, by name."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not None}

    def or_else(self, other: Tolerances) -> Tolerances:
        """Return these tolerances with missing entries taken from others.

        Parameters
        ----------
        other : Tolerances
            Gives the missing entries.

        Returns
        -------
        Tolerances
        """
        missing = {item.name: getattr(other, item.name) for item in fields(self) if getattr(self, item.name) is None}
        return replace(self, **missing) if missing else self

    def scaled(self, scales: Scales = SI) -> Tolerances:
        """Return these tolerances with every entry a number, missing ones by the scales of a mechanism."""
        given = (self.length_scale, self.mass_scale, self.time_scale)
        own = (scales.length, scales.mass, scales.time)
        scales = Scales(*(b if a is None else a for a, b in zip(given, own, strict=True)))
        defaults = {item.name: item.metadata["value"] * scales.unit(NUMERICS[item.name]) for item in fields(self)}
        return self.or_else(Tolerances(**defaults))

    @property
    def scales(self) -> Scales:
        """The mechanism's own units; SI if not known."""
        return Scales(self.length_scale or 1.0, self.mass_scale or 1.0, self.time_scale or 1.0)

    def as_array(self) -> Floats:
        """Return the table of the runtime, a float64 array of shape (``ToleranceTable.COUNT``,)."""
        whole = self.scaled()
        return np.array([getattr(whole, name) for name in fields_of(ToleranceTable)])

    def describe(self) -> tuple[tuple[str, float, str, str], ...]:
        """Return (name, value, unit, meaning) of every entry, for printing."""
        whole = self.scaled()
        return tuple(
            (item.name, float(getattr(whole, item.name)), _unit(item), str(item.metadata["text"]))
            for item in fields(self)
        )


def _unit(item: Field[Any]) -> str:
    return str(item.metadata["unit"] or dimension_text(NUMERICS[item.name]))


def _number(name: str, value: float | str | Text, values: Mapping[str, Any]) -> float:
    """Return a tolerance in SI units; a text given beside the model's file must have the right unit."""
    if isinstance(value, str):
        check_unit(value, NUMERICS[name], Scope("a tolerance", {}, {}, units=True), f"the tolerance {name!r}")
        return evaluate_expression(value, {})
    return evaluate_expression(value, values) if isinstance(value, Text) else value


# -- Accuracy of a run: tolerances, and the units of states, constraint rows and guards ----------------------


@dataclass(frozen=True, eq=False)
class Numerics:
    """Tolerances and units of a run.

    Attributes
    ----------
    tolerances : Tolerances
        Every entry a number.
    atol : float64 array, shape (n_q + n_u,)
        Absolute tolerance of a step's error, in the unit of each state.
    states : float64 array, shape (n_q + n_u,)
        Unit of each coordinate and speed, in SI units.
    rows : float64 array, shape (n_rows,)
        Unit of each row's residual over the mechanism's length: 1 for a length, 1 over that length for an angle.
    """

    tolerances: Tolerances
    atol: Floats
    states: Floats
    rows: Floats
    contacts: tuple[ContactInfo, ...]
    measures: Measures | None

    @property
    def rtol(self) -> float:
        """Relative tolerance of a step's error."""
        return self.tolerances.rtol or 0.0

    def same(self, other: Numerics) -> bool:
        """Whether the tables of a run are the same with other numerics of the same automaton."""
        return self.tolerances == other.tolerances

    def guards(self, guards: Sequence[Guard]) -> Floats:
        """Return the unit of each guard, in SI units."""
        scales = self.tolerances.scales
        if self.measures is None:
            return np.ones(len(guards))
        return np.array([scales.unit(_of_guard(guard, self.measures, self.contacts)) for guard in guards], np.float64)


def numerics_of(
    automaton: Automaton, values: Mapping[str, ParameterValue], given: Tolerances | None = None
) -> Numerics:
    """Return the numerics of an automaton's runs with these parameters.

    ``values``: all parameters, SI. ``given``: of this run; the rest is in the model's file, or follows from the
    mechanism's own units. Raises InputError: a tolerance of the file is not a positive number with these parameters.
    """
    mechanism, layout = automaton.mechanism, automaton.terms.layout
    given = given or Tolerances()
    asked = given.or_else(Tolerances.of(mechanism.numerics, values)) if mechanism.numerics else given
    tolerances = _scaled(asked, automaton.numbers.scales(values))
    units = units_of(mechanism, tolerances.scales, layout.q, layout.u, [(row.name, row.role) for row in automaton.rows])
    states = np.concatenate([units.q, units.u])
    absolute = tolerances.atol or 0.0
    atol = absolute * states if asked.atol is None else np.full(len(states), absolute)
    found = measures(mechanism) if mechanism.uses_units and units.scales != SI else None
    return Numerics(tolerances, atol, states, units.rows, automaton.contacts, found)


@functools.lru_cache(maxsize=256)
def _scaled(asked: Tolerances, scales: Scales) -> Tolerances:
    """Return ``asked.scaled(scales)``, which is often the same: scales are powers of 1024."""
    return asked.scaled(scales)


def _of_guard(guard: Guard, found: Measures, contacts: Sequence[ContactInfo]) -> Dimension:
    if guard.quantity is GuardQuantity.CONDITION:
        return found.when[guard.subject]
    contact = contacts[guard.subject]
    normal, tangent = found.normal[contact.name], found.tangent[contact.name]
    match guard.quantity:
        case GuardQuantity.GAP | GuardQuantity.LARGEST_GAP | GuardQuantity.MEETING:
            return normal
        case GuardQuantity.REACH:
            return LENGTH
        case GuardQuantity.SPEED | GuardQuantity.SLIP:
            return divide(normal if guard.quantity is GuardQuantity.SPEED else tangent, TIME)
        case GuardQuantity.FIRMNESS:
            return DIMENSIONLESS
        case GuardQuantity.NORMAL_FORCE | GuardQuantity.HOLDING_LIMIT:
            return divide(ENERGY, normal)
        case GuardQuantity.FRICTION_LIMIT:
            return divide(ENERGY, tangent)
        case GuardQuantity.FRICTION_CIRCLE:
            return power(divide(ENERGY, tangent), 2.0)
    raise ValueError(f"a guard that measures {guard.quantity.name} has no unit")
