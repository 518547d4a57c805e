"""Resolved arguments of a run: parameters, inputs, start, tolerances; executables kept from run to run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from fsm_dyn.automaton.hybrid_automaton import AutomatonByMultipliers
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import InitialConditions, initial_values, parameter_vector, solve_initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.storage import run_version
from fsm_dyn.core.arrays import FloatArray, IntArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import Array
from fsm_dyn.language.elements import Schedule
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.values import parameter_values
from fsm_dyn.run.executable import DerivedModes, Executable, KnownCharts, SavedState
from fsm_dyn.run.input_signals import (
    InputSignals,
    InputValue,
    default_end,
    input_parameters,
    resolve_inputs,
    scenario_schedules,
)
from fsm_dyn.run.online import EarnedExecutable, OnlineExecutable
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.run_options import Allowance, RunOptions, stored_type
from fsm_dyn.run.tolerances import Numerics, Tolerances, numerics_of
from fsm_dyn.runtime.abi import NEVER

if TYPE_CHECKING:
    StoredOptions: TypeAlias = Any
else:
    StoredOptions = stored_type()


# -- Data to continue a run ------------------------------------------------------------------------------------


class _StoredPlace(msgspec.Struct):
    states: tuple[int, ...]
    t: float
    x: list[float]
    c: list[float]


_Count = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class StoredContinuation(msgspec.Struct):
    """A :class:`Continuation` in a saved run."""

    settings: StoredOptions
    compiler: str
    state: bytes
    digest: str
    rows: _Count
    transitions: _Count
    change_points: _Count
    modes: list[tuple[tuple[int, ...], _Count]]
    changes: list[tuple[_Count, _Count]]
    charts: list[_StoredPlace]
    in_vain: list[tuple[tuple[int, ...], float]]
    charted: _Count
    solver: dict[str, Any] | None = None


@dataclass(frozen=True)
class Continuation:
    """State and options of a continued run.

    Attributes
    ----------
    settings : msgspec.Struct
    compiler : str
        Version of the deriving program.
    digest : str
        Of the model, the parameters and the settings (:func:`run_digest`).
    state : SavedState
        ``rows`` and ``transitions`` of the run's record were there when it was saved.
    modes : tuple of (states, int)
        By mode index of the record: contact states, and which of the charts with these.
    changes : ndarray of int, shape (n, 2)
        Mode indices before and after each of these transitions.
    """

    settings: StoredOptions
    compiler: str
    digest: str
    state: SavedState
    modes: tuple[tuple[tuple[int, ...], int], ...]
    changes: IntArray

    def stored(self) -> StoredContinuation:
        """Return it as it stands in a file."""
        state = self.state
        return StoredContinuation(
            settings=self.settings,
            compiler=self.compiler,
            state=state.words.astype("<u8").tobytes(),
            digest=self.digest,
            rows=state.rows,
            transitions=state.transitions,
            change_points=state.passages,
            modes=list(self.modes),
            changes=[(int(a), int(b)) for a, b in self.changes],
            charts=[_StoredPlace(states, t, x.tolist(), c.tolist()) for states, t, x, c in state.charts.places],
            in_vain=list(state.charts.in_vain),
            charted=state.charted,
            solver=None if state.solver is None else dict(state.solver),
        )


def continuation_of(
    data: StoredContinuation,
    codes: Sequence[Sequence[int]],
    modes: Sequence[tuple[int, ...]],
    lengths: tuple[int, int],
    rows: int,
    transitions: int,
) -> Continuation:
    """Return the content of a file.

    Parameters
    ----------
    codes : sequence
        Possible states per contact.
    modes : sequence
        Contact states of the run by mode index.
    lengths : (int, int)
        Of state and context.
    rows, transitions : int
        How many the saved run has.

    Raises
    ------
    InputError
        It is inconsistent or corrupt.
    """
    places = tuple((place.states, place.t, np.array(place.x), np.array(place.c)) for place in data.charts)
    changes = np.array(data.changes, np.int64).reshape(-1, 2)
    good = len(data.state) % 8 == 0 and 0 < data.rows <= rows and 0 <= data.transitions <= transitions
    good &= len(changes) == data.transitions and bool(((changes >= 0) & (changes < len(data.modes))).all())
    named = [states for states, _ in (*data.modes, *data.in_vain)] + [place.states for place in data.charts]
    good &= all(len(states) == len(codes) for states in named)
    good &= all(code in known for states in named for code, known in zip(states, codes, strict=False))
    good &= all(chart >= 0 for _, chart in data.modes) and [states for states, _ in data.modes] == list(modes)
    good &= all((len(x), len(c)) == lengths for _, _, x, c in places) and data.change_points >= 0
    if not good:
        raise InputError("what the run is continued from is damaged", remedy="run it again")
    words = np.frombuffer(data.state, "<u8").astype(np.uint64)
    charts = KnownCharts(places, tuple(data.in_vain))
    state = SavedState(
        words, data.rows, data.transitions, data.change_points, charts, data.charted, data.solver,
    )  # fmt: skip
    return Continuation(data.settings, data.compiler, data.digest, state, tuple(data.modes), changes)


def check_continuation(continuation: Continuation, digest: str, compiler: str) -> None:
    """Check the options of a continued run against its own.

    Raises
    ------
    InputError
        It was run by another version, or its model, parameters or settings have been changed since.
    """
    if continuation.compiler != compiler:
        raise InputError(
            "the run cannot be continued: it was run by another version of fsm_dyn, whose equations may differ",
            found=f"version {continuation.compiler}",
            allowed=f"version {compiler}",
            remedy="run it again",
        )
    if continuation.digest != digest:
        raise InputError(
            "the run cannot be continued: its model, parameters or settings are not those with which it was run",
            remedy="run it again",
        )


def run_digest(model: str, parameters: FloatArray, settings: StoredOptions, compiler: str) -> str:
    """Return a digest of all dependencies of the steps of a run, in hexadecimal digits.

    Parameters
    ----------
    model : str
        Digest of the model.
    parameters : ndarray, shape (n_p,)
    """
    hashed = hashlib.sha256(f"fsm_dyn run|{compiler}|{model}|".encode())
    hashed.update(np.ascontiguousarray(parameters, "<f8").tobytes())
    hashed.update(msgspec.json.encode(settings, order="deterministic"))
    return hashed.hexdigest()


# -- Resolved arguments of a run -------------------------------------------------------------------------------


# -- Running forms of a graph --------------------------------------------------------------------------------
#
# Running forms of a graph, modes derived by runs, starts and inputs, all kept from run to run.

MOST_KEPT: Final = 2**26  # bytes of modes reached by runs, up to which the next run has them at once
MOST_EXECUTABLES: Final = 8  # ways of running for which kernels are kept
LONGEST_MEMORY: Final = 64  # starts, inputs and the like, kept for the next runs

T = TypeVar("T")


class ExecutablePool:
    """Executables of a graph, each in one run at a time, and results kept for the next runs.

    Parameters
    ----------
    graph : ModeGraph

    Attributes
    ----------
    graph : ModeGraph
        As given.
    """

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

        Parameters
        ----------
        strategy : "compiled", "online" or "auto"
            Or "multipliers", by a formulation instead of embedding.
        derive_after : float or mapping, optional
            As for :func:`fsm_dyn.simulate`.
        """
        idle = self._executables.setdefault(_executable_key(strategy, derive_after), [])
        executable = idle.pop() if idle else self._new_executable(strategy, derive_after)
        executable.reset_charts()
        return executable

    def give_back(self, executable: Executable, strategy: str, derive_after: Allowance = None) -> None:
        """Keep an executable for the next run, unless its modes occupy too much memory.

        The next run makes a new one then, which derives its modes again; its result is the same.

        Parameters
        ----------
        executable : Executable
            Returned by :meth:`take`.
        strategy : str
            With which it was taken.
        derive_after : Allowance, optional
            With which it was taken.
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
        """Return the object made for ``key`` before, or make it now; the last used are kept.

        Parameters
        ----------
        key : Hashable
            All dependencies of the result.
        make : Callable[[], T]
            Makes it, without arguments.

        Returns
        -------
        object
            Result of ``make``, now or before.
        """
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
    return strategy, tuple(sorted(derive_after.items())) if isinstance(derive_after, Mapping) else derive_after


# -- Resolved arguments of a run -----------------------------------------------------------------------------
#
# Parameters, inputs, start and tolerances, worked out once for all runs with the same start.


@dataclass  # not frozen: a frozen one takes six times as long to fill
class RunArguments:
    """Resolved arguments of a run apart from its initial state: options, parameters by name and as a vector, inputs."""

    graph: ModeGraph
    options: RunOptions
    numbers: Mapping[str, ParameterValue]
    vector: Array
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
        """Return the signals of the inputs.

        Parameters
        ----------
        numbers : Mapping[str, ParameterValue]
            Parameters by name, SI.
        key : tuple or None
            From :func:`inputs_key`.
        inputs : Mapping[str, InputValue]
            By name, in the units of the inputs.
        span : tuple of float
            From when to when, s.
        """

        def make() -> InputSignals:
            return resolve_inputs(self.graph.automaton, numbers, inputs, span)

        if key is None:
            return make()
        items = key[1:]  # the arguments, without the parameters
        needed = self.remember(("parameters of", *items), lambda: (input_parameters(self.graph.automaton, inputs),))[0]
        read = {name: value for name, value in numbers.items() if needed is None or name in needed}
        return self.remember(("drive", parameter_vector(read).tobytes(), *items, span), make)

    def numerics(
        self, numbers: Mapping[str, ParameterValue], vector: Array, tolerances: Mapping[str, float] | None = None
    ) -> Numerics:
        """Return tolerances and units of a run with these parameters, by name and as a vector.

        Parameters
        ----------
        numbers : Mapping[str, ParameterValue]
            Parameters by name, SI.
        vector : ndarray, shape (n_p,)
            The same in the order of the layout.
        tolerances : Mapping[str, float], optional
            Entries of :class:`fsm_dyn.Tolerances`.

        Returns
        -------
        Numerics
        """
        given = tolerances or {}
        return self.remember(
            ("numerics", vector.tobytes(), *given.items()),
            lambda: numerics_of(self.graph.automaton, numbers, Tolerances(**given)),
        )


def inputs_key(vector: Array, inputs: Mapping[str, InputValue]) -> tuple[Hashable, ...] | None:
    """Return all dependencies of the inputs of a run; None if a callable or a list is among them.

    Parameters
    ----------
    vector : ndarray, shape (n_p,)
        Parameters in the order of the layout, SI.
    inputs : mapping
        By name, in the units of the inputs.

    Returns
    -------
    tuple or None
    """
    if any(not isinstance(value, str | float | int | Schedule) for value in inputs.values()):
        return None
    return (vector.tobytes(), tuple(sorted(inputs.items(), key=lambda item: item[0])))
