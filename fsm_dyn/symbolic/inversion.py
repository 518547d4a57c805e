"""Solving linear systems whose entries are expressions, one coupled block at a time.

The systems are small and sparse: definitions of generalized speeds.  Rows and unknowns are put into block
triangular form; a block is solved by cofactors, reduced by ``sin² + cos² = 1`` and cancelled against the
determinant, so that nothing is divided by that need not be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fsm_dyn.programs import Node
from fsm_dyn.symbolic.gcd_cancellation import cancelled
from fsm_dyn.symbolic.trig_reduction import (
    UNIT,
    Monomial,
    Polynomial,
    Reducer,
    TooLargeError,
    inverse,
    plus,
    scaled,
    times,
)

LARGEST_BLOCK = 4  # larger blocks are eliminated step by step instead of by cofactors

Matrix = Sequence[Sequence[Node]]


@dataclass(frozen=True)
class Block:
    """Rows that are solved together for as many unknowns: ``unknown_i = sum_j above[i][j] right_j / below[i]``."""

    rows: tuple[int, ...]
    unknowns: tuple[int, ...]
    above: tuple[tuple[Node, ...], ...]
    below: tuple[Node, ...]

    def solve(self, right: Sequence[Node]) -> list[Node]:
        """Return the unknowns for one right-hand side."""
        solution = []
        for above, below in zip(self.above, self.below, strict=True):
            total = below.graph.zero
            for factor, value in zip(above, right, strict=True):
                total = total + factor * value
            solution.append(total / below)
        return solution


def blocks_of(matrix: Matrix) -> list[tuple[list[int], list[int]]] | None:
    """Return (rows, unknowns) of the coupled blocks in the order of solution.

    Returns None where no assignment of unknowns to rows exists, so that the matrix is singular by its zeros alone.
    """
    n = len(matrix)
    owner = _matching(matrix)
    if owner is None:
        return None
    row_of = dict(enumerate(owner))
    reach = [1 << row for row in range(n)]  # bit masks: which rows must be solved for this row's unknown
    for row in range(n):
        for column in range(n):
            if not matrix[row][column].is_zero:
                reach[row] |= 1 << row_of[column]
    for middle in range(n):
        for row in range(n):
            if reach[row] >> middle & 1:
                reach[row] |= reach[middle]
    unknown_of = {row: column for column, row in row_of.items()}
    groups: dict[int, list[int]] = {}
    for row in range(n):
        groups.setdefault(reach[row], []).append(row)
    ordered = sorted(groups.items(), key=lambda item: (item[0].bit_count(), item[1]))
    return [(rows, sorted(unknown_of[row] for row in rows)) for _, rows in ordered]


def _matching(matrix: Matrix) -> list[int] | None:
    """Return for each column a row with an entry there, all different, or None."""
    n = len(matrix)
    owner: list[int] = [-1] * n

    def place(row: int, tried: set[int]) -> bool:
        for column in range(n):
            if not matrix[row][column].is_zero and column not in tried:
                tried.add(column)
                if owner[column] < 0 or place(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    return owner if all(place(row, set()) for row in range(n)) else None


def invert(matrix: Matrix, reducer: Reducer) -> tuple[list[list[Node]], list[Node]] | None:
    """Return (above, below) with ``inverse[i][j] = above[i][j] / below[i]``, or None where the matrix is singular."""
    n = len(matrix)
    if n <= LARGEST_BLOCK:
        try:
            return _by_cofactors(matrix, reducer)
        except TooLargeError:
            pass
    return _by_elimination(matrix, reducer)


def _by_cofactors(matrix: Matrix, reducer: Reducer) -> tuple[list[list[Node]], list[Node]] | None:
    entries = [[reducer.polynomial(node) for node in row] for row in matrix]
    everything = list(range(len(entries)))
    determinant = _determinant(entries, everything, everything, reducer)
    if not determinant:
        return None
    above, below = [], []
    for i in everything:
        numerators = []
        for j in everything:
            rows = [row for row in everything if row != j]
            columns = [column for column in everything if column != i]
            minor = _determinant(entries, rows, columns, reducer)
            numerators.append(scaled(minor, -1.0 if (i + j) % 2 else 1.0))
        numerators, denominator = _quotients(numerators, determinant, reducer)
        above.append([reducer.node(numerator) for numerator in numerators])
        below.append(reducer.node(denominator))
    return above, below


def _determinant(
    entries: Sequence[Sequence[Polynomial]], rows: list[int], columns: list[int], reducer: Reducer
) -> Polynomial:
    if not rows:
        return {UNIT: 1.0}
    total: Polynomial = {}
    for k, column in enumerate(columns):
        entry = entries[rows[0]][column]
        if entry:
            minor = _determinant(entries, rows[1:], columns[:k] + columns[k + 1 :], reducer)
            total = plus(total, times(entry, minor), -1.0 if k % 2 else 1.0)
    return reducer.joined(reducer.normal(total))


def _quotients(
    numerators: list[Polynomial], determinant: Polynomial, reducer: Reducer
) -> tuple[list[Polynomial], Polynomial]:
    """Cancel what one row of cofactors and the determinant have in common."""
    if len(determinant) > 1:
        numerators, determinant = cancelled(numerators, determinant)
    if len(determinant) > 1:
        return numerators, determinant
    reciprocal = inverse(determinant)
    quotients = [reducer.joined(times(numerator, reciprocal)) for numerator in numerators]
    divisor = {_divisor(quotients): 1.0}
    return [times(quotient, divisor) for quotient in quotients], divisor


def _divisor(quotients: Sequence[Polynomial]) -> Monomial:
    """Return the monomial that makes all exponents whole again."""
    lowest: dict[int, int] = {}
    for quotient in quotients:
        for monomial in quotient:
            for atom, exponent in monomial:
                lowest[atom] = min(lowest.get(atom, 0), exponent)
    return tuple((atom, -exponent) for atom, exponent in sorted(lowest.items()) if exponent < 0)


def _by_elimination(matrix: Matrix, reducer: Reducer) -> tuple[list[list[Node]], list[Node]] | None:
    """Invert by Gauss and Jordan's elimination, the simplest entry of a column as pivot."""
    n = len(matrix)
    graph = matrix[0][0].graph
    left = [list(row) for row in matrix]
    right = [[graph.one if i == j else graph.zero for j in range(n)] for i in range(n)]
    for k in range(n):
        candidates = [row for row in range(k, n) if not reducer.is_zero(left[row][k])]
        if not candidates:
            return None
        pivot = min(candidates, key=lambda row: (left[row][k].constant_value is None, left[row][k].index))
        left[k], left[pivot] = left[pivot], left[k]
        right[k], right[pivot] = right[pivot], right[k]
        reciprocal = 1.0 / left[k][k]
        left[k] = [entry * reciprocal for entry in left[k]]
        right[k] = [entry * reciprocal for entry in right[k]]
        for row in range(n):
            factor = left[row][k]
            if row != k and not factor.is_zero:
                left[row] = [reducer.reduce(a - factor * b) for a, b in zip(left[row], left[k], strict=True)]
                right[row] = [reducer.reduce(a - factor * b) for a, b in zip(right[row], right[k], strict=True)]
    return right, [graph.one] * n
