"""Which contacts can be closed, or closed and open, in one configuration: proofs by interval bounds on the gaps.

A combination of contact states belongs to some configuration only if the gaps of its closed contacts vanish (of
compliant contacts: are not positive), those of its open ones are not negative, and the loops are closed.  Branch and
bound over boxes of coordinates, inputs and time proves that there is none (Moore, Kearfott and Cloud 2009, chapter 8):
a box is dropped when the enclosure of one condition excludes it, the others are halved.  An open contact of a corner or
of a face that ends has no condition: beyond the end of the face its gap has no meaning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.programs.intervals import Interval, enclose
from fsm_dyn.programs.program import Array, Program

Verdict = Literal["impossible", "possible", "undecided"]

MOST_BOXES: Final = 20_000  # that are looked at before a question stays undecided
BATCH: Final = 512  # boxes at once
FINEST: Final = 1e-6  # in the mechanism's own units: boxes this small are not halved
MARGIN: Final = 1e-6  # in the mechanism's own units: by how much a condition must be missed; far above what runs allow
EXACT: Final = 1e-9  # in the mechanism's own units: a configuration is shown if its conditions are met to this
FIRST_BOXES: Final = 400  # of a proof that is tried before a configuration is searched for
STARTS: Final = 12  # of the search for a configuration
_PI: Final = float(np.nextafter(np.pi, 4.0))


@dataclass(frozen=True)
class Condition:
    """A condition on the residual of one row: ``sense`` 0: it vanishes, 1: it is not negative, -1: not positive."""

    row: int
    sense: Literal[-1, 0, 1]


@dataclass(frozen=True)
class ContactVerdict:
    """Whether one or two contacts can have these states in one configuration.

    Attributes
    ----------
    contacts : tuple of str
        Names of the contacts.
    closed : tuple of bool
        Whether each of them is closed (stuck, sliding, compressed) or open.
    verdict : str
        ``impossible`` (proved), ``possible`` (a configuration is shown) or ``undecided``.
    reason : str
        Why it is impossible, with the coordinate that would have to be in two places where there is one.
    configuration : mapping of str to float
        Coordinates of a configuration, SI units; empty unless the verdict is ``possible``.
    boxes : int
        Boxes that the proof took.
    """

    contacts: tuple[str, ...]
    closed: tuple[bool, ...]
    verdict: Verdict
    reason: str
    configuration: Mapping[str, float]
    boxes: int

    @property
    def states(self) -> str:
        """The states as text: ``string closed and rest open``."""
        return _states_text(self.contacts, self.closed)


@dataclass(frozen=True)
class GeometricFeasibility:
    """Verdicts on contacts and pairs of them, and what follows for combinations of all contact states.

    Attributes
    ----------
    verdicts : tuple of ContactVerdict
        Of every contact with a gap, closed; of every two that can be closed: both closed, one closed and one open.
    combinations, remaining : int
        Numbers of combinations of contact states: all, and those without anything impossible.
    """

    verdicts: tuple[ContactVerdict, ...]
    combinations: int
    remaining: int


def assess_geometry(
    automaton: Automaton, parameters: Array, q: Array, progress: Callable[[int, int], None] = lambda done, all_: None
) -> GeometricFeasibility:
    """Return which contacts exclude each other, with proofs, and how many combinations remain.

    Parameters
    ----------
    automaton : Automaton
    parameters : ndarray, shape (n_p,)
        SI units.
    q : ndarray, shape (n_q,)
        A configuration to begin the search for others from, SI units.
    progress : callable
        Called with the numbers of verdicts reached and asked for.
    """
    search = _ConfigurationSearch(automaton, parameters, q)
    found = [search.decide({i: True}) for i in range(len(automaton.contacts)) if search.has_gap(i)]
    gaps = [automaton.terms.layout.contacts.index(item.contacts[0]) for item in found if item.verdict != "impossible"]
    asked = [
        {first: closed[0], second: closed[1]}
        for first, second in itertools.combinations(gaps, 2)
        for closed in ((True, True), (True, False), (False, True))
        if search.conditions(first, closed[0]) and search.conditions(second, closed[1])
    ]
    for done, states in enumerate(asked):
        progress(done, len(asked))
        found.append(search.decide(states))
    combinations = int(np.prod([len(contact.codes) for contact in automaton.contacts], dtype=object))
    return GeometricFeasibility(tuple(found), combinations, _count(automaton, found))


class _ConfigurationSearch:
    """The conditions of one automaton with given parameters."""

    def __init__(self, automaton: Automaton, parameters: Array, q: Array) -> None:
        self.automaton, self.q = automaton, q
        self.units = automaton.units.q
        self.residuals = automaton.terms.part({"residual": None})
        self.loops = [
            Condition(i, 0) for i, row in enumerate(automaton.rows) if row.role == "position" and row.positional
        ]
        layout = automaton.terms.layout
        arguments = len(layout.arguments)
        low, high = np.full(arguments, -np.inf), np.full(arguments, np.inf)
        low[0] = 0.0  # time
        self.first_q, first_c = 1, 1 + layout.n_x
        low[1 + len(layout.q) : first_c] = high[1 + len(layout.q) : first_c] = 0.0
        low[first_c : first_c + len(layout.p)] = high[first_c : first_c + len(layout.p)] = parameters
        for i in range(1, 1 + len(layout.q)):
            if _only_turns(self.residuals, i):
                low[i], high[i] = -_PI, _PI
        self.low, self.high = low, high
        self.context = np.concatenate([parameters, np.zeros(layout.n_c - len(parameters))])
        self.row_support = [frozenset(_support(self.residuals, i)) for i in range(len(automaton.rows))]

    def has_gap(self, contact: int) -> bool:
        """Whether a contact has a normal row with a gap on the level of coordinates, and is not always closed."""
        info = self.automaton.contacts[contact]
        return info.normal_row >= 0 and self.automaton.rows[info.normal_row].positional and not info.bilateral

    def conditions(self, contact: int, closed: bool) -> list[Condition]:
        """Return what the gap of a contact must satisfy; nothing for an open contact whose face ends."""
        info = self.automaton.contacts[contact]
        if closed:
            return [Condition(info.normal_row, -1 if info.contact_law.compliant else 0)]
        ends = info.gated or info.bounded_face or info.outlined or info.ends[0] >= 0
        return [] if ends else [Condition(info.normal_row, 1)]

    def limits(self, rows: frozenset[int]) -> list[Condition]:
        """Return what holds in any state: closed loops and rigid gaps of the arguments that ``rows`` depend on."""
        arguments, chosen = set().union(*(self.row_support[row] for row in rows)), []
        grown = True
        while grown:
            grown = False
            for condition in self.loops:
                if condition not in chosen and self.row_support[condition.row] & arguments:
                    chosen.append(condition)
                    arguments |= self.row_support[condition.row]
                    grown = True
        for contact, info in enumerate(self.automaton.contacts):
            if not self.has_gap(contact) or not info.contact_law.rigid or info.normal_row in rows:
                continue
            if self.row_support[info.normal_row] <= arguments:
                chosen += self.conditions(contact, False)
        return chosen

    def decide(self, asked: Mapping[int, bool]) -> ContactVerdict:
        """Return the verdict on contacts that are to be closed (True) or open."""
        contacts, layout = self.automaton.contacts, self.automaton.terms.layout
        names = tuple(contacts[i].name for i in asked)
        closed = tuple(asked.values())
        own = [self.conditions(i, shut) for i, shut in asked.items()]
        conditions = list(itertools.chain(*own))
        conditions += self.limits(frozenset(condition.row for condition in conditions))
        shown, boxes = None, 0
        for most in (FIRST_BOXES, MOST_BOXES):
            empty, boxes = self.excluded(conditions, most)
            if empty:
                return ContactVerdict(names, closed, "impossible", self.reason(names, closed, own), {}, boxes)
            if shown is None and (shown := self.configuration(conditions)) is not None:
                return ContactVerdict(
                    names, closed, "possible", "", dict(zip(layout.q, shown.tolist(), strict=True)), boxes
                )
        return ContactVerdict(names, closed, "undecided", "", {}, boxes)

    def excluded(self, conditions: Sequence[Condition], most: int) -> tuple[bool, int]:
        """Return whether no box holds a configuration with these conditions, and how many boxes were looked at."""
        program, senses, margins = self._program(conditions)
        variables = self._variables(conditions)
        low, high = self.low[:, None], self.high[:, None]
        count = 0
        while low.shape[1]:
            count += low.shape[1]
            if count > most:
                return False, count
            kept = _may_hold(program, senses, margins, Interval(low, high))
            low, high = low[:, kept], high[:, kept]
            width = self._width(low[variables], high[variables], variables)
            if low.shape[1] and (width.max(axis=0) < FINEST).any():
                return False, count
            low, high = _halved(low, high, variables, width, self._scale(variables))
        return True, count

    def _program(self, conditions: Sequence[Condition]) -> tuple[Program, Array, Array]:
        """Return the residuals of some conditions, the senses of these, and their margins in SI units."""
        rows = [condition.row for condition in conditions]
        scales = self.automaton.units.scales.length * self.automaton.units.rows[rows]
        return self.residuals.part({"residual": rows}), np.array([c.sense for c in conditions]), MARGIN * scales

    def _variables(self, conditions: Sequence[Condition]) -> list[int]:
        found = set().union(*(self.row_support[condition.row] for condition in conditions))
        return sorted(i for i in found if self.low[i] < self.high[i])

    def _scale(self, variables: Sequence[int]) -> Array:
        """Return the own unit of each variable: that of a coordinate, else one."""
        n_q = len(self.units)
        return np.array([self.units[i - 1] if 1 <= i <= n_q else 1.0 for i in variables])

    def _width(self, low: Array, high: Array, variables: Sequence[int]) -> Array:
        with np.errstate(over="ignore"):
            return (high - low) / self._scale(variables)[:, None]

    def configuration(self, conditions: Sequence[Condition]) -> Array | None:
        """Return coordinates in which all conditions and all limits of the model are met, or None."""
        rows = frozenset(condition.row for condition in conditions)
        everything = [*conditions, *self.loops]
        for contact in range(len(self.automaton.contacts)):
            info = self.automaton.contacts[contact]
            if self.has_gap(contact) and info.contact_law.rigid and info.normal_row not in rows:
                everything += self.conditions(contact, False)
        program, senses, margins = self._program(everything)
        scales = margins / MARGIN
        n_u = len(self.automaton.terms.layout.u)
        random = np.random.default_rng(20260101)

        def violations(scaled: Array) -> Array:
            x = np.concatenate([scaled * self.units, np.zeros(n_u)])
            value = program.evaluate(0.0, x, self.context)["residual"] / scales
            short = np.where(senses == 0, value, np.where(senses > 0, np.minimum(value, 0.0), np.maximum(value, 0.0)))
            return np.where(np.isfinite(short), short, 1e6)

        def slopes(scaled: Array) -> Array:
            step = 1e-7
            x = np.zeros((1 + len(self.q), len(self.q) + n_u))
            x[:, : len(self.q)] = (scaled + step * np.eye(1 + len(self.q), len(self.q), -1)) * self.units
            value = program.evaluate(0.0, x, self.context)["residual"] / scales
            active = np.where(senses == 0, True, np.where(senses > 0, value[0] < 0.0, value[0] > 0.0))
            jacobian: Array = np.where(active[:, None], (value[1:] - value[0]).T / step, 0.0)
            return np.nan_to_num(jacobian, posinf=0.0, neginf=0.0)

        for number in range(STARTS):
            begin = self.q / self.units + (random.normal(size=len(self.q)) * 0.5 * number if number else 0.0)
            found = least_squares(violations, begin, slopes, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=60)
            if np.abs(found.fun).max(initial=0.0) <= EXACT:
                shown: Array = found.x * self.units
                return shown
        return None

    def reason(self, names: Sequence[str], closed: Sequence[bool], own: Sequence[Sequence[Condition]]) -> str:
        """Return why contacts exclude each other, by the two places of one coordinate if there are."""
        shared = set.intersection(*(set(self._variables(conditions)) for conditions in own))
        layout = self.automaton.terms.layout
        for variable in sorted(i for i in shared if 1 <= i <= len(layout.q) and len(own) > 1):
            name = layout.q[variable - 1]
            places = [
                self._hull([*conditions, *self.limits(frozenset(c.row for c in conditions))], variable)
                for conditions in own
            ]
            if places[0][1] < places[1][0] or places[1][1] < places[0][0]:
                states = [_states_text([name], [shut]) for name, shut in zip(names, closed, strict=True)]
                texts = [f"{_between(place)} with {state}" for place, state in zip(places, states, strict=True)]
                return f"{name} would be {texts[0]} and {texts[1]} (SI units)"
        return f"no configuration has {_states_text(names, closed)}"

    def _hull(self, conditions: Sequence[Condition], variable: int) -> tuple[float, float]:
        """Return bounds of one argument over the boxes in which conditions may hold, after some halving of it alone."""
        program, senses, margins = self._program(conditions)
        low, high = self.low[:, None], self.high[:, None]
        bounds = -np.inf, np.inf
        for _ in range(60):
            kept = _may_hold(program, senses, margins, Interval(low, high))
            low, high = low[:, kept], high[:, kept]
            bounds = float(low[variable].min()), float(high[variable].max())
            width = self._width(low[[variable]], high[[variable]], [variable])
            if low.shape[1] > BATCH or width.max() < FINEST:
                break
            low, high = _halved(low, high, [variable], width, self._scale([variable]))
        return bounds


def _states_text(names: Sequence[str], closed: Sequence[bool]) -> str:
    return " and ".join(f"{name} {'closed' if shut else 'open'}" for name, shut in zip(names, closed, strict=True))


def _between(hull: tuple[float, float]) -> str:
    low, high = hull
    if np.isinf(low) or np.isinf(high):
        return f"at most {high:.4g}" if np.isinf(low) else f"at least {low:.4g}"
    if high - low <= 1e-3 * max(abs(low), abs(high)):
        return f"{0.5 * (low + high):.4g}"
    return f"from {low:.4g} to {high:.4g}"


def _support(program: Program, row: int) -> Iterator[int]:
    """Yield the numbers of the arguments on which one residual depends."""
    part = program.part({"residual": [row]})
    n_arguments = len(program.arguments)
    used = {i for _, operands in part.instructions for i in operands} | set(part.results[0].indices)
    yield from (i for i in used if i < n_arguments)


def _only_turns(program: Program, argument: int) -> bool:
    """Whether a program has the period 2 pi in an argument: it enters sines and cosines alone, by sums."""
    first, shifted = program.first_instruction, {argument}
    for k, (op, operands) in enumerate(program.instructions):
        if shifted & set(operands):
            if op in ("add", "sub", "neg"):
                shifted.add(first + k)
            elif op not in ("sin", "cos", "tan"):
                return False
    return not shifted & {i for output in program.results for i in output.indices}


def _may_hold(program: Program, senses: Array, margins: Array, boxes: Interval) -> npt.NDArray[np.bool_]:
    """Return for which boxes no condition is excluded by the bounds of its residual."""
    residual = enclose(program, boxes)["residual"]
    fits = np.where(senses <= 0, residual.low <= margins, True) & np.where(senses >= 0, residual.high >= -margins, True)
    return np.asarray((fits & ~residual.empty).all(axis=1))


def _halved(low: Array, high: Array, variables: Sequence[int], width: Array, scale: Array) -> tuple[Array, Array]:
    """Return two boxes for each, cut across the widest of some arguments; boundless ones near zero first."""
    boxes = np.arange(low.shape[1])
    widest = np.argmax(width, axis=0)
    place = np.array(variables)[widest] if len(variables) else np.zeros(len(boxes), np.int64)
    a, b, unit = low[place, boxes], high[place, boxes], scale[widest]
    near = np.clip(0.5 * np.clip(a, -1e300, 1e300) + 0.5 * np.clip(b, -1e300, 1e300), a, b)
    upwards, downwards = np.isinf(b) & np.isfinite(a), np.isinf(a) & np.isfinite(b)
    middle = np.where(upwards, np.where(a < -unit, 0.0, np.maximum(4.0 * np.minimum(a, 1e300), unit)), near)
    middle = np.where(downwards, np.where(b > unit, 0.0, np.minimum(4.0 * np.maximum(b, -1e300), -unit)), middle)
    left_high, right_low = high.copy(), low.copy()
    left_high[place, boxes] = middle
    right_low[place, boxes] = middle
    return np.concatenate([low, right_low], axis=1), np.concatenate([left_high, high], axis=1)


def _count(automaton: Automaton, verdicts: Sequence[ContactVerdict]) -> int:
    """Return the number of combinations without anything impossible, counted contact by contact."""
    index = {contact.name: i for i, contact in enumerate(automaton.contacts)}
    never = {index[v.contacts[0]] for v in verdicts if v.verdict == "impossible" and len(v.contacts) == 1}
    banned: dict[int, list[tuple[int, bool, bool]]] = {}
    for verdict in verdicts:
        if verdict.verdict == "impossible" and len(verdict.contacts) == 2:
            first, second = (index[name] for name in verdict.contacts)
            banned.setdefault(second, []).append((first, verdict.closed[0], verdict.closed[1]))
    last_use = [
        max((j for j, items in banned.items() if any(k == i for k, _, _ in items)), default=-1) for i in index.values()
    ]
    counts: dict[tuple[tuple[int, bool], ...], int] = {(): 1}
    for j, contact in enumerate(automaton.contacts):
        states = ((False, sum(code == 0 for code in contact.codes)), (True, sum(code > 0 for code in contact.codes)))
        following: dict[tuple[tuple[int, bool], ...], int] = {}
        for known, number in counts.items():
            before = dict(known)
            for closed, ways in states:
                if not ways or (closed and j in never):
                    continue
                if any(before.get(i) == mine and theirs == closed for i, mine, theirs in banned.get(j, ())):
                    continue
                kept = tuple((i, state) for i, state in (*known, (j, closed)) if last_use[i] > j)
                following[kept] = following.get(kept, 0) + number * ways
        counts = following
    return sum(counts.values())
