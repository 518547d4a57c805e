"""From the definitions of the generalized speeds to the rates of the coordinates.

The definitions ``u = Y q̇ + Z`` (Gillespie 2003, (1)), completed by the kinematic constraint rows, are solved for
``q̇ = W u + X`` (2).  A kinematic row counts as a further speed whose value is zero.  Euler parameters enter by the
three components of their frame's angular velocity, so that a set of four counts as three rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node, substitute, support, tangent
from fsm_dyn.spec.layout import speed_definitions
from fsm_dyn.symbolic.identity_test import sample
from fsm_dyn.symbolic.inversion import Block, blocks_of, invert
from fsm_dyn.symbolic.mechanism_symbols import TIME, MechanismSymbols
from fsm_dyn.symbolic.partial_velocities import Rates
from fsm_dyn.symbolic.speed_errors import dependent_speeds_error, speed_count_error

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
    """The solved definitions.

    Attributes
    ----------
    rates : Rates
        For :class:`~fsm_dyn.symbolic.partial_velocities.Motion`, kinematic speeds included.
    q_dot : tuple of Node
        Rates of the coordinates with kinematic speeds at zero, in as few operations as the solution allows.
    declared, kinematic : tuple of Node
        Symbols of the declared speeds and of the kinematic rows' values.
    """

    rates: Rates
    q_dot: tuple[Node, ...]
    declared: tuple[Node, ...]
    kinematic: tuple[Node, ...]


def definition_rows(system: MechanismSymbols, texts: Sequence[Text]) -> list[list[Node]]:
    """Return the row of Y of each text, were it the definition of a speed, then those of the kinematic constraints."""
    plain, unknowns = _unknowns(system)
    rows = [SpeedRow("speed", text, False) for text in texts]
    rows += [row for row in _definitions(system) if row.kinematic]
    return _coefficients(system, rows, _natural_rates(system, plain, unknowns), unknowns)[0]


def solve_speeds(system: MechanismSymbols) -> Speeds:
    """Return the rates of the coordinates in terms of the speeds.

    Raises
    ------
    ModelError
        The definitions are not linear in the rates, too few, too many, or not independent.
    """
    plain, unknowns = _unknowns(system)
    rows = _definitions(system)
    Y, Z = _coefficients(system, rows, _natural_rates(system, plain, unknowns), unknowns)
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


def _unknowns(system: MechanismSymbols) -> tuple[list[Node], list[Node]]:
    """Return the coordinates that are no Euler parameters, and symbols of all rates to be solved for."""
    plain = [q for q in system.coordinates if all(q not in group for group in system.euler)]
    names = [f"rate({q.name})" for q in plain]
    names += [f"spin({group[0].name})[{axis}]" for group in system.euler for axis in "xyz"]
    return plain, [system.graph.symbol(name) for name in names]


def _definitions(system: MechanismSymbols) -> list[SpeedRow]:
    rows = [SpeedRow(name, text, False) for name, text in speed_definitions(system.mechanism).items()]
    rows += [SpeedRow(c.name, c.expression, True) for c in system.mechanism.constraints.values() if c.kinematic]
    return rows


def _natural_rates(system: MechanismSymbols, plain: Sequence[Node], unknowns: Sequence[Node]) -> Rates:
    """Return the rates as they are before the definitions: each coordinate's is its own speed."""
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
    """Return Y and Z of (1).

    Raises
    ------
    ModelError
        A definition is not linear in the rates.
    """
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

    A pivot that vanishes identically without being seen to do so would show here.
    """
    n = len(Y)
    if all(node.constant_value is not None for row in Y for node in row):
        return True
    numbers = sample(system, [*(node for row in Y for node in row), *(node for row in columns for node in row[:n])])[0]
    if np.isnan(numbers[: n * n]).any():
        return True  # the definitions have no value there, which decides nothing for other configurations
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
