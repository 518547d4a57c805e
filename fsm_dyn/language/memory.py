"""Memory of a mechanism as data: controllers, conditions of transitions, names of kernel arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.language.elements import Input
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import Boolean, Compare, Name, Node, Text, Unary, free_names
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.interfaces import Controller
from fsm_dyn.language.model import DiscreteVariable, Mechanism
from fsm_dyn.programs.program import Layout

# -- Sampled controllers as memory ---------------------------------------------------------------------------
#
# Their quantities in the context of the kernels: order and initial values.

_SHARE: Final = 1e-9  # of a step: shift of a sample by rounding


def later_values(controller: Controller, output: str) -> list[str]:
    """Return the names of the delayed values of an output, the next one first."""
    return [f"{output}.later{k}" for k in range(1, controller.delay + 1)]


def count_name(controller: Controller) -> str:
    """Return the name of the number of samples taken."""
    return f"{controller.name}.samples"


def next_name(controller: Controller) -> str:
    """Return the name of the instant of the next sample (s)."""
    return f"{controller.name}.next"


def memory_of_controllers(mechanism: Mechanism) -> list[str]:
    """Return the names of all memory of controllers; the instants of the next samples are the last."""
    controllers = mechanism.controllers.values()
    names = []
    for controller in controllers:
        names += [item.name for item in controller.quantities]
        names += [name for item in controller.outputs for name in later_values(controller, item.name)]
    return [*names, *map(count_name, controllers), *map(next_name, controllers)]


def clock_names(mechanism: Mechanism) -> frozenset[str]:
    """Return the names of the memory for the counts and times of samples."""
    return frozenset(name for item in mechanism.controllers.values() for name in (count_name(item), next_name(item)))


def start_of_memory(mechanism: Mechanism, values: Mapping[str, ParameterValue]) -> dict[str, float]:
    """Return the initial values of memory, of controllers too, by name; the first samples are at time 0."""
    found = {str(name): float(item.initial) for name, item in mechanism.memory.items()}
    found |= dict.fromkeys(memory_of_controllers(mechanism), 0.0)
    for controller in mechanism.controllers.values():
        for item in controller.quantities:
            if item.start is not None:
                start = evaluate_expression(item.start, values)
                found |= dict.fromkeys([item.name, *later_values(controller, item.name)], start)
    return found


def parameters_of_periods(mechanism: Mechanism) -> frozenset[str]:
    """Return the parameters in periods: they change for a new run only."""
    return frozenset(str(name) for item in mechanism.controllers.values() for name in free_names(parse(item.period)))


def sample_counts(mechanism: Mechanism, values: Mapping[str, ParameterValue], until: float) -> dict[str, float]:
    """Return the number of samples of each controller until a time (s)."""
    return {
        controller.name: until / evaluate_expression(controller.period, values)
        for controller in mechanism.controllers.values()
    }


def check_steps(mechanism: Mechanism, values: Mapping[str, ParameterValue], step: float) -> None:
    """Refuse steps of fixed length (s) that do not meet the samples.

    Raises InputError: the period of a controller is no whole multiple of the step.
    """
    for controller in mechanism.controllers.values():
        period = evaluate_expression(controller.period, values)
        count = period / step
        if not abs(count - round(count)) <= _SHARE or round(count) < 1:
            raise InputError(
                f"samples of controller '{controller.name}' lie within steps of method 'moreau_jean'",
                controller.period.where,
                found=f"step = {step:g} s, period = {period:g} s",
                allowed="a period of whole steps",
                remedy=f"step={period / max(1, math.ceil(count)):g}, or an event-driven method",
            )


def check_periods(mechanism: Mechanism, values: Mapping[str, ParameterValue], coincidence: float) -> None:
    """Refuse samples of a controller that would count as one, within this time (s).

    Raises InputError: the period of a controller is not longer than it.
    """
    for controller in mechanism.controllers.values():
        period = evaluate_expression(controller.period, values)
        if not period > coincidence:
            raise InputError(
                f"samples of controller '{controller.name}' count as simultaneous",
                controller.period.where,
                found=f"period = {period:g} s",
                allowed=f"more than the tolerance `coincidence`, {coincidence:g} s",
                remedy="a longer period of the controller",
            )


def check_tick(mechanism: Mechanism, values: Mapping[str, ParameterValue], tick: float) -> None:
    """Refuse a live run with more than one sample of a controller in a tick of this length (s).

    Raises InputError: the period of a controller is shorter than the tick.
    """
    for controller in mechanism.controllers.values():
        period = evaluate_expression(controller.period, values)
        if not period >= tick * (1.0 - _SHARE):
            raise InputError(
                f"controller '{controller.name}' is faster than the tick of the live run",
                controller.period.where,
                found=f"period = {period:g} s",
                allowed=f"{tick:g} s, the period of the tick, or more",
                remedy="a shorter tick (--period), or a longer period of the controller",
            )


def refuse_controllers(mechanism: Mechanism, what: str) -> None:
    """Refuse an analysis of motions continuous in the state if there are controllers.

    Raises InputError: the mechanism has a controller.
    """
    for controller in mechanism.controllers.values():
        raise InputError(
            f"{what} does not take sampled controllers into account",
            controller.where,
            found=f"controller '{controller.name}'",
            remedy="write the controller as a load that depends on the state",
        )


# -- The names of a mechanism in the order of its kernels ----------------------------------------------------


def layout_of(mechanism: Mechanism) -> Layout:
    """Return the arguments of the mechanism's kernels, in order."""
    q = [*mechanism.coordinates]
    for frame in mechanism.frames.values():
        q += [name for name in frame.euler_names if name not in mechanism.coordinates]
    q += parameters_of_contacts(mechanism)
    p: list[str] = []
    for parameter in mechanism.parameters.values():
        p += (
            [f"{parameter.name}[{i}]" for i in range(len(parameter.values))]
            if parameter.is_vector
            else [parameter.name]
        )
    return Layout(
        q=tuple(q),
        u=tuple(speed_definitions(mechanism)),
        p=tuple(p),
        w=tuple(mechanism.inputs),
        contacts=tuple(mechanism.contacts),
        memory=(*mechanism.memory, *memory_of_controllers(mechanism)),
    )


def parameters_of_contacts(mechanism: Mechanism) -> list[str]:
    """Return the curve parameters of contacts, in the order of the contacts."""
    return [contact.parameter for contact in mechanism.contacts.values() if contact.parameter]


def speed_definitions(mechanism: Mechanism) -> dict[str, Text]:
    """Return the definitions of the speeds; without any, each coordinate's rate is one (``<q>_dot``)."""
    if mechanism.speeds:
        return dict(mechanism.speeds)
    return {f"{q}_dot": Text(f"rate({q})", item.where) for q, item in mechanism.coordinates.items()}


# -- Conditions of user-defined transitions: comparisons joined by ``and``, ``or`` and ``not`` ---------------

_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def is_condition(tree: Node, mechanism: Mechanism) -> bool:
    """Whether an expression is true or false, and no number."""
    named: dict[str, DiscreteVariable | Input] = {**mechanism.inputs, **mechanism.memory}
    boolean = isinstance(tree, Name) and tree.id in named and named[tree.id].is_boolean
    return boolean or isinstance(tree, (Compare, Boolean)) or (isinstance(tree, Unary) and tree.op == "not")


def without_negations(tree: Node, *, negated: bool = False) -> Node:
    """Return a condition with ``not`` before names only, by de Morgan's laws."""
    match tree:
        case Unary(op="not", operand=operand):
            return without_negations(operand, negated=not negated)
        case Boolean(op=op, operands=operands):
            other = "or" if op == "and" else "and"
            return Boolean(other if negated else op, tuple(without_negations(x, negated=negated) for x in operands))
        case Compare(op=op, left=left, right=right):
            return Compare(_NEGATED[op], left, right) if negated else tree
    return Unary("not", tree) if negated else tree


def parts_of(condition: Node) -> list[Node]:
    """Return the joined comparisons and names of a condition without negations."""
    if isinstance(condition, Boolean):
        return [part for operand in condition.operands for part in parts_of(operand)]
    return [condition]


def is_steady(tree: Node, mechanism: Mechanism) -> bool:
    """Whether an expression depends on memory, boolean inputs and parameters alone, and so changes in jumps."""
    switched = [name for name, item in mechanism.inputs.items() if item.is_boolean]
    held = {*mechanism.memory, *mechanism.parameters, *memory_of_controllers(mechanism), *switched}
    return free_names(tree) <= held


def with_speeds(mechanism: Mechanism, definitions: Mapping[str, str]) -> Mechanism:
    """Return the mechanism with other speeds; old ones in texts are replaced by their definitions.

    Values of speeds at the start and resets of speeds are left out: they do not change the equations. ``definitions``:
    names and definitions of the new speeds.
    """
    old = {name: text.text for name, text in speed_definitions(mechanism).items()}
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, old)) + r")(?![\w.(])")

    def renamed(item: Any) -> Any:
        if isinstance(item, Text):
            return replace(item, text=pattern.sub(lambda match: f"({old[match[1]]})", item.text))
        if isinstance(item, Mapping):
            return {key: renamed(value) for key, value in item.items()}
        if type(item) is tuple:
            return tuple(renamed(value) for value in item)
        if is_dataclass(item) and not isinstance(item, type):
            return replace(item, **{field.name: renamed(getattr(item, field.name)) for field in fields(item)})
        return item

    changed: Mechanism = renamed(replace(mechanism, speeds={}))
    begin = replace(
        changed.initial, values={name: text for name, text in changed.initial.values.items() if name not in old}
    )
    transitions = tuple(
        replace(item, reset={name: text for name, text in item.reset.items() if name not in old})
        for item in changed.transitions
    )
    return replace(
        changed, speeds={name: Text(text) for name, text in definitions.items()}, initial=begin, transitions=transitions
    )
