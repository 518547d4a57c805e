"""Input signals of a run: the schedules of the model, and the user's values in their place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.core.errors import ExpressionError, InputError, did_you_mean
from fsm_dyn.derive.elimination import Array
from fsm_dyn.language.dimensions import texts_of, words_of
from fsm_dyn.language.elements import ExpressionSchedule, Schedule, TableSchedule
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression, names_in
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.node_algebra import ScalarAlgebra
from fsm_dyn.language.values import ArgumentUnits
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import tangent
from fsm_dyn.run import input_signals as signals
from fsm_dyn.run.input_signals import InputSignals, KernelSource, PiecewiseCubic
from fsm_dyn.run.time_switches import SwitchWindows, choices

SHORTEST_DEFAULT: Final = 5.0  # s; a run without an end given lasts at least this long
_TABLES: Final = {"linear": signals.linear, "steps": signals.steps}
_TRUTH: Final = "true, false, a condition of t such as `t > 0.1 s`, {'steps': [[time, true or false], ...]}"
JUMP = 1e-9  # a smaller change at a breakpoint counts as continuous

InputValue: TypeAlias = (
    float | str | Sequence[tuple[float, float]] | Mapping[str, Any] | Callable[[float], float] | Array | Schedule
)


@dataclass(frozen=True)
class _Context:
    """Data for turning one input into a source."""

    layout: Layout
    parameters: Mapping[str, ParameterValue]
    span: tuple[float, float]
    automaton: Automaton
    units: ArgumentUnits


def resolve_inputs(
    automaton: Automaton,
    parameters: Mapping[str, ParameterValue],
    given: Mapping[str, InputValue],
    span: tuple[float, float],
) -> InputSignals:
    """Return the inputs of a run.

    Parameters
    ----------
    given : mapping
        For some inputs a number in SI units, an expression of ``t`` and parameters, with or without units, a table of
        (time, value) rows of either, a mapping with one key of ``linear steps expression constant`` as in a model file
        or ``sampled`` (rows of numbers, as a device gave them), a Python callable of the time, or the schedule of a
        scenario.
    span : (float, float)
        Times over which a callable may have to be tabulated, and up to which switches over time are looked for, s.

    Raises
    ------
    InputError
        An input is unknown, or its value none of these.
    """
    names = automaton.terms.layout.w
    for name in given:
        if name not in names:
            raise InputError(
                f"no input '{name}' in '{automaton.mechanism.name}'",
                allowed=", ".join(names) or "this model has none",
                remedy=did_you_mean(name, names),
            )
    context = _Context(automaton.terms.layout, parameters, span, automaton, ArgumentUnits(automaton.mechanism))
    pieces: dict[str, PiecewiseCubic] = {}
    kernels: list[KernelSource] = []
    for name in names:
        if name in given and automaton.mechanism.inputs[name].is_boolean:
            source = _from_boolean(name, given[name], context)
        elif name in given:
            source = _from_value(name, given[name], context)
        else:
            schedule = automaton.mechanism.inputs[name].schedule
            source = signals.constant(0.0) if schedule is None else _from_schedule(name, schedule, context)
        if isinstance(source, PiecewiseCubic):
            _check_continuity(automaton, name, source)
            _check_truth(automaton, name, source)
            pieces[name] = source
        else:
            kernels.append(source)
    programs = [automaton.terms, *(kernel.program for kernel in kernels)]
    assemble = functools.partial(signals.assemble_inputs, names, len(context.layout.p), pieces, kernels)
    if not any(map(choices, programs)):
        return assemble()
    switches = SwitchWindows(programs, parameter_vector(parameters), span[1])
    return signals.InputWindows(switches, assemble).signals(0)


def input_parameters(automaton: Automaton, given: Mapping[str, InputValue]) -> frozenset[str] | None:
    """Return the parameters on which the inputs of a run depend, None if these may be any.

    Parameters
    ----------
    given : mapping
        As for :func:`resolve_inputs`, numbers, expressions and schedules alone.
    """
    if choices(automaton.terms):
        return None  # instants at which the model itself jumps are in the inputs
    own = (item.schedule for name, item in automaton.mechanism.inputs.items() if name not in given)
    try:
        return schedule_parameters(automaton, [*own, *given.values()])
    except ExpressionError:
        return None  # refused at its evaluation


def schedule_parameters(automaton: Automaton, given: Sequence[object]) -> frozenset[str]:
    """Return the parameters named in schedules, or values of inputs as for :func:`resolve_inputs`.

    Raises
    ------
    ExpressionError
        One of them is no expression.
    """
    texts = [
        str(text) for value in given for text in (texts_of(value) if isinstance(value, Schedule) else words_of(value))
    ]
    return frozenset().union(*map(names_in, texts)) & automaton.mechanism.parameters.keys()


def _check_continuity(automaton: Automaton, name: str, source: PiecewiseCubic) -> None:
    """Refuse a jump of the input of a constraint: its force would be infinite."""
    if len(source.start) < 2 or name not in automaton.moving_inputs:
        return
    for piece in range(1, len(source.start)):
        left = source.shifted(piece - 1, float(source.start[piece]))[0]
        right = source.coefficients[piece, 0]
        if abs(right - left) > JUMP:
            raise InputError(
                f"input '{name}' drives a constraint and must be continuous",
                found=f"from {left:g} to {right:g} at {source.start[piece]:g} s",
                allowed="linear tables and expressions; where the slope jumps, the speeds jump with an impulse",
            )


def _check_truth(automaton: Automaton, name: str, source: PiecewiseCubic) -> None:
    """Refuse values of a boolean input that are neither 0 nor 1."""
    if not automaton.mechanism.inputs[name].is_boolean:
        return
    values = source.coefficients[:, 0]
    wrong = values[(values != 0.0) & (values != 1.0)]
    if len(wrong) or source.coefficients[:, 1:].any():
        found = f"{wrong[0]:g}" if len(wrong) else "a ramp"
        raise InputError(f"input '{name}' is boolean", found=found, allowed=_TRUTH)


def scenario_schedules(automaton: Automaton, scenario: str) -> Mapping[str, Schedule]:
    """Return the schedules of one of the model's ``scenarios``.

    Raises
    ------
    InputError
        It has none of that name.
    """
    scenarios = automaton.mechanism.scenarios
    if scenario not in scenarios:
        raise InputError(
            f"'{automaton.mechanism.name}' has no scenario '{scenario}'",
            allowed=", ".join(scenarios) or "it has none: give `inputs`",
            remedy=did_you_mean(scenario, scenarios),
        )
    return scenarios[scenario]


def input_in_effect(
    automaton: Automaton, name: str, given: Mapping[str, InputValue], scenario: str | None
) -> InputValue:
    """Return the value of an input in a run: as given, of its scenario, or of the model.

    Raises
    ------
    InputError
        None of these has a value for it.
    """
    named = scenario_schedules(automaton, scenario) if scenario is not None else {}
    declared = automaton.mechanism.inputs.get(name)
    found = given.get(name, named.get(name, declared.schedule if declared is not None else None))
    if declared is not None and declared.is_boolean:
        raise InputError(f"input '{name}' is boolean, and so has no amplitude", remedy=f"vary `input.{name}` instead")
    if found is None:
        raise InputError(
            f"input '{name}' has no schedule, and so no amplitude",
            allowed="an input with a schedule in the model, the scenario or the arguments of the run",
            remedy=f"give the input `{name}` a value",
        )
    return found


def scaled_input(value: InputValue, factor: float) -> InputValue:
    """Return an input, at every instant a multiple of another one.

    Parameters
    ----------
    value : as for :func:`resolve_inputs`
    factor : float
        1.
    """
    if isinstance(value, TableSchedule):
        return replace(value, points=tuple((time, _scaled_text(point, factor)) for time, point in value.points))
    if isinstance(value, ExpressionSchedule):
        return replace(value, value=_scaled_text(value.value, factor))
    if isinstance(value, Schedule):
        raise TypeError(f"no multiple of the schedule {value.kind!r}")
    if isinstance(value, str):
        return str(_scaled_text(Text(value), factor))
    if callable(value):
        signal = value
        return lambda time: factor * signal(time)
    if isinstance(value, Mapping):
        return {kind: _scaled_part(kind, content, factor) for kind, content in value.items()}
    if np.ndim(value) == 0:
        return factor * float(value)  # type: ignore[arg-type]
    return _scaled_rows(value, factor)


def _scaled_part(kind: str, content: Any, factor: float) -> Any:
    if kind in ("expression", "constant"):
        return str(_scaled_text(Text(str(content)), factor))
    if kind == "sampled":
        rows = np.array(content, dtype=np.float64)
        rows[:, 1:] *= factor  # values and their rates, after the time
        return rows
    return _scaled_rows(content, factor)


def _scaled_rows(rows: Any, factor: float) -> list[tuple[Any, Any]]:
    return [
        (time, str(_scaled_text(Text(value), factor)) if isinstance(value, str) else factor * float(value))
        for time, value in rows
    ]


def _scaled_text(text: Text, factor: float) -> Text:
    return Text(f"({factor!r})*({text})", text.where)


def default_end(
    automaton: Automaton, parameters: Mapping[str, ParameterValue], scenario: Mapping[str, Schedule]
) -> float:
    """Return the end (s) of a run without one given: the last breakpoint of the schedules, or SHORTEST_DEFAULT."""
    own = {name: item.schedule for name, item in automaton.mechanism.inputs.items()}
    times = [
        evaluate_expression(time, parameters)
        for schedule in {**own, **scenario}.values()
        if schedule is not None
        for time in schedule.times
    ]
    return max([*times, SHORTEST_DEFAULT])


def _from_schedule(name: str, schedule: Schedule, context: _Context) -> PiecewiseCubic | KernelSource:
    match schedule:
        case ExpressionSchedule():
            return _from_text(name, schedule.value, context)
        case TableSchedule():
            rows = (tuple(evaluate_expression(text, context.parameters) for text in point) for point in schedule.points)
            return _table_signal(schedule.kind, tuple(rows))
    raise TypeError(f"no input of the schedule {schedule.kind!r}")


@functools.lru_cache(maxsize=256)
def _table_signal(kind: str, rows: tuple[tuple[float, ...], ...]) -> PiecewiseCubic:
    """Return the input of a schedule, which is often the one of the run before; nothing changes it."""
    return _TABLES[kind](rows)


def _from_boolean(name: str, value: InputValue, context: _Context) -> PiecewiseCubic | KernelSource:
    """Return a boolean input from true, false, 1, 0, a condition of ``t``, a table of these, or rows of ticks."""
    if isinstance(value, Schedule):
        return _from_schedule(name, value, context)
    kind, content = next(iter(value.items())) if isinstance(value, Mapping) and len(value) == 1 else ("", value)
    if kind == "sampled":
        return signals.sampled_steps(np.asarray(content, dtype=np.float64))
    if kind in ("", "steps") and isinstance(content, (Sequence, np.ndarray)) and not isinstance(content, str):
        return signals.steps(_table(name, list(content), context))
    if kind in ("", "expression", "constant") and isinstance(content, (float, int, np.number, np.bool_)):
        return signals.constant(float(content))
    if kind not in ("", "expression", "constant") or not isinstance(content, str):
        raise InputError(f"input '{name}' is boolean", found=str(value)[:60], allowed=_TRUTH)
    if content not in ("0", "1"):
        context.units.check_condition(content, f"input '{name}'")
    return _from_text(name, Text(content), context)


def _from_value(name: str, value: InputValue, context: _Context) -> PiecewiseCubic | KernelSource:
    if isinstance(value, str):
        return _from_argument(name, value, context)
    if isinstance(value, Schedule):
        return _from_schedule(name, value, context)
    if callable(value):
        return signals.from_callable(value, context.span)
    if isinstance(value, Mapping):
        return _from_mapping(name, value, context)
    if isinstance(value, Sequence):
        return signals.linear(_table(name, value, context))
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.asarray(np.nan)
    if array.ndim == 0:
        if not np.isfinite(array):
            raise InputError(f"input '{name}' wants a finite number", found=repr(value)[:60])
        return signals.constant(float(array))
    return signals.linear(array)


def _table(name: str, rows: Sequence[Any], context: _Context) -> list[tuple[float, float]]:
    """Return rows of time and value, numbers in SI units or texts with or without a unit, as numbers."""
    found = []
    for row in rows:
        if isinstance(row, (str, float, int)) or len(row) != 2:
            raise InputError(f"input '{name}': a row of its table is a time and a value", found=repr(row)[:60])
        time, value = row
        if isinstance(time, str):
            context.units.check_time(time, f"a time of input '{name}'")
        if isinstance(value, str) and not context.automaton.mechanism.inputs[name].is_boolean:
            context.units.check(name, value, f"input '{name}'")
        found.append((_number(time, context), _number(value, context)))
    return found


def _number(value: Any, context: _Context) -> float:
    return evaluate_expression(value, context.parameters) if isinstance(value, str) else float(value)


def _from_argument(name: str, text: str, context: _Context) -> PiecewiseCubic | KernelSource:
    context.units.check(name, text, f"input '{name}'", over_time=True)
    return _from_text(name, Text(text), context)


def _from_mapping(name: str, value: Mapping[str, Any], context: _Context) -> PiecewiseCubic | KernelSource:
    kinds = ("linear", "steps", "sampled", "expression", "constant")
    if len(value) != 1 or next(iter(value)) not in kinds:
        raise InputError(f"input '{name}'", found=str(dict(value))[:80], allowed="one key of " + ", ".join(kinds))
    kind, content = next(iter(value.items()))
    if kind in ("expression", "constant"):
        return _from_argument(name, str(content), context)
    if kind == "sampled":
        return signals.sampled(
            np.asarray(content, dtype=np.float64), decides=name in context.automaton.inputs_with_rates
        )
    return _TABLES[kind](_table(name, content, context))


def _from_text(name: str, text: Text, context: _Context) -> PiecewiseCubic | KernelSource:
    """An expression of ``t`` and parameters: a constant, or a kernel of its value and three rates."""
    graph = ExpressionGraph()
    symbols: dict[str, Node] = {n: graph.symbol(n) for n in ("t", *context.layout.p)}
    symbols["pi"] = graph.constant(np.pi)
    node = ScalarAlgebra(graph, symbols).scalar(text)
    if node.constant_value is not None:
        return signals.constant(node.constant_value)
    direction = {symbols["t"]: graph.one}
    rate = tangent([node], direction)[0]
    rate2 = tangent([rate], direction)[0]
    rate3 = tangent([rate2], direction)[0]
    program = Program.from_nodes(context.layout, {"input": np.array([node, rate, rate2, rate3], dtype=object)})
    kernels = compile_programs([program])
    return KernelSource(kernels[0].address, (name,), kernels, program)
