"""The decision of one instant: connected sets of contacts, each by enumeration or by complementarity."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation.compiled import inner
from fsm_dyn.simulation.contact_law import WORST, Verdict, enumerate_choices
from fsm_dyn.simulation.lemke import propose
from fsm_dyn.simulation.meeting import CHOICES, Meeting, components, part_of

ENUMERATED: Final = 6  # contacts that feel each other, up to which all combinations are tried


@inner
def decide(
    m: Meeting,
    tolerance: float,
    best: NDArray[np.int64],
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
    who: NDArray[np.int64],
    log: NDArray[np.float64],
    logged: int,
) -> tuple[int, Verdict]:
    """Find choices for all contacts; contacts that do not feel each other are decided apart.

    Parameters
    ----------
    m, tolerance, best, forces, answers, who, log, logged
        As for :func:`~fsm_dyn.simulation.contact_law.enumerate_choices`; forces and motions come back unscaled.

    Returns
    -------
    status : int
        ``GOING``, ``INCONSISTENT``, ``SEVERAL`` (``best`` holds the one that changes least) or ``NON_UNIQUE``.
    verdict : Verdict
        Of all sets together: combinations tried, the least number of consistent ones, the most motions.
    """
    count = m.normal.shape[0]
    group = components(m)
    status, tried, consistent, motions, undetermined, nearest = outcomes.GOING, 0, 0, 0, 0, WORST
    for number in range(count):
        size = 0
        for k in range(count):
            size += group[k] == number
        if size == 0:
            continue
        members, rows = np.empty(size, np.int64), np.empty(2 * size, np.int64)
        at, n = 0, 0
        for k in range(count):
            if group[k] == number:
                members[at] = k
                at += 1
                for row in (m.normal[k], m.tangent[k]):
                    if row >= 0:
                        rows[n] = row
                        n += 1
        part = part_of(m, members, rows[:n])
        part_best, part_forces, part_answers = np.zeros(size, np.int64), np.zeros(n), np.zeros(n)
        if size > ENUMERATED:
            _narrow(part, part_best)
        verdict = enumerate_choices(
            part, tolerance, part_best, part_forces, part_answers, who[members], log, logged + tried
        )
        tried += verdict.tried
        consistent = verdict.consistent if consistent == 0 else min(consistent, verdict.consistent)
        motions, undetermined = max(motions, verdict.motions), max(undetermined, verdict.undetermined)
        if verdict.consistent == 0:
            nearest = min(nearest, verdict.nearest)
            consistent = 0
            status = outcomes.NON_UNIQUE if verdict.undetermined > 0 else outcomes.INCONSISTENT
            break
        if verdict.motions > 1:
            status = outcomes.SEVERAL
        for i in range(size):
            best[members[i]] = part_best[i]
        for i in range(n):
            forces[rows[i]] = part_forces[i] * part.unit[i]
            answers[rows[i]] = part_answers[i] / part.unit[i]
    return status, Verdict(consistent, tried, motions, undetermined, nearest)


@inner
def _narrow(part: Meeting, proposal: NDArray[np.int64]) -> None:
    """Leave each contact only the choice that complementarity proposes, unless that is not allowed."""
    for k in range(part.normal.shape[0]):
        if part.two_sided[k] == 1 or part.allowed[k, 4:7].any():
            return
    if not propose(part, proposal):
        return
    for k in range(part.normal.shape[0]):
        if part.allowed[k, proposal[k]] == 1:
            for choice in range(CHOICES):
                part.allowed[k, choice] = 1 if choice == proposal[k] else 0
