"""All checks in their order."""

from __future__ import annotations

from dataclasses import replace

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.checks.dependency_order import ordered
from fsm_dyn.spec.checks.expressions import check_expressions
from fsm_dyn.spec.checks.names import declarations
from fsm_dyn.spec.checks.references import References
from fsm_dyn.spec.checks.requirements import check_requirements
from fsm_dyn.spec.checks.unit_usage import uses_units
from fsm_dyn.spec.checks.value_ranges import check_numbers
from fsm_dyn.spec.model import Mechanism


def check(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism checked, with frames and points in order and ``uses_units`` set.

    Raises
    ------
    ModelError
        At the first thing that is wrong.
    """
    known = declarations(mechanism)
    References(mechanism, known).check()
    units = uses_units(mechanism)
    mechanism = replace(ordered(mechanism), uses_units=units)
    dimensions = check_expressions(mechanism, known, units)
    check_requirements(mechanism, known, dimensions, units)
    _check_count(mechanism)
    check_numbers(mechanism)
    return mechanism


def _check_count(mechanism: Mechanism) -> None:
    """Refuse a number of speeds that cannot define the rates of all coordinates (docs/theory.md, kinematics)."""
    euler = sum(1 for frame in mechanism.frames.values() if frame.euler_names)
    kinematic = sum(1 for row in mechanism.constraints.values() if row.kinematic)
    coordinates, speeds = len(mechanism.coordinate_names), len(mechanism.speeds)
    if coordinates == speeds + kinematic + euler:
        return
    counted = f"{speeds} speeds, {kinematic} kinematic constraints" + (f", {euler} unit norms" if euler else "")
    raise ModelError(
        f"{coordinates} coordinates need as many speeds and kinematic constraints",
        next(iter(mechanism.speeds.values())).where,
        found=counted,
        allowed=str(coordinates),
        remedy="add a speed, or mark a velocity constraint `kinematic: true`"
        if coordinates > speeds + kinematic + euler
        else "remove a speed or a `kinematic: true`",
    )
