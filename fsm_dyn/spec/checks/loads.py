"""Loads: scopes and units of each kind."""

from __future__ import annotations

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import DIMENSIONLESS, Axis, Dimension, Text, free_names, parse, walk
from fsm_dyn.expressions.units import divide, multiply
from fsm_dyn.spec.checks.expression_types import ACCELERATION, ENERGY, FORCE, LENGTH, TIME, expression_type
from fsm_dyn.spec.checks.scopes import Scopes
from fsm_dyn.spec.model import Load, Mechanism, TransitionSpec


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
        if load.kind == "force" and load.value is not None:
            expression_type(load.value, scopes.logic, what, [FORCE], "vector")
        elif load.kind == "torque" and load.value is not None:
            expression_type(load.value, scopes.logic, what, [ENERGY], "vector")
        elif load.kind == "gravity" and load.on is not None and load.value is not None:
            expression_type(load.value, scopes.logic, what, [ACCELERATION], "vector")
        elif load.kind == "gravity" and load.value is not None:
            expression_type(load.value, scopes.axes, what, [ACCELERATION], "vector")
            _constant_direction(load.value, what, fixed)
        else:
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
        if impulse.kind == "law":
            _not_driven(impulse, mechanism, what)
            _along_a_length(impulse, scopes, what, multiply(ENERGY, TIME))
        elif impulse.value is not None:
            dimension = multiply(FORCE if impulse.kind == "force" else ENERGY, TIME)
            expression_type(impulse.value, scopes.logic, what, [dimension], "vector")


def _not_driven(impulse: Load, mechanism: Mechanism, what: str) -> None:
    """Refuse an impulse on a coordinate whose motion a constraint prescribes: all of it would load the drive."""
    if impulse.coordinate is None:
        return
    moved = free_names(parse(impulse.coordinate)) & set(mechanism.coordinate_names)
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
                impulse.coordinate.where,
                found=f"{impulse.coordinate.text}, which the constraint {name!r} prescribes",
                remedy="act on a point or body beyond the drive, or drive it by a force instead",
            )


def _along_a_length(load: Load, scopes: Scopes, what: str, work: Dimension = ENERGY) -> None:
    """Check a spring, a damper or a law: force times length is energy, or ``work``, in any unit of length."""
    length: Dimension | None = LENGTH
    if load.coordinate is not None:
        angle = [DIMENSIONLESS] if load.kind == "torsion_spring" else None
        length = expression_type(load.coordinate, scopes.configuration, f"the coordinate of {what}", angle).dimension
    force = divide(work, length) if length is not None else DIMENSIONLESS
    stiffness = divide(force, length) if length is not None else DIMENSIONLESS
    if load.value is not None:
        expression_type(load.value, scopes.logic, what, [force])
    if load.stiffness is not None:
        expression_type(load.stiffness, scopes.constant, f"the stiffness of {what}", [stiffness])
    if load.free is not None:
        expression_type(load.free, scopes.constant, f"the free length of {what}", [length or DIMENSIONLESS])
    if load.damping is not None:
        expression_type(load.damping, scopes.logic, f"the damping of {what}", [multiply(stiffness, TIME)])


def _fixed_frames(mechanism: Mechanism) -> set[str]:
    """Return the frames that do not turn in N."""
    fixed = {"N"}
    for name, frame in mechanism.frames.items():
        constant = all(free_names(parse(angle)) <= set(mechanism.parameters) for _, angle in frame.rotations)
        if frame.parent in fixed and constant and not frame.euler:
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
