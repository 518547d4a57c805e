"""The decision of one instant: connected sets of contacts, each by enumeration or by complementarity."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation.arena import Arena, indices, mark, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.contact_law import WORST, Verdict, enumerate_choices
from fsm_dyn.simulation.lemke import propose
from fsm_dyn.simulation.meeting import CHOICES, PARTED_BACKWARD, PARTED_HOLD, Meeting, components, part_of

ENUMERATED: Final = 6  # contacts that feel each other, up to which all combinations are tried


@lean
def decide(
    arena: Arena,
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
    arena, m, tolerance, best, forces, answers, who, log, logged
        As for :func:`~fsm_dyn.simulation.contact_law.enumerate_choices`; forces and motions come back unscaled.

    Returns
    -------
    status : int
        ``GOING``, ``INCONSISTENT``, ``SEVERAL`` (``best`` holds the one that changes least) or ``NON_UNIQUE``.
    verdict : Verdict
        Of all sets together: combinations tried, the least number of consistent ones, the most motions.
    """
    count = m.normal.shape[0]
    group = components(arena, m)
    together = 0 < count <= ENUMERATED
    for k in range(count):
        together = together and group[k] == 0
    if together:
        return _decide_together(arena, m, tolerance, best, forces, answers, who, log, logged)
    status, tried, consistent, motions, undetermined, nearest = outcomes.GOING, 0, 0, 0, 0, WORST
    for number in range(count):
        size = 0
        for k in range(count):
            size += group[k] == number
        if size == 0:
            continue
        top = mark(arena)
        members, rows = indices(arena, size), indices(arena, 3 * size)
        part_who = indices(arena, size)
        at, n = 0, 0
        for k in range(count):
            if group[k] == number:
                members[at], part_who[at] = k, who[k]
                at += 1
                for row in (m.normal[k], m.tangent[k], m.tangent[k] + 1 if m.spatial[k] == 1 else -1):
                    if row >= 0:
                        rows[n] = row
                        n += 1
        part = part_of(arena, m, members, rows[:n])
        part_best, part_forces, part_answers = indices(arena, size), vector(arena, n), vector(arena, n)
        if size > ENUMERATED:
            _narrow(arena, part, part_best, tolerance)
        part_status, verdict = _decide_together(
            arena, part, tolerance, part_best, part_forces, part_answers, part_who, log, logged + tried
        )
        tried += verdict.tried
        if size > ENUMERATED and verdict.consistent == 0:
            part = part_of(arena, m, members, rows[:n])  # once more, with what hardly slides sliding
            _narrow(arena, part, part_best, 0.0)
            part_status, verdict = _decide_together(
                arena, part, tolerance, part_best, part_forces, part_answers, part_who, log, logged + tried
            )
            tried += verdict.tried
        consistent = verdict.consistent if consistent == 0 else min(consistent, verdict.consistent)
        motions, undetermined = max(motions, verdict.motions), max(undetermined, verdict.undetermined)
        if verdict.consistent == 0:
            nearest = min(nearest, verdict.nearest)
            consistent = 0
            status = part_status
            break
        status = max(status, part_status)
        for i in range(size):
            best[members[i]] = part_best[i]
            m.way[members[i], 0], m.way[members[i], 1] = part.way[i, 0], part.way[i, 1]
        for i in range(n):
            forces[rows[i]], answers[rows[i]] = part_forces[i], part_answers[i]
        release(arena, top)
    return status, Verdict(consistent, tried, motions, undetermined, nearest)


@lean
def _decide_together(
    arena: Arena,
    m: Meeting,
    tolerance: float,
    best: NDArray[np.int64],
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
    who: NDArray[np.int64],
    log: NDArray[np.float64],
    logged: int,
) -> tuple[int, Verdict]:
    """As :func:`decide`, of contacts that all feel each other."""
    verdict = enumerate_choices(arena, m, tolerance, best, forces, answers, who, log, logged)
    if verdict.consistent == 0 and verdict.tried > 0:
        return (outcomes.NON_UNIQUE if verdict.undetermined > 0 else outcomes.INCONSISTENT), verdict
    for i in range(forces.shape[0]):
        forces[i] *= m.unit[i]
        answers[i] /= m.unit[i]
    return (outcomes.SEVERAL if verdict.motions > 1 else outcomes.GOING), verdict


@lean
def _narrow(arena: Arena, part: Meeting, proposal: NDArray[np.int64], tolerance: float) -> None:
    """Leave each contact only the choice that complementarity proposes, unless that is not allowed.

    One at rest whose slip would accelerate by no more than ``tolerance`` of the scale sticks.
    """
    for k in range(part.normal.shape[0]):
        if part.two_sided[k] == 1 or part.spatial[k] == 1:
            return
        for choice in range(PARTED_HOLD, PARTED_BACKWARD + 1):
            if part.allowed[k, choice] == 1:
                return
    if not propose(arena, part, proposal, tolerance):
        return
    for k in range(part.normal.shape[0]):
        if part.allowed[k, proposal[k]] == 1:
            for choice in range(CHOICES):
                part.allowed[k, choice] = 1 if choice == proposal[k] else 0
