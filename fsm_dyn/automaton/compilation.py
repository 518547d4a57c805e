"""Compilation of a mechanism to a mode graph, with a cache of compiled automata on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from fsm_dyn.automaton import storage
from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph, graph_with_parameters
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.derive.enumeration import enumerate_modes
from fsm_dyn.language import models
from fsm_dyn.language.builder import Model
from fsm_dyn.language.components import split_name
from fsm_dyn.language.impositions import imposed_contacts
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.model import Mechanism, placed
from fsm_dyn.language.scales import measures
from fsm_dyn.language.units import dimension_text
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.programs.graph import gc_paused
from fsm_dyn.programs.kernels import ObjectCache
from fsm_dyn.runtime.library import SOURCES


@typed
def load(source: str | os.PathLike[str] | Mapping[str, object] | Model) -> Mechanism:
    """Read and check a mechanism.

    Parameters
    ----------
    source : str, path, mapping or Model
        The bare name of a shipped model, a path to a YAML file, the same content as a mapping, or a model made by
        calls.  A variant follows after a colon: ``piano_action:hard_hammer``.

    Returns
    -------
    Mechanism
        Frozen, in SI units, with the line of the file of every entry.

    Raises
    ------
    InputError
        There is no such model, or it cannot be used; the message names file, line and column.
    """
    if isinstance(source, Model):
        return source.mechanism()
    if isinstance(source, Mapping):
        return load_mechanism(source)
    path, variant = split_name(os.fspath(source))
    return load_mechanism(models.resolve(path), variant=variant)


@typed
def compile(
    mechanism: Mechanism | str | os.PathLike[str] | Mapping[str, object] | Model,
    parameters: Parameters | None = None,
    *,
    cache: bool = True,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> ModeGraph:
    """Derive the modes of a mechanism and link them as a graph.

    Parameters
    ----------
    mechanism : Mechanism, or an argument of :func:`load`
    parameters : mapping, optional
        Values instead of those of the file (SI, or text with units); nothing is derived again for them.
    cache : bool
        Whether to read the compiled automaton from the user's cache directory, and to keep it there.
    jobs : int
        Number of processes for the derivation of modes; the result is the same to the last bit.
    progress : callable, optional
        Called with the number of modes derived and of all.

    Returns
    -------
    ModeGraph

    Raises
    ------
    InputError
        ``jobs`` is not a positive integer.
    ModelError
        The mechanism is well-formed but infeasible: speeds do not determine the motion, rows are inconsistent, or the
        initial state cannot be assembled.
    RunError
        A process was ended from outside.
    """
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError("jobs", found=repr(jobs), allowed="the number of processes, 1 or more")
    with gc_paused():
        if not isinstance(mechanism, Mechanism):
            mechanism = load(mechanism)
        automaton, start = automaton_of(mechanism, cache, jobs, progress)
    return graph_with_parameters(automaton, parameters, None if parameters else start)


def automaton_of(
    mechanism: Mechanism,
    cache: bool = True,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Automaton, InitialState | None]:
    """Return the automaton of a mechanism and, if it is derived rather than read from the cache, the model's start."""
    objects = ObjectCache.default()
    version = f"{storage.FORMAT}|{storage.equations_version()}|{SOURCES}"  # charts depend on values of the runtime
    key = hashlib.sha256(f"{version}|{mechanism.digest}".encode()).hexdigest()
    kept = _kept(objects, key, mechanism) if cache else None
    if kept is not None:
        return kept, None
    with placed(mechanism):
        automaton, start = _derive(mechanism, jobs, progress)
    if cache:
        objects.store(key, storage.to_bytes(automaton))
    return automaton, start


def _kept(objects: ObjectCache, key: str, mechanism: Mechanism) -> Automaton | None:
    payload = objects.load(key)
    if payload is None:
        return None
    try:
        return storage.from_bytes(payload, mechanism)
    except InputError:
        return None


def _derive(
    mechanism: Mechanism, jobs: int, progress: Callable[[int, int], None] | None
) -> tuple[Automaton, InitialState]:
    # only this stage needs sympy; a stored automaton runs without it
    from fsm_dyn.derive.derivation import build_shared_programs, derive
    from fsm_dyn.derive.embedding import TooManyLimitsError

    _check_count(mechanism)
    terms = derive(mechanism)
    shared = build_shared_programs(terms)
    automaton = Automaton(
        mechanism, shared.rows, shared.contacts, shared.user_transitions, terms.quaternions, terms.n_k, shared.terms,
        shared.report, shared.geometry, tuple(terms.load_powers), tuple(terms.points), tuple(terms.frames),
        shared.resets, pattern=shared.pattern, sample=shared.sample,
    )  # fmt: skip
    values = parameter_values(mechanism)
    begin = initial_state(automaton, values, parameter_vector(values))
    samples = automaton.samples(begin.states, 0.0, begin.x, begin.context, loops_closed=False)
    enumeration = enumerate_modes(
        automaton.system,
        automaton.patterns,
        mechanism.only_listed,
        samples,
        _gap_units(mechanism),
        frozenset(imposed_contacts(mechanism)),
    )
    automaton = automaton.with_enumeration(enumeration.infeasible, enumeration.fully_enumerated)
    wanted = [name.states for name in enumeration.modes]
    for done, mode in enumerate(_modes(automaton, (begin.x, begin.context), wanted, jobs), start=1):
        automaton = automaton.with_mode(mode)
        if progress is not None:
            progress(done, len(wanted))
    if automaton.find(begin.states) < 0:
        first = automaton.name_of(begin.states).name
        if first in enumeration.infeasible:
            raise ModelError(
                f"the motion would begin in '{first}', which is infeasible: {enumeration.infeasible[first]}",
                mechanism.initial.where,
                remedy=_remedy_of_start(automaton, samples["M"], enumeration.infeasible[first]),
            )
        with suppress(TooManyLimitsError):  # runs embed it online
            automaton = automaton.with_mode(automaton.derive(begin.states, 0.0, begin.x, begin.context, first=True))
    return automaton, begin


def _remedy_of_start(automaton: Automaton, masses: Floats, reason: str) -> str:
    """Return the remedy for a start in an infeasible mode, with its mass matrices (k, n, n)."""
    sizes = abs(masses).sum(axis=(0, 2))
    idle = [name for name, size in zip(automaton.terms.layout.u, sizes, strict=False) if size == 0.0]
    named = [name for name in idle if name in reason.split()]
    if not named:
        return "give another mode or other values under initial"
    return f"no body moves with {' or '.join(named)}: add a body that does, or omit the coordinate"


def _gap_units(mechanism: Mechanism) -> dict[str, str]:
    """Return the units of gaps by contact, none of a model without units."""
    if not mechanism.uses_units:
        return {}
    return {name: dimension_text(dimension) for name, dimension in measures(mechanism).normal.items()}


def _modes(
    automaton: Automaton, home: tuple[Floats, Floats], wanted: Sequence[Sequence[int]], jobs: int
) -> Iterator[DerivedMode]:
    """Yield the modes with these contact states, derived for a state and context, in their order."""
    workers = min(jobs, len(wanted))
    if workers < 2:
        yield from (automaton.derive(states, 0.0, *home, first=True) for states in wanted)
    else:
        # multiprocessing is slow to import
        from fsm_dyn.core.processes import in_processes

        given = storage.to_bytes(automaton), home
        yield from in_processes("the derivation", workers, _begin, given, _derived, wanted)


def _begin(given: tuple[bytes, tuple[Floats, Floats]]) -> tuple[Automaton, tuple[Floats, Floats]]:
    data, home = given
    return storage.from_bytes(data), home


def _derived(shared: tuple[Automaton, tuple[Floats, Floats]], states: Sequence[int]) -> DerivedMode:
    automaton, home = shared
    with gc_paused():
        return automaton.derive(states, 0.0, *home, first=True)


def _check_count(mechanism: Mechanism) -> None:
    """Refuse more coordinates than can have inertia in any mode: a body has six directions of motion."""
    n, most = len(mechanism.coordinates), 6 * len(mechanism.bodies)
    held = len(mechanism.constraints) + 3 * len(mechanism.contacts)
    if n > most + held:
        raise ModelError(
            f"more coordinates than the bodies can have: mass matrix singular along {n - most - held} coordinates",
            list(mechanism.coordinates.values())[-1].where,
            found=f"{n} coordinates",
            allowed=f"6 for each of {len(mechanism.bodies)} bodies, and 1 for each row of {held}",
            remedy="omit coordinates, or give the bodies that they move mass",
        )
