"""Transitions of a run with their causes, and change points passed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.core.arrays import Codes, Floats
from fsm_dyn.core.errors import InputError, optional_library
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.draw.svg import html_table, table
from fsm_dyn.language.laws import FREE, SLIDING, Law
from fsm_dyn.run.loop_state import TransitionArrays
from fsm_dyn.run.outcomes import CHOSEN, read_candidates
from fsm_dyn.runtime.abi import Event, PassageColumn, Reason

if TYPE_CHECKING:
    import pandas
    import xarray


# -- Transition of a run, with its cause ---------------------------------------------------------------------

_HEADINGS = ("time, s", "from", "to", "cause")


@dataclass(frozen=True, repr=False)
class Transition:
    """One transition: a change of mode, or a feature transition (handover) within one mode of the labels.

    Attributes
    ----------
    time : float
        When, s.
    source, target : str
        Names of the modes before and after.
    cause : str
        The contact and its event, or the condition the user wrote.
    impulse : mapping of str to ndarray
        Impulse by contact or constraint, one value per row (normal before tangent), N·s or N·m·s; empty without one.
    energy_before, energy_after : float
        Kinetic and potential energy together, J.
    u_before, u_after : ndarray, shape (n_u,)
    consistent_count : int
        How many combinations of contact states agreed with the forces; above 1 the documented preference chose.
    guard_value, slope : float
        Value and rate of the fired guard, just before; nan if none did.
    selection : tuple of str
        How the candidate was selected, then each candidate examined, with the contact law it violates.
    fired : tuple of (str, float, float)
        All guards fired together: event, value and slope just before, of each.
    source_label, target_label : str
        Labels of the modes before and after for the user; empty if equal to their names.
    written : int
        Number of the user-defined transition that it is, -1 for none.
    """

    time: float
    source: str
    target: str
    cause: str
    impulse: Mapping[str, Floats]
    energy_before: float
    energy_after: float
    u_before: Floats
    u_after: Floats
    consistent_count: int = 1
    guard_value: float = float("nan")
    slope: float = float("nan")
    selection: tuple[str, ...] = ()
    fired: tuple[tuple[str, float, float], ...] = ()
    source_label: str = ""
    target_label: str = ""
    written: int = -1
    find_pin_impulse: Callable[[Transition], Mapping[str, Floats]] | None = field(default=None, compare=False)

    @cached_property
    def pin_impulse(self) -> Mapping[str, Floats]:
        """Impulse, then its moment about the place, in every connection by name, shape (6,), N·s and N·m·s.

        Derived when they are first asked for (docs/how_to/loads.md); components in N, of the parent on the child.

        Raises
        ------
        InputError
            It is not a transition of a run with its model.
        """
        if self.find_pin_impulse is None:
            raise InputError("impulses in connections need the run", found="a transition without its run",
                             remedy="take it from run.transitions")  # fmt: skip
        return self.find_pin_impulse(self)

    @property
    def is_handover(self) -> bool:
        """Whether it is a feature transition (handover): other features bear the same contact, without an impulse.

        The mode for people is the same before and after; ``source`` and ``target`` differ.
        """
        same = bool(self.source_label) and self.source_label == self.target_label
        return same and self.source != self.target and not self.impulse

    @property
    def change(self) -> str:
        """The modes before and after, as people read them; of a handover the one mode it happens in."""
        if self.is_handover:
            return self.source_label
        return f"{self.source_label or self.source} → {self.target_label or self.target}"

    @property
    def energy_lost(self) -> float:
        """Energy taken out of the motion by the transition, J."""
        return self.energy_before - self.energy_after

    def __repr__(self) -> str:
        return f"<Transition {self}>"

    def __str__(self) -> str:
        text = f"{self.time:.6f} s  {self.change}  {self.cause}"
        impulses = ", ".join(f"{name} {_numbers(values)}" for name, values in self.impulse.items())
        if impulses:
            text += f"  (impulse {impulses}; energy {-self.energy_lost:+.3g} J)"
        return text


class Transitions(tuple[Transition, ...]):
    """The transitions of a run, in order of time; printed, and shown in a notebook, as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return table(_HEADINGS, self._cells()) if self else "no transitions"

    def _repr_html_(self) -> str:
        return html_table(_HEADINGS, self._cells())

    def to_pandas(self) -> pandas.DataFrame:
        """Return them as a ``pandas.DataFrame``: time (s), source, target, cause, energies before and after (J).

        Raises
        ------
        InputError
            If pandas is not installed (the extra ``analysis``).
        """
        columns = transition_fields(self)
        frame: pandas.DataFrame = optional_library("pandas").DataFrame(
            {field: values for field, (values, _, _) in columns.items()}
        )
        frame.attrs["units"] = {field: unit for field, (_, unit, _) in columns.items() if unit}
        return frame

    def to_xarray(self) -> xarray.Dataset:
        """Return them as an ``xarray.Dataset`` along ``time``, s, with the same variables; times may repeat.

        ``run.to_xarray().sel(time=transitions.time, method="nearest")`` gives the rows just after them.

        Raises
        ------
        InputError
            If xarray is not installed (the extra ``analysis``).
        """
        columns = {
            field: ("time", values, {"long_name": text, **({"units": unit} if unit else {})})
            for field, (values, unit, text) in transition_fields(self).items()
        }
        found: xarray.Dataset = optional_library("xarray").Dataset(columns).set_coords("time")
        return found

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{item.time:.6f}",
                item.source_label or item.source,
                "(handover)" if item.is_handover else item.target_label or item.target,
                item.cause,
            )
            for item in self
        ]


def transition_fields(transitions: Sequence[Transition]) -> dict[str, tuple[NDArray[Any], str, str]]:
    """Return columns of transitions by name: values, unit (empty: none), meaning."""
    numbers = {"time": ("s", "time of the transition"), "energy_before": ("J", "energy before the transition"),
               "energy_after": ("J", "energy after the transition")}  # fmt: skip
    texts = {"source": "mode before", "target": "mode after", "cause": "cause of the transition"}
    found: dict[str, tuple[NDArray[Any], str, str]] = {}
    for name in ("time", "source", "target", "cause", "energy_before", "energy_after"):
        values = [getattr(item, name) for item in transitions]
        if name in numbers:
            found[name] = (np.array(values, dtype=np.float64), *numbers[name])
        else:
            found[name] = (np.array(values, dtype=str), "", texts[name])
    return found


def counted(transitions: Sequence[Transition]) -> str:
    """Return how many changes of mode there are, and apart from them how many handovers: ``3 transitions``."""
    handovers = sum(item.is_handover for item in transitions)
    changes = len(transitions) - handovers
    text = f"{changes} transition{'s' if changes != 1 else ''}"
    return f"{text}, {handovers} handover{'s' if handovers != 1 else ''}" if handovers else text


def _numbers(values: Floats) -> str:
    return " / ".join(f"{value:.3g}" for value in np.atleast_1d(values))


# -- Causes of transitions as text ---------------------------------------------------------------------------
#
# Causes of transitions as text: fired guards, changed contacts, selection of the candidate.

States: TypeAlias = Sequence[Sequence[int]] | Codes  # contact states of the modes by number

#: First words of the cause of a transition without a guard, by its reason.
REASONS: Final[Mapping[int, str]] = {
    Reason.START: "start",
    Reason.INPUT_JUMP: "input jump",
    Reason.SAMPLE: "sample of a controller",
    Reason.INCONSISTENT_ROWS: "redundant constraints became inconsistent",
    Reason.ZENO: "Zeno time reached",
}


def transition_cause(automaton: Automaton, found: TransitionArrays, states: States, number: int, labels: Labels) -> str:
    """Return the cause of a run's transition ``number``; ``states`` are the contact states of the modes by number.

    First the trigger: the fired guards, the condition of the model, the start, a jump of an input, or a handover
    from one feature to another.  Then, after a semicolon, the other changed contacts.
    """
    before, after = (np.asarray(states[at[number]], np.int8).tolist() for at in (found.source, found.target))
    reason = int(found.reason[number])
    handovers = _handovers(automaton, found, labels, before, after, number)
    told: list[int] = []
    parts: list[str] = []
    for k in range(int(found.fired[number])):
        event, subject = Event(int(found.event[number, k])), int(found.contact[number, k])
        pair = next((p for p in handovers if subject in p), None)
        if event is Event.TRANSITION:
            parts.append(_written(automaton, subject))
        elif subject in told:
            continue
        elif pair is not None and event in (Event.LEAVES, Event.CLOSES):
            told += pair
            parts.append(handovers[pair])
        else:
            if event is Event.CLOSES and _beyond(automaton, found, number, subject, after[subject]):
                continue
            told.append(subject)
            parts.append(_moved(automaton, labels, subject, event, before[subject], after[subject]))
    written = int(found.written[number])
    if written >= 0 and _written(automaton, written) not in parts and not (parts and _is_event(automaton, written)):
        parts.append(_written(automaton, written))
    if reason in REASONS:
        parts.insert(0, REASONS[reason])
    along = []
    for pair, words in handovers.items():
        if pair[1] not in told:
            told += pair
            along.append(words)
    along += _changed(automaton, before, after, told)
    along += [_closed_and_opened(automaton.contacts[k]) for k in _rebounds(automaton, found, number, before, after)]
    return ", ".join(parts) + ("; " + ", ".join(along) if along else "")


def fired(automaton: Automaton, found: TransitionArrays, number: int) -> tuple[tuple[str, float, float], ...]:
    """Return the fired guards of transition ``number``: event, value and slope just before, of each."""
    guards = []
    for k in range(int(found.fired[number])):
        event, subject = Event(int(found.event[number, k])), int(found.contact[number, k])
        text = guard_name(automaton, event, subject)
        guards.append((text, float(found.value[number, k]), float(found.slope[number, k])))
    return tuple(guards)


def guard_name(automaton: Automaton, event: Event, subject: int) -> str:
    """Return the name of a guard, by its event and the number of its contact or user-defined transition."""
    if event is Event.TRANSITION:
        return automaton.user_transitions[subject].name
    return _announced(automaton.contacts[subject], event)


def selection_log(automaton: Automaton, found: TransitionArrays, number: int) -> tuple[str, ...]:
    """Return how the target of transition ``number`` was selected, then each candidate examined."""
    tried = int(found.candidates[number])
    candidates = read_candidates(found.log[number], tried)
    lines = [
        CHOSEN[int(found.chosen_by[number])],
        *(candidate.describe(automaton.contacts) for candidate in candidates),
    ]
    if tried > len(candidates):
        lines.append(f"and {tried - len(candidates)} more")
    return tuple(lines)


def cause_words(automaton: Automaton) -> dict[str, Any]:
    """Return the words of :func:`transition_cause` and :func:`fired`, for a page to join them.

    Of each contact: ``moved`` by event, state before and state after, ``announced`` by event, ``became`` by state, and
    ``beyond``, the normal row of one whose face ends, else -1, ``normal``, that of a rigid one, else -1, ``bounced``:
    closing and opening by a jump.  Of user-defined transitions: ``written`` and ``named``.
    """
    contacts = []
    moved = partial(_moved, automaton, automaton.labels)
    for k, contact in enumerate(automaton.contacts):
        codes, law = range(len(contact.states)), contact.contact_law
        known = [event for event in Event if event is not Event.TRANSITION]
        contacts.append(
            {
                "name": contact.name,
                "moved": {e.value: [[moved(k, e, a, b) for b in codes] for a in codes] for e in known},
                "announced": {e.value: _announced(contact, e) for e in known},
                "became": [f"{contact.name} {_became(law, state)}" for state in contact.states],
                "beyond": contact.normal_row if contact.bounded_face else -1,
                "normal": contact.normal_row if contact.contact_law.rigid else -1,
                "bounced": _closed_and_opened(contact),
            }
        )
    numbers = range(len(automaton.user_transitions))
    return {
        "contacts": contacts,
        "written": [_written(automaton, i) for i in numbers],
        "named": [automaton.user_transitions[i].name for i in numbers],
        "reasons": REASONS,
    }


def _is_event(automaton: Automaton, index: int) -> bool:
    """Whether a user-defined transition has no reason beyond the event of its contact."""
    spec = automaton.mechanism.transitions[index]
    return spec.on is not None and not spec.because


def _written(automaton: Automaton, index: int) -> str:
    """Return the reason in the model for its user-defined transition, or the condition itself."""
    return automaton.mechanism.transitions[index].because or automaton.user_transitions[index].name


def _moved(automaton: Automaton, labels: Labels, contact: int, event: Event, before: int, after: int) -> str:
    """Return the act of a contact with a fired guard; one guard can have several outcomes."""
    law, name = automaton.contacts[contact].contact_law, automaton.contacts[contact].name
    if event is Event.CLOSES and after == FREE and law.has_gap:
        return f"{name} {labels.impact_words(contact)}"
    if event is Event.CLOSES and before != FREE and law.rigid:  # it strikes at the start
        return f"{name} impacts and stays closed"
    if event is Event.OPENS and automaton.contacts[contact].bilateral:
        return f"{name} changes to its opposite face"
    if event is Event.OPENS and after != FREE:  # it stays, with others
        return f"the force of {name} fell to zero"
    if event is Event.STICKS and after == before == SLIDING:
        return f"{name} reverses its slip"
    if after not in {code for guard in law.guards if guard.event is event for code in guard.leads_to}:
        # other contacts changed in the same instant, and with them the outcome of this one
        became = f", {_became(law, automaton.contacts[contact].states[after])}" if after != before else ""
        return f"{name}: {law.sign(event)}{became}"
    return f"{name} {law.verb(event)} ({law.sign(event)})"


def _announced(contact: ContactInfo, event: Event) -> str:
    return f"{contact.name} {contact.contact_law.verb(event)}"


def _handovers(
    automaton: Automaton,
    found: TransitionArrays,
    labels: Labels,
    before: Sequence[int],
    after: Sequence[int],
    number: int,
) -> dict[tuple[int, int], str]:
    """Return the handovers between contacts, without an impulse and with a remaining normal force, as text."""
    opened = {
        int(found.contact[number, k])
        for k in range(int(found.fired[number]))
        if int(found.event[number, k]) == Event.OPENS
    }
    told = {}
    for old, new in labels.handed_over(before, after):
        rows = [automaton.contacts[k].normal_row for k in (old, new)]
        if old in opened or found.impulse[number, rows].any():
            continue
        contact, code = automaton.contacts[new], after[new]
        changed = code != before[old]
        told[old, new] = labels.passes_on(old, new) + (
            f" and {_became(contact.contact_law, contact.states[code])}" if changed else ""
        )
    return told


def _beyond(automaton: Automaton, found: TransitionArrays, number: int, contact: int, after: int) -> bool:
    """Whether a gap became zero beyond the end of its face, without an impulse."""
    info = automaton.contacts[contact]
    return info.bounded_face and after == FREE and not found.impulse[number, info.normal_row]


def _rebounds(
    automaton: Automaton, found: TransitionArrays, number: int, before: Sequence[int], after: Sequence[int]
) -> list[int]:
    """Return the open contacts that closed by a jump, without a contact's guard, and opened again by their impact."""
    events = found.event[number, : int(found.fired[number])]
    if not (events == Event.TRANSITION).all():
        return []
    closing = np.flatnonzero((np.asarray(before) == FREE) & (np.asarray(after) == FREE)).tolist()
    rows = [(k, automaton.contacts[k]) for k in closing] if found.impulse[number].any() else []
    return [
        k
        for k, info in rows
        if info.contact_law.rigid and info.normal_row >= 0 and found.impulse[number, info.normal_row]
    ]


def _closed_and_opened(contact: ContactInfo) -> str:
    return f"{contact.name} closes and opens"


def _changed(automaton: Automaton, before: Sequence[int], after: Sequence[int], told: Sequence[int]) -> list[str]:
    """Return the contacts with a change of state without a guard of their own, as text."""
    changed = np.flatnonzero(np.asarray(before) != np.asarray(after)).tolist()
    contacts = [(automaton.contacts[i], after[i]) for i in changed if i not in told]
    return [f"{contact.name} {_became(contact.contact_law, contact.states[code])}" for contact, code in contacts]


def _became(law: Law, state: str) -> str:
    return law.became.get(state, state)


# -- Change points passed by a run ---------------------------------------------------------------------------

TAKES_PART: Final = 0.3  # weight of a row, relative to the largest, from which on it is named


@dataclass(frozen=True)
class ChangePoint:
    """One passage through a change point: an event, not a transition, as the mode continues.

    Attributes
    ----------
    time : float
        When the constraints lose rank, s.
    mode : str
        The mode, which continues.
    rows : tuple of str
        Constraints and contacts whose rows become dependent; their forces grow without bound as 1 / (time - t).
    rank : int
        Number of independent constraint rows before and after.
    lost : int
        How many of them become dependent.
    error : float
        Estimated error of the step over the change point in units of its tolerance: above 1 if rounding does not allow
        less; 0 if the method gives no estimate.
    """

    time: float
    mode: str
    rows: tuple[str, ...]
    rank: int
    lost: int
    error: float

    def __str__(self) -> str:
        text = (
            f"{self.time:.6f} s  passes a change point: rank {self.rank} to {self.rank - self.lost}, "
            f"rows {', '.join(self.rows)}; branch kept (velocity continuous)"
        )
        return text + (f", crossing error {self.error:.2g} times its tolerance" if self.error > 0.0 else "")


def change_points_of(passages: Floats, rows: Sequence[str], modes: Sequence[str]) -> tuple[ChangePoint, ...]:
    """Return the passages of a run.

    ``passages``, float64 array, shape (n, PASSAGE_ROWS + n_rows): as the stepper wrote them; ``rows``, ``modes``: names
    of the constraint rows, and of the modes by number.
    """
    return tuple(
        ChangePoint(
            time=float(record[PassageColumn.TIME]),
            mode=modes[int(record[PassageColumn.MODE])],
            rows=rows_that_take_part(record[PassageColumn.ROWS :], rows),
            rank=int(record[PassageColumn.RANK]),
            lost=int(record[PassageColumn.LOST]),
            error=float(record[PassageColumn.ERROR]),
        )
        for record in passages
    )


def rows_that_take_part(weights: Floats, rows: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the rows whose weights count, without repetition."""
    least = TAKES_PART * max(float(weights.max(initial=0.0)), 1e-300)
    return tuple(dict.fromkeys(name for name, weight in zip(rows, weights, strict=True) if weight >= least))
