"""Outcomes of a run for the user, and candidates of a contact problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.runtime.abi import LOG_WIDTH, STATUS_TEXTS, Choice, ChosenBy, Status, Violation

# -- Outcomes of a run: a code for the runtime, and name, sentence and remedy for the user -------------------
#
# Statuses up to ``Status.LAST_INTERNAL`` never reach a user: they ask the Python side for something (more room,
# another mode) and the run continues.


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way a run ends (or pauses)."""

    code: int  # return value of the compiled loop
    name: str  # short name, fit for a log or a table
    sentence: str  # the outcome in one sentence
    remedy: str = ""  # advice to the user; empty if nothing is wrong
    failed: bool = True  # whether the run could not be completed

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}" + (f" Remedy: {self.remedy}" if self.remedy else "")


_NOT_FAILED: Final = (
    Status.CONTINUE,
    Status.PAUSED,
    Status.BUFFER_FULL,
    Status.NEED_MODE,
    Status.NEED_CHART,
    Status.DONE,
    Status.STOPPED,
    Status.LEFT_RANGE,
)
COMPLETE: Final = (Status.DONE, Status.STOPPED)  # outcomes of runs judged to their end
UNDECIDED: Final = (
    Status.INCONSISTENT,
    Status.NON_UNIQUE_STATE,
    Status.NON_UNIQUE,
)  # outcomes with a list of examined candidates
AT_CHANGE_POINTS: Final = (
    Status.STRETCHED,
    Status.UNDETERMINED,
    Status.NO_BRANCH,
    Status.EVENT_IN_CHANGE_POINT,
)  # outcomes with the names of the rows of lost rank

OUTCOMES: Final[dict[int, Outcome]] = {
    status: Outcome(status, *STATUS_TEXTS[status], failed=status not in _NOT_FAILED) for status in Status
}


# -- Candidates of a contact problem, read from its log ------------------------------------------------------

LAWS_KEPT: Final = 1e-9

_CHOICES: Final = (
    "open", "stick", "slide +", "slide -", "parting", "parting, slide +", "parting, slide -", "slide + (other face)",
    "slide - (other face)",
)  # fmt: skip
_BROKEN: Final[dict[int, str]] = {
    Violation.TENSION: "{0}: tensile normal force",
    Violation.PENETRATION_RATE: "{0}: penetrating acceleration",
    Violation.FRICTION_EXCEEDED: "{0}: friction limit exceeded",
    Violation.SLIP_AGAINST_FRICTION: "{0}: slip against friction",
    Violation.NO_SOLUTION: "inconsistent constraint rows",
    Violation.MOTION_INDETERMINATE: "motion undetermined",
    Violation.EXCLUDED: "excluded: its guard fired",
    Violation.SHARE_LEFT_OUT: "{0}: would carry a share of the load",
}
_WHOLE: Final = 2.0**53  # up to here every whole number is a double
_MANY: Final = 1024  # base of the numbers of contacts, if they are not bits
CHOSEN: Final[dict[int, str]] = {
    ChosenBy.NO_CANDIDATES: "no contact to decide on",
    ChosenBy.UNIQUE: "only consistent candidate",
    ChosenBy.LEAST_CHANGE: "fewest state changes among consistent candidates",
    ChosenBy.FIRED_STATE_KEPT: "no other consistent candidate; fired state kept",
    ChosenBy.POLICY: "several consistent motions; fewest state changes, by on_nonunique",
    ChosenBy.CONTINUITY: (
        "several consistent motions; by continuity, sticking contacts within their limits keep sticking"
    ),
    ChosenBy.PAST_LIMIT: "several consistent motions at the limit of friction; the only one just past it",
    ChosenBy.IMPACT_WITHOUT_COLLISION: "no consistent candidate; impact without collision, by on_inconsistent",
}


@dataclass(frozen=True)
class Candidate:
    """One candidate: a choice for every contact of the problem."""

    # tuple of (contact, code): indices of contacts, and choices (:class:`fsm_dyn.runtime.abi.Choice`)
    choices: tuple[tuple[int, int], ...]
    # worst violation of a law, relative to the largest current force or acceleration; consistent up to 1e-9
    violation: float
    # law, contact: which law (:class:`fsm_dyn.runtime.abi.Violation`) is violated, by which contact
    law: int
    contact: int

    @property
    def is_consistent(self) -> bool:
        """Whether the contact laws are satisfied."""
        return self.violation <= LAWS_KEPT

    def describe(self, contacts: Sequence[ContactInfo]) -> str:
        """Return the choices, and the contact law they violate if any, as text."""
        tried = ", ".join(f"{contacts[k].name} {_choice(contacts[k], code)}" for k, code in self.choices)
        if self.is_consistent:
            return f"{tried}: consistent"
        broken = _BROKEN[self.law].format(contacts[self.contact].name)
        return f"{tried}: {broken} (by {self.violation:.3g} of the scale)"


def _choice(contact: ContactInfo, code: int) -> str:
    """Return a choice as text: the first two are states of the contact, in the words of its law."""
    own = contact.states[code] if code <= Choice.HOLD else ""
    return own or _CHOICES[code]


def read_candidates(log: Floats, tried: int) -> tuple[Candidate, ...]:
    """Read the log of a contact problem with ``tried`` candidates; it has the first of them.

    Candidates whose contacts or choices a double cannot represent are omitted.
    """
    found = []
    entries = log.reshape(-1, LOG_WIDTH)[:tried]
    for row in entries[_exact(entries)]:
        contacts, code = _contacts(int(row[0])), int(row[1])
        digits = f"{code:0{len(contacts)}d}"[-len(contacts) :] if contacts else ""
        choices = tuple((contact, int(digit)) for contact, digit in zip(contacts, digits, strict=False))
        found.append(Candidate(choices, float(row[2]), int(row[3]) // 1000, int(row[3]) % 1000))
    return tuple(found)


def _contacts(number: int) -> list[int]:
    """Return the contacts of a candidate: bits, or of a negative number its digits to the base 1024, from 1."""
    if number >= 0:
        return [k for k in range(number.bit_length()) if number >> k & 1]
    found, rest = [], -number
    while rest:
        rest, digit = divmod(rest, _MANY)
        found.append(digit - 1)
    return found[::-1]


def _exact(entries: Floats) -> Booleans:
    """Whether doubles represent contacts and choices of log entries, shape (n, LOG_WIDTH), exactly."""
    return np.asarray((np.abs(entries[:, :2]) < _WHOLE).all(axis=1))


def candidates_fit(log: Floats, n_contacts: int) -> bool:
    """Whether an untrusted log, shape (n, LOG_WIDTH), has valid contacts, choices and laws."""
    numbers = log[:, [0, 1, 3]]
    if not ((numbers >= [-_WHOLE, 0.0, 0.0]) & (numbers < [np.inf, np.inf, 1e15])).all():
        return False
    log, numbers = log[_exact(log)], numbers[_exact(log)]
    members, codes, broken = numbers.astype(np.int64).T
    good = all(0 <= k < n_contacts for number in np.unique(members) for k in _contacts(int(number)))
    good &= bool((broken % 1000 < max(n_contacts, 1)).all())
    good &= bool((np.isin(broken // 1000, [*_BROKEN]) | (log[:, 2] <= LAWS_KEPT)).all())
    while good and codes.any():
        good = bool((codes % 10 < len(_CHOICES)).all())
        codes = codes // 10
    return good
