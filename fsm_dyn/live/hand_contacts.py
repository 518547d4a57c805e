"""Contacts that a person lets two shapes make in a live run: which there are, and whether the shapes overlap now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.build_contacts import carrier, unlisted_pairs
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.model import Mechanism
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.programs.kernels import Kernels, compile_programs
from fsm_dyn.programs.program import Program

Pair = tuple[str, str]
MOST_IN_ADVANCE: Final = 24  # pairs of features: each tick evaluates all of them


@dataclass(frozen=True)
class ContactToImpose:
    """A contact between two shapes that an input of its name lets close."""

    name: str
    shapes: Pair


def contacts_to_impose(mechanism: Mechanism) -> list[ContactToImpose]:
    """Return the contacts to impose of a mechanism, in their order."""
    return [
        ContactToImpose(str(name), (str(entry.contact[0]), str(entry.contact[1])))
        for name, entry in mechanism.imposed.items() if entry.contact is not None
    ]  # fmt: skip


def pairs_in_advance(mechanism: Mechanism) -> tuple[Pair, ...]:
    """Return the pairs of shapes whose contacts are derived at the start of a run on a page: all, if they are few."""
    found = unlisted_pairs(mechanism)
    return tuple(found) if sum(found.values()) <= MOST_IN_ADVANCE else ()


def between_bodies(mechanism: Mechanism, first: str, second: str) -> list[Pair]:
    """Return the pairs of shapes of two bodies with a contact to impose."""
    return [one.shapes for one in contacts_to_impose(mechanism)
            if {carrier(mechanism, shape) for shape in one.shapes} == {first, second}]  # fmt: skip


class HandContacts:
    """Contacts to impose in a live run, with the gaps of their features.

    Parameters
    ----------
    stepper : LiveStepper
    """

    def __init__(self, stepper: LiveStepper) -> None:
        automaton = stepper.graph.automaton
        self._stepper, mechanism = stepper, automaton.mechanism
        self.all = contacts_to_impose(mechanism)
        self.inputs = [automaton.terms.layout.w.index(one.name) for one in self.all]
        known = [mechanism.contacts[str(contact.name)] for contact in automaton.contacts]
        own = [(k, one) for k, one in enumerate(known) if isinstance(one, FeatureContact) and one.imposed]
        self._features: list[tuple[int, FeatureContact]] = own
        self._kernels: Kernels | None = None
        if own:
            system, rows = automaton.system, [automaton.contacts[k].normal_row for k, _ in own]
            gaps = np.array([system.nodes["residual"][row] for row in rows], dtype=object)
            self._kernels = compile_programs([Program.from_nodes(automaton.terms.layout, {"gaps": gaps})])

    def number(self, first: Any, second: Any) -> int:
        """Return the number of the contact of two shapes, from 0.

        Raises
        ------
        InputError
            There is none, or the shapes overlap at present.
        """
        pairs = [frozenset(one.shapes) for one in self.all]
        wanted = frozenset(map(str, (first, second)))
        if wanted not in pairs:
            raise InputError(
                f"no contact between {str(first)[:40]!r} and {str(second)[:40]!r} to impose",
                allowed=", ".join(" and ".join(one.shapes) for one in self.all) or "none is derived",
                remedy="derive it at the start: `imposed: {touch: {contact: [a, b]}}`, or LiveSettings(touching=)",
            )
        found = pairs.index(wanted)
        if self._overlap(self.all[found].name):
            raise InputError(
                f"{' and '.join(self.all[found].shapes)} overlap", allowed="shapes apart", remedy="move them apart"
            )
        return found

    def _overlap(self, name: str) -> bool:
        """Whether the shapes of a contact are within each other, beyond the tolerance of a gap.

        Of a face without ends and of round shapes the gap says it; what is behind all faces of a polygon is in it.
        """
        assert self._kernels is not None
        stepper, state = self._stepper, self._stepper.loop.state
        small = stepper.executable.numerics.tolerances.gap or 0.0
        gaps = self._kernels[0](stepper.t, state.x, state.c)
        behind: dict[tuple[object, str], list[bool]] = {}
        for (_, contact), gap in zip(self._features, gaps, strict=True):
            if contact.imposed != name:
                continue
            faces = [k for k, feature in enumerate(contact.features) if feature.part == "face"]
            if not contact.limited and gap < -small:
                return True
            if contact.limited and len(faces) == 1:
                other = contact.features[1 - faces[0]]
                behind.setdefault((other, contact.features[faces[0]].shape), []).append(bool(gap < -small))
        return any(len(found) > 1 and all(found) for found in behind.values())


def with_touching(pairs: Sequence[Pair]) -> dict[str, dict[str, list[str]]]:
    """Return entries of ``imposed`` for contacts between pairs of shapes."""
    return {f"touch_{first}_{second}": {"contact": [first, second]} for first, second in pairs}
