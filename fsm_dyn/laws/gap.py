"""The rigid unilateral contact: ``0 ≤ gap ⊥ λ ≥ 0``, with Coulomb friction or without."""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import FREE, HELD, SLIDING, Event, GuardQuantity, Law, Traits, Watched
from fsm_dyn.laws.friction import BECAME, CIRCLE, END_OF_FACE, LIMIT, REST, events_of_faces


def _states(frictional: bool, infinite: bool) -> tuple[str, ...]:
    if frictional:
        return ("open", "stick") if infinite else ("open", "stick", "slide")
    return ("open", "closed")


def _outlined(contact: Traits) -> bool:
    return contact.outlined


def _alone(contact: Traits) -> bool:
    return not contact.outlined


GAP: Final = Law(
    name="gap",
    normal="constraint",
    has_gap=True,
    states=_states,
    guards=(
        Watched((FREE,), GuardQuantity.GAP, Event.CLOSES, (HELD, SLIDING), "gap", when=_alone),
        Watched((FREE,), GuardQuantity.LARGEST_GAP, Event.CLOSES, (HELD, SLIDING), "gap", when=_outlined),
        Watched((HELD, SLIDING), GuardQuantity.NORMAL_FORCE, Event.OPENS, (FREE,), "normal force"),
        LIMIT,
        END_OF_FACE,
        CIRCLE,
        REST,
    ),
    events=events_of_faces,
    became=BECAME,
)
