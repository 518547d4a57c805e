"""Matrices of a mode for reading: M, forces, constraint rows and the bases that embed them, partial velocities.

They are formed on demand; a run evaluates the mode's own programs (:mod:`fsm_dyn.modes.programs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.modes.elimination import eliminate
from fsm_dyn.modes.embedding import ActiveSet, applied_forces, force_rows, free_motion_basis
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Node, Program, tangent

Nodes = npt.NDArray[np.object_]


def active_rows(system: UnconstrainedSystem, states: Sequence[int]) -> tuple[int, ...]:
    """Return the indices of the rows that a mode holds, in the order of the matrices."""
    return ActiveSet.of(system, states).rows


def mode_matrices(
    system: UnconstrainedSystem, states: Sequence[int], chart: Sequence[tuple[int, int]], geometry: Program
) -> Program:
    """Return a program of a mode's matrices, for n_u declared speeds, p independent ones and m rows.

    Outputs, in the letters of docs/theory.md:

    - ``q_dot`` (n_q,): ``q̇ = W u + X``;
    - ``M`` (n_u, n_u), ``f`` (n_u,): ``M u̇ = f + G λ``; ``f`` with the contact forces known beforehand, which are
      ``contact_forces`` (n_u,) alone;
    - ``A`` (m, n_u), ``b``, ``gamma`` (m,): ``A u + b = 0``, ``A u̇ + gamma = 0``; ``G`` (n_u, m);
    - ``T`` (n_u, p), ``e`` (n_u,): ``u = T u_I + e``; ``S`` (n_u, p): ``Sᵀ G = 0``, equal to T where nothing slides;
      ``c`` (n_u,): ``u̇ = T u̇_I + c``;
    - ``point_velocities`` (n_points, n_u, 3), ``angular_velocities`` (n_frames, n_u, 3): partial velocities, components
      in N.

    Parameters
    ----------
    system : UnconstrainedSystem
        Its graph receives further nodes: not the sealed one of an automaton.
    states, chart
        Contact state codes and elimination order of the mode.
    geometry : Program
        Positions of points and directions of frames (:attr:`Automaton.geometry`).
    """
    n_u, zero = system.n_speeds, system.graph.zero
    active = ActiveSet.of(system, states)
    A, H = [list(system.nodes["A"][r, :n_u]) for r in active.rows], force_rows(system, active)
    local = {row: k for k, row in enumerate(active.rows)}
    order = [(local[row], column) for row, column in chart]
    unused = np.zeros((1, len(A), n_u))  # numbers would choose the order, which is known
    factors, transposed = (eliminate(rows, unused, range(n_u), order) for rows in (A, H))
    independent = tuple(j for j in range(n_u) if j not in factors.columns)
    T = free_motion_basis(factors, n_u, independent, zero)
    rows = list(active.rows)
    b, gamma = system.nodes["b"][rows], system.nodes["gamma"][rows]
    contact = applied_forces(system, active, [zero] * n_u)
    velocities, spins = _partial_velocities(system, geometry)
    return Program.from_nodes(
        system.layout,
        {
            "q_dot": system.nodes["q_dot"],
            "M": system.nodes["M"][:n_u, :n_u],
            "f": _table(applied_forces(system, active), (n_u,)),
            "contact_forces": _table(contact, (n_u,)),
            "A": _table(A, (len(A), n_u)),
            "b": b,
            "gamma": gamma,
            "G": _table(H, (len(A), n_u)).T,
            "T": _table(T, (n_u, len(independent))),
            "e": _column(factors.solve([-node for node in b]), n_u, zero),
            "S": _table(
                free_motion_basis(transposed, n_u, independent, zero) if active.sliding else T, (n_u, len(independent))
            ),
            "c": _column(factors.solve([-node for node in gamma]), n_u, zero),
            "point_velocities": velocities,
            "angular_velocities": spins,
        },
    )


def _partial_velocities(system: UnconstrainedSystem, geometry: Program) -> tuple[Nodes, Nodes]:
    """Return the derivatives of positions and directions along each column of W; ``ω× = Ṙ Rᵀ``."""
    _, outputs = geometry.nodes(system.graph)
    points, frames, n_u = outputs["points"], outputs["frames"], system.n_speeds
    q = [system.symbols[name] for name in system.layout.q]
    velocities: Nodes = np.empty((len(points), n_u, 3), dtype=object)
    spins: Nodes = np.empty((len(frames), n_u, 3), dtype=object)
    for s in range(n_u):
        along = dict(zip(q, system.nodes["W"][:, s], strict=True))
        velocities[:, s] = np.array(tangent(list(points.ravel()), along), dtype=object).reshape(points.shape)
        rates = np.array(tangent(list(frames.ravel()), along), dtype=object).reshape(frames.shape)
        for k, (R, dR) in enumerate(zip(frames, rates, strict=True)):
            spins[k, s] = [_dot(dR[2], R[1]), _dot(dR[0], R[2]), _dot(dR[1], R[0])]
    return velocities, spins


def _dot(a: Sequence[Node], b: Sequence[Node]) -> Node:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _table(entries: Sequence[Any], shape: tuple[int, ...]) -> Nodes:
    table: Nodes = np.empty(shape, dtype=object)
    table[...] = np.array(entries, dtype=object).reshape(shape)
    return table


def _column(values: dict[int, Node], size: int, zero: Node) -> Nodes:
    return _table([values.get(j, zero) for j in range(size)], (size,))
