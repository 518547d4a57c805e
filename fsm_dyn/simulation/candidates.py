"""The candidates of a decision, read back from its log and told in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import candidate_codes as codes

LAWS_KEPT: Final = 1e-9

_CHOICES: Final = (
    "open", "stick", "slide +", "slide -", "parting", "parting, slide +", "parting, slide -", "slide + (other face)",
    "slide - (other face)",
)  # fmt: skip
_BROKEN: Final = {
    codes.TENSION: "{0} would pull",
    codes.PENETRATION_RATE: "{0} would sink in",
    codes.FRICTION_EXCEEDED: "{0} would need more friction than it has",
    codes.SLIP_AGAINST_FRICTION: "{0} would slide against its acceleration",
    codes.NO_SOLUTION: "its rows contradict each other",
    codes.MOTION_INDETERMINATE: "it leaves the motion undetermined",
    codes.EXCLUDED: "it is the state whose guard fired",
}
_WHOLE: Final = 2.0**53  # up to here every whole number is a double
CHOSEN: Final = {
    codes.NO_CANDIDATES: "nothing to choose",
    codes.UNIQUE: "the only one that agrees with forces and accelerations",
    codes.LEAST_CHANGE: "of those that agree, the one that changes least",
    codes.FIRED_STATE_KEPT: "nothing else agreed, so the state whose guard fired goes on",
    codes.POLICY: "several motions agree; by on_nonunique the one that changes least goes on",
    codes.CONTINUITY: "several motions agree; by continuity what stuck before and is not at its limit goes on sticking",
    codes.IMPACT_WITHOUT_COLLISION: "nothing agreed; by on_inconsistent an impact without collision stopped the slip",
}


@dataclass(frozen=True)
class Candidate:
    """One combination that was tried.

    Attributes
    ----------
    choices : tuple of (contact, code)
        Indices of contacts, and choices of :mod:`fsm_dyn.simulation.candidate_codes`.
    violation : float
        Worst violation of a law, as a fraction of the largest force or acceleration at hand; up to 1e-9 it is none.
    law, contact : int
        Which law (:mod:`fsm_dyn.simulation.candidate_codes`) is broken, by which contact.
    """

    choices: tuple[tuple[int, int], ...]
    violation: float
    law: int
    contact: int

    @property
    def is_consistent(self) -> bool:
        """Whether all laws are kept."""
        return self.violation <= LAWS_KEPT

    def describe(self, names: Sequence[str]) -> str:
        """Say what was tried and how it fared."""
        tried = ", ".join(f"{names[contact]} {_CHOICES[code]}" for contact, code in self.choices)
        if self.is_consistent:
            return f"{tried}: agrees"
        return f"{tried}: {_BROKEN[self.law].format(names[self.contact])} (by {self.violation:.3g} of the scale)"


def read_candidates(log: NDArray[np.float64], tried: int) -> tuple[Candidate, ...]:
    """Read the log of a decision in which ``tried`` combinations were tried; it holds the first of them.

    Contacts are bits of a double and choices its digits: combinations that it cannot hold are left out.
    """
    found = []
    entries = log.reshape(-1, codes.LOG_WIDTH)[:tried]
    for row in entries[_held(entries)]:
        members, code = int(row[0]), int(row[1])
        contacts = [k for k in range(members.bit_length()) if members >> k & 1]
        digits = f"{code:0{len(contacts)}d}"[-len(contacts) :] if contacts else ""
        choices = tuple((contact, int(digit)) for contact, digit in zip(contacts, digits, strict=False))
        found.append(Candidate(choices, float(row[2]), int(row[3]) // 1000, int(row[3]) % 1000))
    return tuple(found)


def _held(entries: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell for entries of a log, shape (n, LOG_WIDTH), whether doubles hold their contacts and choices exactly."""
    return np.asarray((entries[:, :2] < _WHOLE).all(axis=1))


def candidates_fit(log: NDArray[np.float64], n_contacts: int) -> bool:
    """Tell whether a log, shape (n, LOG_WIDTH), that may come from a stranger names what there is."""
    numbers = log[:, [0, 1, 3]]
    if not ((numbers >= 0.0) & (numbers < [np.inf, np.inf, 1e15])).all():
        return False
    log, numbers = log[_held(log)], numbers[_held(log)]
    members, codes, broken = numbers.astype(np.int64).T
    good = bool((members >> min(n_contacts, 62) == 0).all() and (broken % 1000 < max(n_contacts, 1)).all())
    good &= bool((np.isin(broken // 1000, [*_BROKEN]) | (log[:, 2] <= LAWS_KEPT)).all())
    while good and codes.any():
        good = bool((codes % 10 < len(_CHOICES)).all())
        codes = codes // 10
    return good
