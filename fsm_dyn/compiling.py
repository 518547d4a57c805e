"""From a mechanism to a mode graph: the stages in their order, with compiled automata kept on disk."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsm_dyn import models
from fsm_dyn.automaton import storage
from fsm_dyn.automaton.artefact import Automaton
from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.automaton.settling import settled_start
from fsm_dyn.automaton.start import Start, start
from fsm_dyn.errors import InputError, ModelError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.enumeration import enumerate_modes
from fsm_dyn.programs.cache import ObjectCache
from fsm_dyn.programs.collecting import uncollected
from fsm_dyn.spec import Mechanism
from fsm_dyn.spec import load as load_mechanism
from fsm_dyn.spec.places import placed
from fsm_dyn.spec.values import ParameterValue, evaluate, parameter_values
from fsm_dyn.spec.variants import split_name

Parameters = Mapping[str, float | str | Sequence[float | str]]
COMPILER = "26"  # counts changes of what compiling a mechanism gives: automata kept before them are not used


def load(source: str | os.PathLike[str] | Mapping[str, object]) -> Mechanism:
    """Read and check a mechanism.

    Parameters
    ----------
    source : str, path or mapping
        The bare name of a shipped model, a path to a YAML file, or the same content as a mapping.  A variant follows
        after a colon: ``piano_action:hard_hammer``.

    Raises
    ------
    InputError
        There is no such model, or it cannot be used; the message names file, line and column.
    """
    if isinstance(source, Mapping):
        return load_mechanism(source)
    path, variant = split_name(os.fspath(source))
    return load_mechanism(models.resolve(path), variant=variant)


def compile(
    mechanism: Mechanism | str | os.PathLike[str] | Mapping[str, object],
    parameters: Parameters | None = None,
    *,
    cache: bool = True,
) -> ModeGraph:
    """Derive the modes of a mechanism and link them as a graph.

    Parameters
    ----------
    mechanism : Mechanism, or what :func:`load` takes
    parameters : mapping, optional
        Values that replace those of the file (SI, or text with units); nothing is derived anew for them.
    cache : bool
        Whether a compiled automaton may be read from and kept in the user's cache directory.

    Returns
    -------
    ModeGraph

    Raises
    ------
    ModelError
        The mechanism is well-formed but impossible: speeds that do not determine the motion, rows that contradict
        each other, a start that cannot be assembled.
    """
    if not isinstance(mechanism, Mechanism):
        mechanism = load(mechanism)
    objects = ObjectCache.default()
    key = hashlib.sha256(f"{storage.FORMAT}|{COMPILER}|{mechanism.digest}".encode()).hexdigest()
    automaton = _kept(objects, key, mechanism) if cache else None
    if automaton is None:
        with uncollected(), placed(mechanism):
            automaton = _derive(mechanism)
        if cache:
            objects.store(key, storage.to_bytes(automaton))
    return graph_of(automaton, parameters)


def graph_of(automaton: Automaton, parameters: Parameters | None = None) -> ModeGraph:
    """Return the graph of an automaton with parameter values and the mode it starts in."""
    values = parameter_values(automaton.mechanism, parameters)
    vector = parameter_vector(values)
    begin = initial_values(automaton, values, vector)
    key = begin.key
    found = start_from(automaton, begin)
    graph = ModeGraph(automaton, values, vector, automaton.name_of(found.states).name)
    graph.remember(key, lambda: found)
    return graph


def parameter_vector(values: Mapping[str, ParameterValue]) -> Array:
    """Parameters in the order of the kernels' arguments."""
    flat: list[float] = []
    for value in values.values():
        flat += value if isinstance(value, tuple) else [value]
    return np.array(flat, dtype=np.float64)


def open_graph(path: str | os.PathLike[str], parameters: Parameters | None = None) -> ModeGraph:
    """Read a graph that ``ModeGraph.save`` wrote; sympy is not needed.

    Raises
    ------
    InputError
        The file is not a saved automaton, or does not hold together.
    """
    return graph_of(storage.load(os.fspath(path)), parameters)


def initial_start(
    automaton: Automaton,
    values: Mapping[str, ParameterValue],
    vector: Array,
    overrides: Mapping[str, float | str] | None = None,
    inputs: Callable[[float, Array], Array] | None = None,
) -> Start:
    """Find where a run begins: the model's ``initial`` with ``overrides`` (``mode`` and ``settle`` among them).

    Parameters
    ----------
    values, vector : the parameters by name, and in the order of the layout
    inputs : callable, optional
        Gives inputs, rates and second rates, shape (1, 3 n_w), at a time and context; all zero without.
    """
    return start_from(automaton, initial_values(automaton, values, vector, overrides, inputs))


def start_from(automaton: Automaton, begin: InitialValues) -> Start:
    """Return the start that values make: assembled, or settled first."""
    with placed(automaton.mechanism):
        if begin.settles:
            return settled_start(automaton, begin.values, begin.mode, 0.0, begin.context)[0]
        return start(automaton, begin.values, begin.mode, 0.0, begin.context)


@dataclass(frozen=True)
class InitialValues:
    """What a start is made from: values of coordinates and speeds, a mode, whether to settle, the context (n_c,)."""

    values: Mapping[str, float]
    mode: str | None
    settles: bool
    context: Array

    @property
    def key(self) -> tuple[object, ...]:
        """All that the start depends on, the inputs at its instant included, which are in the context."""
        values = tuple((name, value.hex()) for name, value in self.values.items())  # 0.0 and -0.0 are two values
        return ("start", self.context.tobytes(), values, self.mode, self.settles)


def initial_values(
    automaton: Automaton,
    values: Mapping[str, ParameterValue],
    vector: Array,
    overrides: Mapping[str, float | str] | None = None,
    inputs: Callable[[float, Array], Array] | None = None,
) -> InitialValues:
    """Return what a run begins with, as given; the arguments are those of :func:`initial_start`."""
    mechanism = automaton.mechanism
    layout = automaton.terms.layout
    given: dict[str, float] = {name: evaluate(text, values) for name, text in mechanism.initial.values.items()}
    mode: str | None = mechanism.initial.mode
    settles = mechanism.initial.settle
    for name, value in (overrides or {}).items():
        if name == "mode":
            mode = str(value)
        elif name == "settle":
            settles = bool(value)
        else:
            given[name] = evaluate(value, values) if isinstance(value, str) else float(value)
            if not math.isfinite(given[name]):
                raise InputError(f"the initial value of '{name}' wants a finite number", found=repr(value))
    context = np.zeros(layout.n_c)
    context[layout.p_slice] = vector
    context[layout.memory_slice] = [mechanism.memory[name].initial for name in layout.memory]
    for name in [name for name in given if name in layout.memory]:
        context[layout.memory_slice.start + layout.memory.index(name)] = given.pop(name)
    if inputs is not None:
        context[layout.w_slice.start : layout.w_rate2_slice.stop] = inputs(0.0, context)[0]
    return InitialValues(given, mode, settles, context)


def _kept(objects: ObjectCache, key: str, mechanism: Mechanism) -> Automaton | None:
    payload = objects.load(key)
    if payload is None:
        return None
    try:
        return storage.from_bytes(payload, mechanism)
    except InputError:
        return None


def _derive(mechanism: Mechanism) -> Automaton:
    # the only stage that needs sympy; a kept automaton runs without it
    from fsm_dyn.modes.gather import gather
    from fsm_dyn.symbolic import derive

    _check_count(mechanism)
    terms = derive(mechanism)
    shared = gather(terms)
    automaton = Automaton(
        mechanism, shared.rows, shared.contacts, shared.whens, terms.quaternions, terms.n_k, shared.terms,
        shared.report, shared.geometry, tuple(terms.load_powers), tuple(terms.points), tuple(terms.frames),
        shared.resets, pattern=shared.pattern,
    )  # fmt: skip
    values = parameter_values(mechanism)
    begin = initial_start(automaton, values, parameter_vector(values))
    samples = automaton.samples(begin.states, 0.0, begin.x, begin.context, loops_closed=False)
    enumeration = enumerate_modes(automaton.system, automaton.patterns, mechanism.only_listed, samples)
    automaton = automaton.with_enumeration(enumeration)
    for name in enumeration.modes:
        automaton = automaton.with_mode(automaton.derive(name.states, 0.0, begin.x, begin.context))
    if automaton.find(begin.states) < 0:
        first = automaton.name_of(begin.states).name
        if first in enumeration.pruned:
            raise ModelError(
                f"the motion would begin in '{first}', which cannot be: {enumeration.pruned[first]}",
                mechanism.initial.where,
                remedy="give another mode or other values under initial",
            )
        automaton = automaton.with_mode(automaton.derive(begin.states, 0.0, begin.x, begin.context))
    return automaton


def _check_count(mechanism: Mechanism) -> None:
    """Refuse coordinates in such number that some have no inertia in any mode: a body has six directions of motion."""
    n, most = len(mechanism.coordinates), 6 * len(mechanism.bodies)
    held = len(mechanism.constraints) + 3 * len(mechanism.contacts)
    if n > most + held:
        raise ModelError(
            f"the bodies cannot move in so many ways: nothing has inertia along {n - most - held} coordinates",
            list(mechanism.coordinates.values())[-1].where,
            found=f"{n} coordinates",
            allowed=f"6 for each of {len(mechanism.bodies)} bodies, and 1 for each row of {held}",
            remedy="leave out coordinates, or give what they move mass",
        )
