"""Tables of the enclosures of guards, by which the runtime proves that no guard is passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.programs.enclosure_code import EnclosureCode
from fsm_dyn.runtime.abi import Sizes

_ABSENT = -1


class GuardEnclosures(NamedTuple):
    """Entries of :class:`fsm_dyn.runtime.layouts.Tables`, and the sizes that belong to them."""

    enclosure_code: NDArray[np.int64]
    enclosure_numbers: NDArray[np.float64]
    mode_enclosure: NDArray[np.int64]
    guard_enclosure: NDArray[np.int64]
    enclosure_room: NDArray[np.int64]
    sizes: dict[int, int]


def guard_enclosures(
    codes: Sequence[EnclosureCode | None], counts: Sequence[int], shared: EnclosureCode | None = None, most: int = 0
) -> GuardEnclosures:
    """Return the tables of modes.

    Parameters
    ----------
    codes : sequence of EnclosureCode or None
        Of the guards of each mode, None where they have none.  Modes of the same words share what is kept of them.
    counts : sequence of int
        Number of each mode's guards.
    shared : EnclosureCode, optional
        Of modes that may be added: it is the first part of the code, and its room the first part of the room.
    most : int, optional
        Number of guards that these modes have at most.
    """
    present = [code for code in (shared, *codes) if code is not None]
    distinct = {id(code.words): code for code in present}
    begin, room = {}, {}
    words: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    numbers: list[NDArray[np.float64]] = [np.zeros(0)]
    at = constants = kept = values = 0
    for key, code in distinct.items():
        guards = max([most, *(count for item, count in zip(codes, counts, strict=True) if _is(item, code))])
        begin[key], room[key] = at, kept
        words += [np.array([constants], np.int64), code.words]
        numbers.append(code.numbers)
        values = max(values, code.values + solved_values(code.unknowns, guards))
        at += 1 + len(code.words)
        constants += len(code.numbers)
        kept += 2 + code.fixed + 3 * code.moving + guards * (code.moving + 2)
    absent = [np.full(count, _ABSENT, np.int64) for count in counts]
    outputs = [none if code is None else code.outputs for code, none in zip(codes, absent, strict=True)]
    return GuardEnclosures(
        np.concatenate(words),
        np.concatenate(numbers),
        np.array([_ABSENT if code is None else begin[id(code.words)] for code in codes], np.int64),
        np.concatenate([np.zeros(0, np.int64), *outputs]),
        np.array([0 if code is None else room[id(code.words)] for code in codes], np.int64),
        {
            Sizes.MAX_MOVING: max((code.moving for code in present), default=0),
            Sizes.MAX_VALUES: values,
            Sizes.PROOF_WORDS: kept,
        },
    )


def solved_values(unknowns: int, guards: int) -> int:
    """Return how many jets the solution of so many equations for the guards on forces takes (force_enclosure.c)."""
    return guards + 2 * unknowns + unknowns**2 // 3 + 1 if unknowns else 0


def _is(code: EnclosureCode | None, other: EnclosureCode) -> bool:
    return code is not None and code.words is other.words
