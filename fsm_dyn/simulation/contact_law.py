"""The laws of contact and friction in one instant: which combination of choices keeps them.

All combinations of a connected set of contacts are tried, so that what is chosen, and how many others would have
done, is known (docs/theory.md, "Resolution").  Where contacts repeat each other, keeping the laws is a question of
feasibility (:mod:`fsm_dyn.simulation.feasibility`): rows may be redundant, choices never are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.arena import SOLVED, Arena, indices, mark, matrix, release, vector
from fsm_dyn.simulation.combination import solve_choices
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.feasibility import widest_margin
from fsm_dyn.simulation.linear import put
from fsm_dyn.simulation.meeting import (
    CHOICES,
    HOLD,
    PARTED_HOLD,
    Meeting,
    direction_of,
    is_open,
    side_of,
)

WORST: Final = 1e30
SAME: Final = 1e-6  # motions that differ by less than this part of the scale are one
STIRS: Final = 1e-8  # a redundant force that moves its contacts by more than this leaves the motion open
EXACT: Final = 1e-3  # part of the tolerance up to which rows that repeat each other differ by rounding alone
INEXACT: Final = 100.0  # cost of rows that agree no better than that: more than all contacts can cost

# which law a combination breaks
KEPT: Final = 0
PULLS: Final = 1
SINKS: Final = 2
OVER_LIMIT: Final = 3
AGAINST: Final = 4
NO_SOLUTION: Final = 5
NO_MOTION: Final = 6  # the forces are open, and the motion with them
LEFT: Final = 7  # the states whose guard fired together


class Trial(NamedTuple):
    """How one combination fares: its worst violation (a fraction of the scale), of which law, by which contact.

    ``excess`` is the violation of the static limit's kinetic counterpart: beyond it sticking rests on static
    friction.  ``apart``: by how much redundant rows contradict each other.
    """

    violation: float
    law: int
    contact: int
    excess: float
    apart: float


class Verdict(NamedTuple):
    """The outcome of trying all combinations.

    ``consistent``: how many keep the laws; ``tried``; ``motions``: how many different motions they stand for, counted
    up to 2 and without what static beyond kinetic friction holds; ``undetermined``: combinations that leave the
    motion open; ``nearest``: the least violation, if none is consistent.
    """

    consistent: int
    tried: int
    motions: int
    undetermined: int
    nearest: float


@lean
def scale_of(m: Meeting, y: NDArray[np.float64]) -> float:
    """The magnitude against which the laws are judged."""
    scale = max(m.scale[0], 1e-300)
    for i in range(y.shape[0]):
        scale = max(scale, abs(y[i]), abs(m.base[i] - m.target[i]), abs(m.floor[i]))
    return scale


@lean
def _inequalities(
    arena: Arena, m: Meeting, choices: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """The laws on forces as ``g y >= h``: no pull, and the static limit where a contact sticks."""
    n, count = m.K.shape[0], choices.shape[0]
    g, h = matrix(arena, 3 * count, n), vector(arena, 3 * count)
    at = 0
    for k in range(count):
        choice, a, b = choices[k], m.normal[k], m.tangent[k]
        if a >= 0 and not is_open(choice) and (m.two_sided[k] == 0 or direction_of(choice) != 0.0):
            g[at, a] = side_of(choice)
            h[at] = m.floor[a]
            at += 1
        if b < 0 or (choice != HOLD and choice != PARTED_HOLD) or m.infinite[k] == 1 or m.spatial[k] == 1:
            continue  # the circle of friction in space is asked of the forces of smallest norm, as in the modes
        for sign in (-1.0, 1.0):
            g[at, b] = sign
            if a >= 0:
                g[at, a] = m.static[k]
            else:
                h[at] = -m.static[k]
            at += 1
    return g[:at], h[:at], at


@lean
def judge(
    arena: Arena,
    m: Meeting,
    choices: NDArray[np.int64],
    y: NDArray[np.float64],
    v: NDArray[np.float64],
    tolerance: float,
) -> Trial:
    """Solve one combination and judge it; where forces are open, ``y`` becomes a choice that keeps the laws."""
    n = m.K.shape[0]
    arena.top[SOLVED] += 1
    remainder, basis = solve_choices(arena, m, choices, y, v)
    scale = scale_of(m, y)
    if remainder > tolerance * scale:
        return Trial(remainder / scale, NO_SOLUTION, 0, 0.0, remainder / scale)
    if basis.shape[1] > 0:
        g, h, count = _inequalities(arena, m, choices)
        slack, along = vector(arena, count), matrix(arena, count, basis.shape[1])
        needed = False
        for i in range(count):
            slack[i] = -h[i]
            for j in range(n):
                slack[i] += g[i, j] * y[j]
                for a in range(basis.shape[1]):
                    along[i, a] += g[i, j] * basis[j, a]
            needed = needed or slack[i] < 0.0
        if needed:
            _, s = widest_margin(arena, along, slack, scale)
            for j in range(n):
                for a in range(basis.shape[1]):
                    y[j] += basis[j, a] * s[a]
    worst, law, who, excess = -1.0, KEPT, 0, -1.0
    for k in range(choices.shape[0]):
        choice, a, b = choices[k], m.normal[k], m.tangent[k]
        along_slip = direction_of(choice)
        amount = -1.0
        if a >= 0 and is_open(choice):
            amount = m.target[a] - v[a] - (1.0 + m.kinetic[k]) * m.slack[k, 0]
            if amount > worst:
                worst, law, who = amount, SINKS, k
        elif a >= 0 and (m.two_sided[k] == 0 or along_slip != 0.0):
            amount = m.floor[a] - side_of(choice) * y[a] - m.slack[k, 0]
            if amount > worst:
                worst, law, who = amount, PULLS, k
        if b >= 0 and (choice == HOLD or choice == PARTED_HOLD) and m.infinite[k] == 0:
            load = 1.0
            if a >= 0:
                load = abs(y[a]) if m.two_sided[k] == 1 else y[a]
            friction = np.hypot(y[b], y[b + 1]) if m.spatial[k] == 1 else abs(y[b])
            amount = friction - m.static[k] * load
            excess = max(excess, friction - m.kinetic[k] * load)
            if amount > worst:
                worst, law, who = amount, OVER_LIMIT, k
        if b >= 0 and along_slip != 0.0 and m.slipping[k] == 0:
            amount = -along_slip * v[b]
            if m.spatial[k] == 1:  # with its slip, and not beside it
                beside = abs(m.way[k, 0] * v[b + 1] - m.way[k, 1] * v[b])
                amount = max(beside, -m.way[k, 0] * v[b] - m.way[k, 1] * v[b + 1])
            amount -= _friction_slack(m, k, y)
            if amount > worst:
                worst, law, who = amount, AGAINST, k
    if basis.shape[1] > 0 and worst <= tolerance * scale and _stirs(m, basis):
        return Trial(1.0, NO_MOTION, 0, 0.0, 0.0)
    return Trial(worst / scale, law, who, excess / scale, remainder / scale)


@lean
def _friction_slack(m: Meeting, k: int, y: NDArray[np.float64]) -> float:
    """How far the friction of a contact that begins to slide may be from its limit; in space that is known squared."""
    given, a = m.slack[k, 1], m.normal[k]
    if given == 0.0 or m.spatial[k] == 0:
        return float(given)
    bound = m.static[k] * (abs(y[a]) if a >= 0 else 1.0)
    return float(given / (bound + np.sqrt(given)))


@lean
def _stirs(m: Meeting, basis: NDArray[np.float64]) -> bool:
    """Whether forces that the equations leave open move anything."""
    n = m.K.shape[0]
    for a in range(basis.shape[1]):
        largest, work = 0.0, 0.0
        for i in range(n):
            largest = max(largest, abs(basis[i, a]))
            for j in range(n):
                work += basis[i, a] * m.K[i, j] * basis[j, a]
        if work > STIRS * largest * largest:
            return True
    return False


# a candidate in the log: which contacts (bits), their choices (decimal digits), violation, law and contact
LOG_WIDTH: Final = 4
LOG_SIZE: Final = 12


@lean
def write_log(
    log: NDArray[np.float64], at: int, choices: NDArray[np.int64], who: NDArray[np.int64], trial: Trial
) -> None:
    """Enter one candidate in the log of the instant; what no longer fits is left out."""
    if (at + 1) * LOG_WIDTH > log.shape[0]:
        return
    members, code = 0.0, 0.0
    for k in range(choices.shape[0]):
        members += 2.0 ** who[k]
        code = 10.0 * code + choices[k]
    log[at * LOG_WIDTH] = members
    log[at * LOG_WIDTH + 1] = code
    log[at * LOG_WIDTH + 2] = trial.violation
    log[at * LOG_WIDTH + 3] = 1000.0 * trial.law + who[trial.contact]


@lean
def enumerate_choices(
    arena: Arena,
    m: Meeting,
    tolerance: float,
    best: NDArray[np.int64],
    forces: NDArray[np.float64],
    answers: NDArray[np.float64],
    who: NDArray[np.int64],
    log: NDArray[np.float64],
    logged: int,
) -> Verdict:
    """Try every allowed combination of choices and keep the consistent one of least cost.

    Parameters
    ----------
    arena : Arena
    m : Meeting
    tolerance : float
        Violation up to which a law counts as kept, as a fraction of the scales at hand.
    best, forces, answers
        Out: the choices taken (n_contacts,), forces (n,) and motions (n,), scaled.
    who, log, logged
        Contacts in the numbering of the model; log of candidates, and how many it holds already.
    """
    count, n = m.normal.shape[0], m.K.shape[0]
    choices, ways = indices(arena, count), matrix(arena, count, 2)
    y, v, first = vector(arena, n), vector(arena, n), vector(arena, n)
    for k in range(count):
        while choices[k] < CHOICES and m.allowed[k, choices[k]] == 0:
            choices[k] += 1
        if choices[k] == CHOICES:
            return Verdict(0, 0, 0, 0, WORST)
    consistent, tried, motions, undetermined, nearest, least = 0, 0, 0, 0, WORST, WORST
    going = True
    while going:
        top = mark(arena)
        trial = judge(arena, m, choices, y, v, tolerance)
        release(arena, top)
        if trial.violation <= tolerance and _is_banned(m, choices):
            trial = Trial(1.0, LEFT, 0, 0.0, 0.0)
        write_log(log, logged + tried, choices, who, trial)
        tried += 1
        if not trial.violation <= tolerance:
            nearest = min(nearest, trial.violation)
            undetermined += 1 if trial.law == NO_MOTION else 0
        else:
            consistent += 1
            if trial.excess <= tolerance:
                motions = _count_motion(motions, first, v, SAME * scale_of(m, y))
            # rows that nearly agree make contacts stick that slide slowly: what agrees exactly goes first
            total = INEXACT if trial.apart > EXACT * tolerance else 0.0
            for k in range(count):
                total += m.cost[k, choices[k]]
            if total < least:
                least = total
                put(best, choices)
                put(forces, y)
                put(answers, v)
                for k in range(count):
                    ways[k, 0], ways[k, 1] = m.way[k, 0], m.way[k, 1]
        going = advance_choices(choices, m.allowed)
    for k in range(count):
        m.way[k, 0], m.way[k, 1] = ways[k, 0], ways[k, 1]
    return Verdict(consistent, tried, motions, undetermined, nearest)


@lean
def _is_banned(m: Meeting, choices: NDArray[np.int64]) -> bool:
    """Whether all contacts that together have to leave their states keep them."""
    some = False
    for k in range(choices.shape[0]):
        if m.banned[k] >= 0:
            some = True
            if m.banned[k] != choices[k]:
                return False
    return some


@lean
def _count_motion(motions: int, first: NDArray[np.float64], v: NDArray[np.float64], close: float) -> int:
    if motions == 0:
        put(first, v)
        return 1
    for i in range(v.shape[0]):
        if abs(v[i] - first[i]) > close:
            return 2
    return motions


@lean
def advance_choices(choices: NDArray[np.int64], allowed: NDArray[np.int64]) -> bool:
    """Step to the next allowed combination; False after the last."""
    for k in range(choices.shape[0]):
        for choice in range(choices[k] + 1, CHOICES):
            if allowed[k, choice] == 1:
                choices[k] = choice
                return True
        choices[k] = 0
        while choices[k] < CHOICES - 1 and allowed[k, choices[k]] == 0:
            choices[k] += 1
    return False
