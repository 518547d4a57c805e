"""Requirements that could never be judged: unknown names, events that a contact does not have, wrong units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from fsm_dyn.errors import Location, ModelError, did_you_mean
from fsm_dyn.expressions import DIMENSIONLESS, Dimension, Text, dimension_text
from fsm_dyn.expressions.units import divide
from fsm_dyn.spec.checks.dimension_algebra import Scope
from fsm_dyn.spec.checks.expression_types import LENGTH, POWER, TIME, expression_type
from fsm_dyn.spec.checks.expressions import parameter_scope, scopes_and_dimensions
from fsm_dyn.spec.checks.names import Declaration, declarations
from fsm_dyn.spec.contact import Contact
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.requirement import (
    Always,
    ContactEvent,
    Count,
    Eventually,
    Extreme,
    MeasuredQuantity,
    NeverTwice,
    QuantityComparison,
    Requirement,
    StateCondition,
)

T = TypeVar("T")


def check_requirements(
    mechanism: Mechanism, known: Mapping[str, Declaration], dimensions: Mapping[str, Dimension], units: bool
) -> None:
    """Check the names and units of all requirements.

    Parameters
    ----------
    dimensions : mapping of str to Dimension
        Of coordinates, speeds, inputs and outputs, as ``check_expressions`` returns them.

    Raises
    ------
    ModelError
        At the first requirement that could never be judged, with its place.
    """
    if not mechanism.requirements:
        return
    scope = parameter_scope(mechanism, known, units)
    for requirement in mechanism.requirements.values():
        _check(requirement, mechanism, dimensions, scope)


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
            unit = dimension_text(dimension_of(mechanism, compared.quantity, dimensions)) if known else "1"
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
    """Return the contact of a name, or the feature pairs of the entry of that name; none if there is neither."""
    if name in mechanism.contacts:
        return (name,)
    return tuple(contact.name for contact in mechanism.contacts.values() if contact.entry == name)


def dimension_of(mechanism: Mechanism, quantity: MeasuredQuantity, dimensions: Mapping[str, Dimension]) -> Dimension:
    """Return the dimension of a quantity: of a force of a contact that whose power is with its gap's rate or slip."""
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


def _constant(text: Text, scope: Scope, what: str, dimension: Dimension) -> None:
    expression_type(text, scope, f"the bound of {what}", [dimension])


def _quantity(mechanism: Mechanism, quantity: MeasuredQuantity, what: str, where: Location) -> None:
    if quantity.part:
        contact = _contact(mechanism, quantity.name, what, where)
        has = contact.has_friction if quantity.part == "friction" else not contact.contact_law.friction_only
        if not has:
            raise ModelError(f"{what}: contact {quantity.name!r} has no {quantity.part} force", where)
        return
    names = (mechanism.coordinate_names, mechanism.speeds, mechanism.inputs, mechanism.memory, mechanism.outputs)
    quantities = {str(name): name for section in names for name in section}
    _known(quantity.name, quantities, "a coordinate, speed, input, memory or output", what, where)


def _state(
    mechanism: Mechanism, condition: QuantityComparison | StateCondition | ContactEvent, what: str, where: Location
) -> None:
    match condition:
        case StateCondition(name=name, state=""):
            _known(name, mechanism.modes, "a mode", what, where)
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
