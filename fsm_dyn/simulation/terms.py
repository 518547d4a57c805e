"""The output of the terms kernel, taken apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.compiled import inner


class Terms(NamedTuple):
    """Kane's unconstrained terms at one state, as views of the kernel's output; n = n_u + n_k.

    ``q_dot`` (n_q,), ``W`` (n_q, n), ``M`` (n, n), ``f`` (n,), ``A`` (n_rows, n), ``b gamma residual`` (n_rows,),
    ``static kinetic restitution closes_if elastic`` (n_contacts,), the last being the force of compliant contacts (N);
    ``energies``: kinetic and potential (J); ``reach reach_rate`` (n_contacts,): how far inside the ends of a face a
    contact is, of contacts with the flag ``LIMITED``.
    """

    q_dot: NDArray[np.float64]
    W: NDArray[np.float64]
    M: NDArray[np.float64]
    f: NDArray[np.float64]
    A: NDArray[np.float64]
    b: NDArray[np.float64]
    gamma: NDArray[np.float64]
    residual: NDArray[np.float64]
    static: NDArray[np.float64]
    kinetic: NDArray[np.float64]
    restitution: NDArray[np.float64]
    closes_if: NDArray[np.float64]
    elastic: NDArray[np.float64]
    energies: NDArray[np.float64]
    reach: NDArray[np.float64]
    reach_rate: NDArray[np.float64]


TERM_NAMES = (
    "q_dot", "W", "M", "f", "A", "b", "gamma", "residual", "static", "kinetic", "restitution", "closes_if",
    "elastic", "energies", "reach", "reach_rate",
)  # fmt: skip


@inner
def split_terms(sizes: NDArray[np.int64], out: NDArray[np.float64]) -> Terms:
    """Return the views; the kernel writes the entries of :data:`TERM_NAMES` in this order, row by row."""
    n_q, n, rows, contacts = sizes[tb.N_Q], sizes[tb.N_U] + sizes[tb.N_K], sizes[tb.N_ROWS], sizes[tb.N_CONTACTS]
    at_M = n_q + n_q * n
    at_A = at_M + n * n + n
    at_b = at_A + rows * n
    at_static = at_b + 3 * rows
    at_energies = at_static + 5 * contacts
    return Terms(
        out[:n_q],
        out[n_q:at_M].reshape(n_q, n),
        out[at_M : at_M + n * n].reshape(n, n),
        out[at_M + n * n : at_A],
        out[at_A:at_b].reshape(rows, n),
        out[at_b : at_b + rows],
        out[at_b + rows : at_b + 2 * rows],
        out[at_b + 2 * rows : at_static],
        out[at_static : at_static + contacts],
        out[at_static + contacts : at_static + 2 * contacts],
        out[at_static + 2 * contacts : at_static + 3 * contacts],
        out[at_static + 3 * contacts : at_static + 4 * contacts],
        out[at_static + 4 * contacts : at_energies],
        out[at_energies : at_energies + 2],
        out[at_energies + 2 : at_energies + 2 + contacts],
        out[at_energies + 2 + contacts : at_energies + 2 + 2 * contacts],
    )
