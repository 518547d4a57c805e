"""Elimination on nodes, Gaussian and of quadratic forms; least squares whose rounding is the same everywhere."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.programs.graph import ExpressionGraph, Node

Form = Mapping[int, Node]


@dataclass(frozen=True)
class Step:
    """An eliminated variable as a function of the remaining ones: ``x = sum form[j] x_j + rest``."""

    variable: int
    form: Form
    rest: Node


class QuadraticForm:
    """``1/2 xᵀ Q x - Fᵀ x`` with the nonzero entries of Q and F.

    ``entries``, dict of int to dict of int to Node: the rows of Q; both triangles are kept. ``forces``, dict of int to
    Node.
    """

    def __init__(self, graph: ExpressionGraph) -> None:
        self.graph = graph
        self.entries: dict[int, dict[int, Node]] = {}
        self.forces: dict[int, Node] = {}

    def copy(self) -> QuadraticForm:
        """Return an independent copy."""
        other = QuadraticForm(self.graph)
        other.entries = {i: dict(row) for i, row in self.entries.items()}
        other.forces = dict(self.forces)
        return other

    def add(self, i: int, j: int, amount: Node) -> None:
        """Add to Q_ij and Q_ji."""
        if amount.is_zero:
            return
        row = self.entries.setdefault(i, {})
        total = row[j] + amount if j in row else amount
        if total.is_zero:
            del row[j]
            if i != j:
                del self.entries[j][i]
            return
        row[j] = total
        self.entries.setdefault(j, {})[i] = total

    def add_square(self, form: Form, weight: Node) -> None:
        """Add ``1/2 weight (form . x)²``."""
        known = list(form.items())
        for position, (i, a) in enumerate(known):
            for j, b in known[position:]:
                self.add(i, j, weight * (a * b))

    def add_product(self, left: Form, right: Form, weight: Node) -> None:
        """Add ``weight (left . x) (right . x)``."""
        for i, a in left.items():
            for j, b in right.items():
                amount = weight * (a * b)
                self.add(i, j, 2.0 * amount if i == j else amount)

    def add_force(self, i: int, force: Node) -> None:
        """Add to F_i."""
        self.forces[i] = self.forces[i] + force if i in self.forces else force

    def push_along(self, form: Form, force: Node) -> None:
        """Add a force along ``form . x``."""
        if not force.is_zero:
            for i, a in form.items():
                self.add_force(i, a * force)

    def degree(self, i: int) -> int:
        """Return the number of variables coupled with one."""
        return len(self.entries.get(i, ()))

    def _take(self, k: int) -> tuple[Node, dict[int, Node], Node]:
        """Remove a variable; return its diagonal entry, its coupling with others, and its force."""
        row = self.entries.pop(k, {})
        diagonal = row.pop(k, self.graph.zero)
        for j in row:
            del self.entries[j][k]
        return diagonal, row, self.forces.pop(k, self.graph.zero)

    def discard(self, k: int) -> None:
        """Put ``x_k = 0``."""
        self._take(k)

    def substitute(self, k: int, form: Form, rest: Node) -> Step:
        """Put ``x_k = form . x + rest``."""
        diagonal, coupling, force = self._take(k)
        zero = self.graph.zero
        known = list(form.items())
        for position, (i, a) in enumerate(known):
            own, met = a * diagonal, coupling.get(i, zero)
            self.add(i, i, a * (own + 2.0 * met))
            for j, b in known[position + 1 :]:
                self.add(i, j, b * (own + met) + a * coupling.get(j, zero))
            for j, entry in coupling.items():
                if j not in form:
                    self.add(i, j, a * entry)
        self.push_along(form, force - diagonal * rest)
        for j, entry in coupling.items():
            if not rest.is_zero:
                self.add_force(j, -(entry * rest))
        return Step(k, form, rest)

    def minimise(self, k: int) -> Step:
        """Take the variable at which the form is stationary, given all others; its diagonal entry is divided by."""
        diagonal, coupling, force = self._take(k)
        inverse = 1.0 / diagonal
        known = sorted(coupling.items())
        factors = {j: entry * inverse for j, entry in known}
        for position, (i, entry) in enumerate(known):
            for j, _ in known[position:]:
                self.add(i, j, -(factors[j] * entry))
            if not force.is_zero:
                self.add_force(i, -(factors[i] * force))
        return Step(k, {j: -factor for j, factor in factors.items()}, force * inverse)


def back_substitute(steps: Sequence[Step]) -> dict[int, Node]:
    """Return all eliminated variables, from the last one to the first."""
    values: dict[int, Node] = {}
    for step in reversed(steps):
        total = step.rest
        for j, factor in step.form.items():
            total = total + factor * values[j]
        values[step.variable] = total
    return values


def leaves_first(defined: Mapping[int, Form], free: Iterable[int]) -> list[int]:
    """Return an elimination order of ``defined`` and ``free`` variables: from the end of the longest chain on.

    A variable can be eliminated when no remaining definition mentions it. Definitions mention earlier ones only.
    """
    depth = dict.fromkeys(free, 0)
    uses = dict.fromkeys((*depth, *defined), 0)
    for k, form in sorted(defined.items()):
        depth[k] = 1 + max((depth[j] for j in form if j in defined), default=0)
        for j in form:
            uses[j] += 1
            if j not in defined:
                depth[j] = max(depth[j], depth[k])
    waiting = [(-depth[i], i in defined, -i) for i, count in uses.items() if count == 0]
    heapq.heapify(waiting)
    order: list[int] = []
    while waiting:
        k = -heapq.heappop(waiting)[2]
        order.append(k)
        for j in defined.get(k, ()):
            uses[j] -= 1
            if uses[j] == 0:
                heapq.heappush(waiting, (-depth[j], j in defined, -j))
    return order


# -- Gaussian elimination on expression nodes, in an order determined in advance by numeric samples ----------
#
# A straight-line program cannot choose pivots, so the order is chosen here once, for a set of sampled configurations:
# the entry with the least fill (Markowitz) among those large enough in every sample (partial pivoting with a
# threshold). Such an order is a *chart*: valid near the samples; its pivots show the end of its validity
# (docs/theory.md, "Charts").

Matrix = list[list[Node]]

THRESHOLD = 0.1  # an entry may be a pivot if it is at least this part of the largest of its row
_TIE = 1e-6  # relative excess of a row preferred to an earlier one
RANK = 1e-9  # scaled remainder; rows below it are combinations of earlier ones


@dataclass(frozen=True)
class Factors:
    """The outcome of eliminating an (m, n) matrix: ``steps`` turn its rows into ``rows``.

    ``pivots`` lists (row, column) in order; ``dropped`` lists rows found to depend on others.
    """

    rows: Matrix
    steps: tuple[tuple[int, int, Node], ...]
    pivots: tuple[tuple[int, int], ...]
    inverses: tuple[Node, ...]
    dropped: tuple[int, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The pivot columns in order."""
        return tuple(column for _, column in self.pivots)

    def solve(self, right: Sequence[Node]) -> dict[int, Node]:
        """Solve for the pivot columns: returns {column: node} with ``A_D x = right``."""
        values = list(right)
        for row, pivot_row, factor in self.steps:
            values[row] = values[row] - factor * values[pivot_row]
        return self.substitute_back(values)

    def substitute_back(self, values: Sequence[Node]) -> dict[int, Node]:
        """Back substitution for an eliminated right-hand side."""
        solution: dict[int, Node] = {}
        for (row, column), inverse in zip(reversed(self.pivots), reversed(self.inverses), strict=True):
            remainder = values[row]
            for other, value in solution.items():
                remainder = remainder - self.rows[row][other] * value
            solution[column] = remainder * inverse
        return solution

    def solve_transposed(self, right: Sequence[Node], zero: Node) -> list[Node]:
        """Solve ``A_Dᵀ y = right`` (one entry per pivot, in pivot order); rows dropped get zero."""
        result = [zero] * len(self.rows)
        for k, (row, column) in enumerate(self.pivots):
            remainder = right[k]
            for earlier, _ in self.pivots[:k]:
                remainder = remainder - self.rows[earlier][column] * result[earlier]
            result[row] = remainder * self.inverses[k]
        for row, pivot_row, factor in reversed(self.steps):
            result[pivot_row] = result[pivot_row] - factor * result[row]
        return result


def eliminate(
    matrix: Sequence[Sequence[Node]],
    samples: Floats,
    columns: Sequence[int],
    order: Sequence[tuple[int, int]] | None = None,
    partner: Floats | None = None,
    kept: Sequence[int] | None = None,
) -> Factors:
    """Eliminate ``matrix`` (m, n) on nodes, pivoting in ``columns`` only.

    ``matrix``, m rows of n nodes. ``samples``, shape (n_samples, m, n): the same matrix evaluated, columns scaled to
    like magnitude; it guides the order.  The first one is the present state. ``columns``, indices of the columns
    allowed as pivots. ``order``, pivots to use as they are (a saved chart); chosen from the samples if None.
    ``partner``, shape (n_samples, m, n): samples of another matrix, to be eliminated in the same order: it influences
    the choice of pivots, but not the redundant rows. ``kept``, indices of the rows allowed to hold pivots
    (:func:`independent_rows`); all of them if None.
    """
    rows = [list(row) for row in matrix]
    own = len(samples)
    numbers = np.concatenate([samples, samples[:0] if partner is None else partner]).astype(np.float64)
    scale = np.abs(numbers).max(axis=2, initial=1e-300)
    open_rows = list(range(len(rows)))
    open_columns = list(columns)
    steps: list[tuple[int, int, Node]] = []
    pivots: list[tuple[int, int]] = []
    inverses: list[Node] = []
    while open_rows and (order is None or len(pivots) < len(order)):
        if order is None:
            candidates = [row for row in open_rows if kept is None or row in kept]
            choice = _choose(rows, numbers / scale[:, :, None], own, candidates, open_columns)
        else:
            choice = order[len(pivots)]
        if choice is None:
            break
        pivot_row, pivot_column = choice
        open_rows.remove(pivot_row)
        open_columns.remove(pivot_column)
        inverse = 1.0 / rows[pivot_row][pivot_column]
        done = {column for _, column in pivots} | {pivot_column}
        for row in open_rows:
            entry = rows[row][pivot_column]
            if entry.is_zero:
                continue
            factor = entry * inverse
            steps.append((row, pivot_row, factor))
            ratio = _ratio(numbers[:, row, pivot_column], numbers[:, pivot_row, pivot_column])
            numbers[:, row, :] -= ratio[:, None] * numbers[:, pivot_row, :]
            numbers[:, row, pivot_column] = 0.0
            for column in range(len(rows[row])):
                if column not in done and not rows[pivot_row][column].is_zero:
                    rows[row][column] = rows[row][column] - factor * rows[pivot_row][column]
        pivots.append((pivot_row, pivot_column))
        inverses.append(inverse)
    return Factors(rows, tuple(steps), tuple(pivots), tuple(inverses), tuple(open_rows))


def independent_rows(matrix: Floats, sizes: Floats, least: float) -> list[int] | None:
    """Return rows of a matrix (m, n) with its full rank, as independent of each other as possible.

    None if no row depends on others. The choice matters in an overconstrained closed loop: the kept rows may become
    dependent while all together keep their rank. ``matrix``, shape (m, n): columns scaled to like magnitude. ``sizes``,
    shape (m,): known largest sizes of the rows: a row that vanishes here holds little. ``least``: relative remainder of
    a row; below it the row depends on the others.
    """
    sizes = np.maximum(np.linalg.norm(matrix, axis=1), sizes)
    rest = matrix / np.where(sizes > 0.0, sizes, 1.0)[:, None]
    kept: list[int] = []
    while len(kept) < len(matrix):
        left = np.linalg.norm(rest, axis=1)
        row = int(np.argmax(left >= left.max() * (1.0 - _TIE)))  # ties go to the first declared
        if left[row] <= least:
            return sorted(kept)
        kept.append(row)
        rest = rest - np.outer(rest @ rest[row], rest[row]) / left[row] ** 2
        rest[row] = 0.0
    return None


def _ratio(entry: Floats, pivot: Floats) -> Floats:
    safe = np.where(pivot == 0.0, 1.0, pivot)
    return np.where(pivot == 0.0, 0.0, entry / safe)


def _choose(
    rows: Matrix, numbers: Floats, own: int, open_rows: Sequence[int], open_columns: Sequence[int]
) -> tuple[int, int] | None:
    """Pick the pivot of least fill among those large enough in every sample; None if no rank is left.

    The first ``own`` samples are those of the matrix itself, the others its partner's.
    """
    if not open_rows or not open_columns:
        return None
    block = np.abs(numbers[np.ix_(range(len(numbers)), list(open_rows), list(open_columns))])
    largest = block.max(axis=2)  # (samples, rows)
    filled = np.array([[not rows[r][c].is_zero for c in open_columns] for r in open_rows])
    per_row = filled.sum(axis=1)
    per_column = filled.sum(axis=0)
    best: tuple[float, float, int, int] | None = None
    for i, row in enumerate(open_rows):
        if largest[:own, i].max() < RANK:
            continue
        for j, column in enumerate(open_columns):
            if not filled[i, j]:
                continue
            relative = block[:, i, j] / np.maximum(largest[:, i], RANK)
            if relative.min() < THRESHOLD:
                continue
            constant = rows[row][column].constant_value
            cost = float((per_row[i] - 1) * (per_column[j] - 1)) - (0.5 if constant is not None else 0.0)
            key = (cost, -float(relative.min()), row, column)
            if best is None or key < best:
                best = key
    if best is not None:
        return best[2], best[3]
    # no entry is valid in every sample: the present state decides, with its partner if there is still a choice
    present = np.where(filled, block[0], 0.0)
    shared = np.minimum(present, block[own]) if own < len(block) else present
    flat = shared if shared.max() >= RANK else present
    if flat.max() < RANK:
        return None
    place = np.unravel_index(int(np.argmax(flat)), flat.shape)
    return open_rows[int(place[0])], open_columns[int(place[1])]


def solve_symmetric(matrix: Matrix, right: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Solve ``matrix x = right`` by L D Lᵀ with pivots of least fill on the diagonal; returns x and the pivots d."""
    size = len(matrix)
    work = [list(row) for row in matrix]
    values = list(right)
    remaining = list(range(size))
    order: list[int] = []
    inverses: dict[int, Node] = {}
    while remaining:
        k = min(remaining, key=lambda i: (sum(not work[i][j].is_zero for j in remaining), i))
        remaining.remove(k)
        order.append(k)
        inverses[k] = 1.0 / work[k][k]
        coupled = [i for i in remaining if not work[k][i].is_zero]
        factors = {i: work[k][i] * inverses[k] for i in coupled}
        for a, i in enumerate(coupled):
            values[i] = values[i] - factors[i] * values[k]
            for j in coupled[a:]:
                work[i][j] = work[j][i] = work[i][j] - factors[i] * work[k][j]
    solution: dict[int, Node] = {}
    for k in reversed(order):
        remainder = values[k]
        for j, value in solution.items():
            if not work[k][j].is_zero:
                remainder = remainder - work[k][j] * value
        solution[k] = remainder * inverses[k]
    return [solution[k] for k in range(size)], [work[k][k] for k in range(size)]


# -- Products and least squares with the same rounding on every processor ------------------------------------
#
# A library of linear algebra sums in another order, and with or without fused operations, on every kind of processor
# (OpenBLAS has kernels for each). The start of a run is part of its bytes: these sums are NumPy's elementwise ones, in
# one order. They are for matrices of some tens of rows; nothing here is called in a loop of a run.

DEPENDENT = 1e-9  # relative to the largest entry; below it a column is zero


def product(a: Floats, b: Floats) -> Floats:
    """Return ``a @ b`` for shapes (m, n) with (n,) or (n, p)."""
    terms = a * b if b.ndim == 1 else a[:, :, None] * b[None]
    summed: Floats = terms.sum(axis=1)
    return summed


def norm(vector: Floats) -> float:
    """Return the Euclidean norm of a vector, shape (n,)."""
    return math.sqrt(float((vector * vector).sum()))


def dependent_columns(matrix: Floats, free: Sequence[int], least: float = DEPENDENT) -> list[int]:
    """Choose, from the columns ``free``, the fewest with the full rank of the rows; later ones are preferred.

    ``matrix``, shape (m, n); ``least``: least remainder of a chosen column, relative to the largest entry.
    """
    scale = float(np.abs(matrix).max()) if matrix.size else 0.0
    chosen: list[int] = []
    basis = np.zeros((matrix.shape[0], 0))
    for column in reversed(free):
        vector = matrix[:, column].copy()
        for _ in range(2):
            vector = vector - product(basis, product(basis.T, vector))
        size = norm(vector)
        if size > least * max(scale, 1e-300):
            basis = np.column_stack([basis, vector / size])
            chosen.append(column)
    return sorted(chosen)


def least_squares(matrix: Floats, right: Floats, rcond: float) -> Floats:
    """Return the solution of least norm of ``matrix @ x = right`` in the sense of least squares.

    By Householder's reflections with interchanges of columns, and for a rank deficiency once more from the other side:
    Golub and Van Loan, *Matrix Computations*, 4th edition, 5.5.2 and algorithm 5.4.1 (the complete orthogonal
    decomposition). ``matrix``, shape (m, n); ``right``, shape (m,) or (m, p); ``rcond``: columns whose remainder is
    below this part of the largest do not count for the rank. The result has the shape (n,) or (n, p).
    """
    n = matrix.shape[1]
    columns = right[:, None] if right.ndim == 1 else right
    reduced, turned, order = _triangular(matrix, columns, rcond)
    rank = len(reduced)
    if rank < n:  # R has full row rank: R^T P = Q S, and x = Q S^-T P^T y is the shortest solution
        square, kept, inner = _triangular(reduced.T, np.eye(n), 0.0)
        inside = product(kept.T, _back(square.T[::-1, ::-1], turned[inner][::-1])[::-1])
    else:
        inside = _back(reduced, turned)
    found = np.empty((n, columns.shape[1]))
    found[order] = inside
    return found[:, 0] if right.ndim == 1 else found


def _triangular(matrix: Floats, right: Floats, rcond: float) -> tuple[Floats, Floats, list[int]]:
    """Return R, shape (rank, n), the turned right-hand side, and the columns of ``matrix`` in the order of R."""
    work, right = matrix.astype(np.float64), right.astype(np.float64)
    m, n = work.shape
    order = list(range(n))
    largest = 0.0
    for k in range(min(m, n)):
        sizes = (work[k:, k:] ** 2).sum(axis=0)
        best = k + int(np.argmax(sizes))
        size = math.sqrt(float(sizes[best - k]))
        largest = max(largest, size)
        if not size > rcond * largest:
            return work[:k], right[:k], order
        work[:, [k, best]] = work[:, [best, k]]
        order[k], order[best] = order[best], order[k]
        mirror = work[k:, k].copy()
        mirror[0] += math.copysign(size, float(mirror[0]))
        scale = 2.0 / float((mirror * mirror).sum())
        for block in (work[k:, k:], right[k:]):
            block -= mirror[:, None] * (scale * (mirror[:, None] * block).sum(axis=0))
        work[k + 1 :, k] = 0.0
    return work[: min(m, n)], right[: min(m, n)], order


def _back(upper: Floats, right: Floats) -> Floats:
    """Solve with an upper triangular matrix."""
    found = right.copy()
    for k in reversed(range(len(upper))):
        found[k] = (found[k] - (upper[k, k + 1 :, None] * found[k + 1 :]).sum(axis=0)) / upper[k, k]
    return found
