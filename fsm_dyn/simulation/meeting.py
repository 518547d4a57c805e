"""Contacts that meet in one instant: the problem that an impact and the choice of the next mode have in common.

Contact rows answer forces ``y`` with ``v = base + K y`` (K: the inverse mass seen by the rows, bilateral rows
already held).  Every contact makes one *choice*, and the choices turn into as many linear equations as there are
rows.  Asked of speeds the answer is an impact (docs/theory.md, "Impacts"), asked of accelerations it is the next
mode ("Resolution").

Rows are scaled so that K has a unit diagonal: rank and tolerances then do not depend on units, and forces, impulses
and motions of all rows compare with one scale.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.arena import Arena, index_table, indices, matrix, vector
from fsm_dyn.simulation.bundles import Bundle
from fsm_dyn.simulation.compiled import lean

# what a contact can choose
OPEN: Final = 0
HOLD: Final = 1  # normal and tangent rows held
FORWARD: Final = 2  # slides with direction +1
BACKWARD: Final = 3  # slides with direction -1
PARTED_HOLD: Final = 4  # parts under the impulse given (Poisson's expansion), and its friction stops the slip
PARTED_FORWARD: Final = 5
PARTED_BACKWARD: Final = 6
UNDER_FORWARD: Final = 7  # slides, a slot pressed on its other face (normal force negative)
UNDER_BACKWARD: Final = 8
CHOICES: Final = 9

HIDDEN: Final = 1e-12  # a row whose response is this part of what it would be without the others is held by them


class Meeting(NamedTuple):
    """One instant's contacts, scaled; n rows, one entry or line per contact elsewhere.

    ``normal tangent`` (int64): each contact's rows among the n, -1 where there is none; ``K`` (n, n), ``base``
    (n,); ``target`` (n,): what a held row is brought to, and an open one stays above; ``floor`` (n,): normal force
    given beforehand; ``static kinetic``: coefficients of friction, or bounds of the force where there is no normal
    row; ``infinite``: never slides; ``two_sided``: normal force of either sign, never open; ``slipping``: the
    direction is known from a slip speed that is not zero; ``allowed cost`` (·, CHOICES): ``cost`` decides between
    consistent combinations, the smaller sum is taken; ``banned``: choice that a contact may not keep if all others
    with one keep theirs, -1: none; ``unit`` (n,): forces and motions as they are are
    ``unit * y`` and ``v / unit``; ``scale`` (1,): magnitude against which zero is judged, at least; ``spatial``: slips
    in two directions, the row after its tangent row is the second, and ``FORWARD`` is the only way to slide; ``way``
    (·, 2): the unit vector of that slip, given where ``slipping``, else found; ``slack`` (·, 2): how far the normal
    force and the margin of friction of a contact whose guard fired may be from zero, see
    :mod:`fsm_dyn.simulation.fired` (the margin squared where ``spatial``), zero for all others.
    """

    normal: NDArray[np.int64]
    tangent: NDArray[np.int64]
    K: NDArray[np.float64]
    base: NDArray[np.float64]
    target: NDArray[np.float64]
    floor: NDArray[np.float64]
    static: NDArray[np.float64]
    kinetic: NDArray[np.float64]
    infinite: NDArray[np.int64]
    two_sided: NDArray[np.int64]
    slipping: NDArray[np.int64]
    allowed: NDArray[np.int64]
    banned: NDArray[np.int64]
    cost: NDArray[np.float64]
    unit: NDArray[np.float64]
    scale: NDArray[np.float64]
    spatial: NDArray[np.int64]
    way: NDArray[np.float64]
    slack: NDArray[np.float64]


_MEETING: Final = Bundle(Meeting, {"K": 2, "allowed": 2, "cost": 2, "way": 2, "slack": 2}, lasting=False)
_WORDS: Final = _MEETING.words
_make = _MEETING.maker()


@lean
def direction_of(choice: int) -> float:
    """Slip direction of a choice, 0 where it does not slide."""
    if choice == FORWARD or choice == PARTED_FORWARD or choice == UNDER_FORWARD:
        return 1.0
    if choice == BACKWARD or choice == PARTED_BACKWARD or choice == UNDER_BACKWARD:
        return -1.0
    return 0.0


@lean
def is_open(choice: int) -> bool:
    """Whether the normal row is not held."""
    return choice == OPEN or (choice >= PARTED_HOLD and choice <= PARTED_BACKWARD)


@lean
def side_of(choice: int) -> float:
    """Sign of the normal force that a sliding choice assumes."""
    return -1.0 if choice >= UNDER_FORWARD else 1.0


@lean
def empty_meeting(arena: Arena, count: int) -> Meeting:
    """A meeting of so many contacts, three rows each at most, no rows given yet."""
    n, none = 3 * count, vector(arena, 0)
    m = Meeting(
        indices(arena, count), indices(arena, count), matrix(arena, 0, 0), none, vector(arena, n), vector(arena, n),
        vector(arena, count), vector(arena, count), indices(arena, count), indices(arena, count),
        indices(arena, count), index_table(arena, count, CHOICES), indices(arena, count),
        matrix(arena, count, CHOICES), none, none, indices(arena, count), matrix(arena, count, 2),
        matrix(arena, count, 2),
    )  # fmt: skip
    for k in range(count):
        m.normal[k] = m.tangent[k] = m.banned[k] = -1
    return _make(indices(arena, _WORDS), m)


@lean
def scaled(
    arena: Arena,
    m: Meeting,
    K: NDArray[np.float64],
    base: NDArray[np.float64],
    free: NDArray[np.float64],
    scale: float,
) -> Meeting:
    """Fill in the response of the rows, scaled.

    Parameters
    ----------
    m : Meeting
        Everything but ``K base unit scale``, unscaled.  What concerns contacts is shared with the result (and its
        coefficients of friction are scaled), what concerns rows is not: see :func:`aim`.
    K : (n, n), base : (n,)
        As computed.
    free : (n,)
        Response of each row to itself with no other row held, to judge what is rounding.
    scale : float
        Magnitude of the motion in the metric of kinetic energy, square root of (J) or (J/s²).
    """
    n = base.shape[0]
    unit = vector(arena, n)
    for i in range(n):
        unit[i] = 1.0
        if K[i, i] > HIDDEN * free[i]:
            unit[i] = 1.0 / np.sqrt(K[i, i])
        elif free[i] > 0.0:
            unit[i] = -1.0 / np.sqrt(free[i])
    for k in range(m.tangent.shape[0]):
        if m.spatial[k] == 1:  # one unit for both, or the circle of friction were none
            b = m.tangent[k]
            both = min(abs(unit[b]), abs(unit[b + 1]))
            if unit[b] * unit[b + 1] < 0.0:
                both = max(unit[b], unit[b + 1])
            unit[b], unit[b + 1] = np.sign(unit[b]) * both, np.sign(unit[b + 1]) * both
    response = matrix(arena, n, n)
    for i in range(n):
        for j in range(n):
            if unit[i] > 0.0 and unit[j] > 0.0:
                response[i, j] = K[i, j] * unit[i] * unit[j]
    for i in range(n):
        unit[i] = abs(unit[i])
    for k in range(m.normal.shape[0]):
        if m.tangent[k] >= 0:
            ratio = 1.0 / unit[m.tangent[k]]
            if m.normal[k] >= 0:
                ratio *= unit[m.normal[k]]
            m.static[k] *= ratio
            m.kinetic[k] *= ratio
            m.slack[k, 1] /= unit[m.tangent[k]] ** (2 if m.spatial[k] == 1 else 1)
        if m.normal[k] >= 0:
            m.slack[k, 0] /= unit[m.normal[k]]
    problem = Meeting(
        m.normal, m.tangent, response, vector(arena, n), vector(arena, n), vector(arena, n), m.static, m.kinetic,
        m.infinite, m.two_sided, m.slipping, m.allowed, m.banned, m.cost, unit, vector(arena, 1), m.spatial, m.way,
        m.slack,
    )  # fmt: skip
    problem.scale[0] = scale
    made = _make(indices(arena, _WORDS), problem)
    aim(made, m, base)
    return made


@lean
def aim(problem: Meeting, m: Meeting, base: NDArray[np.float64]) -> None:
    """Give a scaled meeting other motions to begin with, and the targets and floors that ``m`` has now."""
    for i in range(base.shape[0]):
        problem.base[i] = base[i] * problem.unit[i]
        problem.target[i] = m.target[i] * problem.unit[i]
        problem.floor[i] = m.floor[i] / problem.unit[i]


@lean
def components(arena: Arena, m: Meeting) -> NDArray[np.int64]:
    """Number the contacts so that contacts which feel each other, directly or through others, share a number."""
    count = m.normal.shape[0]
    group, rows = indices(arena, count), index_table(arena, count, 3)
    for k in range(count):
        group[k] = k
        rows[k, 0], rows[k, 1] = m.normal[k], m.tangent[k]
        rows[k, 2] = m.tangent[k] + 1 if m.spatial[k] == 1 else -1
    for k in range(count):
        for other in range(k):
            coupled = False
            for a in rows[k]:
                for b in rows[other]:
                    if a >= 0 and b >= 0 and abs(m.K[a, b]) > HIDDEN:
                        coupled = True
            if coupled and group[k] != group[other]:
                old, new = max(group[k], group[other]), min(group[k], group[other])
                for i in range(count):
                    if group[i] == old:
                        group[i] = new
    return group


@lean
def part_of(arena: Arena, m: Meeting, members: NDArray[np.int64], rows: NDArray[np.int64]) -> Meeting:
    """The meeting of some contacts only, with the rows (listed) that are theirs, those of each in one piece."""
    count, n = members.shape[0], rows.shape[0]
    part = empty_meeting(arena, count)
    K, base, unit = matrix(arena, n, n), vector(arena, n), vector(arena, n)
    target, floor = vector(arena, n), vector(arena, n)
    for i in range(n):
        base[i], target[i], floor[i], unit[i] = m.base[rows[i]], m.target[rows[i]], m.floor[rows[i]], m.unit[rows[i]]
        for j in range(n):
            K[i, j] = m.K[rows[i], rows[j]]
    for at in range(count):
        k = members[at]
        for i in range(n):
            if rows[i] == m.normal[k]:
                part.normal[at] = i
            if rows[i] == m.tangent[k]:
                part.tangent[at] = i
        part.static[at], part.kinetic[at] = m.static[k], m.kinetic[k]
        part.infinite[at], part.two_sided[at], part.slipping[at] = m.infinite[k], m.two_sided[k], m.slipping[k]
        part.banned[at], part.spatial[at] = m.banned[k], m.spatial[k]
        part.way[at, 0], part.way[at, 1] = m.way[k, 0], m.way[k, 1]
        part.slack[at, 0], part.slack[at, 1] = m.slack[k, 0], m.slack[k, 1]
        for choice in range(CHOICES):
            part.allowed[at, choice], part.cost[at, choice] = m.allowed[k, choice], m.cost[k, choice]
    chosen = Meeting(
        part.normal, part.tangent, K, base, target, floor, part.static, part.kinetic, part.infinite, part.two_sided,
        part.slipping, part.allowed, part.banned, part.cost, unit, m.scale,
        part.spatial, part.way, part.slack,
    )  # fmt: skip
    return _make(indices(arena, _WORDS), chosen)
