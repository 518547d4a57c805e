"""Coulomb friction, shared by several laws: its guards, along one line or in space (docs/theory.md)."""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import HELD, SLIDING, SLIDING_UNDER, Event, GuardQuantity, Traits, Watched


def _along_a_line(contact: Traits) -> bool:
    return contact.frictional and not contact.sticks_always and not contact.in_space


def _in_space(contact: Traits) -> bool:
    return contact.frictional and not contact.sticks_always and contact.in_space


def _limited(contact: Traits) -> bool:
    return contact.bounded_face


#: where it sticks along one line: the friction force opposes the slip it gives way to, so one guard for each direction
LIMIT: Final = Watched(
    (HELD,), GuardQuantity.FRICTION_LIMIT, Event.SLIDES, (SLIDING,), "friction limit", directions=(-1.0, 1.0),
    when=_along_a_line,
)  # fmt: skip
CIRCLE: Final = Watched(
    (HELD,), GuardQuantity.FRICTION_CIRCLE, Event.SLIDES, (SLIDING,), "friction limit", when=_in_space
)
REST: Final = Watched((SLIDING, SLIDING_UNDER), GuardQuantity.SLIP, Event.STICKS, (HELD,), "slip speed")
END_OF_FACE: Final = Watched((HELD, SLIDING), GuardQuantity.REACH, Event.LEAVES, (0,), "end of the face", when=_limited)


#: what a contact did that is in a state now without a guard of its own
BECAME: Final = {
    "open": "opens", "closed": "closes", "compressed": "closes", "stick": "sticks", "slide": "slides",
    "slide_opposite": "slides",
}  # fmt: skip


def events_of_faces(frictional: bool, infinite: bool, limited: bool) -> tuple[str, ...]:
    """Words of the events of a contact that closes, with or without friction, on a face with or without ends.

    Parameters
    ----------
    frictional : bool
        Whether there is friction.
    infinite : bool
        Whether it never slides.
    limited : bool
        Whether the face has ends.

    Returns
    -------
    tuple of str
    """
    closing = ("closes", "opens", *(("leaves_face",) if limited else ()))
    if not frictional:
        return closing
    return (*closing, "sticks") if infinite else (*closing, "sticks", "slides")
