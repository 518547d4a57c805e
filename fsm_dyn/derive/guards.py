"""Guards of a mode: scalars, positive in the mode, that fire at their falling zero crossings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from fsm_dyn.core.arrays import Codes, Integers
from fsm_dyn.derive.embedding import EmbeddedMode, Limit, determinate_limits
from fsm_dyn.derive.tree_embedding import resultant
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem, name_in_common
from fsm_dyn.language.laws import Watched
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import substitute
from fsm_dyn.runtime.abi import SET_BACK, Event, GuardQuantity

# -- Guards of a mode ----------------------------------------------------------------------------------------
#
# The law of a contact determines its guards (:mod:`fsm_dyn.language.laws`); here are their measured values, as nodes.
# The friction force opposes the beginning slip: at λ_t = +μ_s λ_n it begins with σ = -1.

_LIMITS = (
    GuardQuantity.NORMAL_FORCE,
    GuardQuantity.FRICTION_LIMIT,
    GuardQuantity.HOLDING_LIMIT,
)  # of multipliers, maybe shared ones


class Guard(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One guard of a mode.

    ``event``: its event; ``subject``: its contact or user-defined transition; ``direction``: the beginning slip
    direction; ``quantity`` and ``sign``: the guard is their product.
    """

    event: Event
    subject: int
    direction: float
    text: str
    quantity: GuardQuantity
    sign: float


def contact_guards(
    system: UnconstrainedSystem, states: Sequence[int], embedded: EmbeddedMode
) -> tuple[list[tuple[Guard, Node]], list[Node]]:
    """The guards of a mode's contacts as nodes, in the order of the contacts and of the declarations of their laws.

    Then the signs, as of :func:`~fsm_dyn.derive.embedding.determinate_limits`, with which these are all guards.
    """
    guards: list[tuple[Guard, Node]] = []
    forces, signs = _force_guards(system, states, embedded)
    for index, (contact, code) in enumerate(zip(system.contacts, states, strict=True)):
        for watched in contact.contact_law.guards_of(contact, code):
            if watched.quantity in _LIMITS:
                guards += forces.pop(index, [])
                continue
            value = _value(system, states, embedded, index, watched.quantity)
            if value is not None:
                guards.append((_state_guard(system, index, watched), value if watched.sign > 0.0 else -value))
    return guards, signs


def _state_guard(system: UnconstrainedSystem, index: int, watched: Watched) -> Guard:
    shared = system.of_one_corner(index) if watched.event is Event.CLOSES else [index]
    name = system.contacts[index].name
    if len(shared) > 1:
        name = name_in_common([system.contacts[i].name for i in shared])
    return Guard(watched.event, index, 0.0, f"{watched.text} of {name}", watched.quantity, watched.sign)


def _value(
    system: UnconstrainedSystem,
    states: Sequence[int],
    embedded: EmbeddedMode | None,
    index: int,
    quantity: GuardQuantity,
) -> Node | None:
    """Return the measured quantity of a guard; None if another contact has the common guard.

    ``embedded`` is needed for forces only.
    """
    match quantity:
        case GuardQuantity.GAP:
            return system.gap(index)
        case GuardQuantity.LARGEST_GAP:
            return _largest_gap(system, index, states)
        case GuardQuantity.MEETING:
            length = system.units.scales.length if system.units else 1.0
            return functions.maximum(system.gap(index), -length * system.nodes["firm"][index])
        case GuardQuantity.FIRMNESS:
            return _node(system, "firm", index)
        case GuardQuantity.REACH:
            return _node(system, "reach", index)
        case GuardQuantity.SPEED:
            return system.slip(system.contacts[index].normal_row)
        case GuardQuantity.SLIP:
            return system.ahead(index)
        case GuardQuantity.FRICTION_CIRCLE if embedded is not None:
            return _circle(system, index, embedded)
    raise ValueError(f"no guard measures {quantity.name} of a contact")


def _node(system: UnconstrainedSystem, name: str, index: int) -> Node:
    node: Node = system.nodes[name][index]
    return node


def _largest_gap(system: UnconstrainedSystem, index: int, states: Sequence[int]) -> Node | None:
    """The faces of a convex polygon have one guard for each corner, unless the corner is on one."""
    members = system.of_one_corner(index)
    if not _has_common_guard(members, index, states):
        return None
    gaps = [_gap_to_face(system, i) if len(members) > 1 else system.gap(i) for i in members]
    largest: Node = gaps[0]
    for gap in gaps[1:]:
        largest = functions.maximum(largest, gap)
    return largest


def _has_common_guard(members: Sequence[int], index: int, states: Sequence[int]) -> bool:
    return index == members[0] and not any(states[i] for i in members)


def _gap_to_face(system: UnconstrainedSystem, index: int) -> Node:
    """Gap to one of several faces, a little less if a neighbour of the corner is behind it.

    Such a face does not separate the bodies: a corner coming down flush on the end of the next face passes zero by the
    gap to the latter.
    """
    behind: Node = system.nodes["aspect"][index]
    return system.gap(index) + SET_BACK * functions.minimum(behind, 0.0)


def _laws(system: UnconstrainedSystem, states: Sequence[int], embedded: EmbeddedMode) -> list[Limit]:
    """Laws of the mode's multipliers: no pull, and the static limit of sticking contacts."""
    vectors, numbers = embedded.open_forces.vectors, embedded.open_forces.numbers
    if numbers is None:
        numbers = np.zeros((0, len(system.rows)))
    zero = system.graph.constant(0.0)
    laws: list[Limit] = []

    def add(
        event: Event, contact: int, direction: float, parts: list[tuple[int, Node | float, float]], rest: Node
    ) -> None:
        """One law: multipliers (row, coefficient, its number) plus a given part."""
        value, columns = rest, [zero] * len(vectors)
        entries = np.zeros(len(vectors))
        for row, coefficient, number in parts:
            value = value + coefficient * embedded.multipliers[row]
            columns = [column + coefficient * v[row] for column, v in zip(columns, vectors, strict=True)]
            entries += number * numbers[:, row]
        members = frozenset({(int(event), contact, direction)})
        laws.append(Limit(value, tuple(columns), tuple(float(entry) for entry in entries), members))

    for index, (contact, code) in enumerate(zip(system.contacts, states, strict=True)):
        normal, tangent, load = contact.normal_row, contact.tangent_row, contact.contact_law.normal
        for watched in contact.contact_law.guards_of(contact, code):
            if watched.quantity is GuardQuantity.NORMAL_FORCE:
                add(watched.event, index, 0.0, [(normal, watched.sign, watched.sign)], zero)
            if watched.quantity is GuardQuantity.HOLDING_LIMIT:
                for direction in watched.directions:
                    add(
                        watched.event, index, direction, [(normal, direction, direction)], system.nodes["static"][index]
                    )
            if watched.quantity is not GuardQuantity.FRICTION_LIMIT:
                continue
            bound, size = _static_bound(system, index, embedded), float(embedded.static[index])
            parts = [(normal, bound, size)] if load == "constraint" and not contact.bilateral else []
            if contact.bilateral:
                bound = bound * functions.absolute(embedded.multipliers[normal])
            for direction in watched.directions:
                rest = zero if parts else bound
                add(watched.event, index, direction, [*parts, (tangent, direction, direction)], rest)
    return laws


def _force_guards(
    system: UnconstrainedSystem, states: Sequence[int], embedded: EmbeddedMode
) -> tuple[dict[int, list[tuple[Guard, Node]]], list[Node]]:
    """Guards on multipliers by contact, each common limit of several contacts for each of them, and signs."""
    found: dict[int, list[tuple[Guard, Node]]] = {}
    limits, signs = determinate_limits(_laws(system, states, embedded), len(embedded.open_forces.vectors))
    for limit in limits:
        shared = " and ".join(sorted({system.contacts[contact].name for _, contact, _ in limit.members}))
        for event, contact, direction in sorted(limit.members):
            watched = _limit_of(system, contact, states[contact], Event(event))
            text = f"{watched.text} of {shared}" + (" together" if len(limit.members) > 1 else "")
            found.setdefault(contact, []).append((_force_guard(watched, contact, direction, text), limit.value))
    return found, signs


def _force_guard(watched: Watched, contact: int, direction: float, text: str) -> Guard:
    return Guard(watched.event, contact, direction, text, watched.quantity, direction or watched.sign)


def _limit_of(system: UnconstrainedSystem, index: int, code: int, event: Event) -> Watched:
    """Return the guard of a contact on its multipliers with an event."""
    contact = system.contacts[index]
    watched = contact.contact_law.guards_of(contact, code)
    return next(item for item in watched if item.event is event and item.quantity in _LIMITS)


def _static_bound(system: UnconstrainedSystem, index: int, embedded: EmbeddedMode) -> Node:
    """Return the bound of friction at rest: by the reactions where there is a load, else a coefficient."""
    bound, contact = system.friction_bound("static", index), system.contacts[index]
    if not contact.contact_law.loaded:
        return bound
    reaction = resultant([embedded.multipliers[row] for row in contact.load_rows])
    return substitute([bound], {system.load(index): reaction})[0]


def _circle(system: UnconstrainedSystem, index: int, embedded: EmbeddedMode) -> Node:
    """Squares, because the length of a friction force has no slope at zero."""
    contact = system.contacts[index]
    bound = _static_bound(system, index, embedded)
    if contact.contact_law.rigid:
        bound = bound * embedded.multipliers[contact.normal_row]
    value: Node = bound * bound
    for row in contact.tangent_rows:
        value = value - embedded.multipliers[row] * embedded.multipliers[row]
    return value


def guards_of_state(system: UnconstrainedSystem) -> dict[tuple[GuardQuantity, int, float], Node]:
    """Return the guards of all modes determined by the state alone, without forces, by quantity, subject and sign."""
    all_open = (0,) * len(system.contacts)
    found: dict[tuple[GuardQuantity, int, float], Node] = {}
    for index, contact in enumerate(system.contacts):
        for code in contact.codes:
            for watched in contact.contact_law.guards_of(contact, code):
                if watched.quantity in _LIMITS or watched.quantity is GuardQuantity.FRICTION_CIRCLE:
                    continue
                value = _value(system, all_open, None, index, watched.quantity)
                if value is not None:
                    found[watched.quantity, index, watched.sign] = value if watched.sign > 0.0 else -value
    for guard, node in transition_guards(system, range(len(system.user_transitions))):
        found[guard.quantity, guard.subject, guard.sign] = node
    return found


def transition_guards(system: UnconstrainedSystem, leaving: Sequence[int]) -> list[tuple[Guard, Node]]:
    """The guards of the user-defined transitions (given by index) out of a mode."""
    guards: list[tuple[Guard, Node]] = []
    for index in leaving:
        when = system.user_transitions[index]
        if not when.has_guard:
            continue
        node = system.nodes["when"][index]
        guards += [(guard, node if guard.sign > 0.0 else -node) for guard in _conditions(system, index)]
    return guards


def _conditions(system: UnconstrainedSystem, index: int) -> list[Guard]:
    """The guards of one user-defined transition, none without a condition."""
    when = system.user_transitions[index]
    crossings = [(-1.0, "rising"), (1.0, "falling")] if when.has_guard else []
    return [
        Guard(Event.TRANSITION, index, 0.0, when.name, GuardQuantity.CONDITION, sign)
        for sign, crossing in crossings
        if when.crossing in (crossing, "both")
    ]


# -- Guards of a mode listed without deriving it; online embedding evaluates them from the terms -------------


def list_guards(system: UnconstrainedSystem, states: Sequence[int], leaving: Sequence[int]) -> tuple[Guard, ...]:
    """The guards of the mode with these contact states, in the order of a derived mode.

    With redundant rows a derived mode guards the common limits of contacts; here each contact's own laws are listed,
    with shares as far from their limits as possible. ``leaving``, indices of the user-defined transitions out of this
    mode.
    """
    return tuple(guard_catalogue(system).of(states, leaving))


class ListedGuards(Sequence[Guard]):
    """Guards of a mode by their numbers in a catalogue; none is looked up before it is asked for.

    ``numbers``, int64 array, shape (n,).
    """

    def __init__(self, catalogue: GuardCatalogue, numbers: Integers) -> None:
        self.catalogue, self.numbers = catalogue, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ListedGuards(self.catalogue, self.numbers[index])
        return self.catalogue.guards[self.numbers[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class GuardCatalogue:
    """The guards of every contact in each of its states, of which those of any mode are put together.

    ``guards``, list of Guard: of all contacts in all states, then of all transitions; ``most``: no mode has more
    guards.
    """

    def __init__(self, system: UnconstrainedSystem) -> None:
        n = len(system.contacts)
        width = 1 + max((code for contact in system.contacts for code in contact.codes), default=0)
        self.guards: list[Guard] = []
        self._begin = np.zeros((2, n, width), np.int64)  # without and with the guards that a corner has once
        self._count = np.zeros((2, n, width), np.int64)
        self._corner = np.arange(n)  # the first contact of the corner that shares guards
        self._contacts = np.arange(n)
        for index, contact in enumerate(system.contacts):
            for code in contact.codes:
                guards, own, corner = _listed_guards(system, index, code)
                if corner is not None:
                    self._corner[index] = corner[0]
                for variant, found in enumerate((own, own if corner is not None and corner[0] != index else guards)):
                    self._begin[variant, index, code] = len(self.guards)
                    self._count[variant, index, code] = len(found)
                    self.guards += found
        self._first_of = len(self.guards)
        self._leaving: list[tuple[int, int]] = []
        for index in range(len(system.user_transitions)):
            conditions = _conditions(system, index)
            self._leaving.append((len(self.guards), len(conditions)))
            self.guards += conditions
        self.most = int(self._count.max(axis=(0, 2), initial=0).sum()) + len(self.guards) - self._first_of

    def of(self, states: Sequence[int] | Codes, leaving: Sequence[int]) -> ListedGuards:
        """Return the guards of a mode; arguments and order are those of :func:`list_guards`."""
        codes = np.asarray(states, np.int64)
        alone = np.ones(len(codes), np.int64)
        alone[self._corner[np.flatnonzero(codes)]] = 0
        begin = self._begin[alone[self._corner], self._contacts, codes]
        count = self._count[alone[self._corner], self._contacts, codes]
        ends = np.cumsum(count)
        numbers = np.repeat(begin - ends + count, count) + np.arange(ends[-1] if len(ends) else 0)
        more = [np.arange(first, first + size) for first, size in (self._leaving[index] for index in leaving)]
        return ListedGuards(self, np.concatenate([numbers, *more]).astype(np.int64))


def _listed_guards(
    system: UnconstrainedSystem, index: int, code: int
) -> tuple[tuple[Guard, ...], tuple[Guard, ...], list[int] | None]:
    """The guards of a contact in a state, those of it alone, and the contacts of its corner if they share a guard."""
    guards = _guards_of_contact(system, index, code)
    own = tuple(guard for guard in guards if guard.quantity is not GuardQuantity.LARGEST_GAP)
    return guards, own, system.of_one_corner(index) if len(own) < len(guards) else None


def _guards_of_contact(system: UnconstrainedSystem, index: int, code: int) -> tuple[Guard, ...]:
    """The guards of a contact in a state, its own limits together, where the first of them is declared."""
    contact = system.contacts[index]
    found: list[Guard] = []
    declared = list(contact.contact_law.guards_of(contact, code))
    limits = [watched for watched in declared if watched.quantity in _LIMITS]
    for watched in declared:
        if watched.quantity not in _LIMITS:
            found.append(_state_guard(system, index, watched))
        elif watched is limits[0]:
            for limit in limits:
                directions = (0.0,) if limit.quantity is GuardQuantity.NORMAL_FORCE else limit.directions
                text = f"{limit.text} of {contact.name}"
                found += [_force_guard(limit, index, direction, text) for direction in directions]
    return tuple(found)


def guard_catalogue(system: UnconstrainedSystem) -> GuardCatalogue:
    """Return the guards of all modes of a system, listed once and kept with it as its cached properties are."""
    kept = vars(system)
    if "guard_catalogue" not in kept:
        kept["guard_catalogue"] = GuardCatalogue(system)
    catalogue: GuardCatalogue = kept["guard_catalogue"]
    return catalogue
