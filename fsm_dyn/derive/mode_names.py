"""Names of modes: combinations of contact states, named after the model's patterns.

A mode is one state code per contact.  Patterns of the model name them: the most specific matching pattern gives the
name, other contacts are added if they are not in their first state (``latched+seat_closed``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fsm_dyn.derive.unconstrained_system import ContactInfo


@dataclass(frozen=True)
class Pattern:
    """A named pattern: state codes by contact index; contacts left out may have any state."""

    name: str
    states: Mapping[int, int]

    def fits(self, states: Sequence[int]) -> bool:
        """Whether contact states fall under this pattern."""
        return all(states[contact] == code for contact, code in self.states.items())


@dataclass(frozen=True)
class ModeName:
    """A mode before it is derived."""

    name: str
    states: tuple[int, ...]
    pattern: str = ""


def name_mode(contacts: Sequence[ContactInfo], patterns: Sequence[Pattern], states: Sequence[int]) -> ModeName:
    """Name one combination of contact states.

    Parameters
    ----------
    contacts : sequence of ContactInfo
    patterns : sequence of Pattern
        Those of the model.
    states : sequence of int
        A state code for each contact.

    Returns
    -------
    ModeName
    """
    fitting = [pattern for pattern in patterns if pattern.fits(states)]
    pattern = max(fitting, key=lambda p: len(p.states), default=None)
    mentioned = pattern.states if pattern is not None else {}
    extras = [
        f"{contact.name}_{contact.states[code]}"
        for index, (contact, code) in enumerate(zip(contacts, states, strict=True))
        if (code or contact.bilateral or not contact.states[0])  # open contacts are not mentioned
        and index not in mentioned
        and (code != contact.codes[0] or (contact.bilateral and len(contact.codes) > 1))
    ]
    if pattern is not None:
        return ModeName("+".join([pattern.name, *extras]), tuple(states), pattern.name)
    if not contacts:
        return ModeName("motion", ())
    named = extras or [
        f"{contact.name}_{contact.states[code]}"
        for contact, code in zip(contacts, states, strict=True)
        if contact.contact_law.friction_only
    ]  # all_free: without any sticking contact
    return ModeName("+".join(named) or "all_free", tuple(states))
