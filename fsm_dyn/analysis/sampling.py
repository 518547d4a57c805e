"""Samples of parameters within their tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from scipy.stats import norm, qmc

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.modes.elimination import Array
from fsm_dyn.spec.parameter_tolerances import Deviation

REPLICATES: Final = 8  # scrambled sequences of a Sobol' sample, independent of each other
SAMPLES: Final = ("random", "lhs", "sobol")


def sampled_deviations(deviations: Mapping[str, Deviation], sample: str, n: int, seed: int) -> dict[str, Array]:
    """Return deviations of parameters from their values, n of each, SI.

    Parameters
    ----------
    deviations : Mapping[str, Deviation]
        Distributions by parameter.
    sample : {'random', 'lhs', 'sobol'}
        Independent points, one Latin hypercube, or scrambled Sobol' sequences (``REPLICATES`` of n / REPLICATES points,
        one after the other).
    n : int
        Number of points; of a Sobol' sample REPLICATES times a power of two.
    seed : int
        The same seed gives the same points.

    Raises
    ------
    InputError
        There is nothing to sample, or the sample is unknown or of an impossible size.
    """
    if sample not in SAMPLES:
        known = ("grid", *SAMPLES)
        raise InputError(
            f"there is no sample '{sample}'",
            found=sample,
            allowed=", ".join(known),
            remedy=did_you_mean(sample, known),
        )
    if not deviations:
        raise InputError("no parameter of the model has a tolerance", remedy="write `m: 4 kg +- 0.1 kg`")
    size = n // REPLICATES
    if n < 1 or (sample == "sobol" and (n % REPLICATES or size & (size - 1))):
        allowed, remedy = "1 or more", ""
        if sample == "sobol":
            below = REPLICATES << max(size.bit_length() - 1, 0)
            allowed = f"{REPLICATES} times a power of two"
            remedy = f"{below:,} or {2 * below:,} runs" if size > 0 else f"{below} runs"
        raise InputError(
            f"a sample '{sample}' of this size is impossible", found=f"{n:,}", allowed=allowed, remedy=remedy
        )
    random = np.random.default_rng(seed)
    if sample == "random":
        points = random.random((n, len(deviations)))
    elif sample == "lhs":
        points = qmc.LatinHypercube(len(deviations), rng=random).random(n)
    else:
        sequences = (qmc.Sobol(len(deviations), rng=generator) for generator in random.spawn(REPLICATES))
        points = np.vstack([sequence.random(size) for sequence in sequences])
    return {
        name: item.sigma * norm.ppf(_open(column)) if item.sigma else item.lower + (item.upper - item.lower) * column
        for (name, item), column in zip(deviations.items(), points.T, strict=True)
    }


def _open(column: Array) -> Array:
    """Return numbers of [0, 1) moved off 0, where a normal distribution has no finite quantile."""
    smallest = np.finfo(np.float64).tiny
    moved: Array = np.maximum(column, smallest)
    return moved
