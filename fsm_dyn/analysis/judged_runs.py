"""Runs of a graph with their requirements judged, prepared once and made by one call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np

from fsm_dyn.analysis.study_variables import INITIAL, run_arguments
from fsm_dyn.automaton.initial_state import InitialState, deduced_from, find_free_starts, is_free
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.core.arrays import Booleans, Codes, Floats
from fsm_dyn.core.errors import EnergyWarning, FsmDynError, InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.check_references import comparisons
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression, names_in
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.requirement import ContactEvent
from fsm_dyn.language.scales import ScalesOfCases
from fsm_dyn.language.values import VariedValues, flat_parameters
from fsm_dyn.run.encounters import event_mask
from fsm_dyn.run.energy import rows_verdicts
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.extremes import extremes_of_runs, locate
from fsm_dyn.run.input_signals import input_parameters, scenario_schedules
from fsm_dyn.run.integrators import METHODS
from fsm_dyn.run.judgement import VERDICTS, Judge, Verdict
from fsm_dyn.run.loop_state import TransitionArrays, read_transitions
from fsm_dyn.run.outcomes import COMPLETE, OUTCOMES
from fsm_dyn.run.record import RunModel, modes_visited, run_model
from fsm_dyn.run.run import NeedsItself, RecordedRuns, Runs, Starts, run_batch
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.run_setup import RunSetup
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import guard_name
from fsm_dyn.runtime.abi import RecordColumn, RowsVerdict, Sizes

# -- Preparation of many runs of a graph ---------------------------------------------------------------------

#: Options of runs that share one call.
SHARED: Final = frozenset(
    ("until", "scenario", "inputs", "initial", "method", "strategy", "tolerances", "rtol", "max_step", "max_steps")
)


@dataclass(frozen=True)
class PreparedRuns:
    """Runs that share one call."""

    numbers: tuple[int, ...]  # of their cases among those given; the others have to be run alone
    values: tuple[Mapping[str, ParameterValue], ...]  # all parameters of each, SI
    starts: Starts


class RunPreparation:
    """Prepares runs with different scalar parameters and initial values, bit for bit as ``Simulator.run``.

    ``parameters``: overrides of all runs; ``options``: as for ``Simulator.run``; ``names``: varied quantities:
    parameters, and ``initial.NAME`` of coordinates and speeds. ``together``: whether runs can be made together at all.
    """

    def __init__(
        self, simulator: Simulator, parameters: Mapping[str, Any], options: Mapping[str, Any], names: tuple[str, ...]
    ) -> None:
        self.simulator, self.names, self.parameters = simulator, names, parameters
        graph = simulator.graph
        self.automaton, self.mechanism = graph.automaton, graph.automaton.mechanism
        given = {name: value for name, value in options.items() if value is not None}
        self.options = RunOptions(**given, parameters=parameters)
        self.initial: dict[str, Any] = dict(self.options.initial or {})
        starting = [name for name in names if name.startswith(INITIAL)]
        varied = [name for name in names if name not in starting]
        self._starting = {name: name.removeprefix(INITIAL) for name in starting}
        self.together = False
        if not set(given) <= SHARED or graph.geometry is not None or not self._explicit():
            return
        if not {*self._starting.values()} <= {*self.automaton.terms.layout.x} or any(
            name not in self.mechanism.parameters for name in varied
        ):
            return
        try:
            self.varied = VariedValues(self.mechanism, parameters, varied)
            self.setup: RunSetup = simulator.setup(self.options)
            self.numerics = simulator.numerics(self.setup.numbers, self.setup.vector, self.options.specified)
            end = self.setup.end if self.options.until is None else self.options.until
            self.shared = replace(self.options.resolved(self.numerics), until=float(end))
        except FsmDynError:
            return  # each case is refused individually
        self.together = self._independent(self.options.inputs or {}, float(end))
        self._scales = ScalesOfCases(self.automaton.numbers, self.setup.numbers, self.varied.affected)
        self._columns = [
            i for i, name in enumerate(flat_parameters(self.mechanism))
            if name.partition("[")[0] in self.varied.affected
        ]  # fmt: skip
        self._same_start = not starting and self._start_is_independent()
        self._free = is_free(self.automaton, self._mode)

    def of(self, cases: Sequence[Mapping[str, Any]]) -> PreparedRuns:
        """Return the runs of the cases that share one call; no case is refused here."""
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
        method = METHODS.get(self.options.method)
        return method is not None and method.adaptive

    def _independent(self, inputs: Mapping[str, Any], end: float) -> bool:
        """Return whether inputs, tolerances and memory are those of all runs."""
        affected, mechanism = self.varied.affected, self.mechanism
        scenario = self.options.scenario
        named = scenario_schedules(self.automaton, scenario) if scenario is not None else {}
        if any(not isinstance(value, str | float | int) for value in inputs.values()):
            return False
        needed = input_parameters(self.automaton, {**named, **inputs})
        if needed is None or needed & affected:
            return False
        if self.mechanism.initial.settle or self.initial.get("settle") or not end >= 0.0:
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

    def _contexts(self, values: Sequence[Mapping[str, ParameterValue]]) -> Floats:
        """Return the contexts at the start without slip directions, shape (n, n_c)."""
        contexts = np.tile(self.setup.start.context, (len(values), 1))
        for k, item in enumerate(values):
            contexts[k, self._columns] = parameter_vector({name: item[name] for name in self._affected})
        return contexts

    @property
    def _affected(self) -> list[str]:
        return [str(name) for name in self.mechanism.parameters if name in self.varied.affected]

    def _starts(
        self, cases: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, ParameterValue]], contexts: Floats
    ) -> list[InitialState | None]:
        """Return the starts of the runs; None for starts to be solved individually."""
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
        found = {name: evaluate_expression(text, values) for name, text in self.mechanism.initial.values.items()}
        for name, value in self.initial.items():
            if name not in ("mode", "settle"):
                found[name] = evaluate_expression(value, values) if isinstance(value, str) else float(value)
        return found | {state: case[name] for name, state in self._starting.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


# -- Runs of a graph with their requirements judged ----------------------------------------------------------
#
# One call of the runtime makes the runs, and their requirements are judged together.

Result = TypeVar("Result")

MOST_ALONE = 4  # runs of a batch in need of further charts; beyond it the rest is made one by one
FEWEST = 4  # least number of runs for a common call


@dataclass(frozen=True)
class JudgedRun:
    """One run of a study: its outcome, visited modes, verdicts, and values of outputs."""

    outcome: str  # ``"failed: ..."`` if it did not start
    end: float  # when, s
    modes: tuple[str, ...]  # those visited, in their order
    transitions: int
    # verdicts, margins: by requirement
    verdicts: Mapping[str, Verdict]
    margins: Mapping[str, float]
    # minimum, maximum and final value of each, SI, between the rows of the run too
    outputs: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    # values of each over the times of the study as floats of 8 bytes, nan after the end
    curves: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    has_open_energy: bool = False  # whether its energy balance does not close


def judged_runs(
    simulator: Simulator, options: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]
) -> list[JudgedRun]:
    """Return some runs of a study, judged; each has the same bits as alone.

    ``options``: ``requirements`` and ``outputs``, names; ``times`` of curves, s; ``run``, arguments of
    ``Simulator.run`` for all runs. ``cases``: varied values by their names in a study, the same names in all.
    """
    found: list[JudgedRun | None] = [None] * len(cases)
    read = options["requirements"], options["outputs"], options["times"]
    for number, run in runs_together(simulator, options, cases, lambda recorded: recorded.judged(*read)):
        found[number] = run
    return [
        judged_alone(simulator, options, case) if run is None else run for run, case in zip(found, cases, strict=True)
    ]


def runs_together(
    simulator: Simulator,
    options: Mapping[str, Any],
    cases: Sequence[Mapping[str, Any]],
    read: Callable[[RunsTogether], Iterable[Result]],
) -> list[tuple[int, Result]]:
    """Run the cases of a study that share one call; return pairs of case number and result.

    ``options``: options of the study; the common part of its runs is prepared once for this object. ``cases``: varied
    values by their names in a study, the same names in all. ``read``: gives a result for each of some runs recorded
    together.
    """
    if len(cases) < FEWEST:
        return []
    names = tuple(cases[0])
    run = {name: value for name, value in options["run"].items() if name != "parameters"}

    def made() -> tuple[RunPreparation, Mapping[str, Any]]:
        return RunPreparation(simulator, options["run"].get("parameters") or {}, run, names), options

    preparation, prepared_for = simulator.remember(("preparation", id(options), names), made)
    if not preparation.together or prepared_for is not options:
        return []
    return _made_together(preparation, cases, read)


def judged_alone(simulator: Simulator, options: Mapping[str, Any], case: Mapping[str, Any]) -> JudgedRun:
    """Run and judge one case; a failed start returns only its error."""
    requirements: Sequence[str] = options["requirements"]
    outputs: Sequence[str] = options["outputs"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EnergyWarning)  # the study counts them
            run = simulator.run(**run_arguments(simulator.graph, options["run"], case), on_failure="return")
    except (InputError, RunError) as error:
        return JudgedRun(
            f"failed: {str(error).splitlines()[0]}", 0.0, (), 0, dict.fromkeys(requirements, "undecided"),
            dict.fromkeys(requirements, np.nan), dict.fromkeys(outputs, (np.nan, np.nan, np.nan)),
        )  # fmt: skip
    judged = run.judge(chains=False) if requirements else {}
    extremes = {name: run.extremes(name) for name in outputs}
    return JudgedRun(
        run.outcome.name, float(run.t[-1]), run.record.mode_sequence(run.model.modes), len(run.transitions),
        {name: judged[name].verdict for name in requirements},
        {name: judged[name].margin for name in requirements},
        {name: (found.minimum, found.maximum, float(run[name][-1])) for name, found in extremes.items()},
        _curves_of(run, outputs, options["times"]), bool(run.warnings),
    )  # fmt: skip


def _curves_of(run: Trajectory, outputs: Sequence[str], times: Floats) -> dict[str, bytes]:
    """Return outputs of a run over ``times``, nan after its end."""
    within = times <= run.t[-1]
    if not within.any():
        return {}
    samples = run.sample(times[within])
    curves = {name: np.full(len(times), np.nan) for name in outputs}
    for name, curve in curves.items():
        curve[within] = samples[name]
    return {name: curve.tobytes() for name, curve in curves.items()}


def _made_together(
    preparation: RunPreparation,
    cases: Sequence[Mapping[str, Any]],
    read: Callable[[RunsTogether], Iterable[Result]],
) -> list[tuple[int, Result]]:
    """Run the cases that share one call; return pairs of case number and result."""
    prepared = preparation.of(cases)
    if not prepared.numbers:
        return []
    simulator, strategy = preparation.simulator, preparation.options.evaluation
    executable = simulator.take(strategy)
    found: list[tuple[int, Result]] = []
    alone = 0
    try:
        executable.use(preparation.numerics)
        batch = run_batch(
            executable, prepared.starts, preparation.setup.drive, preparation.shared, simulator.workspace
        )  # fmt: skip
        for part in batch:
            if isinstance(part, NeedsItself):
                alone += 1
                if alone == MOST_ALONE:
                    break
                continue
            results = read(RunsTogether(preparation, prepared, executable, part))
            found += zip((prepared.numbers[k] for k in part.numbers), results, strict=True)
    finally:
        simulator.give_back(executable, strategy)
    return found


class RunsTogether(Runs):
    """Runs as they were recorded together, for judging and for the rows of a study."""

    def __init__(
        self, preparation: RunPreparation, prepared: PreparedRuns, executable: Executable, runs: RecordedRuns
    ) -> None:
        model, setup = _model_of(preparation, executable), preparation.setup
        vectors = prepared.starts.c[runs.numbers.start : runs.numbers.stop, model.layout.p_slice]
        super().__init__(model, runs, lambda times: setup.drive(times, setup.start.context), vectors)
        self.preparation, self.executable, self.runs = preparation, executable, runs
        self.automaton = executable.automaton
        self.values = prepared.values[runs.numbers.start : runs.numbers.stop]

    def judged(self, requirements: Sequence[str], outputs: Sequence[str], times: Floats) -> list[JudgedRun | None]:
        """Return each run, judged, with extremes of outputs and their curves over ``times``.

        None for runs with a possibly open energy balance, and for all if one passed a change point: to be decided by
        a run alone.
        """
        runs, model = self.runs, self.model
        if runs.passed or model.potential_jumps:
            return [None] * len(runs.numbers)
        alone = (rows_verdicts(runs, len(model.layout.q), fixed_steps=False) != RowsVerdict.EXPLAINED).tolist()
        judge = Judge(self)
        known = {item.name: item for item in model.requirements}
        compared = [found.quantity for name in requirements for found in comparisons(known[name])]
        if any(quantity.is_impulse or quantity.is_wear for quantity in compared):
            return [None] * len(alone)  # they are found run by run
        found = {name: judge.judge(known[name]) for name in requirements}
        verdicts = {name: [VERDICTS[k] for k in item.verdicts.tolist()] for name, item in found.items()}
        margins = {name: item.margins.tolist() for name, item in found.items()}
        extremes = {name: self._extremes(name) for name in outputs}
        curves = self._curves(outputs, times)
        first = runs.mode[runs.begin[:-1]].tolist()
        ends = runs.t[runs.begin[1:] - 1].tolist()
        targets = runs.records[:, RecordColumn.TARGET].astype(np.int64).tolist()
        begin = runs.first_transition.tolist()
        return [
            None
            if alone[k]
            else JudgedRun(
                OUTCOMES[status].name,
                ends[k],
                modes_visited([model.modes[i] for i in (first[k], *targets[begin[k] : begin[k + 1]])]),
                begin[k + 1] - begin[k],
                {name: verdicts[name][k] for name in requirements},
                {name: margins[name][k] for name in requirements},
                {name: extremes[name][k] for name in outputs},
                curves[k],
            )
            for k, status in enumerate(runs.statuses.tolist())
        ]

    def _curves(self, outputs: Sequence[str], times: Floats) -> list[dict[str, bytes]]:
        """Return outputs of each run over ``times``, nan after its end."""
        bounds, t = list(pairwise(self.runs.begin.tolist())), self.runs.t
        within = [times <= t[end - 1] for _, end in bounds]
        chosen = np.concatenate([times[part] for part in within])
        found: list[dict[str, bytes]] = [{} for _ in bounds]
        if not len(chosen):
            return found
        first = [a + locate(t[a:b], times[part])[0] for (a, b), part in zip(bounds, within, strict=True)]
        samples = self.between(chosen, np.concatenate(first))
        for name in outputs:
            column, begin = samples[name], 0
            for curves, part in zip(found, within, strict=True):
                curve = np.full(len(times), np.nan)
                curve[part] = column[begin : begin + int(part.sum())]
                curves[name] = curve.tobytes()
                begin += int(part.sum())
        return found

    def _extremes(self, name: str) -> list[tuple[float, float, float]]:
        """Return least, greatest and final value of a quantity in each run."""
        states = self.model.layout.x
        column = self.runs.x[:, states.index(name)] if name in states else self.all[name]
        begin = self.runs.begin
        minimum, maximum, *_ = extremes_of_runs(
            self.runs.t, column, begin, lambda times, first: self.between(times, first)[name]
        )
        parts = minimum, maximum, column[begin[1:] - 1]
        return list(zip(*(part.tolist() for part in parts), strict=True))

    @property
    def complete(self) -> Booleans:
        """Flags of the runs that reached their end, shape (runs,)."""
        return np.asarray((self.runs.statuses[:, None] == COMPLETE).any(axis=1))

    def number(self, text: Text) -> Floats:
        """Return an expression of parameters in each run, shape (runs,), SI."""
        if self.preparation.varied.affected & names_in(text.text):
            return np.array([evaluate_expression(text, values) for values in self.values])
        return np.full(len(self.values), evaluate_expression(text, self.preparation.setup.numbers))

    def event_times(self, event: ContactEvent) -> list[Floats]:
        """Return the times of an event of a contact in each run, s."""
        automaton, found = self.automaton, self._transitions
        states = self.executable.tables.mode_states
        chosen = self.model.contact_entries.get(event.contact, (event.contact,))
        owners = [row.name for row in automaton.rows]
        happens = event_mask(
            automaton.contacts, chosen, event.word, found, states, owners, partial(guard_name, automaton)
        )  # fmt: skip
        happens &= ~self._handovers(found, states)
        begin = self.runs.first_transition
        return [found.time[a:b][happens[a:b]] for a, b in pairwise(begin.tolist())]

    @property
    def _transitions(self) -> TransitionArrays:
        sizes = self.executable.tables.sizes
        return read_transitions(self.runs.records, int(sizes[Sizes.N_ROWS]), int(sizes[Sizes.N_U]))

    def _handovers(self, found: TransitionArrays, states: Codes) -> Booleans:
        """Return flags of the transitions that are handovers; only contacts between features of shapes have them."""
        handovers = np.zeros(len(found), dtype=np.bool_)
        mechanism = self.automaton.mechanism
        if not any(isinstance(contact, FeatureContact) for contact in mechanism.contacts.values()):
            return handovers
        run = np.searchsorted(self.runs.first_transition, np.arange(len(found)), side="right") - 1
        smooth = (found.source != found.target) & ~(found.impulse != 0.0).any(axis=1)
        labels: dict[int, Labels] = {}
        for k in np.flatnonzero(smooth):
            number = int(run[k])
            if number not in labels:
                labels[number] = self._labels(self.values[number])
            source, target = (labels[number].of(states[mode[k]]) for mode in (found.source, found.target))
            names = (self.model.modes[int(mode[k])] for mode in (found.source, found.target))
            handovers[k] = bool(source) and source == target and len({*names}) == 2
        return handovers

    def _labels(self, values: Mapping[str, ParameterValue]) -> Labels:
        return Labels(self.automaton.mechanism, self.automaton.contacts, self.automaton.patterns, values)


def _model_of(preparation: RunPreparation, executable: Executable) -> RunModel:
    """Return the model for reading the runs, with the present modes of the executable."""
    names, charts = tuple(executable.chart_names), tuple(executable.chart_programs)
    setup = preparation.setup
    return preparation.simulator.remember(
        ("model of runs together", names, tuple(map(id, charts)), setup.vector.tobytes()),
        lambda: run_model(executable.automaton, names, charts, setup.vector, setup.numbers, preparation.numerics),
    )
