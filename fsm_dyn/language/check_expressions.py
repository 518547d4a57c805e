"""Every expression of a model, section by section, in its scope, with its dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.check_values import UnitCheck
from fsm_dyn.language.dimensions import (
    Declaration,
    DimensionedValue,
    Scope,
    Scopes,
    constant_scope,
    expression_type,
    scopes_of,
    texts_of,
    unit_dimension,
    with_names,
    with_scalar,
    with_speeds,
)
from fsm_dyn.language.elements import (
    ExpressionSchedule,
    ForceLoad,
    GravityGradientLoad,
    GravityLoad,
    Input,
    LawLoad,
    LinearSchedule,
    LineLoad,
    PositionConstraint,
    Schedule,
    TableSchedule,
    TorqueLoad,
    TorsionSpringLoad,
)
from fsm_dyn.language.expression_tree import Axis, Compare, Text, free_names, walk
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.mechanism_form import NUMERICS
from fsm_dyn.language.memory import is_condition, is_steady, parts_of, without_negations
from fsm_dyn.language.model import PARAMETER, POLAR, Mechanism, TransitionSpec
from fsm_dyn.language.shapes import CurveShape, Shape
from fsm_dyn.language.units import (
    ACCELERATION,
    DIMENSIONLESS,
    ENERGY,
    FORCE,
    LENGTH,
    TIME,
    Dimension,
    divide,
    multiply,
)

# -- Loads: scopes and units of each kind --------------------------------------------------------------------


_GRAVITATIONAL = multiply(ACCELERATION, multiply(LENGTH, LENGTH))  # of a distant mass


def check_loads(mechanism: Mechanism, scopes: Scopes) -> None:
    """Check the expressions of every load. Raises ModelError at the first invalid one."""
    fixed = _fixed_frames(mechanism)
    for load in mechanism.loads:
        what = f"load {load.name!r}"
        match load:
            case ForceLoad():
                expression_type(load.value, scopes.logic, what, [FORCE], "vector")
            case TorqueLoad():
                if isinstance(load, GravityGradientLoad):
                    expression_type(load.strength, scopes.logic, f"the mass of {what}", [_GRAVITATIONAL])
                expression_type(load.value, scopes.logic, what, [ENERGY], "vector")
            case GravityLoad(on=None):
                expression_type(load.value, scopes.axes, what, [ACCELERATION], "vector")
                _constant_direction(load.value, what, fixed)
            case GravityLoad():
                expression_type(load.value, scopes.logic, what, [ACCELERATION], "vector")
            case LineLoad():
                _along_a_length(load, scopes, what)


def check_impulses(transition: TransitionSpec, mechanism: Mechanism, scopes: Scopes) -> None:
    """Check the impulses of a transition: forces and torques times time, and none on a driven coordinate.

    Raises ModelError at the first invalid one.
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
    """Return the frames without rotation in N."""
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


# -- Sampled controllers: scopes and units -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControllerScopes:
    """All scopes, with the quantities of controllers visible together with memory, and their dimensions."""

    scopes: Scopes
    dimensions: Mapping[str, Dimension]


def with_controllers(scopes: Scopes, mechanism: Mechanism) -> ControllerScopes:
    """Return the scopes with the quantities of controllers.

    Memory and outputs have their written units, inputs the units of their expressions: an input may name memory and
    outputs of all controllers, and the inputs above it. Raises ModelError: a unit is none, or an input does not fit.
    """
    dimensions = {
        item.name: unit_dimension(item.unit, f"{item.name!r}")
        for controller in mechanism.controllers.values()
        for item in (*controller.memory, *controller.outputs)
    }
    logic = with_names(scopes.logic, dimensions)
    for controller in mechanism.controllers.values():
        for item in controller.inputs:
            found = expression_type(item.value, logic, f"input {item.name!r} of controller {controller.name!r}")
            dimensions[item.name] = found.dimension or DIMENSIONLESS
            logic = with_names(logic, {item.name: dimensions[item.name]})
    return ControllerScopes(replace(scopes, logic=logic), dimensions)


# -- Every expression of a model, section by section, in its scope and with the unit it must have ------------


def check_expressions(mechanism: Mechanism, known: Mapping[str, Declaration], units: bool) -> dict[str, Dimension]:
    """Check kinds, visibility and dimensions of every expression.

    ``known``: all names of the mechanism; ``units``: whether the model writes units. Returns the dimension of each
    parameter (``lip[0]`` for elements), coordinate, input, speed and output; dimensionless in a model without units.
    Raises ModelError at the first invalid expression.
    """
    scopes, named = scopes_and_dimensions(mechanism, known, units)
    constant, coordinates, inputs, speeds = scopes.constant, named.coordinates, named.inputs, named.speeds
    _geometry(mechanism, scopes)
    sides = dict.fromkeys(mechanism.kinks, DIMENSIONLESS)
    held, moving = with_names(scopes.configuration, sides), with_names(scopes.state, sides)
    for name, constraint in mechanism.constraints.items():
        scope = held if isinstance(constraint, PositionConstraint) else moving
        expression_type(constraint.expression, scope, f"constraint {name!r}")
    for shape in mechanism.shapes.values():
        _shape(shape, scopes)
    for contact in mechanism.contacts.values():
        UnitCheck(contact, replace(scopes, configuration=held), {}).check()
    for controller in mechanism.controllers.values():
        UnitCheck(controller, scopes, named.controllers).check()
    check_loads(mechanism, scopes)
    for coordinate in mechanism.coordinates.values():
        UnitCheck(coordinate, scopes, coordinates).check()
    for transition in mechanism.transitions:
        _transition(transition, mechanism, scopes, {**coordinates, **speeds})
    for entry in (*mechanism.ports.values(), *mechanism.imposed.values(), *mechanism.pins.values()):
        UnitCheck(entry, scopes, coordinates).check()
    for name, text in (*mechanism.initial.values.items(), *mechanism.initial.guess.items()):
        wanted = {**coordinates, **speeds}[name]
        expression_type(text, constant, f"the initial value of {name!r}", [wanted])
    for name, text in mechanism.numerics.items():
        expression_type(text, constant, f"the tolerance {name!r}", [NUMERICS[name]])
    outputs = {
        name: expression_type(text, scopes.logic, f"output {name!r}").dimension or DIMENSIONLESS
        for name, text in mechanism.outputs.items()
    }
    for name, shapes in mechanism.view.items():
        for text in texts_of(shapes):
            expression_type(text, constant, f"a length in the view of {name!r}", [LENGTH, DIMENSIONLESS])
    parameters = {name: q.dimension or DIMENSIONLESS for name, q in constant.scalars.items()}
    for name, elements in constant.vectors.items():
        parameters |= {f"{name}[{i}]": q.dimension or DIMENSIONLESS for i, q in enumerate(elements)}
    known_names = {**parameters, **coordinates, **inputs, **speeds, **named.controllers, **outputs}
    return {str(n): d for n, d in known_names.items()}


@dataclass(frozen=True, slots=True)
class Named:
    """Dimensions of all names of a model except its parameters."""

    coordinates: Mapping[str, Dimension]
    inputs: Mapping[str, Dimension]
    speeds: Mapping[str, Dimension]
    controllers: Mapping[str, Dimension]


def scopes_and_dimensions(mechanism: Mechanism, known: Mapping[str, Declaration], units: bool) -> tuple[Scopes, Named]:
    """Return the scopes of a model, and the dimensions of its coordinates, inputs, speeds and controllers.

    Raises ModelError at the first invalid parameter, input or speed.
    """
    constant = parameter_scope(mechanism, known, units)
    coordinates = _coordinates(mechanism)
    schedule_scope = scopes_of(mechanism, constant, {}, {}).schedule
    inputs = {name: _input(entry, schedule_scope) for name, entry in mechanism.inputs.items()}
    for scenario, schedules in mechanism.scenarios.items():
        for name, schedule in schedules.items():
            what = f"{name!r} in the scenario {scenario!r}"
            if mechanism.inputs[name].is_boolean:
                _switched(schedule, schedule_scope, what)
            else:
                _scheduled(schedule, inputs[name], schedule_scope, what)
    scopes = scopes_of(mechanism, constant, coordinates, inputs)
    speeds = {
        name: expression_type(text, scopes.definition, f"speed {name!r}").dimension or DIMENSIONLESS
        for name, text in mechanism.speeds.items()
    }
    found = with_controllers(with_speeds(scopes, mechanism, speeds), mechanism)
    return found.scopes, Named(coordinates, inputs, speeds, found.dimensions)


def parameter_scope(mechanism: Mechanism, known: Mapping[str, Declaration], units: bool) -> Scope:
    """Return the constant scope; each parameter sees those before it."""
    scalars: dict[str, DimensionedValue] = {}
    vectors: dict[str, tuple[DimensionedValue, ...]] = {}
    base = constant_scope(known, units)
    for name, parameter in mechanism.parameters.items():
        scope = Scope(base.label, scalars, vectors, known=known, units=units)
        what = f"parameter {name!r}"
        quantities = tuple(expression_type(text, scope, what) for text in parameter.values)
        # A parameter is no written zero: it may be changed, so its unit must be right.
        quantities = tuple(DimensionedValue(q.kind, q.dimension, False, q.value) for q in quantities)
        for text in parameter.tolerance.texts if parameter.tolerance is not None else ():
            expression_type(text, scope, f"the tolerance of {what}", [quantities[0].dimension or DIMENSIONLESS])
        if parameter.is_vector:
            vectors[str(name)] = quantities
        else:
            scalars[str(name)] = quantities[0]
    return Scope(base.label, scalars, vectors, known=known, units=units)


def _coordinates(mechanism: Mechanism) -> dict[str, Dimension]:
    found: dict[str, Dimension] = {}
    for name, coordinate in mechanism.coordinates.items():
        found[name] = unit_dimension(coordinate.unit, f"coordinate {name!r}")
    for frame in mechanism.frames.values():
        found |= dict.fromkeys(frame.euler_names, DIMENSIONLESS)
    return found


def _input(entry: Input, scope: Scope) -> Dimension:
    what = f"the schedule of {entry.name!r}"
    if entry.is_boolean:
        if entry.schedule is not None:
            _switched(entry.schedule, scope, what)
        return DIMENSIONLESS
    if entry.unit:
        wanted: Dimension | None = unit_dimension(entry.unit, f"input {entry.name!r}")
    elif entry.schedule is not None:
        wanted = _inferred(entry.schedule, scope, what)
    else:
        wanted = DIMENSIONLESS
    if entry.schedule is not None:
        _scheduled(entry.schedule, wanted, scope, what)
    return wanted or DIMENSIONLESS


def _switched(schedule: Schedule, scope: Scope, what: str) -> None:
    """Check the schedule of a boolean input: conditions, or 1 and 0, that nothing joins by lines."""
    if isinstance(schedule, LinearSchedule):
        raise ModelError(
            f"{what} is joined by lines, but the input is boolean", schedule.where, found="linear",
            allowed="steps, an expression, a constant", remedy="write `steps: [[0 s, false], [1 s, true]]`",
        )  # fmt: skip
    for time in schedule.times:
        expression_type(time, _constant(scope), f"{what}: time", [TIME])
    for value in schedule.values:
        if value.text not in ("0", "1"):
            inner = scope if isinstance(schedule, ExpressionSchedule) else _constant(scope)
            expression_type(value, inner, what, kind="condition")


def _scheduled(schedule: Schedule, wanted: Dimension | None, scope: Scope, what: str) -> None:
    allowed = None if wanted is None else [wanted]
    match schedule:
        case TableSchedule():
            for time, value in schedule.points:
                expression_type(time, _constant(scope), f"{what}: time", [TIME])
                expression_type(value, _constant(scope), what, allowed)
        case ExpressionSchedule():
            expression_type(schedule.value, scope, what, allowed)


def _inferred(schedule: Schedule, scope: Scope, what: str) -> Dimension | None:
    """Return the dimension of the first value other than a written zero."""
    quantities = [expression_type(text, scope, what) for text in schedule.values]
    return next((q.dimension for q in quantities if not q.zero), DIMENSIONLESS)


def _constant(scope: Scope) -> Scope:
    return Scope(
        "a constant expression",
        {name: q for name, q in scope.scalars.items() if name != "t"},
        scope.vectors,
        known=scope.known,
        units=scope.units,
    )


def _geometry(mechanism: Mechanism, scopes: Scopes) -> None:
    for name, frame in mechanism.frames.items():
        for angle in frame.angles:
            expression_type(angle, scopes.angle, f"an angle of frame {name!r}", [DIMENSIONLESS])
    for entry in (*mechanism.points.values(), *mechanism.bodies.values()):
        UnitCheck(entry, scopes, {}).check()


def _shape(shape: Shape, scopes: Scopes) -> None:
    what = f"shape {shape.name!r}"
    for text in shape.lengths:
        expression_type(text, scopes.constant, f"a length of {what}", [LENGTH])
    if shape.repeat is not None:
        UnitCheck(shape.repeat, scopes, {}, around=what).check()
    for text in shape.angles_given:
        expression_type(text, scopes.constant, f"an angle of {what}", [DIMENSIONLESS])
    if isinstance(shape, CurveShape):
        name = POLAR if len(shape.formula) == 1 else PARAMETER
        for text in shape.formula:
            expression_type(text, with_scalar(scopes.constant, name), f"the formula of {what}", [LENGTH])
    for word, vector in shape.vectors:
        expression_type(vector, scopes.axes, f"the {word} of {what}", kind="vector")


def _transition(
    transition: TransitionSpec, mechanism: Mechanism, scopes: Scopes, dimensions: Mapping[str, Dimension]
) -> None:
    what = f"transition {transition.name!r}"
    if transition.when is not None:
        _trigger(transition.when, mechanism, scopes)
    for name, text in transition.reset.items():
        expression_type(text, scopes.logic, f"{what}: {name}", [dimensions[name]])
    for name, text in transition.set.items():
        boolean = mechanism.memory[name].is_boolean
        expression_type(text, scopes.logic, f"{what}: {name}", [DIMENSIONLESS], "condition" if boolean else "scalar")
    check_impulses(transition, mechanism, scopes)


def _trigger(when: Text, mechanism: Mechanism, scopes: Scopes) -> None:
    """Check `when`: a scalar with a zero crossing, or a condition with a definite instant of becoming true."""
    node = parse(when)
    if not is_condition(node, mechanism):
        expression_type(when, scopes.logic, "`when`")
        return
    expression_type(when, scopes.logic, "`when`", kind="condition")
    for part in parts_of(without_negations(node)):
        if isinstance(part, Compare) and part.op in ("==", "!=") and not is_steady(part, mechanism):
            raise ModelError(
                f"`when` cannot fire on {part.op} of what moves",
                when.where,
                found=when.text,
                allowed="< <= > >=, and == != of memory",
                remedy="write a > b or a < b",
            )
