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


def named_when_open(contacts: Sequence[ContactInfo]) -> frozenset[int]:
    """Return which contacts may have a part in the name of a mode though they are in their first state."""
    return frozenset(i for i, contact in enumerate(contacts) if contact.bilateral or not contact.states[0])


def name_mode(
    contacts: Sequence[ContactInfo],
    patterns: Sequence[Pattern],
    states: Sequence[int],
    always: frozenset[int] | None = None,
) -> ModeName:
    """Name one combination of contact states.

    Parameters
    ----------
    contacts : sequence of ContactInfo
    patterns : sequence of Pattern
        Those of the model.
    states : sequence of int
        A state code for each contact.
    always : frozenset of int, optional
        Result of :func:`named_when_open`, for names of many modes.

    Returns
    -------
    ModeName
    """
    fitting = [pattern for pattern in patterns if pattern.fits(states)]
    pattern = max(fitting, key=lambda p: len(p.states), default=None)
    mentioned = pattern.states if pattern is not None else {}
    # open contacts are not mentioned
    always = named_when_open(contacts) if always is None else always
    told = [index for index, code in enumerate(states) if code or index in always]
    extras = [
        f"{contact.name}_{contact.states[code]}"
        for index, contact, code in ((index, contacts[index], states[index]) for index in told)
        if index not in mentioned and (code != contact.codes[0] or (contact.bilateral and len(contact.codes) > 1))
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
