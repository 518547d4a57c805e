"""Compliant contact: normal force as a function of penetration and its rate (Hunt and Crossley 1975)."""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import FREE, HELD, SLIDING, Event, GuardQuantity, Law, Traits, Watched
from fsm_dyn.laws.friction import BECAME, CIRCLE, END_OF_FACE, LIMIT, REST, events_of_faces


def _states(frictional: bool, infinite: bool) -> tuple[str, ...]:
    if frictional:
        return ("open", "stick") if infinite else ("open", "stick", "slide")
    return ("open", "compressed")


def _lossy(contact: Traits) -> bool:
    return contact.lossy


def _lossless(contact: Traits) -> bool:
    return not contact.lossy


COMPLIANT: Final = Law(
    name="compliant",
    normal="force law",
    has_gap=True,
    states=_states,
    guards=(
        # open, what left faster than the surface follows may meet it again before the gap closes
        Watched((FREE,), GuardQuantity.GAP, Event.CLOSES, (HELD, SLIDING), "gap", when=_lossless),
        Watched((FREE,), GuardQuantity.MEETING, Event.CLOSES, (HELD, SLIDING), "gap", when=_lossy),
        Watched((HELD, SLIDING), GuardQuantity.GAP, Event.OPENS, (FREE,), "depth", sign=-1.0),
        Watched((HELD, SLIDING), GuardQuantity.FIRMNESS, Event.OPENS, (FREE,), "force", when=_lossy),
        LIMIT,
        END_OF_FACE,
        CIRCLE,
        REST,
    ),
    events=events_of_faces,
    became=BECAME,
)
