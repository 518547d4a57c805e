"""Families of entries under ``contacts``: of a shape with shapes whose faces continue each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from fsm_dyn.automaton.surfaces import Sets, Surfaces
from fsm_dyn.spec.contact import FeatureContact
from fsm_dyn.spec.model import Mechanism

Role = Literal[0, 1]  # the first shape of an entry, the second


def brief(names: Sequence[str]) -> str:
    """Return names joined; of many the first and the last: ``t1/t2``, ``t1…t9``."""
    return "/".join(names) if len(names) < 3 else f"{names[0]}…{names[-1]}"


class Families:
    """Sets of entries that name the same contact: a shape on tiles that continue each other, with the same laws.

    Attributes
    ----------
    entries : mapping of str to list of str
        The entries of each family in declared order, by the first of them.
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
        """Return which shape of a family is a first one, which a second."""
        return self._roles[family]

    def _continues(self, one: str, other: str, faces: Mapping[str, set[tuple[str, int, int]]]) -> bool:
        """Whether two entries have a shape in common and others with a face that continues from one to the other."""
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
    """Return all that decides how a contact behaves, beside where it is."""
    yields = contact.compliance
    texts = (
        contact.static, contact.kinetic, contact.restitution, contact.closes_if,
        *((yields.stiffness, yields.exponent, yields.dissipation) if yields is not None else ()),
    )  # fmt: skip
    return (
        contact.kind, contact.restitution_law, contact.infinite_friction, contact.bilateral, contact.slip is None,
        *(None if text is None else str(text) for text in texts),
    )  # fmt: skip
