"""Intervals of yields contain the true share as often as they claim: each kind of sample, six kinds of region."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from fsm_dyn.analysis.study_results import yield_estimate
from fsm_dyn.analysis.study_variables import REPLICATES, sampled_deviations
from fsm_dyn.language.evaluate import Deviation

UNIFORM, NORMAL = Deviation(-1.0, 1.0), Deviation(sigma=1.0)
_SUM = 2.7  # of three numbers of [-1, 1], from -3: the distribution of Irwin and Hall in halves

# by region: distributions, condition of the requirement, and the share in closed form
REGIONS = {
    "threshold": ({"a": NORMAL}, lambda p: p["a"] < 0.9, norm.cdf(0.9)),
    "sum": (
        dict.fromkeys("abc", UNIFORM), lambda p: p["a"] + p["b"] + p["c"] < _SUM - 3.0,
        sum((-1) ** k * math.comb(3, k) * (_SUM / 2.0 - k) ** 3 for k in range(2)) / 6.0,
    ),
    "box": (
        dict.fromkeys("abcd", UNIFORM),
        lambda p: (p["a"] < 0.8) & (p["b"] < 0.7) & (p["c"] < 0.9) & (p["d"] < 0.95), 0.9 * 0.85 * 0.95 * 0.975,
    ),
    "disc": (dict.fromkeys("ab", UNIFORM), lambda p: p["a"] ** 2 + p["b"] ** 2 < 1.0, math.pi / 4.0),
    "octants": (dict.fromkeys("abc", UNIFORM), lambda p: p["a"] * p["b"] * p["c"] > 0.0, 0.5),
    "rare": (dict.fromkeys("ab", NORMAL), lambda p: p["a"] + p["b"] < 3.0, norm.cdf(3.0 / math.sqrt(2.0))),
}  # fmt: skip


def coverage(sample, n, seeds):
    """Return by region the share of seeds whose interval contains the closed form, and the mean width."""
    found = {}
    for name, (deviations, met, share) in REGIONS.items():
        inside, widths = 0, []
        for seed in range(seeds):
            verdicts = np.where(met(sampled_deviations(deviations, sample, n, seed)), "met", "violated")
            estimate = yield_estimate(verdicts, REPLICATES if sample == "sobol" else 1, np.full(n, True))
            inside += estimate.lower <= share <= estimate.upper
            widths.append(estimate.upper - estimate.lower)
        found[name] = inside / seeds, float(np.mean(widths))
    return found


@pytest.mark.parametrize(
    ("n", "seeds"), [(256, 200), *(pytest.param(n, 1000, marks=pytest.mark.long) for n in (64, 256, 1024))]
)
@pytest.mark.parametrize("sample", ["random", "lhs", "sobol"])
def test_intervals_cover(sample, n, seeds):
    """Of every region 91 % within three standard errors, and 94 % on the average.

    With 1.96 standard errors of eight replicates in place of 2.36 the average would be 91 %.
    """
    found = coverage(sample, n, seeds)
    assert min(inside for inside, _ in found.values()) >= 0.91 - 3.0 * math.sqrt(0.91 * 0.09 / seeds), found
    assert np.mean([inside for inside, _ in found.values()]) >= 0.94, found


def test_replicates_of_sobol_sequences_give_narrower_intervals():
    """Except for a verdict dependent on all parameters together, as in octants."""
    widths = {sample: coverage(sample, 256, 20) for sample in ("random", "sobol")}
    for name in ("threshold", "sum", "box", "disc"):
        assert widths["sobol"][name][1] < 0.75 * widths["random"][name][1]
