"""Models rewritten: absolute coordinates, constraints on accelerations, kinks of held rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from functools import partial
from typing import Any, TypeVar

from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import expression_tree as nodes
from fsm_dyn.language.check_expressions import scopes_and_dimensions
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.dimensions import declarations, expression_type, texts_of, uses_units
from fsm_dyn.language.elements import (
    AccelerationConstraint,
    Constraint,
    EulerFrame,
    Frame,
    Joint,
    SimpleFrame,
    VelocityConstraint,
)
from fsm_dyn.language.expression_tree import CASE_FUNCTIONS, REFERENCE_FUNCTIONS, Text, read_quantity, tokenise
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.model import Coordinate, DiscreteVariable, Mechanism, Point, TransitionSpec
from fsm_dyn.language.units import DIMENSIONLESS, dimension_text
from fsm_dyn.language.yaml import LocatedStr, where_of

# -- Absolute coordinates: every child of a joint moves freely, under the rows of the joint ------------------
#
# In a plane a child has ``<child>_x``, ``<child>_y`` and ``<child>_turn``; in space its place and Euler parameters
# ``<child>_e0`` ..., with the turns ``<child>_wx _wy _wz`` along its own axes as speeds (the M.A.K.E. thesis,
# (5.46)-(5.57)). A joint's own coordinate in expressions is replaced by terms of its frames and points.

NEWTONIAN = "N"
T = TypeVar("T")
_POSITION = re.compile(r"\bpos\((\w+), (\w+)\)")
_MOST_LINKS = 20  # joints in a chain with coordinates in one point
_AXES = re.compile(r"(\w+)\.[xyz]\b")


@dataclass(frozen=True)
class FreeBody:
    """A freely moving child: its frame, its origin, coordinates and speeds."""

    frame: Frame
    origin: Point
    coordinates: Mapping[str, Coordinate]
    speeds: Mapping[str, Text]


def free(child: str, plane: bool, units: bool) -> FreeBody:
    """Return the free body of a child of a joint."""
    where = where_of(child)

    def word(suffix: str) -> LocatedStr:
        return LocatedStr(f"{child}_{suffix}", where)

    along = "xy" if plane else "xyz"
    metre = "m" if units else ""
    coordinates: dict[str, Coordinate] = {word(c): Coordinate(name=word(c), unit=metre, where=where) for c in along}
    speeds: dict[str, Text] = {word(f"{c}_dot"): Text(f"rate({word(c)})", where) for c in along}
    at = Text(" + ".join(f"{word(c)}*N.{c}" for c in along), where)
    origin = Point(name=word("origin"), origin="O", at=at, where=where)
    if plane:
        turn = word("turn")
        coordinates[turn] = Coordinate(name=turn, unit="rad" if units else "", where=where)
        speeds[word("turn_dot")] = Text(f"rate({turn})", where)
        return FreeBody(
            SimpleFrame(name=child, parent=NEWTONIAN, rotations=(("z", Text(turn, where)),), where=where),
            origin,
            coordinates,
            speeds,
        )
    speeds |= {word(f"w{c}"): Text(f"dot(omega({child}), {child}.{c})", where) for c in "xyz"}
    frame = EulerFrame(name=child, parent=NEWTONIAN, euler=word("e"), where=where)
    return FreeBody(frame, origin, coordinates, speeds)


def own_point(joints: Mapping[str, Joint], frame: str, point: str) -> str:
    """Return the child's point of a hinge if `point` is the parent's point there; else the point itself."""
    for joint in joints.values():
        if joint.child == frame and joint.hinged and joint.origin and joint.at[0] == point:
            return joint.origin
    return point


def reattached(mechanism: Mechanism, joints: Mapping[str, Joint]) -> Mechanism:
    """Return a model whose points and bodies, given from a hinge along the child's axes, are attached to the child.

    In relative coordinates there is no difference; with free children it decides the body of the point.
    """
    points, bodies = dict(mechanism.points), dict(mechanism.bodies)
    for joint in joints.values():
        family = {joint.child}
        for name, frame in mechanism.frames.items():
            family |= {name} if frame.parent in family else set()
        for name, point in points.items():
            axes = set(_AXES.findall(point.at.text))
            if axes and axes <= family:
                points[name] = replace(point, origin=own_point(joints, joint.child, point.origin))
        for name, body in bodies.items():
            if body.frame in family:
                own = partial(own_point, joints, joint.child)
                tensor = body.tensor and body.tensor.taken_about(own)
                bodies[name] = replace(body, center=own(body.center), tensor=tensor)
    return replace(mechanism, points=points, bodies=bodies)


def origins_from_centers(
    mechanism: Mechanism, joints: Mapping[str, Joint], made: Mapping[str, Point], moving: Collection[str]
) -> dict[str, Point]:
    """Return the origins of free children, whose coordinates become those of the mass centres of their bodies.

    The origin lies back from the location that the coordinates give by the body's constant offset, so that the offset
    cancels in the velocity of the centre: the mass matrix is one of masses and inertias.  A child with no body of its
    frame, or with several, keeps its coordinates. ``mechanism``: written entries; ``joints``: expanded ones; ``made``:
    points of the joints; ``moving``: names that are not constant, in addition to coordinates of joints. Raises
    ModelError: the centre of a child's body is not fixed in the child.
    """
    attached = reattached(mechanism, joints)
    variable = {*moving, *(name for joint in joints.values() for name in joint.coordinates)}
    found: dict[str, Point] = {}
    for joint in joints.values():
        bodies = [body for body in attached.bodies.values() if body.frame == joint.child]
        if not joint.origin or len(bodies) != 1:
            continue
        offsets, point = [], bodies[0].center
        while point != joint.origin:
            place = attached.points.get(point)
            if place is None or _moves_in(joint.child, place.at, variable):
                raise ModelError(
                    f"the mass centre of {str(bodies[0].name)!r} is not fixed in {str(joint.child)!r}",
                    where_of(bodies[0].center), found=bodies[0].center,
                    allowed=f"a point given from {joint.origin} along the axes of {joint.child}",
                    remedy="or write `joint_coordinates: absolute`",
                )  # fmt: skip
            offsets.append(f"({place.at.text})")
            point = place.origin
        if offsets:
            origin = made[joint.origin]
            text = f"{origin.at.text} - ({' + '.join(offsets)})"
            found[joint.origin] = replace(origin, at=Text(text, origin.where))
    return found


def _moves_in(frame: str, place: Text, variable: Collection[str]) -> bool:
    """Whether a vector has axes of other frames, or a length that is not constant."""
    return set(_AXES.findall(place.text)) != {frame} or not nodes.free_names(parse(place)).isdisjoint(variable)


def without_positions(known: Mapping[str, tuple[str, str]], points: Mapping[str, Point]) -> dict[str, tuple[str, str]]:
    """Return the coordinates of joints as expressions valid in points, without ``pos(P, Q)``.

    ``known``, mapping of str to (value, rate): expressions of frames and points; ``points``: points of the file and of
    joints.
    """

    def place(name: str) -> str:
        if name not in points:
            return "0*N.x"
        return f"{place(points[name].origin)} + ({points[name].at.text})"

    def put(match: re.Match[str]) -> str:
        return f"(({place(match[1])}) - ({place(match[2])}))"

    return {name: (_POSITION.sub(put, value), rate) for name, (value, rate) in known.items()}


def substituted(value: T, known: Mapping[str, tuple[str, str]]) -> T:
    """Return data with the coordinates of joints, and their rates, replaced in every expression."""
    if not known:
        return value
    names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    pattern = re.compile(rf"\brate\(\s*({names})\s*\)|(?<![.\w])({names})_dot\b|(?<![.\w])({names})\b")

    def put(match: re.Match[str]) -> str:
        rate, dot, plain = match.groups()
        return f"({known[rate or dot][1]})" if rate or dot else f"({known[plain][0]})"

    def changed(text: Text) -> Text:
        found, done = "", 0
        for begin, end in _quantities(text):
            found += pattern.sub(put, text.text[done:begin]) + text.text[begin:end]
            done = end
        return Text(found + pattern.sub(put, text.text[done:]), text.where)

    return _mapped(value, changed)


def _quantities(text: Text) -> Iterator[tuple[int, int]]:
    """Yield begin and end of numbers with their units: a joint may have the name of a unit."""
    tokens, k = tokenise(text.text, text.where), 0
    while k < len(tokens):
        begin = k
        k = read_quantity(tokens, k, text.where)[2] if tokens[k].kind == "number" else k + 1
        if tokens[begin].kind == "number":
            yield tokens[begin].start, tokens[k - 1].end


def resolved(known: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the coordinates of joints as expressions without other joints' coordinates."""
    found = dict(known)
    for _ in range(_MOST_LINKS):
        before = found
        found = {
            name: (substituted(Text(value, NOWHERE), before).text, substituted(Text(rate, NOWHERE), before).text)
            for name, (value, rate) in before.items()
        }
        if found == before:
            break
    return found


def substituted_points(
    points: Mapping[str, Point], known: Mapping[str, tuple[str, str]], made: Mapping[str, Point]
) -> dict[str, Point]:
    """Return points with the coordinates of joints replaced in their places; arguments as above."""
    plain = without_positions(known, {**points, **made})
    found = dict(points)
    for _ in range(_MOST_LINKS):
        before, found = found, substituted(found, plain)
        if found == before:
            break
    return found


def _mapped(value: T, change: Callable[[Text], Text]) -> T:
    result: Any = value
    if isinstance(value, Text):
        result = change(value)
    elif isinstance(value, Mapping):
        result = {key: _mapped(item, change) for key, item in value.items()}
    elif isinstance(value, tuple) and not isinstance(value, Location):
        result = tuple(_mapped(item, change) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        result = replace(value, **{f.name: _mapped(getattr(value, f.name), change) for f in fields(value)})
    return result  # type: ignore[no-any-return]


# -- Constraints on accelerations ----------------------------------------------------------------------------
#
# ``{acceleration: a, of: v}`` requires the rate a of v. The coordinate ``<name>_speed`` has the rate a, defined by a
# kinematic row, and the row ``<name>``, v less this coordinate, holds on speeds: so does its derivative on
# accelerations, and the only drift of v is the integration error of the coordinate (docs/theory.md, "Constraints on
# accelerations").


def made_names(name: str) -> tuple[str, str]:
    """Return the names of the coordinate and of the kinematic row of a constraint on accelerations."""
    return f"{name}_speed", f"{name}_rate"


def with_accelerations(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with its constraints on accelerations written out.

    Raises ModelError: an expression is invalid, or a created name already exists.
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
        coordinates[integral] = Coordinate(name=integral, unit=unit, where=row.where)
        held = Text(f"({row.expression.text}) - {integral}", row.expression.where)
        constraints[name] = VelocityConstraint(name=row.name, expression=held, where=row.where)
        definition = Text(f"rate({integral}) - ({row.acceleration.text})", row.acceleration.where)
        constraints[rate] = VelocityConstraint(name=rate, expression=definition, kinematic=True, where=row.where)
    return replace(mechanism, coordinates=coordinates, constraints=constraints)


# -- Kinks of held rows: the side of the motion on a surface becomes memory ----------------------------------
#
# ``abs sign min max mod floor where`` of coordinates in a held row, or in the gap of a rigid contact, define surfaces
# with a jump of the row's direction. On either side the row is smooth; a transition crosses the surface, with an
# impulse to satisfy the row on the other side (docs/theory.md, "Kinks of held rows").


def with_kinks(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with a memory and transitions for every kink of its held rows and rigid gaps.

    Raises ModelError: a choice depends on more than coordinates.
    """
    coordinates = frozenset(map(str, mechanism.coordinate_names))
    memory, transitions = dict(mechanism.memory), list(mechanism.transitions)

    def smooth(name: str, text: Text) -> Text:
        rewriting = _Rewriting(str(name), text, coordinates, frozenset({*memory, *mechanism.parameters, *coordinates}))
        tree = parse(text)
        if _misplaces_a_condition(tree):
            return text  # the check of units refuses it, as written
        tree = rewriting.smooth(tree)
        memory.update(rewriting.memory)
        transitions.extend(rewriting.transitions)
        return Text(_text(tree), text.where) if rewriting.memory else text

    def smooth_row(row: Constraint) -> Constraint:
        return row if row.kinematic else replace(row, expression=smooth(row.name, row.expression))

    _refuse_in_bodies(mechanism, coordinates)
    constraints = {name: smooth_row(row) for name, row in mechanism.constraints.items()}
    contacts = {
        name: replace(contact, gap=smooth(name, contact.gap)) if _is_rigid(contact) and contact.gap else contact
        for name, contact in mechanism.contacts.items()
    }
    if len(memory) == len(mechanism.memory):
        return mechanism
    return replace(
        mechanism, constraints=constraints, contacts=contacts, memory=memory, transitions=tuple(transitions)
    )  # fmt: skip


def _refuse_in_bodies(mechanism: Mechanism, coordinates: frozenset[str]) -> None:
    """Refuse choices of coordinates in the places of bodies and of points in held rows: their impulse is undefined."""
    held = [row.expression for row in mechanism.constraints.values()]
    held += [contact.gap for contact in mechanism.contacts.values() if _is_rigid(contact) and contact.gap]
    points = {str(body.center) for body in mechanism.bodies.values()}
    points |= {name for text in held for name in nodes.free_names(parse(text)) if name in mechanism.points}
    frames = {str(body.frame) for body in mechanism.bodies.values() if body.frame is not None}
    while not (above := {str(mechanism.points[name].origin) for name in points if name in mechanism.points}) <= points:
        points |= above
    while not (above := {str(mechanism.frames[name].parent) for name in frames if name in mechanism.frames}) <= frames:
        frames |= above
    places: list[Point | Frame] = [mechanism.points[name] for name in sorted(points) if name in mechanism.points]
    places += [mechanism.frames[name] for name in sorted(frames) if name in mechanism.frames]
    for place in places:
        for text in texts_of(place):
            tree = parse(text)
            if _misplaces_a_condition(tree):
                continue  # the check of units refuses it
            chooses = [node for node in nodes.walk(tree) if _chooses(node)]
            if any(not coordinates.isdisjoint(nodes.free_names(node)) for node in chooses):
                raise ModelError(
                    f"'{place.name}' has a kink, in which a body or a held row would jump without an impulse",
                    text.where,
                    found=text.text, allowed="smooth expressions of coordinates in the places of bodies and held rows",
                    remedy="write the kink into a `gap` or a `position` constraint",
                )  # fmt: skip


def _chooses(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Compare) or (isinstance(node, nodes.Call) and node.function in CASE_FUNCTIONS)


def _misplaces_a_condition(tree: nodes.Node) -> bool:
    """Whether a condition is where a number must be: it has no kink."""
    conditions = nodes.Compare | nodes.Boolean
    return isinstance(tree, conditions) or any(
        isinstance(part, conditions) for node in nodes.walk(tree) for part in _numbers_of(node)
    )


def _numbers_of(node: nodes.Node) -> tuple[nodes.Node, ...]:
    """Return the operands that must be numbers."""
    match node:
        case nodes.Binary():
            return node.left, node.right
        case nodes.Unary(op="-"):
            return (node.operand,)
        case nodes.Call():
            return node.arguments[node.function == "where" :]
    return ()


def _is_motion(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Axis) or (isinstance(node, nodes.Call) and node.function in REFERENCE_FUNCTIONS)


def _is_rigid(contact: Contact) -> bool:
    return contact.contact_law.rigid and not contact.contact_law.friction_only


@dataclass
class _Rewriting:
    """One expression: every choice by coordinates becomes a choice by memory."""

    name: str
    text: Text
    coordinates: frozenset[str]
    taken: frozenset[str]
    memory: dict[str, DiscreteVariable] = field(default_factory=dict)
    transitions: list[TransitionSpec] = field(default_factory=list)
    known: dict[nodes.Node, str] = field(default_factory=dict)  # memory of surfaces
    start: Text | None = None  # of the memory made last

    def smooth(self, node: nodes.Node) -> nodes.Node:
        """Return an expression without choices of coordinates."""
        if not self._moves(node):
            return node
        if isinstance(node, nodes.Compare):
            if node.op in ("==", "!="):
                return node  # of no length: the row holds on both sides of it
            low, high = (node.left, node.right) if node.op in ("<", "<=") else (node.right, node.left)
            return self._is_beyond(nodes.Binary("-", self.smooth(high), self.smooth(low)), node)
        if not isinstance(node, nodes.Call) or node.function not in CASE_FUNCTIONS:
            return _with_children(node, [self.smooth(child) for child in nodes.children(node)])
        parts = [self.smooth(part) for part in node.arguments]
        match node.function:
            case "abs":
                return nodes.Binary("*", nodes.Name(self._side(parts[0], node)), parts[0])
            case "sign":
                return nodes.Name(self._side(parts[0], node))
            case "mod":
                turns = nodes.Name(self._count(nodes.Binary("/", parts[0], parts[1]), node))
                return nodes.Binary("-", parts[0], nodes.Binary("*", turns, parts[1]))
            case "floor":
                return nodes.Name(self._count(parts[0], node))
        least = node.function == "min"
        first = self._is_beyond(nodes.Binary("-", *(reversed(parts) if least else parts)), node)
        return nodes.Call("where", (first, parts[0], parts[1]))

    def _moves(self, node: nodes.Node) -> bool:
        """Whether an expression depends on coordinates and has a choice in it."""
        parts = nodes.walk(node)
        moves = not self.coordinates.isdisjoint(nodes.free_names(node)) or any(map(_is_motion, parts))
        return moves and any(map(_chooses, parts))

    def _is_beyond(self, surface: nodes.Node, node: nodes.Node) -> nodes.Compare:
        return nodes.Compare(">", nodes.Name(self._side(surface, node)), nodes.Number(0.0, text="0"))

    def _side(self, surface: nodes.Node, node: nodes.Node) -> str:
        """Return the memory of a surface: 1 if its expression is positive, -1 if negative."""
        name = self.known.get(surface)
        if name is None:
            text = _text(surface)
            name = self._made(surface, node, f"where({text} < 0, -1, 1)")
            self._cross(name, f"{name}*({text})", "falling", f"-{name}", node)
        return name

    def _count(self, quotient: nodes.Node, node: nodes.Node) -> str:
        """Return the memory of the whole part of a quotient."""
        name = self.known.get(quotient)
        if name is None:
            text = _text(quotient)
            name = self._made(quotient, node, f"floor({text})")
            self._cross(name, f"{name} + 1 - ({text})", "falling", f"{name} + 1", node)
            self._cross(name, f"({text}) - {name}", "falling", f"{name} - 1", node)
        return name

    def _made(self, surface: nodes.Node, node: nodes.Node, start: str) -> str:
        if any(map(_is_motion, nodes.walk(surface))):
            raise ModelError(
                f"the row of '{self.name}' has a kink where something other than an expression of coordinates decides",
                self.text.where,
                found=_text(node),
                allowed=f"{', '.join(sorted(CASE_FUNCTIONS))} and where of coordinates, parameters, inputs and t",
                remedy="write what decides in coordinates, without pos, vel, omega and rate",
            )
        number = len(self.known) + 1
        name = f"{self.name}_kink" if number == 1 else f"{self.name}_kink{number}"
        if name in self.taken:
            raise ModelError(
                f"the kink of '{self.name}' makes '{name}', which already exists", self.text.where, remedy="rename it"
            )
        self.known[surface] = name
        self.memory[name] = DiscreteVariable(name, 1, where=self.text.where)
        self.start = Text(start, self.text.where)
        return name

    def _cross(self, name: str, when: str, crossing: str, after: str, node: nodes.Node) -> None:
        self.transitions.append(
            TransitionSpec(
                f"{name}_{len(self.transitions) + 1}", "*", when=Text(when, self.text.where), crossing="falling",
                set={name: Text(after, self.text.where)}, because=f"{self.name} passes the kink of {_text(node)}",
                kink=self.start, where=self.text.where,
            )
        )  # fmt: skip


def _with_children(node: nodes.Node, parts: list[nodes.Node]) -> nodes.Node:
    match node:
        case nodes.Call():
            return nodes.Call(node.function, tuple(parts))
        case nodes.Unary():
            return nodes.Unary(node.op, parts[0])
        case nodes.Binary():
            return nodes.Binary(node.op, parts[0], parts[1])
        case nodes.Boolean():
            return nodes.Boolean(node.op, tuple(parts))
    return node


def _text(node: nodes.Node) -> str:
    """Return an expression as text; its parse gives the same tree."""
    match node:
        case nodes.Number():
            return f"({node.text or repr(node.value)})"
        case nodes.Name():
            return node.id
        case nodes.Axis():
            return f"{node.frame}.{node.axis}"
        case nodes.Index():
            return f"{node.name}[{node.index}]"
        case nodes.Call():
            return f"{node.function}({', '.join(map(_text, node.arguments))})"
        case nodes.Unary():
            return f"({node.op} {_text(node.operand)})"
        case nodes.Boolean():
            return "(" + f" {node.op} ".join(map(_text, node.operands)) + ")"
    return f"({_text(node.left)} {node.op} {_text(node.right)})"
