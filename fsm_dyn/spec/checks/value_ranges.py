"""Checks of values with the parameters of the file: finite, ordered, of an admissible sign."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.expressions.tokens import excerpt
from fsm_dyn.spec.checks.unit_usage import texts_of
from fsm_dyn.spec.contact import Contact, GapContact, SurfaceContact
from fsm_dyn.spec.evaluate import evaluate, evaluate_parameters, names_in
from fsm_dyn.spec.model import Coordinate, Mechanism, Schedule
from fsm_dyn.spec.parameter_tolerances import deviations
from fsm_dyn.spec.shape import ArcShape, BoxShape, CircleShape, DiskShape, RoundShape, SegmentShape, Shape

Values = Mapping[str, float | Sequence[float]]

LOWEST, HIGHEST = 20.0, 20e3  # Hz: what people hear


def check_numbers(mechanism: Mechanism, values: Values | None = None) -> None:
    """Evaluate what depends on parameters alone and refuse the impossible.

    Parameters
    ----------
    mechanism : Mechanism
        The model.
    values : mapping, optional
        All parameters, SI; by default those of the file.

    Raises
    ------
    ModelError
        Where a value is not finite, a mass negative, a table not in the order of time, and so on.
    """
    if values is None:
        values = evaluate_parameters(mechanism, {})
    deviations(mechanism, values)
    for name, body in mechanism.bodies.items():
        _not_negative(body.mass, values, f"the mass of {name!r}")
        for entry in ("xx", "yy", "zz"):
            if entry in body.inertia:
                _not_negative(body.inertia[entry], values, f"the inertia {entry} of {name!r}")
    for joint in mechanism.joints.values():
        for word, text in joint.positive_numbers:
            _positive(text, values, f"the {word} of {joint.name!r}")
    for shape in mechanism.shapes.values():
        _shape(shape, values)
    for contact in mechanism.contacts.values():
        _contact(contact, values)
    _stops(mechanism, values)
    for coordinate in mechanism.coordinates.values():
        _range(coordinate, values)
    for load in mechanism.loads:
        for word, text in load.coefficients:
            _value(text, values, f"the {word} of load {load.name!r}")
    for entry_ in mechanism.inputs.values():
        if entry_.schedule is not None:
            _schedule(entry_.schedule, values, f"the schedule of {entry_.name!r}")
    for scenario, schedules in mechanism.scenarios.items():
        for name, schedule in schedules.items():
            _schedule(schedule, values, f"{name!r} in the scenario {scenario!r}")
    for name, text in (*mechanism.initial.values.items(), *mechanism.initial.guess.items()):
        _value(text, values, f"the initial value of {name!r}")
    for name, text in mechanism.numerics.items():
        _positive(text, values, f"the tolerance {name!r}")
    for controller in mechanism.controllers.values():
        _positive(controller.period, values, f"the period of controller {controller.name!r}")
        for item in controller.quantities:
            _value(item.start, values, f"the start of {item.name!r}")
            if item.quantum is not None:
                _positive(item.quantum, values, f"the quantum of {item.name!r}")
    for port in mechanism.ports.values():
        if port.step is not None:
            _positive(port.step, values, f"the step of port {port.name!r}")
    for name, shapes in mechanism.view.items():
        for text in texts_of(shapes):
            _value(text, values, f"a length in the view of {name!r}")


def _value(text: Text | None, values: Values, what: str) -> float | None:
    """Return the value of an expression of parameters; None where there is none or it depends on more."""
    if text is None:
        return None
    known = values.get(text.text)
    if isinstance(known, float) and math.isfinite(known):  # a parameter itself, as most are
        return known
    if not names_in(text.text) <= values.keys():
        return None
    try:
        return evaluate(text, values)
    except ModelError as error:
        raise ModelError(
            f"{what}: {error.message}", text.where, found=excerpt(text.text), remedy=error.remedy
        ) from None


def _not_negative(text: Text, values: Values, what: str) -> None:
    value = _value(text, values, what)
    if value is not None and value < 0:
        raise ModelError(f"{what} is negative", text.where, found=excerpt(text.text), allowed="0 or more")


def _positive(text: Text, values: Values, what: str) -> None:
    value = _value(text, values, what)
    if value is not None and not value > 0:
        raise ModelError(f"{what} is not positive", text.where, found=excerpt(text.text), allowed="more than 0")


def _shape(shape: Shape, values: Values) -> None:
    what = f"shape {shape.name!r}"
    match shape:
        case SegmentShape(points=(first, last)) if (
            None not in (ends := [_value(text, values, f"an end of {what}") for text in (*first, *last)])
            and ends[:2] == ends[2:]
        ):
            raise ModelError(
                f"the ends of {what} coincide", first[0].where, found=f"[{ends[0]:g}, {ends[1]:g}]",
                remedy="a segment has a length; a point is a `circle` of radius 0",
            )  # fmt: skip
        case CircleShape(is_point=True):
            pass
        case RoundShape() | DiskShape():
            radius = _value(shape.radius, values, f"the radius of {what}")
            if radius is not None and radius <= 0:
                raise ModelError(
                    f"the radius of {what} is impossible", shape.radius.where, found=f"{radius:g}", allowed="> 0"
                )
        case BoxShape():
            for text in shape.size:
                _positive(text, values, f"a length of {what}")
    for text in shape.lengths:
        _value(text, values, f"a coordinate of {what}")
    if isinstance(shape, ArcShape):
        start, end = (_value(text, values, f"an angle of {what}") for text in shape.angles)
        if start is not None and end is not None and not 0.0 < end - start < 2.0 * math.pi:
            raise ModelError(
                f"the angles of {what} are no arc",
                shape.angles[1].where,
                found=f"from {math.degrees(start):g} deg to {math.degrees(end):g} deg",
                allowed="the second above the first, less than a whole turn",
                remedy="a whole turn is a `circle`",
            )


def _contact(contact: Contact, values: Values) -> None:
    bound = contact.contact_law.bound_noun
    static = _value(contact.static, values, f"the {bound} of {contact.name!r}")
    kinetic = _value(contact.kinetic, values, f"the kinetic friction of {contact.name!r}")
    for text, value, word in ((contact.static, static, bound), (contact.kinetic, kinetic, "kinetic friction")):
        if text is not None and value is not None and value < 0:
            raise ModelError(f"the {word} of {contact.name!r} is negative", text.where, found=text.text)
    if static is not None and kinetic is not None and static < kinetic and contact.kinetic is not None:
        raise ModelError(
            f"contact {contact.name!r} has a kinetic friction above the static one",
            contact.kinetic.where,
            found=f"static {static:g}, kinetic {kinetic:g}",
            allowed="kinetic <= static",
        )
    if isinstance(contact, SurfaceContact):
        _surfaces(contact, values)
        _compliance(contact, values)


def _surfaces(contact: SurfaceContact, values: Values) -> None:
    frequency = _value(contact.sound_frequency, values, f"the sound frequency of {contact.name!r}")
    if frequency is not None and contact.sound_frequency is not None and not LOWEST <= frequency <= HIGHEST:
        raise ModelError(
            f"the sound frequency of {contact.name!r} is outside the audible range",
            contact.sound_frequency.where,
            found=f"{frequency:g} Hz",
            allowed=f"{LOWEST:g} to {HIGHEST:g} Hz",
        )
    restitution = _value(contact.restitution, values, f"the restitution of {contact.name!r}")
    if restitution is not None and contact.restitution is not None and not 0 <= restitution <= 1:
        raise ModelError(
            f"the restitution of {contact.name!r} is impossible",
            contact.restitution.where,
            found=f"{restitution:g}",
            allowed="0 to 1",
        )


def _compliance(contact: SurfaceContact, values: Values) -> None:
    law = contact.compliance
    if law is None:
        return
    for text, word in ((law.stiffness, "stiffness"), (law.dissipation, "dissipation")):
        if text is not None:
            _not_negative(text, values, f"the {word} of {contact.name!r}")
    exponent = _value(law.exponent, values, f"the exponent of {contact.name!r}")
    if law.exponent is not None and exponent is not None and not exponent >= 1.0:
        raise ModelError(
            f"the exponent of {contact.name!r} is below 1",
            law.exponent.where,
            found=f"{exponent:g}",
            allowed="1 or more: the force begins at zero with a finite slope",
        )


def _stops(mechanism: Mechanism, values: Values) -> None:
    """Refuse joint stops with the limits the wrong way round: the sum of both gaps is their distance."""
    stops: dict[str, dict[str, GapContact]] = {}
    for contact in mechanism.contacts.values():
        if isinstance(contact, GapContact) and contact.stop:
            stops.setdefault(contact.stop, {})[contact.limit] = contact
    for name, limits in stops.items():
        lower, upper = limits["lower"].gap, limits["upper"].gap
        if lower is None or upper is None:
            continue
        room = _value(Text(f"({lower}) + ({upper})", lower.where), _with_zeros(mechanism, values), name)
        if room is not None and room < 0:
            raise ModelError(
                f"joint stop {name!r} has its lower limit above the upper one",
                lower.where,
                found=f"{-room:g} too much",
                allowed="lower <= upper",
            )


def _range(coordinate: Coordinate, values: Values) -> None:
    lower, upper = (
        _value(text, values, f"a bound of {coordinate.name!r}") for text in coordinate.range or (None, None)
    )
    first = coordinate.range[0] if coordinate.range else None
    if first is not None and lower is not None and upper is not None and not lower < upper:
        raise ModelError(
            f"the range of {str(coordinate.name)!r} is empty", first.where,
            found=f"from {lower:g} to {upper:g} (SI units)", allowed="lower < upper",
        )  # fmt: skip


def _with_zeros(mechanism: Mechanism, values: Values) -> Values:
    return {**dict.fromkeys(mechanism.coordinate_names, 0.0), **values}


def _schedule(schedule: Schedule, values: Values, what: str) -> None:
    last: float | None = None
    for text in schedule.values:
        _value(text, values, what)
    for time in schedule.times:
        at = _value(time, values, f"{what}: time")
        if at is not None and last is not None and at <= last:
            raise ModelError(
                f"{what}: times must increase",
                time.where,
                found=f"{at:g} s after {last:g} s",
                remedy="for a jump write `steps`, or two times a little apart",
            )
        last = at
