"""Times at which an event of a contact happened in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.laws import FREE, HELD, SLIDING, SLIDING_UNDER, Event
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.results.arrays import BoolArray, FloatArray
from fsm_dyn.results.record import RunModel
from fsm_dyn.results.transitions import Transition
from fsm_dyn.simulation.run_arrays import TransitionArrays

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


def event_mask(
    contacts: Sequence[ContactInfo],
    chosen: Sequence[str],
    word: str,
    found: TransitionArrays,
    states: npt.NDArray[np.int8],
    owners: Sequence[str],
    guard_name: Callable[[Event, int], str],
) -> BoolArray:
    """Return at which transitions an event of one of some contacts happens, handovers not told from others.

    Parameters
    ----------
    contacts : sequence of ContactInfo
        All of the mechanism.
    chosen, word
        As ``contacts`` and ``word`` of :func:`event_times`.
    found : TransitionArrays
    states : int8 array, shape (n_modes, n_contacts)
        Contact states of the modes by number.
    owners : sequence of str
        Of each constraint row, the contact or constraint to which it belongs.
    guard_name : callable
        Name of a guard, by its event and subject (:func:`fsm_dyn.results.transition_causes.guard_name`).

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    happens = np.zeros(len(found), dtype=np.bool_)
    present = np.arange(found.event.shape[1]) < found.fired[:, None]
    pairs = {(int(e), int(s)) for e, s in zip(found.event[present], found.contact[present], strict=True)}
    for k, contact in enumerate(contacts):
        if contact.name not in chosen:
            continue
        law = contact.contact_law
        event = law.event_named(word)
        text = f"{contact.name} {law.verb(event)}"
        fired = np.zeros(len(found), dtype=np.bool_)
        for code, subject in pairs:
            if guard_name(Event(code), subject) == text:
                fired |= (present & (found.event == code) & (found.contact == subject)).any(axis=1)
        before, after = states[found.source, k], states[found.target, k]
        rows = [row for row, owner in enumerate(owners) if owner == contact.name]
        match event:
            case Event.CLOSES:
                impulsive = (found.impulse[:, rows] != 0.0).any(axis=1)
                happens |= ((before == FREE) & (after != FREE)) | (fired & impulsive)
            case Event.OPENS:
                happens |= ((before != FREE) & (after == FREE)) | (fired & contact.bilateral)
            case Event.STICKS:
                happens |= np.isin(before, _SLIDES) & (after == HELD)
            case Event.SLIDES:
                happens |= (before == HELD) & np.isin(after, _SLIDES)
            case _:
                happens |= fired
    return happens


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
