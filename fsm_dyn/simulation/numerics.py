"""Accuracy of a run: tolerances, and the units of states, constraint rows and guards."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.expressions import DIMENSIONLESS, Dimension
from fsm_dyn.expressions.units import divide, power
from fsm_dyn.laws import GuardQuantity
from fsm_dyn.modes.guards import Guard
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.simulation.tolerances import Tolerances
from fsm_dyn.spec.checks.expression_types import ENERGY, LENGTH, TIME
from fsm_dyn.spec.scales import SI, Measures, Scales, measures, units_of
from fsm_dyn.spec.values import ParameterValue

Array = npt.NDArray[np.float64]


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
    atol: Array
    states: Array
    rows: Array
    contacts: tuple[ContactInfo, ...]
    measures: Measures | None

    @property
    def rtol(self) -> float:
        """Relative tolerance of a step's error."""
        return self.tolerances.rtol or 0.0

    def same(self, other: Numerics) -> bool:
        """Whether the tables of a run are the same with other numerics of the same automaton."""
        return self.tolerances == other.tolerances

    def guards(self, guards: Sequence[Guard]) -> Array:
        """Return the unit of each guard, in SI units."""
        scales = self.tolerances.scales
        if self.measures is None:
            return np.ones(len(guards))
        return np.array([scales.unit(_of_guard(guard, self.measures, self.contacts)) for guard in guards], np.float64)


def numerics_of(
    automaton: Automaton,
    values: Mapping[str, ParameterValue],
    given: Tolerances = Tolerances(),  # noqa: B008 - frozen
) -> Numerics:
    """Return the numerics of an automaton's runs with these parameters.

    Parameters
    ----------
    automaton : Automaton
    values : mapping
        All parameters, SI.
    given : Tolerances
        What is given for this run; the rest is that of the model's file, or follows from the mechanism's own units.

    Raises
    ------
    InputError
        A tolerance of the file is not a positive number with these parameters.
    """
    mechanism, layout = automaton.mechanism, automaton.terms.layout
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
