"""Search for configurations with given contacts closed or open, and verdicts on whole combinations."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import sides_of_kinks
from fsm_dyn.automaton.initial_values import bound_arrays
from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.memory import start_of_memory
from fsm_dyn.language.values import named_values
from fsm_dyn.programs.intervals import Contractor, Interval
from fsm_dyn.programs.program import Program

# -- Free coordinates ----------------------------------------------------------------------------------------
#
# A common shift of a free coordinate with others changes no requested value. The position of a block relative to a pad,
# for example, depends only on the difference of their coordinates, so the block's coordinate may be set to zero.

Direction = Mapping[int, Fraction]  # rates of arguments; those left out do not move


def free_shifts(program: Program, arguments: Sequence[int]) -> dict[int, Direction]:
    """Return the arguments free to choose without loss of generality, each with the direction of its shift.

    ``program``: all of its outputs have to stay unchanged; ``arguments``: numbers of the arguments open to a shift:
    those without bounds. Result: direction by argument; dict of int to mapping of int to Fraction. The argument comes
    first in its direction; no other free argument moves in it. Rates are integers, exact as floats.
    """
    solved = _reduced(_still(program, arguments))
    found: dict[int, Direction] = {}
    for argument in arguments:
        if argument in solved:
            continue
        moved = {argument: Fraction(1), **{i: -row[argument] for i, row in solved.items() if argument in row}}
        whole = math.lcm(*(rate.denominator for rate in moved.values()))
        moved = {i: whole * rate for i, rate in moved.items()}
        if all(Fraction(float(rate)) == rate for rate in moved.values()):
            found[argument] = moved
    return found


def _still(program: Program, arguments: Sequence[int]) -> list[dict[int, Fraction]]:
    """Return weighted sums of arguments; while they are constant, all outputs are constant.

    Sums and constant factors keep a value in the form of such a sum plus a constant; the operands of all other
    operations must be constant.
    """
    n = len(program.arguments)
    moving: dict[int, dict[int, Fraction]] = {argument: {argument: Fraction(1)} for argument in arguments}
    still: list[dict[int, Fraction]] = []
    for k, (op, operands) in enumerate(program.instructions, start=program.first_instruction):
        parts = [moving.get(i, {}) for i in operands]
        known = [program.constants[i - n] for i in operands if n <= i < program.first_instruction]
        if op in ("add", "sub"):
            total = _added(parts[0], Fraction(1 if op == "add" else -1), parts[1])
        elif op == "neg":
            total = _added({}, Fraction(-1), parts[0])
        elif op == "mul" and known and math.isfinite(known[0]):
            total = _added({}, Fraction(known[0]), parts[0] or parts[1])
        else:
            total, still = {}, still + [part for part in parts if part]
        if total:
            moving[k] = total
    return still + [moving[i] for output in program.results for i in output.indices if i in moving]


def _reduced(rows: Sequence[Mapping[int, Fraction]]) -> dict[int, dict[int, Fraction]]:
    """Return equations solved for one argument each: by it, with factor 1, and no other solved one in its row."""
    solved: dict[int, dict[int, Fraction]] = {}
    for row in rows:
        left = dict(row)
        for argument in [i for i in left if i in solved]:
            left = _added(left, -left[argument], solved[argument])
        if not left:
            continue
        pivot = next(iter(left))
        left = {i: value / left[pivot] for i, value in left.items()}
        solved = {i: _added(other, -other.get(pivot, Fraction(0)), left) for i, other in solved.items()} | {pivot: left}
    return solved


def _added(row: Mapping[int, Fraction], factor: Fraction, other: Mapping[int, Fraction]) -> dict[int, Fraction]:
    total = {i: row.get(i, Fraction(0)) + factor * other.get(i, Fraction(0)) for i in {**row, **other}}
    return {i: value for i, value in total.items() if value}


# -- Subdivision of boxes, with a record of the cuts as a binary tree ----------------------------------------


LONG: Final = 8.0  # own units: wider arguments may be cut last, when all others are narrower than
NARROW: Final = 0.5  # own units, as conditions may bound them then


class Subdivision:
    """The cuts through the boxes of a proof: a binary tree whose leaves are excluded boxes."""

    def __init__(self) -> None:
        self._place, self._at = [-1], [0.0]  # of each box in the order of their making
        self._parts: dict[int, tuple[int, int]] = {}
        self._current: Integers = np.zeros(1, np.int64)

    def exclude(self, kept: Booleans) -> None:
        """Exclude all present boxes but those kept."""
        self._current = self._current[kept]

    def cut(self, place: Integers, middle: Floats) -> None:
        """Cut each present box across an argument; all lower parts come before the upper ones."""
        number, new = len(self._current), len(self._place)
        for i, box in enumerate(self._current.tolist()):
            self._place[box], self._at[box] = int(place[i]), float(middle[i])
            self._parts[box] = new + i, new + number + i
        self._place += [-1] * (2 * number)
        self._at += [0.0] * (2 * number)
        self._current = np.arange(new, new + 2 * number)

    def in_order(self) -> Iterator[tuple[int, float] | None]:
        """Yield argument and place of each cut, or None for a leaf; the lower part of a box first, then the upper."""
        ahead = [0]
        while ahead:
            box = ahead.pop()
            if box in self._parts:
                ahead += reversed(self._parts[box])
                yield self._place[box], self._at[box]
            else:
                yield None


def width_of(low: Floats, high: Floats, scale: Floats) -> Floats:
    """Return the widths of boxes over the own unit of each argument, shape (n_arguments, n_boxes)."""
    with np.errstate(over="ignore"):
        return (high - low) / scale[:, None]


def middles(
    low: Floats, high: Floats, variables: Sequence[int], width: Floats, scale: Floats, long_last: bool
) -> tuple[Integers, Floats]:
    """Return argument and place of the cut of each box: its widest argument; unbounded ones are cut near zero first.

    ``long_last``: arguments of more than :data:`LONG` after all others.
    """
    boxes = np.arange(low.shape[1])
    widest = np.argmax(np.where(width > LONG, NARROW, width) if long_last else width, axis=0)
    place = np.array(variables)[widest] if len(variables) else np.zeros(len(boxes), np.int64)
    a, b, unit = low[place, boxes], high[place, boxes], scale[widest]
    near = np.clip(0.5 * np.clip(a, -1e300, 1e300) + 0.5 * np.clip(b, -1e300, 1e300), a, b)
    upwards, downwards = np.isinf(b) & np.isfinite(a), np.isinf(a) & np.isfinite(b)
    middle = np.where(upwards, np.where(a < -unit, 0.0, np.maximum(4.0 * np.minimum(a, 1e300), unit)), near)
    middle = np.where(downwards, np.where(b > unit, 0.0, np.minimum(4.0 * np.maximum(b, -1e300), -unit)), middle)
    return place, middle


def cut_across(low: Floats, high: Floats, place: Integers, middle: Floats) -> tuple[Floats, Floats]:
    """Return two boxes for each, the lower parts first, cut across an argument."""
    boxes = np.arange(low.shape[1])
    left_high, right_low = high.copy(), low.copy()
    left_high[place, boxes] = middle
    right_low[place, boxes] = middle
    return np.concatenate([low, right_low], axis=1), np.concatenate([left_high, high], axis=1)


# -- Search for configurations with given contacts closed or open --------------------------------------------
#
# Either a proof of non-existence or an example is found. Conditions bound the residuals of rows and the boundary
# margins of contacts. Branch and bound over boxes of coordinates, inputs and time excludes all configurations (Moore,
# Kearfott and Cloud 2009, chapter 8): boxes are contracted by the conditions (:mod:`fsm_dyn.programs.intervals`), the
# rest is halved. In the remaining boxes Newton's method searches for an example; every example is kept and may answer
# further questions.

FINEST: Final = 1e-6  # in the mechanism's own units: boxes this small are not halved
MARGIN: Final = 1e-6  # in the mechanism's own units: least violation of a condition; far above the tolerances of runs
EXACT: Final = 1e-9  # in the mechanism's own units: tolerance of conditions for an example
STARTS: Final = 6  # of the search for a configuration
MOST_COMMON: Final = 100  # boxes of two contacts together in which a search begins
STEP: Final = 1e-7  # of difference quotients, in own units
SHARES: Final = np.array([1.0, 0.5, 0.2, 0.05])  # fractions of a Newton step, tried in turn
LONGEST: Final = 2.0  # change of a coordinate in such a step, in own units
MOST_STEPS: Final = 40
MOST_SLOW: Final = 4  # steps in a row with more than 0.7 of the residual left
PI: Final = float(np.nextafter(np.pi, 4.0))


class Condition(NamedTuple):
    """A condition on a row's residual, or on the boundary margin of contact ``value - n_rows``.

    ``sense`` 0: it vanishes, 1: it is not negative, -1: it is not positive.
    """

    value: int
    sense: Literal[-1, 0, 1]


@dataclass(frozen=True)
class Remaining:
    """Boxes not excluded, arrays of shape (n_arguments, n_boxes), and the number of boxes examined.

    ``turning``: arguments restricted to one turn.
    """

    low: Floats
    high: Floats
    count: int
    turning: frozenset[int] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether no box is left: no configuration meets the conditions."""
        return bool(self.low.shape[1] == 0)


def common(first: Remaining, second: Remaining) -> Remaining:
    """Return the boxes in which both conditions may be met; those of ``first`` if there are too many.

    ``second``: boxes left by the other condition.
    """
    low = np.maximum(first.low[:, :, None], second.low[:, None, :])
    high = np.minimum(first.high[:, :, None], second.high[:, None, :])
    there = (low <= high).all(axis=0)
    if there.sum() > MOST_COMMON:
        return first
    return Remaining(low[:, there], high[:, there], 0, first.turning | second.turning)


class ConfigurationSearch:
    """The conditions of one automaton with given parameters (n_p,); ``q`` (n_q,) is a first guess, SI units."""

    def __init__(self, automaton: Automaton, parameters: Floats, q: Floats) -> None:
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
        begin = start_of_memory(automaton.mechanism, named_values(automaton.mechanism, parameters.tolist()))
        self.context[layout.memory_slice] = [begin.get(name, 0.0) for name in layout.memory]
        self.random = np.random.default_rng(20260101)
        self.everywhere = [
            condition for contact, info in enumerate(automaton.contacts) if self.has_gap(contact)
            and info.contact_law.rigid for condition in self.conditions(contact, False)
        ]  # fmt: skip
        self.looked_at = 0  # boxes, by all questions
        self.known_q: list[Floats] = []
        self.known_values = np.zeros((0, len(self.scales)))
        self._keep(self.guess)

    def _domain(self, parameters: Floats) -> tuple[Floats, Floats]:
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
        """Return the conditions on gap and boundary margin of a contact.

        There is no condition on the gap of an open contact whose face ends (beyond the end the gap has no meaning), on
        an open compliant contact with dissipation (it opens while its surface lags behind), and on the place of a
        released lock.
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
        """Return the conditions of every state, closed loops and rigid gaps, on the arguments of some conditions."""
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
        """Return the boxes that may hold a configuration with these conditions, after at most ``most`` boxes.

        ``cuts`` records the cuts, from the whole space on; conditions are widened by ``margin``. ``shifted``: free
        coordinates are zero (:meth:`shifts`).
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
        """Return the free arguments: their shift does not change the program of the conditions."""
        return free_shifts(part, self.unbounded(self.variables(conditions)))

    def unbounded(self, variables: Sequence[int]) -> list[int]:
        """Return the arguments without bounds among these."""
        return [i for i in variables if np.isinf(self.low[i]) and np.isinf(self.high[i])]

    def variables(self, conditions: Sequence[Condition]) -> list[int]:
        """Return the variable arguments of conditions."""
        found = frozenset().union(*(self.support[condition.value] for condition in conditions))
        return sorted(i for i in found if self.low[i] < self.high[i])

    def scale_of(self, variables: Sequence[int]) -> Floats:
        """Return the unit of each variable: a coordinate's own unit, else one."""
        return np.array([self.q_units[i - 1] if 1 <= i <= self.n_q else 1.0 for i in variables])

    def known(self, conditions: Sequence[Condition]) -> Floats | None:
        """Return a known configuration that meets conditions, or None."""
        values = self.known_values[:, [c.value for c in conditions]]
        met = (missed(values, np.array([c.sense for c in conditions])) <= EXACT).all(axis=1)
        return self.known_q[int(np.argmax(met))] if met.any() else None

    def configuration(self, conditions: Sequence[Condition], boxes: Remaining) -> Floats | None:
        """Return coordinates that meet conditions and all limits of the model, or None.

        The search begins in the middle of the remaining boxes, and near the guess.
        """
        asked = {condition.value for condition in conditions}
        everything = [*conditions, *self.loops, *(c for c in self.everywhere if c.value not in asked)]
        for begin in self._starts(boxes):
            found = self._solved(everything, begin)
            if found is not None:
                self._keep(found)
                return found
        return None

    def _starts(self, boxes: Remaining) -> Iterator[Floats]:
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

    def _solved(self, conditions: Sequence[Condition], begin: Floats) -> Floats | None:
        """Return coordinates near scaled ones under conditions, or None: Newton's method by shortest steps."""
        indices, senses = [c.value for c in conditions], np.array([c.sense for c in conditions])
        low, high = np.array([self.low[1 : 1 + self.n_q], self.high[1 : 1 + self.n_q]]) / self.q_units
        shifts = STEP * np.eye(1 + self.n_q, self.n_q, -1)
        scaled, slow = np.clip(begin, low, high), 0
        for _ in range(MOST_STEPS):
            values = self._values(scaled + shifts)[:, indices]
            short = missed(values[0], senses, signed=True)
            if np.abs(short).max(initial=0.0) <= EXACT:
                shown: Floats = scaled * self.q_units
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

    def configuration_near(self, conditions: Sequence[Condition], q: Floats) -> Floats | None:
        """Return coordinates near ``q`` that meet conditions and all limits, or None."""
        asked = {condition.value for condition in conditions}
        everything = [*conditions, *self.loops, *(c for c in self.everywhere if c.value not in asked)]
        found = self._solved(everything, q / self.q_units)
        if found is not None:
            self._keep(found)
        return found

    def sample(self, number: int) -> None:
        """Keep random configurations around the known ones within all limits, one for each set of signs of gaps."""
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

    def _values(self, scaled: Floats) -> Floats:
        """Return all residuals and boundary margins over their scales; one row for each configuration."""
        x = np.zeros((len(scaled), self.automaton.terms.layout.n_x))
        x[:, : self.n_q] = scaled * self.q_units
        contexts = np.tile(self.context, (len(x), 1))
        if self.automaton.mechanism.kinks:
            for q, context in zip(x[:, : self.n_q].tolist(), contexts, strict=True):
                sides_of_kinks(self.automaton, dict(zip(self.automaton.terms.layout.q, q, strict=True)), 0.0, context)
        with np.errstate(all="ignore"):
            found = self.program.evaluate(0.0, x, contexts)
        return np.concatenate([found["residual"], found["reach"]], axis=1) / self.scales

    def _keep(self, q: Floats) -> None:
        """Add a configuration to those known, if it meets all limits."""
        values = self._values((q / self.q_units)[None])
        limits = [*self.loops, *self.everywhere]
        within = np.all((q >= self.low[1 : 1 + self.n_q]) & (q <= self.high[1 : 1 + self.n_q]))
        senses = np.array([c.sense for c in limits])
        if within and (missed(values[:, [c.value for c in limits]], senses) <= EXACT).all():
            self.known_q.append(q)
            self.known_values = np.concatenate([self.known_values, values])


def missed(values: Floats, senses: Floats, signed: bool = False) -> Floats:
    """Return the violation of conditions; a value that is not finite counts as a large one."""
    short = np.where(senses == 0, values, np.where(senses > 0, np.minimum(values, 0.0), np.maximum(values, 0.0)))
    short = np.where(np.isfinite(short), short, 1e6)
    return short if signed else np.abs(short)


def _support(program: Program, value: int) -> Iterator[int]:
    """Yield the numbers of the arguments of one entry of the residuals and margins."""
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


# -- Verdicts on whole combinations: all contacts with a gap at once, closed or open -------------------------
#
# Combinations without two mutually exclusive contacts are examined by increasing number of closed contacts, so an
# exclusion is found with the fewest contacts. A known configuration answers most of them, from a random sample or from
# the search for another one; only without one are boxes examined.

MOST_COMBINATIONS: Final = 20_000  # of closed and open contacts; of more no verdicts on whole combinations are sought
SAMPLE: Final = 40_000  # random configurations
FEW_BOXES: Final = 200  # of the proof for a combination, before a search for a configuration in the remaining ones
BOXES: Final = 2_000  # after it
ALL_BOXES: Final = 100_000  # of all proofs together; after them configurations are searched for alone

Closed = tuple[bool, ...]


@dataclass
class Combined:
    """Combinations, a tuple with the state of each contact with a gap: closed or open."""

    contacts: tuple[int, ...]  # indices of the contacts with a gap
    possible: dict[Closed, int] = field(default_factory=dict)  # combinations, with the number of a configuration
    configurations: list[Floats] = field(default_factory=list)  # coordinates, SI units
    undecided: list[Closed] = field(default_factory=list)
    # impossible sets of contacts and their states, found in addition to the given ones, and the boxes of the proof
    conflicts: list[tuple[Mapping[int, bool], int]] = field(default_factory=list)


def combine(
    search: ConfigurationSearch, excluded: Sequence[Mapping[int, bool]], hard: Sequence[Mapping[int, bool]] = ()
) -> Combined | None:
    """Return verdicts on all combinations; None if there are too many.

    ``search``: search with the configurations known so far; ``excluded``: contacts and states impossible together;
    ``hard``: undecided contacts and states: for combinations with them no proof is tried.
    """
    contacts = tuple(i for i in range(len(search.automaton.contacts)) if search.has_gap(i))
    combinations = _consistent(search, contacts, excluded)
    if combinations is None:
        return None
    found = Combined(contacts)
    search.sample(SAMPLE)
    met = _Reached(search, contacts)
    boxes = 0
    for closed in sorted(combinations, key=lambda item: (sum(item), item)):
        if _has_any(closed, contacts, (bad for bad, _ in found.conflicts)):
            continue
        known = met.number(closed)
        if known < 0:
            conditions = [c for i, shut in zip(contacts, closed, strict=True) for c in search.conditions(i, shut)]
            near = search.configuration_near(conditions, met.nearest(closed))
            impossible, count = False, 0
            if near is None and boxes < ALL_BOXES and not _has_any(closed, contacts, hard):
                impossible, count = _decide(search, conditions)
            boxes += count
            if impossible:
                states = dict(zip(contacts, closed, strict=True))
                found.conflicts.append((_smallest(search, states, count), count))
                continue
            known = met.number(closed)
        if known < 0:
            found.undecided.append(closed)
        else:
            found.possible[closed] = known
    used = sorted(set(found.possible.values()))
    found.configurations = [search.known_q[k] for k in used]
    number = {k: i for i, k in enumerate(used)}
    found.possible = {closed: number[k] for closed, k in found.possible.items()}
    return found


def _has_any(closed: Closed, contacts: Sequence[int], parts: Iterable[Mapping[int, bool]]) -> bool:
    """Whether a combination has all states of one of several parts."""
    return any(all(closed[contacts.index(i)] == shut for i, shut in part.items()) for part in parts)


def _consistent(
    search: ConfigurationSearch, contacts: Sequence[int], excluded: Sequence[Mapping[int, bool]]
) -> list[Closed] | None:
    """Return the combinations without anything excluded; None if there are too many."""
    codes = [search.automaton.contacts[i].codes for i in contacts]
    by_last: dict[int, list[Mapping[int, bool]]] = {}
    for item in excluded:
        by_last.setdefault(max(contacts.index(i) for i in item), []).append(item)
    kept: list[Closed] = [()]
    for j in range(len(contacts)):
        kept = [
            longer
            for closed in kept
            for shut in sorted({code > 0 for code in codes[j]})
            for longer in [(*closed, shut)]
            if not any(all(longer[contacts.index(i)] == s for i, s in item.items()) for item in by_last.get(j, ()))
        ]
        if len(kept) > MOST_COMBINATIONS:
            return None
    return kept


class _Reached:
    """The states of each contact in each known configuration: arrays of shape (n_known, n_contacts)."""

    def __init__(self, search: ConfigurationSearch, contacts: Sequence[int]) -> None:
        self.search, self.contacts = search, contacts
        self.open = self.closed = np.zeros((0, len(contacts)), dtype=bool)

    def _grown(self) -> None:
        new = self.search.known_values[len(self.open) :]
        if len(new):
            self.open = np.concatenate([self.open, self._allowed(new, False)])
            self.closed = np.concatenate([self.closed, self._allowed(new, True)])

    def _allowed(self, values: Floats, shut: bool) -> Booleans:
        columns = []
        for i in self.contacts:
            conditions = self.search.conditions(i, shut)
            short = missed(values[:, [c.value for c in conditions]], np.array([c.sense for c in conditions]))
            columns.append((short <= EXACT).all(axis=1))
        return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0), dtype=bool)

    def number(self, closed: Closed) -> int:
        """Return the number of a configuration with a combination, -1 if none is known."""
        self._grown()
        right = np.where(np.array(closed, dtype=bool), self.closed, self.open).all(axis=1)
        return int(np.argmax(right)) if right.any() else -1

    def nearest(self, closed: Closed) -> Floats:
        """Return the known configuration with the most contacts as a combination has them."""
        right = np.where(np.array(closed, dtype=bool), self.closed, self.open).sum(axis=1)
        return self.search.known_q[int(np.argmax(right))] if len(right) else self.search.guess


def _decide(search: ConfigurationSearch, conditions: list[Condition]) -> tuple[bool, int]:
    """Return whether conditions are proved impossible, and the number of boxes; the search keeps new configurations."""
    everything = [*conditions, *search.limits(conditions)]
    boxes = search.remaining(everything, FEW_BOXES)
    if not boxes.empty and search.configuration(conditions, boxes) is None:
        boxes = search.remaining(everything, BOXES, boxes)
    return boxes.empty, boxes.count


def _smallest(search: ConfigurationSearch, states: Mapping[int, bool], count: int) -> Mapping[int, bool]:
    """Return an impossible subset of impossible states, with a proof as short as for all.

    All open contacts are left out at once if possible; else contacts are left out one by one.
    """

    def impossible(fewer: Mapping[int, bool]) -> bool:
        conditions = [c for i, shut in fewer.items() for c in search.conditions(i, shut)]
        if search.known(conditions) is not None:
            return False
        return search.remaining([*conditions, *search.limits(conditions)], max(count, FEW_BOXES)).empty

    closed = {i: shut for i, shut in states.items() if shut}
    kept = closed if len(closed) < len(states) and closed and impossible(closed) else dict(states)
    for contact in list(kept):
        fewer = {i: shut for i, shut in kept.items() if i != contact}
        says_nothing = not search.conditions(contact, kept[contact])
        if says_nothing or (fewer and impossible(fewer)):
            kept = fewer
    return kept


def ways(
    search: ConfigurationSearch,
    contacts: Sequence[int],
    combinations: Iterable[Closed],
    never_held: Sequence[frozenset[int]] = (),
) -> int:
    """Return the number of combinations of all contact states that belong to given closed and open ones.

    Combinations with all contacts of a set of ``never_held`` held are left out.
    """
    infos = search.automaton.contacts
    concerned = sorted(frozenset().union(*never_held))

    def number(i: int, shut: bool | None) -> int:
        return sum(shut is None or (code > 0) == shut for code in infos[i].codes)

    @functools.cache
    def of_concerned(states: tuple[bool | None, ...]) -> int:
        codes = [
            [code for code in infos[i].codes if shut is None or (code > 0) == shut]
            for i, shut in zip(concerned, states, strict=True)
        ]
        held = (frozenset(i for i, code in zip(concerned, item, strict=True) if code == 1) for item in product(*codes))
        return sum(not any(never <= item for never in never_held) for item in held)

    others = [i for i in range(len(infos)) if i not in concerned]
    total = 0
    for closed in combinations:
        state: dict[int, bool | None] = dict(zip(contacts, closed, strict=True))
        each = math.prod(number(i, state.get(i)) for i in others)
        total += each * of_concerned(tuple(state.get(i) for i in concerned))
    return total
