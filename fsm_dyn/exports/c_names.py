"""C identifiers of the names in a model.

A letter, digit or underscore of ASCII stands for itself; every other character becomes ``_u<code point in hex>_``.  A
name is always put behind a prefix (``latch_contact_``), so that no keyword can arise and none begins with a digit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsm_dyn.errors import InputError


def identifier(name: str) -> str:
    """Return a name in the characters that C allows in identifiers."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"_u{ord(found[0]):x}_", name)


def identifiers(kind: str, names: Sequence[str]) -> list[str]:
    """Return the identifiers of names of one kind.

    Raises
    ------
    InputError
        Two names have the same identifier.
    """
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(identifier(name), name)
        if other != name:
            raise InputError(
                f"two {kind} have the same identifier in C",
                found=f"'{other}' and '{name}': {identifier(name)}",
                remedy="rename one of them",
            )
    return list(known)


def mode_identifiers(names: Sequence[str]) -> list[str]:
    """Return the identifiers of modes: other characters become an underscore, and later ones of a kind get a number."""
    counts: dict[str, int] = {}
    result = []
    for name in names:
        text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "none"
        counts[text] = counts.get(text, 0) + 1
        result.append(text if counts[text] == 1 else f"{text}_{counts[text]}")
    return result
