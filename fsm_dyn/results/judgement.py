"""Requirements judged over a run: verdict, signed margin and deciding time (docs/language.md, "requirements")."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from fsm_dyn.expressions import Text
from fsm_dyn.results.arrays import BoolArray, FloatArray, IntArray
from fsm_dyn.results.contact_events import event_times
from fsm_dyn.results.dense import quartic_bounds
from fsm_dyn.results.extremes import largest
from fsm_dyn.results.record import RunModel, RunRecord
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.transitions import Transition
from fsm_dyn.simulation.outcomes import DONE, STOPPED
from fsm_dyn.spec.requirement import (
    Always,
    ContactEvent,
    Count,
    Eventually,
    Extreme,
    MeasuredQuantity,
    NeverTwice,
    QuantityComparison,
    Requirement,
    StateCondition,
)
from fsm_dyn.spec.values import evaluate

Verdict = Literal["met", "violated", "undecided"]
SampleBetween = Callable[[FloatArray, IntArray], Samples]
StateBetween = Callable[[FloatArray, IntArray, int], FloatArray]
_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


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
        requirement that of the run so far.  Infinite where nothing came near, nan where there is none.
    unit : str
        Of the margin: that of the quantity, ``"s"`` for times and modes, ``"1"`` for counts.
    time : float or None
        The time that decides, s; None where no single one does.
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
class _Finding:
    """What a claim comes to, without the requirement's name."""

    verdict: Verdict
    margin: float
    time: float | None
    unit: str = "s"


class Judge:
    """Judges requirements over one run.

    Parameters
    ----------
    rows : Samples
        The recorded rows.
    record : RunRecord
    between : callable
        Samples the run at times (m,) within the steps that begin at the rows (m,).
    state_between : callable
        The same of one coordinate or speed alone, by its number.
    chains : bool
        Whether judgements have the chains of transitions.
    """

    def __init__(
        self, rows: Samples, record: RunRecord, between: SampleBetween, state_between: StateBetween, chains: bool = True
    ) -> None:
        self.model: RunModel = rows.model
        self.rows, self.record, self.chains = rows, record, chains
        self.between, self.state_between = between, state_between
        self.end = float(record.t[-1])
        self.complete = record.outcome.code in (DONE, STOPPED)
        # rows that begin a step, and the last row: its mode may begin there
        self.first = np.append(np.flatnonzero(record.t[1:] > record.t[:-1]), len(record.t) - 1)
        self.durations = np.append(record.t[self.first[:-1] + 1] - record.t[self.first[:-1]], 0.0)

    def judge(self, requirement: Requirement) -> Judgement:
        """Return the requirement with its verdict."""
        match requirement.claim:
            case Always(condition=QuantityComparison() as compared, during=during):
                found = self._always(compared, during)
            case Always(condition=StateCondition() as state, during=during):
                found = self._always_in_state(state, during)
            case Eventually(condition=QuantityComparison() as compared, before=before):
                found = self._eventually(compared, before)
            case Eventually(condition=StateCondition() | ContactEvent() as condition, before=before):
                found = self._reached(condition, before)
            case Extreme(function=function, comparison=compared):
                found = self._extreme(function, compared)
            case NeverTwice(event=event, within=within):
                found = self._never_twice(event, self._number(within))
            case Count(event=event, op=op, bound=bound):
                found = self._count(event, op, self._number(bound))
        time = found.time
        chain = (
            ()
            if time is None or not self.chains
            else tuple(item for item in self.record.transitions if item.time <= time)
        )
        unit = self.model.requirement_units.get(requirement.name, "1") if not found.unit else found.unit
        return Judgement(requirement.name, requirement.formula, found.verdict, found.margin, unit, time, chain)

    def _always(self, compared: QuantityComparison, during: Sequence[StateCondition]) -> _Finding:
        steps = self._steps(during)
        if not len(steps):
            return _Finding(self._unless_failed(True), math.inf, None, "")
        margin, time = self._least_margin(compared, steps)
        return _Finding(self._unless_failed(self._satisfied(compared, margin)), margin, time, "")

    def _always_in_state(self, state: StateCondition, during: Sequence[StateCondition]) -> _Finding:
        applies = np.isin(self.first, self._steps(during))
        violated = applies & ~self._in_state(state)
        counted = applies & (self.durations > 0.0)
        if (violated & counted).any():
            margin = -float(self.durations[violated].sum())
            return _Finding("violated", margin, float(self.record.t[self.first[violated & counted][0]]))
        return _Finding(self._unless_failed(True), float(self.durations[applies].sum()), None)

    def _eventually(self, compared: QuantityComparison, before: Text | None) -> _Finding:
        deadline = math.inf if before is None else self._number(before)
        steps = self.first[self.record.t[self.first] <= deadline]
        if not len(steps):
            return _Finding("violated", -math.inf, None, "")
        margin, time = self._greatest_margin(compared, steps, deadline)
        if self._satisfied(compared, margin):
            return _Finding("met", margin, time, "")
        return _Finding("violated" if self.end >= deadline else "undecided", margin, time, "")

    def _reached(self, condition: StateCondition | ContactEvent, before: Text | None) -> _Finding:
        if isinstance(condition, ContactEvent):
            times = self._event_times(condition)
        else:
            times = self.record.t[self.first[self._in_state(condition)]]
        deadline = self.end if before is None else self._number(before)
        if len(times):
            margin = deadline - float(times[0])
            return _Finding("met" if margin >= 0.0 else "violated", margin, float(times[0]))
        if before is None or self.end < deadline:
            return _Finding("undecided", math.nan, None)
        return _Finding("violated", deadline - self.end, None)

    def _extreme(self, function: str, compared: QuantityComparison) -> _Finding:
        if function == "final":
            value = float(self._column(self.rows, compared.quantity)[-1])
            margin = self._sign(compared) * (value - self._number(compared.bound))
            return _Finding(self._if_complete(self._satisfied(compared, margin)), margin, self.end, "")
        above = compared.op in (">", ">=")
        if above == (function == "trough"):  # of every value
            return self._always(compared, ())
        margin, time = self._greatest_margin(compared, self.first, math.inf)
        met = self._satisfied(compared, margin)
        return _Finding("met" if met else self._if_complete(False), margin, time, "")

    def _never_twice(self, event: ContactEvent, within: float) -> _Finding:
        times = self._event_times(event)
        if len(times) < 2:
            return _Finding(self._unless_failed(True), math.inf, None)
        gaps = np.diff(times)
        shortest = int(gaps.argmin())
        margin = float(gaps[shortest]) - within
        return _Finding(self._unless_failed(margin >= 0.0), margin, float(times[shortest + 1]))

    def _count(self, event: ContactEvent, op: str, bound: float) -> _Finding:
        times = self._event_times(event)
        at_most = op in ("<", "<=")
        margin = bound - len(times) if at_most else len(times) - bound
        satisfied = _COMPARED[op](len(times), bound)
        decided = not satisfied if at_most else satisfied
        deciding = math.floor(bound) if op in ("<=", ">") else math.ceil(bound) - 1  # the event that settles it
        time = float(times[max(deciding, 0)]) if decided and len(times) > max(deciding, 0) else None
        verdict: Verdict = ("met" if satisfied else "violated") if decided else self._if_complete(satisfied)
        return _Finding(verdict, margin, time, "1")

    def _unless_failed(self, satisfied: bool) -> Verdict:
        """Return the verdict of a claim on every time: a violation remains one."""
        return "violated" if not satisfied else "met" if self.complete else "undecided"

    def _if_complete(self, satisfied: bool) -> Verdict:
        if not self.complete:
            return "undecided"
        return "met" if satisfied else "violated"

    def _number(self, text: Text) -> float:
        return evaluate(text, self.model.values)

    @staticmethod
    def _sign(compared: QuantityComparison) -> float:
        return 1.0 if compared.op in (">", ">=") else -1.0

    @staticmethod
    def _satisfied(compared: QuantityComparison, margin: float) -> bool:
        return margin > 0.0 or (margin == 0.0 and compared.op in ("<=", ">="))

    def _event_times(self, event: ContactEvent) -> FloatArray:
        contacts = self.model.contact_entries.get(event.contact, (event.contact,))
        return event_times(self.model, self.record.transitions, contacts, event.word)

    def _steps(self, during: Sequence[StateCondition]) -> IntArray:
        applies = np.ones(len(self.first), dtype=np.bool_)
        for state in during:
            applies &= self._in_state(state)
        return self.first[applies]

    def _in_state(self, condition: StateCondition) -> BoolArray:
        """Return in which steps a condition on modes or contact states is true, shape (steps,)."""
        if condition.state:
            names = [contact.name for contact in self.model.contacts]
            contact = names.index(condition.name)
            code = self.model.contacts[contact].states.index(condition.state)
            true = [chart.states[contact] == code for chart in self.model.charts]
        else:
            pattern = next(item for item in self.model.patterns if item.name == condition.name)
            true = [pattern.fits(chart.states) for chart in self.model.charts]
        in_state: BoolArray = np.array(true, dtype=np.bool_)[self.record.mode[self.first]]
        return ~in_state if condition.negated else in_state

    def _least_margin(self, compared: QuantityComparison, steps: IntArray) -> tuple[float, float]:
        """Return the least of a comparison's margins over steps, and its time."""
        value, time = self._largest(compared.quantity, -self._sign(compared), steps, math.inf)
        return -value - self._sign(compared) * self._number(compared.bound), time

    def _greatest_margin(self, compared: QuantityComparison, steps: IntArray, end: float) -> tuple[float, float]:
        sign = self._sign(compared)
        value, time = self._largest(compared.quantity, sign, steps, end)
        return value - sign * self._number(compared.bound), time

    def _largest(self, quantity: MeasuredQuantity, sign: float, steps: IntArray, end: float) -> tuple[float, float]:
        names = (*self.model.layout.q, *self.model.layout.u)
        number = names.index(quantity.name) if quantity.name in names and not quantity.part else None
        if quantity.name in self.model.outputs:
            number = None

        def between(times: FloatArray, first: IntArray) -> FloatArray:
            if number is None:
                return sign * self._column(self.between(times, first), quantity)
            values = self.state_between(times, first, number)
            return sign * (np.abs(values) if quantity.magnitude else values)

        bound = None if number is None else self._bound(number, sign, quantity.magnitude, steps)
        return largest(self.record.t, sign * self._column(self.rows, quantity), steps, end, between, bound)

    def _bound(self, number: int, sign: float, magnitude: bool, steps: IntArray) -> FloatArray:
        """Return what a coordinate or speed, or its magnitude, times a sign does not exceed in steps, shape (n,)."""
        record = self.record
        last = np.minimum(steps + 1, len(record.t) - 1)
        h = record.t[last] - record.t[steps]
        x, rate = record.x[:, number], record.x_dot[:, number]
        middle = np.where(h > 0.0, record.x_mid[last, number], x[steps])
        lower, upper = quartic_bounds(h, x[steps], rate[steps], middle, x[last], rate[last])
        if magnitude:
            lower, upper = np.maximum(np.maximum(lower, -upper), 0.0), np.maximum(-lower, upper)
        return upper if sign > 0.0 else -lower

    def _column(self, samples: Samples, quantity: MeasuredQuantity) -> FloatArray:
        """Return a quantity at samples, shape (n,): a friction force in space by its magnitude."""
        if not quantity.part:
            column = samples.outputs[quantity.name] if quantity.name in self.model.outputs else samples[quantity.name]
        else:
            contact = next(item for item in self.model.contacts if item.name == quantity.name)
            rows = (contact.normal_row,) if quantity.part == "normal" else contact.tangent_rows
            forces = samples.multiplier_table[:, list(rows)]
            column = forces[:, 0] if len(rows) == 1 else np.linalg.norm(forces, axis=1)
        return np.abs(column) if quantity.magnitude else column


def judge(
    rows: Samples, record: RunRecord, between: SampleBetween, state_between: StateBetween, chains: bool = True
) -> dict[str, Judgement]:
    """Return the model's requirements, judged over a run, by name.

    Parameters
    ----------
    rows : Samples
        The recorded rows.
    record : RunRecord
        The run as recorded.
    between, state_between : callable
        Sample the run within steps, and one coordinate or speed alone; as of :class:`Judge`.
    chains : bool
        Whether judgements have the chains of transitions.

    Returns
    -------
    dict of str to Judgement
    """
    judging = Judge(rows, record, between, state_between, chains)
    return {requirement.name: judging.judge(requirement) for requirement in rows.model.requirements}
