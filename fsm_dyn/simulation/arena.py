"""Room for the arrays of an instant, handed out from one block that is allocated once.

Transitions need matrices whose sizes depend on who touches whom.  Asking the system for them, dozens of times in
every transition, costs more than the arithmetic; here an array is a view of what the block still has, and to give
back is to set a mark back.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.bundles import in_rows
from fsm_dyn.simulation.compiled import lean

# entries of ``Arena.top``
FLOATS: Final = 0  # floats handed out
INTEGERS: Final = 1
MOST_FLOATS: Final = 2  # the most there ever were
MOST_INTEGERS: Final = 3
OVERFLOWN: Final = 4  # 1: more was asked for than there is, and what was handed out since is not to be trusted
SOLVED: Final = 5  # combinations of contact states solved so far
TOP_COUNT: Final = 6

Mark = tuple[int, int]


class Arena(Protocol):
    """Anything that has the three arrays of an arena."""

    @property
    def floats(self) -> NDArray[np.float64]:
        """Return the floats to hand out."""

    @property
    def integers(self) -> NDArray[np.int64]:
        """Return the integers to hand out."""

    @property
    def top(self) -> NDArray[np.int64]:
        """Return how much is in use, (TOP_COUNT,)."""


class Workspace(Arena, Protocol):
    """An arena, and the addresses of the bundles that go with it."""

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Return the addresses: that of the terms."""


@lean
def mark(arena: Arena) -> Mark:
    """Return what :func:`release` needs to take back everything handed out from now on."""
    return arena.top[FLOATS], arena.top[INTEGERS]


@lean
def release(arena: Arena, at: Mark) -> None:
    """Take back everything handed out since the mark."""
    arena.top[FLOATS], arena.top[INTEGERS] = at


@lean
def _room(arena: Arena, which: int, count: int, there: int) -> int:
    """Return where ``count`` entries begin.  Beyond the block they begin at its start, and that is noted."""
    begin = arena.top[which]
    if begin + count > there:
        arena.top[OVERFLOWN] = 1
        begin = 0
    arena.top[which] = begin + count
    arena.top[which + MOST_FLOATS] = max(arena.top[which + MOST_FLOATS], begin + count)
    return int(begin)


@lean
def vector(arena: Arena, n: int) -> NDArray[np.float64]:
    """Hand out ``n`` floats, all zero."""
    begin = _room(arena, FLOATS, n, arena.floats.shape[0])
    view = arena.floats[begin : begin + n]
    for i in range(n):
        view[i] = 0.0
    return view


@lean
def matrix(arena: Arena, n: int, m: int) -> NDArray[np.float64]:
    """Hand out ``n`` times ``m`` floats, all zero."""
    return in_rows(vector(arena, n * m), n, m)


@lean
def indices(arena: Arena, n: int) -> NDArray[np.int64]:
    """Hand out ``n`` integers, all zero."""
    begin = _room(arena, INTEGERS, n, arena.integers.shape[0])
    view = arena.integers[begin : begin + n]
    for i in range(n):
        view[i] = 0
    return view


@lean
def index_table(arena: Arena, n: int, m: int) -> NDArray[np.int64]:
    """Hand out ``n`` times ``m`` integers, all zero."""
    return in_rows(indices(arena, n * m), n, m)


@lean
def copied(arena: Arena, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hand out a copy of a vector."""
    view = vector(arena, values.shape[0])
    for i in range(values.shape[0]):
        view[i] = values[i]
    return view
