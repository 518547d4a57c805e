"""Guards of a mode: scalars that are positive while the mode holds and fire when they fall through zero.

One table of what can end a contact state (docs/theory.md, "Contacts: states and guards"):

======================  =========================================  ==================
state                   guard                                      event
======================  =========================================  ==================
open                    gap                                        closes
closed, stick, slide    normal multiplier λ_n                      opens
closed, on a face       distance to the end of the face            leaves
stick                   μ_s λ_n - λ_t  and  μ_s λ_n + λ_t          slides (σ = -1, +1)
slide, slip             σ · slip speed                             sticks
dry friction, stick     τ_s - λ  and  τ_s + λ                      slides (σ = -1, +1)
======================  =========================================  ==================

The friction force opposes the slip it gives way to: where λ_t has reached +μ_s λ_n the slip begins with σ = -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from fsm_dyn.modes.embedding import Embedded
from fsm_dyn.modes.system import System
from fsm_dyn.programs import Node


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


@dataclass(frozen=True)
class Guard:
    """One guard of a mode: its event, whose it is (contact or written transition), and the slip direction begun."""

    event: Event
    subject: int
    direction: float
    text: str


def contact_guards(system: System, states: Sequence[int], embedded: Embedded) -> list[tuple[Guard, Node]]:
    """The guards of a mode's contacts as nodes, in the order of the contacts."""
    guards: list[tuple[Guard, Node]] = []
    for index, (contact, code) in enumerate(zip(system.contacts, states, strict=True)):
        if contact.kind == "lock":
            continue
        name = contact.name
        if contact.kind == "gap" and code == 0:
            gap = system.nodes["residual"][contact.normal_row]
            guards.append((Guard(Event.CLOSES, index, 0.0, f"gap of {name}"), gap))
        if contact.kind == "gap" and code > 0:
            force = embedded.multipliers[contact.normal_row]
            guards.append((Guard(Event.OPENS, index, 0.0, f"normal force of {name}"), force))
            if contact.limited:
                reach = system.nodes["reach"][index]
                guards.append((Guard(Event.LEAVES, index, 0.0, f"end of the face of {name}"), reach))
        if code == 1 and contact.tangent_row >= 0 and not contact.sticks_always:
            guards += _friction_limits(system, index, embedded)
        if code == 2:
            slip = _slip(system, contact.tangent_row, embedded)
            guards.append((Guard(Event.STICKS, index, 0.0, f"slip speed of {name}"), system.sigma(index) * slip))
    return guards


def _friction_limits(system: System, index: int, embedded: Embedded) -> list[tuple[Guard, Node]]:
    contact = system.contacts[index]
    bound = system.nodes["static"][index]
    if contact.kind == "gap":
        bound = bound * embedded.multipliers[contact.normal_row]
    friction = embedded.multipliers[contact.tangent_row]
    text = f"friction limit of {contact.name}"
    return [
        (Guard(Event.SLIDES, index, -1.0, text), bound - friction),
        (Guard(Event.SLIDES, index, 1.0, text), bound + friction),
    ]


def _slip(system: System, row: int, embedded: Embedded) -> Node:
    slip: Node = system.nodes["b"][row]
    for j in range(system.n_speeds):
        slip = slip + system.nodes["A"][row, j] * embedded.speeds[j]
    return slip


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
