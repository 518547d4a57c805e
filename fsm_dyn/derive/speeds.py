"""From the definitions of the generalized speeds to the rates of the coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.reduction import UNIT, Monomial, Polynomial, Reducer, TooLargeError, inverse, plus, scaled, times
from fsm_dyn.derive.symbols import MechanismSymbols
from fsm_dyn.derive.velocities import Motion, Rates
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.memory import speed_definitions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import TIME
from fsm_dyn.programs.traversal import evaluate, substitute, support, tangent

# -- Test of identities: values of expressions at arbitrary configurations -----------------------------------

SEED = 20030818  # any fixed number: the meaning of a model does not change from run to run


def sample(system: MechanismSymbols, nodes: Sequence[Node], count: int = 1) -> Floats:
    """Return the values of `nodes` at `count` arbitrary states, shape (count, len(nodes)).

    All symbols get arbitrary values between 0.3 and 1.3; Euler parameters are scaled to unit norm. ``system``: gives
    the symbols; ``nodes``: expressions of them.
    """
    random = np.random.default_rng(SEED)
    symbols = sorted(support(nodes) | {e for group in system.euler for e in group}, key=lambda node: node.name)
    values = {symbol.name: random.uniform(0.3, 1.3, count) for symbol in symbols}
    for group in system.euler:
        norm = np.sqrt(sum(values[e.name] ** 2 for e in group))
        for e in group:
            values[e.name] = values[e.name] / norm
    return np.stack([np.broadcast_to(value, (count,)) for value in evaluate(nodes, values)], axis=-1)


# -- Errors of speed definitions insufficient for the rates of the coordinates -------------------------------

SHARE = 1e-6  # a row or unknown with a smaller part in a null vector is not named


class _Row(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> Text: ...
    @property
    def kinematic(self) -> bool: ...


def speed_count_error(
    system: MechanismSymbols, rows: Sequence[_Row], unknowns: Sequence[Node], Y: Sequence[Sequence[Node]]
) -> ModelError:
    """Return the error for different numbers of rows and of rates."""
    kinematic = sum(row.kinematic for row in rows)
    have = f"{_number(len(rows) - kinematic, 'speed')} and {_number(kinematic, 'kinematic row')}"
    message = f"{have} for {_number(len(unknowns), 'rate')}"
    if len(rows) > len(unknowns):
        many = len(rows) - len(unknowns)
        return ModelError(
            f"{message}: {many} too many",
            _place(system, rows),
            found=", ".join(row.name for row in rows),
            remedy="remove a speed, or drop 'kinematic: true' from a constraint: it is then embedded as the others are",
        )
    missing = len(unknowns) - len(rows)
    _, free = _null_spaces(system, rows, unknowns, Y)
    return ModelError(
        f"{message}: {missing} more {'is' if missing == 1 else 'are'} needed",
        _place(system, rows),
        found=f"not determined: {', '.join(free)}" if free else "",
        remedy="declare one more speed for each, or mark a velocity constraint 'kinematic: true'",
    )


def dependent_speeds_error(
    system: MechanismSymbols, rows: Sequence[_Row], unknowns: Sequence[Node], Y: Sequence[Sequence[Node]]
) -> ModelError:
    """Return the error for dependent rows, equal in number to the rates."""
    tied, free = _null_spaces(system, rows, unknowns, Y)
    place = next((row.text.where for row in rows if row.name in tied), _place(system, rows))
    match tied:
        case []:
            message = "the definitions of the speeds are not independent"
        case [name]:
            message = f"the definition of {name} measures no motion"
        case _:
            message = f"the definitions of {', '.join(tied)} are not independent"
    return ModelError(
        message,
        place,
        found=f"not determined: {', '.join(free)}" if free else "",
        remedy="define one of them so that it measures another motion",
    )


def _null_spaces(
    system: MechanismSymbols, rows: Sequence[_Row], unknowns: Sequence[Node], Y: Sequence[Sequence[Node]]
) -> tuple[list[str], list[str]]:
    """Return the dependent rows and the undetermined unknowns at a general configuration."""
    if not rows:
        return [], [unknown.name for unknown in unknowns]
    values = sample(system, [node for row in Y for node in row])
    numbers = np.nan_to_num(values.reshape(len(rows), len(unknowns)), posinf=0.0, neginf=0.0)
    left, singular, right = np.linalg.svd(numbers)
    rank = int(np.sum(singular > 1e-9 * max(1.0, singular.max(initial=0.0))))
    tied = np.abs(left[:, rank:]).max(axis=1, initial=0.0)
    free = np.abs(right[rank:]).max(axis=0, initial=0.0)
    return (
        [row.name for row, share in zip(rows, tied, strict=True) if share > SHARE],
        [unknown.name for unknown, share in zip(unknowns, free, strict=True) if share > SHARE],
    )


def _place(system: MechanismSymbols, rows: Sequence[_Row]) -> Location:
    return rows[0].text.where if rows else system.mechanism.where


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# -- Greatest common divisors of polynomials, by sympy -------------------------------------------------------

COARSEST = 10**6  # largest denominator of a coefficient treated as an exact fraction
LARGEST = 10**15  # and largest numerator: divisors are found by calculating with whole numbers of all their digits


def cancelled(numerators: Sequence[Polynomial], denominator: Polynomial) -> tuple[list[Polynomial], Polynomial]:
    """Divide a denominator and several numerators by their greatest common divisor.

    Polynomials with coefficients other than simple fractions are returned unchanged. Returns numerators and denominator
    without their common divisor.
    """
    from sympy.polys.domains import QQ  # half a second to import: only if needed
    from sympy.polys.rings import ring

    everything = [*numerators, denominator]
    fractions = [Fraction(c) for polynomial in everything for c in polynomial.values()]
    if any(c.denominator > COARSEST or abs(c.numerator) > LARGEST for c in fractions):
        return list(numerators), denominator
    lowest = _lowest_exponents(everything)
    atoms = sorted(lowest)
    polynomials = ring([f"a{atom}" for atom in atoms], QQ)[0]
    elements = [
        polynomials.from_dict(
            {
                tuple(dict(monomial).get(atom, 0) - lowest[atom] for atom in atoms): QQ(*Fraction(c).as_integer_ratio())
                for monomial, c in polynomial.items()
            }
        )
        for polynomial in everything
    ]
    common = elements[-1]
    for element in elements[:-1]:
        if element:
            common = common.gcd(element)
    quotients = []
    for element in elements:
        quotients.append(
            {
                tuple((atom, exponent) for atom, exponent in zip(atoms, key, strict=True) if exponent): float(c)
                for key, c in element.exquo(common).terms()
                if c
            }
        )
    return quotients[:-1], quotients[-1]


def _lowest_exponents(polynomials: Sequence[Polynomial]) -> dict[int, int]:
    """Return each atom's smallest exponent, 0 without a negative one."""
    lowest: dict[int, int] = {}
    for polynomial in polynomials:
        for monomial in polynomial:
            for atom, exponent in monomial:
                lowest[atom] = min(lowest.get(atom, 0), exponent)
    return lowest


# -- Solving linear systems of expressions, one coupled block at a time --------------------------------------
#
# The systems are small and sparse: definitions of generalized speeds. Rows and unknowns are put into block triangular
# form; a block is solved by cofactors, reduced by ``sin² + cos² = 1`` and cancelled against the determinant, to avoid
# needless divisions.

LARGEST_BLOCK = 4  # larger blocks are eliminated step by step instead of by cofactors

Matrix = Sequence[Sequence[Node]]


@dataclass(frozen=True)
class Block:
    """Rows solved together for as many unknowns: ``unknown_i = sum_j above[i][j] right_j / below[i]``."""

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

    Returns None if no assignment of unknowns to rows exists: the matrix is singular by its zeros alone.
    """
    n = len(matrix)
    owner = _matching(matrix)
    if owner is None:
        return None
    row_of = dict(enumerate(owner))
    reach = [1 << row for row in range(n)]  # bit masks: rows to be solved for this row's unknown
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
    """Return (above, below) with ``inverse[i][j] = above[i][j] / below[i]``, or None if the matrix is singular."""
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
    """Cancel the common factors of one row of cofactors and the determinant."""
    if len(determinant) > 1:
        numerators, determinant = cancelled(numerators, determinant)
    if len(determinant) > 1:
        return numerators, determinant
    reciprocal = inverse(determinant)
    quotients = [reducer.joined(times(numerator, reciprocal)) for numerator in numerators]
    divisor = {_divisor(quotients): 1.0}
    return [times(quotient, divisor) for quotient in quotients], divisor


def _divisor(quotients: Sequence[Polynomial]) -> Monomial:
    """Return the least monomial whose product with the quotients has no negative exponents."""
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


# -- From the definitions of the generalized speeds to the rates of the coordinates --------------------------
#
# The definitions ``u = Y q̇ + Z`` (Gillespie 2003, (1)), completed by the kinematic constraint rows, are solved for
# ``q̇ = W u + X`` (2). A kinematic row counts as a further speed whose value is zero. Euler parameters enter by the
# three components of their frame's angular velocity: a set of four counts as three rates.

ROUNDING = 1e-6  # of the solution times the matrix

Triples = tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class SpeedRow:
    """One row: the definition of a speed, or a kinematic constraint."""

    name: str
    text: Text
    kinematic: bool


@dataclass(frozen=True)
class Speeds:
    """The solved definitions."""

    rates: Rates  # for :class:`~fsm_dyn.derive.velocities.Motion`, kinematic speeds included
    # rates of the coordinates with kinematic speeds at zero, in as few operations as the solution allows
    q_dot: tuple[Node, ...]
    # declared, kinematic: symbols of the declared speeds and of the kinematic rows' values
    declared: tuple[Node, ...]
    kinematic: tuple[Node, ...]


def definition_rows(system: MechanismSymbols, texts: Sequence[Text]) -> list[list[Node]]:
    """Return the row of Y of each text, were it the definition of a speed, then those of the kinematic constraints."""
    plain, unknowns = _unknowns(system)
    rows = [SpeedRow("speed", text, False) for text in texts]
    rows += [row for row in _definitions(system) if row.kinematic]
    return _coefficients(system, rows, _natural_rates(system, plain, unknowns), unknowns)[0]


def definition_matrices(system: MechanismSymbols) -> tuple[list[list[Node]], list[Node]]:
    """Return Y and Z of ``u = Y q̇ + Z``, rows of kinematic constraints last."""
    plain, unknowns = _unknowns(system)
    return _coefficients(system, _definitions(system), _natural_rates(system, plain, unknowns), unknowns)


def solve_speeds(system: MechanismSymbols) -> Speeds:
    """Return the rates of the coordinates in terms of the speeds.

    Raises ModelError: the definitions are not linear in the rates, too few, too many, or not independent.
    """
    plain, unknowns = _unknowns(system)
    rows = _definitions(system)
    Y, Z = definition_matrices(system)
    if len(rows) != len(unknowns):
        raise speed_count_error(system, rows, unknowns, Y)
    declared = system.speeds
    kinematic = tuple(system.graph.symbol(f"speed({row.name})") for row in rows if row.kinematic)
    blocks = _solve_blocks(system, rows, unknowns, Y)
    columns, values = _back_substitute(system, blocks, Y, Z, declared, len(kinematic))
    if not _inverts(system, Y, columns):
        raise dependent_speeds_error(system, rows, unknowns, Y)
    rates, q_dot = _coordinate_rates(system, plain, columns, values, declared + kinematic)
    return Speeds(rates, q_dot, declared, kinematic)


def natural_motion(system: MechanismSymbols) -> Motion:
    """Return velocities linear in the rates of the coordinates, three for each set of Euler parameters."""
    return system.motion(_natural_rates(system, *_unknowns(system)))


def _unknowns(system: MechanismSymbols) -> tuple[list[Node], list[Node]]:
    """Return the coordinates other than Euler parameters, and symbols of all unknown rates."""
    plain = [q for q in system.coordinates if all(q not in group for group in system.euler)]
    names = [f"rate({q.name})" for q in plain]
    names += [f"spin({group[0].name})[{axis}]" for group in system.euler for axis in "xyz"]
    return plain, [system.graph.symbol(name) for name in names]


def _definitions(system: MechanismSymbols) -> list[SpeedRow]:
    rows = [SpeedRow(name, text, False) for name, text in speed_definitions(system.mechanism).items()]
    rows += [SpeedRow(c.name, c.expression, True) for c in system.mechanism.constraints.values() if c.kinematic]
    return rows


def _natural_rates(system: MechanismSymbols, plain: Sequence[Node], unknowns: Sequence[Node]) -> Rates:
    """Return the natural rates, without definitions: each coordinate's rate is a speed."""
    zero, one = system.graph.zero, system.graph.one
    n = len(unknowns)
    unit = [tuple(one if i == r else zero for r in range(n)) for i in range(n)]
    columns = {q: unit[i] for i, q in enumerate(plain)}
    spins: dict[Node, tuple[Triples, tuple[Node, ...]]] = {}
    for k, group in enumerate(system.euler):
        spin = tuple(unit[len(plain) + 3 * k + i] for i in range(3))
        spins[group[0]] = (spin, (zero, zero, zero))
        columns.update({e: tuple(row) for e, row in zip(group, _euler_columns(group, spin), strict=True)})
    return Rates(tuple(unknowns), columns, _drive(system), spins)


def _drive(system: MechanismSymbols) -> dict[Node, Node]:
    """Return the rates of time and inputs."""
    graph = system.graph
    drive = {graph.symbol(TIME): graph.one}
    for w in system.inputs:
        drive[w] = graph.symbol(f"{w.name}.rate")
        drive[graph.symbol(f"{w.name}.rate")] = graph.symbol(f"{w.name}.rate2")
    return drive


def euler_rates(e: Sequence[Node], spin: Sequence[Node]) -> list[Node]:
    """Return the rates of Euler parameters for an angular velocity with components `spin` in the turned frame."""
    e0, e1, e2, e3 = e
    x, y, z = spin
    return [
        -0.5 * (e1 * x + e2 * y + e3 * z),
        0.5 * (e0 * x - e3 * y + e2 * z),
        0.5 * (e3 * x + e0 * y - e1 * z),
        0.5 * (e1 * y - e2 * x + e0 * z),
    ]


def _euler_columns(group: Sequence[Node], spin: Triples) -> list[list[Node]]:
    """Return for each of the four parameters the coefficients of its rate."""
    by_speed = [euler_rates(group, [row[r] for row in spin]) for r in range(len(spin[0]))]
    return [[rates[i] for rates in by_speed] for i in range(4)]


def _coefficients(
    system: MechanismSymbols, rows: Sequence[SpeedRow], natural: Rates, unknowns: Sequence[Node]
) -> tuple[list[list[Node]], list[Node]]:
    """Return Y and Z of (1). Raises ModelError: a definition is not linear in the rates."""
    names: dict[str, Node] = {}
    algebra = system.algebra(system.motion(natural), names)
    forbidden = frozenset(unknowns)
    graph, reduce = system.graph, system.reducer.reduce
    still = dict.fromkeys(unknowns, graph.zero)
    Y, Z = [], []
    for row in rows:
        algebra.names = {**system.names, **names}
        node = algebra.scalar(row.text)
        met = support([node])
        coefficients = [
            reduce(tangent([node], {rate: graph.one})[0]) if rate in met else graph.zero for rate in unknowns
        ]
        if not support(coefficients).isdisjoint(forbidden):
            what = "constraint" if row.kinematic else "speed"
            raise ModelError(
                f"the {what} '{row.name}' is not linear in the rates of the coordinates",
                row.text.where,
                found=f"'{row.text.text}'",
                allowed="a sum of rates, each times a function of the coordinates",
            )
        Y.append(coefficients)
        Z.append(reduce(substitute([node], still)[0]))
        if not row.kinematic:
            names[row.name] = node
    return Y, Z


def _solve_blocks(
    system: MechanismSymbols, rows: Sequence[SpeedRow], unknowns: Sequence[Node], Y: list[list[Node]]
) -> list[Block]:
    """Return the coupled blocks with their inverses, in the order of solution."""
    structure = blocks_of(Y)
    if structure is None:
        raise dependent_speeds_error(system, rows, unknowns, Y)
    blocks = []
    for block_rows, columns in structure:
        inverse = invert([[Y[row][column] for column in columns] for row in block_rows], system.reducer)
        if inverse is None:
            raise dependent_speeds_error(system, rows, unknowns, Y)
        above, below = inverse
        blocks.append(Block(tuple(block_rows), tuple(columns), tuple(map(tuple, above)), tuple(below)))
    return blocks


def _back_substitute(
    system: MechanismSymbols,
    blocks: Sequence[Block],
    Y: list[list[Node]],
    Z: list[Node],
    declared: Sequence[Node],
    n_k: int,
) -> tuple[list[list[Node]], list[Node]]:
    """Return for each unknown its n + 1 columns, and its value with kinematic speeds at zero."""
    graph, reduce = system.graph, system.reducer.reduce
    n = len(Y)
    right = [[graph.one if i == r else graph.zero for i in range(n)] for r in range(n)] + [[-z for z in Z]]
    speeds = [*declared, *[graph.zero] * n_k]
    solutions: list[dict[int, Node]] = [{} for _ in range(n + 2)]
    order = [column for block in blocks for column in block.unknowns]
    met = [[column for column in order if not row[column].is_zero] for row in Y]
    for values, solution in zip([*right, [u - z for u, z in zip(speeds, Z, strict=True)]], solutions, strict=True):
        for block in blocks:
            rest = []
            for row in block.rows:
                total = values[row]
                for column in met[row]:
                    if column in solution and not solution[column].is_zero:
                        total = total - Y[row][column] * solution[column]
                rest.append(total)
            still = all(node.is_zero for node in rest)
            solution.update(zip(block.unknowns, rest if still else block.solve(rest), strict=True))
    columns = [[reduce(solution[i]) for solution in solutions[:-1]] for i in range(n)]
    return columns, [solutions[-1][i] for i in range(n)]


def _inverts(system: MechanismSymbols, Y: list[list[Node]], columns: list[list[Node]]) -> bool:
    """Whether Y times the solution is the unit matrix at an arbitrary configuration.

    An undetected, identically vanishing pivot would show here.
    """
    n = len(Y)
    if all(node.constant_value is not None for row in Y for node in row):
        return True
    numbers = sample(system, [*(node for row in Y for node in row), *(node for row in columns for node in row[:n])])[0]
    if np.isnan(numbers[: n * n]).any():
        return True  # the definitions have no value there, without consequence for other configurations
    if not np.isfinite(numbers).all():
        return False
    product = numbers[: n * n].reshape(n, n) @ numbers[n * n :].reshape(n, n)
    return bool(np.all(np.abs(product - np.eye(n)) < ROUNDING))


def _coordinate_rates(
    system: MechanismSymbols,
    plain: Sequence[Node],
    columns: Sequence[Sequence[Node]],
    values: Sequence[Node],
    speeds: tuple[Node, ...],
) -> tuple[Rates, tuple[Node, ...]]:
    """Return the rates of all coordinates from those of the plain ones and the spins of Euler parameters."""
    n = len(speeds)
    by_coordinate = {q: tuple(columns[i][:n]) for i, q in enumerate(plain)}
    rest = {q: columns[i][n] for i, q in enumerate(plain)}
    value = {q: values[i] for i, q in enumerate(plain)}
    spins: dict[Node, tuple[Triples, tuple[Node, ...]]] = {}
    for k, group in enumerate(system.euler):
        start = len(plain) + 3 * k
        spin = tuple(tuple(columns[start + i][:n]) for i in range(3))
        drift = tuple(columns[start + i][n] for i in range(3))
        spins[group[0]] = (spin, drift)
        by_coordinate.update({e: tuple(row) for e, row in zip(group, _euler_columns(group, spin), strict=True)})
        rest.update(zip(group, euler_rates(group, drift), strict=True))
        value.update(zip(group, euler_rates(group, values[start : start + 3]), strict=True))
    rates = Rates(speeds, by_coordinate, {**rest, **_drive(system)}, spins)
    return rates, tuple(value[q] for q in system.coordinates)
