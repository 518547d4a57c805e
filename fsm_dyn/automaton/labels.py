"""Labels of modes for the user: contacts by state, faces flat on faces, within a length."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Generic, Literal, TypeVar

import numpy as np

from fsm_dyn.core.arrays import Codes
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.enumeration import ModeName, Pattern, name_mode, named_when_open
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.draw.graph_layout import elided
from fsm_dyn.language.contacts import FeatureContact, SurfaceContact
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.scales import own_scales
from fsm_dyn.language.shapes import (
    ArcShape,
    BoxShape,
    CircleShape,
    Feature,
    PolygonShape,
    SegmentShape,
    Shape,
    SolidShape,
)
from fsm_dyn.language.values import parameter_values

# -- Surfaces ------------------------------------------------------------------------------------------------
#
# A surface consists of straight faces of one body in continuation, and of the corners at their ends.

FLUSH = 1e-9  # own units: the tolerance of gaps; a smaller step between two faces is none

Key = tuple[str, int, int]  # a face or corner: shape, copy, index
End = tuple[tuple[float, float], Key]  # end point of a face (m), and the corner there
Ends = tuple[End, End]
T = TypeVar("T", bound=Hashable)


def key_of(feature: Feature) -> Key:
    """Return the key of a face or corner."""
    return feature.shape, feature.copy, feature.index


class Sets(Generic[T]):
    """Disjoint sets of members known beforehand, in order; the first member represents its set."""

    def __init__(self, members: Iterable[T]) -> None:
        self._next = {member: member for member in members}
        self._rank = {member: i for i, member in enumerate(self._next)}

    def __iter__(self) -> Iterator[T]:
        return iter(self._next)

    def of(self, member: T) -> T:
        """Return the first member of a set; an unknown member is a set of one."""
        while self._next.get(member, member) != member:
            member = self._next[member]
        return member

    def members(self) -> dict[T, list[T]]:
        """Return the members of each set, in order, by its first."""
        found: dict[T, list[T]] = {}
        for member in self._next:
            found.setdefault(self.of(member), []).append(member)
        return found

    def join(self, one: T, other: T) -> None:
        """Make the sets of two members one."""
        first, second = sorted((self.of(one), self.of(other)), key=self._rank.__getitem__)
        self._next[second] = first


class Surfaces:
    """The straight faces of a model's shapes, in sets of faces that continue each other.

    ``values``: parameters by name, SI units; ``length``: the mechanism's own unit of length, m.
    """

    def __init__(self, shapes: Mapping[str, Shape], values: Mapping[str, ParameterValue], length: float) -> None:
        self._shapes = shapes
        self._flush = FLUSH * length
        faces = [
            (face, ends)
            for shape in shapes.values()
            if isinstance(shape, PolygonShape | SegmentShape) and shape.points and shape.repeat is None
            for face, ends in _ends(shape, values)
        ]
        self._faces: Sets[Key] = Sets(face for face, _ in faces)
        self._corners: Sets[Key] = Sets(corner for _, ends in faces for _, corner in ends)
        for i, (one, first) in enumerate(faces):
            for other, second in faces[:i]:
                if self._fixed(one[0]) == self._fixed(other[0]):
                    self._join(one, first, other, second)
        self._by_face, self._by_corner = self._faces.members(), self._corners.members()

    def of(self, face: Key) -> Key:
        """Return the first face of a face's surface."""
        return self._faces.of(face)

    def corner(self, corner: Key) -> Key:
        """Return the first corner at the place of this one, across continued surfaces."""
        return self._corners.of(corner)

    def corners(self, corner: Key) -> list[Key]:
        """Return the corners at the place of one, see :meth:`corner`, in declared order."""
        return self._by_corner.get(self.corner(corner)) or [corner]

    def faces(self, surface: Key) -> list[Key]:
        """Return the faces of a surface in declared order."""
        return self._by_face.get(surface) or [surface]

    def beside(self, corner: Feature) -> list[Key]:
        """Return the straight faces with an end in a corner."""
        shape = self._shapes.get(corner.shape)
        if corner.part != "corner" or shape is None:
            return []
        beside = (0,) if isinstance(shape, SegmentShape) else (corner.index - 1, corner.index)
        count = shape.straight_faces
        return [(corner.shape, corner.copy, index % count) for index in beside if count]

    def _fixed(self, name: str) -> tuple[str, str]:
        return self._shapes[name].frame, self._shapes[name].origin

    def _join(self, one: Key, first: Ends, other: Key, second: Ends) -> None:
        """Join two faces if one begins at the end of the other, on one line and with the same normal."""
        shapes = self._shapes[one[0]], self._shapes[other[0]]
        match shapes:
            case SegmentShape(side=side), SegmentShape(side=other_side) if str(side) == str(other_side):
                if _along(first, second) < 0.0:
                    second = second[1], second[0]  # the side is given separately: the sense of a segment has no meaning
            case PolygonShape(), PolygonShape():
                pass
            case _:
                return
        for before, after in ((first, second), (second, first)):
            if math.dist(before[1][0], after[0][0]) <= self._flush and _straight(before, after, self._flush):
                self._faces.join(other, one)
                self._corners.join(after[0][1], before[1][1])
                return


def _ends(shape: PolygonShape | SegmentShape, values: Mapping[str, ParameterValue]) -> list[tuple[Key, Ends]]:
    """Return the ends of all faces of a shape, those of a polygon with the solid on their left."""
    points = [(evaluate_expression(x, values), evaluate_expression(y, values)) for x, y in shape.points]
    corners = [(place, (shape.name, 0, i)) for i, place in enumerate(points)]
    if isinstance(shape, SegmentShape):
        return [((shape.name, 0, 0), (corners[0], corners[1]))]
    forward = shape.turn * (-1 if shape.inside else 1) > 0
    following = [*corners[1:], corners[0]]
    return [
        ((shape.name, 0, i), (start, end) if forward else (end, start))
        for i, (start, end) in enumerate(zip(corners, following, strict=True))
    ]


def _along(first: Ends, second: Ends) -> float:
    (a, b), (c, d) = [(start[0], end[0]) for start, end in (first, second)]
    return (b[0] - a[0]) * (d[0] - c[0]) + (b[1] - a[1]) * (d[1] - c[1])


def _straight(before: Ends, after: Ends, flush: float) -> bool:
    """Whether a face continues the previous one: its end is ahead on the same line."""
    (a, b), (c, d) = [(start[0], end[0]) for start, end in (before, after)]
    x, y = b[0] - a[0], b[1] - a[1]
    across = x * (d[1] - c[1]) - y * (d[0] - c[0])
    return abs(across) <= flush * math.hypot(x, y) and _along(before, after) > 0.0


# -- Families of entries under ``contacts`` ------------------------------------------------------------------
#
# The entries of a family pair one shape with shapes whose faces continue each other.

Role = Literal[0, 1]  # the first shape of an entry, the second


def brief(names: Sequence[str]) -> str:
    """Return names joined; of many the first and the last: ``t1/t2``, ``t1…t9``."""
    return "/".join(names) if len(names) < 3 else f"{names[0]}…{names[-1]}"


class Families:
    """Sets of entries for the same contact: a shape on adjoining tiles, with the same laws.

    ``entries``: the entries of each family in declared order, by the first of them.
    """

    def __init__(self, mechanism: Mechanism, surfaces: Surfaces) -> None:
        self._between: dict[str, tuple[str, str]] = {}
        laws: dict[str, tuple[object, ...]] = {}
        for contact in mechanism.contacts.values():
            if isinstance(contact, FeatureContact) and contact.entry not in laws:
                first, second = contact.features
                self._between[contact.entry] = first.shape, second.shape
                laws[contact.entry] = _laws(contact)
        faces: dict[str, set[tuple[str, int, int]]] = {}
        for name, shape in mechanism.shapes.items():
            faces[name] = {surfaces.of((name, 0, i)) for i in range(shape.straight_faces)}
        names = list(self._between)
        sets: Sets[str] = Sets(names)
        for i, one in enumerate(names):
            for other in names[:i]:
                if laws[one] == laws[other] and self._continues(one, other, faces):
                    sets.join(other, one)
        self._sets = sets
        self.entries: dict[str, list[str]] = {}
        for name in names:
            self.entries.setdefault(sets.of(name), []).append(name)
        self._roles = {family: self._roles_of(members) for family, members in self.entries.items()}

    def of(self, entry: str) -> str:
        """Return the first entry of the family of this one."""
        return self._sets.of(entry)

    def label(self, family: str, shapes: Collection[str]) -> str:
        """Return the names of a family's entries between these shapes: ``c1/c2``, ``c1…c9``."""
        return brief([entry for entry in self.entries[family] if set(self._between[entry]) <= set(shapes)])

    def roles(self, family: str) -> Mapping[str, Role]:
        """Return the role of each shape of a family: first or second."""
        return self._roles[family]

    def _continues(self, one: str, other: str, faces: Mapping[str, set[tuple[str, int, int]]]) -> bool:
        """Whether two entries have a shape in common, and a surface that continues from one other shape to the next."""
        a, b = self._between[one], self._between[other]
        for i in (0, 1):
            for j in (0, 1):
                rest = faces.get(a[1 - i], set()) & faces.get(b[1 - j], set())
                if a[i] == b[j] and a[1 - i] != b[1 - j] and rest:
                    return True
        return False

    def _roles_of(self, members: list[str]) -> dict[str, Role]:
        roles: dict[str, Role] = {}
        first, second = self._between[members[0]]
        roles[first], roles[second] = 0, 1
        for _ in members:  # each goes round at least one further entry
            for entry in members:
                a, b = self._between[entry]
                if a in roles:
                    roles.setdefault(b, 1 if roles[a] == 0 else 0)
                elif b in roles:
                    roles.setdefault(a, 1 if roles[b] == 0 else 0)
        return roles


def _laws(contact: FeatureContact) -> tuple[object, ...]:
    """Return the laws of a contact, without its place."""
    yields = contact.compliance
    texts = (
        contact.static, contact.kinetic, contact.restitution, contact.tangential_restitution,
        contact.closes_if,
        *((yields.stiffness, yields.exponent, yields.dissipation) if yields is not None else ()),
    )  # fmt: skip
    return (
        contact.kind, contact.restitution_law, contact.infinite_friction, contact.bilateral, contact.slip is None,
        *(None if text is None else str(text) for text in texts),
    )  # fmt: skip


# -- Labels of modes within a length -------------------------------------------------------------------------
#
# Names of contacts by state, then their number, then a mark for omitted ones.

LONGEST: Final = 60  # characters of a label
_FEW: Final = 6  # up to this number all contacts are named; of more only the touching ones


@dataclass(frozen=True)
class Closed:
    """A part of a label: a closed contact and its state."""

    what: str  # a contact's name, or a shape's features on another's
    state: str
    features: bool = False  # whether ``what`` names features of shapes
    entry: str = ""  # of features: the entry under ``contacts``
    corner: bool = False  # of features: whether they are a corner on a face
    flat: bool = False  # of features: whether two faces, or an edge and a face, are flat on each other

    def __str__(self) -> str:
        return f"{self.what}, {self.state}" if self.features else f"{self.what}_{self.state}"


Group = tuple[Closed, ...]  # of one state; features, of one text


def full_label(pattern: str, parts: Sequence[Closed]) -> str:
    """Return the label with the names of all parts."""
    return "; ".join([*([pattern] if pattern else []), *map(str, parts)])


def marked(text: str, full: str, letters: int) -> str:
    """Return a label with a mark: letters computed from the full label."""
    digest = hashlib.blake2s(full.encode()).digest()
    return f"{text} ·{''.join(chr(ord('a') + byte % 26) for byte in digest[:letters])}"


def brief_label(pattern: str, parts: Sequence[Closed], full: str, letters: int = 3) -> str:
    """Return a label of at most :data:`LONGEST` characters.

    The first short enough of: the full label; contacts named by state (``a, b slide; c closed``); features as ``foot
    flat, stick`` or ``foot on 2 corners, slide``; numbers in place of the longest names (``3 slide``, or ``3 more
    slide`` if there is room); the pattern without its middle. A shortened label has a mark, so different modes have
    different labels. ``pattern``: name of the model's pattern for the mode; may be empty. ``parts``: closed contacts in
    addition to the pattern, in declared order. ``letters``: of the mark; more if two labels of one mechanism would be
    the same.
    """
    if len(full) <= LONGEST:
        return full
    named = _by_state(parts)
    whole = _joined(pattern, named)
    if len(whole) <= LONGEST:
        return whole
    room = LONGEST - len(marked("", full, letters))
    features = [part for part in parts if part.features]
    named = [*_by_state([part for part in parts if not part.features]), *_by_entry(features)]
    counted: dict[str, int] = {}  # contacts by state
    while named and len(_joined(pattern, named, counted)) > room:
        long = max(named, key=lambda group: (not group[0].features, len(group) > 1, len(_text(group))))
        named.remove(long)
        counted[long[0].state] = counted.get(long[0].state, 0) + len(long)
    text = _joined(pattern, named, counted)
    if len(text) > room:
        text = _joined(elided(pattern, max(room - len(text) + len(pattern), 8)), named, counted)
    with_more = re.sub(r"; (\d+) (?=\w+(; \d+ \w+)*$)", r"; \1 more ", text, count=1)  # than those named
    return marked(with_more if len(with_more) <= room else elided(text, room), full, letters)


def _joined(pattern: str, groups: Sequence[Group], counted: Mapping[str, int] | None = None) -> str:
    numbers = (f"{number} {state}" for state, number in (counted or {}).items())
    return "; ".join([*([pattern] if pattern else []), *map(_text, groups), *numbers])


def _text(group: Group) -> str:
    first = group[0]
    return str(first) if first.features else f"{', '.join(part.what for part in group)} {first.state}"


def _by_state(parts: Sequence[Closed]) -> list[Group]:
    """Return contacts by state, in the order of the first of each; features one by one."""
    groups: dict[tuple[str, str], list[Closed]] = {}
    for part in parts:
        groups.setdefault((part.state, part.what if part.features else ""), []).append(part)
    return [tuple(group) for group in groups.values()]


def _by_entry(parts: Sequence[Closed]) -> list[Group]:
    """Return features in short: ``foot flat``, ``foot on 2 corners``, with the states of those corners."""
    groups: dict[tuple[str, bool, bool], list[Closed]] = {}
    for part in parts:
        groups.setdefault((part.entry, part.flat, part.corner), []).append(part)
    found: list[Group] = []
    for (entry, flat, corner), members in groups.items():
        where = (
            " flat"
            if flat
            else ""
            if not corner
            else " on a corner"
            if len(members) == 1
            else f" on {len(members)} corners"
        )
        states = "/".join(dict.fromkeys(part.state for part in members))
        found.append((Closed(f"{entry}{where}", states, features=True),) * len(members))
    return found


def told_states(states: Mapping[str, str], between: str = ": ") -> tuple[str, ...]:
    """Return contacts with their states as text; of many contacts only those not open."""
    told = {name: state for name, state in states.items() if len(states) <= _FEW or state != "open"}
    return tuple(f"{name}{between}{state}" for name, state in told.items()) or (("all open",) if states else ())


# -- Labels of modes for the user: faces flat on faces, corners on faces -------------------------------------
#
# A mode's name, used by API and files, lists the closed pairs of features. Several sets of pairs can represent one
# state of contact: a brick on two tiles bears on a corner of its own or of a tile, and the choice among coincident
# corners does not matter. Such modes have one label; a transition between them is a feature transition (handover), an
# event but no change of mode. Only surfaces fixed by the model are joined: straight faces of shapes with one frame and
# one origin in continuation, touched by the same shape with the same laws.

_MANY = (PolygonShape, SolidShape)  # shapes with several corners and faces
_FIRST = 1000  # number of the first face of a polyhedron, above those of polygons; its edges follow its faces

Pair = tuple[str, Key, Key]  # two surfaces, possibly flat on each other, of the entries of a family


@dataclass(frozen=True)
class Touch:
    """A contact of a corner (or point) with a face, or of two edges.

    ``pairs``: straight surfaces, possibly flat on each other there.
    """

    family: str
    corner: Feature
    face: Feature
    place: tuple[Key, Key]
    pairs: tuple[Pair, ...]


class Labels:
    """Labels of the modes of a mechanism.

    ``contacts``: contacts of the compiled mechanism. ``patterns``: named patterns of the model. ``values``: parameters
    by name, SI units, for the geometry of the faces; by default those of the model.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        contacts: Sequence[ContactInfo],
        patterns: Sequence[Pattern],
        values: Mapping[str, ParameterValue] | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._contacts = contacts
        self._patterns = patterns
        self._values = values
        self._known: dict[bytes, str] = {}  # by the contact states
        self._taken: dict[str, str] = {}  # full labels by label

    def of(self, states: Sequence[int]) -> str:
        """Return the label of the mode with these contact states (codes), see :mod:`fsm_dyn.automaton.labels`.

        It is the mode's name if short and without a corner on a face.  Different modes have different labels, unless a
        handover alone leads from one to the other.
        """
        codes = np.asarray(states, np.int8)
        key = codes.tobytes()
        if key not in self._known:
            self._known[key] = self._label(codes)
        return self._known[key]

    def in_full(self, states: Sequence[int]) -> str:
        """Return the label of any length with the names of all closed contacts."""
        return self._in_full(*self._parts(np.asarray(states, np.int8)))

    @staticmethod
    def _in_full(name: ModeName, parts: Sequence[Closed]) -> str:
        return full_label(name.pattern, parts) if any(part.features for part in parts) else name.name

    def handed_over(self, before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]]:
        """Return ended contacts with their successors: of one corner, or of the same flat faces."""
        changed = np.flatnonzero(np.asarray(before) != np.asarray(after)).tolist()
        touches = [k for k in changed if k in self.touches]
        lost = [k for k in touches if after[k] == FREE]
        new = [k for k in touches if before[k] == FREE]
        found: list[tuple[int, int]] = []
        for same in (self._same_corner, self._same_faces):
            for k in list(lost):
                other = next((j for j in new if same(k, j)), None)
                if other is not None:
                    lost.remove(k)
                    new.remove(other)
                    found.append((k, other))
        return found

    def passes_on(self, old: int, new: int) -> str:
        """Return the text of a handover from contact ``old`` to contact ``new``."""
        one, other = self.touches[old], self.touches[new]
        if one.corner == other.corner:
            return f"{self._whole(one.corner)} passes on from {self._whole(one.face)} to {self._whole(other.face)}"
        return f"{self._contacts[old].name} passes on to {self._contacts[new].name}"

    def impact_words(self, contact: int) -> str:
        """Return the text of an impact that leaves a contact open: it rebounds only with a restitution."""
        return "impacts and rebounds" if self._rebounds(contact) else "impacts and opens"

    def _rebounds(self, contact: int) -> bool:
        """Whether a contact's restitution is above zero, or depends on more than the parameters."""
        found = self._mechanism.contacts.get(self._contacts[contact].name)
        text = found.restitution if isinstance(found, SurfaceContact) else None
        if text is None:
            return False
        return not free_names(parse(text)) <= set(self._numbers) or evaluate_expression(text, self._numbers) > 0

    @cached_property
    def _numbers(self) -> Mapping[str, ParameterValue]:
        return parameter_values(self._mechanism) if self._values is None else self._values

    @cached_property
    def _surfaces(self) -> Surfaces:
        length = own_scales(self._mechanism, self._numbers).length
        return Surfaces(self._mechanism.shapes, self._numbers, length)

    @cached_property
    def _families(self) -> Families:
        return Families(self._mechanism, self._surfaces)

    @cached_property
    def touches(self) -> dict[int, Touch]:
        """The contacts of corners and points with faces of shapes with several features, by number."""
        found = {}
        for k, info in enumerate(self._contacts):
            contact = self._mechanism.contacts.get(info.name)
            if not isinstance(contact, FeatureContact):
                continue
            corner, face = sorted(contact.features, key=self._is_face)
            crossing = (corner.part, face.part) == ("edge", "edge")
            if not crossing and (not self._is_face(face) or corner.part not in ("corner", "point", "vertex")):
                continue
            family = self._families.of(contact.entry)
            if contact.name == contact.entry and len(self._families.entries[family]) == 1:
                continue  # the entry is this contact: its name suffices
            ahead = self._sides_at(face) or [self._surfaces.of(key_of(face))]
            beside = self._surfaces.beside(corner) if face.part == "face" else []
            flat = [*(self._surfaces.of(side) for side in beside), *self._sides_at(corner)]
            pairs = tuple((family, min(side, other), max(side, other)) for side in flat for other in ahead)
            found[k] = Touch(family, corner, face, (self._surfaces.corner(key_of(corner)), ahead[0]), pairs)
        return found

    def _label(self, states: Codes) -> str:
        name, parts = self._parts(states)
        full = self._in_full(name, parts)
        for letters in range(3, 32):
            label = brief_label(name.pattern, parts, full, letters)
            if self._taken.setdefault(label, full) == full:
                return label
        return full  # pragma: no cover - two texts with one digest

    @cached_property
    def _resting(self) -> Codes:
        """The state code in which each contact rests, -1: it is always closed."""
        codes = [-1 if contact.bilateral and len(contact.codes) > 1 else contact.codes[0] for contact in self._contacts]
        return np.array(codes, np.int8)

    @cached_property
    def _named_when_open(self) -> frozenset[int]:
        return named_when_open(self._contacts)

    def _parts(self, codes: Codes) -> tuple[ModeName, list[Closed]]:
        """Return a mode's name, and the closed contacts not mentioned by its pattern."""
        states = tuple(codes.tolist())
        name = name_mode(self._contacts, self._patterns, states, self._named_when_open)
        pattern = next((p for p in self._patterns if p.name == name.pattern), None)
        mentioned = pattern.states if pattern is not None else {}
        active = [k for k in np.flatnonzero(codes != self._resting).tolist() if k not in mentioned]
        parts: dict[int, Closed] = {}
        for k in active:
            if k not in self.touches:
                parts[k] = self._by_contact(self._contacts[k].name, self._contacts[k].states[states[k]])
        touching = [k for k in active if k in self.touches and states[k] != self._contacts[k].codes[0]]
        for members, pair in self._grouped(touching):
            touch = self.touches[members[0]]
            shapes, text = self._single(touch) if pair is None else self._flat(pair)
            in_order = sorted((states[k], k) for k in members)
            how = "/".join(dict.fromkeys(self._contacts[k].states[code] for code, k in in_order))
            entry = self._families.label(touch.family, shapes)
            corner = pair is None and touch.corner.part != "point"
            parts[min(members)] = Closed(f"{entry}: {text}", how, True, entry, corner, pair is not None)
        if not parts and not name.pattern:  # friction alone: sticking contacts
            parts = {
                k: Closed(contact.name, contact.states[code])
                for k, (contact, code) in enumerate(zip(self._contacts, states, strict=True))
                if contact.contact_law.friction_only
            }
        return name, [parts[k] for k in sorted(parts)]

    def _by_contact(self, name: str, state: str) -> Closed:
        """Return a closed contact by its name, or by its features if the name numbers them."""
        contact = self._mechanism.contacts.get(name)
        if not isinstance(contact, FeatureContact) or name == contact.entry:
            return Closed(name, state)
        shapes = [self._shape(feature.shape) for feature in contact.features]
        if not any(shape is not None and (shape.repeat or isinstance(shape, _MANY)) for shape in shapes):
            return Closed(name, state)
        one, other = sorted(contact.features, key=lambda feature: (self._is_face(feature), feature.part == "round"))
        return Closed(f"{contact.entry}: {self._whole(one)} on {self._whole(other)}", state, True, contact.entry)

    def _grouped(self, closed: Sequence[int]) -> list[tuple[list[int], Pair | None]]:
        """Return closed contacts in groups: those of two faces flat on each other with these, others by place."""
        rest, groups = list(closed), []
        while rest:
            places: dict[Pair, dict[tuple[Key, Key], None]] = {}
            for k in rest:
                for pair in self.touches[k].pairs:
                    places.setdefault(pair, {})[self.touches[k].place] = None
            enough = [pair for pair in places if len(places[pair]) >= self._least(*pair[1:])]
            best = max(enough, key=lambda pair: len(places[pair]), default=None)
            if best is None:
                break
            members = [k for k in rest if best in self.touches[k].pairs]
            groups.append((members, best))
            rest = [k for k in rest if k not in members]
        by_place: dict[tuple[str, tuple[Key, Key]], list[int]] = {}
        for k in rest:
            by_place.setdefault((self.touches[k].family, self.touches[k].place), []).append(k)
        return [*groups, *((members, None) for members in by_place.values())]

    def _single(self, touch: Touch) -> tuple[list[str], str]:
        """Return the shapes whose features are in a place, and as text a corner on a face."""
        roles = self._families.roles(touch.family)
        corners = [key for key in self._surfaces.corners(touch.place[0]) if key[0] in roles]
        shapes, on = self._surface(touch.family, touch.place[1])
        if all(self._is_polygon(shape) for shape in (corners[0][0], *shapes)) and len(shapes) == 1:
            on = f"{on} of {shapes[0]}"  # numbers alone do not identify the shape
        corner = self._corner(Feature(corners[0][0], touch.corner.part, corners[0][2], corners[0][1]))
        if touch.corner.part == "edge":
            return [key[0] for key in corners] + shapes, f"{corner} across {on}"
        return [key[0] for key in corners] + shapes, f"{corner} on {on}"

    def _flat(self, pair: Pair) -> tuple[list[str], str]:
        """Return the shapes with faces flat on each other, with a text."""
        family, one, other = pair
        roles = self._families.roles(family)
        if roles.get(one[0], 0) > roles.get(other[0], 0):
            one, other = other, one
        many = [self._has_faces(key[0]) for key in (one, other)]
        if not many[0] and many[1]:  # a face of many on the only one there is
            one, other = other, one
        if one[2] >= _FIRST:
            on = self._side(other) if other[2] >= _FIRST else brief(self._surface(family, other)[0])
            flat = " flat" if self._least(one, other) == 3 else ""
            return [one[0], other[0]], f"{self._side(one, whole=False)}{flat} on {on}"
        (first, words), (second, on) = self._surface(family, one), self._surface(family, other)
        return first + second, f"{words} flat on {on}"

    def _sides_at(self, feature: Feature) -> list[Key]:
        """Return the feature of a polyhedron as a side, and the faces and edges that meet there; none of others."""
        shape = self._shape(feature.shape)
        if not isinstance(shape, SolidShape) or feature.part == "point":
            return []
        faces, edges = shape.corners_of_faces, shape.edges
        if feature.part == "face":
            numbers = [feature.index]
        elif feature.part == "edge":
            edge = edges[feature.index]
            numbers = [len(faces) + feature.index, edge.left, edge.right]
        else:
            numbers = [k for k, corners in enumerate(faces) if feature.index in corners]
            numbers += [len(faces) + k for k, edge in enumerate(edges) if feature.index in (edge.start, edge.end)]
        return [(feature.shape, feature.copy, _FIRST + number) for number in numbers]

    def _least(self, *sides: Key) -> int:
        """Return the least number of contacts of two sides: three of faces of polyhedra, two of others."""
        solids = [(self._shape(name), number - _FIRST) for name, _, number in sides if number >= _FIRST]
        faces = [isinstance(shape, SolidShape) and k < len(shape.corners_of_faces) for shape, k in solids]
        return 3 if faces and all(faces) else 2

    def _side(self, side: Key, whole: bool = True) -> str:
        """Return the name of a face or an edge of a polyhedron, with its owner if `whole`."""
        shape, number = self._shape(side[0]), side[2] - _FIRST
        assert isinstance(shape, SolidShape)
        count = len(shape.corners_of_faces)
        part, index = ("face", number) if number < count else ("edge", number - count)
        given = shape.name_of(part, index).replace("_", " ")
        if not given and part == "edge":
            given = f"edge {shape.edges[index].start + 1}-{shape.edges[index].end + 1}"
        elif not given:
            given = f"face {'xyz'[index // 2]}{'-+'[index % 2]}" if isinstance(shape, BoxShape) else f"face {index + 1}"
        return f"{given} of {side[0]}" if whole else given

    def _is_face(self, feature: Feature) -> bool:
        return feature.part == "face" or (feature.part == "round" and isinstance(self._shape(feature.shape), ArcShape))

    def _shape(self, name: str) -> Shape | None:
        """Return a shape, None for the name of a point."""
        return self._mechanism.shapes.get(name)

    def _is_polygon(self, name: str) -> bool:
        return isinstance(self._shape(name), PolygonShape)

    def _has_faces(self, name: str) -> bool:
        return isinstance(self._shape(name), _MANY)

    def _surface(self, family: str, surface: Key) -> tuple[list[str], str]:
        """Return the shapes of a surface in a family of entries, and the names of its faces."""
        roles = self._families.roles(family)
        faces = [face for face in self._surfaces.faces(surface) if face[0] in roles]
        shapes = list(dict.fromkeys(face[0] for face in faces))
        return shapes, brief(shapes if len(shapes) > 1 else [self._face(_face_of(face)) for face in faces])

    def _corner(self, corner: Feature) -> str:
        shape = self._shape(corner.shape)
        if corner.part == "edge":
            return self._side(self._sides_at(corner)[0], whole=False)
        if corner.part not in ("corner", "vertex") or shape is None or isinstance(shape, CircleShape):
            return f"{corner.shape}{self._copy(corner)}"
        given = shape.name_of(corner.part, corner.index)
        if given:
            return given.replace("_", " ") + self._copy(corner)
        if isinstance(shape, _MANY):
            return f"corner {corner.index + 1}{self._copy(corner)}"
        return f"{'end' if corner.index else 'start'} of {corner.shape}{self._copy(corner)}"

    def _face(self, face: Feature) -> str:
        if face.index >= _FIRST:
            return self._side(key_of(face))
        shape = self._shape(face.shape)
        if isinstance(shape, SolidShape) and face.part == "face":
            return self._side(self._sides_at(face)[0])
        given = "" if shape is None else shape.name_of(face.part, face.index)
        if given:
            return given.replace("_", " ") + self._copy(face)
        return (f"face{face.index + 1}" if self._is_polygon(face.shape) else face.shape) + self._copy(face)

    def _whole(self, feature: Feature) -> str:
        """Return the name of a corner or face without other context, with its owner."""
        words = self._face(feature) if feature.part == "face" else self._corner(feature)
        return f"{words} of {feature.shape}" if self._is_polygon(feature.shape) else words

    def _copy(self, feature: Feature) -> str:
        shape = self._shape(feature.shape)
        return f" (copy {feature.copy + 1})" if shape is not None and shape.repeat is not None else ""

    def _same_corner(self, k: int, j: int) -> bool:
        return self.touches[k].corner == self.touches[j].corner

    def _same_faces(self, k: int, j: int) -> bool:
        one, other = self.touches[k], self.touches[j]
        return bool(set(one.pairs) & set(other.pairs)) or (one.family, one.place) == (other.family, other.place)


def _face_of(key: Key) -> Feature:
    return Feature(key[0], "face", key[2], key[1])
