"""Encounters of shapes, how deep they are in one another, and times of contact events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Booleans, Codes, Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.contacts import Contact, FeatureContact
from fsm_dyn.language.laws import FREE, HELD, SLIDING, SLIDING_UNDER, VERBS
from fsm_dyn.language.shapes import Feature, SegmentShape
from fsm_dyn.run.loop_state import TransitionArrays
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.tolerances import Tolerances
from fsm_dyn.run.transitions import REASONS, Transition
from fsm_dyn.runtime.abi import Event, Reason

# -- How deep shapes are in one another at an instant, or behind a face that does not act from there ---------


def depths(
    contacts: Sequence[ContactInfo], written: Mapping[str, Contact], residual: Floats
) -> list[tuple[float, str]]:
    """Return how deep rigid contacts penetrate, m, with their names; the deepest first.

    What is outside one face of a polygon is outside the polygon, so of all its faces the nearest one counts.
    ``written``: the contacts of the model by name. ``residual``, shape (n_rows,): residuals of the rows; of a contact's
    normal row, the gap, m.
    """
    nearest: dict[object, tuple[float, str]] = {}
    for contact in contacts:
        if not contact.contact_law.rigid:
            continue
        gap = float(residual[contact.normal_row])
        key = _pair(written.get(contact.name)) or contact.name
        if key not in nearest or gap > -nearest[key][0]:
            nearest[key] = -gap, contact.name
    return sorted(nearest.values(), reverse=True)


def _pair(contact: Contact | None) -> object:
    """Return the same for a feature with each face of one shape; None without a face."""
    if not isinstance(contact, FeatureContact):
        return None
    faces = [feature for feature in contact.features if feature.part == "face"]
    others = [feature for feature in contact.features if feature.part != "face"]
    if len(faces) != 1:
        return None
    return contact.entry, faces[0].shape, faces[0].copy, others[0]


def starts_behind(
    automaton: Automaton, states: Sequence[int], t: float, x: Floats, c: Floats, least: float
) -> tuple[str, ...]:
    """Return a sentence for each shape that is wholly behind a segment, before or behind no end of it.

    ``states``: of the contacts, by which some may touch; ``t``: time, s; ``x``, ``c``, shapes (n_x,), (n_c,): state and
    context; ``least``: depth that counts, m.
    """
    if not any(isinstance(shape, SegmentShape) for shape in automaton.mechanism.shapes.values()):
        return ()
    pairs: dict[tuple[str, Feature, str], list[int]] = {}
    written = automaton.mechanism.contacts
    for index, info in enumerate(automaton.contacts):
        contact = written.get(info.name)
        if not isinstance(contact, FeatureContact):
            continue
        for face, other in (contact.features, contact.features[::-1]):
            if face.part == "face" and isinstance(automaton.mechanism.shapes.get(face.shape), SegmentShape):
                pairs.setdefault((contact.entry, face, other.shape), []).append(index)
    if not pairs:
        return ()
    every = sorted({index for indices in pairs.values() for index in indices})
    rows = [automaton.contacts[index].normal_row for index in every]
    values = automaton.terms.evaluate(t, x, c, only={"residual": rows, "reach": every})
    gap, reach = (dict(zip(every, values[name].tolist(), strict=True)) for name in ("residual", "reach"))
    return tuple(
        f"at the start '{other}' is {-max(gap[i] for i in indices):.6g} m behind '{face.shape}', "
        "which touches it from its side alone: move the start, or turn the side"
        for (_, face, other), indices in pairs.items()
        if not any(states[i] for i in indices)
        and max(gap[i] for i in indices) < -least
        and max(reach[i] for i in indices) > 0.0
    )


# -- Encounters of shapes, and times of contact events -------------------------------------------------------

# -- Times at which an event of a contact happened in a run --------------------------------------------------

_SLIDES = (SLIDING, SLIDING_UNDER)
_JUMPS = (REASONS[Reason.INPUT_JUMP], REASONS[Reason.SAMPLE])


def event_times(model: RunModel, transitions: Sequence[Transition], contacts: Sequence[str], word: str) -> Floats:
    """Return the times of an event of one of some contacts, shape (n,), s.

    An event happens at a transition at which the contact's state changes accordingly; a rebounding contact closes
    without such a change, by its guard or by a jump, and leaving a face is the event of a guard.  Feature transitions
    (handovers) are no events. ``transitions``: of the run, in order; ``contacts``: feature pairs of one entry of the
    model count as one contact; ``word``: the event as in model files.
    """
    states = dict(zip(model.modes, (chart.states for chart in model.charts), strict=True))
    infos = [(k, contact) for k, contact in enumerate(model.contacts) if contact.name in contacts]
    guards = {f"{info.name} {info.contact_law.verb(event)}" for info in model.contacts for event in VERBS}
    return np.array(
        [
            item.time
            for item in transitions
            if not item.is_handover
            and any(
                _happens(info, word, states[item.source][k], states[item.target][k], item, guards) for k, info in infos
            )
        ]
    )


def event_mask(
    contacts: Sequence[ContactInfo],
    chosen: Sequence[str],
    word: str,
    found: TransitionArrays,
    states: Codes,
    owners: Sequence[str],
    guard_name: Callable[[Event, int], str],
) -> Booleans:
    """Return at which transitions an event of one of some contacts happens, handovers not told from others.

    ``contacts``: all of the mechanism; ``chosen``, ``word``: as ``contacts`` and ``word`` of :func:`event_times`;
    ``states``, int8 array, shape (n_modes, n_contacts); ``owners``: of each constraint row, the contact or constraint
    to which it belongs; ``guard_name``: name of a guard, by its event and subject
    (:func:`fsm_dyn.run.transitions.guard_name`). The result has the shape (n,).
    """
    happens = np.zeros(len(found), dtype=np.bool_)
    present = np.arange(found.event.shape[1]) < found.fired[:, None]
    jump = ((found.written >= 0) | np.isin(found.reason, [Reason.INPUT_JUMP, Reason.SAMPLE])) & ~(
        present & (found.event != Event.TRANSITION)
    ).any(axis=1)
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
                struck = impulsive & (contact.contact_law.rigid and contact.normal_row >= 0)
                if struck.any():
                    struck &= found.impulse[:, contact.normal_row] != 0.0
                happens |= ((before == FREE) & (after != FREE)) | (fired & impulsive)
                happens |= (before == FREE) & (after == FREE) & struck & jump
            case Event.OPENS:
                happens |= ((before != FREE) & (after == FREE)) | (fired & contact.bilateral)
            case Event.STICKS:
                happens |= np.isin(before, _SLIDES) & (after == HELD)
            case Event.SLIDES:
                happens |= (before == HELD) & np.isin(after, _SLIDES)
            case _:
                happens |= fired
    return happens


def _happens(contact: ContactInfo, word: str, before: int, after: int, item: Transition, guards: Set[str]) -> bool:
    law = contact.contact_law
    event = law.event_named(word)
    fired = any(text == f"{contact.name} {law.verb(event)}" for text, _, _ in item.fired)
    match event:
        case Event.CLOSES:
            impulsive = contact.name in item.impulse
            jump = item.written >= 0 or item.cause.startswith(_JUMPS)
            struck = impulsive and contact.contact_law.rigid and item.impulse[contact.name][0] != 0.0
            by_jump = struck and before == after == FREE and jump and guards.isdisjoint(text for text, *_ in item.fired)
            return (before == FREE and after != FREE) or (fired and impulsive) or by_jump
        case Event.OPENS:
            return (before != FREE and after == FREE) or (fired and contact.bilateral)
        case Event.STICKS:
            return before in _SLIDES and after == HELD
        case Event.SLIDES:
            return before == HELD and after in _SLIDES
    return fired


# -- Pairs of shapes in a run --------------------------------------------------------------------------------
#
# Pairs of shapes in a run: when they first came near, when they touched, how near they came.

_AT_ONCE = 2**20  # gaps evaluated together
_BEHIND = 10.0 * (Tolerances().scaled().gap or 0.0)  # a gap below this is no longer one (m)
_CLOSES = "closes"  # the event of model files


@dataclass(frozen=True)
class Encounter:
    """Two shapes of a contact in a run.

    Attributes
    ----------
    pair : str
        Entry of the model, ``a_b`` for one that ``between: all`` stands for.
    near : float or None
        Time of the first row in which the shapes were within the distance asked for, s; None if they never were.
    touched : float or None
        Time at which they first came to touch, s: 0 or later; None if they never did.
    count : int
        How often they came to touch.
    least : float
        Smallest gap over the rows of the run, m.  Of polygons it is the largest gap of a corner to all faces, which
        near another corner is less than the distance.
    least_at : float
        Its time, s.
    """

    pair: str
    near: float | None
    touched: float | None
    count: int
    least: float
    least_at: float


def encounters(
    model: RunModel, rows: Samples, transitions: Sequence[Transition], near: float = 0.0
) -> tuple[Encounter, ...]:
    """Return the encounters of all pairs of shapes of a run: the touching ones, in order of time, then the nearest.

    ``near``: gap up to which two shapes are near, m.
    """
    names = [name for name, members in model.contact_entries.items() if members]
    gaps = _gaps(model, rows, names)
    found = []
    for name, gap in zip(names, gaps.T, strict=True):
        times = _touches(model, rows, transitions, name)
        within = np.flatnonzero(gap <= near)
        least = int(np.argmin(gap))
        found.append(
            Encounter(
                name,
                float(rows.t[within[0]]) if len(within) else None,
                float(times[0]) if len(times) else None,
                len(times),
                float(gap[least]),
                float(rows.t[least]),
            )
        )
    return tuple(sorted(found, key=lambda item: (np.inf if item.touched is None else item.touched, item.least)))


def touched_pairs(model: RunModel, transitions: Sequence[Transition]) -> dict[str, Floats]:
    """Return the times of touching of pairs of shapes, s, in the order in which they first did."""
    states = {name: np.array(chart.states) for name, chart in zip(model.modes, model.charts, strict=True)}
    names = {name: None for item in transitions for name in item.impulse}
    for source, target in dict.fromkeys((item.source, item.target) for item in transitions):
        names |= dict.fromkeys(model.contacts[k].name for k in np.flatnonzero(states[source] != states[target]))
    owner = {member: pair for pair, members in model.contact_entries.items() for member in members}
    pairs = dict.fromkeys(owner[name] for name in names if name in owner)
    times = {pair: event_times(model, transitions, model.contact_entries[pair], _CLOSES) for pair in pairs}
    return dict(sorted(((pair, at) for pair, at in times.items() if len(at)), key=lambda item: (item[1][0], item[0])))


def _touches(model: RunModel, rows: Samples, transitions: Sequence[Transition], name: str) -> list[float]:
    """Return when a pair came to touch, its start included, s."""
    members = model.contact_entries[name]
    numbers = [k for k, contact in enumerate(model.contacts) if contact.name in members]
    start = any(model.charts[int(rows.mode[0])].states[k] for k in numbers)
    times = event_times(model, transitions, members, _CLOSES).tolist()
    first = float(rows.t[0])
    return [*([first] if start and first not in times else []), *times]


def _gaps(model: RunModel, rows: Samples, names: Sequence[str]) -> Floats:
    """Return the gap of each pair in each row, shape (n_rows, n_pairs), m; infinite if no feature faces another."""
    numbers = {contact.name: k for k, contact in enumerate(model.contacts)}
    members = [[numbers[name] for name in model.contact_entries[pair]] for pair in names]
    states = np.array([chart.states for chart in model.charts])
    gaps = np.full((len(rows.t), len(names)), np.inf)
    step = max(1, _AT_ONCE // max(1, len(model.rows)))
    for first in range(0, len(rows.t), step):
        part = slice(first, first + step)
        terms = model.terms.evaluate(
            rows.t[part], rows.x[part], rows.context[part], only={"residual": None, "reach": None}
        )
        for column, own in enumerate(members):
            closed = states[rows.mode[part]][:, own] != FREE
            gaps[part, column] = _gap_of_pair(model.contacts, own, terms["residual"], terms["reach"], closed)
    return gaps


def _gap_of_pair(
    contacts: Sequence[ContactInfo], own: Sequence[int], residual: Floats, reach: Floats, closed: Booleans
) -> Floats:
    """Return the smallest gap of features that face each other; ``closed`` (n, len(own)): the contact is not open."""
    corners: dict[int, Floats] = {}
    for column, k in enumerate(own):
        gap = residual[:, contacts[k].normal_row]
        if contacts[k].outlined:  # the distance of a corner from a convex polygon is at least the largest of these
            first = contacts[k].outline
            corners[first] = np.maximum(corners.get(first, gap), gap)
        else:
            # behind a face whose contact is open there is another face, or nothing
            faces = (reach[:, k] >= 0.0) & ((gap >= -_BEHIND) | closed[:, column])
            corners[-1 - k] = np.where(faces, gap, np.inf)
    smallest: Floats = np.min(list(corners.values()), axis=0)
    return smallest
