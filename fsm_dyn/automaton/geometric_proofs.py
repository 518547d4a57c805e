"""Proofs of the exclusion of contact states as data, by gaps and by contradictory speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.files import decode, encode, read_file, write_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.programs.program import Program

# -- Exclusion of contact states: proofs as data -------------------------------------------------------------
#
# A proof consists of the conditions and the subdivision of the space into boxes. In every leaf the conditions
# contradict each other by interval arithmetic, or, for held contacts, the speeds do: weights ``v`` of their rows with
# ``vᵀA = 0`` and ``vᵀb ≠ 0``. A reader of proofs needs nothing of the search (:mod:`fsm_dyn.automaton.proof_check`).

LARGEST: Final = 200_000_000  # bytes of a file of proofs

Cut = tuple[int, float]


class ProofCondition(NamedTuple):
    """A necessary condition of the contact states.

    ``quantity``: ``residual`` of a row (a gap, or the residual of a loop) or ``reach`` of a contact (its boundary
    margin); ``number``: its number in this output; ``name``: of the contact or constraint; ``sense`` 0: it vanishes, 1:
    it is not negative, -1: it is not positive.
    """

    quantity: Literal["residual", "reach"]
    number: int
    name: str
    sense: Literal[-1, 0, 1]


@dataclass(frozen=True)
class ExclusionProof:
    """A proof of the absence of configurations with certain contact states."""

    contacts: tuple[str, ...]
    closed: tuple[bool, ...]  # whether each of them is closed
    reason: str  # the reason as text
    conditions: tuple[ProofCondition, ...]  # conditions that contradict each other
    variables: tuple[str, ...]  # arguments of the cuts: coordinates, inputs, ``t``
    # the subdivision, a box before its parts, the lower part before the upper one: number in ``variables`` and place
    # (SI units) of a cut, None for an excluded box
    cuts: tuple[Cut | None, ...]
    without_sliding: bool = False  # whether closed means held: closed without sliding
    # rows and their weights for each uncut box, in their order; none if conditions exclude the box
    weights: tuple[tuple[tuple[int, float], ...], ...] = ()
    # arguments with a common shift, and their rates, under which no condition changes: the first of each is zero in all
    # boxes, as every configuration can be shifted there
    shifts: tuple[tuple[tuple[str, float], ...], ...] = ()

    @property
    def leaves(self) -> int:
        """Number of excluded boxes."""
        return sum(cut is None for cut in self.cuts)


@dataclass(frozen=True)
class GeometricProofs:
    """Proofs of all geometric impossibilities of a model."""

    # model, digest: name and digest of the model
    model: str
    digest: str
    parameters: dict[str, float]  # values for these proofs, SI units
    margin: float  # least violation of conditions, in the mechanism's own units
    proofs: tuple[ExclusionProof, ...]
    unproved: tuple[str, ...] = ()  # contact states with a subdivision too fine for storage; none is expected

    @property
    def leaves(self) -> int:
        """Number of excluded boxes in all proofs."""
        return sum(proof.leaves for proof in self.proofs)

    def to_bytes(self) -> bytes:
        """Return it as JSON."""
        return encode(asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> GeometricProofs:
        """Return it from JSON; raise InputError for other data."""
        return decode(data, cls, "geometric proofs")

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file."""
        write_file(path, self.to_bytes())

    @classmethod
    def open(cls, path: str | Path) -> GeometricProofs:
        """Read a file of :meth:`save`; raise InputError for other files."""
        return cls.from_bytes(read_file(path, LARGEST, "geometric proofs"))


# -- Rows of held contacts -----------------------------------------------------------------------------------
#
# Proofs about speeds consist of rows ``A u + b = 0`` and their weighted sums.

FASTEST: Final = 1e4  # own units: largest speeds considered by a proof

Weights = tuple[tuple[int, float], ...]  # of rows, by their numbers


def held_rows(automaton: Automaton, contacts: Sequence[int]) -> tuple[int, ...]:
    """Return the rows that are zero while some contacts are held: rows of constraints, and of these contacts.

    ``contacts``: their numbers.
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


def fastest(automaton: Automaton) -> Floats:
    """Return the largest speeds considered, shape (n_u,), SI units."""
    return FASTEST * automaton.units.u
