"""Constraint embedding for a tree of bodies, by leaf-to-root elimination."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_dyn.modes.bearing_loads import with_bearing_loads
from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.embedding import (
    ActiveSet,
    EliminatedRows,
    EmbeddedMode,
    all_multipliers,
    eliminate_active_rows,
    embed,
)
from fsm_dyn.modes.tree_equations import accelerations
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Node, reachable, substitute

MOST_PRODUCTS = 20_000  # entries of M times independent speeds: beyond, embedding without the tree is not tried


def embed_along_tree(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Array],
    chart: Sequence[tuple[int, int]] | None = None,
    held: EliminatedRows | None = None,
) -> EmbeddedMode | None:
    """Embed an active set as :func:`~fsm_dyn.modes.embedding.embed` does, without forming M.

    Returns
    -------
    None
        The model has no sparse equations, a contact slides (then ``G`` is not ``Aᵀ``), or a speed has no inertia.
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
    samples: dict[str, Array],
    chart: Sequence[tuple[int, int]] | None = None,
) -> EmbeddedMode:
    """Embed an active set in the way that takes fewer operations; what would be long for certain is not tried."""
    return with_bearing_loads(system, active, _embed_cheapest(system, active, samples, chart))


def _embed_cheapest(
    system: UnconstrainedSystem,
    active: ActiveSet,
    samples: dict[str, Array],
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
    """Return forces along rows that are known beforehand: of compliant contacts, and of dry friction that slips."""
    forces = [(system.contacts[i].normal_row, system.nodes["elastic"][i]) for i in active.pressed]
    for i in active.slipping:
        bound = system.friction_bound("kinetic", i)
        forces += [(row, -(part * bound)) for row, part in system.slip_directions(i)]
    return forces
