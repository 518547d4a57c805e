"""Resolved arguments of a run: parameters, inputs, start, tolerances; executables kept from run to run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from fsm_dyn.automaton.hybrid_automaton import AutomatonByMultipliers
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import InitialConditions, initial_values, parameter_vector, solve_initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.storage import run_version
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.elements import Schedule
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.values import parameter_values
from fsm_dyn.run.executable import DerivedModes, Executable
from fsm_dyn.run.input_signals import (
    InputSignals,
    InputValue,
    default_end,
    input_parameters,
    resolve_inputs,
    scenario_schedules,
)
from fsm_dyn.run.online import CompiledExecutable, EarnedExecutable, OnlineExecutable
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.run_options import Allowance, RunOptions, stored_type
from fsm_dyn.run.tolerances import Numerics, Tolerances, numerics_of
from fsm_dyn.runtime.abi import NEVER

if TYPE_CHECKING:
    StoredOptions: TypeAlias = Any
else:
    StoredOptions = stored_type()


# -- Running forms of a graph --------------------------------------------------------------------------------
#
# Running forms of a graph, modes derived by runs, starts and inputs, all kept from run to run.

MOST_KEPT: Final = 2**26  # bytes of modes reached by runs, up to which the next run has them at once
MOST_EXECUTABLES: Final = 8  # ways of running for which kernels are kept
LONGEST_MEMORY: Final = 64  # starts, inputs and the like, kept for the next runs

T = TypeVar("T")


class ExecutablePool:
    """Executables of a graph, each in one run at a time, and results kept for the next runs."""

    def __init__(self, graph: ModeGraph) -> None:
        self.graph = graph
        # by strategy, those in no run at the moment
        self._executables: dict[tuple[str, Hashable], list[Executable]] = {}
        self._modes = DerivedModes(MOST_KEPT)  # by runs
        self._memory: dict[Hashable, Any] = {}
        if graph.start is not None:
            self._memory[initial_values(graph.automaton, graph.values, graph.parameters).key] = graph.start

    def take(self, strategy: str, derive_after: Allowance = None) -> Executable:
        """Return the running form of the graph, without the charts of earlier runs; in no other run until given back.

        ``strategy`` may also be "multipliers": by a formulation instead of embedding; or "derived": nothing online.
        """
        idle = self._executables.setdefault(_executable_key(strategy, derive_after), [])
        executable = idle.pop() if idle else self._new_executable(strategy, derive_after)
        executable.reset_charts()
        return executable

    def give_back(self, executable: Executable, strategy: str, derive_after: Allowance = None) -> None:
        """Keep an executable for the next run, unless its modes occupy too much memory.

        The next run makes a new one then, which derives its modes again; its result is the same.
        """
        if executable.memory > MOST_KEPT:
            self._memory = {key: kept for key, kept in self._memory.items() if not isinstance(kept, RunModel)}
            return
        self._executables.setdefault(_executable_key(strategy, derive_after), []).append(executable)
        if len(self._executables) > MOST_EXECUTABLES:
            self._executables.pop(next(iter(self._executables)), None)

    @property
    def memory(self) -> int:
        """Memory of modes kept for the next runs, bytes.

        At most 64 MiB of those derived by runs, and 64 MiB a way of running, of which eight are kept.  A
        dropped one is made again when a run needs it, the same to the last bit.
        """
        return self._modes.memory + sum(executable.memory for idle in self._executables.values() for executable in idle)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the object made for ``key``, all its dependencies, before, or make it now; the last used are kept."""
        found: T | None = self._memory.pop(key, None)
        if found is None:
            found = make()
        self._memory[key] = found
        if len(self._memory) > LONGEST_MEMORY:
            self._memory.pop(next(iter(self._memory)), None)
        return found

    def _new_executable(self, strategy: str, derive_after: Allowance) -> Executable:
        automaton = self.graph.automaton
        numbers = parameter_values(automaton.mechanism)  # of the file, see model_start
        start = self.initial_state_of(initial_values(automaton, numbers, parameter_vector(numbers)))
        home = start.x.copy(), start.context.copy()
        if strategy == "compiled":
            return CompiledExecutable(self.graph.with_modes(self._modes).automaton, home, self._modes)
        if strategy == "derived":
            return Executable(self.graph.with_modes(self._modes).automaton, home, known=self._modes)
        if strategy == "multipliers":
            known = DerivedModes(MOST_KEPT)
            return Executable(AutomatonByMultipliers.of(automaton), home, known=known)
        if strategy == "online":
            return OnlineExecutable(automaton, home)
        after = NEVER if derive_after == np.inf else derive_after
        return EarnedExecutable(automaton, home, derived=automaton.modes, known=self._modes, derive_after=after)

    def initial_state_of(self, begin: InitialConditions) -> InitialState:
        """Return the start of given values; settling takes its time, so it is kept for all runs with the same start."""
        return self.remember(begin.key, lambda: solve_initial_state(self.graph.automaton, begin))


def _executable_key(strategy: str, derive_after: Allowance) -> tuple[str, Hashable]:
    if derive_after is None or not isinstance(derive_after, Mapping):
        return strategy, derive_after
    return strategy, tuple(sorted(derive_after.items()))


# -- Resolved arguments of a run -----------------------------------------------------------------------------
#
# Parameters, inputs, start and tolerances, worked out once for all runs with the same start.


def run_digest(model: str, parameters: Floats, settings: StoredOptions, compiler: str) -> str:
    """Return a digest of all dependencies of the steps of a run; ``model``: that of its model."""
    hashed = hashlib.sha256(f"fsm_dyn run|{compiler}|{model}|".encode())
    hashed.update(np.ascontiguousarray(parameters, "<f8").tobytes())
    hashed.update(msgspec.json.encode(settings, order="deterministic"))
    return hashed.hexdigest()


@dataclass  # not frozen: a frozen one takes six times as long to fill
class RunArguments:
    """Resolved arguments of a run apart from its initial state: options, parameters by name and as a vector, inputs."""

    graph: ModeGraph
    options: RunOptions
    numbers: Mapping[str, ParameterValue]
    vector: Floats
    inputs: Mapping[str, InputValue]

    @property
    def model(self) -> int:
        """Digest of the model alone, of 64 bits."""
        return int(self.graph.automaton.mechanism.digest[:16], 16)

    @cached_property
    def digest(self) -> str:
        """Digest of all its dependencies."""
        return run_digest(self.graph.automaton.mechanism.digest, self.vector, self.options.stored(), run_version())

    @property
    def final(self) -> str:
        """Why it cannot be continued, if so."""
        name = self.options.unstored
        return f"the input '{name}' is a Python function or a schedule made in Python" if name else ""


@dataclass
class RunSetup(RunArguments):
    """Resolved arguments of a run with its usual end (s), its input signals and its initial state."""

    end: float
    drive: InputSignals
    start: InitialState


class RunSetups(ExecutablePool):
    """Executables of a graph, and resolved arguments of its runs."""

    def setup(self, options: RunOptions) -> RunSetup:
        """Return the parameters, inputs and start of a run, worked out before if an earlier run had the same."""
        if options.inputs or options.parameters or options.initial:
            return self._new_setup(options)
        usual = self.remember(("usual", options.scenario, options.until), lambda: self._new_setup(options))
        return RunSetup(
            usual.graph, options, usual.numbers, usual.vector, usual.inputs, usual.end, usual.drive, usual.start
        )

    def _new_setup(self, options: RunOptions) -> RunSetup:
        graph, automaton = self.graph, self.graph.automaton
        numbers: Mapping[str, ParameterValue] = graph.values
        vector = graph.parameters
        if options.parameters:
            numbers = parameter_values(automaton.mechanism, options.parameters)
            vector = parameter_vector(numbers)
        named = scenario_schedules(automaton, options.scenario) if options.scenario is not None else {}
        end = default_end(automaton, numbers, named)
        replaced = {**named, **(options.inputs or {})}
        key, initial = inputs_key(vector, replaced), options.initial or {}
        made = self.input_signals(numbers, key, replaced, (0.0, end if options.until is None else options.until))

        def started() -> InitialState:
            return self.initial_state_of(initial_values(automaton, numbers, vector, initial, made))

        # by their text: 0.0 and -0.0 are two values
        start = started() if key is None else self.remember(("start of", *key, repr(sorted(initial.items()))), started)
        return RunSetup(graph, options, numbers, vector, replaced, end, made, start)

    def input_signals(
        self,
        numbers: Mapping[str, ParameterValue],
        key: tuple[Hashable, ...] | None,
        inputs: Mapping[str, InputValue],
        span: tuple[float, float],
    ) -> InputSignals:
        """Return the signals of the inputs over a span (s); ``key``: of :func:`inputs_key`."""

        def make() -> InputSignals:
            return resolve_inputs(self.graph.automaton, numbers, inputs, span)

        if key is None:
            return make()
        items = key[1:]  # the arguments, without the parameters
        needed = self.remember(("parameters of", *items), lambda: (input_parameters(self.graph.automaton, inputs),))[0]
        read = {name: value for name, value in numbers.items() if needed is None or name in needed}
        return self.remember(("drive", parameter_vector(read).tobytes(), *items, span), make)

    def numerics(
        self, numbers: Mapping[str, ParameterValue], vector: Floats, tolerances: Mapping[str, float] | None = None
    ) -> Numerics:
        """Return tolerances and units of a run with these parameters, by name and as a vector (n_p,), SI."""
        given = tolerances or {}
        return self.remember(
            ("numerics", vector.tobytes(), *given.items()),
            lambda: numerics_of(self.graph.automaton, numbers, Tolerances(**given)),
        )


def inputs_key(vector: Floats, inputs: Mapping[str, InputValue]) -> tuple[Hashable, ...] | None:
    """Return all dependencies of the inputs of a run, ``vector`` the parameters; None with a callable or a list."""
    if any(not isinstance(value, str | float | int | Schedule) for value in inputs.values()):
        return None
    return (vector.tobytes(), tuple(sorted(inputs.items(), key=lambda item: item[0])))
