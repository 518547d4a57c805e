"""References between sections: every name used exists and is of the right sort."""

from __future__ import annotations

from collections.abc import Mapping

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.spec.checks.names import Declaration, unknown
from fsm_dyn.spec.checks.requirements import contacts_named
from fsm_dyn.spec.contact import FeatureContact, GapContact
from fsm_dyn.spec.loads import GravityLoad, LineLoad, Load, TorqueLoad
from fsm_dyn.spec.model import Contact, Mechanism, TransitionSpec
from fsm_dyn.spec.shape import SegmentShape, Shape
from fsm_dyn.spec.yaml_tree import where_of


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
            At the first name that is unknown or of the wrong sort.
        """
        m = self.mechanism
        for frame in m.frames.values():
            self._frame(frame.parent)
        for point in m.points.values():
            self._point(point.origin)
        for joint in m.joints.values():
            for end in joint.at:
                self._point(end)
        for body in m.bodies.values():
            self._point(body.center)
            self._optional_point(body.about)
            if body.frame is not None:
                self._frame(body.frame)
        for shape in m.shapes.values():
            self._shape(shape)
        for contact in m.contacts.values():
            for feature in contact.features if isinstance(contact, FeatureContact) else ():
                if feature.part == "point":
                    self._point(feature.shape)
        for load in m.loads:
            self._load(load)
        self._modes()
        for transition in m.transitions:
            self._transition(transition)
        self._ports()
        self._initial()
        for name, outlines in m.view.items():
            self._one_of(name, "a body", ["N", *m.bodies])
            for outline in outlines:
                if outline.frame is not None:
                    self._one_of(outline.frame, "a frame", self.frames)

    def _one_of(self, name: str, wanted: str, allowed: Mapping[str, object] | list[str]) -> None:
        if name not in allowed:
            raise unknown(name, wanted, allowed, self.known)

    def _point(self, name: str) -> None:
        self._one_of(name, "a point", self.points)

    def _optional_point(self, name: str | None) -> None:
        if name is not None:
            self._point(name)

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
            self._point(shape.repeat.about)

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

    def _state(self, contact: Contact, state: str) -> None:
        states = [name for name in contact.states if name]
        if state not in states:
            raise ModelError(
                f"contact {str(contact.name)!r} has no state {str(state)!r}",
                where_of(state),
                found=state,
                allowed=", ".join(states),
                remedy=did_you_mean(state, states),
            )

    def _mode(self, name: str) -> None:
        if name not in self.mechanism.modes and not self.mechanism.modes:
            raise ModelError(
                f"there is no mode {str(name)!r}: the model names no modes",
                where_of(name),
                found=name,
                remedy=f"name it: `modes: {{{name}: {{<contact>: <state>}}}}`",
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

    def _ports(self) -> None:
        for port in self.mechanism.ports.values():
            self._optional_point(port.point)
            if port.body is not None:
                self._one_of(port.body, "a body", self.mechanism.bodies)
            if port.coordinate is not None:
                self._one_of(port.coordinate, "a coordinate", list(self.mechanism.coordinates))

    def _initial(self) -> None:
        initial = self.mechanism.initial
        if initial.mode is not None:
            self._mode(initial.mode)
        for name in initial.values:
            if name in self.mechanism.memory:
                raise ModelError(
                    f"{str(name)!r} is a memory", where_of(name), remedy="its first value stands under `memory`"
                )
            self._one_of(name, "a coordinate or speed", [*self.mechanism.coordinate_names, *self.mechanism.speeds])
        for name in initial.guess:
            self._one_of(name, "a coordinate", list(self.mechanism.coordinate_names))
