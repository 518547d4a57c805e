"""References between sections: names and orders; all checks in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from fsm_dyn.core.errors import Location, ModelError, did_you_mean
from fsm_dyn.language.check_expressions import check_expressions
from fsm_dyn.language.check_requirements import check_requirements, check_words, contacts_named
from fsm_dyn.language.check_values import check_numbers, check_references
from fsm_dyn.language.contacts import BearingContact, Contact, FeatureContact, GapContact
from fsm_dyn.language.dimensions import (
    Declaration,
    declarations,
    unknown,
    uses_units,
    word_of_modes,
)
from fsm_dyn.language.elements import GravityLoad, LineLoad, Load, TorqueLoad
from fsm_dyn.language.expression_tree import Call, Name, walk
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.keyed import keys_of
from fsm_dyn.language.model import Initial, Mechanism, Point, TransitionSpec
from fsm_dyn.language.shapes import CORDS, CordOutline, SegmentShape, Shape
from fsm_dyn.language.yaml import where_of

T = TypeVar("T")

# -- References between sections: every name used exists and is of the right sort ----------------------------


class References:
    """Checks every reference of a mechanism; ``known`` are its declarations."""

    def __init__(self, mechanism: Mechanism, known: Mapping[str, Declaration]) -> None:
        self.mechanism = mechanism
        self.known = known
        self.points = ["O", *mechanism.points]
        self.frames = ["N", *mechanism.frames]

    def check(self) -> None:
        """Check all of them.

        Raises
        ------
        ModelError
            At the first name of unknown or wrong kind.
        """
        m = self.mechanism
        for frame in m.frames.values():
            self._frame(frame.parent)
        for point in m.points.values():
            check_references(point, self._reference)
        for joint in m.joints.values():
            for end in joint.at:
                self._point(end)
        for body in m.bodies.values():
            check_references(body, self._reference)
        for shape in m.shapes.values():
            self._shape(shape)
        for contact in m.contacts.values():
            for feature in contact.features if isinstance(contact, FeatureContact) else ():
                if feature.part == "point":
                    self._point(feature.shape)
            if isinstance(contact, BearingContact):
                self._pressed(contact)
        for load in m.loads:
            self._load(load)
        self._modes()
        for transition in m.transitions:
            self._transition(transition)
        for entry in (*m.ports.values(), *m.imposed.values(), *m.pins.values()):
            check_references(entry, self._reference)
        self._initial()
        for name, outlines in m.view.items():
            if name != CORDS:
                self._one_of(name, "a body", ["N", *m.bodies])
            for outline in outlines:
                if isinstance(outline, CordOutline):
                    self._one_of(outline.contact, "a contact", m.contacts)
                    for end in outline.points:
                        self._point(end)
                if outline.frame is not None:
                    self._one_of(outline.frame, "a frame", self.frames)

    def _reference(self, name: str, role: str) -> None:
        allowed: dict[str, Mapping[str, object] | list[str]] = {
            "a point": self.points, "a frame": self.frames, "a body": self.mechanism.bodies,
            "a coordinate": list(self.mechanism.coordinates), "a shape": self.mechanism.shapes,
        }  # fmt: skip
        self._one_of(name, role, allowed[role])

    def _one_of(self, name: str, wanted: str, allowed: Mapping[str, object] | list[str]) -> None:
        if name not in allowed:
            raise unknown(name, wanted, allowed, self.known)

    def _point(self, name: str) -> None:
        self._one_of(name, "a point", self.points)

    def _frame(self, name: str) -> None:
        self._one_of(name, "a frame", self.frames)

    def _shape(self, shape: Shape) -> None:
        self._frame(shape.frame)
        self._point(shape.origin)
        if isinstance(shape, SegmentShape) and shape.ends is not None:
            for point in shape.ends:
                self._point(point)
            if shape.ends[0] == shape.ends[1]:
                raise ModelError("a segment from a point to itself", where_of(shape.ends[1]), found=shape.ends[1])
        if shape.repeat is not None:
            check_references(shape.repeat, self._reference)

    def _load(self, load: Load) -> None:
        for name in load.points:
            self._point(name)
        match load:
            case LineLoad(along=(first, second)) if first == second:
                raise ModelError("a load between a point and itself", where_of(second), found=second)
            case GravityLoad(on=str(body)):
                self._one_of(body, "a body", self.mechanism.bodies)
            case TorqueLoad():
                for body in load.acts_on:
                    self._rigid(body)
                if load.reaction is not None and load.on == load.reaction:
                    where = where_of(load.reaction)
                    raise ModelError("a torque whose reaction is on the same body", where, found=load.reaction)

    def _rigid(self, name: str) -> None:
        rigid = {key: body for key, body in self.mechanism.bodies.items() if body.frame is not None}
        if name in self.mechanism.bodies and name not in rigid:
            raise ModelError(
                f"{str(name)!r} is a particle and cannot take a torque",
                where_of(name),
                allowed=", ".join(rigid) or "a body with a frame",
                remedy="give the body a frame",
            )
        self._one_of(name, "a body", rigid)

    def _modes(self) -> None:
        contacts = self.mechanism.contacts
        for mode in self.mechanism.modes.values():
            for name, state in mode.states.items():
                self._contact(name)
                self._state(contacts[name], state)
        self._twins()

    def _twins(self) -> None:
        seen: dict[frozenset[tuple[str, str]], str] = {}
        for mode in self.mechanism.modes.values():
            pattern = frozenset((str(name), str(state)) for name, state in mode.states.items())
            if pattern in seen:
                raise ModelError(
                    f"modes {seen[pattern]!r} and {str(mode.name)!r} describe the same states",
                    mode.where,
                    remedy="remove one of them, or let a `lock` tell them apart",
                )
            seen[pattern] = str(mode.name)

    def _contact(self, name: str) -> None:
        contacts = self.mechanism.contacts
        limits = [
            word for word, contact in contacts.items() if isinstance(contact, GapContact) and contact.stop == name
        ]
        if limits and name not in contacts:
            raise ModelError(
                f"joint stop {str(name)!r} has two limits, each a separate contact",
                where_of(name),
                found=name,
                allowed=", ".join(limits),
            )
        parts = contacts_named(self.mechanism, name)
        if name not in contacts and parts:
            raise ModelError(
                f"contact {str(name)!r} has several features, each a separate contact",
                where_of(name),
                found=name,
                allowed=", ".join(parts[:20]) + (", ..." if len(parts) > 20 else ""),
            )
        self._one_of(name, "a contact", contacts)

    def _pressed(self, bearing: BearingContact) -> None:
        """Check the contact whose normal force bounds a friction; the rows of joints are the package's own."""
        for name in bearing.loaded_by:
            if name in self.mechanism.constraints:
                continue
            self._contact(name)
            law = self.mechanism.contacts[name].contact_law
            if not (law.rigid and law.has_gap):
                pressed = [
                    other for other, contact in self.mechanism.contacts.items()
                    if contact.contact_law.rigid and contact.contact_law.has_gap
                ]  # fmt: skip
                remedy = "leave `load` out and give `static` and `kinetic` as forces"
                raise ModelError(f"contact {str(name)!r} has no normal force to be found with the friction",
                                 where_of(name), found=name, allowed=", ".join(pressed) or "a rigid contact",
                                 remedy=remedy)  # fmt: skip

    def _state(self, contact: Contact, state: str) -> None:
        states = [name for name in contact.states if name]
        if state not in states:
            raise ModelError(
                f"contact {str(contact.name)!r} has no state {str(state)!r}",
                where_of(state),
                found=state,
                allowed=", ".join(states),
                remedy="closed, it sticks or slides" if state == "closed" else did_you_mean(state, states),
            )

    def _mode(self, name: str) -> None:
        if name not in self.mechanism.modes and not self.mechanism.modes:
            raise ModelError(
                f"there is no mode {str(name)!r}: the model names no modes",
                where_of(name),
                found=name,
                remedy=word_of_modes(name) or f"name it: `modes: {{{name}: {{<contact>: <state>}}}}`",
            )
        self._one_of(name, "a mode", self.mechanism.modes)

    def _transition(self, transition: TransitionSpec) -> None:
        if transition.source != "*":
            self._mode(transition.source)
        if transition.target is not None:
            self._mode(transition.target)
        if transition.on is not None:
            self._event(*transition.on)
        for name in transition.reset:
            self._one_of(name, "a coordinate or speed", [*self.mechanism.coordinate_names, *self.mechanism.speeds])
        for name, state in transition.switches.items():
            self._contact(name)
            self._state(self.mechanism.contacts[name], state)
        for name in transition.set:
            self._one_of(name, "a memory", self.mechanism.memory)
        for impulse in transition.impulses:
            self._load(impulse)

    def _event(self, name: str, event: str) -> None:
        self._contact(name)
        contact = self.mechanism.contacts[name]
        possible = contact.events
        if event not in possible:
            raise ModelError(
                f"contact {str(name)!r} never {event}",
                where_of(name),
                found=f"{name} {event}",
                allowed=", ".join(f"{name} {word}" for word in possible) or "a lock changes only by transitions",
            )

    def _initial(self) -> None:
        initial = self.mechanism.initial
        if initial.mode is not None:
            self._mode(initial.mode)
        for name in initial.values:
            if name in self.mechanism.memory:
                raise ModelError(
                    f"{str(name)!r} is a memory", where_of(name), remedy="its first value stands under `memory`"
                )
            try:
                self._one_of(name, "a coordinate or speed", [*self.mechanism.coordinate_names, *self.mechanism.speeds])
            except ModelError as error:
                error.remedy = error.remedy or did_you_mean(name, keys_of(Initial))
                raise
        for name in initial.guess:
            self._one_of(name, "a coordinate", list(self.mechanism.coordinate_names))


# -- Orders: frames after their parents, points after their reference points; no cycles ----------------------


def ordered(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with frames and points in the order of their dependencies.

    The order of the file is kept wherever it can be.

    Raises
    ------
    ModelError
        If frames or points form a cycle.
    """
    frame_needs = {name: [frame.parent] for name, frame in mechanism.frames.items()}
    point_needs = {name: _points_of(point) for name, point in mechanism.points.items()}
    frame_places = {name: frame.where for name, frame in mechanism.frames.items()}
    point_places = {name: point.where for name, point in mechanism.points.items()}
    return replace(
        mechanism,
        frames=_sorted(mechanism.frames, frame_needs, frame_places, "frames"),
        points=_sorted(mechanism.points, point_needs, point_places, "points"),
    )


def _points_of(point: Point) -> list[str]:
    needs = [point.origin]
    for node in walk(parse(point.at)):
        if isinstance(node, Call) and node.function == "pos":
            needs += [argument.id for argument in node.arguments if isinstance(argument, Name)]
    return needs


def _sorted(
    entries: Mapping[str, T], needs: Mapping[str, list[str]], places: Mapping[str, Location], what: str
) -> dict[str, T]:
    """Depth-first over `needs` without recursion: a chain of a thousand frames is legal."""
    done: dict[str, T] = {}
    for start in entries:
        path = [start]
        while path:
            current = path[-1]
            missing = [name for name in needs[current] if name in entries and name not in done]
            if not missing:
                done[path.pop()] = entries[current]
            elif missing[0] in path:
                raise _cycle(path[path.index(missing[0]) :], places, what)
            else:
                path.append(missing[0])
    return done


def _cycle(cycle: list[str], places: Mapping[str, Location], what: str) -> ModelError:
    first = min(cycle, key=lambda name: places[name].line)
    at = cycle.index(first)
    chain = [*cycle[at:], *cycle[:at], first]
    return ModelError(
        f"{what} in a cycle: each is given from the next",
        places[first],
        found=" -> ".join(chain),
        remedy=f"one of them must be given from {'N' if what == 'frames' else 'O'}",
    )


# -- All checks in their order -------------------------------------------------------------------------------


def check(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism checked, with frames and points in order and ``uses_units`` set.

    Raises
    ------
    ModelError
        At the first defect.
    """
    known = declarations(mechanism)
    References(mechanism, known).check()
    units = uses_units(mechanism)
    mechanism = replace(ordered(mechanism), uses_units=units)
    dimensions = check_expressions(mechanism, known, units)
    check_requirements(mechanism, known, dimensions, units)
    check_words(mechanism)
    _check_count(mechanism)
    check_numbers(mechanism)
    return mechanism


def _check_count(mechanism: Mechanism) -> None:
    """Refuse a number of speeds that does not match the rates of all coordinates (docs/theory.md, kinematics)."""
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
