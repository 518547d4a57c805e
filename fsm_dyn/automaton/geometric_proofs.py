"""Proofs that contact states exclude each other, as data, and those by speeds that contradict."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np

from fsm_dyn.automaton.configuration_search import (
    EXACT,
    PI,
    Condition,
    ConfigurationSearch,
    middles,
    only_turns,
    width_of,
)
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.files import decode, encode, read_file, write_file
from fsm_dyn.programs.intervals import Contractor, Interval, enclose
from fsm_dyn.programs.program import Array, Program

# -- Proofs that contact states exclude each other, as data --------------------------------------------------
#
# Proofs that contact states exclude each other, as data: the conditions, and how the space is cut into boxes.
#
# In every leaf of the subdivision the conditions contradict each other by interval arithmetic, or, where contacts are
# held, the speeds do: weights ``v`` of their rows with ``vᵀA = 0`` and ``vᵀb ≠ 0``. What reads a proof needs nothing
# of what found it (:mod:`fsm_dyn.automaton.proof_check`).

LARGEST: Final = 200_000_000  # bytes of a file of proofs

Cut = tuple[int, float]


class ProofCondition(NamedTuple):
    """A condition that holds if the contacts have their states.

    ``quantity``: ``residual`` of a row (a gap, or what a loop leaves open) or ``reach`` of a contact (how far it is
    within the ends of its face); ``number``: its number in this output; ``name``: of the contact or constraint;
    ``sense`` 0: it vanishes, 1: it is not negative, -1: it is not positive.
    """

    quantity: Literal["residual", "reach"]
    number: int
    name: str
    sense: Literal[-1, 0, 1]


@dataclass(frozen=True)
class ExclusionProof:
    """A proof that no configuration has contacts in certain states.

    Attributes
    ----------
    contacts : tuple of str
    closed : tuple of bool
        Whether each of them is closed.
    reason : str
        The same as text.
    conditions : tuple of ProofCondition
        Which contradict each other.
    variables : tuple of str
        Arguments that boxes are cut across: coordinates, inputs, ``t``.
    cuts : tuple of (int, float) or None
        The subdivision, a box before its parts, the lower part before the upper one: number in ``variables`` and place
        (SI units) of a cut, None where the box is excluded.
    without_sliding : bool
        Whether closed means held: closed without sliding.
    weights : tuple of tuple of (int, float)
        Rows and their weights for each box that is not cut, in their order; none where conditions exclude the box.
    shifts : tuple of tuple of (str, float)
        Arguments that move together, and their rates, without changing a condition: the first of each is zero in all
        boxes, as every configuration can be shifted to where it is.
    """

    contacts: tuple[str, ...]
    closed: tuple[bool, ...]
    reason: str
    conditions: tuple[ProofCondition, ...]
    variables: tuple[str, ...]
    cuts: tuple[Cut | None, ...]
    without_sliding: bool = False
    weights: tuple[tuple[tuple[int, float], ...], ...] = ()
    shifts: tuple[tuple[tuple[str, float], ...], ...] = ()

    @property
    def leaves(self) -> int:
        """Number of boxes that are excluded."""
        return sum(cut is None for cut in self.cuts)


@dataclass(frozen=True)
class GeometricProofs:
    """Proofs of all that the geometry of a model makes impossible.

    Attributes
    ----------
    model, digest : str
        Name and digest of the model.
    parameters : mapping of str to float
        For which the proofs hold, SI units.
    margin : float
        By how much conditions are missed at least, in the mechanism's own units.
    proofs : tuple of ExclusionProof
    unproved : tuple of str
        Contact states whose subdivision was too fine to be kept; none is expected.
    """

    model: str
    digest: str
    parameters: dict[str, float]
    margin: float
    proofs: tuple[ExclusionProof, ...]
    unproved: tuple[str, ...] = ()

    @property
    def leaves(self) -> int:
        """Number of boxes that are excluded in all proofs."""
        return sum(proof.leaves for proof in self.proofs)

    def to_bytes(self) -> bytes:
        """Return it as JSON."""
        return encode(asdict(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> GeometricProofs:
        """Return it from JSON; raise InputError where it is something else."""
        return decode(data, cls, "geometric proofs")

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file."""
        write_file(path, self.to_bytes())

    @classmethod
    def open(cls, path: str | Path) -> GeometricProofs:
        """Read a file of :meth:`save`; raise InputError where it is something else."""
        return cls.from_bytes(read_file(path, LARGEST, "geometric proofs"))


# -- Rows of contacts ----------------------------------------------------------------------------------------
#
# Rows of contacts that are held, ``A u + b = 0``, and weighted sums of them: what proofs about speeds are made of.

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


# -- Contacts that cannot be held at once, because of the speeds that they ask for ---------------------------
#
# Contacts that cannot be held at once, because of the speeds that they ask for: proofs by linear combinations of
# rows.
#
# Held contacts and constraints keep their rows ``A u + b = 0``. Rows without ``b`` contradict nothing, as ``u = 0``
# meets them; so speeds contradict each other only where something moves by itself: belts, turntables, rows driven in
# time. Numbers ``v`` with ``vᵀA = 0`` and ``vᵀb ≠ 0`` prove it, as linear equations have a solution or such ``v``.
# Over a box of configurations ``vᵀA`` and ``vᵀb`` are bounded by intervals, and speeds by a largest one
# (:mod:`fsm_dyn.automaton.geometric_proofs`).

MOST_HELD_BOXES: Final = 400
DIGITS: Final = (2, 6, 12)  # of weights, the largest being one, tried in turn: what is equal becomes so


@dataclass(frozen=True)
class HeldAnswer:
    """Whether contacts can be held at once.

    Attributes
    ----------
    contacts : tuple of int
    cuts : tuple of (int, float) or None
        The subdivision of a proof (argument and place of each cut, lower parts first); empty where there is none.
    weights : tuple of tuple of (int, float)
        Rows and their weights for each box that is not cut; none where the gaps of the contacts cannot vanish.
    values : tuple of float
        What ``vᵀb`` is at least in each of these boxes, SI units.
    state : ndarray or None
        Coordinates and speeds that keep all rows, SI units.
    """

    contacts: tuple[int, ...]
    cuts: tuple[Cut | None, ...] = ()
    weights: tuple[Weights, ...] = ()
    values: tuple[float, ...] = ()
    state: Array | None = None

    @property
    def impossible(self) -> bool:
        """Whether there is a proof."""
        return bool(self.cuts)


class HeldContacts:
    """Answers on the contacts of one automaton, with the parameters of a search."""

    def __init__(self, search: ConfigurationSearch) -> None:
        self.search, self.automaton = search, search.automaton
        self.moved = frozenset(row for row, b in enumerate(self.automaton.terms.graph()[2]["b"]) if not b.is_zero)

    def questions(self, excluded: Sequence[Mapping[int, bool]]) -> Iterator[HeldAnswer]:
        """Yield answers on single contacts and pairs that something moves, without what the gaps exclude."""
        contacts = [i for i, c in enumerate(self.automaton.contacts) if 1 in c.codes and held_rows(self.automaton, [i])]
        closed = {frozenset(item) for item in excluded if all(item.values())}
        impossible = {item for item in closed if len(item) == 1}
        for asked in (*((i,) for i in contacts), *itertools.combinations(contacts, 2)):
            if frozenset(asked) in closed or any(item <= set(asked) for item in impossible):
                continue
            if self.moved.isdisjoint(held_rows(self.automaton, asked)):
                continue
            answer = self.answer(asked)
            if answer.impossible:
                impossible.add(frozenset(asked))
            yield answer

    def conditions(self, contacts: Sequence[int]) -> list[Condition]:
        """Return what the coordinates meet where some contacts are closed."""
        search = self.search
        asked = [c for i in contacts if search.has_gap(i) for c in search.conditions(i, True)]
        return [*asked, *search.limits(asked)]

    def program(self, conditions: Sequence[Condition], rows: tuple[int, ...]) -> Program:
        """Return the program of conditions and rows together."""
        n_rows = len(self.automaton.rows)
        return self.automaton.terms.part({
            "residual": [c.value for c in conditions if c.value < n_rows],
            "reach": [c.value - n_rows for c in conditions if c.value >= n_rows], "A": rows, "b": rows,
        })  # fmt: skip

    def answer(self, contacts: tuple[int, ...]) -> HeldAnswer:
        """Return whether contacts can be held at once."""
        conditions, rows = self.conditions(contacts), held_rows(self.automaton, contacts)
        q = self.search.known(conditions)
        if q is not None:
            A, b = self._rows(rows, q)
            u = -np.linalg.lstsq(A, b, rcond=None)[0]
            if np.abs(A @ u + b).max(initial=0.0) <= EXACT:
                return HeldAnswer(contacts, state=np.concatenate([q, u * self.automaton.units.u]))
        return self._proof(contacts, conditions, rows)

    def _rows(self, rows: tuple[int, ...], q: Array) -> tuple[Array, Array]:
        """Return A and b of rows in own units, with inputs and time zero."""
        terms, units, n_u = self.automaton.terms, self.automaton.units, len(self.automaton.terms.layout.u)
        x = np.concatenate([q, np.zeros(terms.layout.n_x - len(q))])
        found = terms.part({"A": rows, "b": rows}).evaluate(0.0, x, self.search.context)
        scale = units.rows[list(rows)] * units.speed
        return found["A"][:, :n_u] * units.u / scale[:, None], found["b"] / scale

    def _proof(self, contacts: tuple[int, ...], conditions: list[Condition], rows: tuple[int, ...]) -> HeldAnswer:
        """Cut configurations until in each box the gaps or the speeds contradict each other."""
        search, weights, values = self.search, list[Weights](), list[float]()
        cuts = list[Cut | None]()
        variables = search.variables(conditions)
        part, bounds = search.part(conditions)
        contract = Contractor(part, variables, Interval(search.low, search.high), bounds)
        scale = search.scale_of(variables)
        low, high = search.low.copy(), search.high.copy()
        whole = self.program(conditions, rows)
        turning = [i for i in variables if np.isinf(low[i]) and np.isinf(high[i]) and only_turns(whole, i)]
        low[turning], high[turning] = -PI, PI
        ahead = [(low, high)]
        while ahead:
            low, high = ahead.pop()
            kept = True
            for _ in range(8):
                smaller, there = contract(Interval(low[variables][:, None], high[variables][:, None]))
                low[variables], high[variables] = smaller.low[:, 0], smaller.high[:, 0]
                kept = kept and bool(there[0])
            found = self._combination(rows, low, high) if kept else None
            if not kept or found is not None:
                cuts.append(None)
                weights.append(() if found is None else found[0])
                values.append(0.0 if found is None else found[1])
                continue
            width = width_of(low[variables][:, None], high[variables][:, None], scale)
            if len(cuts) >= MOST_HELD_BOXES or not (width > 1e-6).any():
                return HeldAnswer(contacts)
            place, middle = middles(low[:, None], high[:, None], variables, width, scale, long_last=True)
            cuts.append((int(place[0]), float(middle[0])))
            for upper in (True, False):
                part_low, part_high = low.copy(), high.copy()
                (part_low if upper else part_high)[place[0]] = middle[0]
                ahead.append((part_low, part_high))
        return HeldAnswer(contacts, tuple(cuts), tuple(weights), tuple(values))

    def _combination(self, rows: tuple[int, ...], low: Array, high: Array) -> tuple[Weights, float] | None:
        """Return weights of rows by which no speeds are possible in a box, and the least ``vᵀb``; None if not found."""
        here = slice(1, 1 + self.search.n_q)
        least, most = np.maximum(low[here], -1e3), np.minimum(high[here], 1e3)
        A, b = self._rows(rows, 0.5 * (least + most))
        left = b - A @ np.linalg.lstsq(A, b, rcond=1e-7)[0]
        if np.abs(left).max(initial=0.0) <= 1e-9 * max(np.abs(b).max(initial=0.0), 1e-300):
            return None
        left = left / (self.automaton.units.rows[list(rows)] * self.automaton.units.speed)
        left /= np.copysign(np.abs(left).max(), left @ b)
        for digits in DIGITS:
            weights = tuple((row, w) for row, w in zip(rows, np.round(left, digits).tolist(), strict=True) if w)
            found = enclose(weighted_sum(self.automaton, weights), Interval(low[:, None], high[:, None]))
            size = np.maximum(np.abs(found["A"].low[0]), np.abs(found["A"].high[0]))
            value = float(found["b"].low[0, 0])
            if value > float(size @ fastest(self.automaton)):
                return weights, value
        return None
