"""Limits of forces that contacts share: laws with the indeterminate multipliers eliminated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fsm_dyn.core.errors import ModelError
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node

NOTHING = 1e-9  # an entry of N below this is zero
SIGN = 1e-6  # relative to the largest entry beside it, or 1: an entry of N so far beyond zero has changed its sign
MOST_LIMITS = 4096  # six contacts on one line take 111; a mode with more is refused, not truncated


@dataclass(frozen=True)
class Limit:
    """One law on the multipliers, ``value >= 0``, with its (event, contact, direction).

    ``open_part`` (k nodes) and ``numbers`` (k,): derivatives by the indeterminate multipliers.
    """

    value: Node
    open_part: tuple[Node, ...]
    numbers: tuple[float, ...]
    members: frozenset[tuple[int, int, float]]


class TooManyLimitsError(ModelError):
    """Contacts of a mode share their forces in more ways than are listed: only online embedding evaluates it."""


def determinate_limits(limits: Sequence[Limit], count: int) -> tuple[list[Limit], list[Node]]:
    """Eliminate the ``count`` indeterminate multipliers from the laws.

    A law composed of more than j + 1 others after j eliminations follows from simpler ones (Chernikov), and so does one
    with both directions of a contact's friction.

    Parameters
    ----------
    limits : sequence of Limit
        The laws, each with ``count`` derivatives.
    count : int
        Number of indeterminate multipliers.

    Returns
    -------
    list of Limit
        The remaining laws.
    list of Node
        For every coefficient whose sign they depend on, 1 while it has the sign of its number, else 0: two laws limit
        each other only with opposite signs, so with another sign the mode has other limits.

    Raises
    ------
    TooManyLimitsError
        The redundant contacts have more than ``MOST_LIMITS`` limits.
    """
    current, signs = list(limits), list[Node]()
    for j in range(count):
        signs += _kept_signs(current, j)
        above = [limit for limit in current if limit.numbers[j] > NOTHING]
        below = [limit for limit in current if limit.numbers[j] < -NOTHING]
        current = [limit for limit in current if abs(limit.numbers[j]) <= NOTHING]
        for up in above:
            for down in below:
                members = up.members | down.members
                subjects = {(event, subject) for event, subject, _ in members}
                if len(members) <= j + 2 and len(subjects) == len(members):
                    current.append(_combined(up, down, j, members))
            if len(current) > MOST_LIMITS:
                contacts = {contact for limit in limits for _, contact, _ in limit.members}
                raise TooManyLimitsError(
                    "the contacts of a mode share their forces in more ways than can be listed",
                    found=f"more than that of {len(contacts)} contacts, {count} of their forces not determined",
                    allowed=f"{MOST_LIMITS} limits",
                    remedy="simulate(..., strategy='online') needs no list; or omit redundant contacts",
                )
    return current, signs


def _kept_signs(limits: Sequence[Limit], j: int) -> list[Node]:
    """For each law, 1 where its coefficient of multiplier ``j`` has the sign of its number, else 0.

    Infinite friction has no limit, and takes no part in the elimination.
    """
    finite = [limit for limit in limits if math.isfinite(limit.numbers[j])]
    allowed = SIGN * max([1.0, *(abs(limit.numbers[j]) for limit in finite)])
    signs = []
    for limit in finite:
        node, number = limit.open_part[j], limit.numbers[j]
        if node.constant_value is None:
            beyond = functions.absolute(node) if abs(number) <= NOTHING else -node if number > 0.0 else node
            signs.append(functions.where(functions.compare("<=", beyond, allowed), 1.0, 0.0))
    return signs


def _combined(up: Limit, down: Limit, j: int, members: frozenset[tuple[int, int, float]]) -> Limit:
    a, b = -down.open_part[j], up.open_part[j]
    x, y = -down.numbers[j], up.numbers[j]
    return Limit(
        a * up.value + b * down.value,
        tuple(a * p + b * q for p, q in zip(up.open_part, down.open_part, strict=True)),
        tuple(x * p + y * q for p, q in zip(up.numbers, down.numbers, strict=True)),
        members,
    )
