"""Loads: scopes and units of each kind."""

from __future__ import annotations

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import DIMENSIONLESS, Axis, Dimension, Text, free_names, parse, walk
from fsm_dyn.expressions.units import divide, multiply
from fsm_dyn.spec.checks.expression_types import ACCELERATION, ENERGY, FORCE, LENGTH, TIME, expression_type
from fsm_dyn.spec.checks.scopes import Scopes
from fsm_dyn.spec.loads import ForceLoad, GravityLoad, LawLoad, LineLoad, TorqueLoad, TorsionSpringLoad
from fsm_dyn.spec.model import Mechanism, TransitionSpec


def check_loads(mechanism: Mechanism, scopes: Scopes) -> None:
    """Check the expressions of every load.

    Raises
    ------
    ModelError
        At the first one that does not fit.
    """
    fixed = _fixed_frames(mechanism)
    for load in mechanism.loads:
        what = f"load {load.name!r}"
        match load:
            case ForceLoad():
                expression_type(load.value, scopes.logic, what, [FORCE], "vector")
            case TorqueLoad():
                expression_type(load.value, scopes.logic, what, [ENERGY], "vector")
            case GravityLoad(on=None):
                expression_type(load.value, scopes.axes, what, [ACCELERATION], "vector")
                _constant_direction(load.value, what, fixed)
            case GravityLoad():
                expression_type(load.value, scopes.logic, what, [ACCELERATION], "vector")
            case LineLoad():
                _along_a_length(load, scopes, what)


def check_impulses(transition: TransitionSpec, mechanism: Mechanism, scopes: Scopes) -> None:
    """Check the impulses of a transition: forces and torques times time, and none on a coordinate that is driven.

    Raises
    ------
    ModelError
        At the first one that does not fit.
    """
    for number, impulse in enumerate(transition.impulses, 1):
        what = f"impulse {number} of transition {transition.name!r}"
        match impulse:
            case ForceLoad():
                expression_type(impulse.value, scopes.logic, what, [multiply(FORCE, TIME)], "vector")
            case TorqueLoad():
                expression_type(impulse.value, scopes.logic, what, [multiply(ENERGY, TIME)], "vector")
            case LawLoad():
                _not_driven(impulse, mechanism, what)
                _along_a_length(impulse, scopes, what, multiply(ENERGY, TIME))


def _not_driven(impulse: LawLoad, mechanism: Mechanism, what: str) -> None:
    """Refuse an impulse on a coordinate whose motion a constraint prescribes: all of it would load the drive."""
    if not isinstance(impulse.along, Text):
        return
    moved = free_names(parse(impulse.along)) & set(mechanism.coordinate_names)
    given = {"t", *mechanism.inputs, *mechanism.parameters}
    for name, row in mechanism.constraints.items():
        found = free_names(parse(row.expression))
        driven = found & set(mechanism.coordinate_names)
        if (
            moved
            and moved <= driven
            and len(driven) == 1
            and found <= driven | given
            and found & {"t", *mechanism.inputs}
        ):
            raise ModelError(
                f"{what} is on a driven coordinate",
                impulse.along.where,
                found=f"{impulse.along.text}, which the constraint {name!r} prescribes",
                remedy="act on a point or body beyond the drive, or drive it by a force instead",
            )


def _along_a_length(load: LineLoad, scopes: Scopes, what: str, work: Dimension = ENERGY) -> None:
    """Check a spring, a damper or a law: force times length is energy, or ``work``, in any unit of length."""
    length: Dimension | None = LENGTH
    if isinstance(load.along, Text):
        angle = [DIMENSIONLESS] if isinstance(load, TorsionSpringLoad) else None
        length = expression_type(load.along, scopes.configuration, f"the coordinate of {what}", angle).dimension
    force = divide(work, length) if length is not None else DIMENSIONLESS
    stiffness = divide(force, length) if length is not None else DIMENSIONLESS
    if isinstance(load, LawLoad):
        expression_type(load.value, scopes.logic, what, [force])
    admitted = {
        "stiffness": (scopes.constant, stiffness),
        "free length": (scopes.constant, length or DIMENSIONLESS),
        "damping": (scopes.logic, multiply(stiffness, TIME)),
    }
    for word, text in load.coefficients:
        scope, dimension = admitted[word]
        expression_type(text, scope, f"the {word} of {what}", [dimension])


def _fixed_frames(mechanism: Mechanism) -> set[str]:
    """Return the frames that do not turn in N."""
    fixed = {"N"}
    for name, frame in mechanism.frames.items():
        constant = all(free_names(parse(angle)) <= set(mechanism.parameters) for angle in frame.angles)
        if frame.parent in fixed and constant and not frame.euler_names:
            fixed.add(name)
    return fixed


def _constant_direction(value: Text, what: str, fixed: set[str]) -> None:
    for node in walk(parse(value)):
        if isinstance(node, Axis) and node.frame not in fixed:
            raise ModelError(
                f"{what}: frame {node.frame!r} turns, so gravity would have no potential",
                value.where,
                found=value.text,
                allowed=", ".join(f"axes of {name}" for name in sorted(fixed)),
            )
