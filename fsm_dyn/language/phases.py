"""Phases of a run and words for the parts of a model as data (docs/language.md, "names", "phases")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fsm_dyn.core.errors import NOWHERE, Location
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.requirement import QuantityComparison, StateCondition

LONGEST_PHASE: Final = 16  # characters
LONGEST_NAME: Final = 24
LONGEST_TEXT: Final = 32
COLOURS: Final = ("grey", "blue", "orange", "yellow", "red", "green", "cyan", "purple")
_NOT_IN_FORMULAS: Final = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class PartName:
    """Words for a contact, one of its feature pairs, a shape or a body.

    ``text`` names it; ``subject`` and ``object`` are those of the sentences that state what a contact did, empty where
    they follow from its bodies.
    """

    text: str
    subject: str = ""
    object: str = ""
    where: Location = NOWHERE


Conjunction: TypeAlias = tuple[QuantityComparison | StateCondition, ...]


@dataclass(frozen=True, slots=True)
class RunPhase:
    """A phase of a run: one of them applies at each time, the first in the order of the model whose condition is true.

    ``when`` and ``until`` are true where all conditions of one of their conjunctions are; an empty conjunction always
    is, an empty ``until`` never.  A phase with ``after`` begins only directly after one of these phases.  Visits that
    last less than ``shortest`` are a part of the visit before; None: by the length of the run.
    """

    name: str
    when: tuple[Conjunction, ...]
    after: tuple[str, ...] = ()
    until: tuple[Conjunction, ...] = ()
    shortest: Text | None = None
    colour: str = ""
    text: str = ""
    focus: tuple[str, ...] = ()
    where: Location = NOWHERE

    @property
    def in_formulas(self) -> str:
        """Its name in requirements."""
        return formula_name(self.name)


def formula_name(name: str) -> str:
    """Return the name of a phase in formulas: with ``_`` for blanks and hyphens."""
    return _NOT_IN_FORMULAS.sub("_", name)


def phase_named(phases: Iterable[RunPhase], word: str) -> int | None:
    """Return the number of the phase that formulas call ``word``; None if there is none."""
    return next((number for number, phase in enumerate(phases) if phase.in_formulas == word), None)


def unreachable(phases: Mapping[str, RunPhase]) -> dict[str, str]:
    """Return the phases that no run can reach, by name, with the reason as text."""
    found: dict[str, str] = {}
    always = ""
    open_phases: list[RunPhase] = []
    for phase in phases.values():
        if always:
            found[phase.name] = f"{always!r} before it applies at all times"
        else:
            open_phases.append(phase)
        if not phase.after and () in phase.when:
            always = phase.name
    reached: set[str] = set()
    while True:
        new = {p.name for p in open_phases if not p.after or reached & set(p.after)} - reached
        if not new:
            break
        reached |= new
    for phase in open_phases:
        if phase.name not in reached:
            found[phase.name] = f"none of the phases that it begins after can begin ({', '.join(phase.after)})"
        elif _contradicts(phase.when):
            found[phase.name] = "its condition requires one contact in two states"
    return found


def _contradicts(when: tuple[Conjunction, ...]) -> bool:
    """Whether each conjunction requires a contact in two states, or in one and not in it."""

    def impossible(conjunction: Conjunction) -> bool:
        states = [item for item in conjunction if isinstance(item, StateCondition)]
        wanted = {(item.name, item.state) for item in states if not item.negated}
        others = {(item.name, item.state) for item in states if item.negated}
        closed_and_open = any((name, "open") in wanted and state not in ("", "open") for name, state in wanted)
        return bool(wanted & others) or closed_and_open

    return all(impossible(conjunction) for conjunction in when)
