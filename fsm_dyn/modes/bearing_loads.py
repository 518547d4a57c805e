"""Loads of bearings that slide: resultants of reactions that depend on the friction they cause.

A mode is embedded with every load as a symbol; its multipliers are affine in the loads.  The loads that agree with the
reactions follow by Newton's method from those without friction, a fixed number of times: its error is squared each time
(docs/theory.md, "Friction of joints").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsm_dyn.modes.embedding import ActiveSet, EmbeddedMode
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Node, functions, substitute, tangent

PASSES = 6  # of Newton's method: a friction that changes its load by 0.9 of the change leaves 1e-14 of it
LEAST = 1e-100  # N: a resultant below is none, and has no direction


def with_bearing_loads(system: UnconstrainedSystem, active: ActiveSet, embedded: EmbeddedMode) -> EmbeddedMode:
    """Return an embedded mode with the loads of its sliding bearings worked out."""
    sliding = [i for i in active.slipping if system.contacts[i].contact_law.loaded]
    if not sliding:
        return embedded
    symbols = [system.load(i) for i in sliding]
    reactions = [[embedded.multipliers[row] for row in system.contacts[i].load_rows] for i in sliding]
    loads = dict(zip(symbols, _agreeing_loads(system, symbols, reactions), strict=True))
    n_u, n_rows = len(embedded.accelerations), len(embedded.multipliers)
    nodes = substitute([*embedded.accelerations, *embedded.multipliers, *embedded.reduced_force], loads)
    return replace(
        embedded, accelerations=nodes[:n_u], multipliers=nodes[n_u : n_u + n_rows], reduced_force=nodes[n_u + n_rows :]
    )


def resultant(parts: Sequence[Node]) -> Node:
    """Return the magnitude of a force from its components."""
    square = parts[0] * parts[0]
    for part in parts[1:]:
        square = square + part * part
    return functions.sqrt(functions.maximum(square, LEAST**2))


def _agreeing_loads(
    system: UnconstrainedSystem, symbols: Sequence[Node], reactions: Sequence[Sequence[Node]]
) -> list[Node]:
    """Return the loads of bearings that are the resultants of ``reactions``, affine functions of the loads."""
    none = dict.fromkeys(symbols, system.graph.zero)
    base = [substitute(list(parts), none) for parts in reactions]
    slopes = [
        [substitute(tangent(list(parts), {symbol: system.graph.one}), none) for symbol in symbols]
        for parts in reactions
    ]
    forces, loads = base, [system.graph.zero] * len(symbols)
    for _ in range(PASSES):
        along = [[part / resultant(parts) for part in parts] for parts in forces]
        matrix = [
            [float(i == j) - _product(along[i], slopes[i][j]) for j in range(len(symbols))] for i in range(len(symbols))
        ]
        loads = _solve(matrix, [_product(*pair) for pair in zip(along, base, strict=True)])
        forces = [
            [part + _product(loads, column) for part, column in zip(parts, zip(*rates, strict=True), strict=True)]
            for parts, rates in zip(base, slopes, strict=True)
        ]
    return loads


def _product(a: Sequence[Node], b: Sequence[Node]) -> Node:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def _solve(matrix: list[list[Node]], right: list[Node]) -> list[Node]:
    """Solve a few equations in which each unknown prevails in its own one."""
    n = len(right)
    for k in range(n):
        for i in range(k + 1, n):
            factor = matrix[i][k] / matrix[k][k]
            matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[k], strict=True)]
            right[i] = right[i] - factor * right[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            right[k] = right[k] - matrix[k][j] * right[j]
        right[k] = right[k] / matrix[k][k]
    return right
