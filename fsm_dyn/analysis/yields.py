"""Yield of a mechanism whose parameters have tolerances: the share of runs that meet the model's requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, t

from fsm_dyn.analysis.sampling import REPLICATES, sampled_deviations
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, RunError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.judgement import Verdict
from fsm_dyn.simulator import Simulator
from fsm_dyn.spec.tolerances import deviations
from fsm_dyn.spec.values import parameter_values

ALL = "all"  # what the yield of all requirements together is called
_LEVEL = 0.95


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
class ToleranceStudy:
    """Runs of a model with parameters sampled within their tolerances.

    Attributes
    ----------
    parameters : mapping of str to ndarray, shape (n,)
        The parameters sampled, SI.
    verdicts : mapping of str to tuple of str
        ``"met"``, ``"violated"`` or ``"undecided"`` by requirement and run; under ``"all"`` of all together.
    margins : mapping of str to ndarray, shape (n,)
        By requirement; nan where there is none.
    outcomes : tuple of str
        Of each run; ``"failed: ..."`` if it did not start.
    replicates : int
        Independent parts of equal size that the sample consists of, one after the other; 1 if it has none.
    """

    parameters: Mapping[str, Array]
    verdicts: Mapping[str, tuple[Verdict, ...]]
    margins: Mapping[str, Array]
    outcomes: tuple[str, ...]
    replicates: int = 1

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
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> ToleranceStudy:
    """Run a model with parameters sampled within their tolerances, and judge its requirements in every run.

    Parameters
    ----------
    n, seed, sample
        As for :func:`fsm_dyn.analysis.sampling.sampled_deviations`.
    progress : callable, optional
        Called with the number of runs done and of all.
    options
        As for ``fsm_dyn.Simulator.run``; ``parameters`` are those about which is sampled.

    Raises
    ------
    InputError
        The model has no requirements or no tolerances, or an option is impossible.
    """
    mechanism = graph.automaton.mechanism
    if not mechanism.requirements:
        raise InputError("the model has no requirements", remedy="write a section `requirements`")
    given = dict(options.pop("parameters", None) or {})
    values = parameter_values(mechanism, given)
    sampled = sampled_deviations(deviations(mechanism, values), sample, n, seed)
    points = {name: values[name] + column for name, column in sampled.items()}
    names = tuple(mechanism.requirements)
    verdicts: dict[str, list[Verdict]] = {name: [] for name in (*names, ALL)}
    margins = {name: np.full(n, np.nan) for name in names}
    outcomes: list[str] = []
    simulator = Simulator(graph)
    for i in range(n):
        point = {name: float(column[i]) for name, column in points.items()}
        found: dict[str, Verdict] = dict.fromkeys(names, "undecided")
        try:
            run = simulator.run(parameters={**given, **point}, on_failure="return", **options)
        except (InputError, RunError) as error:
            outcomes.append(f"failed: {str(error).splitlines()[0]}")
        else:
            outcomes.append(run.outcome.name)
            for name, item in run.judge().items():
                found[name], margins[name][i] = item.verdict, item.margin
        for name in names:
            verdicts[name].append(found[name])
        verdicts[ALL].append(_together(tuple(found.values())))
        if progress is not None:
            progress(i + 1, n)
    replicates = REPLICATES if sample == "sobol" else 1
    return ToleranceStudy(
        points, {name: tuple(items) for name, items in verdicts.items()}, margins, tuple(outcomes), replicates
    )


def _together(verdicts: tuple[Verdict, ...]) -> Verdict:
    if "violated" in verdicts:
        return "violated"
    return "undecided" if "undecided" in verdicts else "met"
