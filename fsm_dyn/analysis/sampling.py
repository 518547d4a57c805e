"""Samples of parameters within their tolerances, and their distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.stats import norm, qmc

from fsm_dyn.analysis.study_variables import (
    AMPLITUDE,
    INITIAL,
    INPUT,
    WORDS,
    amplitude_factor,
    check_names,
    check_shared,
    check_variables,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.derive.elimination import Array
from fsm_dyn.language.body_forms import SIGNS
from fsm_dyn.language.evaluate import Deviation, ParameterValue, deviations, evaluate_expression
from fsm_dyn.language.values import ArgumentUnits, override_values, parameter_values

# -- Samples of parameters within their tolerances -----------------------------------------------------------

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
        There are no distributions, or the sample is unknown or of an impossible size.
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
    """Return numbers of [0, 1) moved off 0, for a finite quantile of a normal distribution."""
    smallest = np.finfo(np.float64).tiny
    moved: Array = np.maximum(column, smallest)
    return moved


# -- Distributions of varied quantities ----------------------------------------------------------------------
#
# A sample or a search varies parameters, initial values, inputs and their amplitudes.

Distribution = str | Mapping[str, Any] | Sequence[float | str]

_FORMS: Final = (
    "'1 m +- 5 cm', {normal: 1 m, sigma: 2 cm}, {uniform: [0.9 m, 1.1 m]}, {value: 1 m, tolerance: [-5 cm, 1 cm]} "
    "or two limits"
)
_WORDS: Final = ("mode", "settle")  # initial values other than numbers
LONGEST_CHECKED: Final = 60.0  # s, for the check of inputs without a given end


@dataclass(frozen=True)
class VariedQuantity:
    """A varied quantity: its nominal value, SI, and the deviations from it."""

    nominal: float
    deviation: Deviation

    def describe(self) -> str:
        """Return the distribution as text, SI."""
        if self.deviation.sigma:
            return f"normal, {self.nominal:g} with standard deviation {self.deviation.sigma:g}"
        lower, upper = self.nominal + self.deviation.lower, self.nominal + self.deviation.upper
        return f"uniform from {lower:g} to {upper:g}"


def varied_quantities(
    graph: ModeGraph,
    vary: Mapping[str, Distribution] | None,
    given: Mapping[str, Any],
    *,
    tolerances: bool = True,
) -> dict[str, VariedQuantity]:
    """Return the varied quantities by name: the tolerances of the model file, and the given ones in addition.

    Parameters
    ----------
    graph : ModeGraph
    vary : mapping, optional
        Distributions of scalar parameters, ``initial.NAME`` of coordinates, speeds and discrete variables,
        ``input.NAME`` (constant) and ``amplitude.NAME`` (a factor on the schedule of an input): ``"1 m +- 5 cm"``,
        ``{"normal": ..., "sigma": ...}``, ``{"uniform": [..., ...]}``, ``{"value": ..., "tolerance": [..., ...]}`` or
        two limits; numbers are SI.
    given : mapping
        Arguments of ``Simulator.run`` for all runs.
    tolerances : bool
        Whether to include the tolerances of the file.

    Raises
    ------
    InputError
        A name cannot be varied, a distribution is none, or a value of it is impossible.
    """
    mechanism = graph.automaton.mechanism
    overrides = dict(given.get("parameters") or {})
    chosen = dict(vary or {})
    values = parameter_values(mechanism, overrides)
    check_shared(graph, given, float(given.get("until") or LONGEST_CHECKED))
    found: dict[str, VariedQuantity] = {}
    for name, deviation in (deviations(mechanism, values) if tolerances else {}).items():
        if name not in chosen:
            value = values[name]
            found[name] = VariedQuantity(float(value if isinstance(value, float) else value[0]), deviation)
    reader = _DistributionReader(graph, values)
    for name, distribution in chosen.items():
        if name in WORDS and name not in mechanism.parameters:
            raise InputError(f"'{name}' is no number that a search could vary", remedy="search with each by itself")
        check_names(graph, {name: []}, given)
        found[name] = reader.quantity(name, distribution)
        nominal, deviation = found[name].nominal, found[name].deviation
        ends = [nominal + deviation.lower, nominal + deviation.upper]
        check_variables(graph, {name: ends}, given, float(given.get("until") or LONGEST_CHECKED), combined=False)
    return found


class _DistributionReader:
    """Reads distributions of a graph's quantities, with these parameters."""

    def __init__(self, graph: ModeGraph, values: Mapping[str, ParameterValue]) -> None:
        self._mechanism, self._values = graph.automaton.mechanism, values
        self._units = ArgumentUnits(self._mechanism)

    def quantity(self, name: str, given: Distribution) -> VariedQuantity:
        """Return a varied quantity."""
        refused = InputError(f"no distribution of '{name}'", found=str(given)[:60], allowed=_FORMS)
        if isinstance(given, str):
            sign = next((sign for sign in SIGNS if sign in given), None)
            if sign is None:
                raise refused
            value, _, half = (part.strip() for part in given.partition(sign))
            given = {"value": value, "tolerance": [f"-({half})", half]}
        elif not isinstance(given, Mapping):
            given = {"uniform": given}
        keys = set(given)
        if keys == {"normal", "sigma"}:
            sigma = self._number(name, given["sigma"])
            if not sigma > 0.0:
                raise InputError(
                    f"the standard deviation of '{name}' is not positive", found=str(given["sigma"])[:60]
                )  # fmt: skip
            return VariedQuantity(self._number(name, given["normal"]), Deviation(sigma=sigma))
        limits = given.get("uniform", given.get("tolerance"))
        if keys not in ({"uniform"}, {"value", "tolerance"}) or isinstance(limits, str) or len(limits) != 2:
            raise refused
        lower, upper = (self._number(name, limit) for limit in limits)
        nominal = self._number(name, given["value"]) if "value" in given else (lower + upper) / 2.0
        if "uniform" in given:
            lower, upper = lower - nominal, upper - nominal
        if not lower <= 0.0 <= upper:
            raise InputError(f"the range of '{name}' is empty", found=str(limits)[:60], allowed="least first")
        return VariedQuantity(nominal, Deviation(lower, upper))

    def _number(self, name: str, value: Any) -> float:
        """Return a number in the unit of a quantity, SI."""
        _, _, rest = name.partition(".")
        if name.startswith(AMPLITUDE) and name not in self._mechanism.parameters:
            return amplitude_factor(rest, value)
        if name.startswith((INITIAL, INPUT)) and name not in self._mechanism.parameters and rest not in _WORDS:
            if not isinstance(value, str):
                return float(value)
            self._units.check(rest, value, f"'{name}'")
            return evaluate_expression(value, self._values)
        return override_values(self._mechanism, {name: value})[name][0]
