"""Search for configurations with given contacts closed or open: proofs that there is none, and examples.

Conditions bound the residuals of rows and the boundary margins of contacts.  Branch and bound over boxes of
coordinates, inputs and time proves that no configuration meets them (Moore, Kearfott and Cloud 2009, chapter 8): boxes
are contracted by the conditions (:mod:`fsm_dyn.programs.contraction`), what remains is halved.  Boxes that
remain are where an example is searched for, by Newton's method; every example is kept and may answer further questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from fsm_dyn.automaton.free_shifts import Direction, free_shifts
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import bound_arrays
from fsm_dyn.automaton.subdivision import Subdivision, cut_across, middles, width_of
from fsm_dyn.programs.contraction import Contractor
from fsm_dyn.programs.intervals import Interval
from fsm_dyn.programs.program import Array, Program
from fsm_dyn.spec.values import named_values

FINEST: Final = 1e-6  # in the mechanism's own units: boxes this small are not halved
MARGIN: Final = 1e-6  # in the mechanism's own units: by how much a condition must be missed; far above what runs allow
EXACT: Final = 1e-9  # in the mechanism's own units: a configuration is shown if its conditions are met to this
STARTS: Final = 6  # of the search for a configuration
MOST_COMMON: Final = 100  # boxes of two contacts together in which a search begins
STEP: Final = 1e-7  # of difference quotients, in own units
SHARES: Final = np.array([1.0, 0.5, 0.2, 0.05])  # of a step of Newton's method that are tried
LONGEST: Final = 2.0  # change of a coordinate in such a step, in own units
MOST_STEPS: Final = 40
MOST_SLOW: Final = 4  # steps in a row that leave more than 0.7 of what is missed
PI: Final = float(np.nextafter(np.pi, 4.0))


class Condition(NamedTuple):
    """A condition on a row's residual, or on the boundary margin of contact ``value - n_rows``.

    ``sense`` 0: it vanishes, 1: it is not negative, -1: it is not positive.
    """

    value: int
    sense: Literal[-1, 0, 1]


@dataclass(frozen=True)
class Remaining:
    """Boxes that are not excluded, arrays of shape (n_arguments, n_boxes), and how many were looked at.

    ``turning`` are the arguments that are taken over one turn.
    """

    low: Array
    high: Array
    count: int
    turning: frozenset[int] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether no box is left: no configuration meets the conditions."""
        return bool(self.low.shape[1] == 0)


def common(first: Remaining, second: Remaining) -> Remaining:
    """Return the boxes in which both conditions may be met; those of ``first`` where that would be too many.

    Parameters
    ----------
    second : Remaining
        Boxes left by the other condition.
    """
    low = np.maximum(first.low[:, :, None], second.low[:, None, :])
    high = np.minimum(first.high[:, :, None], second.high[:, None, :])
    there = (low <= high).all(axis=0)
    if there.sum() > MOST_COMMON:
        return first
    return Remaining(low[:, there], high[:, there], 0, first.turning | second.turning)


class ConfigurationSearch:
    """The conditions of one automaton with given parameters (n_p,); ``q`` (n_q,) is a first guess, SI units."""

    def __init__(self, automaton: Automaton, parameters: Array, q: Array) -> None:
        self.automaton, layout = automaton, automaton.terms.layout
        self.n_q, self.n_rows = len(layout.q), len(automaton.rows)
        self.guess, self.q_units = q, automaton.units.q
        self.program = automaton.terms.part({"residual": None, "reach": None})
        lengths = np.concatenate([automaton.units.rows, np.ones(len(automaton.contacts))])
        self.scales = automaton.units.scales.length * lengths
        self.loops = [
            Condition(i, 0) for i, row in enumerate(automaton.rows) if row.role == "position" and row.positional
        ]
        self.support = [frozenset(_support(self.program, i)) for i in range(self.n_rows + len(automaton.contacts))]
        self.low, self.high = self._domain(parameters)
        self.context = np.concatenate([parameters, np.zeros(layout.n_c - len(parameters))])
        self.random = np.random.default_rng(20260101)
        self.everywhere = [
            condition for contact, info in enumerate(automaton.contacts) if self.has_gap(contact)
            and info.contact_law.rigid for condition in self.conditions(contact, False)
        ]  # fmt: skip
        self.looked_at = 0  # boxes, by all questions
        self.known_q: list[Array] = []
        self.known_values = np.zeros((0, len(self.scales)))
        self._keep(self.guess)

    def _domain(self, parameters: Array) -> tuple[Array, Array]:
        layout = self.automaton.terms.layout
        low, high = np.full(len(layout.arguments), -np.inf), np.full(len(layout.arguments), np.inf)
        low[0], first_c = 0.0, 1 + layout.n_x
        low[1 + self.n_q : first_c] = high[1 + self.n_q : first_c] = 0.0
        low[first_c : first_c + len(parameters)] = high[first_c : first_c + len(parameters)] = parameters
        stated = bound_arrays(self.automaton, named_values(self.automaton.mechanism, parameters.tolist()))
        if stated is not None:
            low[1 : 1 + self.n_q], high[1 : 1 + self.n_q] = stated
        return low, high

    def has_gap(self, contact: int) -> bool:
        """Whether a contact has a normal row with a gap on the level of coordinates, and is not always closed."""
        info = self.automaton.contacts[contact]
        return info.normal_row >= 0 and self.automaton.rows[info.normal_row].positional and not info.bilateral

    def conditions(self, contact: int, closed: bool) -> list[Condition]:
        """Return what gap and boundary margin of a contact must satisfy.

        Nothing is known of the gap of an open contact whose face ends, as beyond the end it has no meaning, of a
        compliant contact with dissipation, which is open too where its surface lags behind, nor of the place of a lock
        that is released.
        """
        info = self.automaton.contacts[contact]
        bounded = info.bounded_face or info.outlined or info.ends[0] >= 0
        if not closed:
            unknown = info.gated or bounded or info.lossy or info.contact_law.switched
            return [] if unknown else [Condition(info.normal_row, 1)]
        found = [Condition(info.normal_row, -1 if info.contact_law.compliant else 0)]
        if bounded and info.contact_law.rigid:
            found.append(Condition(self.n_rows + contact, 1))
        return found

    def limits(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Return what holds in any state: closed loops and rigid gaps of the arguments of some conditions."""
        asked = {condition.value for condition in conditions}
        arguments: frozenset[int] = frozenset().union(*(self.support[value] for value in asked))
        chosen: list[Condition] = []
        grown = True
        while grown:
            grown = False
            for condition in self.loops:
                if condition not in chosen and self.support[condition.value] & arguments:
                    chosen.append(condition)
                    arguments |= self.support[condition.value]
                    grown = True
        variable = frozenset(i for i in arguments if self.low[i] < self.high[i])
        return chosen + [
            condition
            for condition in self.everywhere
            if condition.value not in asked
            and {i for i in self.support[condition.value] if self.low[i] < self.high[i]} <= variable
        ]

    def _moving(self, condition: Condition) -> frozenset[int]:
        return frozenset(i for i in self.support[condition.value] if self.low[i] < self.high[i])

    def remaining(
        self,
        conditions: Sequence[Condition],
        most: int,
        start: Remaining | None = None,
        cuts: Subdivision | None = None,
        margin: float = MARGIN,
        shifted: bool = True,
    ) -> Remaining:
        """Return the boxes that may hold a configuration with these conditions, after looking at ``most`` at most.

        ``cuts`` are where boxes are cut, recorded from the whole space on; conditions are widened by ``margin``.
        ``shifted``: coordinates that can be chosen are zero (:meth:`shifts`).
        """
        part, bounds = self.part(conditions, margin)
        chosen = list(self.shifts(conditions, part)) if shifted else []
        variables = [i for i in self.variables(conditions) if i not in chosen]
        turning = frozenset(i for i in self.unbounded(variables) if only_turns(part, i))
        if start is None or not start.turning <= turning:
            start = Remaining(self.low[:, None], self.high[:, None], 0)
        low, high, count = start.low.copy(), start.high.copy(), start.count
        new = sorted(turning - start.turning)
        low[new], high[new] = -PI, PI
        constants = Interval(self.low.copy(), self.high.copy())
        constants.low[chosen] = constants.high[chosen] = 0.0
        there = ((low[chosen] <= 0.0) & (high[chosen] >= 0.0)).all(axis=0)
        low, high = low[:, there], high[:, there]
        low[chosen] = high[chosen] = 0.0
        scale, contract = self.scale_of(variables), Contractor(part, variables, constants, bounds)
        while low.shape[1]:
            count += low.shape[1]
            for _ in range(2 if low.shape[1] < 16 else 1):
                smaller, kept = contract(Interval(low[variables], high[variables]))
                low[variables], high[variables] = smaller
                low, high = low[:, kept], high[:, kept]
                if cuts is not None:
                    cuts.exclude(kept)
            width = width_of(low[variables], high[variables], scale)
            if count + 2 * low.shape[1] > most or (low.shape[1] and (width.max(axis=0, initial=0.0) < FINEST).any()):
                break
            place, middle = middles(low, high, variables, width, scale, long_last=cuts is not None)
            low, high = cut_across(low, high, place, middle)
            if cuts is not None:
                cuts.cut(place, middle)
        self.looked_at += count - start.count
        return Remaining(low, high, count, turning)

    def part(self, conditions: Sequence[Condition], margin: float = MARGIN) -> tuple[Program, dict[str, Interval]]:
        """Return the program of some conditions, and the bounds of its outputs in SI units, widened by the margin."""
        rows = [c for c in conditions if c.value < self.n_rows]
        margins = [c for c in conditions if c.value >= self.n_rows]
        bounds = {}
        for name, some in (("residual", rows), ("reach", margins)):
            scales, senses = self.scales[[c.value for c in some]], np.array([c.sense for c in some])
            bounds[name] = Interval(
                np.where(senses >= 0, -margin * scales, -np.inf), np.where(senses <= 0, margin * scales, np.inf)
            )
        only = {"residual": [c.value for c in rows], "reach": [c.value - self.n_rows for c in margins]}
        return self.program.part({name: items for name, items in only.items() if items}), bounds

    def shifts(self, conditions: Sequence[Condition], part: Program) -> dict[int, Direction]:
        """Return which arguments can be chosen, as a shift leaves the program of the conditions as it is."""
        return free_shifts(part, self.unbounded(self.variables(conditions)))

    def unbounded(self, variables: Sequence[int]) -> list[int]:
        """Return those of some arguments that have no bounds."""
        return [i for i in variables if np.isinf(self.low[i]) and np.isinf(self.high[i])]

    def variables(self, conditions: Sequence[Condition]) -> list[int]:
        """Return the arguments on which conditions depend and which are not constant."""
        found = frozenset().union(*(self.support[condition.value] for condition in conditions))
        return sorted(i for i in found if self.low[i] < self.high[i])

    def scale_of(self, variables: Sequence[int]) -> Array:
        """Return the own unit of each variable: that of a coordinate, else one."""
        return np.array([self.q_units[i - 1] if 1 <= i <= self.n_q else 1.0 for i in variables])

    def known(self, conditions: Sequence[Condition]) -> Array | None:
        """Return a configuration found before that meets conditions, or None."""
        values = self.known_values[:, [c.value for c in conditions]]
        met = (missed(values, np.array([c.sense for c in conditions])) <= EXACT).all(axis=1)
        return self.known_q[int(np.argmax(met))] if met.any() else None

    def configuration(self, conditions: Sequence[Condition], boxes: Remaining) -> Array | None:
        """Return coordinates in which conditions and all limits of the model are met, or None.

        The search begins in the middle of boxes that remain, and near the guess.
        """
        asked = {condition.value for condition in conditions}
        everything = [*conditions, *self.loops, *(c for c in self.everywhere if c.value not in asked)]
        for begin in self._starts(boxes):
            found = self._solved(everything, begin)
            if found is not None:
                self._keep(found)
                return found
        return None

    def _starts(self, boxes: Remaining) -> Iterator[Array]:
        here = slice(1, 1 + self.n_q)
        for box in np.unique(np.linspace(0, boxes.low.shape[1] - 1, STARTS).astype(int)):
            low, high = boxes.low[here, box], boxes.high[here, box]
            least, most = np.maximum(low, self.guess - self.q_units), np.minimum(high, self.guess + self.q_units)
            finite = np.isfinite(low) & np.isfinite(high)
            middle = 0.5 * np.where(finite, low, least) + 0.5 * np.where(finite, high, most)
            yield np.clip(np.nan_to_num(middle), low, high) / self.q_units
        yield self.guess / self.q_units
        for number in range(1, STARTS):
            yield self.guess / self.q_units + self.random.normal(size=self.n_q) * 0.5 * number

    def _solved(self, conditions: Sequence[Condition], begin: Array) -> Array | None:
        """Return coordinates near scaled ones that meet conditions, or None: Newton's method by shortest steps."""
        indices, senses = [c.value for c in conditions], np.array([c.sense for c in conditions])
        low, high = np.array([self.low[1 : 1 + self.n_q], self.high[1 : 1 + self.n_q]]) / self.q_units
        shifts = STEP * np.eye(1 + self.n_q, self.n_q, -1)
        scaled, slow = np.clip(begin, low, high), 0
        for _ in range(MOST_STEPS):
            values = self._values(scaled + shifts)[:, indices]
            short = missed(values[0], senses, signed=True)
            if np.abs(short).max(initial=0.0) <= EXACT:
                shown: Array = scaled * self.q_units
                return shown
            active = np.abs(short) > 0.1 * EXACT
            with np.errstate(invalid="ignore"):
                jacobian = np.nan_to_num((values[1:, active] - values[0, active]).T / STEP, posinf=0.0, neginf=0.0)
            step = -np.linalg.lstsq(jacobian, short[active], rcond=1e-10)[0]
            step *= min(1.0, LONGEST / max(np.abs(step).max(initial=0.0), 1e-300))
            tried = np.clip(scaled + SHARES[:, None] * step, low, high)
            left = np.linalg.norm(missed(self._values(tried)[:, indices], senses), axis=1)
            best, before = int(np.argmin(left)), float(np.linalg.norm(short))
            slow = slow + 1 if left[best] > 0.7 * before else 0
            if slow == MOST_SLOW or left[best] >= before:
                return None
            scaled = tried[best]
        return None

    def configuration_near(self, conditions: Sequence[Condition], q: Array) -> Array | None:
        """Return coordinates near ``q`` in which conditions and all limits are met, or None."""
        asked = {condition.value for condition in conditions}
        everything = [*conditions, *self.loops, *(c for c in self.everywhere if c.value not in asked)]
        found = self._solved(everything, q / self.q_units)
        if found is not None:
            self._keep(found)
        return found

    def sample(self, number: int) -> None:
        """Keep random configurations around those known that meet all limits, one for each set of signs of gaps."""
        known = np.array(self.known_q or [self.guess]) / self.q_units
        begin = known[self.random.integers(len(known), size=number)]
        size = 10.0 ** self.random.uniform(-4.0, 0.3, (number, 1))
        drawn = begin + size * self.random.normal(size=begin.shape) * (self.random.random(begin.shape) < 0.7)
        drawn = np.clip(drawn, self.low[1 : 1 + self.n_q] / self.q_units, self.high[1 : 1 + self.n_q] / self.q_units)
        values = self._values(drawn)
        limits = [*self.loops, *self.everywhere]
        senses = np.array([c.sense for c in limits])
        within = (missed(values[:, [c.value for c in limits]], senses) <= EXACT).all(axis=1)
        drawn, values = drawn[within], values[within]
        _, first = np.unique(np.sign(np.nan_to_num(values)), axis=0, return_index=True)
        first = np.sort(first)
        self.known_q += list(drawn[first] * self.q_units)
        self.known_values = np.concatenate([self.known_values, values[first]])

    def _values(self, scaled: Array) -> Array:
        """Return all residuals and boundary margins over their scales; one row for each configuration."""
        x = np.zeros((len(scaled), self.automaton.terms.layout.n_x))
        x[:, : self.n_q] = scaled * self.q_units
        with np.errstate(all="ignore"):
            found = self.program.evaluate(0.0, x, np.tile(self.context, (len(x), 1)))
        return np.concatenate([found["residual"], found["reach"]], axis=1) / self.scales

    def _keep(self, q: Array) -> None:
        """Add a configuration to those known, if it meets all limits."""
        values = self._values((q / self.q_units)[None])
        limits = [*self.loops, *self.everywhere]
        within = np.all((q >= self.low[1 : 1 + self.n_q]) & (q <= self.high[1 : 1 + self.n_q]))
        senses = np.array([c.sense for c in limits])
        if within and (missed(values[:, [c.value for c in limits]], senses) <= EXACT).all():
            self.known_q.append(q)
            self.known_values = np.concatenate([self.known_values, values])


def missed(values: Array, senses: Array, signed: bool = False) -> Array:
    """Return by how much conditions are missed; what is not finite is far away."""
    short = np.where(senses == 0, values, np.where(senses > 0, np.minimum(values, 0.0), np.maximum(values, 0.0)))
    short = np.where(np.isfinite(short), short, 1e6)
    return short if signed else np.abs(short)


def _support(program: Program, value: int) -> Iterator[int]:
    """Yield the numbers of the arguments on which one entry of the residuals and margins depends."""
    rows = next(output.shape[0] for output in program.results if output.name == "residual")
    part = program.part({"residual": [value]} if value < rows else {"reach": [value - rows]})
    used = {i for _, operands in part.instructions for i in operands} | set(part.results[0].indices)
    yield from (i for i in used if i < len(program.arguments))


def only_turns(program: Program, argument: int) -> bool:
    """Whether a program has the period 2 pi in an argument: it enters sines and cosines alone, by sums."""
    first, shifted = program.first_instruction, {argument}
    for k, (op, operands) in enumerate(program.instructions):
        if shifted & set(operands):
            if op in ("add", "sub", "neg"):
                shifted.add(first + k)
            elif op not in ("sin", "cos", "tan"):
                return False
    return not shifted & {i for output in program.results for i in output.indices}
