"""Defects of requirements and phases that prevent any judgement: unknown names, states or events, wrong units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from fsm_dyn.core.errors import NOWHERE, Location, ModelError, PhaseWarning, did_you_mean, warn_caller
from fsm_dyn.language.check_expressions import parameter_scope, scopes_and_dimensions
from fsm_dyn.language.contacts import Contact, GapContact
from fsm_dyn.language.dimensions import Declaration, Scope, declarations, expression_type
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.phases import Conjunction, RunPhase, phase_named, unreachable
from fsm_dyn.language.pins import PinEntry
from fsm_dyn.language.requirement import (
    Always,
    Condition,
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
    StateCondition,
    conditions_of,
)
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

# -- Requirements --------------------------------------------------------------------------------------------
#
# Defects that prevent any judgement: unknown names, events foreign to a contact, wrong units.

T = TypeVar("T")


def check_requirements(
    mechanism: Mechanism, known: Mapping[str, Declaration], dimensions: Mapping[str, Dimension], units: bool
) -> None:
    """Check the names and units of all requirements and phases.

    Parameters
    ----------
    mechanism : Mechanism
    known : mapping of str to Declaration
        The declarations of the model.
    dimensions : mapping of str to Dimension
        Of coordinates, speeds, inputs and outputs, as ``check_expressions`` returns them.
    units : bool
        Whether the model has units.

    Raises
    ------
    ModelError
        At the first requirement or phase with such a defect, with its place.
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

    Raises
    ------
    ModelError
        At the first name of a part that does not exist.
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
