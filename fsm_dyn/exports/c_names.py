"""C identifiers of the names in a model.

A letter, digit or underscore of ASCII stands for itself; every other character becomes ``_u<code point in hex>_``, and
so does a digit at the beginning of the model's name.  Every other name is put behind a prefix (``latch_contact_``), so
that no keyword can arise and none begins with a digit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from fsm_dyn.errors import InputError

COUNT: Final = "count"  # the last enumerator of every kind
OTHER: Final = "other"  # that of modes without a number
# files of exports and targets of their Makefiles; a model adds NAME.c, NAME.h and the program NAME
_TAKEN: Final = frozenset({"main", "board", "start", "runtime", "run", "stack", "size", "clean", "program", "library"})


def identifier(name: str) -> str:
    """Return a name in the characters that C allows in identifiers."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"_u{ord(found[0]):x}_", name)


def prefix_of(model: str) -> str:
    """Return what all identifiers and files of a model begin with.

    Raises
    ------
    InputError
        It is the name of a file of the export or of a target of its Makefile.
    """
    prefix = identifier(model)
    if prefix.lower() in _TAKEN or prefix.lower().startswith("fsm_"):
        raise InputError(
            "a model of this name cannot be exported: the export has files of that name",
            found=model,
            allowed=f"none of {', '.join(sorted(_TAKEN))}, and none that begins with 'fsm_'",
            remedy="rename the model",
        )
    return f"_u{ord(prefix[0]):x}_{prefix[1:]}" if prefix[0].isdigit() else prefix


def identifiers(kind: str, names: Sequence[str]) -> list[str]:
    """Return the identifiers of names of one kind.

    Raises
    ------
    InputError
        Two names have the same identifier, or one that of their number.
    """
    known: dict[str, str] = {COUNT: "the number of all"}
    for name in names:
        other = known.setdefault(identifier(name), name)
        if other != name:
            raise InputError(
                f"two {kind} have the same identifier in C",
                found=f"'{other}' and '{name}': {identifier(name)}",
                remedy="rename one of them",
            )
    return list(known)[1:]


def mode_identifiers(names: Sequence[str]) -> list[str]:
    """Return the identifiers of modes: other characters become an underscore, and later ones of a kind get a number."""
    taken = {COUNT, OTHER}
    result = []
    for name in names:
        text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "none"
        numbered = (text, *(f"{text}_{number}" for number in range(2, len(names) + 4)))
        result.append(next(each for each in numbered if each not in taken))
        taken.add(result[-1])
    return result
