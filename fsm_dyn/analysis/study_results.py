"""Results of a study by columns, its data sets, yields and diagrams."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, spearmanr, t

from fsm_dyn.analysis.judged_runs import JudgedRun
from fsm_dyn.analysis.study_variables import Label
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.errors import InputError, did_you_mean, optional_library
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.graph_layout import Arrow, Box, Diagram, mode_graph
from fsm_dyn.draw.svg import element, escaped, html_table
from fsm_dyn.run.judgement import Verdict

if TYPE_CHECKING:
    import xarray


# -- Data sets of studies: a variable for each column, along the runs ----------------------------------------

Column = Sequence[Any] | npt.NDArray[Any]


def run_dataset(
    model: str,
    parameters: Mapping[str, Column],
    columns: Mapping[str, Column],
    units: Mapping[str, str],
    axes: Mapping[str, Floats] | None = None,
) -> xarray.Dataset:
    """Return columns along ``run`` as a data set.

    ``parameters``, ``columns``, shape (n,) or (n, m): coordinates and variables, SI; with two axes, the second is the
    one of ``axes`` with m elements. ``units``: of any of them. ``axes``: coordinates of second axes. Raises InputError
    if xarray is not installed (the extra ``analysis``).
    """
    found = {name: axis for name, axis in (axes or {}).items() if len(axis)}

    def variable(name: str, column: Column) -> tuple[tuple[str, ...], Floats, dict[str, str]]:
        values = np.asarray(column)
        if values.dtype == object:  # numbers and texts
            values = values.astype(str)
        second = [axis for axis, places in found.items() if values.ndim > 1 and len(places) == values.shape[1]]
        return ("run", *second), values, {"units": units[name]} if units.get(name) else {}

    dataset: xarray.Dataset = optional_library("xarray").Dataset(
        {name: variable(name, column) for name, column in columns.items()},
        coords={
            **{name: variable(name, column) for name, column in parameters.items()},
            **{name: (name, axis, {"units": "s"} if name == "time" else {}) for name, axis in found.items()},
        },
        attrs={"model": model},
    )
    return dataset


def with_sequences(dataset: xarray.Dataset, sequences: Sequence[tuple[str, ...]], counts: Integers) -> xarray.Dataset:
    """Return a data set with a table of mode sequences: as text, by a digest, the same in any study, and their runs."""
    texts = [" > ".join(modes) for modes in sequences]
    digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
    table = {"modes": texts, "digest": digests, "runs": counts}
    return dataset.assign({name: ("sequence_number", column) for name, column in table.items()})


# -- Results of a study by columns ---------------------------------------------------------------------------
#
# Varied values, outputs, verdicts and margins, and the modes of each run.

GRID: Final = "grid"
ALL: Final = "all"  # name of the verdicts on all requirements together
EXTREMES: Final = ("minimum", "maximum", "final")  # of an output, in the order of ``JudgedRun.outputs``
_SHORT: Final = {"minimum": "min", "maximum": "max", "final": "final"}  # in headings
_DECIDED: Final = ("met", "violated")


@dataclass(frozen=True)
class Parting:
    """The branching of runs with different verdicts.

    Attributes
    ----------
    before : tuple of str
        The modes common to all these runs.
    following : mapping
        By the next mode (``""``: no further one) the number of runs with each verdict.
    """

    before: tuple[str, ...]
    following: Mapping[str, Counter[Verdict]]


@dataclass(frozen=True)
class StudyRun:
    """One run of a study.

    Attributes
    ----------
    values : mapping of str to float or str
        Varied values: numbers (SI), and texts for others, such as a mode, a scenario or a variant.
    outcome : str
        Outcome of the run, ``"failed: ..."`` if it did not start.
    end : float
        End of the run, s.
    modes : tuple of str
        Visited modes in their order; empty if it did not start.
    transitions : int
    verdicts, margins : mapping
        By requirement.
    minimum, maximum, final : mapping of str to float
        Of every output over the run, between its rows too; nan if it did not start.
    curves : mapping of str to ndarray
        Of every output over the study's ``times``; nan after the end.  None in a sample, and in a grid of more than
        10,000 runs.
    """

    values: Mapping[str, Label]
    outcome: str
    end: float = 0.0
    modes: tuple[str, ...] = ()
    transitions: int = 0
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    margins: Mapping[str, float] = field(default_factory=dict)
    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)
    final: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    @property
    def mode(self) -> str:
        """The final mode."""
        return self.modes[-1] if self.modes else ""


_VERDICTS: Final[tuple[Verdict, ...]] = ("met", "violated", "undecided")
_MOST_SEQUENCES: Final = 12  # in a notebook
_MOST_MODES: Final = 6  # of a sequence there


def _elided(sequence: Sequence[str]) -> str:
    """Return visited modes as text; of many the first ones and the last."""
    shown = sequence if len(sequence) <= _MOST_MODES else (*sequence[: _MOST_MODES - 1], "…", sequence[-1])
    return " → ".join(shown)


@dataclass(frozen=True)
class Study:
    """All runs of a study, by columns.

    Attributes
    ----------
    model : str
        Its name.
    sample : str
        ``"grid"``, ``"random"``, ``"lhs"`` or ``"sobol"``.
    parameters : mapping of str to ndarray, shape (n,)
        Varied values by their names in a study: numbers (SI), and texts for others.
    outcomes : tuple of str
        Of each run; ``"failed: ..."`` if it did not start.
    sequences : tuple of tuple of str
        The visited modes of each run, in their order; empty if it did not start.
    verdicts : mapping of str to tuple of str
        ``"met"``, ``"violated"`` or ``"undecided"`` by requirement and run; under ``"all"`` of all together.
    margins : mapping of str to ndarray, shape (n,)
        By requirement; nan for none.
    ends : ndarray, shape (n,)
        Of the runs, s.
    transitions : ndarray of int, shape (n,)
    outputs : mapping of str to mapping
        ``minimum``, ``maximum`` and ``final`` values of each, shape (n,), SI; nan for a run without a start.
    times : ndarray, shape (m,)
        Of curves, s.
    curves : mapping of str to ndarray, shape (n, m)
        Of each output; nan after the end of the run.  None in a sample, and in a grid of more than 10,000 runs.
    open_energy : ndarray of bool, shape (n,)
        Whether the energy balance of a run does not close.
    nominal : mapping of str to float
        The parameters without variation, SI.
    units : mapping of str to str
        Of parameters, outputs, and the margins of requirements.
    distributions : mapping of str to str
        Distribution of each sampled parameter, as text, SI.
    compiled : int
        Number of compiled variants.
    replicates : int
        Independent parts of equal size of a sample, one after the other; 1 if it has none.
    """

    model: str
    sample: str
    parameters: Mapping[str, Floats]
    outcomes: tuple[str, ...]
    sequences: tuple[tuple[str, ...], ...]
    verdicts: Mapping[str, tuple[Verdict, ...]]
    margins: Mapping[str, Floats]
    ends: Floats = field(default_factory=lambda: np.empty(0))
    transitions: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    open_energy: Booleans = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    outputs: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)
    times: Floats = field(default_factory=lambda: np.empty(0))
    curves: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    nominal: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    compiled: int = 0
    replicates: int = 1

    def _repr_html_(self) -> str:
        # for notebooks only
        count = len(self.outcomes)
        head = f"{self.model}: {count} runs, {self.sample} of {', '.join(self.varied)}"
        verdicts = [(name, *(str(found.count(kind)) for kind in _VERDICTS)) for name, found in self.verdicts.items()]
        sequences = Counter(self.sequences).most_common(_MOST_SEQUENCES)
        parts = [element("p", element("b", escaped(head)))]
        if verdicts:
            parts.append(html_table(("requirement", *_VERDICTS), verdicts))
        parts.append(html_table(("runs", "visited modes"), [(str(n), _elided(own)) for own, n in sequences]))
        return element("div", parts)

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of the varied quantities."""
        return tuple(self.parameters)

    @cached_property
    def rows(self) -> tuple[StudyRun, ...]:
        """The runs one by one."""
        columns = {name: column.tolist() for name, column in self.parameters.items()}
        verdicts = {name: self.verdicts[name] for name in self.margins}
        margins = {name: margin.tolist() for name, margin in self.margins.items()}
        extremes = {part: {name: found[part].tolist() for name, found in self.outputs.items()} for part in EXTREMES}
        return tuple(
            StudyRun(
                values=_of(columns, i),
                outcome=outcome,
                end=float(self.ends[i]),
                modes=self.sequences[i],
                transitions=int(self.transitions[i]),
                verdicts=_of(verdicts, i),
                margins=_of(margins, i),
                curves=_of(self.curves, i),
                **{part: _of(found, i) for part, found in extremes.items()},
            )
            for i, outcome in enumerate(self.outcomes)
        )

    def estimate(self, requirement: str = ALL, among: Booleans | None = None) -> YieldEstimate:
        """Return the yield of a requirement, or of all together.

        Parameters
        ----------
        among : ndarray of bool, shape (n,), optional
            Of these runs alone, such as those of a variant.

        Raises
        ------
        InputError
            The study is one over a grid, or there is no such requirement.
        """
        if self.sample == GRID:
            raise InputError(
                "the points of a grid are no sample, of which a yield could be estimated",
                remedy='sample="random", or "lhs", "sobol"; `counts` has the verdicts of a grid',
            )
        verdicts = np.array(self._verdicts(requirement))
        return yield_estimate(verdicts, self.replicates, np.full(len(verdicts), True) if among is None else among)

    def counts(self, requirement: str = ALL) -> Counter[Verdict]:
        """Return the number of runs with each verdict on a requirement, or on all together."""
        return Counter(self._verdicts(requirement))

    def sensitivity(self, requirement: str) -> dict[str, float]:
        """Return Spearman's rank correlation of a requirement's margin with each number varied, the strongest first.

        It is nan if the margin or the number does not vary; runs without a finite margin are left out.

        Raises
        ------
        InputError
            There is no such requirement; all together have no margin.
        """
        if requirement not in self.margins:
            raise InputError(f"no requirement '{requirement}'", remedy=did_you_mean(requirement, list(self.margins)))
        margin = self.margins[requirement]
        found = {name: rank_correlation(column, margin) for name, column in self._numbers.items()}
        return dict(sorted(found.items(), key=lambda item: -np.nan_to_num(abs(item[1]))))

    def nearest_failure(self, requirement: str = ALL) -> int | None:
        """Return the number of the violating run with parameters nearest to the nominal ones; None if all met.

        Distances are measured in the standard deviations of the varied quantities.
        """
        failed = np.flatnonzero(np.array(self._verdicts(requirement)) == "violated")
        if not failed.size:
            return None
        away = [
            np.nan_to_num((column - self.nominal[name]) / (np.nanstd(column) or 1.0))
            for name, column in self._numbers.items()
            if name in self.nominal
        ]
        return int(failed[np.linalg.norm(np.reshape(away, (len(away), -1))[:, failed], axis=0).argmin()])

    def mode_sequences(self, requirement: str = ALL) -> dict[tuple[str, ...], dict[Verdict, int]]:
        """Return the numbers of runs with each verdict by their sequence of modes, the most frequent sequence first."""
        counts = Counter(self.sequences)
        found: dict[tuple[str, ...], dict[Verdict, int]] = {modes: {} for modes, _ in counts.most_common()}
        for modes, verdict in zip(self.sequences, self._verdicts(requirement), strict=True):
            found[modes][verdict] = found[modes].get(verdict, 0) + 1
        return found

    def transition_shares(self) -> dict[tuple[str, str], float]:
        """Return the share of runs with at least one transition between two modes, by these modes."""
        made = Counter(pair for modes in self.sequences for pair in set(itertools.pairwise(modes)))
        return {pair: count / len(self.sequences) for pair, count in made.items()}

    def parting(self, requirement: str = ALL) -> Parting | None:
        """Return the first transition that separates runs meeting a requirement from some violating it.

        It is the earliest in the sequences of modes, of several the one with the most runs; None if no mode is left
        by runs of one verdict alone.
        """
        decided = [
            pair for pair in zip(self.sequences, self._verdicts(requirement), strict=True) if pair[1] in _DECIDED
        ]
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
        """Return the runs as an ``xarray.Dataset`` along ``run``, curves along ``time`` too.

        Varied quantities are coordinates; ``margin_<name>`` and ``verdict_<name>`` belong to a requirement,
        ``verdict_all`` to all.  ``sequence`` is an index into the tables ``modes``, ``digest`` and ``runs`` (their
        number) along ``sequence_number``.

        Raises
        ------
        InputError
            If xarray is not installed (the extra ``analysis``).
        """
        groups = {modes: number for number, modes in enumerate(dict.fromkeys(self.sequences))}
        columns: dict[str, Column] = {
            "outcome": self.outcomes, "end": self.ends, "transitions": self.transitions,
            "open_energy": self.open_energy,
            "mode": ["".join(modes[-1:]) for modes in self.sequences],
            "sequence": [groups[modes] for modes in self.sequences],
        }  # fmt: skip
        columns |= {f"margin_{name}": margin for name, margin in self.margins.items()}
        columns |= {f"verdict_{name}": verdicts for name, verdicts in self.verdicts.items()}
        units = {"end": "s", **self.units} | {f"margin_{name}": self.units.get(name, "") for name in self.margins}
        for name, parts in self.outputs.items():
            columns |= {f"{name}_{part}": column for part, column in parts.items()}
            units |= {f"{name}_{part}": self.units.get(name, "") for part in parts}
        columns |= self.curves
        data = run_dataset(self.model, self.parameters, columns, units, {"time": self.times})
        return with_sequences(data, [*groups], np.bincount(columns["sequence"], minlength=len(groups)))

    def table(self) -> tuple[list[str], list[list[float | int | str]]]:
        """Return headings and rows, one for each run, as for a CSV file."""
        columns: dict[str, Sequence[float | int | str]] = {
            **{name: column.tolist() for name, column in self.parameters.items()},
            "outcome": self.outcomes, "end": self.ends.tolist(),
            "mode": ["".join(modes[-1:]) for modes in self.sequences], "transitions": self.transitions.tolist(),
        }  # fmt: skip
        for name, parts in self.outputs.items():
            columns |= {f"{name}_{_SHORT[part]}": column.tolist() for part, column in parts.items()}
        for name, margin in self.margins.items():
            columns |= {name: self.verdicts[name], f"{name} margin": margin.tolist()}
        if self.open_energy.any():
            columns["energy balance"] = ["open" if is_open else "closes" for is_open in self.open_energy.tolist()]
        columns["modes"] = [" > ".join(modes) for modes in self.sequences]
        return [*columns], [list(row) for row in zip(*columns.values(), strict=True)]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Defects of runs with a regular end: open energy balances."""
        count, n = int(self.open_energy.sum()), len(self.outcomes)
        if not count:
            return ()
        return (
            f"the energy balance of {count} of {n} runs does not close (column `energy balance`): shorten the steps or "
            "reduce the tolerances until it closes",
        )

    @property
    def _numbers(self) -> dict[str, Floats]:
        """The varied numbers."""
        return {name: column for name, column in self.parameters.items() if column.dtype != object}

    def _verdicts(self, requirement: str) -> tuple[Verdict, ...]:
        if requirement not in self.verdicts:
            raise InputError(
                f"no requirement '{requirement}'", remedy=did_you_mean(requirement, list(self.verdicts))
            )  # fmt: skip
        return self.verdicts[requirement]


class StudyColumns:
    """Columns of a study while its runs come. ``times``, shape (m,): of curves."""

    def __init__(self, n: int, requirements: Sequence[str], outputs: Sequence[str], times: Floats) -> None:
        self.outcomes = [""] * n
        self.sequences: list[tuple[str, ...]] = [()] * n
        self.ends, self.transitions = np.zeros(n), np.zeros(n, dtype=np.int64)
        self.verdicts: dict[str, list[Verdict]] = {name: ["undecided"] * n for name in (*requirements, ALL)}
        self.margins = {name: np.full(n, np.nan) for name in requirements}
        self.extremes = {name: np.full((len(EXTREMES), n), np.nan) for name in outputs}
        self.open_energy = np.zeros(n, dtype=np.bool_)
        self.curves = {name: np.full((n, len(times)), np.nan) for name in outputs if len(times)}
        self._known: dict[Any, Any] = {}

    def put(self, i: int, run: JudgedRun) -> None:
        """Store run number i."""
        self.outcomes[i] = self._known.setdefault(run.outcome, run.outcome)  # one object for equal texts
        self.sequences[i] = self._known.setdefault(run.modes, run.modes)
        self.ends[i], self.transitions[i], self.open_energy[i] = run.end, run.transitions, run.has_open_energy
        for name, margin in self.margins.items():
            self.verdicts[name][i] = run.verdicts[name]
            margin[i] = run.margins[name]
        for name, extremes in self.extremes.items():
            extremes[:, i] = run.outputs[name]
        for name, curve in run.curves.items():
            self.curves[name][i] = np.frombuffer(curve)
        self.verdicts[ALL][i] = _together([*run.verdicts.values()])

    def finished(self) -> dict[str, Any]:
        """Return the columns by their names in a study."""
        return {
            "outcomes": tuple(self.outcomes), "sequences": tuple(self.sequences),
            "verdicts": {name: tuple(items) for name, items in self.verdicts.items()}, "margins": self.margins,
            "ends": self.ends, "transitions": self.transitions, "curves": self.curves,
            "open_energy": self.open_energy,
            "outputs": {name: dict(zip(EXTREMES, found, strict=True)) for name, found in self.extremes.items()},
        }  # fmt: skip


def _of(columns: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return row i of columns."""
    return {name: column[i] for name, column in columns.items()}


def _parts(following: Mapping[str, Counter[Verdict]]) -> bool:
    """Return whether runs of both verdicts leave a mode, with one target for runs of one verdict alone."""
    verdicts = [set(counts) for counts in following.values()]
    return len(set().union(*verdicts)) == 2 and any(len(found) == 1 for found in verdicts)


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    if "violated" in verdicts:
        return "violated"
    return "undecided" if "undecided" in verdicts else "met"


# -- Yield of a mechanism ------------------------------------------------------------------------------------
#
# The share of runs within tolerances of parameters that meet the model's requirements.

_LEVEL: Final = 0.95


@dataclass(frozen=True)
class YieldEstimate:
    """Numbers of verdicts, and the share of decided runs that meet a requirement, with its 95 % interval.

    The interval is Wilson's; of a Sobol' sample it is Student's over the yields of its replicates if these differ and
    all have decided runs.  If no run was decided, the share is nan and the interval everything.
    """

    met: int
    violated: int
    undecided: int
    value: float
    lower: float
    upper: float


def yield_estimate(verdicts: npt.NDArray[Any], replicates: int, among: Booleans) -> YieldEstimate:
    """Return the yield of a requirement in a sample.

    ``verdicts``, shape (n,); ``replicates``: independent parts of equal size of the sample, one after the other;
    ``among``, shape (n,): the counted runs.
    """
    met, violated = among & (verdicts == "met"), among & (verdicts == "violated")
    numbers = int(met.sum()), int(violated.sum())
    undecided = int(among.sum()) - sum(numbers)
    if not sum(numbers):
        return YieldEstimate(*numbers, undecided, np.nan, 0.0, 1.0)
    met_in = met.reshape(replicates, -1).sum(axis=1)
    decided_in = met_in + violated.reshape(replicates, -1).sum(axis=1)
    shares = met_in / np.maximum(decided_in, 1)
    if replicates == 1 or not decided_in.all() or not np.ptp(shares):
        return YieldEstimate(*numbers, undecided, numbers[0] / sum(numbers), *wilson(numbers[0], sum(numbers)))
    half = float(t.ppf(0.5 + _LEVEL / 2, replicates - 1) * shares.std(ddof=1) / np.sqrt(replicates))
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


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's rank correlation of finite values; nan if one of both does not vary."""
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return float("nan")
    return float(spearmanr(a, b).statistic)


# -- The mode graph as the runs of a study have used it ------------------------------------------------------


def shares_diagram(found: Study, graph: ModeGraph, requirement: str = ALL) -> Diagram:
    """Return the modes and transitions of a study as a diagram.

    The thickness of an arrow shows the share of runs with its transition; it is dashed for none; marked arrows separate
    runs that violate a requirement from others. ``graph``: its transitions without a run are drawn as well.
    """
    shares, parting = found.transition_shares(), found.parting(requirement)
    marked = set() if parting is None else {(parting.before[-1], mode) for mode in parting.following}
    possible = dict.fromkeys((source, target) for source, target, *_ in graph.nx.edges if source != target)
    pairs = dict.fromkeys([*shares, *possible])
    names = dict.fromkeys(
        [*(mode for modes in found.sequences for mode in modes), *(m for pair in pairs for m in pair)]
    )
    starts = {modes[0] for modes in found.sequences if modes}
    counts = {mode: sum(mode in modes for modes in found.sequences) for mode in names}
    n = len(found.sequences)
    return Diagram(
        graph.name,
        tuple(Box(mode, mode, (f"{100.0 * counts[mode] / n:.3g} % of runs",), mode in starts) for mode in names),
        tuple(
            Arrow(*pair, (f"{100.0 * shares[pair]:.3g} %" if pair in shares else "never",), pair not in shares,
                  shares.get(pair, 0.0), pair in marked)
            for pair in pairs
        ),
    )  # fmt: skip


def shares_svg(found: Study, graph: ModeGraph, requirement: str = ALL) -> str:
    """Return the picture of :func:`shares_diagram` as SVG."""
    return mode_graph(shares_diagram(found, graph, requirement))
