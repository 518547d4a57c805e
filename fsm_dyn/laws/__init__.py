"""Contact laws, one file each; other modules use only their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fsm_dyn.laws.bearing import BEARING
from fsm_dyn.laws.compliant import COMPLIANT
from fsm_dyn.laws.declaration import (
    FREE,
    HELD,
    SLIDING,
    SLIDING_UNDER,
    WORDS,
    ConditionKind,
    Entry,
    Event,
    GuardQuantity,
    Law,
    Watched,
)
from fsm_dyn.laws.dry_friction import DRY_FRICTION
from fsm_dyn.laws.gap import GAP
from fsm_dyn.laws.limited_lock import LIMITED_LOCK
from fsm_dyn.laws.lock import LOCK
from fsm_dyn.laws.one_way import ONE_WAY
from fsm_dyn.laws.slot import SLOT

__all__ = [
    "FREE",
    "HELD",
    "LAWS",
    "SLIDING",
    "SLIDING_UNDER",
    "WORDS",
    "ConditionKind",
    "Entry",
    "Event",
    "GuardQuantity",
    "Law",
    "Watched",
    "law_of",
]  # fmt: skip

#: all laws; those of one kind differ by being bilateral
LAWS: Final = (GAP, SLOT, COMPLIANT, DRY_FRICTION, BEARING, LOCK, LIMITED_LOCK, ONE_WAY)

_BY_KIND: Final[Mapping[tuple[str, bool], Law]] = {(law.name, law.bilateral): law for law in LAWS}


def law_of(kind: str, bilateral: bool) -> Law:
    """Return the law of contacts of a kind; KeyError where there is none.

    Parameters
    ----------
    bilateral : bool
        Whether the contact also pulls.
    """
    return _BY_KIND[kind, bilateral]
