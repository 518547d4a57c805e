"""Tables of the enclosures of guards, by which the runtime proves that no guard is passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.programs.enclosure_code import EnclosureCode
from fsm_dyn.simulation import tables as tb

_ABSENT = -1


class GuardEnclosures(NamedTuple):
    """Entries of :class:`fsm_dyn.simulation.tables.Tables`, and the sizes that belong to them."""

    enclosure_code: NDArray[np.int64]
    enclosure_numbers: NDArray[np.float64]
    mode_enclosure: NDArray[np.int64]
    guard_enclosure: NDArray[np.int64]
    enclosure_room: NDArray[np.int64]
    sizes: dict[int, int]


def guard_enclosures(codes: Sequence[EnclosureCode | None], counts: Sequence[int]) -> GuardEnclosures:
    """Return the tables of modes.

    Parameters
    ----------
    codes : sequence of EnclosureCode or None
        Of the guards of each mode, None where they have none.
    counts : sequence of int
        Number of each mode's guards.
    """
    words: list[NDArray[np.int64]] = []
    numbers: list[NDArray[np.float64]] = []
    begin, outputs, room = [], [], [0]
    at = constants = 0
    known: dict[int, int] = {}  # modes may share a code
    for code, count in zip(codes, counts, strict=True):
        if code is None:
            begin.append(_ABSENT)
            outputs.append(np.full(count, _ABSENT, np.int64))
            room.append(room[-1])
            continue
        if id(code) not in known:
            known[id(code)] = at
            words += [np.array([constants], np.int64), code.words]
            numbers.append(code.numbers)
            at += 1 + len(code.words)
            constants += len(code.numbers)
        begin.append(known[id(code)])
        outputs.append(code.outputs)
        room.append(room[-1] + 1 + code.fixed + 3 * code.moving + count * (code.moving + 2))
    present = [code for code in codes if code is not None]
    sizes = {
        tb.MAX_MOVING: max((code.moving for code in present), default=0),
        tb.MAX_VALUES: max((code.values for code in present), default=0),
        tb.PROOF_WORDS: room[-1],
    }
    return GuardEnclosures(
        np.concatenate([np.zeros(0, np.int64), *words]),
        np.concatenate([np.zeros(0), *numbers]),
        np.array(begin, np.int64),
        np.concatenate([np.zeros(0, np.int64), *outputs]),
        np.array(room[:-1], np.int64),
        sizes,
    )
