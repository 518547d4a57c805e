"""Phases of runs: conditions over intervals with exact ends, the resulting visits; phases as rules for machines."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Booleans, Codes, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.check_references import contacts_named
from fsm_dyn.language.evaluate import ScalarAlgebra
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.requirement import Conjunction, MeasuredQuantity, QuantityComparison, RunPhase, StateCondition
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Program
from fsm_dyn.run.extremes import INSIDE, Steps, state_within
from fsm_dyn.run.loop_state import Rows
from fsm_dyn.run.pins import pin_programs
from fsm_dyn.run.samples import RecordedSamples

# -- Phases of a recorded run ----------------------------------------------------------------------------------


SHORTEST: Final = 2e-3  # s: a shorter visit is a part of the one before, unless the model states another limit
SHARE: Final = 1e-3  # of the time up to the last change of mode: the same of long runs
LEAST: Final = 1e-4  # s: the only visit of a name is kept from this duration on
NO_PHASE: Final = -1

_FRACTIONS: Final = np.linspace(0.0, 1.0, INSIDE + 2)
_ROUNDS: Final = 16  # each makes the brackets of the ends eight times shorter
_TRUE: Final = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class PhaseVisit:
    """A visit of a phase, by its number, from ``begin`` to ``end``, s; of how many it was merged."""

    phase: int
    begin: float
    end: float
    merged: int = 1

    @property
    def duration(self) -> float:
        """Its length, s."""
        return self.end - self.begin


class JudgedConditions(Protocol):
    """Conditions of runs with consecutive rows."""

    @property
    def steps(self) -> Steps:
        """The steps of all runs, and the last row of each."""

    def in_state(self, condition: StateCondition) -> Booleans:
        """Return in which steps it is true."""

    def at_rows(self, quantity: MeasuredQuantity) -> Floats:
        """Return a quantity at all rows."""

    def within(self, quantity: MeasuredQuantity) -> Callable[[Floats, Integers], Floats]:
        """Return a function for a quantity at times within the steps from the given rows."""

    def number(self, text: Text) -> Floats:
        """Return a constant expression in each run."""


# -- Conditions over intervals between their changes ---------------------------------------------------------


@dataclass(frozen=True)
class ConditionTable:
    """Conditions over intervals in which none of them changes."""

    # begin, end: shape (k,): of the intervals, s
    begin: Floats
    end: Floats
    run: Integers  # shape (k,)
    true: dict[QuantityComparison | StateCondition, Booleans]  # by condition, shape (k,)

    def holds(self, conjunctions: Iterable[Conjunction]) -> Booleans:
        """Return whether one of the conjunctions is true, shape (k,)."""
        found = np.zeros(len(self.begin), dtype=np.bool_)
        for conjunction in conjunctions:
            both = np.ones(len(self.begin), dtype=np.bool_)
            for condition in conjunction:
                both &= self.true[condition]
            found |= both
        return found


def condition_table(
    judged: JudgedConditions, t: Floats, conditions: Iterable[QuantityComparison | StateCondition]
) -> ConditionTable:
    """Return conditions over the intervals between their changes.

    Contact states change at rows; a comparison changes within a step, found among nine points and refined. ``t``, shape
    (n,): times of the rows, s.
    """
    steps = judged.steps
    wanted = list(dict.fromkeys(conditions))
    at_begin: dict[QuantityComparison | StateCondition, Booleans] = {}
    step_of, times, owner = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0, np.int64)]
    grid = _grid(steps, t)
    sampled: dict[MeasuredQuantity, Floats] = {}
    for number, condition in enumerate(wanted):
        if isinstance(condition, StateCondition):
            at_begin[condition] = judged.in_state(condition)
            continue
        quantity = condition.quantity
        if quantity not in sampled:
            sampled[quantity] = _sampled(judged, grid, quantity)
        at_begin[condition], step, time = _changes(judged, grid, sampled[quantity], condition)
        step_of.append(step)
        times.append(time)
        owner.append(np.full(len(step), number))
    edge_step, edge, owners = np.concatenate(step_of), np.concatenate(times), np.concatenate(owner)
    count = len(steps)
    step = np.concatenate([np.arange(count), edge_step])
    begin = np.concatenate([t[steps.first], edge])
    who = np.concatenate([np.full(count, -1), owners])
    order = np.lexsort((who, begin, step))
    step, begin, who = step[order], begin[order], who[order]
    following = np.empty_like(begin)
    following[:-1] = begin[1:]
    last = np.ones(len(step), dtype=np.bool_)
    last[:-1] = step[1:] != step[:-1]
    following[last] = t[steps.last[step[last]]]
    true = {}
    for number, condition in enumerate(wanted):
        odd = np.cumsum(who == number)
        start = odd[np.searchsorted(step, np.arange(count))]
        true[condition] = at_begin[condition][step] ^ ((odd - start[step]) % 2 == 1)
    kept = following > begin
    kept[np.searchsorted(step, np.arange(count))[_lone(steps)]] = True
    return ConditionTable(
        begin[kept], following[kept], steps.run[step][kept], {name: value[kept] for name, value in true.items()}
    )


def _lone(steps: Steps) -> Booleans:
    """Return which steps are the only one of their run."""
    return np.asarray(np.bincount(steps.run, minlength=steps.count)[steps.run] == 1)


def _grid(steps: Steps, t: Floats) -> Floats:
    """Return evenly spaced times in each step, its ends included, shape (steps, INSIDE + 2), s."""
    lower, upper = t[steps.first], t[steps.last]
    grid: Floats = lower[:, None] + (upper - lower)[:, None] * _FRACTIONS
    grid[:, -1] = upper
    return grid


def _sampled(judged: JudgedConditions, grid: Floats, quantity: MeasuredQuantity) -> Floats:
    """Return a quantity over a grid."""
    steps, rows = judged.steps, judged.at_rows(quantity)
    values = np.empty_like(grid)
    values[:, 0], values[:, -1] = rows[steps.first], rows[steps.last]
    moving = grid[:, -1] > grid[:, 0]
    inner = grid[moving, 1:-1]
    if inner.size:
        found = judged.within(quantity)(inner.ravel(), np.repeat(steps.first[moving], INSIDE))
        values[moving, 1:-1] = found.reshape(inner.shape)
    values[~moving] = values[~moving, :1]
    return values


def _changes(
    judged: JudgedConditions, grid: Floats, values: Floats, compared: QuantityComparison
) -> tuple[Booleans, Integers, Floats]:
    """Return the truth of a comparison at the start of the steps, and the steps and times of its changes, s."""
    steps, within, true = judged.steps, judged.within(compared.quantity), _TRUE[compared.op]
    bound = judged.number(compared.bound)[steps.run]
    fits = true(values, bound[:, None])
    step, part = np.nonzero(fits[:, 1:] != fits[:, :-1])
    low, high, before = grid[step, part], grid[step, part + 1], fits[step, part]
    for _ in range(_ROUNDS):
        if not len(step):
            break
        finer = low[:, None] + (high - low)[:, None] * _FRACTIONS
        found = within(finer[:, 1:-1].ravel(), np.repeat(steps.first[step], INSIDE)).reshape(len(step), INSIDE)
        changed = np.column_stack([true(found, bound[step][:, None]) != before[:, None], np.ones(len(step), np.bool_)])
        first = changed.argmax(axis=1)
        rows_ = np.arange(len(step))
        low, high = finer[rows_, first], finer[rows_, first + 1]
    return fits[:, 0], step, high


# -- Phases of the intervals ---------------------------------------------------------------------------------


def phases_of(table: ConditionTable, phases: Sequence[RunPhase], runs: int) -> list[list[PhaseVisit]]:
    """Return the visits of phases of each run, none of them merged. ``runs``: their number."""
    when = np.array([table.holds(phase.when) for phase in phases])
    until = np.array([table.holds(phase.until) for phase in phases])
    names = [phase.name for phase in phases]
    after = [[names.index(other) for other in phase.after] for phase in phases]
    stays = [bool(phase.until) for phase in phases]
    visits: list[list[PhaseVisit]] = [[] for _ in range(runs)]
    new = np.ones(len(table.begin), dtype=np.bool_)
    new[1:] = (
        (when[:, 1:] != when[:, :-1]).any(axis=0)
        | (until[:, 1:] != until[:, :-1]).any(axis=0)
        | (table.run[1:] != table.run[:-1])
    )
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(new)) - 1
    current, run_before = NO_PHASE, -1
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        run = int(table.run[begin])
        if run != run_before:
            current, run_before = NO_PHASE, run
        for number in range(len(phases)):
            applies = not until[number, begin] if stays[number] and number == current else when[number, begin]
            if applies and (number == current or not after[number] or current in after[number]):
                break
        else:
            number = NO_PHASE
        own = visits[run]
        if own and own[-1].phase == number:
            own[-1] = replace(own[-1], end=float(table.end[end]))
        else:
            own.append(PhaseVisit(number, float(table.begin[begin]), float(table.end[end])))
        current = number
    return visits


def merged(visits: Sequence[PhaseVisit], shortest: Callable[[int], float], kept: bool = False) -> list[PhaseVisit]:
    """Return visits without those shorter than ``shortest`` of their phase: the one before has their time.

    The shortest goes first; adjacent visits of one phase become one.  With ``kept`` the only visit of a phase stays if
    it lasts :data:`LEAST`.
    """
    phase = [visit.phase for visit in visits]
    begin, end = [visit.begin for visit in visits], [visit.end for visit in visits]
    number = [visit.merged for visit in visits]
    before, after = [i - 1 for i in range(len(visits))], [i + 1 for i in range(len(visits))]
    alive, left = [True] * len(visits), len(visits)
    count = Counter(phase)
    queue = [(end[i] - begin[i], i) for i in range(len(visits))]
    heapq.heapify(queue)

    def join(one: int, other: int) -> None:
        """Let a visit have the time of the one after it."""
        end[one], after[one] = end[other], after[other]
        number[one] += number[other]
        if after[one] < len(visits):
            before[after[one]] = one
        alive[other] = False
        count[phase[other]] -= 1

    while queue and left > 1:
        duration, i = heapq.heappop(queue)
        only = kept and count[phase[i]] == 1 and duration >= LEAST
        if not alive[i] or duration != end[i] - begin[i] or not duration < shortest(phase[i]) or only:
            continue
        one = before[i] if before[i] >= 0 else i
        if one == i:  # the first visit: the second has its time
            phase_of_second = phase[after[i]]
            count[phase[i]] -= 1
            count[phase_of_second] += 1
            phase[i] = phase_of_second
        join(one, after[i] if one == i else i)
        left -= 1
        if after[one] < len(visits) and phase[after[one]] == phase[one]:
            join(one, after[one])
            left -= 1
        heapq.heappush(queue, (end[one] - begin[one], one))
    return [PhaseVisit(phase[i], begin[i], end[i], number[i]) for i in range(len(visits)) if alive[i]]


def default_shortest(t: Floats, mode: Integers) -> float:
    """Return the length below which visits of a run are merged, s; ``t`` and ``mode`` (n,) are those of its rows."""
    changes = np.flatnonzero(mode[1:] != mode[:-1])
    last = t[changes[-1] + 1] if len(changes) else t[-1]
    return max(SHORTEST, SHARE * float(last - t[0]))


def judged_visits(
    judged: JudgedConditions,
    t: Floats,
    mode: Integers,
    begin: Integers,
    phases: Sequence[RunPhase],
    raw: bool = False,
) -> list[list[PhaseVisit]]:
    """Return the visits of the phases of a model in each of several runs.

    ``t``, ``mode``, shape (n,): of the rows of all runs; ``begin``, shape (runs + 1,): first row of each run, and the
    number of rows; ``raw``: whether short visits stay apart.
    """
    runs = len(begin) - 1
    conditions = [c for phase in phases for part in (*phase.when, *phase.until) for c in part]
    visits = phases_of(condition_table(judged, t, conditions), phases, runs)
    if raw:
        return visits
    given = [None if phase.shortest is None else judged.number(phase.shortest) for phase in phases]
    found = []
    for run, own in enumerate(visits):
        rows = slice(begin[run], begin[run + 1])
        usual = default_shortest(t[rows], mode[rows])

        def shortest(number: int, usual: float = usual, run: int = run) -> float:
            value = None if number == NO_PHASE else given[number]
            return usual if value is None else float(value[run])

        found.append(merged(own, shortest))
    return found


# -- Rows of runs with additional ones at the ends of phases, for requirements on phases ---------------------


def with_phase_rows(
    samples: RecordedSamples, visits: Sequence[Sequence[PhaseVisit]]
) -> tuple[RecordedSamples, Integers]:
    """Return the samples of runs with a row at the start of every visit, and the phase after each row.

    The parts of a cut step have its quartic: their ends, rates and middles are on it. Returns ``phase``, shape (n,):
    number of the phase in the step from each row.
    """
    rows = samples.rows
    times, first = _cuts(rows, visits)
    if len(times):
        rows = _cut(samples, times, first)
    phase = np.empty(len(rows.t), dtype=np.int64)
    for run, own in enumerate(visits):
        part = slice(rows.begin[run], rows.begin[run + 1])
        begins, numbers = (np.array(column) for column in zip(*((v.begin, v.phase) for v in own), strict=True))
        phase[part] = numbers[np.maximum(np.searchsorted(begins, rows.t[part], side="right") - 1, 0)]
    return RecordedSamples(samples.model, rows, samples.inputs, samples.vectors), phase


def _cuts(rows: Rows, visits: Sequence[Sequence[PhaseVisit]]) -> tuple[Floats, Integers]:
    """Return the starts of visits within steps, s, and the first rows of these steps, both of shape (m,)."""
    times, first = [], []
    for run, own in enumerate(visits):
        begin, end = int(rows.begin[run]), int(rows.begin[run + 1])
        for visit in own[1:]:
            row = begin + int(np.searchsorted(rows.t[begin:end], visit.begin, side="right")) - 1
            if rows.t[row] < visit.begin and row + 1 < end:
                times.append(visit.begin)
                first.append(row)
    return np.array(times), np.array(first, dtype=np.int64)


def _cut(samples: RecordedSamples, times: Floats, first: Integers) -> Rows:
    """Return the rows of runs with additional ones at times (m,) within the steps from the rows (m,)."""
    rows = samples.rows
    place = np.insert(np.arange(len(rows.t)), first + 1, first)
    added = np.insert(np.zeros(len(rows.t), dtype=np.bool_), first + 1, True)
    t = np.insert(rows.t, first + 1, times)
    x, x_dot, x_mid, held = (part[place] for part in (rows.x, rows.x_dot, rows.x_mid, rows.held))
    known = (rows.t, rows.x, rows.x_dot, rows.x_mid)
    x[added] = state_within(*known, times, first, slice(None))[0]
    x_dot[added] = _rates(rows, times, first)
    held[added] = samples.between(times, first).context[:, -rows.held.shape[1] :] if held.shape[1] else held[added]
    ends = np.flatnonzero(added | np.concatenate([[False], added[:-1]]))  # last rows of parts of steps
    halfway = 0.5 * (t[ends - 1] + t[ends])
    x_mid[ends] = state_within(*known, halfway, place[ends - 1], slice(None))[0]
    begin = rows.begin + np.searchsorted(first, rows.begin, side="left")
    return Rows(t, x, x_dot, x_mid, rows.mode[place], held, begin=begin)


def _rates(rows: Rows, times: Floats, first: Integers) -> Floats:
    """Return the rates of the quartics of steps at times within them, shape (m, n_x)."""
    t, x, x_dot, x_mid = rows.t, rows.x, rows.x_dot, rows.x_mid
    step = (t[first + 1] - t[first])[:, None]
    s = (times - t[first])[:, None] / step
    x0, x1 = x[first], x[first + 1]
    d0, d1 = x_dot[first], x_dot[first + 1]
    cubic = 6.0 * s * (1.0 - s) * (x1 - x0) / step + (1.0 - s) * (1.0 - 3.0 * s) * d0 + s * (3.0 * s - 2.0) * d1
    middle_of_cubic = 0.5 * (x0 + x1) + 0.125 * step * (d0 - d1)
    return np.asarray(cubic + 32.0 * s * (1.0 - s) * (1.0 - 2.0 * s) * (x_mid[first + 1] - middle_of_cubic) / step)


# -- Phases as numbers for machines that follow them -----------------------------------------------------------


_ABOVE: Final = (">", ">=")
_STRICT: Final = ("<", ">")


@dataclass(frozen=True)
class ContactTest:
    """A condition on contact states: whether all contacts are in their states, or one suffices; or not so."""

    pairs: tuple[tuple[int, int], ...]
    one_suffices: bool
    negated: bool

    def holds(self, states: Sequence[int]) -> bool:
        """Whether it is true of the states of all contacts."""
        fits = (states[contact] == code for contact, code in self.pairs)
        return (any(fits) if self.one_suffices else all(fits)) != self.negated


@dataclass(frozen=True)
class PhaseRule:
    """A phase: those it may follow (none: all), and conjunctions of numbers of conditions that begin and end it."""

    after: tuple[int, ...]
    when: tuple[tuple[int, ...], ...]
    until: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PhaseRules:
    """Phases of a model.  Conditions are numbered: first comparisons, then those on contact states."""

    names: list[str]
    # gives ``margins`` (n_compared,), above zero if a comparison is true; None without comparisons
    program: Program | None
    reads_forces: bool  # whether its state has rates of speeds and multipliers behind it
    strict: Codes  # ndarray of int8, shape (n_compared,): whether a comparison is false at zero
    tests: tuple[ContactTest, ...]
    order: tuple[PhaseRule, ...]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of ``struct fsm_phases``, see exports/c99/fsm_phases.h."""
        entries = [
            [
                int(test.negated),
                int(test.one_suffices),
                len(test.pairs),
                *(code for pair in test.pairs for code in pair),
            ]
            for test in self.tests
        ]
        rules: list[int] = []
        for rule in self.order:
            rules += [len(rule.after), *rule.after]
            for parts in (rule.when, rule.until):
                rules += [len(parts), *(number for part in parts for number in (len(part), *part))]
        begin = np.cumsum([0, *map(len, entries)])[:-1]
        return {
            "strict": self.strict, "begin": begin.astype(np.int64),
            "states": np.array([code for entry in entries for code in entry], np.int64),
            "rules": np.array(rules, np.int64),
        }  # fmt: skip


class PhaseFollower:
    """Follows the phases of a run judged at successive times, such as ticks.

    ``phase``: number of the present one; -1 for none.
    """

    def __init__(self, rules: PhaseRules) -> None:
        self._rules = rules
        self.restart()

    def restart(self) -> None:
        """Forget what was judged."""
        self.phase = NO_PHASE
        self._found: list[tuple[bool, bool]] = []

    def judge(self, states: Sequence[int], margins: Floats) -> int:
        """Return the phase at the next time.

        ``states``: of all contacts; ``margins``, shape (n_compared,): of the comparisons.
        """
        rules, before = self._rules, self.phase
        true = np.where(rules.strict, margins > 0.0, margins >= 0.0).tolist()
        true += [test.holds(states) for test in rules.tests]

        def one_of(parts: tuple[tuple[int, ...], ...]) -> bool:
            return any(all(true[number] for number in part) for part in parts)

        found = [(one_of(rule.when), one_of(rule.until)) for rule in rules.order]
        if found != self._found:
            self._found, self.phase = found, NO_PHASE
            for number, (rule, (begins, ends)) in enumerate(zip(rules.order, found, strict=True)):
                stays = number == before
                follows = stays or not rule.after or before in rule.after
                if follows and (not ends if stays and rule.until else begins):
                    self.phase = number
                    break
        return self.phase


def phase_rules(automaton: Automaton) -> PhaseRules | None:
    """Return the phases of a model; None without any."""
    phases = tuple(automaton.mechanism.phases.values())
    if not phases:
        return None
    wanted = dict.fromkeys(item for phase in phases for part in (*phase.when, *phase.until) for item in part)
    compared = [item for item in wanted if isinstance(item, QuantityComparison)]
    states = [item for item in wanted if isinstance(item, StateCondition)]
    numbers: dict[Any, int] = {item: number for number, item in enumerate((*compared, *states))}
    names = [str(phase.name) for phase in phases]

    def numbered(parts: tuple[Conjunction, ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(numbers[item] for item in part) for part in parts)

    reads_forces = any(item.quantity.part or item.quantity.connection for item in compared)
    return PhaseRules(
        names,
        _margins(automaton, compared, reads_forces) if compared else None,
        reads_forces,
        np.array([item.op in _STRICT for item in compared], np.int8),
        tuple(_contact_test(automaton, item) for item in states),
        tuple(
            PhaseRule(tuple(names.index(name) for name in phase.after), numbered(phase.when), numbered(phase.until))
            for phase in phases
        ),
    )


def _contact_test(automaton: Automaton, condition: StateCondition) -> ContactTest:
    mechanism, contacts = automaton.mechanism, automaton.contacts
    if condition.state:
        members = contacts_named(mechanism, condition.name)
        chosen = [number for number, contact in enumerate(contacts) if contact.name in members]
        code = contacts[chosen[0]].states.index(condition.state)
        return ContactTest(tuple((number, code) for number in chosen), code != FREE, condition.negated)
    pattern = next(item for item in automaton.patterns if item.name == condition.name)
    return ContactTest(tuple(pattern.states.items()), False, condition.negated)


def _margins(automaton: Automaton, compared: list[QuantityComparison], reads_forces: bool) -> Program:
    """Return the program of comparisons: quantity less bound, or the reverse, above zero where one is true."""
    graph = ExpressionGraph()
    symbols, known = automaton.report.nodes(graph)
    layout, nodes = automaton.report.layout, dict(symbols)
    nodes |= dict(zip(automaton.mechanism.outputs, known.get("outputs", ()), strict=True))
    if reads_forces:
        programs = pin_programs(automaton.mechanism, [(row.name, row.role) for row in automaton.rows])
        layout = programs.program.layout
        arguments, wrenches = programs.program.nodes(graph)
        nodes = {**arguments, **nodes}
        columns = list(dict.fromkeys(item.quantity.name for item in compared if item.quantity.connection))
        nodes |= dict(zip(columns, programs.quantities(columns, wrenches), strict=True))
    algebra = ScalarAlgebra(graph, {**{name: symbols[name] for name in layout.p}, "pi": graph.constant(np.pi)})

    def margin(item: QuantityComparison) -> Node:
        quantity, bound = item.quantity, algebra.scalar(item.bound)
        value = _contact_force(automaton, quantity, nodes) if quantity.part else nodes[quantity.name]
        value = functions.absolute(value) if quantity.magnitude else value
        return value - bound if item.op in _ABOVE else bound - value

    return Program.from_nodes(layout, {"margins": np.array([margin(item) for item in compared], dtype=object)})


def _contact_force(automaton: Automaton, quantity: MeasuredQuantity, nodes: Mapping[str, Node]) -> Node:
    """Return the force of a contact, or of all feature pairs of an entry together; of friction in space its size."""
    members = contacts_named(automaton.mechanism, quantity.name)
    parts = []
    for contact in automaton.contacts:
        if contact.name in members:
            rows = (contact.normal_row,) if quantity.part == "normal" else contact.tangent_rows
            forces = [nodes[f"lambda[{row}]"] for row in rows]
            parts.append(forces[0] if len(forces) == 1 else functions.sqrt(sum(force * force for force in forces)))
    return parts[0] if len(parts) == 1 else sum(parts[1:], parts[0])
