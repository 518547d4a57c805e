"""Initial values of a run, from the model and from overriding arguments."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState, check_names, find_initial_state, fixed_codes
from fsm_dyn.automaton.static_equilibrium import equilibrium_initial_state
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.embedding import massless_speeds
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.memory import start_of_memory
from fsm_dyn.language.model import DiscreteVariable, placed
from fsm_dyn.language.values import ArgumentUnits, coordinate_bounds, named_values, parameter_values


def parameter_vector(values: Mapping[str, ParameterValue]) -> Floats:
    """Parameters in the order of the kernels' arguments."""
    flat: list[float] = []
    for value in values.values():
        flat += value if isinstance(value, tuple) else [value]
    return np.array(flat, dtype=np.float64)


def model_start(automaton: Automaton) -> InitialState:
    """Return the initial state of the model with the parameters of its file; further modes are derived for this state.

    The programs of a mode then follow from the model alone, independent of the parameters of the first run to need
    them.
    """
    values = parameter_values(automaton.mechanism)
    return initial_state(automaton, values, parameter_vector(values))


def bound_arrays(automaton: Automaton, values: Mapping[str, ParameterValue]) -> Floats | None:
    """Return lower and upper bounds of the coordinates, SI units, shape (2, n_q); None without any stated range."""
    bounds = coordinate_bounds(automaton.mechanism, values)
    if not bounds:
        return None
    return np.array([bounds.get(name, (-math.inf, math.inf)) for name in automaton.terms.layout.q]).T


def initial_state(
    automaton: Automaton,
    values: Mapping[str, ParameterValue],
    vector: Floats,
    overrides: Mapping[str, float | str] | None = None,
    inputs: Callable[[float, Floats], Floats] | None = None,
) -> InitialState:
    """Find the initial state of a run: the model's ``initial`` with ``overrides`` (``mode`` and ``settle`` among them).

    ``values``, ``vector``, the parameters by name, and in the order of the layout. ``inputs``: gives inputs, rates and
    second rates, shape (1, 3 n_w), at a time and context; all zero without.
    """
    return solve_initial_state(automaton, initial_values(automaton, values, vector, overrides, inputs))


def solve_initial_state(automaton: Automaton, begin: InitialConditions) -> InitialState:
    """Return the start from values: assembled, or settled first."""
    with placed(automaton.mechanism):
        if begin.settles:
            found = equilibrium_initial_state(automaton, begin.values, begin.mode, 0.0, begin.context)[0]
        else:
            found = find_initial_state(automaton, begin.values, begin.mode, 0.0, begin.context, begin.places)
        _check_ranges(automaton, found)
        _check_inertia(automaton, found)
        return found


def _check_ranges(automaton: Automaton, start: InitialState) -> None:
    """Refuse a start outside the stated range of a coordinate."""
    layout, mechanism = automaton.terms.layout, automaton.mechanism
    if not any(coordinate.range for coordinate in mechanism.coordinates.values()):
        return
    bounds = coordinate_bounds(mechanism, named_values(mechanism, list(start.context[layout.p_slice])))
    for name, (lower, upper) in bounds.items():
        value = float(start.x[layout.q.index(name)])
        if not lower <= value <= upper:
            raise ModelError(
                f"the motion would begin with '{name}' outside its range",
                mechanism.coordinates[name].where,
                found=f"{name} = {value:.9g} (SI units)",
                allowed=f"{lower:.9g} to {upper:.9g}",
                remedy="give another value under initial, or widen the range",
            )


def _check_inertia(automaton: Automaton, start: InitialState) -> None:
    """Refuse a start with a free motion of a body without mass or inertia."""
    lacking = massless_bodies(automaton, start.context)
    if not lacking:
        return
    terms = automaton.terms.evaluate(0.0, start.x, start.context)
    reason = massless_speeds(automaton.system, start.states, {"M": terms["M"][None], "A": terms["A"][None]})
    if reason:
        raise ModelError(
            f"the motion would begin in '{automaton.name_of(start.states).name}', which is infeasible: {reason}",
            next(iter(lacking.values())),
            found=", ".join(lacking),
            remedy="give what moves so mass or inertia, or hold it by a constraint",
        )


def _start_of_memory(item: DiscreteVariable, number: object, written: object) -> int:
    """Return the initial value of memory, which is a whole number, or 0 or 1 if it is boolean."""
    whole = isinstance(number, numbers.Real) and math.isfinite(number) and float(number).is_integer()
    if not whole or (item.is_boolean and number not in (0, 1)):
        raise InputError(
            f"the initial value of '{item.name}' is no value of this memory", found=repr(written)[:60],
            allowed="true or false" if item.is_boolean else "a whole number",
        )  # fmt: skip
    return round(float(number))  # type: ignore[arg-type]  # a number, as checked


def massless_bodies(automaton: Automaton, context: Floats) -> dict[str, Location]:
    """Return ``"no mass of NAME"`` and ``"no inertia of NAME"`` of bodies, with the places, in a context (n_c,)."""
    mechanism = automaton.mechanism
    values = named_values(mechanism, list(context[automaton.terms.layout.p_slice]))
    lacking: dict[str, Location] = {}
    for body in mechanism.bodies.values():
        if evaluate_expression(body.mass, values) == 0.0:
            lacking[f"no mass of {body.name}"] = body.mass.where
        if body.frame is not None and not any(evaluate_expression(text, values) for text in body.inertia.values()):
            texts = body.inertia.values()
            lacking[f"no inertia of {body.name}"] = next((text.where for text in texts), body.where)
    return lacking


@dataclass(frozen=True)
class InitialConditions:
    """Conditions of a start: values of coordinates and speeds, a mode, whether to settle, the context (n_c,).

    ``places``: of the values in the model file.
    """

    values: Mapping[str, float]
    mode: str | None
    settles: bool
    context: Floats
    places: Mapping[str, Location] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """All arguments of the start; the context contains the inputs at its instant."""
        values = tuple((name, value.hex()) for name, value in self.values.items())  # 0.0 and -0.0 are two values
        return ("start", self.context.tobytes(), values, self.mode, self.settles)


def initial_values(
    automaton: Automaton,
    values: Mapping[str, ParameterValue],
    vector: Floats,
    overrides: Mapping[str, float | str] | None = None,
    inputs: Callable[[float, Floats], Floats] | None = None,
) -> InitialConditions:
    """Return the given conditions of a start; the arguments are those of :func:`initial_state`.

    Raises InputError: a name is unknown, or a value is not finite, or has another unit.
    """
    mechanism = automaton.mechanism
    layout = automaton.terms.layout
    given: dict[str, float] = {
        name: evaluate_expression(text, values) for name, text in mechanism.initial.values.items()
    }
    mode: str | None = mechanism.initial.mode
    settles = mechanism.initial.settle
    units = ArgumentUnits(mechanism)
    # overrides are not in the file: messages name no place of them
    others = ("mode", "settle", *layout.memory)
    check_names(automaton, {name: 0.0 for name in overrides or () if name not in others})
    for name, value in (overrides or {}).items():
        if name == "mode":
            mode = str(value)
            fixed_codes(automaton, mode)
        elif name == "settle":
            settles = bool(value)
        else:
            if isinstance(value, str):
                units.check(name, value, f"the initial value of '{name}'")
            number: object = evaluate_expression(value, values) if isinstance(value, str) else value
            if name in mechanism.memory:
                number = _start_of_memory(mechanism.memory[name], number, value)
            if isinstance(number, bool) or not isinstance(number, numbers.Real) or not math.isfinite(number):
                raise InputError(
                    f"the initial value of '{name}' wants a finite number or a text with a unit", found=repr(value)[:60]
                )
            given[name] = float(number)
    context = np.zeros(layout.n_c)
    context[layout.p_slice] = vector
    start = start_of_memory(mechanism, values)
    context[layout.memory_slice] = [start[name] for name in layout.memory]
    for name in [name for name in given if name in layout.memory]:
        context[layout.memory_slice.start + layout.memory.index(name)] = given.pop(name)
    if inputs is not None:
        context[layout.w_slice.start : layout.w_rate2_slice.stop] = inputs(0.0, context)[0]
    places = {name: text.where for name, text in mechanism.initial.values.items() if name not in (overrides or ())}
    return InitialConditions(given, mode, settles, context, places)
