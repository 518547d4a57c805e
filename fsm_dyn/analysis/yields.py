"""Yield of a mechanism whose parameters have tolerances: the share of runs that meet the model's requirements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, spearmanr, t

from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.arrays import BoolArray

_LEVEL: Final = 0.95


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


def yield_estimate(verdicts: npt.NDArray[Any], replicates: int, among: BoolArray) -> YieldEstimate:
    """Return the yield of a requirement in a sample.

    Parameters
    ----------
    verdicts : ndarray of str, shape (n,)
    replicates : int
        Independent parts of equal size that the sample consists of, one after the other.
    among : ndarray of bool, shape (n,)
        The runs that count.
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


def rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's rank correlation of finite values; nan where one of both does not vary."""
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return float("nan")
    return float(spearmanr(a, b).statistic)
