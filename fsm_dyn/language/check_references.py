"""Checks between sections: names and orders, requirements, phases; all checks in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from fsm_dyn.core.errors import NOWHERE, Location, ModelError, PhaseWarning, did_you_mean, warn_caller
from fsm_dyn.language.check_expressions import check_expressions, parameter_scope, scopes_and_dimensions
from fsm_dyn.language.check_values import check_numbers, check_references
from fsm_dyn.language.contacts import BearingContact, Contact, FeatureContact, GapContact
from fsm_dyn.language.dimensions import (
    Declaration,
    Scope,
    declarations,
    expression_type,
    unknown,
    uses_units,
    word_of_modes,
)
from fsm_dyn.language.elements import GravityLoad, LineLoad, Load, TorqueLoad
from fsm_dyn.language.expression_tree import Call, Name, Text, walk
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.interfaces import PinEntry
from fsm_dyn.language.keyed import keys_of
from fsm_dyn.language.model import Initial, Mechanism, Point, TransitionSpec
from fsm_dyn.language.requirement import (
    Always,
    Condition,
    Conjunction,
    ContactEvent,
    Count,
    Event,
    Eventually,
    Extreme,
    MeasuredQuantity,
    NeverTwice,
    PhaseCondition,
    PhaseEvent,
    QuantityComparison,
    Requirement,
    RunPhase,
    StateCondition,
    conditions_of,
    phase_named,
    unreachable,
)
from fsm_dyn.language.shapes import CORDS, CordOutline, SegmentShape, Shape
from fsm_dyn.language.units import (
    DIMENSIONLESS,
    ENERGY,
    FORCE,
    LENGTH,
    POWER,
    TIME,
    Dimension,
    dimension_text,
    divide,
    multiply,
)
from fsm_dyn.language.yaml import where_of

# -- Requirements and phases: unknown names, states or events, wrong units -------------------------------------


# -- Requirements --------------------------------------------------------------------------------------------
#
# Defects that prevent any judgement: unknown names, events foreign to a contact, wrong units.

T = TypeVar("T")


def check_requirements(
    mechanism: Mechanism, known: Mapping[str, Declaration], dimensions: Mapping[str, Dimension], units: bool
) -> None:
    """Check the names and units of all requirements and phases.

    ``known``: the declarations of the model; ``dimensions``: of coordinates, speeds, inputs and outputs, as
    ``check_expressions`` returns them; ``units``: whether the model has units. Raises ModelError at the first
    requirement or phase with such a defect, with its place.
    """
    for entry in mechanism.pins.values():
        _check_pin(entry, mechanism)
    if not mechanism.requirements and not mechanism.phases:
        return
    scope = parameter_scope(mechanism, known, units)
    for requirement in mechanism.requirements.values():
        _check(requirement, mechanism, dimensions, scope)
    for phase in mechanism.phases.values():
        _check_phase(phase, mechanism, dimensions, scope)


def requirement_units(mechanism: Mechanism) -> dict[str, str]:
    """Return the unit of the margin of each requirement: ``"s"`` of times, ``"1"`` of counts and without units."""
    dimensions: dict[str, Dimension] = {}
    if mechanism.uses_units and mechanism.requirements:
        scopes, named = scopes_and_dimensions(mechanism, declarations(mechanism), True)
        dimensions = {**named.coordinates, **named.inputs, **named.speeds}
        for name, text in mechanism.outputs.items():
            dimensions[name] = expression_type(text, scopes.logic, f"output {name!r}").dimension or DIMENSIONLESS
    found = {}
    for item in mechanism.requirements.values():
        unit = "1" if isinstance(item.claim, Count) else "s"
        for compared in comparisons(item):
            known = mechanism.uses_units
            dimension = dimension_of(mechanism, compared.quantity, dimensions)
            unit = "N*s" if compared.quantity.is_impulse else dimension_text(dimension)
            unit = unit if known else "1"
        found[str(item.name)] = unit
    return found


def comparisons(requirement: Requirement) -> Iterator[QuantityComparison]:
    """Yield the comparison of a quantity that a requirement makes, if it makes one."""
    match requirement.claim:
        case (
            Always(condition=QuantityComparison() as compared)
            | Eventually(condition=QuantityComparison() as compared)
            | Extreme(comparison=compared)
        ):
            yield compared


def contacts_named(mechanism: Mechanism, name: str) -> tuple[str, ...]:
    """Return the contact of a name, or the feature pairs of the entry with this name; none if there is neither."""
    if name in mechanism.contacts:
        return (name,)
    return tuple(contact.name for contact in mechanism.contacts.values() if contact.entry == name)


def dimension_of(mechanism: Mechanism, quantity: MeasuredQuantity, dimensions: Mapping[str, Dimension]) -> Dimension:
    """Return the dimension of a quantity; a contact's force by its power with the rate of the gap or with the slip."""
    if quantity.connection:
        if quantity.is_impulse:
            return multiply(FORCE, TIME)
        if quantity.is_wear:
            return ENERGY if quantity.name.endswith(".work") else LENGTH
        return multiply(FORCE, LENGTH) if quantity.name.rsplit(".", 1)[1].startswith("torque") else FORCE
    if not quantity.part:
        return dimensions.get(quantity.name, DIMENSIONLESS)
    contact = mechanism.contacts[contacts_named(mechanism, quantity.name)[0]]
    normal = quantity.part == "normal" and not contact.contact_law.friction_only
    row = contact.gap if normal else contact.slip
    if row is None:
        on_speed = normal and contact.slip is not None
        row = contact.slip if on_speed else None
        if row is None:
            return divide(POWER, divide(LENGTH, TIME))
        normal = False
    scopes, _ = scopes_and_dimensions(mechanism, declarations(mechanism), mechanism.uses_units)
    scope = scopes.gap if normal else scopes.state
    found = expression_type(row, scope, f"the contact {contact.name!r}").dimension or DIMENSIONLESS
    return divide(POWER, divide(found, TIME) if normal else found)


def _check(requirement: Requirement, mechanism: Mechanism, dimensions: Mapping[str, Dimension], scope: Scope) -> None:
    what, where = f"requirement {str(requirement.name)!r}", requirement.where
    for compared in comparisons(requirement):
        _quantity(mechanism, compared.quantity, what, where)
        _check_impulse(requirement, compared, what)
        _constant(compared.bound, scope, what, dimension_of(mechanism, compared.quantity, dimensions))
    match requirement.claim:
        case Always(condition=condition, during=during):
            for state in (condition, *during):
                _state(mechanism, state, what, where)
        case Eventually(condition=condition, before=before):
            _state(mechanism, condition, what, where)
            if before is not None:
                _constant(before, scope, what, TIME)
        case NeverTwice(event=event, within=within):
            _state(mechanism, event, what, where)
            _constant(within, scope, what, TIME)
        case Count(event=event, bound=bound):
            _state(mechanism, event, what, where)
            _constant(bound, scope, what, DIMENSIONLESS)


def _check_impulse(requirement: Requirement, compared: QuantityComparison, what: str) -> None:
    """Refuse claims about impulses at other times than those of transitions, and about wear before the end."""
    claim = requirement.claim
    largest = isinstance(claim, Extreme) and claim.function == "peak"
    if compared.quantity.is_impulse and not largest:
        raise ModelError(
            f"{what}: an impulse has a value at transitions alone", requirement.where, found=requirement.formula,
            allowed=f"peak({compared.quantity.name}) < VALUE",
        )  # fmt: skip
    if compared.quantity.is_wear and not (isinstance(claim, Extreme) and claim.function == "final"):
        raise ModelError(
            f"{what}: wear adds up over a run", requirement.where, found=requirement.formula,
            allowed=f"final({compared.quantity.name}) < VALUE",
        )  # fmt: skip


def _constant(text: Text, scope: Scope, what: str, dimension: Dimension) -> None:
    expression_type(text, scope, f"the bound of {what}", [dimension])


def _quantity(mechanism: Mechanism, quantity: MeasuredQuantity, what: str, where: Location) -> None:
    if quantity.part:
        contact = _contact(mechanism, quantity.name, what, where)
        has = contact.has_friction if quantity.part == "friction" else not contact.contact_law.friction_only
        if not has:
            raise ModelError(f"{what}: contact {quantity.name!r} has no {quantity.part} force", where)
        return
    if quantity.connection:
        _known(quantity.connection, _connections(mechanism), "a connection", what, where)
        entry = mechanism.pins.get(quantity.connection)
        if quantity.is_wear and (entry is None or entry.wear is None):
            raise ModelError(
                f"{what}: nothing is known of the wear of {quantity.connection!r}", where, found=str(quantity),
                remedy=f"pins: {{{quantity.connection}: {{wear: {{rate: ..., area: ...}}}}}}",
            )  # fmt: skip
        return
    names = (mechanism.coordinate_names, mechanism.speeds, mechanism.inputs, mechanism.memory, mechanism.outputs)
    quantities = {str(name): name for section in names for name in section}
    _known(quantity.name, quantities, "a coordinate, speed, input, memory or output", what, where)


def _check_pin(entry: PinEntry, mechanism: Mechanism) -> None:
    """Check the names of an entry of ``pins`` that no single section holds."""
    what, where = entry.label, entry.where
    segments = {str(name): name for name in ("N", *mechanism.frames, *mechanism.bodies)}
    if entry.between is None:
        _known(entry.name, _connections(replace(mechanism, pins={})), "a connection", what, where)
    elif entry.between[0] == entry.between[1]:
        raise ModelError(f"{what} is between a segment and itself", where, found=entry.between[0])
    for name in entry.between or ():
        _known(name, segments, "a frame or body", what, where_of(name))
    points = {str(name): name for name in ("O", *mechanism.points)}
    for name in entry.owns:
        _known(name, points, "a point", what, where_of(name))


def _connections(mechanism: Mechanism) -> dict[str, str]:
    """Return possible names of connections; the derivation of their forces decides which exist."""
    moving = [*mechanism.frames, *mechanism.bodies]
    pairs = [f"{parent}_{child}" for parent in ("N", *moving) for child in moving if parent != child]
    stems = [name.rsplit("_", 1)[0] for name in mechanism.constraints]
    names = (*mechanism.pins, *mechanism.joints, *mechanism.contacts, *mechanism.constraints, *stems, *pairs)
    return {str(name): str(name) for name in names}


def _state(mechanism: Mechanism, condition: Condition | Event, what: str, where: Location) -> None:
    match condition:
        case StateCondition(name=name, state="") if phase_named(mechanism.phases.values(), name) is None:
            _known(name, mechanism.modes, "a mode", what, where)
        case StateCondition(state=""):
            pass
        case PhaseCondition(name=name) | PhaseEvent(name=name):
            named = {phase.in_formulas: phase for phase in mechanism.phases.values()}
            _known(name, named, "a phase", what, where)
        case StateCondition(name=name, state=state):
            contact = _contact(mechanism, name, what, where)
            _one_of(state, [word for word in contact.states if word], f"{what}: contact {name!r} has no state", where)
        case ContactEvent(contact=name, word=word):
            contact = _contact(mechanism, name, what, where)
            _one_of(word, contact.events, f"{what}: contact {name!r} has no event", where)


def _contact(mechanism: Mechanism, name: str, what: str, where: Location) -> Contact:
    """Return a contact, of an entry with several pairs the first: they have one law."""
    found = contacts_named(mechanism, name)
    return _known(found[0] if found else name, mechanism.contacts, "a contact", what, where)


def _known(name: str, section: Mapping[str, T], role: str, what: str, where: Location) -> T:
    if name not in section:
        _one_of(name, section, f"{what}: there is no {role.split(' ', 1)[1]}", where)
    return section[name]


def _one_of(word: str, allowed: Iterable[str], message: str, where: Location) -> None:
    choices = [str(choice) for choice in allowed]
    if word not in choices:
        raise ModelError(
            f"{message} {word!r}",
            where,
            found=word,
            allowed=", ".join(choices[:20]) + (", ..." if len(choices) > 20 else "") or "there is none",
            remedy=did_you_mean(word, choices),
        )


# -- Phases, and the words of parts --------------------------------------------------------------------------


def judged_phases(mechanism: Mechanism) -> bool:
    """Whether a requirement names a phase."""
    return any(
        isinstance(item, PhaseCondition | PhaseEvent) or _is_phase(mechanism, item)
        for requirement in mechanism.requirements.values()
        for item in conditions_of(requirement.claim)
    )


def _is_phase(mechanism: Mechanism, item: Condition | Event) -> bool:
    """Whether a bare name of a condition is that of a phase: it is none of a mode."""
    if not isinstance(item, StateCondition) or item.state or item.name in mechanism.modes:
        return False
    return phase_named(mechanism.phases.values(), item.name) is not None


def _check_phase(phase: RunPhase, mechanism: Mechanism, dimensions: Mapping[str, Dimension], scope: Scope) -> None:
    what, where = f"phase {str(phase.name)!r}", phase.where
    for conjunction in (*phase.when, *phase.until):
        _check_conjunction(conjunction, mechanism, dimensions, scope, what, where)
    if phase.shortest is not None:
        expression_type(phase.shortest, scope, f"the shortest visit of {what}", [TIME])
    for body in phase.focus:
        _known(body, mechanism.bodies, "a body", what, where_of(body))


def _check_conjunction(
    conjunction: Conjunction,
    mechanism: Mechanism,
    dimensions: Mapping[str, Dimension],
    scope: Scope,
    what: str,
    where: Location,
) -> None:
    for condition in conjunction:
        place = where_of(condition.quantity.name if isinstance(condition, QuantityComparison) else condition.name)
        where = where if place is NOWHERE else place
        if isinstance(condition, QuantityComparison):
            _quantity(mechanism, condition.quantity, what, where)
            _constant(condition.bound, scope, what, dimension_of(mechanism, condition.quantity, dimensions))
        elif condition.state:
            _state(mechanism, condition, what, where)
        else:
            _known(condition.name, mechanism.modes, "a mode", what, where)


def check_words(mechanism: Mechanism) -> None:
    """Check that the parts with names in ``names`` exist, and warn of phases that no run can reach.

    Raises ModelError at the first name of a part that does not exist.
    """
    parts: dict[str, object] = {
        **mechanism.contacts, **mechanism.shapes, **mechanism.bodies, **mechanism.inputs, **mechanism.outputs,
        **mechanism.speeds, **dict.fromkeys(mechanism.coordinate_names),
    }  # fmt: skip
    for contact in mechanism.contacts.values():
        for group in (contact.entry, contact.stop if isinstance(contact, GapContact) else ""):
            if group:
                parts[group] = contact
    for name in mechanism.names:
        _known(name, parts, "a contact, shape, body or quantity", "names", where_of(name))
    for name, reason in unreachable(mechanism.phases).items():
        where = mechanism.phases[name].where
        warn_caller(f"{where}: phase {str(name)!r} can never begin: {reason}", PhaseWarning)


# -- References between sections: every name used exists and is of the right sort ----------------------------


class References:
    """Checks every reference of a mechanism; ``known`` are its declarations."""

    def __init__(self, mechanism: Mechanism, known: Mapping[str, Declaration]) -> None:
        self.mechanism = mechanism
        self.known = known
        self.points = ["O", *mechanism.points]
        self.frames = ["N", *mechanism.frames]

    def check(self) -> None:
        """Check all of them. Raises ModelError at the first name of unknown or wrong kind."""
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
        for name in (*initial.misfits, *initial.values):
            if name in self.mechanism.memory:
                raise ModelError(
                    f"{str(name)!r} is a memory", where_of(name), remedy="its first value stands under `memory`"
                )
            try:
                self._one_of(name, "a coordinate or speed", [*self.mechanism.coordinate_names, *self.mechanism.speeds])
            except ModelError as error:
                error.remedy = self._start_meant(name) or error.remedy
                raise
            if name in initial.misfits:
                raise initial.misfits[name]
        for name in initial.guess:
            self._one_of(name, "a coordinate", list(self.mechanism.coordinate_names))

    def _start_meant(self, name: str) -> str:
        """Return the remedy for a state of a contact, a rest or a misspelt key under ``initial``, or an empty text."""
        if name in _RESTS:
            return "`settle: true` finds a rest"
        contacts = self.mechanism.contacts
        if name not in contacts and name not in _STATES_OF_CONTACTS:
            return did_you_mean(name, keys_of(Initial))
        contact = contacts.get(name) or next(iter(contacts.values()), None)
        states = "..." if contact is None else f"{contact.name}: {contact.states[1]}"
        return f"a mode has the states of contacts: `modes: {{start: {{{states}}}}}` and `initial: {{mode: start}}`"


#: Words under ``initial`` for states of contacts, and for a rest.
_STATES_OF_CONTACTS: Final = frozenset({"closed", "open", "contact", "contacts", "state", "states", "stick", "slide"})
_RESTS: Final = frozenset({"rest", "at_rest", "equilibrium", "static", "settled"})


# -- Orders: frames after their parents, points after their reference points; no cycles ----------------------


def ordered(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with frames and points in the order of their dependencies.

    The order of the file is kept wherever it can be. Raises ModelError if frames or points form a cycle.
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

    Raises ModelError at the first defect.
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
