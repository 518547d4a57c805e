"""Accelerations and multipliers of a mode solved for together, the alternative to constraint embedding.

The rows are ``A u̇ = -γ`` and the equations of motion ``M u̇ = f + Gᵀ λ`` of all speeds, dependent ones included
(docs/theory.md, "Multipliers instead of embedding").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.elimination import Array, solve_symmetric
from fsm_dyn.derive.embedding import (
    ActiveSet,
    EmbeddedMode,
    all_multipliers,
    applied_forces,
    column_scale,
    eliminate_active_rows,
    force_rows,
    force_samples,
    solve_general,
)
from fsm_dyn.derive.tree_embedding import with_bearing_loads
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs.graph import Node


def by_multipliers(
    system: UnconstrainedSystem, active: ActiveSet, embedded: EmbeddedMode, samples: dict[str, Array]
) -> EmbeddedMode:
    """Return a mode with ``λ`` from ``(A M⁻¹ Gᵀ) λ = -γ - A M⁻¹ f`` and ``u̇ = M⁻¹ (f + Gᵀ λ)``, in all speeds.

    Chart, dependent speeds and their pivots stay those of the embedding, which projects the state at the ends of steps.

    Parameters
    ----------
    system : UnconstrainedSystem
    active : ActiveSet
    embedded : EmbeddedMode
        The same mode embedded.
    samples : dict of ndarray, shape (samples, ...)
        As of :func:`fsm_dyn.derive.embedding.embed`.

    Raises
    ------
    ModelError
        A speed has no inertia, or redundant contacts slide: the motion then depends on their shares.
    """
    n_u, nodes = system.n_speeds, system.nodes
    massless = [system.layout.u[j] for j in range(n_u) if nodes["M"][j, j].is_zero]
    if massless or (embedded.redundant and active.sliding):
        reason = "these speeds have no inertia" if massless else "redundant contacts slide"
        found = ", ".join(massless) or ", ".join(system.rows[row].name for row in embedded.redundant)
        raise ModelError(
            f"accelerations and multipliers cannot be solved for together: {reason}", found=found,
            remedy="run with formulation='embedding'",
        )  # fmt: skip
    kept = [k for k, row in enumerate(active.rows) if row not in embedded.redundant]
    M = [[nodes["M"][i, j] for j in range(n_u)] for i in range(n_u)]
    A = [[nodes["A"][active.rows[k], j] for j in range(n_u)] for k in kept]
    G = [force_rows(system, active)[k] for k in kept]
    free = solve_symmetric(M, applied_forces(system, active))[0]
    yields = [solve_symmetric(M, row)[0] for row in G]
    zero = system.graph.zero
    K = [[_product(row, column, zero) for column in yields] for row in A]
    right = [-nodes["gamma"][active.rows[k]] - _product(row, free, zero) for k, row in zip(kept, A, strict=True)]
    if active.sliding:
        solved = solve_general(K, right, _numbers(system, active, kept, samples), [K[k][k] for k in range(len(K))])[0]
    else:
        solved = solve_symmetric(K, right)[0]
    accelerations = [
        a + _product(solved, column, zero) for a, column in zip(free, zip(*yields, strict=True), strict=True)
    ]
    values = dict(zip(kept, solved, strict=True))
    factors = eliminate_active_rows(system, active, samples, embedded.chart).factors
    multipliers, left_open = all_multipliers(
        system, active, factors, [values.get(k, zero) for k in range(len(active.rows))], accelerations, samples
    )
    mode = replace(embedded, accelerations=accelerations, multipliers=multipliers, open_forces=left_open)
    return with_bearing_loads(system, active, mode)


def _numbers(system: UnconstrainedSystem, active: ActiveSet, kept: Sequence[int], samples: dict[str, Array]) -> Array:
    """Return ``A M⁻¹ Gᵀ`` at the samples, shape (n, m, m)."""
    n_u = system.n_speeds
    rows, M = [active.rows[k] for k in kept], samples["M"][:, :n_u, :n_u]
    forces = force_samples(system, active, samples, np.ones_like(column_scale(M)))[:, list(kept)]
    found: Array = samples["A"][:, rows, :n_u] @ np.linalg.solve(M, np.swapaxes(forces, 1, 2))
    return found


def _product(a: Sequence[Node], b: Sequence[Node], zero: Node) -> Node:
    total = zero
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
