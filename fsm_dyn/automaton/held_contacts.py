"""Contacts that cannot be held at once, because of the speeds that they ask for: proofs by linear combinations of rows.

Held contacts and constraints keep their rows ``A u + b = 0``.  Rows without ``b`` contradict nothing, as ``u = 0``
meets them; so speeds contradict each other only where something moves by itself: belts, turntables, rows driven in
time.  Numbers ``v`` with ``vᵀA = 0`` and ``vᵀb ≠ 0`` prove it, as linear equations have a solution or such ``v``.  Over
a box of configurations ``vᵀA`` and ``vᵀb`` are bounded by intervals, and speeds by a largest one
(:mod:`fsm_dyn.automaton.held_rows`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.automaton.configuration_search import EXACT, PI, Condition, ConfigurationSearch, only_turns
from fsm_dyn.automaton.geometric_proofs import Cut
from fsm_dyn.automaton.held_rows import Weights, fastest, held_rows, weighted_sum
from fsm_dyn.automaton.subdivision import middles, width_of
from fsm_dyn.programs.contraction import Contractor
from fsm_dyn.programs.intervals import Interval, enclose
from fsm_dyn.programs.program import Array, Program

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
