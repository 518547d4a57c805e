"""Runs of a graph with their requirements judged: made by one call of the runtime, and judged together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.run_preparation import PreparedRuns, RunPreparation
from fsm_dyn.analysis.study_variables import run_arguments
from fsm_dyn.automaton.labels import Labels
from fsm_dyn.errors import EnergyWarning, InputError, RunError
from fsm_dyn.expressions import Text
from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.arrays import FloatArray, IntArray
from fsm_dyn.results.contact_events import event_mask
from fsm_dyn.results.dense import locate, state_within
from fsm_dyn.results.energy_warning import rates_are_contradicted
from fsm_dyn.results.extremes import extremes_of_runs
from fsm_dyn.results.judgement import COMPLETE, VERDICTS, Judge, JudgedRuns, Verdict
from fsm_dyn.results.record import RunModel, modes_visited
from fsm_dyn.results.result_builder import run_model
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transition_causes import guard_name
from fsm_dyn.runtime.abi import RecordColumn, Sizes
from fsm_dyn.simulation.executable import Executable
from fsm_dyn.simulation.outcomes import OUTCOMES
from fsm_dyn.simulation.run_arrays import TransitionArrays, read_transitions
from fsm_dyn.simulation.run_batch import NeedsItself, RecordedRuns, run_batch
from fsm_dyn.simulator import Simulator
from fsm_dyn.spec.contact import FeatureContact
from fsm_dyn.spec.evaluate import ParameterValue, evaluate, names_in
from fsm_dyn.spec.requirement import ContactEvent

Result = TypeVar("Result")

MOST_ALONE = 4  # runs of a batch that turn out to need further charts, from which on the rest is made one by one
FEWEST = 4  # runs for which it is worth to make them together


@dataclass(frozen=True)
class JudgedRun:
    """One run of a study: how it ended, the modes it visited, its verdicts, and values of its outputs.

    Attributes
    ----------
    outcome : str
        ``"failed: ..."`` if it did not start.
    end : float
        When, s.
    modes : tuple of str
        Those visited, in their order.
    transitions : int
    verdicts, margins : mapping
        By requirement.
    outputs : mapping of str to (float, float, float)
        Minimum, maximum and final value of each, SI, between the rows of the run too.
    curves : mapping of str to bytes
        Values of each over the times of the study as floats of 8 bytes, nan after the end.
    has_open_energy : bool
        Whether its energy balance does not close.
    """

    outcome: str
    end: float
    modes: tuple[str, ...]
    transitions: int
    verdicts: Mapping[str, Verdict]
    margins: Mapping[str, float]
    outputs: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    curves: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    has_open_energy: bool = False


def judged_runs(
    simulator: Simulator, options: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]
) -> list[JudgedRun]:
    """Return some runs of a study, judged; each has the bits that it has alone.

    Parameters
    ----------
    simulator : Simulator
    options : mapping
        ``requirements`` and ``outputs``, their names; ``times``, those of curves, s; ``run``, arguments of
        ``Simulator.run`` that all runs share.
    cases : sequence of mapping
        What differs, by its name in a study: the same names in all.
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
    read: Callable[[RecordedTogether], Iterable[Result]],
) -> list[tuple[int, Result]]:
    """Return what is read of those runs of a study that can be made by one call, by the numbers of their cases.

    Parameters
    ----------
    simulator : Simulator
    options : mapping
        Of the study: what its runs share is worked out once for this object.
    cases : sequence of mapping
        What differs, by its name in a study: the same names in all.
    read : callable
        Gives a result for each of some runs that were recorded together.
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
    """Run and judge one case; one that cannot begin has no more than its reason."""
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


def _curves_of(run: Trajectory, outputs: Sequence[str], times: Array) -> dict[str, bytes]:
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
    read: Callable[[RecordedTogether], Iterable[Result]],
) -> list[tuple[int, Result]]:
    """Return what is read of those of the runs that can be made together, by the numbers of their cases."""
    prepared = preparation.of(cases)
    if not prepared.numbers:
        return []
    simulator, strategy = preparation.simulator, preparation.strategy
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
            results = read(RecordedTogether(preparation, prepared, executable, part))
            found += zip((prepared.numbers[k] for k in part.numbers), results, strict=True)
    finally:
        simulator.give_back(executable, strategy)
    return found


class RecordedTogether:
    """Runs as they were recorded together, for judging and for the rows of a study.

    Parameters
    ----------
    preparation : RunPreparation
    prepared : PreparedRuns
    executable : Executable
        With which they were made.
    runs : RecordedRuns
    """

    def __init__(
        self, preparation: RunPreparation, prepared: PreparedRuns, executable: Executable, runs: RecordedRuns
    ) -> None:
        self.preparation, self.executable, self.runs = preparation, executable, runs
        self.automaton = executable.automaton
        self.values = prepared.values[runs.numbers.start : runs.numbers.stop]
        layout = self.automaton.terms.layout
        n, rows = layout.n_x, runs.rows
        self.t = rows[:, 0].copy()
        self.x, self.x_dot, self.x_mid = (rows[:, 1 + k * n : 1 + (k + 1) * n] for k in range(3))
        self.held = rows[:, 1 + 3 * n :]
        self.vectors = prepared.starts.c[runs.numbers.start : runs.numbers.stop, layout.p_slice]
        self.lengths = np.diff(runs.first_row)
        self.model = _model_of(preparation, executable)

    def judged(self, requirements: Sequence[str], outputs: Sequence[str], times: Array) -> list[JudgedRun | None]:
        """Return each run, judged, with extremes of outputs and their curves over ``times``.

        None for those whose energy balance may be open, which a run alone finds.
        """
        runs, model = self.runs, self.model
        speeds = slice(len(model.layout.q), None)
        with np.errstate(all="ignore"):
            alone = rates_are_contradicted(
                runs.first_row, self.t, self.x[:, speeds], self.x_dot[:, speeds], self.x_mid[:, speeds]
            ).tolist()
        judge = Judge(
            JudgedRuns(
                model, runs.first_row, self.t, self.x, self.x_dot, self.x_mid, runs.modes,
                (runs.statuses[:, None] == COMPLETE).any(axis=1),
                lambda: self._all_rows, self._rows_at, self._between, self._number, self._event_times,
            )
        )  # fmt: skip
        known = {item.name: item for item in model.requirements}
        found = {name: judge.judge(known[name]) for name in requirements}
        verdicts = {name: [VERDICTS[k] for k in item.verdicts.tolist()] for name, item in found.items()}
        margins = {name: item.margins.tolist() for name, item in found.items()}
        extremes = {name: self._extremes(name) for name in outputs}
        curves = self._curves(outputs, times)
        first = runs.modes[runs.first_row[:-1]].tolist()
        ends = self.t[runs.first_row[1:] - 1].tolist()
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

    def _curves(self, outputs: Sequence[str], times: Array) -> list[dict[str, bytes]]:
        """Return outputs of each run over ``times``, nan after its end."""
        bounds = list(pairwise(self.runs.first_row.tolist()))
        within = [times <= self.t[end - 1] for _, end in bounds]
        chosen = np.concatenate([times[part] for part in within])
        found: list[dict[str, bytes]] = [{} for _ in bounds]
        if not len(chosen):
            return found
        first = [a + locate(self.t[a:b], times[part])[0] for (a, b), part in zip(bounds, within, strict=True)]
        samples = self._between(chosen, np.concatenate(first))
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
        column = self.x[:, states.index(name)] if name in states else self._all_rows.outputs[name]
        begin = self.runs.first_row
        minimum, maximum, *_ = extremes_of_runs(
            self.t, column, begin, lambda times, first: self._between(times, first)[name]
        )
        parts = minimum, maximum, column[begin[1:] - 1]
        return list(zip(*(part.tolist() for part in parts), strict=True))

    @cached_property
    def _all_rows(self) -> Samples:
        return self._rows()

    def _rows(self) -> Samples:
        context = np.hstack([np.repeat(self.vectors, self.lengths, axis=0), self.held])
        return Samples(self.model, self.t, self.x, self.runs.modes, context)

    def _rows_at(self, rows: IntArray) -> Samples:
        return self._samples(self.t[rows], self.x[rows], rows, self.held[rows])

    def _samples(self, t: FloatArray, x: FloatArray, rows: IntArray, held: FloatArray) -> Samples:
        run = np.searchsorted(self.runs.first_row, rows, side="right") - 1
        return Samples(self.model, t, x, self.runs.modes[rows], np.hstack([self.vectors[run], held]))

    def _between(self, times: FloatArray, first: IntArray) -> Samples:
        """Sample the steps that begin at the rows ``first``, as ``Trajectory`` does."""
        x, theta = state_within(self.t, self.x, self.x_dot, self.x_mid, times, first, slice(None))
        held = self.held[first]
        inside = theta > 0.0
        setup = self.preparation.setup
        held[inside, : 3 * len(self.model.layout.w)] = setup.drive(times[inside], setup.start.context)
        return self._samples(times, x, first, held)

    def _number(self, text: Text) -> Array:
        if self.preparation.varied.affected & names_in(text.text):
            return np.array([evaluate(text, values) for values in self.values])
        return np.full(len(self.values), evaluate(text, self.preparation.setup.numbers))

    def _event_times(self, event: ContactEvent) -> list[FloatArray]:
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

    def _handovers(self, found: TransitionArrays, states: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Return which transitions are handovers; only contacts between features of shapes have them."""
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
    """Return what reading the runs needs, with the modes that the executable has now."""
    names, charts = tuple(executable.chart_names), tuple(executable.chart_programs)
    setup = preparation.setup
    return preparation.simulator.remember(
        ("model of runs together", names, tuple(map(id, charts)), setup.vector.tobytes()),
        lambda: run_model(executable.automaton, names, charts, setup.vector, setup.numbers, preparation.numerics),
    )
