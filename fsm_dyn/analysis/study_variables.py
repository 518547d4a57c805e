"""Variables of a study by name, parameters to variants; samples of parameters within their tolerances."""

from __future__ import annotations

import inspect
import itertools
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from scipy.stats import norm, qmc

from fsm_dyn.automaton.compilation import compile as compile_mechanism
from fsm_dyn.automaton.initial_values import initial_values
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import ExpressionError, FsmDynError, InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.body_forms import SIGNS
from fsm_dyn.language.evaluate import Deviation, ParameterValue, deviations, evaluate_expression
from fsm_dyn.language.loader import load
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import ArgumentUnits, is_plain, override_values, parameter_values, units
from fsm_dyn.programs.pin_programs import PinPrograms
from fsm_dyn.run.input_signals import input_in_effect, resolve_inputs, scaled_input, scenario_schedules
from fsm_dyn.run.pins import pin_programs
from fsm_dyn.run.run_options import refuse_unknown

INITIAL: Final = "initial."
INPUT: Final = "input."
AMPLITUDE: Final = "amplitude."
SCENARIO: Final = "scenario"
VARIANT: Final = "variant"
NO_VARIANT: Final = "none"  # the model itself, among its variants
WORDS: Final = (SCENARIO, VARIANT, f"{INITIAL}mode")  # variables with names as values
LONGEST_LABEL: Final = 60  # characters of a value other than a number

Label = float | str  # a value of a case in the rows of a study


def check_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options unknown to ``Simulator.run``, as Python refuses an argument. Raises TypeError: there is one."""
    refuse_unknown(function.__name__, options, [*inspect.signature(function).parameters])
    for name in ("progress", "on_failure"):
        if name in options:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")


def chooses_graph(mechanism: Mechanism, name: str) -> bool:
    """Return whether a name is that of the model's variants, each with its own graph."""
    return name == VARIANT and name not in mechanism.parameters


def graphs_by_variant(graph: ModeGraph, vary: Mapping[str, Sequence[Any]]) -> dict[str | None, ModeGraph]:
    """Return the compiled graph of each variant in a study by its name; without a variant the given one.

    Raises InputError: the model has no such variant.
    """
    mechanism = graph.automaton.mechanism
    if VARIANT not in vary or not chooses_graph(mechanism, VARIANT):
        return {None: graph}
    found: dict[str | None, ModeGraph] = {}
    for value in vary[VARIANT]:
        if value in found:
            continue
        if value is None or (value == NO_VARIANT and NO_VARIANT not in mechanism.variants):
            found[value] = graph
        elif value in mechanism.variants:
            found[value] = compile_mechanism(load(mechanism.name, text=mechanism.text, variant=value))
        else:
            raise InputError(
                f"'{graph.name}' has no variant '{value}'",
                allowed=", ".join((*mechanism.variants, f"{NO_VARIANT} (the model as it is)")),
                remedy=did_you_mean(str(value), mechanism.variants),
            )
    return found


def run_arguments(graph: ModeGraph, given: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``Simulator.run`` for a case.

    ``graph``: graph of the run: of the case's variant. ``given``: arguments of all cases; values of a case replace
    them. ``case``: values by the varied names.
    """
    known = graph.automaton.mechanism.parameters
    arguments = dict(given)
    parts: dict[str, dict[str, Any]] = {
        part: dict(given.get(part) or {}) for part in ("parameters", "initial", "inputs")
    }
    amplitudes: dict[str, Any] = {}
    for name, value in case.items():
        if name in known:
            parts["parameters"][name] = value
        elif name.startswith(INITIAL):
            parts["initial"][name.removeprefix(INITIAL)] = value
        elif name.startswith(INPUT):
            parts["inputs"][name.removeprefix(INPUT)] = value
        elif name.startswith(AMPLITUDE):
            amplitudes[name.removeprefix(AMPLITUDE)] = value
        elif name == SCENARIO:
            arguments["scenario"] = value
        elif name != VARIANT:
            parts["parameters"][name] = value  # refused by its name
    for name, factor in amplitudes.items():
        value = input_in_effect(graph.automaton, name, parts["inputs"], arguments.get("scenario"))
        parts["inputs"][name] = scaled_input(value, amplitude_factor(name, factor))
    return arguments | {part: values or None for part, values in parts.items()}


def in_numbers(mechanism: Mechanism, name: str, values: Sequence[Any]) -> list[Any]:
    """Return the values of a name as numbers, SI, if they are: reals, and texts of a parameter."""
    return [_in_numbers(mechanism, name, value) for value in values]


def _in_numbers(mechanism: Mechanism, name: str, value: Any) -> Any:
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, str) and name in mechanism.parameters:
        with suppress(FsmDynError):  # refused by the run
            return override_values(mechanism, {name: value})[name][0]
    return value


def check_variables(
    graph: ModeGraph, vary: Mapping[str, Sequence[Any]], given: Mapping[str, Any], until: float, *, combined: bool
) -> None:
    """Refuse names of a graph not open to variation, and invalid values.

    ``given``: arguments of ``Simulator.run`` for all cases; ``until``: end of the runs, s; ``combined``: whether to
    check all combinations of parameters, or each value alone. Raises InputError: a name is unknown, a value is not
    allowed, or a name is varied and given at once.
    """
    automaton, mechanism = graph.automaton, graph.automaton.mechanism
    parameters = {name: values for name, values in vary.items() if name in mechanism.parameters}
    check_names(graph, vary, given)
    base = dict(given.get("parameters") or {})
    if combined:
        for point in itertools.product(*parameters.values()):
            parameter_values(mechanism, base | dict(zip(parameters, point, strict=True)))
    else:
        for name, values in parameters.items():
            for value in values:
                override_values(mechanism, {name: value})
    typical = {name: values[0] for name, values in parameters.items()}
    named = parameter_values(mechanism, base | typical) if base or typical else graph.values
    for name, values in vary.items():
        _, _, rest = name.partition(".")
        for value in () if name in parameters else values:
            if name == SCENARIO and value is not None:
                scenario_schedules(automaton, value)
            elif name.startswith(INITIAL):
                initial_values(automaton, named, graph.parameters, {rest: value})
            elif name.startswith(INPUT):
                resolve_inputs(automaton, named, {rest: value}, (0.0, until))
            elif name.startswith(AMPLITUDE):
                amplitude_factor(rest, value)


def check_shared(graph: ModeGraph, given: Mapping[str, Any], until: float) -> None:
    """Refuse a scenario, inputs and initial values invalid in all runs of a study.

    ``given``: arguments of ``Simulator.run`` for all cases; ``until``: end of the runs, s. Raises InputError: a name is
    unknown, or a value is not allowed.
    """
    automaton, overrides = graph.automaton, given.get("parameters")
    values = parameter_values(automaton.mechanism, overrides) if overrides else graph.values
    if given.get(SCENARIO) is not None:
        scenario_schedules(automaton, given[SCENARIO])
    resolve_inputs(automaton, values, given.get("inputs") or {}, (0.0, until))
    initial_values(automaton, values, graph.parameters, given.get("initial"))


def check_names(graph: ModeGraph, vary: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse names not open to variation."""
    mechanism, layout = graph.automaton.mechanism, graph.automaton.terms.layout
    states = (*layout.q, *layout.u, *layout.memory)
    known = [*mechanism.parameters, *(INITIAL + name for name in (*states, "mode", "settle"))]
    known += [prefix + name for prefix in (INPUT, AMPLITUDE) for name in layout.w]
    known += [SCENARIO] if mechanism.scenarios else []
    known += [VARIANT] if VARIANT in vary else []  # checked by the compilation
    for name in vary:
        if name in known:
            if name == SCENARIO and name not in mechanism.parameters and given.get(SCENARIO) is not None:
                raise InputError("the scenario is varied and given", found=str(given[SCENARIO]), remedy="leave out one")
            continue
        hint = did_you_mean(name, known)
        if name == SCENARIO:
            hint = "the model has no scenarios"
        if name in states:
            hint = f"an initial value is varied as '{INITIAL}{name}'"
        elif name in layout.w:
            hint = f"an input is varied as '{INPUT}{name}', a factor on its schedule as '{AMPLITUDE}{name}'"
        raise InputError(
            f"a study of '{graph.name}' cannot vary '{name}': it is no parameter, initial value or input of it",
            found=name,
            allowed=_allowed(mechanism, states, layout.w),
            remedy=hint,
        )


def _allowed(mechanism: Mechanism, states: Sequence[str], inputs: Sequence[str]) -> str:
    found = [", ".join(mechanism.parameters)] if mechanism.parameters else []
    found.append(f"{INITIAL}NAME of {', '.join((*states, 'mode'))}")
    if inputs:
        found.append(f"{INPUT}NAME or {AMPLITUDE}NAME of {', '.join(inputs)}")
    found += [SCENARIO] if mechanism.scenarios else []
    found += [VARIANT] if mechanism.variants else []
    return "; ".join(found)


def amplitude_factor(name: str, value: Any) -> float:
    """Return a factor on the schedule of an input."""
    if isinstance(value, str) and is_plain(value):
        try:
            return evaluate_expression(value, {})
        except ExpressionError:
            pass
    elif not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise InputError(
        f"the amplitude of input '{name}' is a factor on its schedule",
        found=str(value)[:LONGEST_LABEL],
        allowed="a number without a unit",
        remedy=f"a value of the input itself is varied as '{INPUT}{name}'",
    )


def check_quantities(graph: ModeGraph, chosen: Sequence[str]) -> None:
    """Refuse quantities other than outputs, coordinates, speeds and forces in connections of a graph."""
    layout = graph.automaton.terms.layout
    known = (*graph.automaton.mechanism.outputs, *layout.q, *layout.u)
    of_connections = [name for name in chosen if name.startswith("pin.")]
    if of_connections:
        pin_programs_of(graph).outputs(of_connections)
    for name in chosen:
        if name not in known and name not in of_connections:
            mechanism = graph.automaton.mechanism
            listed = (
                f"write `outputs: {{{name}_output: {name}}}`" if name in (*mechanism.memory, *mechanism.inputs) else ""
            )
            raise InputError(f"'{name}' is no quantity of '{graph.name}'", remedy=listed or did_you_mean(name, known))


def pin_programs_of(graph: ModeGraph) -> PinPrograms:
    """Return the programs of the forces in the connections of a graph."""
    return pin_programs(graph.automaton.mechanism, [(row.name, row.role) for row in graph.automaton.rows])


def labels(mechanism: Mechanism, vary: Mapping[str, Sequence[Any]]) -> list[list[Label]]:
    """Return the values of each name as numbers (SI), or as texts."""
    return [
        [override_values(mechanism, {name: value})[name][0] for value in values]
        if name in mechanism.parameters
        else [_label(value) for value in values]
        for name, values in vary.items()
    ]


def _label(value: Any) -> Label:
    if value is None:
        return NO_VARIANT
    if isinstance(value, str):
        try:
            return evaluate_expression(value, {})
        except ExpressionError:
            return value
    return float(value) if isinstance(value, numbers.Real) else str(value)[:LONGEST_LABEL]


def variable_units(mechanism: Mechanism, names: Iterable[str]) -> dict[str, str]:
    """Return the units of quantities and of varied values, if the model has units."""
    known = units(mechanism)
    found = {}
    for name in names:
        if name in known:
            found[name] = known[name]
        elif name.startswith((INITIAL, INPUT)) and name.partition(".")[2] in known:
            found[name] = known[name.partition(".")[2]]
    return found


# -- Samples of parameters within their tolerances, and their distributions ----------------------------------

# -- Samples of parameters within their tolerances -----------------------------------------------------------

REPLICATES: Final = 8  # scrambled sequences of a Sobol' sample, independent of each other
SAMPLES: Final = ("random", "lhs", "sobol")


def sampled_deviations(deviations: Mapping[str, Deviation], sample: str, n: int, seed: int) -> dict[str, Floats]:
    """Return deviations of parameters from their values, n of each, SI.

    ``deviations``: distributions by parameter. ``sample``, {'random', 'lhs', 'sobol'}: independent points, one Latin
    hypercube, or scrambled Sobol' sequences (``REPLICATES`` of n / REPLICATES points, one after the other). ``n``:
    number of points; of a Sobol' sample REPLICATES times a power of two. ``seed``: the same seed gives the same points.
    Raises InputError: there are no distributions, or the sample is unknown or of an impossible size.
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


def _open(column: Floats) -> Floats:
    """Return numbers of [0, 1) moved off 0, for a finite quantile of a normal distribution."""
    smallest = np.finfo(np.float64).tiny
    moved: Floats = np.maximum(column, smallest)
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

    ``vary``: distributions of scalar parameters, ``initial.NAME`` of coordinates, speeds and discrete variables,
    ``input.NAME`` (constant) and ``amplitude.NAME`` (a factor on the schedule of an input): ``"1 m +- 5 cm"``,
    ``{"normal": ..., "sigma": ...}``, ``{"uniform": [..., ...]}``, ``{"value": ..., "tolerance": [..., ...]}`` or two
    limits; numbers are SI. ``given``: arguments of ``Simulator.run`` for all runs. ``tolerances``: whether to include
    the tolerances of the file. Raises InputError: a name cannot be varied, a distribution is none, or a value of it is
    impossible.
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
