"""Yield of a mechanism whose parameters have tolerances: the share of runs that meet the model's requirements."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from scipy.stats import norm, spearmanr, t

from fsm_dyn.analysis.distributions import Distribution, varied_quantities
from fsm_dyn.analysis.judged_runs import JudgedRun, judged_runs
from fsm_dyn.analysis.ledger import Ledger, study_settings
from fsm_dyn.analysis.sampling import REPLICATES, sampled_deviations
from fsm_dyn.analysis.study_datasets import run_dataset, with_sequences
from fsm_dyn.analysis.study_runs import SampledPoints, StudyTask, study_results
from fsm_dyn.analysis.study_variables import check_quantities, variable_units
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.judgement import Verdict
from fsm_dyn.spec.checks.requirements import requirement_units

if TYPE_CHECKING:
    import xarray

ALL = "all"  # what the yield of all requirements together is called
EXTREMES = ("minimum", "maximum", "final")  # of a quantity, in the order of ``JudgedRun.quantities``
_SHORT = {"minimum": "min", "maximum": "max", "final": "final"}  # in headings
_LEVEL = 0.95
_DECIDED = ("met", "violated")


@dataclass(frozen=True)
class YieldEstimate:
    """Numbers of verdicts, and the share of runs that meet a requirement, of those decided, with its 95 % interval.

    The interval is Wilson's; of a Sobol' sample it is Student's over the yields of its replicates if these differ and
    all have decided runs.  Where no run was decided, the share is nan and the interval everything.
    """

    met: int
    violated: int
    undecided: int
    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Parting:
    """Where runs of different verdicts part.

    Attributes
    ----------
    before : tuple of str
        The modes that all these runs have visited.
    following : mapping
        By the next mode, ``""`` where the run has no further one, how many runs with each verdict.
    """

    before: tuple[str, ...]
    following: Mapping[str, Counter[Verdict]]


@dataclass(frozen=True)
class ToleranceStudy:
    """Runs of a model with parameters sampled within their tolerances.

    Attributes
    ----------
    parameters : mapping of str to ndarray, shape (n,)
        What was sampled, SI: parameters, and initial values, inputs and amplitudes by their names in a study.
    verdicts : mapping of str to tuple of str
        ``"met"``, ``"violated"`` or ``"undecided"`` by requirement and run; under ``"all"`` of all together.
    margins : mapping of str to ndarray, shape (n,)
        By requirement; nan where there is none.
    outcomes : tuple of str
        Of each run; ``"failed: ..."`` if it did not start.
    nominal : mapping of str to float
        The parameters about which was sampled, SI.
    sequences : tuple of tuple of str
        The modes that each run visited, in their order; empty if it did not start.
    units : mapping of str to str
        Of parameters, and of the margins of requirements.
    model : str
        Its name.
    quantities : mapping of str to mapping
        ``minimum``, ``maximum`` and ``final`` values of each, shape (n,), SI; nan of a run that did not start.
    distributions : mapping of str to str
        From which each parameter was sampled, as text, SI.
    replicates : int
        Independent parts of equal size that the sample consists of, one after the other; 1 if it has none.
    """

    parameters: Mapping[str, Array]
    verdicts: Mapping[str, tuple[Verdict, ...]]
    margins: Mapping[str, Array]
    outcomes: tuple[str, ...]
    nominal: Mapping[str, float] = field(default_factory=dict)
    sequences: tuple[tuple[str, ...], ...] = ()
    replicates: int = 1
    units: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    quantities: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)

    def sensitivity(self, requirement: str) -> dict[str, float]:
        """Return Spearman's rank correlation of a requirement's margin with each parameter, the strongest first.

        It is nan where the margin or the parameter does not vary; runs without a finite margin are left out.
        """
        if requirement not in self.margins:
            raise InputError(f"no requirement '{requirement}'", remedy=did_you_mean(requirement, list(self.margins)))
        finite = np.isfinite(self.margins[requirement])
        margin = self.margins[requirement][finite]
        found = {name: _rank_correlation(column[finite], margin) for name, column in self.parameters.items()}
        return dict(sorted(found.items(), key=lambda item: -np.nan_to_num(abs(item[1]))))

    def nearest_failure(self, requirement: str = ALL) -> int | None:
        """Return the number of the violating run whose parameters are nearest to the nominal ones; None if all met.

        Distances are measured in the standard deviations of the sample.
        """
        failed = np.flatnonzero(np.array(self.verdicts[requirement]) == "violated")
        if not failed.size:
            return None
        away = np.array(
            [(column - self.nominal[name]) / (column.std() or 1.0) for name, column in self.parameters.items()]
        )
        return int(failed[np.linalg.norm(away[:, failed], axis=0).argmin()])

    def mode_sequences(self, requirement: str = ALL) -> dict[tuple[str, ...], dict[Verdict, int]]:
        """Return how many runs with each verdict visited each sequence of modes, the most frequent sequence first."""
        counts = Counter(self.sequences)
        found: dict[tuple[str, ...], dict[Verdict, int]] = {modes: {} for modes, _ in counts.most_common()}
        for modes, verdict in zip(self.sequences, self.verdicts[requirement], strict=True):
            found[modes][verdict] = found[modes].get(verdict, 0) + 1
        return found

    def transition_shares(self) -> dict[tuple[str, str], float]:
        """Return the share of all runs that made a transition between two modes at least once, by these modes."""
        made = Counter(pair for modes in self.sequences for pair in set(itertools.pairwise(modes)))
        return {pair: count / len(self.sequences) for pair, count in made.items()}

    def parting(self, requirement: str = ALL) -> Parting | None:
        """Return the first transition by which runs that meet a requirement part from some that violate it.

        It is the earliest in the sequences of modes, of several the one with the most runs; None if no mode is left
        by runs of one verdict alone.
        """
        decided = [pair for pair in zip(self.sequences, self.verdicts[requirement], strict=True) if pair[1] in _DECIDED]
        for length in range(1, max((len(modes) for modes, _ in decided), default=0) + 1):
            groups: dict[tuple[str, ...], dict[str, Counter[Verdict]]] = {}
            for modes, verdict in decided:
                if len(modes) >= length:
                    following = groups.setdefault(modes[:length], {})
                    following.setdefault("".join(modes[length : length + 1]), Counter())[verdict] += 1
            parted = [Parting(prefix, found) for prefix, found in groups.items() if _parts(found)]
            if parted:
                return max(parted, key=lambda item: sum(counts.total() for counts in item.following.values()))
        return None

    def to_dataset(self) -> xarray.Dataset:
        """Return the runs as an ``xarray.Dataset`` along ``run``.

        Parameters are coordinates; ``margin_<name>`` and ``verdict_<name>`` belong to a requirement, ``verdict_all`` to
        all.  ``sequence`` is a number into the tables ``modes`` and ``digest`` along ``sequence_number``.

        Raises
        ------
        InputError
            If xarray is not installed (the extra ``analysis``).
        """
        numbers = {modes: number for number, modes in enumerate(dict.fromkeys(self.sequences))}
        columns: dict[str, Sequence[Any] | Array] = {"outcome": self.outcomes}
        columns["sequence"] = [numbers[modes] for modes in self.sequences]
        columns |= {f"margin_{name}": margin for name, margin in self.margins.items()}
        columns |= {f"verdict_{name}": verdicts for name, verdicts in self.verdicts.items()}
        for name, parts in self.quantities.items():
            columns |= {f"{name}_{part}": column for part, column in parts.items()}
        names = {f"margin_{name}": unit for name, unit in self.units.items()} | dict(self.units)
        names |= {
            f"{name}_{part}": self.units[name] for name in self.quantities if name in self.units for part in EXTREMES
        }
        return with_sequences(run_dataset(self.model, self.parameters, columns, names), list(numbers))

    def table(self) -> tuple[list[str], list[list[float | str]]]:
        """Return headings and rows, one for each run, as for a CSV file."""
        headings = [*self.parameters, "outcome", "modes"]
        headings += [text for name in self.margins for text in (name, f"{name} margin")]
        headings += [f"{name}_{_SHORT[part]}" for name, parts in self.quantities.items() for part in parts]
        rows: list[list[float | str]] = []
        for i, (outcome, modes) in enumerate(zip(self.outcomes, self.sequences, strict=True)):
            row: list[float | str] = [*(float(column[i]) for column in self.parameters.values()), outcome]
            row.append(" > ".join(modes))
            for name, margin in self.margins.items():
                row += [self.verdicts[name][i], float(margin[i])]
            row += [float(column[i]) for parts in self.quantities.values() for column in parts.values()]
            rows.append(row)
        return headings, rows

    def estimate(self, requirement: str = ALL) -> YieldEstimate:
        """Return the yield of a requirement, or of all together."""
        verdicts = np.array(self.verdicts[requirement])
        met, violated = verdicts == "met", verdicts == "violated"
        numbers = int(met.sum()), int(violated.sum())
        undecided = len(verdicts) - sum(numbers)
        if not sum(numbers):
            return YieldEstimate(*numbers, undecided, np.nan, 0.0, 1.0)
        met_in = met.reshape(self.replicates, -1).sum(axis=1)
        decided_in = met_in + violated.reshape(self.replicates, -1).sum(axis=1)
        shares = met_in / np.maximum(decided_in, 1)
        if self.replicates == 1 or not decided_in.all() or not np.ptp(shares):
            return YieldEstimate(*numbers, undecided, numbers[0] / sum(numbers), *wilson(numbers[0], sum(numbers)))
        half = float(t.ppf(0.5 + _LEVEL / 2, self.replicates - 1) * shares.std(ddof=1) / np.sqrt(self.replicates))
        share = float(shares.mean())
        return YieldEstimate(*numbers, undecided, share, max(share - half, 0.0), min(share + half, 1.0))


def wilson(met: int, n: int, level: float = _LEVEL) -> tuple[float, float]:
    """Return the interval of a share, of ``met`` out of n > 0 independent trials (Wilson 1927)."""
    z = float(norm.ppf(0.5 + level / 2))
    share = met / n
    middle = share + z * z / (2 * n)
    half = z * np.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    scale = 1.0 + z * z / n
    return float(max((middle - half) / scale, 0.0)), float(min((middle + half) / scale, 1.0))


def tolerance_study(
    graph: ModeGraph,
    *,
    n: int,
    seed: int,
    sample: str = "random",
    vary: Mapping[str, Distribution] | None = None,
    requirements: Sequence[str] | None = None,
    quantities: Sequence[str] | None = None,
    jobs: int | None = None,
    client: Any = None,
    ledger: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> ToleranceStudy:
    """Run a model with parameters sampled within their tolerances, and judge its requirements in every run.

    Parameters
    ----------
    graph : ModeGraph
    n, seed, sample
        As for :func:`fsm_dyn.analysis.sampling.sampled_deviations`.
    vary : mapping, optional
        Distributions of parameters, initial values, inputs and amplitudes, in addition to the tolerances of the model
        file, as for :func:`fsm_dyn.analysis.distributions.varied_quantities`.
    requirements : sequence of str, optional
        Names of those to judge; by default all of the model.
    quantities : sequence of str, optional
        Outputs, coordinates and speeds whose least, greatest and final values are kept.
    jobs : int, optional
        Processes, with the same result for any number; by default one per core, as far as there are runs for them.
    client : str or distributed.Client, optional
        A dask cluster for the runs, or the address of its scheduler, in place of processes here.
    ledger : path, optional
        An SQLite file to which results are written as they come; what it contains is not computed again.
    progress : callable, optional
        Called with the number of runs done and of all.
    options
        As for ``fsm_dyn.Simulator.run``; ``parameters`` are those about which is sampled.

    Returns
    -------
    ToleranceStudy
        The samples, and the margin of every requirement in every run.

    Raises
    ------
    InputError
        The model has no requirements or no tolerances, an option is impossible, the ledger is of another study, or no
        scheduler answers.
    RunError
        The ledger cannot be written, a process was ended from outside, or the cluster is lost.
    """
    mechanism = graph.automaton.mechanism
    if not mechanism.requirements:
        raise InputError("the model has no requirements", remedy="write a section `requirements`")
    given = dict(options.pop("parameters", None) or {})
    varied = varied_quantities(graph, vary, {**options, "parameters": given})
    sampled = sampled_deviations({name: item.deviation for name, item in varied.items()}, sample, n, seed)
    points = {name: varied[name].nominal + column for name, column in sampled.items()}
    names = tuple(mechanism.requirements if requirements is None else requirements)
    for name in names:
        if name not in mechanism.requirements:
            raise InputError(f"no requirement '{name}'", remedy=did_you_mean(name, list(mechanism.requirements)))
    chosen = tuple(quantities or ())
    check_quantities(graph, chosen)
    extremes = {name: np.full((len(EXTREMES), n), np.nan) for name in chosen}
    verdicts: dict[str, list[Verdict]] = {name: [] for name in (*names, ALL)}
    margins = {name: np.full(n, np.nan) for name in names}
    outcomes: list[str] = []
    sequences: list[tuple[str, ...]] = []
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    cases = SampledPoints({name: np.asarray(column) for name, column in points.items()})
    task = StudyTask(judged_runs, {"requirements": names, "quantities": chosen, "parameters": given, "run": options})
    kept: Ledger[JudgedRun] | None = None
    if ledger is not None:
        keyed = {"requirements": names, "quantities": chosen, "parameters": given, **options}
        settings = study_settings("judged", mechanism.digest, cases, keyed)
        decode = partial(_decoded, requirements=names, quantities=chosen)
        kept = Ledger(Path(ledger), settings, msgspec.msgpack.encode, decode)
    for i, found in enumerate(study_results(graph, task, cases, jobs, kept, client)):
        outcomes.append(found.outcome)
        sequences.append(known.setdefault(found.modes, found.modes))  # one object for equal sequences
        for name in names:
            verdicts[name].append(found.verdicts[name])
            margins[name][i] = found.margins[name]
        for name in chosen:
            extremes[name][:, i] = found.quantities[name]
        verdicts[ALL].append(_together(tuple(found.verdicts.values())))
        if progress is not None:
            progress(i + 1, n)
    every = variable_units(mechanism, (*points, *chosen)) | requirement_units(mechanism)
    nominal = {name: varied[name].nominal for name in points}
    return ToleranceStudy(
        points, {name: tuple(items) for name, items in verdicts.items()}, margins, tuple(outcomes), nominal,
        tuple(sequences), REPLICATES if sample == "sobol" else 1,
        {name: unit for name, unit in every.items() if name in {*points, *names, *chosen}},
        graph.name,
        {name: dict(zip(EXTREMES, columns, strict=True)) for name, columns in extremes.items()},
        {name: item.describe() for name, item in varied.items()},
    )  # fmt: skip


_DECODER = msgspec.msgpack.Decoder(JudgedRun)


def _decoded(data: bytes, requirements: Sequence[str], quantities: Sequence[str]) -> JudgedRun:
    """Return the run of these bytes; raise ValueError where it is none of a study of these requirements."""
    found = _DECODER.decode(data)
    if not found.verdicts.keys() == found.margins.keys() == {*requirements} or found.quantities.keys() != {*quantities}:
        raise ValueError("other requirements")
    return found


def _rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's rank correlation; nan where one of both does not vary."""
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return float("nan")
    return float(spearmanr(a, b).statistic)


def _parts(following: Mapping[str, Counter[Verdict]]) -> bool:
    """Return whether runs of both verdicts leave a mode, and somewhere go those of one alone."""
    verdicts = [set(counts) for counts in following.values()]
    return len(set().union(*verdicts)) == 2 and any(len(found) == 1 for found in verdicts)


def _together(verdicts: tuple[Verdict, ...]) -> Verdict:
    if "violated" in verdicts:
        return "violated"
    return "undecided" if "undecided" in verdicts else "met"
