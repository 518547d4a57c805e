"""The slot, a gap with ``bilateral: true``: always closed, its normal force may have either sign, so has two faces."""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import SLIDING, SLIDING_UNDER, Event, GuardQuantity, Law, Watched
from fsm_dyn.laws.friction import BECAME, LIMIT, REST, events_of_faces


def _states(frictional: bool, infinite: bool) -> tuple[str, ...]:
    if not frictional:
        return ("", "closed")
    return ("", "stick") if infinite else ("", "stick", "slide", "slide_opposite")


SLOT: Final = Law(
    name="gap",
    normal="constraint",
    bilateral=True,
    has_gap=True,
    states=_states,
    guards=(
        # the other face takes over
        Watched((SLIDING,), GuardQuantity.NORMAL_FORCE, Event.OPENS, (SLIDING_UNDER,), "normal force"),
        Watched((SLIDING_UNDER,), GuardQuantity.NORMAL_FORCE, Event.OPENS, (SLIDING,), "normal force", sign=-1.0),
        LIMIT,
        REST,
    ),
    events=events_of_faces,
    became=BECAME,
)
