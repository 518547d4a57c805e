"""Labels of modes for the user: faces flat on faces, corners on faces.

A mode's name, which the API and files use, lists the pairs of features that are closed.  Several sets of pairs can
stand for one state of contact: a brick that lies on two tiles bears on a corner of its own or of a tile, and which of
corners that coincide bears it does not matter.  Such modes have one label; a transition between them is a feature
transition (handover), an event but no change of mode.

Only what the model fixes is taken for one: straight faces of shapes with one frame and one origin that continue each
other, touched by the same shape with the same laws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsm_dyn.automaton.families import Families, brief
from fsm_dyn.automaton.label_forms import Closed, brief_label, full_label
from fsm_dyn.automaton.surfaces import Key, Surfaces, key_of
from fsm_dyn.expressions import free_names, parse
from fsm_dyn.laws import FREE
from fsm_dyn.modes.mode_names import ModeName, Pattern, name_mode
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.spec.contact import FeatureContact, SurfaceContact
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.scales import own_scales
from fsm_dyn.spec.shape import VERTICES, ArcShape, BoxShape, CircleShape, Feature, PolygonShape, Shape
from fsm_dyn.spec.values import ParameterValue, evaluate, parameter_values

_MANY = (PolygonShape, BoxShape)  # shapes with several corners and faces
_FIRST = 1000  # number of the first face of a box, above those of polygons

Pair = tuple[str, Key, Key]  # two surfaces that can lie flat on each other, of the entries of a family


def _sides_of_box() -> list[tuple[frozenset[int], str]]:
    """Return the corners of each face and edge of a box with what it is called."""
    found = []
    for axis, letter in enumerate("xyz"):
        for sign, word in ((-1, "-"), (1, "+")):
            found.append((frozenset(i for i, v in enumerate(VERTICES) if v[axis] == sign), f"face {letter}{word} flat"))
    for i, first in enumerate(VERTICES):
        for j, second in enumerate(VERTICES[:i]):
            if sum(a != b for a, b in zip(first, second, strict=True)) == 1:
                found.append((frozenset((i, j)), f"edge {j + 1}-{i + 1}"))
    return found


_BOX = _sides_of_box()


@dataclass(frozen=True)
class Touch:
    """A contact of a corner (or point) with a face; ``pairs`` are the straight surfaces that may be flat there."""

    family: str
    corner: Feature
    face: Feature
    place: tuple[Key, Key]
    pairs: tuple[Pair, ...]


class Labels:
    """Labels of the modes of a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
    contacts : sequence of ContactInfo
        Those of the compiled mechanism.
    patterns : sequence of Pattern
        Named patterns of the model.
    values : mapping, optional
        Parameters by name, SI units, that determine which faces continue each other; by default those of the model.
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
        self._known: dict[tuple[int, ...], str] = {}
        self._taken: dict[str, str] = {}  # full labels by label

    def of(self, states: Sequence[int]) -> str:
        """Return the label of the mode with these contact states (codes), see :mod:`fsm_dyn.automaton.label_forms`.

        It is the mode's name where that is short and no corner is on a face.  Different modes have different labels,
        unless a handover alone leads from one to the other.
        """
        key = tuple(int(code) for code in states)
        if key not in self._known:
            self._known[key] = self._label(key)
        return self._known[key]

    def in_full(self, states: Sequence[int]) -> str:
        """Return the label of any length that names everything closed."""
        return self._in_full(*self._parts(tuple(int(code) for code in states)))

    @staticmethod
    def _in_full(name: ModeName, parts: Sequence[Closed]) -> str:
        return full_label(name.pattern, parts) if any(part.features for part in parts) else name.name

    def handed_over(self, before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]]:
        """Return the contacts that ended with those that took over: of one corner, or of the same flat faces."""
        lost = [k for k in self.touches if before[k] != FREE and after[k] == FREE]
        new = [k for k in self.touches if before[k] == FREE and after[k] != FREE]
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
        """Return as text that contact ``new`` took over from contact ``old``."""
        one, other = self.touches[old], self.touches[new]
        if one.corner == other.corner:
            return f"{self._whole(one.corner)} passes on from {self._whole(one.face)} to {self._whole(other.face)}"
        return f"{self._contacts[old].name} passes on to {self._contacts[new].name}"

    def impact_words(self, contact: int) -> str:
        """Return what a contact does that is open after an impact: it rebounds only where it has a restitution."""
        return "impacts and rebounds" if self._rebounds(contact) else "impacts and opens"

    def _rebounds(self, contact: int) -> bool:
        """Whether a contact's restitution is above zero, or depends on more than the parameters."""
        found = self._mechanism.contacts.get(self._contacts[contact].name)
        text = found.restitution if isinstance(found, SurfaceContact) else None
        if text is None:
            return False
        return not free_names(parse(text)) <= set(self._numbers) or evaluate(text, self._numbers) > 0

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
        """The contacts of corners and points with faces of shapes that have several features, by number."""
        found = {}
        for k, info in enumerate(self._contacts):
            contact = self._mechanism.contacts.get(info.name)
            if not isinstance(contact, FeatureContact):
                continue
            corner, face = sorted(contact.features, key=self._is_face)
            if not self._is_face(face) or corner.part not in ("corner", "point", "vertex"):
                continue
            family = self._families.of(contact.entry)
            if contact.name == contact.entry and len(self._families.entries[family]) == 1:
                continue  # the entry is this contact: its name says all
            ahead = self._surfaces.of(key_of(face))
            beside = self._surfaces.beside(corner) if face.part == "face" else []
            flat = [*(self._surfaces.of(side) for side in beside), *_sides(corner)]
            pairs = tuple((family, min(side, ahead), max(side, ahead)) for side in flat)
            found[k] = Touch(family, corner, face, (self._surfaces.corner(key_of(corner)), ahead), pairs)
        return found

    def _label(self, states: tuple[int, ...]) -> str:
        name, parts = self._parts(states)
        full = self._in_full(name, parts)
        for letters in range(3, 32):
            label = brief_label(name.pattern, parts, full, letters)
            if self._taken.setdefault(label, full) == full:
                return label
        return full  # pragma: no cover - two texts with one digest

    def _parts(self, states: tuple[int, ...]) -> tuple[ModeName, list[Closed]]:
        """Return a mode's name, and what is closed that the pattern of the name does not mention."""
        name = name_mode(self._contacts, self._patterns, states)
        pattern = next((p for p in self._patterns if p.name == name.pattern), None)
        mentioned = pattern.states if pattern is not None else {}
        parts: dict[int, Closed] = {}
        for k, (contact, code) in enumerate(zip(self._contacts, states, strict=True)):
            rests = code == contact.codes[0] and not (contact.bilateral and len(contact.codes) > 1)
            if k not in mentioned and k not in self.touches and not rests:
                parts[k] = self._by_contact(contact.name, contact.states[code])
        closed = [k for k in self.touches if k not in mentioned and states[k] != self._contacts[k].codes[0]]
        for members, pair in self._grouped(closed):
            touch = self.touches[members[0]]
            shapes, text = self._single(touch) if pair is None else self._flat(pair)
            codes = sorted((states[k], k) for k in members)
            how = "/".join(dict.fromkeys(self._contacts[k].states[code] for code, k in codes))
            entry = self._families.label(touch.family, shapes)
            corner = pair is None and touch.corner.part != "point"
            parts[min(members)] = Closed(f"{entry}: {text}", how, True, entry, corner, pair is not None)
        if not parts and not name.pattern:  # what sticks by dry friction alone
            parts = {
                k: Closed(contact.name, contact.states[code])
                for k, (contact, code) in enumerate(zip(self._contacts, states, strict=True))
                if contact.contact_law.friction_only
            }
        return name, [parts[k] for k in sorted(parts)]

    def _by_contact(self, name: str, state: str) -> Closed:
        """Return a contact that is closed: by its name, or by its features where the name numbers them."""
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
            enough = [pair for pair in places if len(places[pair]) >= max(_least(key) for key in pair[1:])]
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
            on = f"{on} of {shapes[0]}"  # numbers alone do not tell whose they are
        corner = self._corner(Feature(corners[0][0], touch.corner.part, corners[0][2], corners[0][1]))
        return [key[0] for key in corners] + shapes, f"{corner} on {on}"

    def _flat(self, pair: Pair) -> tuple[list[str], str]:
        """Return the shapes whose faces are flat on each other, and that as text."""
        family, one, other = pair
        roles = self._families.roles(family)
        if roles.get(one[0], 0) > roles.get(other[0], 0):
            one, other = other, one
        many = [self._has_faces(key[0]) for key in (one, other)]
        if not many[0] and many[1]:  # a face of many on the only one there is
            one, other = other, one
        if isinstance(self._shape(one[0]), BoxShape):
            on = brief(self._surface(family, other)[0])
            return [one[0], other[0]], f"{_BOX[one[2] - _FIRST][1]} on {on}"
        (first, words), (second, on) = self._surface(family, one), self._surface(family, other)
        return first + second, f"{words} flat on {on}"

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
        """Return the shapes of a surface that take part in a family of entries, and what its faces are called."""
        roles = self._families.roles(family)
        faces = [face for face in self._surfaces.faces(surface) if face[0] in roles]
        shapes = list(dict.fromkeys(face[0] for face in faces))
        return shapes, brief(shapes if len(shapes) > 1 else [self._face(_face_of(face)) for face in faces])

    def _corner(self, corner: Feature) -> str:
        shape = self._shape(corner.shape)
        if corner.part not in ("corner", "vertex") or shape is None or isinstance(shape, CircleShape):
            return f"{corner.shape}{self._copy(corner)}"
        if isinstance(shape, _MANY):
            return f"corner {corner.index + 1}{self._copy(corner)}"
        return f"{'end' if corner.index else 'start'} of {corner.shape}{self._copy(corner)}"

    def _face(self, face: Feature) -> str:
        return (f"face{face.index + 1}" if self._is_polygon(face.shape) else face.shape) + self._copy(face)

    def _whole(self, feature: Feature) -> str:
        """Return what a corner or face is called where nothing else tells whose it is."""
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


def _sides(corner: Feature) -> list[Key]:
    """Return the faces and edges of a box that a corner of it belongs to; none of other corners."""
    if corner.part != "vertex":
        return []
    return [(corner.shape, corner.copy, _FIRST + k) for k, (members, _) in enumerate(_BOX) if corner.index in members]


def _least(side: Key) -> int:
    """Return the least number of contacts of a side that is flat: two of an edge of a box, three of a face."""
    return 3 if side[2] >= _FIRST and len(_BOX[side[2] - _FIRST][0]) == 4 else 2


def _face_of(key: Key) -> Feature:
    return Feature(key[0], "face", key[2], key[1])
