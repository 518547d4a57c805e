"""Checks that follow from declared keys, and of values with the parameters of the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any

from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.contacts import Contact, GapContact
from fsm_dyn.language.dimensions import DimensionedValue, Scopes, expression_type, texts_of
from fsm_dyn.language.elements import HelicalJoint, Schedule
from fsm_dyn.language.evaluate import ParameterValue, deviations, evaluate_expression, evaluate_parameters, names_in
from fsm_dyn.language.expression_tree import AxisLetter, Text, excerpt, fold, free_names
from fsm_dyn.language.expressions import FloatAlgebra, parse
from fsm_dyn.language.keyed import KeyedMapping, key_of_field, keys_of, mappings_in
from fsm_dyn.language.keys import Key
from fsm_dyn.language.model import Coordinate, Mechanism
from fsm_dyn.language.shape_geometry import curve_pieces, formula_at, polyhedron_faces
from fsm_dyn.language.shapes import (
    ArcShape,
    BoxShape,
    CircleShape,
    CurveShape,
    DiskShape,
    LineShape,
    PolygonShape,
    PolyhedronShape,
    RoundShape,
    SegmentShape,
    Shape,
)
from fsm_dyn.language.units import Dimension

# -- Checks that follow from declared keys: references, scopes and units, bounds -----------------------------


@dataclass(slots=True)
class UnitCheck:
    """The units of a mapping, each found at the first request; ``owner``: those of the mapping around it.

    ``named`` holds the dimensions of names of the model, ``around`` the name of the surrounding mapping in messages.
    """

    entry: KeyedMapping
    scopes: Scopes
    named: Mapping[str, Dimension]
    owner: UnitCheck | None = None
    types: dict[str, DimensionedValue] = field(default_factory=dict)
    around: str = ""

    def type(self, attribute: str) -> DimensionedValue | None:
        """Return kind, dimension and value of an expression here or around; None if it is not given.

        Raises ModelError: it does not fit.
        """
        if attribute in self.types:
            return self.types[attribute]
        key = key_of_field(type(self.entry), attribute)
        if key is None:
            return None if self.owner is None else self.owner.type(attribute)
        for text in _texts(getattr(self.entry, attribute)):
            self.types[attribute] = self._checked(attribute, key, text)
        return self.types.get(attribute)

    def dimension(self, attribute: str, absent: Dimension | None = None) -> Dimension | None:
        """Return the dimension of an expression, or `absent` if it is not given."""
        found = self.type(attribute)
        return absent if found is None else found.dimension

    def check(self) -> None:
        """Check scope, kind and dimension of every expression, those of inner mappings included.

        Raises ModelError at the first that does not fit.
        """
        for attribute, key in keys_of(type(self.entry)).values():
            if key.is_expression:
                self.type(attribute)
            elif key.kind.mappings:
                for inner in mappings_in(getattr(self.entry, attribute)):
                    UnitCheck(inner, self.scopes, self.named, self).check()

    @property
    def label(self) -> str:
        """The name of the mapping in messages."""
        return self.entry.label or self.around or ("" if self.owner is None else self.owner.label)

    def _checked(self, attribute: str, key: Key, text: Text) -> DimensionedValue:
        scope = key.scope if isinstance(key.scope, str) else key.scope(self.entry)
        unit: Any = key.unit(self.entry, self) if callable(key.unit) else key.unit
        wanted: Iterable[Dimension] | None = unit if unit is None or isinstance(unit, list) else [unit]
        what = noun(attribute, key, self.entry, self.label, "" if self.owner is None else self.owner.label)
        undeclared = getattr(self.entry, "unit", None) == ""
        found = expression_type(text, getattr(self.scopes, scope), what, wanted, key.type, unit_key=undeclared)
        if key.at_once and key.bounds is not None and found.value is not None:
            key.bounds.check(found.value, text, what)
        return found


def noun(attribute: str, key: Key, entry: KeyedMapping, label: str, owner: str) -> str:
    """Return a key's noun in messages."""
    word = (key.name or attribute).replace("_", " ")
    return key.noun.format(of=label, owner=owner, name=str(getattr(entry, "name", "")), entry=entry, key=word)


class _Noun:
    """A key's noun, made on request: few entries have an error."""

    __slots__ = ("_of",)

    def __init__(self, *of: Any) -> None:
        self._of = of

    def __str__(self) -> str:
        return noun(*self._of)


def check_bounds(entry: KeyedMapping, value_of: Callable[[Text, Any], float | None], owner: str = "") -> None:
    """Check that every constant of a mapping has a finite value within its bounds.

    ``value_of``: of an expression and its noun: the value, None if it depends on more than parameters; ``owner``: label
    of the mapping around it. Raises ModelError at the first without.
    """
    label = entry.label or owner
    cls: Any = type(entry)
    for attribute, key in _keys_with_values(cls):
        held = getattr(entry, attribute)
        if not key.is_expression:
            for inner in mappings_in(held):
                check_bounds(inner, value_of, label)
            continue
        for text in _texts(held):
            what = _Noun(attribute, key, entry, label, owner)
            value = value_of(text, what)
            if value is not None and key.bounds is not None:
                key.bounds.check(value, text, what)


@cache
def _keys_with_values(cls: Any) -> tuple[tuple[str, Key], ...]:
    """Return fields and keys with constants, or with mappings that may have some."""
    return tuple(item for item in keys_of(cls).values() if item[1].is_constant or item[1].kind.mappings)


def check_references(entry: KeyedMapping, check: Callable[[str, str], None]) -> None:
    """Check every reference of a mapping by `check`, of the name and its role."""
    for attribute, key in keys_of(type(entry)).values():
        value = getattr(entry, attribute)
        if key.role and value is not None:
            check(value, key.role)
        elif key.kind.mappings:
            for inner in mappings_in(value):
                check_references(inner, check)


def _texts(value: Text | tuple[Text | None, ...] | None) -> tuple[Text, ...]:
    texts = value if isinstance(value, tuple) else (value,)
    return tuple(text for text in texts if text is not None)


# -- Checks of values with the parameters of the file: finite, ordered, admissible signs, outlines -----------

# -- Checks of values with the parameters of the file: finite, ordered, of an admissible sign ----------------

Numbers = Mapping[str, float | Sequence[float]]


def check_numbers(mechanism: Mechanism, values: Numbers | None = None) -> None:
    """Evaluate the expressions of parameters alone and refuse impossible values.

    ``values``: all parameters, SI; by default those of the file. Raises ModelError: a value is not finite, a mass
    negative, a table not in the order of time, and so on.
    """
    if values is None:
        values = evaluate_parameters(mechanism, {})
    deviations(mechanism, values)

    def value_of(text: Text, what: object) -> float | None:
        return _value(text, values, what)

    for body in mechanism.bodies.values():
        check_bounds(body, value_of)
    for joint in mechanism.joints.values():
        for word, text in joint.positive_numbers:
            _positive(text, values, f"the {word} of {joint.name!r}")
    for shape in mechanism.shapes.values():
        _shape(shape, values)
    for contact in mechanism.contacts.values():
        check_bounds(contact, value_of)
        _friction(contact, values)
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
    for section in (mechanism.controllers, mechanism.ports, mechanism.imposed, mechanism.pins):
        for entry in section.values():
            check_bounds(entry, value_of)
    for name, shapes in mechanism.view.items():
        for text in texts_of(shapes):
            _value(text, values, f"a length in the view of {name!r}")


def _value(text: Text | None, values: Numbers, what: object) -> float | None:
    """Return the value of an expression of parameters; None if there is none or it depends on more."""
    if text is None:
        return None
    known = values.get(text.text)
    if isinstance(known, float) and math.isfinite(known):  # a parameter itself, as most are
        return known
    if not names_in(text.text) <= values.keys():
        return None
    try:
        return evaluate_expression(text, values)
    except ModelError as error:
        raise ModelError(
            f"{what}: {error.message}", text.where, found=excerpt(text.text), remedy=error.remedy
        ) from None


def _positive(text: Text, values: Numbers, what: str) -> None:
    value = _value(text, values, what)
    if value is not None and not value > 0:
        raise ModelError(f"{what} is not positive", text.where, found=excerpt(text.text), allowed="more than 0")


def _shape(shape: Shape, values: Numbers) -> None:
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


def _friction(contact: Contact, values: Numbers) -> None:
    static = _value(contact.static, values, f"the {contact.contact_law.bound_noun} of {contact.name!r}")
    kinetic = _value(contact.kinetic, values, f"the kinetic friction of {contact.name!r}")
    if static is not None and kinetic is not None and static < kinetic and contact.kinetic is not None:
        raise ModelError(
            f"contact {contact.name!r} has a kinetic friction above the static one",
            contact.kinetic.where,
            found=f"static {static:g}, kinetic {kinetic:g}",
            allowed="kinetic <= static",
        )


def _stops(mechanism: Mechanism, values: Numbers) -> None:
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


def _range(coordinate: Coordinate, values: Numbers) -> None:
    lower, upper = (
        _value(text, values, f"a bound of {coordinate.name!r}") for text in coordinate.range or (None, None)
    )
    first = coordinate.range[0] if coordinate.range else None
    if first is not None and lower is not None and upper is not None and not lower < upper:
        raise ModelError(
            f"the range of {str(coordinate.name)!r} is empty", first.where,
            found=f"from {lower:g} to {upper:g} (SI units)", allowed="lower < upper",
        )  # fmt: skip


def _with_zeros(mechanism: Mechanism, values: Numbers) -> Numbers:
    return {**dict.fromkeys(mechanism.coordinate_names, 0.0), **values}


def _schedule(schedule: Schedule, values: Numbers, what: str) -> None:
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


# -- Outlines by their numbers -------------------------------------------------------------------------------
#
# The numbers of a shape decide its sense and the free sides of its faces. The equations are derived for the decisions
# of the file's own parameters; other parameters must lead to the same decisions.

Values = Mapping[str, ParameterValue]
Place = tuple[float, float]

LOOKS = 360  # samples of a curve
CLOSED = 1e-9  # of a curve's size
LIKE = 0.2  # rad; pieces of a curve with nearer begins are the same


def polygon_sense(shape: PolygonShape, values: Values) -> tuple[int, tuple[int, ...]]:
    """Return the sense of the corners (+1: anticlockwise), and the corners out of reach from outside.

    Raises ModelError: neighbouring points coincide, or the polygon has no interior.
    """
    points = places(shape, values)
    count = len(points)
    bends = []
    area = 0.0
    for i, (x, y) in enumerate(points):
        (x0, y0), (x1, y1) = points[i - 1], points[(i + 1) % count]
        bends.append((x - x0) * (y1 - y) - (y - y0) * (x1 - x))
        area += x * y1 - y * x1
        if (x1, y1) == (x, y):
            raise ModelError(
                f"two neighbouring points of polygon {str(shape.name)!r} coincide", shape.points[i][0].where,
                found=f"[{x:g}, {y:g}]", remedy="leave one of them out",
            )  # fmt: skip
    if area == 0.0:
        where = shape.points[0][0].where
        raise ModelError(f"polygon {str(shape.name)!r} encloses nothing", where, remedy="correct its points")
    turn = 1 if area > 0.0 else -1
    outward = -turn if shape.inside else turn
    return turn, tuple(i for i, bend in enumerate(bends) if bend * outward <= 0.0)


def curve_sense(shape: CurveShape, values: Values) -> int:
    """Return +1 for an anticlockwise curve, else -1; it must close.

    Raises ModelError: it does not close, or has no interior.
    """
    if shape.points:
        found = places(shape, values)
    else:
        found = [formula_at(shape.formula, 2.0 * math.pi * k / LOOKS, values) for k in range(LOOKS + 1)]
        (x0, y0), (x1, y1) = found[0], found.pop()
        if math.hypot(x1 - x0, y1 - y0) > CLOSED * (1.0 + math.hypot(x0, y0)):
            raise ModelError(
                f"curve {str(shape.name)!r} does not close", shape.formula[0].where,
                found=f"from [{x0:g}, {y0:g}] to [{x1:g}, {y1:g}]",
                remedy="its formula must come back after a whole turn",
            )  # fmt: skip
    area = sum(x0 * y1 - y0 * x1 for (x0, y0), (x1, y1) in zip(found, found[1:] + found[:1], strict=True))
    x, y = zip(*found, strict=True)
    if abs(area) <= CLOSED * math.hypot(max(x) - min(x), max(y) - min(y)) ** 2:
        raise ModelError(f"curve {str(shape.name)!r} encloses nothing", shape.where)
    return 1 if area > 0.0 else -1


def check_outlines(mechanism: Mechanism, values: Values) -> None:
    """Refuse parameters with an invalid shape, or with a shape other than that of the derived equations.

    ``values``: all parameters, SI. Raises ModelError: a polygon or curve has no interior, or a shape has another sense
    or free side than with the file's parameters.
    """
    own = evaluate_parameters(mechanism, {})
    changed = {name for name, value in values.items() if value != own[name]}
    for shape in mechanism.shapes.values():
        if _names(shape, mechanism) & changed and _decisions(shape, mechanism, values) != _decisions(
            shape, mechanism, own
        ):
            raise ModelError(
                f"shape {str(shape.name)!r} is turned over or bends another way, and its equations hold for the "
                "values in the file",
                shape.where,
                remedy="change these values in the file, and compile it again",
            )


def _names(shape: Shape, mechanism: Mechanism) -> set[str]:
    """Return the names in the numbers of a shape."""
    texts = [*shape.lengths, *shape.angles_given, *(text for _, text in shape.vectors)]
    if isinstance(shape, CurveShape):
        texts += shape.formula
    if isinstance(shape, SegmentShape) and shape.ends is not None:
        texts += [text for name in shape.ends for text in _way(name, mechanism)]
    return {name for text in texts for name in free_names(parse(text))}


def _way(name: str, mechanism: Mechanism) -> list[Text]:
    """Return the steps from the Newtonian origin to a point of the model."""
    found = []
    while name in mechanism.points:
        found.append(mechanism.points[name].at)
        name = mechanism.points[name].origin
    return found[::-1]


def _chord(shape: SegmentShape, mechanism: Mechanism, values: Values) -> Place | None:
    """Return the vector between the ends of a segment, as :func:`_vector` does."""
    if shape.ends is None:
        (x0, y0), (x1, y1) = places(shape, values)
        return x1 - x0, y1 - y0
    first, last = (_way(name, mechanism) for name in shape.ends)
    while first and last and first[0] is last[0]:  # the common part may move arbitrarily
        first, last = first[1:], last[1:]
    steps = [(sign, _vector(shape, text, values)) for sign, way in ((-1.0, first), (1.0, last)) for text in way]
    total = [0.0, 0.0]
    for sign, step in steps:
        if step is None:
            return None
        total = [total[0] + sign * step[0], total[1] + sign * step[1]]
    return total[0], total[1]


def places(shape: SegmentShape | PolygonShape | CurveShape, values: Values) -> list[Place]:
    """Return the points of a shape (m)."""
    return [(evaluate_expression(point[0], values), evaluate_expression(point[1], values)) for point in shape.points]


def _decisions(shape: Shape, mechanism: Mechanism, values: Values) -> tuple[object, ...]:
    """Return all decisions by numbers in the equations of a shape."""
    match shape:
        case PolygonShape():
            points = places(shape, values)
            edges = zip(shape.points, points, shape.points[1:] + shape.points[:1], points[1:] + points[:1], strict=True)
            return (*polygon_sense(shape, values), *[_along_axis(*edge) for edge in edges])
        case PolyhedronShape():
            return polyhedron_faces(shape, values)
        case CurveShape():
            sense = curve_sense(shape, values)
            pieces = curve_pieces(replace(shape, turn=sense), values)
            return (sense, len(pieces), *(round(piece.start / LIKE) for piece in pieces))
        case SegmentShape():
            return (_looks(shape, _chord(shape, mechanism, values), values),)
        case LineShape():
            return (_looks(shape, _vector(shape, shape.along, values), values),)
        case ArcShape():
            first, last = (evaluate_expression(text, values) for text in shape.angles)
            return (last - first > math.pi,)
    return ()


def _along_axis(first: tuple[Text, ...], at: Place, last: tuple[Text, ...], to: Place) -> tuple[int, int]:
    """Return the direction of an edge if the texts of its points put it along an axis, else zeros."""
    same = [_always_equal(a, b) for a, b in zip(first[:2], last[:2], strict=True)]
    return (_sign(to[0] - at[0]) if same[1] else 0, _sign(to[1] - at[1]) if same[0] else 0)


def _always_equal(a: Text, b: Text) -> bool:
    """Whether two coordinates are equal for all parameters."""
    if a.text.split() == b.text.split():
        return True
    return (
        not free_names(parse(a))
        and not free_names(parse(b))
        and evaluate_expression(a, {}) == evaluate_expression(b, {})
    )


def _looks(shape: LineShape | SegmentShape, along: Place | None, values: Values) -> int:
    """Return +1 if the free side is on the left of a face, -1 if on the right, 0 if numerically undecided."""
    side = _vector(shape, shape.side, values)
    return 0 if along is None or side is None else _sign(along[0] * side[1] - along[1] * side[0])


def _sign(value: float) -> int:
    return (value > 0.0) - (value < 0.0)


def _vector(shape: Shape, text: Text, values: Values) -> Place | None:
    """Return a vector's components in the shape's frame; None if it contains more than parameters and its axes."""
    try:
        parts = [fold(parse(text), _Component(values, shape.frame, axis)) for axis in ("x", "y")]
    except InputError:
        return None
    return parts[0], parts[1]


class _Component(FloatAlgebra):
    """Folds a vector, linear in the axes of one frame, to its component along one of them."""

    def __init__(self, values: Values, frame: str, axis: str) -> None:
        super().__init__(values)
        self._kept = (frame, axis)

    def axis(self, frame: str, axis: AxisLetter, /) -> float:
        """Return the share of an axis in the component."""
        if frame != self._kept[0]:
            raise ModelError("another frame")
        return float((frame, axis) == self._kept)


# -- Self-locking screws -------------------------------------------------------------------------------------


def self_locking_screws(mechanism: Mechanism, values: Mapping[str, float | Sequence[float]]) -> list[str]:
    """Return a sentence for each screw with a lead angle up to its angle of static friction.

    ``values``: all parameters, SI.  A screw whose friction depends on more (inputs, memory) is not judged.
    """
    return [
        f"{name}: tan(lead angle) = {slope:.4g} <= {friction:.4g}, its static friction"
        for name, slope, friction in _screws(mechanism, values)
        if slope <= friction
    ]


def _screws(mechanism: Mechanism, values: Mapping[str, float | Sequence[float]]) -> Iterator[tuple[str, float, float]]:
    """Yield name, tangent of the lead angle and static friction of each screw with friction."""
    for joint in mechanism.joints.values():
        if not isinstance(joint, HelicalJoint) or joint.thread is None:
            continue
        lead, radius, friction = joint.thread
        try:
            slope = abs(evaluate_expression(lead, values)) / (2.0 * math.pi * evaluate_expression(radius, values))
            yield joint.name, slope, evaluate_expression(friction, values)
        except ModelError:
            continue
