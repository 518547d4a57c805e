"""Guards of a mode: scalars that are positive while the mode holds and fire when they fall through zero.

One table of what can end a contact state (docs/theory.md, "Contacts: states and guards"):

======================  =========================================  ==================
state                   guard                                      event
======================  =========================================  ==================
open                    gap                                        closes
closed, stick, slide    normal multiplier λ_n                      opens
closed, on a face       distance to the end of the face            leaves
slot, slide             λ_n, or -λ_n on the other face             opens
compliant, open         gap                                        closes
compliant, compressed   -gap, and the force's factor 1 + loss δ'   opens
stick in space          (μ_s λ_n)² - |λ_t|²                        slides
stick                   μ_s λ_n - λ_t  and  μ_s λ_n + λ_t          slides (σ = -1, +1)
slide, slip             σ · slip speed                             sticks
dry friction, stick     τ_s - λ  and  τ_s + λ                      slides (σ = -1, +1)
======================  =========================================  ==================

The friction force opposes the slip it gives way to: where λ_t has reached +μ_s λ_n the slip begins with σ = -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import msgspec
import numpy as np

from fsm_dyn.modes.embedding import Embedded
from fsm_dyn.modes.redundancy import Limit, limits_known
from fsm_dyn.modes.system import System, of_one_corner, shared_name
from fsm_dyn.programs import Node, functions

SET_BACK = 1e-7  # part of its depth behind a face that a neighbour takes off the gap of a corner to that face


class Event(IntEnum):
    """What a guard announces; the codes are those of the compiled tables."""

    CLOSES = 1
    OPENS = 2
    SLIDES = 3
    STICKS = 4
    TRANSITION = 5
    LEAVES = 6


VERBS = {
    Event.CLOSES: "closes",
    Event.OPENS: "opens",
    Event.SLIDES: "slides",
    Event.STICKS: "sticks",
    Event.LEAVES: "leaves",
}


class Guard(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One guard of a mode: its event, whose it is (contact or written transition), and the slip direction begun."""

    event: Event
    subject: int
    direction: float
    text: str


def contact_guards(system: System, states: Sequence[int], embedded: Embedded) -> list[tuple[Guard, Node]]:
    """The guards of a mode's contacts as nodes, in the order of the contacts."""
    guards: list[tuple[Guard, Node]] = []
    forces = _force_guards(system, states, embedded)
    for index, (contact, code) in enumerate(zip(system.contacts, states, strict=True)):
        if contact.kind == "lock":
            continue
        name = contact.name
        if contact.kind == "gap" and code == 0:
            guards += _closing(system, index, states)
        if contact.kind == "compliant":
            guards += _compliant(system, index, code)
        guards += forces.get(index, [])
        if contact.limited and code > 0:
            reach = system.nodes["reach"][index]
            guards.append((Guard(Event.LEAVES, index, 0.0, f"end of the face of {name}"), reach))
        if contact.in_space and code == 1 and not contact.sticks_always:
            guards.append(
                (Guard(Event.SLIDES, index, 0.0, f"friction limit of {name}"), _cone(system, index, embedded))
            )
        if code >= 2:
            guards.append((Guard(Event.STICKS, index, 0.0, f"slip speed of {name}"), system.ahead(index)))
    return guards


def _closing(system: System, index: int, states: Sequence[int]) -> list[tuple[Guard, Node]]:
    """Guard of an open gap; the faces of a convex polygon have one for each corner, unless the corner is on one."""
    members = of_one_corner(system.contacts, index)
    if index != members[0] or any(states[i] for i in members):
        return []
    gaps = [_gap_to_face(system, i) if len(members) > 1 else system.gap(i) for i in members]
    largest: Node = gaps[0]
    for gap in gaps[1:]:
        largest = functions.maximum(largest, gap)
    return [(Guard(Event.CLOSES, index, 0.0, f"gap of {shared_name(system.contacts, index)}"), largest)]


def _gap_to_face(system: System, index: int) -> Node:
    """Gap to one of several faces, a little less where a neighbour of the corner lies behind it.

    That face does not keep the bodies apart: a corner that comes down flush on the end of the next one passes zero by
    the gap to that.
    """
    behind: Node = system.nodes["aspect"][index]
    return system.gap(index) + SET_BACK * functions.minimum(behind, 0.0)


def _compliant(system: System, index: int, code: int) -> list[tuple[Guard, Node]]:
    """Guards of a compliant contact; open, what left faster than the surface follows may meet it again before."""
    contact = system.contacts[index]
    gap, firm = system.nodes["residual"][contact.normal_row], system.nodes["firm"][index]
    if code == 0:
        met = functions.maximum(gap, -firm) if contact.lossy else gap
        return [(Guard(Event.CLOSES, index, 0.0, f"gap of {contact.name}"), met)]
    guards = [(Guard(Event.OPENS, index, 0.0, f"depth of {contact.name}"), -gap)]
    if contact.lossy:
        guards.append((Guard(Event.OPENS, index, 0.0, f"force of {contact.name}"), firm))
    return guards


def _laws(system: System, states: Sequence[int], embedded: Embedded) -> list[Limit]:
    """What the multipliers of the mode must keep: no pull, and the static limit of what sticks."""
    vectors, numbers = embedded.open_forces.vectors, embedded.open_forces.numbers
    if numbers is None:
        numbers = np.zeros((0, len(system.rows)))
    zero = system.graph.constant(0.0)
    laws: list[Limit] = []

    def add(
        event: Event, contact: int, direction: float, parts: list[tuple[int, Node | float, float]], rest: Node
    ) -> None:
        """One law: multipliers (row, coefficient, its number) plus what is given."""
        value, columns = rest, [zero] * len(vectors)
        entries = np.zeros(len(vectors))
        for row, coefficient, number in parts:
            value = value + coefficient * embedded.multipliers[row]
            columns = [column + coefficient * v[row] for column, v in zip(columns, vectors, strict=True)]
            entries += number * numbers[:, row]
        members = frozenset({(int(event), contact, direction)})
        laws.append(Limit(value, tuple(columns), tuple(float(entry) for entry in entries), members))

    for index, (contact, code) in enumerate(zip(system.contacts, states, strict=True)):
        normal, tangent = contact.normal_row, contact.tangent_row
        if contact.two_sided:
            if code >= 2:  # the other face takes over
                side = 1.0 if code == 2 else -1.0
                add(Event.OPENS, index, 0.0, [(normal, side, side)], zero)
            elif tangent >= 0 and not contact.sticks_always:
                bound = system.nodes["static"][index] * functions.absolute(embedded.multipliers[normal])
                for direction in (-1.0, 1.0):
                    add(Event.SLIDES, index, direction, [(tangent, direction, direction)], bound)
            continue
        if contact.kind == "gap" and code > 0:
            add(Event.OPENS, index, 0.0, [(normal, 1.0, 1.0)], zero)
        bounded = tangent >= 0 and not contact.sticks_always and not contact.in_space
        if code == 1 and bounded and contact.kind != "lock":
            bound, size = system.friction_bound("static", index), float(embedded.static[index])
            load = [(normal, bound, size)] if contact.kind == "gap" else []
            for direction in (-1.0, 1.0):
                rest = zero if load else bound
                add(Event.SLIDES, index, direction, [*load, (tangent, direction, direction)], rest)
    return laws


def _force_guards(system: System, states: Sequence[int], embedded: Embedded) -> dict[int, list[tuple[Guard, Node]]]:
    """Guards on multipliers by contact; a limit that several contacts share is guarded for each of them."""
    laws = _laws(system, states, embedded)
    found: dict[int, list[tuple[Guard, Node]]] = {}
    for limit in limits_known(laws, len(embedded.open_forces.vectors)):
        shared = " and ".join(sorted({system.contacts[contact].name for _, contact, _ in limit.members}))
        for event, contact, direction in sorted(limit.members):
            what = "normal force" if event == Event.OPENS else "friction limit"
            text = f"{what} of {shared}" + (" together" if len(limit.members) > 1 else "")
            found.setdefault(contact, []).append((Guard(Event(event), contact, direction, text), limit.value))
    return found


def _cone(system: System, index: int, embedded: Embedded) -> Node:
    """Squares, because the length of a friction force has no slope where it is zero."""
    contact = system.contacts[index]
    bound = system.friction_bound("static", index)
    if contact.kind == "gap":
        bound = bound * embedded.multipliers[contact.normal_row]
    value: Node = bound * bound
    for row in contact.tangent_rows:
        value = value - embedded.multipliers[row] * embedded.multipliers[row]
    return value


def transition_guards(system: System, leaving: Sequence[int]) -> list[tuple[Guard, Node]]:
    """The guards of the written transitions (given by index) that leave a mode."""
    guards: list[tuple[Guard, Node]] = []
    for index in leaving:
        when = system.whens[index]
        if not when.has_guard:
            continue
        node = system.nodes["when"][index]
        guard = Guard(Event.TRANSITION, index, 0.0, when.name)
        if when.crossing in ("rising", "both"):
            guards.append((guard, -node))
        if when.crossing in ("falling", "both"):
            guards.append((guard, node))
    return guards
