"""Times at which an event of a contact happened in a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsm_dyn.laws import FREE, HELD, SLIDING, SLIDING_UNDER, Event
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.record import RunModel
from fsm_dyn.results.transitions import Transition

_SLIDES = (SLIDING, SLIDING_UNDER)


def event_times(model: RunModel, transitions: Sequence[Transition], contacts: Sequence[str], word: str) -> FloatArray:
    """Return the times of an event of one of some contacts, shape (n,), s.

    An event happens at a transition at which the contact's state changes accordingly; a contact that rebounds closes
    without such a change, and leaving a face is the event of a guard.  Feature transitions (handovers) are no events.

    Parameters
    ----------
    transitions : Sequence[Transition]
        Of the run, in order.
    contacts : sequence of str
        Feature pairs of one entry of the model count as one contact.
    word : str
        The event as in model files.
    """
    states = dict(zip(model.modes, (chart.states for chart in model.charts), strict=True))
    infos = [(k, contact) for k, contact in enumerate(model.contacts) if contact.name in contacts]
    return np.array(
        [
            item.time
            for item in transitions
            if not item.is_handover
            and any(_happens(info, word, states[item.source][k], states[item.target][k], item) for k, info in infos)
        ]
    )


def _happens(contact: ContactInfo, word: str, before: int, after: int, item: Transition) -> bool:
    law = contact.contact_law
    event = law.event_named(word)
    fired = any(text == f"{contact.name} {law.verb(event)}" for text, _, _ in item.fired)
    match event:
        case Event.CLOSES:
            return (before == FREE and after != FREE) or (fired and contact.name in item.impulse)
        case Event.OPENS:
            return (before != FREE and after == FREE) or (fired and contact.bilateral)
        case Event.STICKS:
            return before in _SLIDES and after == HELD
        case Event.SLIDES:
            return before == HELD and after in _SLIDES
    return fired
