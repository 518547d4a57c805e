"""Points of a study: what is varied in each of its runs, over a grid or within tolerances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fsm_dyn.analysis.distributions import LONGEST_CHECKED, Distribution, VariedQuantity, varied_quantities
from fsm_dyn.analysis.study_runs import Cases
from fsm_dyn.analysis.study_variables import (
    NO_VARIANT,
    VARIANT,
    WORDS,
    Label,
    check_shared,
    check_variables,
    chooses_graph,
    graphs_by_variant,
    in_numbers,
    labels,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.results.arrays import IntArray
from fsm_dyn.spec.parameter_tolerances import Deviation


@dataclass(frozen=True)
class StudyPart:
    """Runs of one graph: their numbers in the study, and what is varied in each."""

    graph: ModeGraph
    numbers: IntArray
    cases: Cases


@dataclass(frozen=True)
class StudyPoints:
    """What is varied in each run of a study.

    Attributes
    ----------
    parameters : mapping of str to ndarray, shape (n,)
        Numbers, SI, and texts where a value is none; nan where a variant has no such parameter.
    parts : tuple of StudyPart
        The runs by variant.
    nominal : mapping of str to float
        Of what has a nominal value, SI.
    distributions : mapping of str to str
        Of a sample, as text, SI.
    replicates : int
        Independent parts of equal size of a sample, one after the other; 1 if it has none.
    """

    parameters: Mapping[str, Array]
    parts: tuple[StudyPart, ...]
    nominal: Mapping[str, float]
    distributions: Mapping[str, str] = field(default_factory=dict)
    replicates: int = 1

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(len(part.numbers) for part in self.parts)


def grid_points(
    graph: ModeGraph, vary: Mapping[str, Sequence[Any]], given: Mapping[str, Any], most_checked: int
) -> StudyPoints:
    """Return every combination of values, the last name the fastest.

    Parameters
    ----------
    graph : ModeGraph
    vary : mapping of str to sequence
        Values by name, as of :func:`fsm_dyn.study`.
    given : mapping
        Arguments of ``Simulator.run`` that all runs share.
    most_checked : int
        Number of combinations up to which each is checked, not only each value.

    Raises
    ------
    InputError
        There is no combination, or a name or a value is impossible.
    """
    counts = [len(values) for values in vary.values()]
    if not vary or not all(counts):
        raise InputError("a study needs a value of everything it varies")
    graphs = graphs_by_variant(graph, vary)
    until = float(given.get("until") or LONGEST_CHECKED)
    for each in graphs.values():
        check_shared(each, given, until)
        check_variables(each, vary, given, until, combined=math.prod(counts) <= most_checked)
    mechanism = graph.automaton.mechanism
    places = dict(zip(vary, np.indices(counts).reshape(len(counts), -1), strict=True))
    values = {
        variant: {
            name: in_numbers(each.automaton.mechanism, name, given_values)
            for name, given_values in vary.items()
            if not chooses_graph(mechanism, name)
        }
        for variant, each in graphs.items()
    }
    columns = {name: _column(texts)[places[name]] for name, texts in zip(vary, labels(mechanism, vary), strict=True)}
    nominal = {name: graph.values[name] for name in vary if name in mechanism.parameters}
    return StudyPoints(
        columns,
        _parts(graphs, values, places, math.prod(counts), vary.get(VARIANT)),
        {name: value for name, value in nominal.items() if isinstance(value, float)},
    )


def sampled_points(
    graph: ModeGraph, vary: Mapping[str, Distribution], given: Mapping[str, Any], sample: str, n: int, seed: int
) -> StudyPoints:
    """Return a sample of tolerances and of other distributions, and of scenarios, variants and initial modes.

    Parameters
    ----------
    graph : ModeGraph
    vary : mapping
        Distributions as for :func:`fsm_dyn.analysis.distributions.varied_quantities`, and names of scenarios, variants
        and initial modes, each as likely as the others.
    given : mapping
        Arguments of ``Simulator.run`` that all runs share.
    sample, n, seed
        As for :func:`fsm_dyn.analysis.sampling.sampled_deviations`.

    Raises
    ------
    InputError
        There is nothing to sample, or a name, a distribution or the size of the sample is impossible.
    """
    from fsm_dyn.analysis.sampling import REPLICATES, sampled_deviations  # grids do not wait for SciPy's statistics

    mechanism = graph.automaton.mechanism
    words = {name: _names(name, vary[name]) for name in vary if name in WORDS and name not in mechanism.parameters}
    graphs = graphs_by_variant(graph, words)
    varied: dict[str | None, dict[str, VariedQuantity]] = {}
    for variant, each in graphs.items():
        check_variables(each, words, given, float(given.get("until") or LONGEST_CHECKED), combined=False)
        others = {name: distribution for name, distribution in vary.items() if name not in words}
        varied[variant] = varied_quantities(each, others, given)
    every = dict.fromkeys(name for quantities in varied.values() for name in quantities)
    values: dict[str | None, dict[str, Any]] = {}
    places: dict[str, IntArray] = {}
    for variant, quantities in varied.items():
        deviations = {name: quantities[name].deviation if name in quantities else Deviation() for name in every}
        deviations |= {name: Deviation(0.0, float(len(names))) for name, names in words.items()}
        drawn = sampled_deviations(deviations, sample, n, seed)
        places = {name: np.minimum(drawn[name], len(names) - 1).astype(np.int64) for name, names in words.items()}
        values[variant] = {name: item.nominal + drawn[name] for name, item in quantities.items()}
        values[variant] |= {name: names for name, names in words.items() if not chooses_graph(mechanism, name)}
    parts = _parts(graphs, values, places, n, words.get(VARIANT))
    columns = {name: np.full(n, np.nan) for name in every}
    for part, quantities in zip(parts, varied.values(), strict=True):
        for name in quantities:
            columns[name][part.numbers] = np.asarray(part.cases.values[name])[part.numbers]
    columns |= {name: _column(texts)[places[name]] for name, texts in zip(words, labels(mechanism, words), strict=True)}
    nominal = {name: item.nominal for quantities in reversed(varied.values()) for name, item in quantities.items()}
    described = _described(varied) | {name: _one_of(names) for name, names in words.items()}
    return StudyPoints(columns, parts, nominal, described, REPLICATES if sample == "sobol" else 1)


def _parts(
    graphs: Mapping[str | None, ModeGraph],
    values: Mapping[str | None, Mapping[str, Sequence[Any] | Array]],
    places: Mapping[str, IntArray],
    n: int,
    variants: Sequence[str | None] | None,
) -> tuple[StudyPart, ...]:
    """Return the n runs by variant; a name without ``places`` has a value for each run."""
    parts = []
    for variant, graph in graphs.items():
        numbers = np.arange(n)
        if len(graphs) > 1 and variants is not None:
            numbers = np.flatnonzero(np.array([name == variant for name in variants])[places[VARIANT]])
        which = [places[name][numbers] if name in places else numbers for name in values[variant]]
        cases = Cases(values[variant], np.array(which, dtype=np.int64).reshape(len(which), len(numbers)))
        parts.append(StudyPart(graph, numbers, cases))
    return tuple(parts)


def _column(values: Sequence[Label]) -> Array:
    """Return an array of numbers, or of objects if some of the values are texts."""
    return np.array(values, dtype=object if any(isinstance(value, str) for value in values) else np.float64)


def _names(name: str, given: Any) -> list[str | None]:
    if isinstance(given, list | tuple) and given and all(item is None or isinstance(item, str) for item in given):
        return [*given]
    raise InputError(f"a sample takes '{name}' from a list of names", found=str(given)[:60], allowed="[FIRST, SECOND]")


def _described(varied: Mapping[str | None, Mapping[str, VariedQuantity]]) -> dict[str, str]:
    """Return the distributions as text; of a name that has several, each with its variants."""
    found: dict[str, dict[str, list[str]]] = {}
    for variant, quantities in varied.items():
        for name, item in quantities.items():
            found.setdefault(name, {}).setdefault(item.describe(), []).append(variant or NO_VARIANT)
    return {
        name: next(iter(texts)) if len(texts) == 1
        else "; ".join(f"{text} ({', '.join(variants)})" for text, variants in texts.items())
        for name, texts in found.items()
    }  # fmt: skip


def _one_of(names: Sequence[str | None]) -> str:
    return f"{', '.join(name or NO_VARIANT for name in names)}, each as likely"
