"""Named parts of the output of the terms kernel."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.abi import Sizes
from fsm_dyn.runtime.layouts import Tables
from fsm_dyn.simulation.array_structs import Bundle, Packed


class TermArrays(NamedTuple):
    """Kane's unconstrained terms at one state, as views of the kernel's output ``whole``; n = n_u + n_k.

    ``q_dot`` (n_q,), ``W`` (n_q, n), ``M`` (n, n), ``f`` (n,), ``A`` (n_rows, n), ``b gamma residual`` (n_rows,),
    ``static kinetic restitution closes_if elastic`` (n_contacts,), the last being the force of compliant contacts (N);
    ``energies``: kinetic and potential (J); ``reach reach_rate`` (n_contacts,): how far inside the ends of a face a
    contact is, of contacts with the flag ``LIMITED``; ``margin_slope aspect`` (n_contacts,): of corners on faces, see
    :class:`fsm_dyn.symbolic.contact_kinematics.ContactKinematics`.  ``row_begin`` ... ``mass_columns``: those of the
    tables.
    """

    whole: NDArray[np.float64]
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
    margin_slope: NDArray[np.float64]
    aspect: NDArray[np.float64]
    row_begin: NDArray[np.int64]
    row_columns: NDArray[np.int64]
    mass_begin: NDArray[np.int64]
    mass_columns: NDArray[np.int64]


TERM_NAMES = (
    "q_dot", "W", "M", "f", "A", "b", "gamma", "residual", "static", "kinetic", "restitution", "closes_if",
    "elastic", "energies", "reach", "reach_rate", "margin_slope", "aspect",
)  # fmt: skip


TERMS: Final = Bundle(TermArrays, {"W": 2, "M": 2, "A": 2})


def pack_terms(tables: Tables) -> Packed:
    """Return room for the terms; the kernel writes the entries of :data:`TERM_NAMES` in this order, row by row."""
    sizes = tables.sizes
    n_q, n, rows, contacts = (int(sizes[i]) for i in (Sizes.N_Q, Sizes.N_U, Sizes.N_ROWS, Sizes.N_CONTACTS))
    n += int(sizes[Sizes.N_K])
    shapes = [(n_q,), (n_q, n), (n, n), (n,), (rows, n), *3 * [(rows,)], *5 * [(contacts,)], (2,), *4 * [(contacts,)]]
    whole, at = np.zeros(int(sizes[Sizes.N_TERMS])), 0
    views: list[NDArray[Any]] = []
    for shape in shapes:
        length = math.prod(shape)
        views.append(whole[at : at + length].reshape(shape))
        at += length
    return TERMS.pack(TermArrays(whole, *views, *nonzero_of(tables)))


def nonzero_of(tables: Tables) -> tuple[NDArray[np.int64], ...]:
    """Return which entries can differ from zero: the last fields of :class:`TermArrays`."""
    return tables.row_begin, tables.row_columns, tables.mass_begin, tables.mass_columns
