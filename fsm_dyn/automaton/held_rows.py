"""Rows of contacts that are held, ``A u + b = 0``, and weighted sums of them: what proofs about speeds are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.programs.program import Array, Program

FASTEST: Final = 1e4  # own units: speeds of the motions that a proof is about

Weights = tuple[tuple[int, float], ...]  # of rows, by their numbers


def held_rows(automaton: Automaton, contacts: Sequence[int]) -> tuple[int, ...]:
    """Return the rows that are zero where some contacts are held: those of constraints, and their own.

    Parameters
    ----------
    automaton : Automaton
    contacts : sequence of int
        Their numbers.
    """
    rows = [i for i, row in enumerate(automaton.rows) if row.role in ("velocity", "position")]
    for number in contacts:
        info = automaton.contacts[number]
        normal = () if info.contact_law.compliant else (info.normal_row,)
        rows += [row for row in (*normal, *info.tangent_rows) if row >= 0]
    return tuple(rows)


def weighted_sum(automaton: Automaton, weights: Weights) -> Program:
    """Return the program of ``vᵀA`` (n_u,) and ``vᵀb`` (1,) of some rows, equal parts taken out."""
    rows = [row for row, _ in weights]
    part = automaton.terms.part({"A": rows, "b": rows})
    graph, _, nodes = part.graph()
    sums = []
    for column in (*nodes["A"].T[: len(part.layout.u)], nodes["b"]):
        total = graph.zero
        for entry, (_, weight) in zip(column, weights, strict=True):
            total = total + weight * entry
        sums.append(total)
    return Program.from_nodes(part.layout, {"A": np.array(sums[:-1]), "b": np.array(sums[-1:])})


def fastest(automaton: Automaton) -> Array:
    """Return up to which speeds (n_u,) motions are considered, SI units."""
    return FASTEST * automaton.units.u
