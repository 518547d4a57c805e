"""What many runs of a graph share, worked out once, and what each of them does not share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn.analysis.study_variables import INITIAL
from fsm_dyn.automaton.initial_state import InitialState, deduced_from, find_free_starts, is_free
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.errors import FsmDynError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.run_inputs import input_parameters, scenario_schedules
from fsm_dyn.simulation.integrators import METHODS
from fsm_dyn.simulation.numerics import Numerics
from fsm_dyn.simulation.run_batch import SharedOptions, Starts
from fsm_dyn.simulation.tolerances import Tolerances
from fsm_dyn.simulator import Simulator, strategy_named
from fsm_dyn.simulator.run_setup import RunSetup
from fsm_dyn.spec.scales import ScalesOfCases
from fsm_dyn.spec.values import ParameterValue, evaluate, flat_parameters
from fsm_dyn.spec.varied_values import VariedValues

#: Options of ``Simulator.run`` with which runs can be made together.
SHARED: Final = frozenset(
    ("until", "scenario", "inputs", "initial", "method", "strategy", "tolerances", "rtol", "max_step", "max_steps")
)
_MOST_STEPS: Final = 10_000_000  # the default of ``Simulator.run``


@dataclass(frozen=True)
class PreparedRuns:
    """Runs that can be made together.

    Attributes
    ----------
    numbers : tuple of int
        Of their cases among those given; the others have to be run alone.
    values : tuple of mapping
        All parameters of each, SI.
    starts : Starts
    """

    numbers: tuple[int, ...]
    values: tuple[Mapping[str, ParameterValue], ...]
    starts: Starts


class RunPreparation:
    """Prepares runs that differ in scalar parameters and initial values, with the bits of ``Simulator.run``.

    Parameters
    ----------
    simulator : Simulator
    parameters : mapping
        Overrides that all runs share.
    options : mapping
        As for ``Simulator.run``.
    names : tuple of str
        What differs: parameters, and ``initial.NAME`` of coordinates and speeds.

    Attributes
    ----------
    together : bool
        Whether runs can be made together at all.
    """

    def __init__(
        self, simulator: Simulator, parameters: Mapping[str, Any], options: Mapping[str, Any], names: tuple[str, ...]
    ) -> None:
        self.simulator, self.names, self.parameters = simulator, names, parameters
        graph = simulator.graph
        self.automaton, self.mechanism = graph.automaton, graph.automaton.mechanism
        self.options = {name: value for name, value in options.items() if value is not None}
        self.initial: dict[str, Any] = dict(self.options.get("initial") or {})
        self.strategy = strategy_named(self.options.get("strategy", "auto"))
        starting = [name for name in names if name.startswith(INITIAL)]
        varied = [name for name in names if name not in starting]
        self._starting = {name: name.removeprefix(INITIAL) for name in starting}
        self.together = False
        if not set(self.options) <= SHARED or graph.geometry is not None or not self._explicit():
            return
        if not {*self._starting.values()} <= {*self.automaton.terms.layout.x} or any(
            name not in self.mechanism.parameters for name in varied
        ):
            return
        try:
            self.varied = VariedValues(self.mechanism, parameters, varied)
            inputs = self.options.get("inputs") or {}
            self.setup: RunSetup = simulator.setup(
                self.options.get("scenario"), inputs, parameters, self.initial, self.options.get("until")
            )
            self.numerics = self._numerics()
            self.shared = self._shared()
        except FsmDynError:
            return  # each case is refused by itself
        self.together = self._independent(inputs)
        self._scales = ScalesOfCases(self.automaton.numbers, self.setup.numbers, self.varied.affected)
        self._columns = [
            i for i, name in enumerate(flat_parameters(self.mechanism))
            if name.partition("[")[0] in self.varied.affected
        ]  # fmt: skip
        self._same_start = not starting and self._start_is_independent()
        self._free = is_free(self.automaton, self._mode)

    def of(self, cases: Sequence[Mapping[str, Any]]) -> PreparedRuns:
        """Return the runs of some cases that can be made together; none of a case is refused here."""
        values: list[dict[str, ParameterValue]] = []
        numbers: list[int] = []
        for number, case in enumerate(cases):
            if not self.together or not all(_is_number(case[name]) for name in self.names):
                continue
            own = {name: value for name, value in case.items() if name not in self._starting}
            try:
                values.append(self.varied.of(own))
                numbers.append(number)
            except FsmDynError:
                continue
        if values:
            same = self._scales.same(values)
            values = [item for item, stays in zip(values, same, strict=True) if stays]
            numbers = [item for item, stays in zip(numbers, same, strict=True) if stays]
        contexts = self._contexts(values)
        starts = self._starts([cases[number] for number in numbers], values, contexts)
        kept = [k for k, start in enumerate(starts) if start is not None]
        found = [start for start in starts if start is not None]
        together = Starts(
            np.array([start.x for start in found]).reshape(len(found), self.automaton.terms.layout.n_x),
            np.array([start.context for start in found]).reshape(len(found), self.automaton.terms.layout.n_c),
            [start.states for start in found],
        )
        return PreparedRuns(tuple(numbers[k] for k in kept), tuple(values[k] for k in kept), together)

    @property
    def _mode(self) -> str | None:
        given = self.initial.get("mode", self.mechanism.initial.mode)
        return None if given is None else str(given)

    def _explicit(self) -> bool:
        """Return whether the method is an explicit one with adaptive steps."""
        method = METHODS.get(self.options.get("method", "dopri5"))
        return method is not None and method.adaptive

    def _numerics(self) -> Numerics:
        given = self.options.get("tolerances") or Tolerances()
        wanted = given if isinstance(given, Tolerances) else Tolerances.of(given)
        if "rtol" in self.options:
            wanted = Tolerances(rtol=self.options["rtol"]).or_else(wanted)
        return self.simulator.numerics(self.setup.numbers, self.setup.vector, wanted.specified_entries())

    def _shared(self) -> SharedOptions:
        until = self.options.get("until")
        return SharedOptions(
            until=float(self.setup.end if until is None else until),
            method=self.options.get("method", "dopri5"),
            rtol=self.numerics.rtol,
            atol=self.numerics.atol,
            step=0.0,
            max_step=float(self.options.get("max_step", np.inf)),
            max_steps=int(self.options.get("max_steps", _MOST_STEPS)),
        )

    def _independent(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether inputs, tolerances and memory are those of all runs."""
        affected, mechanism = self.varied.affected, self.mechanism
        scenario = self.options.get("scenario")
        named = scenario_schedules(self.automaton, scenario) if scenario is not None else {}
        if any(not isinstance(value, str | float | int) for value in inputs.values()):
            return False
        needed = input_parameters(self.automaton, {**named, **inputs})
        if needed is None or needed & affected:
            return False
        if self.mechanism.initial.settle or self.initial.get("settle") or not self.shared.until >= 0.0:
            return False
        starts = [item.start for item in (q for c in mechanism.controllers.values() for q in c.quantities)]
        return not self.varied.concerns((mechanism.numerics, tuple(text for text in starts if text is not None)))

    def _start_is_independent(self) -> bool:
        """Return whether all runs begin in the same state."""
        initial, automaton = self.mechanism.initial, self.automaton
        texts = [str(value) for value in self.initial.values() if isinstance(value, str)]
        ranges = tuple(item.range for item in self.mechanism.coordinates.values() if item.range)
        if self.varied.concerns((initial.values, initial.guess, ranges)) or texts:
            return False
        used = automaton.terms.part(dict.fromkeys(deduced_from(automaton))).used_arguments()
        used |= automaton.system.configuration.used_arguments() | automaton.geometry.used_arguments()
        return not {name.partition("[")[0] for name in used} & self.varied.affected

    def _contexts(self, values: Sequence[Mapping[str, ParameterValue]]) -> Array:
        """Return the contexts at the start without slip directions, shape (n, n_c)."""
        contexts = np.tile(self.setup.start.context, (len(values), 1))
        for k, item in enumerate(values):
            contexts[k, self._columns] = parameter_vector({name: item[name] for name in self._affected})
        return contexts

    @property
    def _affected(self) -> list[str]:
        return [str(name) for name in self.mechanism.parameters if name in self.varied.affected]

    def _starts(
        self, cases: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, ParameterValue]], contexts: Array
    ) -> list[InitialState | None]:
        """Return where the runs begin; None of one that has to find that for itself."""
        base = self.setup.start
        if self._same_start:
            return [InitialState(base.x, base.states, context) for context in contexts]
        given = [self._given(case, item) for case, item in zip(cases, values, strict=True)]
        if not cases or not self._free or any(item.range for item in self.mechanism.coordinates.values()):
            return [None for _ in cases]
        try:
            return [*find_free_starts(self.automaton, given, self._mode, 0.0, contexts)]
        except FsmDynError:
            return [None for _ in cases]

    def _given(self, case: Mapping[str, Any], values: Mapping[str, ParameterValue]) -> dict[str, float]:
        """Return the initial values of a run by name, SI."""
        found = {name: evaluate(text, values) for name, text in self.mechanism.initial.values.items()}
        for name, value in self.initial.items():
            if name not in ("mode", "settle"):
                found[name] = evaluate(value, values) if isinstance(value, str) else float(value)
        return found | {state: case[name] for name, state in self._starting.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
