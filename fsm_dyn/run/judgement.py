"""Requirements judged over a run: verdict, signed margin and deciding time (docs/language.md, "requirements")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.requirement import (
    Always,
    ContactEvent,
    Count,
    Event,
    Eventually,
    Extreme,
    MeasuredQuantity,
    NeverTwice,
    PhaseCondition,
    PhaseEvent,
    QuantityComparison,
    Requirement,
    State,
    StateCondition,
    conditions_of,
    phase_named,
)
from fsm_dyn.run.energy import wear_of
from fsm_dyn.run.extremes import Steps, largest_of_runs, quartic_bounds, state_within
from fsm_dyn.run.phases import PhaseVisit, judged_visits, with_phase_rows
from fsm_dyn.run.run import Run, Runs
from fsm_dyn.run.samples import RecordedSamples, Samples
from fsm_dyn.run.tolerances import Numerics, numerics_of
from fsm_dyn.run.transitions import Transition

# -- Errors of the quantities of a run -----------------------------------------------------------------------
#
# Errors of the quantities of a run, as far as its tolerances determine them: within them a margin is no verdict.

_PROBE: Final = 1e3  # displacement of a state to find its effect, in units of its error
_ROUNDING: Final = 8.0 * np.finfo(np.float64).eps


def state_errors(numerics: Numerics, x: Floats, n_q: int) -> Floats:
    """Return the errors of states (n, n_x): the tolerance of a step, or of gaps and speeds counting as zero; SI.

    ``x``, shape (n, n_x): coordinates and speeds, SI; ``n_q``: number of coordinates.
    """
    tolerances = numerics.tolerances
    scales = tolerances.scales
    zero = np.full(x.shape[1], (tolerances.speed or 0.0) * scales.time / scales.length)
    zero[:n_q] = (tolerances.gap or 0.0) / scales.length
    return np.maximum(numerics.rtol * np.abs(x) + numerics.atol, zero * numerics.states)


def derived_errors(
    rows_at: Callable[[Integers], Samples], rows: Integers, sizes: Floats, quantity: Callable[[Samples], Floats]
) -> Floats:
    """Return the errors of quantities determined by the state: those of all states, times their effects; (n,).

    ``rows_at``: returns rows of the runs, by their numbers, as samples; ``rows``, shape (n,); ``sizes``, shape (n,
    n_x); ``quantity``: returns the quantity at samples.
    """
    n, n_x = sizes.shape
    samples = rows_at(np.repeat(rows, n_x + 1))
    moved = samples.x.reshape(n, n_x + 1, n_x).copy()
    moved[:, 1:] += _PROBE * sizes[:, None, :] * np.eye(n_x)
    values = quantity(replace(samples, x=moved.reshape(-1, n_x))).reshape(n, n_x + 1)
    error: Floats = np.abs(values[:, 1:] - values[:, :1]).sum(axis=1) / _PROBE + _ROUNDING * np.abs(values[:, 0])
    return error


# -- Requirements judged over a run --------------------------------------------------------------------------
#
# Requirements judged over a run: verdict, signed margin and deciding time (docs/language.md, "requirements").

Verdict = Literal["met", "violated", "undecided"]
VERDICTS: Final[tuple[Verdict, ...]] = "met", "violated", "undecided"
_BLOCK: Final = 4096  # rows whose intermediate results fit into a processor's cache
_MET, _VIOLATED, _UNDECIDED = range(3)
_COMPARED: Final = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True)
class Judgement:
    """A requirement judged over one run.

    Attributes
    ----------
    name, formula : str
    verdict : {'met', 'violated', 'undecided'}
        Undecided: the run ended or failed before it could be judged.
    margin : float
        How far the run is from the other verdict: positive if met, negative if violated, in ``unit``; of an undecided
        requirement that of the run so far.  Infinite if nothing came near, nan if there is none.
    unit : str
        Of the margin: that of the quantity, ``"s"`` for times and modes, ``"1"`` for counts.
    time : float or None
        The deciding time, s; None where no single one does.
    chain : tuple of Transition
        The transitions up to it, in order.
    """

    name: str
    formula: str
    verdict: Verdict
    margin: float
    unit: str
    time: float | None
    chain: tuple[Transition, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        at = "" if self.time is None else f" at {self.time:.6f} s"
        return f"{self.name}: {self.verdict}, margin {self.margin:.6g} {self.unit}{at}"


@dataclass(frozen=True)
class Findings:
    """A requirement judged over several runs."""

    verdicts: Integers  # shape (runs,): numbers into ``VERDICTS``
    margins: Floats  # shape (runs,): as of :class:`Judgement`
    times: Floats  # shape (runs,): the deciding times, s; nan where no single one does


class Judge:
    """Judges requirements over several runs at once; each run is judged as if it were alone, to the last bit.

    ``cut``: their rows with further ones at all ends of phases; ``phase``: number of the phase after each.
    """

    def __init__(
        self,
        runs: Runs,
        cut: RecordedSamples | None = None,
        phase: Integers | None = None,
        visits: list[list[PhaseVisit]] | None = None,
    ) -> None:
        self._phase, self._visits = phase, visits
        self.runs, self.samples, self.complete = runs, cut or runs, runs.complete
        self.model, self.rows = runs.model, self.samples.rows
        rows = self.rows
        self.count = len(rows.begin) - 1
        self.last_rows = rows.begin[1:] - 1
        self.end = rows.t[self.last_rows]
        # first rows of steps, and the last row of each run: its mode may begin there
        begins = np.zeros(len(rows.t), dtype=np.bool_)
        begins[:-1] = rows.t[1:] > rows.t[:-1]
        begins[self.last_rows] = True
        first = np.flatnonzero(begins)
        run = np.repeat(np.arange(self.count), np.add.reduceat(begins, rows.begin[:-1], dtype=np.int64))
        self.steps = Steps(first, np.minimum(first + 1, self.last_rows[run]), run, self.count, rows.begin)
        self.durations = rows.t[self.steps.last] - rows.t[first]
        self.none = np.full(self.count, np.nan)

    def judge(self, requirement: Requirement) -> Findings:
        """Return the verdicts of a requirement."""
        if self._phase is None and self._names_phase(requirement):
            return self._with_phases.judge(requirement)
        match requirement.claim:
            case Always(condition=QuantityComparison() as compared, during=during):
                return self._always(compared, during)
            case Always(condition=StateCondition() | PhaseCondition() as state, during=during):
                return self._always_in_state(state, during)
            case Eventually(condition=QuantityComparison() as compared, before=before):
                return self._eventually(compared, before)
            case Eventually(condition=condition, before=before) if not isinstance(condition, QuantityComparison):
                return self._reached(condition, before)
            case Extreme(comparison=compared) if compared.quantity.is_impulse:
                return self._largest_impulse(compared)
            case Extreme(function=function, comparison=compared):
                return self._extreme(function, compared)
            case NeverTwice(event=event, within=within):
                return self._never_twice(event, self.number(within))
            case Count(event=event, op=op, bound=bound):
                return self._count(event, op, self.number(bound))
        raise TypeError(f"no claim of a requirement: {requirement.claim!r}")

    # -- Phases ------------------------------------------------------------------------------------------------

    def _names_phase(self, requirement: Requirement) -> bool:
        """Whether a phase is named, by a bare name only if no mode has it."""
        modes = {pattern.name for pattern in self.model.patterns}
        return bool(self.model.phases) and any(
            isinstance(item, PhaseCondition | PhaseEvent)
            or (isinstance(item, StateCondition) and not item.state and item.name not in modes)
            for item in conditions_of(requirement.claim)
        )

    @cached_property
    def visits(self) -> list[list[PhaseVisit]]:
        """The visits of phases in each run."""
        if self._visits is not None:
            return self._visits
        rows = self.rows
        return judged_visits(self, rows.t, rows.mode, rows.begin, self.model.phases)

    @cached_property
    def _with_phases(self) -> Judge:
        """The same runs with rows at all ends of phases."""
        samples, phase = with_phase_rows(self.samples, self.visits)
        return Judge(self.runs, samples, phase, self.visits)

    def _event_times(self, event: Event) -> Sequence[Floats]:
        """Return the times of an event of a contact or phase in each run, s."""
        if isinstance(event, ContactEvent):
            return self.runs.event_times(event)
        number = phase_named(self.model.phases, event.name)
        begins = event.word == "begins"
        return [
            np.array([v.begin if begins else v.end for v in (own if begins else own[:-1]) if v.phase == number])
            for own in self.visits
        ]

    # -- Claims ------------------------------------------------------------------------------------------------

    def _always(self, compared: QuantityComparison, during: Sequence[State]) -> Findings:
        steps = self.steps if not during else self.steps.only(self._applies(during))
        margin, time = self._least_margin(compared, steps)
        satisfied = self._satisfied(compared, margin, time)
        if len(steps) < len(self.steps):
            empty = np.bincount(steps.run, minlength=self.count) == 0
            margin[empty], time[empty], satisfied[empty] = math.inf, math.nan, True
        return Findings(self._unless_failed(satisfied), margin, time)

    def _always_in_state(self, state: State, during: Sequence[State]) -> Findings:
        applies = self._applies(during)
        violated = applies & ~self.in_state(state)
        counted = violated & (self.durations > 0.0)
        satisfied = np.ones(self.count, dtype=np.bool_)
        margin, time = np.empty(self.count), self.none.copy()
        parts = np.searchsorted(self.steps.run, np.arange(self.count + 1))
        for k in range(self.count):
            part = slice(parts[k], parts[k + 1])
            if counted[part].any():
                satisfied[k] = False
                margin[k] = -self.durations[part][violated[part]].sum()
                time[k] = self.rows.t[self.steps.first[part][counted[part]][0]]
            else:
                margin[k] = self.durations[part][applies[part]].sum()
        return Findings(self._unless_failed(satisfied), margin, time)

    def _eventually(self, compared: QuantityComparison, before: Text | None) -> Findings:
        deadline = np.full(self.count, math.inf) if before is None else self.number(before)
        begin, run = self.rows.t[self.steps.first], self.steps.run
        just_after = (begin > deadline[run]) & (begin <= deadline[run] + self._late)  # of a jump at the deadline
        deadline = deadline.copy()
        np.maximum.at(deadline, run[just_after], begin[just_after])
        steps = self.steps.only(begin <= deadline[run])
        margin, time = self._greatest_margin(compared, steps, deadline)
        satisfied = self._satisfied(compared, margin, time)
        empty = np.bincount(steps.run, minlength=self.count) == 0
        margin[empty], time[empty], satisfied[empty] = -math.inf, math.nan, False
        failed = np.where(empty | (self.end >= deadline), _VIOLATED, _UNDECIDED)
        return Findings(np.where(satisfied, _MET, failed), margin, time)

    def _reached(self, condition: State | Event, before: Text | None) -> Findings:
        deadline = self.end if before is None else self.number(before)
        time = self.none.copy()
        if isinstance(condition, ContactEvent | PhaseEvent):
            for k, times in enumerate(self._event_times(condition)):
                time[k] = times[0] if len(times) else math.nan
        else:
            true = np.flatnonzero(self.in_state(condition))[::-1]  # of each run the first is entered last
            time[self.steps.run[true]] = self.rows.t[self.steps.first[true]]
        never = np.isnan(time)
        undecided = never & ((self.end < deadline) | (before is None))
        margin = np.where(undecided, math.nan, deadline - np.where(never, self.end, time))
        verdicts = np.where(~never & (margin >= -self._late), _MET, _VIOLATED)
        return Findings(np.where(undecided, _UNDECIDED, verdicts), margin, time)

    def _extreme(self, function: str, compared: QuantityComparison) -> Findings:
        if function == "final":
            value = self._final(compared.quantity)
            margin = self._sign(compared) * (value - self.number(compared.bound))
            return Findings(self._if_complete(self._satisfied(compared, margin, self.end)), margin, self.end)
        above = compared.op in (">", ">=")
        if above == (function == "trough"):  # of every value
            return self._always(compared, ())
        margin, time = self._greatest_margin(compared, self.steps, np.full(self.count, math.inf))
        met = self._satisfied(compared, margin, time)
        return Findings(np.where(met, _MET, self._if_complete(np.zeros_like(met))), margin, time)

    def _final(self, quantity: MeasuredQuantity) -> Floats:
        """Return the value at the end of each run."""
        if quantity.is_wear:
            return self._worn(quantity)
        return self.column(self.samples.at(self.last_rows), quantity)

    def _worn(self, quantity: MeasuredQuantity) -> Floats:
        """Return sliding, work or depth of a connection at the end of the only run, shape (1,)."""
        run = self.runs
        if not isinstance(run, Run):
            raise NotImplementedError("wear is found run by run")
        entry = wear_of(run.all, run.record.starts, run.between)[quantity.connection]
        found: Floats = getattr(entry, quantity.name.rsplit(".", 1)[1])[-1:]
        return found

    def _largest_impulse(self, compared: QuantityComparison) -> Findings:
        value, time = np.zeros(self.count), self.none.copy()
        for k, (times, sizes) in enumerate(self.runs.pin_impulses(compared.quantity.connection)):
            if len(sizes):
                value[k], time[k] = sizes.max(), times[int(sizes.argmax())]
        margin = self._sign(compared) * (value - self.number(compared.bound))
        satisfied = _COMPARED[compared.op](value, self.number(compared.bound))
        if compared.op in (">", ">="):
            return Findings(np.where(satisfied, _MET, self._if_complete(satisfied)), margin, time)
        return Findings(self._unless_failed(satisfied), margin, time)

    def _never_twice(self, event: Event, within: Floats) -> Findings:
        margin, time = np.full(self.count, math.inf), self.none.copy()
        for k, times in enumerate(self._event_times(event)):
            if len(times) > 1:
                gaps = np.diff(times)
                shortest = int(gaps.argmin())
                margin[k], time[k] = gaps[shortest] - within[k], times[shortest + 1]
        return Findings(self._unless_failed(margin >= -self._late), margin, time)

    def _count(self, event: Event, op: str, bound: Floats) -> Findings:
        at_most = op in ("<", "<=")
        times = self._event_times(event)
        counts = np.array([len(each) for each in times], dtype=np.float64)
        margin = bound - counts if at_most else counts - bound
        satisfied = _COMPARED[op](counts, bound)
        decided = ~satisfied if at_most else satisfied
        # number of the event that settles it
        deciding = np.maximum(np.floor(bound) if op in ("<=", ">") else np.ceil(bound) - 1, 0).astype(np.int64)
        time = self.none.copy()
        for k in np.flatnonzero(decided & (counts > deciding)).tolist():
            time[k] = times[k][deciding[k]]
        surely = np.where(satisfied, _MET, _VIOLATED)
        return Findings(np.where(decided, surely, self._if_complete(satisfied)), margin, time)

    def _unless_failed(self, satisfied: Booleans) -> Integers:
        """Return the verdicts of a claim on every time: a violation remains one."""
        return np.where(~satisfied, _VIOLATED, np.where(self.complete, _MET, _UNDECIDED))

    def _if_complete(self, satisfied: Booleans) -> Integers:
        return np.where(self.complete, np.where(satisfied, _MET, _VIOLATED), _UNDECIDED)

    @staticmethod
    def _sign(compared: QuantityComparison) -> float:
        return 1.0 if compared.op in (">", ">=") else -1.0

    def _satisfied(self, compared: QuantityComparison, margin: Floats, time: Floats) -> Booleans:
        """Return which runs satisfy a comparison with these margins; equal sides may differ by the error there."""
        satisfied: Booleans = margin > 0.0
        if compared.op in ("<", ">"):
            return satisfied
        satisfied |= margin == 0.0
        against = np.flatnonzero((margin < 0.0) & np.isfinite(margin) & ~np.isnan(time))
        if len(against) and self._numerics is not None:
            satisfied[against] = -margin[against] <= self._errors(compared.quantity, self._numerics, against, time)
        return satisfied

    @cached_property
    def _numerics(self) -> Numerics | None:
        """Tolerances and units of the runs; None if the model is not known."""
        model = self.model
        if model.numerics is None and model.automaton is not None:
            return numerics_of(model.automaton, model.values)
        return model.numerics

    @property
    def _late(self) -> float:
        """Time within which events count as simultaneous, s."""
        return 0.0 if self._numerics is None else self._numerics.tolerances.coincidence or 0.0

    def _errors(self, quantity: MeasuredQuantity, numerics: Numerics, runs: Integers, time: Floats) -> Floats:
        """Return the error of a quantity in some runs at their deciding times, shape (len(runs),), SI."""
        model = self.model
        if quantity.name in model.layout.memory or quantity.is_wear:
            return np.zeros(len(runs))
        bounds = zip(self.rows.begin[runs], self.last_rows[runs], time[runs], strict=True)
        t = self.rows.t
        rows = np.array([a + np.searchsorted(t[a : b + 1], at, side="right") - 1 for a, b, at in bounds])
        sizes = state_errors(numerics, self.rows.x[rows], len(model.layout.q))
        if self.runs.time_stepping:
            places = sizes[:, : len(model.layout.q)]
            np.maximum(places, self._errors_of_time_stepping(rows), out=places)
        number = self._state_number(quantity)
        if number is not None:
            found: Floats = sizes[:, number]
            return found
        error = derived_errors(self.samples.at, rows, sizes, lambda samples: self.column(samples, quantity))
        if quantity.part:
            largest = np.maximum.reduceat(np.abs(self.at_rows(quantity)), self.rows.begin[:-1])
            error += (numerics.tolerances.multiplier or 0.0) * largest[runs]
        return error

    def _errors_of_time_stepping(self, rows: Integers) -> Floats:
        """Return the errors of coordinates at rows, shape (len(rows), n_q), SI.

        A step moves them by the mean of the rates at both ends, wherever in it the rates change.
        """
        t, q_dot = self.rows.t, self.rows.x_dot[:, : len(self.model.layout.q)]
        found = np.zeros((len(rows), q_dot.shape[1]))
        for at, row in enumerate(rows.tolist()):
            near = slice(max(row - 1, 0), row + 3)
            found[at] = 0.5 * np.diff(t[near]).max(initial=0.0) * np.ptp(q_dot[near], axis=0)
        return found

    def _applies(self, during: Sequence[State]) -> Booleans:
        applies = np.ones(len(self.steps), dtype=np.bool_)
        for state in during:
            applies &= self.in_state(state)
        return applies

    def in_state(self, condition: State) -> Booleans:
        """Return in which steps a condition on phases, modes or contact states is true, shape (steps,)."""
        modes = {pattern.name for pattern in self.model.patterns}
        if isinstance(condition, PhaseCondition) or not (condition.state or condition.name in modes):
            assert self._phase is not None
            in_phase: Booleans = self._phase[self.steps.first] == phase_named(self.model.phases, condition.name)
            return ~in_phase if condition.negated else in_phase
        if condition.state:
            numbers = self._contacts(condition.name)
            code = self.model.contacts[numbers[0]].states.index(condition.state)
            quantifier = all if code == FREE else any  # of the pairs of one entry
            true = [quantifier(chart.states[k] == code for k in numbers) for chart in self.model.charts]
        else:
            pattern = next(item for item in self.model.patterns if item.name == condition.name)
            true = [pattern.fits(chart.states) for chart in self.model.charts]
        in_state: Booleans = np.array(true, dtype=np.bool_)[self.rows.mode[self.steps.first]]
        return ~in_state if condition.negated else in_state

    def _contacts(self, name: str) -> list[int]:
        """Return the numbers of a contact, or of the feature pairs of an entry."""
        members = self.model.contact_entries.get(name, (name,))
        return [number for number, contact in enumerate(self.model.contacts) if contact.name in members]

    def _least_margin(self, compared: QuantityComparison, steps: Steps) -> tuple[Floats, Floats]:
        """Return the least of a comparison's margins over steps of each run, and its time."""
        value, time = self._largest(compared.quantity, -self._sign(compared), steps, np.full(self.count, math.inf))
        return -value - self._sign(compared) * self.number(compared.bound), time

    def _greatest_margin(self, compared: QuantityComparison, steps: Steps, end: Floats) -> tuple[Floats, Floats]:
        sign = self._sign(compared)
        value, time = self._largest(compared.quantity, sign, steps, end)
        return value - sign * self.number(compared.bound), time

    def _largest(self, quantity: MeasuredQuantity, sign: float, steps: Steps, end: Floats) -> tuple[Floats, Floats]:
        number, within = self._state_number(quantity), self.within(quantity)

        def between(times: Floats, first: Integers) -> Floats:
            return sign * within(times, first)

        bound = None if number is None else self._bound(number, sign, quantity.magnitude)
        return largest_of_runs(self.rows.t, sign * self.at_rows(quantity), steps, end, between, bound)

    def within(self, quantity: MeasuredQuantity) -> Callable[[Floats, Integers], Floats]:
        """Return the function of a quantity at times (m,) within the steps from the rows (m,)."""
        number = self._state_number(quantity)

        def between(times: Floats, first: Integers) -> Floats:
            if number is None:
                return self.column(self.samples.between(times, first), quantity)
            known, column = self.rows, slice(number, number + 1)
            values = state_within(known.t, known.x, known.x_dot, known.x_mid, times, first, column)[0][:, 0]
            return np.abs(values) if quantity.magnitude else values

        return between

    def number(self, text: Text) -> Floats:
        """Return a constant expression in each run, SI."""
        return self.runs.number(text)

    def _state_number(self, quantity: MeasuredQuantity) -> int | None:
        """Return the column of a coordinate or speed in the states; None of other quantities."""
        names = (*self.model.layout.q, *self.model.layout.u)
        other = quantity.part or quantity.name in self.model.outputs or quantity.name not in names
        return None if other else names.index(quantity.name)

    def _bound(self, number: int, sign: float, magnitude: bool) -> Floats:
        """Return an upper bound, after each row, of a coordinate or speed, or its magnitude, times a sign."""
        runs = self.rows
        bounds = np.empty((2, len(runs.t)))
        with np.errstate(invalid="ignore", over="ignore"):  # from row to row, also without a step between
            for begin in range(0, len(runs.t) - 1, _BLOCK):
                rows = slice(begin, begin + _BLOCK + 1)
                t = runs.t[rows]
                x, rate, middle = (part[rows, number].copy() for part in (runs.x, runs.x_dot, runs.x_mid))
                steps = quartic_bounds(t[1:] - t[:-1], x[:-1], rate[:-1], middle[1:], x[1:], rate[1:])
                bounds[:, begin : begin + len(t) - 1] = steps
        bounds[:, self.last_rows] = runs.x[self.last_rows, number]
        lower, upper = bounds
        if magnitude:
            lower, upper = np.maximum(np.maximum(lower, -upper), 0.0), np.maximum(-lower, upper)
        return upper if sign > 0.0 else -lower

    @cached_property
    def _rows(self) -> Samples:
        return self.samples.all

    def at_rows(self, quantity: MeasuredQuantity) -> Floats:
        """Return a quantity at all rows, shape (n,)."""
        number = self._state_number(quantity)
        if number is None:
            return self.column(self._rows, quantity)
        return np.abs(self.rows.x[:, number]) if quantity.magnitude else self.rows.x[:, number]

    def column(self, samples: Samples, quantity: MeasuredQuantity) -> Floats:
        """Return a quantity at samples, shape (n,): a friction force in space by its magnitude.

        The forces of an entry are those of all its feature pairs together.
        """
        if not quantity.part:
            column = samples.outputs[quantity.name] if quantity.name in self.model.outputs else samples[quantity.name]
        else:
            column = np.zeros(len(samples))
            for number in self._contacts(quantity.name):
                contact = self.model.contacts[number]
                rows = (contact.normal_row,) if quantity.part == "normal" else contact.tangent_rows
                forces = samples.multiplier_table[:, list(rows)]
                column = column + (forces[:, 0] if len(rows) == 1 else np.linalg.norm(forces, axis=1))
        return np.abs(column) if quantity.magnitude else column


def judge(run: Run, chains: bool = True) -> dict[str, Judgement]:
    """Return the model's requirements, judged over a run, by name.

    ``chains``: whether judgements have the chains of transitions.
    """
    judging = Judge(run)
    return {item.name: _judgement(item, judging.judge(item), run, chains) for item in run.model.requirements}


def _judgement(requirement: Requirement, found: Findings, run: Run, chains: bool) -> Judgement:
    """Return the judgement of the only run."""
    verdict, margin, time = VERDICTS[found.verdicts[0]], float(found.margins[0]), float(found.times[0])
    decided = not math.isnan(time)
    chain = tuple(item for item in run.record.transitions if item.time <= time) if decided and chains else ()
    unit = run.model.requirement_units[requirement.name]
    return Judgement(
        requirement.name, requirement.formula, verdict, margin, unit, time if decided else None, chain
    )  # fmt: skip
