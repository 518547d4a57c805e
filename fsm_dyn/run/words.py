"""Words of a model's contacts: names, and the subject and object of sentences about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, cast

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import BoolArray, FloatArray
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language import expressions
from fsm_dyn.language.contacts import Contact, FeatureContact, GapContact
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.phases import LONGEST_NAME, PartName
from fsm_dyn.language.shapes import Feature
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN

_CONFIGURATIONS: Final = 8  # for finding fixed points and frames
_SPREAD: Final = 0.3  # m or rad, of these configurations
_TOLERANCE: Final = 1e-9
_STEP: Final = 1e-3  # m or rad, of one coordinate
_FACE: Final = re.compile(r"^(face)?(\d+)$")


@dataclass(frozen=True)
class Fixtures:
    """Points fixed in frames, found at several configurations.

    Attributes
    ----------
    points, frames : tuple of str
        Names, those of the model and then those of N.
    positions : ndarray, shape (n, points, 3)
        m, at the configurations; then for each coordinate with it displaced.
    rotations : ndarray, shape (n, frames, 3, 3)
    coordinates : tuple of str
    """

    points: tuple[str, ...]
    frames: tuple[str, ...]
    positions: FloatArray
    rotations: FloatArray
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

    def relative(self, frame: str, point: str, other_frame: str, other_point: str) -> FloatArray:
        """Return place and rotation of one pose in another, shape (n, 12)."""
        one, other = (self.rotations[:, self.frames.index(name)] for name in (frame, other_frame))
        apart = self.positions[:, self.points.index(point)] - self.positions[:, self.points.index(other_point)]
        turn = np.einsum("nji,njk->nik", other, one)
        return np.concatenate([np.einsum("nji,nj->ni", other, apart), turn.reshape(len(turn), 9)], axis=1)

    def fixed(self, pose: FloatArray) -> bool:
        """Whether a relative pose is the same at all configurations."""
        return bool(np.isfinite(pose).all() and np.ptp(pose, axis=0).max() < _TOLERANCE * self.size)

    def moved_by(self, pose: FloatArray) -> tuple[str, ...]:
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
    """Words for the contacts of a run.

    Parameters
    ----------
    rows : Samples
        Of the run.
    """

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
    x: FloatArray
    context: FloatArray

    def __len__(self) -> int:
        return len(self.x)


def words_at(automaton: Automaton, x: FloatArray, context: FloatArray) -> Words:
    """Return the words of a model of which there is no run yet.

    Parameters
    ----------
    automaton : Automaton
    x, context : ndarrays, shapes (n_x,) and (n_c,)
        A state and its context, SI.
    """
    model = _Start(None, automaton, automaton.contacts, x[None], context[None])
    return Words(cast(Samples, replace(model, model=model)))


# -- States of the entries in the modes of a run -------------------------------------------------------------

OPEN: Final = "open"
STICK: Final = "stick"
ENGAGED: Final = "engaged"
_SLIDES: Final = ("slide", "slide_opposite")


class EntryStates:
    """States of the entries of contacts in the modes of a run.

    Parameters
    ----------
    words : Words
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        model: RunModel = words.model
        self.names = tuple(words.entries)
        #: By entry, the state in each mode: of a sticking pair, else of the first one not open.
        self.states = {
            entry: tuple(_state([state_word(model, k, chart.states[k]) for k in numbers]) for chart in model.charts)
            for entry, numbers in words.entries.items()
        }

    def closed(self, entry: str) -> BoolArray:
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
