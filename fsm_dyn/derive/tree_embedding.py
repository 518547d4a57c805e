"""Constraint embedding for a tree of bodies by leaf-to-root elimination, with loads of bearings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsm_dyn.core.arrays import Floats
from fsm_dyn.derive.embedding import (
    ActiveSet,
    EliminatedRows,
    EmbeddedMode,
    all_multipliers,
    eliminate_active_rows,
    embed,
)
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem, accelerations
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import reachable, substitute, tangent

# -- Loads of bearings ---------------------------------------------------------------------------------------
#
# The load of a sliding bearing is the resultant of reactions, dependent on the friction of this load. A mode is
# embedded with every load as a symbol; its multipliers are affine in the loads. The loads consistent with the reactions
# follow by Newton's method from those without friction, with a fixed number of steps: each squares the error
# (docs/theory.md, "Friction of joints").

PASSES = 6  # of Newton's method: for a friction with a feedback of 0.9 on its load, an error of 1e-14 remains
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
    """Return the loads of bearings equal to the resultants of ``reactions``, affine functions of the loads."""
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
    """Solve a few equations, each dominated by its own unknown."""
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


# -- Constraint embedding for a tree of bodies, by leaf-to-root elimination ----------------------------------

MOST_PRODUCTS = 20_000  # entries of M times independent speeds: beyond, embedding without the tree is not tried


def embed_along_tree(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None = None,
    held: EliminatedRows | None = None,
) -> EmbeddedMode | None:
    """Embed an active set as :func:`~fsm_dyn.derive.embedding.embed` does, without forming M.

    None if the model has no sparse equations, a contact slides (then ``G`` is not ``Aᵀ``), or a speed has no inertia.
    """
    if system.tree is None or active.sliding:
        return None
    n_u, zero = system.n_speeds, system.graph.zero
    held = held or eliminate_active_rows(system, active, samples, chart)
    factors = held.factors
    u = [system.symbols[name] for name in system.layout.u]
    speeds = list(u)
    for j, value in factors.solve([-(_speed(system, u, row, factors.columns)) for row in active.rows]).items():
        speeds[j] = value
    kept = [active.rows[row] for row, _ in factors.pivots]
    found = accelerations(system.tree, n_u, kept, _known_forces(system, active))
    if found is None:
        return None
    u_dot, forces = found
    values = dict(zip(kept, forces, strict=True))
    by_row = [values.get(row, zero) for row in active.rows]
    multipliers, left_open = all_multipliers(system, active, factors, by_row, u_dot, samples)
    replace = {u[j]: speeds[j] for j in factors.columns}
    flat = substitute([*u_dot, *multipliers, *held.pivots], replace)
    return EmbeddedMode(
        speeds=speeds,
        accelerations=flat[:n_u],
        multipliers=flat[n_u : n_u + len(multipliers)],
        pivots=flat[n_u + len(multipliers) :],
        chart=tuple((active.rows[row], column) for row, column in factors.pivots),
        independent=tuple(j for j in range(n_u) if j not in factors.columns),
        redundant=tuple(active.rows[row] for row in factors.dropped),
        reduced_mass=[],
        reduced_force=[],
        open_forces=left_open,
        static=samples["static"][0],
    )


def embed_cheapest(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None = None,
) -> EmbeddedMode:
    """Embed an active set in the way with fewer operations; a certainly long way is not tried."""
    return with_bearing_loads(system, active, _embed_cheapest(system, active, samples, chart))


def _embed_cheapest(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Floats],
    chart: Sequence[tuple[int, int]] | None,
) -> EmbeddedMode:
    if system.tree is None or active.sliding:
        return embed(system, active, samples, chart)
    held = eliminate_active_rows(system, active, samples, chart)
    along_tree = embed_along_tree(system, active, samples, chart, held)
    if along_tree is None:
        return embed(system, active, samples, chart, held)
    if len(along_tree.independent) ** 2 * len(along_tree.speeds) > MOST_PRODUCTS:
        return along_tree
    return min(embed(system, active, samples, chart, held), along_tree, key=_length)


def _length(embedded: EmbeddedMode) -> int:
    return len(reachable([*embedded.speeds, *embedded.accelerations, *embedded.multipliers, *embedded.pivots]))


def _speed(system: UnconstrainedSystem, u: Sequence[Node], row: int, without: Sequence[int]) -> Node:
    """Return ``A u + b`` of a row except for some of the speeds."""
    total: Node = system.nodes["b"][row]
    for j, speed in enumerate(u):
        if j not in without:
            total = total + system.nodes["A"][row, j] * speed
    return total


def _known_forces(system: UnconstrainedSystem, active: ActiveSet) -> list[tuple[int, Node]]:
    """Return the forces known beforehand along rows: of compliant contacts, and of sliding dry friction."""
    forces = [(system.contacts[i].normal_row, system.nodes["elastic"][i]) for i in active.pressed]
    for i in active.slipping:
        bound = system.friction_bound("kinetic", i)
        forces += [(row, -(part * bound)) for row, part in system.slip_directions(i)]
    return forces
