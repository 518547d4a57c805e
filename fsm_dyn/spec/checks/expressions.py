"""Every expression of a model, section by section, in its scope and with the unit it must have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import DIMENSIONLESS, Compare, Dimension, Text, parse
from fsm_dyn.expressions.units import divide, multiply, power
from fsm_dyn.spec.checks.controllers import check_controllers, with_controllers
from fsm_dyn.spec.checks.dimension_algebra import DimensionedValue, Scope
from fsm_dyn.spec.checks.expression_types import INERTIA, LENGTH, MASS, POWER, TIME, expression_type, unit_dimension
from fsm_dyn.spec.checks.loads import check_impulses, check_loads
from fsm_dyn.spec.checks.names import Declaration
from fsm_dyn.spec.checks.scopes import Scopes, constant_scope, scopes_of, with_names, with_scalar, with_speeds
from fsm_dyn.spec.checks.unit_usage import texts_of
from fsm_dyn.spec.constraint import PositionConstraint
from fsm_dyn.spec.contact import Compliance, Contact, FeatureContact, SurfaceContact
from fsm_dyn.spec.input_declarations import ExpressionSchedule, TableSchedule
from fsm_dyn.spec.model import (
    PARAMETER,
    POLAR,
    Input,
    Mechanism,
    Port,
    Schedule,
    TransitionSpec,
)
from fsm_dyn.spec.numerics import NUMERICS
from fsm_dyn.spec.shape import CurveShape, Shape
from fsm_dyn.spec.transition_conditions import is_condition, is_steady, parts_of, without_negations


def check_expressions(mechanism: Mechanism, known: Mapping[str, Declaration], units: bool) -> dict[str, Dimension]:
    """Check kinds, visibility and dimensions of every expression.

    Returns
    -------
    dict
        The dimension of each parameter (``lip[0]`` for elements), coordinate, input, speed and output;
        dimensionless where units are not used.

    Raises
    ------
    ModelError
        At the first expression that does not fit.
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
        _contact(contact, replace(scopes, configuration=held))
    check_controllers(mechanism, scopes, named.controllers)
    check_loads(mechanism, scopes)
    for name, coordinate in mechanism.coordinates.items():
        for text in filter(None, coordinate.range):
            expression_type(text, constant, f"a bound of {name!r}", [coordinates[name]])
    for transition in mechanism.transitions:
        _transition(transition, mechanism, scopes, {**coordinates, **speeds})
    for port in mechanism.ports.values():
        _port(port, scopes, constant, coordinates)
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

    Raises
    ------
    ModelError
        At the first parameter, input or speed that does not fit.
    """
    constant = parameter_scope(mechanism, known, units)
    coordinates = _coordinates(mechanism)
    schedule_scope = scopes_of(mechanism, constant, {}, {}).schedule
    inputs = {name: _input(entry, schedule_scope) for name, entry in mechanism.inputs.items()}
    for scenario, schedules in mechanism.scenarios.items():
        for name, schedule in schedules.items():
            _scheduled(schedule, inputs[name], schedule_scope, f"{name!r} in the scenario {scenario!r}")
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
    if entry.unit:
        wanted: Dimension | None = unit_dimension(entry.unit, f"input {entry.name!r}")
    elif entry.schedule is not None:
        wanted = _inferred(entry.schedule, scope, what)
    else:
        wanted = DIMENSIONLESS
    if entry.schedule is not None:
        _scheduled(entry.schedule, wanted, scope, what)
    return wanted or DIMENSIONLESS


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
    """Return the dimension of the first value that is not a written zero."""
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
    for name, point in mechanism.points.items():
        expression_type(point.at, scopes.configuration, f"the position of {name!r}", [LENGTH], "vector")
    for name, body in mechanism.bodies.items():
        expression_type(body.mass, scopes.constant, f"the mass of {name!r}", [MASS])
        for entry, text in body.inertia.items():
            expression_type(text, scopes.constant, f"the inertia {entry} of {name!r}", [INERTIA])


def _shape(shape: Shape, scopes: Scopes) -> None:
    what = f"shape {shape.name!r}"
    for text in shape.lengths:
        expression_type(text, scopes.constant, f"a length of {what}", [LENGTH])
    for text in shape.angles_given:
        expression_type(text, scopes.constant, f"an angle of {what}", [DIMENSIONLESS])
    if isinstance(shape, CurveShape):
        name = POLAR if len(shape.formula) == 1 else PARAMETER
        for text in shape.formula:
            expression_type(text, with_scalar(scopes.constant, name), f"the formula of {what}", [LENGTH])
    for word, vector in shape.vectors:
        expression_type(vector, scopes.axes, f"the {word} of {what}", kind="vector")


def _contact(contact: Contact, scopes: Scopes) -> None:
    name = contact.name
    gap = slip = None
    if contact.gap is not None:
        what = f"the {contact.contact_law.normal_noun} {name!r}"
        wanted = [LENGTH, DIMENSIONLESS] if contact.contact_law.has_gap else None
        # memory is constant between transitions: a gap may jump with it, a row that is held may not
        may_jump = contact.contact_law.has_gap and not contact.bilateral
        gap = expression_type(contact.gap, scopes.gap if may_jump else scopes.configuration, what, wanted).dimension
    if contact.slip is not None:
        slip = expression_type(contact.slip, scopes.state, f"the slip of {name!r}").dimension
    if isinstance(contact, SurfaceContact) and contact.across is not None:
        expression_type(contact.across, scopes.state, f"the second slip of {name!r}", None if slip is None else [slip])
    # A coefficient turns the force along the gap into one along the slip; on a speed alone it is the force.
    force: list[Dimension] | None = None
    law = contact.contact_law
    if law.friction_only or law.force_limit:
        rate = slip if slip is not None else divide(gap, TIME) if gap is not None else None
        force = None if rate is None else [divide(divide(LENGTH, TIME) if law.loaded else POWER, rate)]
    elif gap is not None and slip is not None:
        force = [divide(divide(gap, TIME), slip)]
    elif isinstance(contact, FeatureContact):
        force = [DIMENSIONLESS]
    for word, text in (("static", contact.static), ("kinetic", contact.kinetic)):
        if text is not None:
            noun = law.bound_noun if law.force_limit else f"{word} friction"
            expression_type(text, scopes.logic, f"the {noun} of {name!r}", force)
    if isinstance(contact, SurfaceContact):
        _surfaces(contact, LENGTH if isinstance(contact, FeatureContact) else gap, scopes)


def _surfaces(contact: SurfaceContact, gap: Dimension | None, scopes: Scopes) -> None:
    name = contact.name
    if contact.restitution is not None:
        expression_type(contact.restitution, scopes.logic, f"the restitution of {name!r}", [DIMENSIONLESS])
    if contact.sound_frequency is not None:
        expression_type(
            contact.sound_frequency, scopes.constant, f"the sound frequency of {name!r}", [divide(DIMENSIONLESS, TIME)]
        )
    if contact.compliance is not None:
        _compliance(name, contact.compliance, gap, scopes)
    if contact.closes_if is not None:
        expression_type(contact.closes_if, scopes.logic, f"`closes_if` of {name!r}", kind="condition")


def _compliance(name: str, compliance: Compliance, gap: Dimension | None, scopes: Scopes) -> None:
    """Check a force law: the unit of its stiffness follows from that of the gap and from the exponent."""
    exponent: float | None = 1.0
    if compliance.exponent is not None:
        found = expression_type(compliance.exponent, scopes.constant, f"the exponent of {name!r}", [DIMENSIONLESS])
        exponent = found.value
    stiffness = dissipation = None
    if gap is not None and exponent is not None:
        stiffness = [divide(divide(divide(POWER, gap), power(gap, exponent)), power(TIME, -1.0))]
        dissipation = [divide(TIME, gap)]
    expression_type(compliance.stiffness, scopes.constant, f"the stiffness of {name!r}", stiffness)
    if compliance.dissipation is not None:
        expression_type(compliance.dissipation, scopes.constant, f"the dissipation of {name!r}", dissipation)


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
    """Check that `when` is a scalar that crosses zero, or a condition that becomes true at a definite instant."""
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


def _port(port: Port, scopes: Scopes, constant: Scope, coordinates: Mapping[str, Dimension]) -> None:
    for axis in port.axes:
        expression_type(axis, scopes.configuration, f"an axis of port {port.name!r}", [DIMENSIONLESS], "vector")
    if port.rotation is not None:
        expression_type(
            port.rotation, scopes.configuration, f"the rotation of port {port.name!r}", [DIMENSIONLESS], "vector"
        )
    if port.kinematic is not None:
        expression_type(port.kinematic, constant, f"the bandwidth of port {port.name!r}", [divide(DIMENSIONLESS, TIME)])
    way = LENGTH if port.coordinate is None else coordinates[port.coordinate]
    stiffness = divide(divide(multiply(POWER, TIME), way), way)
    for text, what, dimension in (
        (port.stiffness, "stiffness", stiffness), (port.damping, "damping", multiply(stiffness, TIME)),
        (port.step, "step", TIME),
        *((text, "press", way) for text in port.press),
    ):  # fmt: skip
        if text is not None:
            expression_type(text, constant, f"the {what} of port {port.name!r}", [dimension])
