"""The mechanism's own units of length, mass and time, and the units of its rows and states.

A model's own units bring its numbers (parameters, initial values, numbers with a unit in expressions) nearest to one:
by least squares of their logarithms. They are then rounded to powers of 1024: 1 m, 1 kg and 1 s for all mechanisms of a
usual size, unchanged under a variation of a parameter. By the powers of two, a model with lengths, masses and times
multiplied by powers of 1024 runs to the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.check_expressions import check_expressions, scopes_and_dimensions
from fsm_dyn.language.dimensions import QuantityAlgebra, Scope, declarations, expression_type, texts_of
from fsm_dyn.language.elements import PositionConstraint
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import Compare, Number, Text, fold, free_names, walk
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.memory import is_condition
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.units import DIMENSIONLESS, ENERGY, LENGTH, TIME, Dimension, dimension_text, divide, multiply

_ROUNDING = 1e-12  # of the largest number of its dimension: one no larger is taken as zero
_SURELY = 1e-6  # of a unit's step: beyond the rounding of its logarithm
STEP = 10  # binary digits: the units are powers of 1024
#: Binary logarithms of the smallest numbers rounded to 1: from 3.3 mm to 3.4 m, 11 g to 11 kg, 3.3 ms to 3.4 s.
LOWEST = {"length": -8.25, "mass": -6.5, "time": -8.25}


@dataclass(frozen=True, slots=True)
class Scales:
    """Units of length (m), mass (kg) and time (s) adapted to the size of a mechanism's numbers."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    def unit(self, of: Dimension) -> float:
        """Return the unit of a dimension, in SI units."""
        bases = (self.length, self.mass, self.time)
        return math.prod((b**e for b, e in zip(bases, of[:3], strict=True)), start=1.0)


SI = Scales()


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a model with a unit, by dimension: parameters used, initial values, numbers in expressions."""

    parameters: Mapping[str, tuple[Dimension, ...]]
    initial: tuple[tuple[Dimension, Text], ...]
    written: tuple[tuple[Dimension, float], ...]

    @classmethod
    def of(cls, mechanism: Mechanism) -> Numbers:
        """Return the numbers of a model; none for a model without units."""
        if not mechanism.uses_units:
            return cls({}, (), ())
        named = check_expressions(mechanism, declarations(mechanism), True)
        used = _used(mechanism)
        nodes = (
            node
            for section in _SECTIONS
            for text in texts_of(getattr(mechanism, section))
            for node in walk(parse(text))
        )
        return cls(
            {
                str(name): tuple(named[f"{name}[{i}]" if item.is_vector else name] for i in range(len(item.values)))
                for name, item in mechanism.parameters.items()
                if name in used
            },
            tuple((named[name], text) for name, text in mechanism.initial.values.items()),
            tuple((n.dimension, n.value) for n in nodes if isinstance(n, Number) and n.dimension is not None),
        )

    def scales(self, values: Mapping[str, ParameterValue]) -> Scales:
        """Return the units of the mechanism with these parameters (SI); an undetermined unit is the SI one."""
        found = [*self.written, *((of, evaluate_expression(text, values)) for of, text in self.initial)]
        for name, of in self.parameters.items():
            value = values[name]
            found += zip(of, value if isinstance(value, tuple) else (value,), strict=True)
        least = _least(found)
        found = [(of, value) for of, value in found if abs(value) > least[of] and any(of[:3])]
        if not found:
            return SI
        logarithms = np.log2(np.abs([value for _, value in found]))
        exponents = np.linalg.lstsq(np.array([of[:3] for of, _ in found]), logarithms, rcond=1e-9)[0]
        steps = (math.floor((float(x) - lowest) / STEP) for x, lowest in zip(exponents, LOWEST.values(), strict=True))
        return Scales(*(2.0 ** (STEP * step) for step in steps))


class ScalesOfCases:
    """Finds the cases with the same own units of a mechanism as with other parameters.

    ``values``: the other parameters, SI; ``names``: parameters that differ from case to case, with all that follow from
    them.
    """

    def __init__(self, numbers: Numbers, values: Mapping[str, ParameterValue], names: Collection[str]) -> None:
        self._texts = [text for of, text in numbers.initial if any(of[:3]) and set(free_names(parse(text))) & {*names}]
        self._names = [name for name in numbers.parameters if name in names]
        own = [*((of, text) for of, text in numbers.initial if text in self._texts)]
        dimensions = [of for of, _ in own]
        for name in self._names:
            dimensions += numbers.parameters[name]
        self._used = np.array([any(of[:3]) for of in dimensions], dtype=np.bool_)
        self._base = self._numbers_of(values)
        entries: list[tuple[Dimension, float]] = [*numbers.written]
        entries += [(of, evaluate_expression(text, values)) for of, text in numbers.initial if text not in self._texts]
        for name, of_name in numbers.parameters.items():
            if name not in names:
                value = values[name]
                entries += zip(of_name, value if isinstance(value, tuple) else (value,), strict=True)
        entries += [(of, float(number)) for of, number in zip(dimensions, self._base, strict=True)]
        least = _least(entries)
        self._least = np.array([least[of] for of in dimensions])
        self._base[np.abs(self._base) <= self._least] = 0.0
        kept = np.array([abs(number) > least[of] and any(of[:3]) for of, number in entries], dtype=np.bool_)
        self._steps = np.full(3, 0.5)  # undetermined units stay those of SI
        self._slopes = np.zeros((3, len(self._base)))
        if kept.any():
            matrix = np.array([of[:3] for of, _ in entries], dtype=np.float64)[kept]
            inverse = np.zeros((3, len(entries)))
            inverse[:, kept] = np.linalg.pinv(matrix, rcond=1e-9)
            logarithms = np.array([math.log2(abs(number)) if number else 0.0 for _, number in entries])
            self._steps = (inverse @ logarithms - list(LOWEST.values())) / STEP
            self._slopes = inverse[:, len(entries) - len(self._base) :] / STEP

    def same(self, cases: Sequence[Mapping[str, ParameterValue]]) -> Booleans:
        """Return whether the units of each case are surely those of the other parameters, shape (n,)."""
        found = np.array([self._numbers_of(values) for values in cases]).reshape(len(cases), len(self._base))
        found[np.abs(found) <= self._least] = 0.0
        vanishes = ((found == 0.0) != (self._base == 0.0)) & self._used
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.log2(np.abs(found)) - np.log2(np.abs(self._base))
        steps = self._steps + np.where(self._used & np.isfinite(change), change, 0.0) @ self._slopes.T
        away = np.abs(steps - np.round(steps))
        same = (np.floor(steps) == np.floor(self._steps)) & (away > _SURELY)
        stays: Booleans = same.all(axis=1) & ~vanishes.any(axis=1)
        return stays

    def _numbers_of(self, values: Mapping[str, ParameterValue]) -> Floats:
        found = [evaluate_expression(text, values) for text in self._texts]
        for name in self._names:
            value = values[name]
            found += value if isinstance(value, tuple) else (value,)
        return np.array(found, dtype=np.float64)


def _least(numbers: Sequence[tuple[Dimension, float]]) -> dict[Dimension, float]:
    """Return by dimension the size up to which numbers are zero: rounding next to the largest, such as r*cos(pi/2)."""
    largest: dict[Dimension, float] = {}
    for of, value in numbers:
        largest[of] = max(abs(value), largest.get(of, 0.0))
    return {of: _ROUNDING * value for of, value in largest.items()}


def _used(mechanism: Mechanism) -> set[str]:
    """Names of the parameters of the motion, without those of tolerances or drawings alone."""
    sections = (*_SECTIONS, "frames", "speeds", "memory", "initial")
    texts = [text for section in sections for text in texts_of(getattr(mechanism, section))]
    used = {str(name) for text in texts for name in free_names(parse(text))}
    for name, item in reversed(list(mechanism.parameters.items())):  # each may name those before it
        if name in used:
            used |= {str(other) for text in item.values for other in free_names(parse(text))}
    return used


def own_scales(mechanism: Mechanism, values: Mapping[str, ParameterValue]) -> Scales:
    """Return the units of a mechanism with these parameters (SI); SI units if its file has no units."""
    return Numbers.of(mechanism).scales(values)


#: Sections whose expressions hold numbers of the mechanism; drawings and stated ranges do not count.
_SECTIONS = (
    "points", "bodies", "constraints", "shapes", "contacts", "inputs", "scenarios", "loads", "controllers",
    "written_transitions",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measures:
    """Dimensions of the rows, states and transitions of a model.

    ``constraints``: residuals of rows on coordinates, and integrals of rows on speeds.  ``normal``, ``tangent``: of
    contacts, likewise.  ``when``: of user-defined transitions, the scalars with a zero crossing.
    """

    coordinates: Mapping[str, Dimension]
    speeds: Mapping[str, Dimension]
    constraints: Mapping[str, Dimension]
    normal: Mapping[str, Dimension]
    tangent: Mapping[str, Dimension]
    when: tuple[Dimension, ...]


def measures(mechanism: Mechanism) -> Measures:
    """Return the dimensions of the rows, states and transitions of a model with units."""
    scopes, named = scopes_and_dimensions(mechanism, declarations(mechanism), True)

    def of(text: Text | None, scope: Scope, rate: bool = False) -> Dimension:
        found = LENGTH if text is None else expression_type(text, scope, "a row").dimension or DIMENSIONLESS
        return multiply(found, TIME) if rate and text is not None else found

    constraints = {
        name: of(row.expression, scopes.gap)  # kinks of rows are memory
        if isinstance(row, PositionConstraint)
        else of(row.expression, scopes.logic, True)
        for name, row in mechanism.constraints.items()
    }
    tangent = {name: of(contact.slip, scopes.state, True) for name, contact in mechanism.contacts.items()}
    normal = {
        name: tangent[name] if contact.gap is None else of(contact.gap, scopes.gap)
        for name, contact in mechanism.contacts.items()
    }
    when = tuple(_crossing(item.when, scopes.logic, mechanism) for item in mechanism.transitions)
    return Measures(named.coordinates, named.speeds, constraints, normal, tangent, when)


@dataclass(frozen=True, eq=False)
class Units:
    """The mechanism's own units, and those of its states and rows.

    ``q`` (n_q,), ``u`` (n_u,): in SI units.  ``rows`` (n_rows,): of residuals, over the mechanism's length: 1 for a
    length, 1 over that length for an angle.
    """

    scales: Scales
    q: Floats
    u: Floats
    rows: Floats

    @property
    def speed(self) -> float:
        """Unit of a speed, m/s."""
        return self.scales.length / self.scales.time


def units_of(
    mechanism: Mechanism, scales: Scales, q: Sequence[str], u: Sequence[str], rows: Sequence[tuple[str, str]]
) -> Units:
    """Return the units of a mechanism's coordinates and speeds (names) and rows (owners and roles) in some scales."""
    if not mechanism.uses_units or scales == SI:
        return Units(scales, np.ones(len(q)), np.ones(len(u)), np.ones(len(rows)))
    found, rate = measures(mechanism), divide(DIMENSIONLESS, TIME)
    return Units(
        scales,
        np.array([scales.unit(found.coordinates.get(name, DIMENSIONLESS)) for name in q], np.float64),
        np.array([scales.unit(found.speeds.get(name, rate)) for name in u], np.float64),
        np.array([scales.unit(divide(_of_row(name, role, found), LENGTH)) for name, role in rows], np.float64),
    )


def _of_row(name: str, role: str, found: Measures) -> Dimension:
    if role in ("kinematic", "velocity", "position"):
        return found.constraints[name]
    return found.normal[name] if role in ("normal", "lock") else found.tangent[name]


def force_units(mechanism: Mechanism, rows: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the SI units of the multipliers of rows (owners and roles), ``"N*m"`` along an angle.

    A multiplier times the rate of its row is a power. The texts are empty for a model without units.
    """
    if not mechanism.uses_units:
        return ("",) * len(rows)
    found = measures(mechanism)
    return tuple(dimension_text(divide(ENERGY, _of_row(name, role, found))) for name, role in rows)


def _crossing(when: Text | None, scope: Scope, mechanism: Mechanism) -> Dimension:
    """Return the dimension of a crossing scalar or difference of compared sides; none of joined comparisons."""
    if when is None:
        return DIMENSIONLESS
    node = parse(when)
    if is_condition(node, mechanism) and not isinstance(node, Compare):
        return DIMENSIONLESS
    if not isinstance(node, Compare):
        return expression_type(when, scope, "`when`").dimension or DIMENSIONLESS
    sides = [fold(side, QuantityAlgebra(scope)) for side in (node.left, node.right)]
    return next((side.dimension for side in sides if not side.zero and side.dimension), DIMENSIONLESS)
