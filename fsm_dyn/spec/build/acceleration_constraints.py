"""Constraints on accelerations, written out: a coordinate is the integral, and a row on speeds follows it.

``{acceleration: a, of: v}`` asks that the rate of v is a.  The coordinate ``<name>_speed`` has the rate a, which a
kinematic row defines, and the row ``<name>``, v less this coordinate, holds on speeds: so does its derivative on
accelerations, and v has no drift but the error with which the coordinate is integrated (docs/theory.md, "Constraints on
accelerations").
"""

from __future__ import annotations

from dataclasses import replace

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.expressions.units import DIMENSIONLESS, dimension_text
from fsm_dyn.spec.checks.expression_types import expression_type
from fsm_dyn.spec.checks.expressions import scopes_and_dimensions
from fsm_dyn.spec.checks.names import declarations
from fsm_dyn.spec.checks.unit_usage import uses_units
from fsm_dyn.spec.constraint import AccelerationConstraint, VelocityConstraint
from fsm_dyn.spec.model import Coordinate, Mechanism
from fsm_dyn.spec.yaml_tree import LocatedStr


def made_names(name: str) -> tuple[str, str]:
    """Return the names of the coordinate and of the kinematic row that a constraint on accelerations makes."""
    return f"{name}_speed", f"{name}_rate"


def with_accelerations(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with its constraints on accelerations written out.

    Raises
    ------
    ModelError
        An expression of one does not fit, or a name that it makes already exists.
    """
    found = {name: row for name, row in mechanism.constraints.items() if isinstance(row, AccelerationConstraint)}
    if not found:
        return mechanism
    known = declarations(mechanism)
    units = uses_units(mechanism)
    scope = scopes_and_dimensions(mechanism, known, units)[0].state
    coordinates, constraints = dict(mechanism.coordinates), dict(mechanism.constraints)
    for name, row in found.items():
        integral, rate = (LocatedStr(word, row.where) for word in made_names(name))
        for made in (integral, rate):
            if made in known:
                raise ModelError(
                    f"constraint {str(name)!r} makes {str(made)!r}, which is already {known[made].role}", row.where,
                    remedy="rename the constraint",
                )  # fmt: skip
        dimension = expression_type(row.expression, scope, f"constraint {name!r}").dimension
        unit = "" if not units or dimension in (None, DIMENSIONLESS) else dimension_text(dimension)
        coordinates[integral] = Coordinate(integral, unit, where=row.where)
        held = Text(f"({row.expression.text}) - {integral}", row.expression.where)
        constraints[name] = VelocityConstraint(name=row.name, expression=held, where=row.where)
        definition = Text(f"rate({integral}) - ({row.acceleration.text})", row.acceleration.where)
        constraints[rate] = VelocityConstraint(name=rate, expression=definition, kinematic=True, where=row.where)
    return replace(mechanism, coordinates=coordinates, constraints=constraints)
