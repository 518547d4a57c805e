"""Outcomes of a run: a code for the runtime, and name, sentence and remedy for the user.

Statuses up to ``Status.LAST_INTERNAL`` never reach a user: they ask the Python side for
something (more room, another mode) and the run continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fsm_dyn.runtime.abi import STATUS_TEXTS, Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way a run ends (or pauses).

    Attributes
    ----------
    code : int
        What the compiled loop returns.
    name : str
        Short name, fit for a log or a table.
    sentence : str
        What happened, in one sentence.
    remedy : str
        What the user can do about it; empty where nothing is wrong.
    failed : bool
        Whether the run could not do what was asked.
    """

    code: int
    name: str
    sentence: str
    remedy: str = ""
    failed: bool = True

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
UNDECIDED: Final = (
    Status.INCONSISTENT,
    Status.NON_UNIQUE_STATE,
    Status.NON_UNIQUE,
)  # outcomes that list the candidates examined
AT_CHANGE_POINTS: Final = (
    Status.STRETCHED,
    Status.UNDETERMINED,
    Status.NO_BRANCH,
    Status.EVENT_IN_CHANGE_POINT,
)  # outcomes that name the rows that lose rank

OUTCOMES: Final[dict[int, Outcome]] = {
    status: Outcome(status, *STATUS_TEXTS[status], failed=status not in _NOT_FAILED) for status in Status
}
