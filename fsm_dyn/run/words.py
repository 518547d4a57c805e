"""Words of a run: the names of contacts, and what happens as sentences of subject, verb and object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, cast

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language import expressions
from fsm_dyn.language.contacts import Contact, FeatureContact, GapContact
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.requirement import LONGEST_NAME, PartName
from fsm_dyn.language.shapes import Feature
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN
from fsm_dyn.run.transitions import REASONS, Transition, guard_name
from fsm_dyn.runtime.abi import Event, Reason

# -- Names, subjects and objects -------------------------------------------------------------------------------


_CONFIGURATIONS: Final = 8  # for finding fixed points and frames
_SPREAD: Final = 0.3  # m or rad, of these configurations
_TOLERANCE: Final = 1e-9
_STEP: Final = 1e-3  # m or rad, of one coordinate
_FACE: Final = re.compile(r"^(face)?(\d+)$")


@dataclass(frozen=True)
class Fixtures:
    """Points fixed in frames, found at several configurations."""

    # points, frames: names, those of the model and then those of N
    points: tuple[str, ...]
    frames: tuple[str, ...]
    positions: Floats  # shape (n, points, 3): m, at the configurations; then for each coordinate with it displaced
    rotations: Floats  # shape (n, frames, 3, 3)
    coordinates: tuple[str, ...]

    @classmethod
    def of(cls, rows: Samples) -> Fixtures | None:
        """Return the fixtures of the model of a run with these rows; None if the model is not known."""
        automaton = rows.model.automaton
        if automaton is None:
            return None
        n_q = len(automaton.terms.layout.q)
        chosen = np.linspace(0, len(rows) - 1, _CONFIGURATIONS).astype(np.int64)
        random = np.random.default_rng(20030818)
        x = rows.x[chosen].copy()
        x[1:, :n_q] += _SPREAD * random.uniform(-1.0, 1.0, (len(x) - 1, n_q))
        displaced = np.repeat(x[:1], n_q, axis=0)
        displaced[:, :n_q] += _STEP * np.eye(n_q)
        states = np.concatenate([x, displaced])
        for first in automaton.quaternions:
            norm = np.linalg.norm(states[:, first : first + 4], axis=1, keepdims=True)
            states[:, first : first + 4] /= np.maximum(norm, _TOLERANCE)
        context = np.repeat(rows.context[:1], len(states), axis=0)
        with np.errstate(all="ignore"):  # at random configurations
            out = automaton.geometry.evaluate(np.zeros(len(states)), states, context)
        count = len(states)
        positions = np.broadcast_to(out["points"], (count, len(automaton.point_names), 3))
        rotations = np.broadcast_to(out["frames"], (count, len(automaton.frame_names), 3, 3))
        return cls(
            (*automaton.point_names, ORIGIN),
            (*automaton.frame_names, NEWTONIAN),
            np.concatenate([positions, np.zeros((count, 1, 3))], axis=1),
            np.concatenate([rotations, np.broadcast_to(np.eye(3), (count, 1, 3, 3))], axis=1),
            automaton.terms.layout.q,
        )

    def relative(self, frame: str, point: str, other_frame: str, other_point: str) -> Floats:
        """Return place and rotation of one pose in another, shape (n, 12)."""
        one, other = (self.rotations[:, self.frames.index(name)] for name in (frame, other_frame))
        apart = self.positions[:, self.points.index(point)] - self.positions[:, self.points.index(other_point)]
        turn = np.einsum("nji,njk->nik", other, one)
        return np.concatenate([np.einsum("nji,nj->ni", other, apart), turn.reshape(len(turn), 9)], axis=1)

    def fixed(self, pose: Floats) -> bool:
        """Whether a relative pose is the same at all configurations."""
        return bool(np.isfinite(pose).all() and np.ptp(pose, axis=0).max() < _TOLERANCE * self.size)

    def moved_by(self, pose: Floats) -> tuple[str, ...]:
        """Return the coordinates of a relative pose."""
        changed = abs(pose[_CONFIGURATIONS:] - pose[0]).max(axis=1) > _TOLERANCE * self.size
        return tuple(name for name, moves in zip(self.coordinates, changed.tolist(), strict=True) if moves)

    @cached_property
    def size(self) -> float:
        """The extent of the points, m, or 1."""
        finite = self.positions[np.isfinite(self.positions)]
        return max(float(np.ptp(finite)) if len(finite) else 1.0, 1.0)


@dataclass(frozen=True)
class Sentence:
    """Subject and object of an act of a contact; ``body`` is the name of the subject's body."""

    subject: str
    object: str
    body: str = ""


class Words:
    """Words for the contacts of a run."""

    def __init__(self, rows: Samples) -> None:
        self.model = rows.model
        self._rows = rows
        automaton = self.model.automaton
        self.mechanism: Mechanism | None = None if automaton is None else automaton.mechanism
        self.names: Mapping[str, PartName] = {} if self.mechanism is None else self.mechanism.names

    @cached_property
    def entries(self) -> dict[str, list[int]]:
        """The numbers of the contacts of each entry of the model; a stop with two limits is two entries."""
        found: dict[str, list[int]] = {}
        for number, contact in enumerate(self.model.contacts):
            spec = self.spec(number)
            entry = getattr(spec, "entry", "") if spec is not None else ""
            found.setdefault(entry or contact.name, []).append(number)
        return found

    @cached_property
    def entry_of(self) -> tuple[str, ...]:
        """The entry of each contact."""
        found = {number: entry for entry, numbers in self.entries.items() for number in numbers}
        return tuple(found[number] for number in range(len(self.model.contacts)))

    def spec(self, number: int) -> Contact | None:
        """Return a contact of the model; None if the model is not known."""
        return None if self.mechanism is None else self.mechanism.contacts.get(self.model.contacts[number].name)

    def entry(self, entry: str) -> str:
        """Return the name of an entry."""
        named = self._named(entry)
        if named is not None and named.text:
            return named.text
        contact = self.spec(self.entries[entry][0])
        stop = contact.stop if isinstance(contact, GapContact) and contact.stop else ""
        given = self.names.get(stop)
        if given is not None and given.text:
            side = entry.removeprefix(stop).strip("_")
            return f"{given.text} {side}".strip()
        if isinstance(contact, FeatureContact) and entry == "_".join(feature.shape for feature in contact.features):
            sentence = self.sentence(self.entries[entry][0])  # a pair of a list of shapes
            text = f"{sentence.subject} on {sentence.object}"
            return text if len(text) <= LONGEST_NAME else plain(entry)
        return plain(entry)

    def feature(self, number: int) -> str:
        """Return the name of a feature pair of an entry."""
        contact, entry = self.model.contacts[number].name, self.entry_of[number]
        named = self.names.get(contact)
        if named is not None and named.text:
            return named.text
        rest = contact.removeprefix(f"{entry}_") if contact != entry else ""
        match = _FACE.match(rest)
        if match:
            rest = f"{'face' if match[1] else 'corner'} {match[2]}"
        return f"{self.entry(entry)} {plain(rest)}".strip()

    def sentence(self, number: int) -> Sentence:
        """Return subject and object of an act of a contact: the moving body, and its partner."""
        if number not in self._sentences:
            self._sentences[number] = self._sentence(number)
        return self._sentences[number]

    @cached_property
    def _sentences(self) -> dict[int, Sentence]:
        return {}

    def word(self, name: str) -> str:
        """Return the name of a body, shape or quantity."""
        named = self.names.get(name)
        return named.text if named is not None and named.text else plain(name)

    def _named(self, entry: str) -> PartName | None:
        return self.names.get(entry)

    def _sentence(self, number: int) -> Sentence:
        found = self._inferred(number)
        contact, entry = self.model.contacts[number].name, self.entry_of[number]
        spec = self.spec(number)
        stop = spec.stop if isinstance(spec, GapContact) else ""
        for part in (stop, entry, contact):
            named = self.names.get(part)
            if named is not None:
                found = replace(found, subject=named.subject or found.subject, object=named.object or found.object)
        return found

    def _inferred(self, number: int) -> Sentence:
        contact, entry = self.spec(number), self.entry_of[number]
        if isinstance(contact, FeatureContact):
            owners = [self._owner(feature) for feature in contact.features]
            words = [self._part(owner, feature) for owner, feature in zip(owners, contact.features, strict=True)]
            if owners[0] == NEWTONIAN:
                words.reverse()
                owners.reverse()
            return Sentence(words[0], words[1] if words[1] != words[0] else plain(entry), owners[0])
        body, other = self._moving(contact)
        subject = self.word(body) if body else "it"
        if isinstance(contact, GapContact) and contact.stop:
            return Sentence(subject, "its stop" if not contact.limit else f"its {contact.limit} stop", body)
        by_gap = contact is not None and contact.gap is not None
        return Sentence(subject, self.word(other) if other and by_gap else self.entry(entry), body)

    def _part(self, owner: str, feature: Feature) -> str:
        """Return the name of a feature, if it has one, or of its body; by its shape for N."""
        shape = None if self.mechanism is None else self.mechanism.shapes.get(feature.shape)
        given = "" if shape is None else shape.name_of(feature.part, feature.index)
        if given:
            return plain(given)
        if owner == NEWTONIAN:
            return self.word(feature.shape)
        return self.word(owner)

    @cached_property
    def _fixtures(self) -> Fixtures | None:
        return Fixtures.of(self._rows)

    def _owner(self, feature: Feature) -> str:
        """Return the body of a feature, or N."""
        mechanism, fixtures = self.mechanism, self._fixtures
        if mechanism is None or fixtures is None:
            return NEWTONIAN
        if feature.part == "point":
            frame, point = None, feature.shape
        else:
            shape = mechanism.shapes[feature.shape]
            frame, point = shape.frame, shape.origin
        if point not in fixtures.points:
            return NEWTONIAN
        for name, body in mechanism.bodies.items():
            own = body.frame or NEWTONIAN
            pose = fixtures.relative(frame or own, point, own, body.center)
            if fixtures.fixed(pose if frame is not None else pose[:, :3]):
                return str(name)
        return NEWTONIAN

    def _moving(self, contact: Contact | None) -> tuple[str, str]:
        """Return the body whose motion a gap or slip is, and the body against which it moves, empty for N.

        The pair has a relative pose depending on the coordinates of the gap or slip and on the fewest others.
        """
        mechanism, fixtures = self.mechanism, self._fixtures
        if mechanism is None or fixtures is None or contact is None:
            return "", ""
        used = {
            name for text in (contact.gap, contact.slip) if text is not None
            for name in free_names(expressions.parse(text))
        }  # fmt: skip
        rates = {name: text.text for name, text in mechanism.speeds.items()}
        wanted = {q for q in fixtures.coordinates if q in used or any(f"rate({q})" in rates.get(s, "") for s in used)}
        poses = {str(name): (body.frame or NEWTONIAN, body.center) for name, body in mechanism.bodies.items()}
        ground = (NEWTONIAN, ORIGIN)
        for point in used & set(fixtures.points):
            wanted |= set(fixtures.moved_by(fixtures.relative(NEWTONIAN, point, *ground)[:, :3]))
        reach = {name: len(fixtures.moved_by(fixtures.relative(*pose, *ground))) for name, pose in poses.items()}
        found = []
        for order, (name, pose) in enumerate(poses.items()):
            for other, against in {"": ground, **{n: p for n, p in poses.items() if n != name}}.items():
                moved = set(fixtures.moved_by(fixtures.relative(*pose, *against)))
                if moved & wanted or not wanted:
                    found.append((len(wanted - moved), len(moved - wanted), bool(other), -reach[name], order, other))
        if not found:
            return next(iter(poses)), ""
        best = min(found)
        return list(poses)[best[4]], best[5]


def plain(name: str) -> str:
    """Return a name as words."""
    return name.replace("_", " ")


@dataclass(frozen=True)
class _Start:
    """Instead of the rows of a run its first state: enough for words."""

    model: _Start | None
    automaton: Automaton
    contacts: Sequence[ContactInfo]
    x: Floats
    context: Floats

    def __len__(self) -> int:
        return len(self.x)


def words_at(automaton: Automaton, x: Floats, context: Floats) -> Words:
    """Return the words of a model of which there is no run yet.

    ``x``, ``context``, shapes (n_x,) and (n_c,): a state and its context, SI.
    """
    model = _Start(None, automaton, automaton.contacts, x[None], context[None])
    return Words(cast(Samples, replace(model, model=model)))


# -- States of the entries in the modes of a run -------------------------------------------------------------

OPEN: Final = "open"
STICK: Final = "stick"
ENGAGED: Final = "engaged"
_SLIDES: Final = ("slide", "slide_opposite")


class EntryStates:
    """States of the entries of contacts in the modes of a run."""

    def __init__(self, words: Words) -> None:
        self.words = words
        model: RunModel = words.model
        self.names = tuple(words.entries)
        #: By entry, the state in each mode: of a sticking pair, else of the first one not open.
        self.states = {
            entry: tuple(_state([state_word(model, k, chart.states[k]) for k in numbers]) for chart in model.charts)
            for entry, numbers in words.entries.items()
        }

    def closed(self, entry: str) -> Booleans:
        """Return in which modes an entry is not open, shape (modes,)."""
        return np.array([state != OPEN for state in self.states[entry]], dtype=np.bool_)

    def touching(self, mode: int, entry: str) -> tuple[int, ...]:
        """Return the numbers of an entry's pairs not open in a mode."""
        model = self.words.model
        states = model.charts[mode].states
        return tuple(k for k in self.words.entries[entry] if state_word(model, k, states[k]) != OPEN)


def state_word(model: RunModel, contact: int, code: int) -> str:
    """Return the state of a contact by its code; a released lock is open."""
    return OPEN if code == FREE else model.contacts[contact].states[code]


def mode_words(words: Words, states: Sequence[int]) -> str:
    """Return the touching contacts of a mode by their names: "striker on bolt slides, bolt out"."""
    found = []
    for entry, numbers in words.entries.items():
        state = _state([state_word(words.model, number, int(states[number])) for number in numbers])
        if state != OPEN:
            found.append(f"{words.entry(entry)}{' slides' if slides(state) else ''}")
    return ", ".join(found) or "nothing touches"


def _state(states: Sequence[str]) -> str:
    touching = [state for state in states if state != OPEN]
    return STICK if STICK in touching else touching[0] if touching else OPEN


def slides(state: str) -> bool:
    """Whether a state is one of sliding."""
    return state in _SLIDES


# -- Happenings as sentences -----------------------------------------------------------------------------------


BURST: Final = 20e-6  # s: of transitions nearer to each other the first is the cause
_INPUT: Final = 1e-6  # of the largest value of an input: smaller jumps do not count
_JUMP: Final = REASONS[Reason.INPUT_JUMP]
_SAMPLE: Final = REASONS[Reason.SAMPLE]
_START: Final = REASONS[Reason.START]
_ZENO: Final = REASONS[Reason.ZENO]


@dataclass(frozen=True)
class Act:
    """Act of one contact at a transition; ``verb`` is empty for an act not reported.

    ``contact`` is its number, ``impact`` whether its normal force had an impulse.
    """

    contact: int
    verb: str
    impact: bool = False


@dataclass(frozen=True)
class Happening:
    """One happening, or successive impacts of one contact.

    Attributes
    ----------
    time : float
        Of the first transition, s.
    text : str
        A sentence: subject, verb, object.
    count : int
        Number of its impacts, or 0.
    energy_lost : float
        By all of them, J.
    contacts : tuple of int
        Numbers of the contacts involved, the subject of the sentence first.
    transitions : tuple of int
        Numbers of its transitions.
    end : float
        Time of the last of them, s.
    """

    time: float
    text: str
    count: int
    energy_lost: float
    contacts: tuple[int, ...]
    transitions: tuple[int, ...]
    end: float


def sentence_of(words: Words, contact: int, verb: str) -> str:
    """Return an act of a contact as a sentence: "bolt meets striker"."""
    sentence = words.sentence(contact)
    if verb == "meets" and sentence.object.endswith("stop"):
        verb = "reaches"
    return f"{sentence.subject} {verb} {sentence.object}"


_GUARD_VERBS: Final[Mapping[Event, str]] = {
    Event.CLOSES: "meets", Event.OPENS: "leaves", Event.SLIDES: "slips on", Event.STICKS: "grips",
    Event.LEAVES: "slides off",
}  # fmt: skip


def guard_sentence(words: Words, automaton: Automaton, event: Event, contact: int, impact: bool = False) -> str:
    """Return the event of a contact's guard as a sentence.

    ``event``: of a contact, not of a user-defined transition; ``contact``: its number; ``impact``: whether it had an
    impulse.
    """
    law = automaton.contacts[contact].contact_law
    verb = law.verb(event) if event in law.verbs else "strikes" if impact else _GUARD_VERBS[event]
    return sentence_of(words, contact, verb)


class GuardWords:
    """Sentences about transitions of a live run, from the guards that fired."""

    def __init__(self, words: Words, automaton: Automaton) -> None:
        self._words, self._automaton = words, automaton
        contacts = range(len(automaton.contacts))
        self._events = {
            guard_name(automaton, event, number): (event, number) for event in _GUARD_VERBS for number in contacts
        }

    def cause(self, item: Transition) -> str:
        """Return the first fired guard of a contact as a sentence; without one the cause of the transition."""
        known = next((self._events[name] for name, *_ in item.fired if name in self._events), None)
        if known is None:
            return item.cause
        event, contact = known
        impulse = item.impulse.get(self._automaton.contacts[contact].name)
        impact = impulse is not None and bool(np.atleast_1d(impulse)[0] != 0.0)
        return guard_sentence(self._words, self._automaton, event, contact, impact)


class Sentences:
    """Sentences about the transitions of a run.

    Parameters
    ----------
    words : Words
    rows : Samples
        Of the run.
    transitions : sequence of Transition
    """

    def __init__(
        self,
        words: Words,
        rows: Samples,
        transitions: Sequence[Transition],
    ) -> None:
        self.words, self.model, self.transitions = words, words.model, transitions
        self._rows = rows
        model = self.model
        self._states = dict(zip(model.modes, (chart.states for chart in model.charts), strict=True))
        self._events: dict[str, tuple[int, Event]] = {}
        if model.automaton is not None:
            for number in range(len(model.contacts)):
                for event in Event:
                    if event is not Event.TRANSITION:
                        name = guard_name(model.automaton, event, number)
                        self._events.setdefault(name, (number, event))
        self.acts = [list(self._acts(item)) for item in transitions]

    # -- Acts of contacts at one transition --------------------------------------------------------------------

    def _acts(self, item: Transition) -> Iterator[Act]:
        """Yield the acts of contacts: those with fired guards first."""
        before, after = self._states[item.source], self._states[item.target]
        fired = dict(self._events[text] for text, *_ in item.fired if text in self._events)
        order = [*fired, *(k for k in range(len(before)) if k not in fired)]
        entries = self.words.entry_of
        # the impulse of a contact taking over from another has the number of the other
        bare = bool(item.impulse) and not any(self._has_impact(item, number) for number in fired)
        for number in order:
            old, new = (state_word(self.model, number, int(codes[number])) for codes in (before, after))
            closes = bare and fired.get(number) is Event.CLOSES
            impact = self._has_impact(item, number) or (closes and old == new == OPEN)
            by_jump = not fired and old == new == OPEN
            if old == new and not (impact and (number in fired or by_jump)):
                continue
            entry = entries[number]
            pairs = [k for k in self.words.entries[entry] if k != number]
            if new != OPEN and old == OPEN and any(before[k] and not after[k] for k in pairs) and not impact:
                yield Act(number, "passes to")
            elif new == OPEN and old != OPEN and any(after[k] and not before[k] for k in pairs):
                continue
            else:
                yield Act(number, self._verb(old, new, fired.get(number), impact), impact)

    def _has_impact(self, item: Transition, number: int) -> bool:
        """Whether the normal force of a contact, or the force of one without, had an impulse."""
        values = item.impulse.get(self.model.contacts[number].name)
        return values is not None and bool(np.atleast_1d(values)[0] != 0.0)

    @staticmethod
    def _verb(old: str, new: str, event: Event | None, impact: bool) -> str:
        if old == OPEN and new == OPEN:
            return "bounces on"
        if ENGAGED in (old, new):
            return "engages" if new == ENGAGED else "releases"
        if old == OPEN:
            return "strikes" if impact else "meets"
        if new == OPEN:
            return "slides off" if event is Event.LEAVES else "leaves"
        if new == STICK:
            return "grips"
        if old == STICK:
            return "slips on"
        return "" if slides(old) and slides(new) and not impact else "strikes" if impact else ""

    def text_of(self, act: Act) -> str:
        """Return an act as a sentence; empty for one not reported."""
        if not act.verb:
            return ""
        if act.verb == "passes to":
            return f"contact passes to {self.words.feature(act.contact)}"
        return sentence_of(self.words, act.contact, act.verb)

    # -- One transition ----------------------------------------------------------------------------------------

    def cause(self, number: int) -> str:
        """Return the cause of a transition as a sentence."""
        item = self.transitions[number]
        trigger = item.cause.split(";")[0]
        first = trigger.split(", ")[0]
        if first == _JUMP:
            return self._jump(item.time)
        if first == _SAMPLE:
            return self._jump(item.time, "controller samples")
        if first == _START:
            return "start"
        told = [text for act in self.acts[number] if (text := self.text_of(act))]
        if not item.fired and first != _ZENO:
            return first if not told else told[0]
        written = [text for text, *_ in item.fired if text not in self._events]
        if written:
            return self._written(written[0], trigger)
        return told[0] if told else plain(first)

    def _written(self, name: str, trigger: str) -> str:
        """Return the reason of a user-defined transition, as its model gives it."""
        automaton = self.model.automaton
        if automaton is not None:
            for spec, own in zip(automaton.mechanism.transitions, automaton.user_transitions, strict=False):
                if own.name == name and spec.because:
                    return spec.because
        return trigger

    def _jump(self, time: float, otherwise: str = "an input jumps") -> str:
        """Return the jumps of inputs at a time: "finger 0 → 10 N"."""
        t = self._rows.t
        ends = int(np.searchsorted(t, time, side="left")), int(np.searchsorted(t, time, side="right")) - 1
        if not 0 <= ends[0] < len(t) or not 0 <= ends[1] < len(t):
            return otherwise
        told = []
        for name, values in self._rows.inputs.items():
            old, new = float(values[ends[0]]), float(values[ends[1]])
            if ends[0] == ends[1]:
                old = float(values[max(ends[0] - 1, 0)])
            if abs(new - old) > _INPUT * max(float(np.abs(values).max()), 1e-300):
                unit = self.model.units.get(name, "")
                told.append(f"{self.words.word(name)} {old:.3g} → {new:.3g} {unit}".strip())
        return ", ".join(told) or otherwise

    # -- All of them -------------------------------------------------------------------------------------------

    def happenings(self, everything: bool = False) -> list[Happening]:
        """Return the happenings, in order; successive impacts of one contact are one.

        Parameters
        ----------
        everything : bool
            One for each transition, reversals of slip included.
        """
        found: list[Happening] = []
        number = 0
        while number < len(self.transitions):
            length = 1 if everything else max(self._series(number), self._burst(number))
            numbers = tuple(range(number, number + length))
            series = not everything and self._series(number) == length > 1
            text = self._bounces(numbers) if series else self.cause(number)
            if text and (everything or length > 1 or self._is_told(number)):
                found.append(self._happening(numbers, text))
            elif self.transitions[number].impulse and found:  # an impact without a sentence: its energy is not lost
                found[-1] = self._happening((*found[-1].transitions, *numbers), found[-1].text)
            number += length
        return found

    def _burst(self, number: int) -> int:
        """Return how many transitions from this one on follow each other at once."""
        end = number
        while end + 1 < len(self.transitions) and self.transitions[end + 1].time - self.transitions[end].time < BURST:
            end += 1
        return end - number + 1

    def _happening(self, numbers: tuple[int, ...], text: str) -> Happening:
        items = [self.transitions[k] for k in numbers]
        contacts = dict.fromkeys(act.contact for k in numbers for act in self.acts[k] if act.verb)
        impacts = sum(any(act.impact for act in self.acts[k]) for k in numbers)
        lost = sum(item.energy_lost for item in items if item.impulse)
        return Happening(items[0].time, text, impacts, lost, tuple(contacts), numbers, items[-1].time)

    def _is_told(self, number: int) -> bool:
        """Whether a transition is more than a reversal of slip."""
        reversals = {name for name, (_, event) in self._events.items() if event is Event.STICKS}
        item = self.transitions[number]
        return any(act.verb for act in self.acts[number]) or not {text for text, *_ in item.fired} <= reversals

    def _series(self, number: int) -> int:
        """Return how many transitions from this one on are impacts of one contact while no other changes."""
        contact = self._only_impact(number)
        if contact is None:
            return 1
        end = number
        while self._rebounds(end, contact) and end + 1 < len(self.transitions):
            if self._only_impact(end + 1) != contact:
                break
            end += 1
        return end - number + 1

    def _only_impact(self, number: int) -> int | None:
        """Return the contact of a transition with one impact and nothing else, or None."""
        acts = [act for act in self.acts[number] if act.verb]
        return acts[0].contact if len(acts) == 1 and acts[0].impact else None

    def _rebounds(self, number: int, contact: int) -> bool:
        """Whether a contact is open after its impact."""
        states = self._states[self.transitions[number].target]
        return state_word(self.model, contact, int(states[contact])) == OPEN

    def _bounces(self, numbers: tuple[int, ...]) -> str:
        """Return impacts of one contact as a sentence."""
        contact = self._only_impact(numbers[0])
        assert contact is not None
        sentence = self.words.sentence(contact)
        rests = not self._rebounds(numbers[-1], contact)
        count = len(numbers) - rests
        times = f" {count}×" if count > 1 else ""
        return f"{sentence.subject} bounces{times} on {sentence.object}" + (", rests" if rests else "")
