"""Variables of a study by name: parameters, initial values, inputs and their amplitudes, scenarios, variants."""

from __future__ import annotations

import inspect
import itertools
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fsm_dyn.automaton.compilation import compile as compile_mechanism
from fsm_dyn.automaton.initial_values import initial_values
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import ExpressionError, FsmDynError, InputError, did_you_mean
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.loader import load
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import is_plain, override_values, parameter_values, units
from fsm_dyn.programs.pin_programs import PinPrograms
from fsm_dyn.run.pins import pin_programs
from fsm_dyn.run.run_inputs import input_in_effect, resolve_inputs, scaled_input, scenario_schedules
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
    """Refuse options unknown to ``Simulator.run``, as Python refuses an argument.

    Raises
    ------
    TypeError
        There is one.
    """
    refuse_unknown(function.__name__, options, [*inspect.signature(function).parameters])
    for name in ("progress", "on_failure"):
        if name in options:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")


def chooses_graph(mechanism: Mechanism, name: str) -> bool:
    """Return whether a name is that of the model's variants, each with its own graph."""
    return name == VARIANT and name not in mechanism.parameters


def graphs_by_variant(graph: ModeGraph, vary: Mapping[str, Sequence[Any]]) -> dict[str | None, ModeGraph]:
    """Return the compiled graph of each variant in a study by its name; without a variant the given one.

    Raises
    ------
    InputError
        The model has no such variant.
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

    Parameters
    ----------
    graph : ModeGraph
        Graph of the run: of the case's variant.
    given : mapping
        Arguments of all cases; values of a case replace them.
    case : mapping
        Values by the varied names.
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

    Parameters
    ----------
    given : mapping
        Arguments of ``Simulator.run`` for all cases.
    until : float
        End of the runs, s.
    combined : bool
        Whether to check all combinations of parameters, or each value alone.

    Raises
    ------
    InputError
        A name is unknown, a value is not allowed, or a name is varied and given at once.
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

    Parameters
    ----------
    given : mapping
        Arguments of ``Simulator.run`` for all cases.
    until : float
        End of the runs, s.

    Raises
    ------
    InputError
        A name is unknown, or a value is not allowed.
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
            raise InputError(f"'{name}' is no quantity of '{graph.name}'", remedy=did_you_mean(name, known))


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
