"""Resolved settings of a run: options, parameters, inputs, start, tolerances; executables kept from run to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import InitialConditions, initial_values, parameter_vector, solve_initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.derive.elimination import Array
from fsm_dyn.language.elements import Schedule
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.run.continuation import RunSettings, StoredInput
from fsm_dyn.run.executable import DerivedModes, Executable
from fsm_dyn.run.input_signals import InputSignals
from fsm_dyn.run.integrators import METHODS
from fsm_dyn.run.loop import STIFF_METHODS
from fsm_dyn.run.online_executable import EarnedExecutable, OnlineExecutable
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.run_inputs import InputValue, default_end, input_parameters, resolve_inputs, scenario_schedules
from fsm_dyn.run.tolerances import Numerics, Tolerances, numerics_of
from fsm_dyn.runtime.abi import NEVER

# -- Names of methods and strategies -------------------------------------------------------------------------
#
# Names of methods and strategies, and the settings of a run from the arguments of :func:`fsm_dyn.simulate`.

STRATEGIES: Final = ("auto", "compiled", "online")
TIME_STEPPING: Final = "moreau_jean"
_DEFAULTS: Final = Tolerances()

Allowance = float | Mapping[str, float] | None  # evaluations online after which modes are derived, or these by name


def all_methods() -> tuple[str, ...]:
    """Return the names of all methods, those added to ``METHODS`` among them."""
    return (*METHODS, *STIFF_METHODS, TIME_STEPPING)


def strategy_named(strategy: str, method: str = "", derive_after: Allowance = None) -> str:
    """Return the strategy of this name for a run by this method.

    Raises
    ------
    InputError
        There is no such strategy, or ``derive_after`` does not go with it.
    """
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy '{strategy}'",
            allowed=", ".join(STRATEGIES),
            remedy=did_you_mean(strategy, STRATEGIES),
        )
    given = derive_after.values() if isinstance(derive_after, Mapping) else (derive_after,)
    if derive_after is not None and not (
        strategy == "auto" and all(value is not None and value >= 0 for value in given)
    ):
        raise InputError(
            "derive_after", found=f"{derive_after!r} with strategy '{strategy}'",
            allowed="a number of evaluations, 0 to inf, or one for each mode by name, with strategy 'auto'",
        )  # fmt: skip
    # time stepping evaluates no mode, so none that it meets has to be derived
    return "auto" if method == TIME_STEPPING and strategy == "compiled" else strategy


def check_names(method: str, on_failure: str) -> None:
    """Refuse a method or a reaction to failure that does not exist.

    Raises
    ------
    InputError
    """
    if method not in (known := all_methods()):
        raise InputError(f"there is no method '{method}'", allowed=", ".join(known), remedy=did_you_mean(method, known))
    if on_failure not in ("raise", "return"):
        raise InputError("on_failure", found=repr(on_failure), allowed="'raise' or 'return'")


def method_with(method: str, step: float | None) -> str:
    """Return the method of a run: with the length of fixed steps (s) ``dopri5``, the default, becomes ``rk4``.

    Raises
    ------
    InputError
        There is a length of steps and the method chooses its own.
    """
    if not step or (method in METHODS and not METHODS[method].adaptive) or method == TIME_STEPPING:
        return method
    if method == "dopri5":
        return "rk4"
    fixed = [*(name for name, known in METHODS.items() if not known.adaptive), TIME_STEPPING]
    raise InputError(
        f"method '{method}' chooses the length of its steps",
        found=f"step = {step:g}",
        allowed=f"step with {', '.join(fixed)}",
        remedy="leave step out; max_step bounds the steps",
    )


def settings_of(
    *,
    method: str,
    strategy: str,
    derive_after: Allowance,
    tolerances: Tolerances | Mapping[str, float | str] | None,
    rtol: float | None,
    atol: float | Sequence[float] | None,
    step: float | None,
    max_step: float,
    scenario: str | None,
    inputs: Mapping[str, StoredInput | None],
) -> RunSettings:
    """Return the settings of a run as a saved run keeps them; arguments are those of :func:`fsm_dyn.simulate`.

    Parameters
    ----------
    strategy : str
        One of :data:`STRATEGIES`.
    inputs : mapping
        By name, None for those that cannot be stored.
    """
    wanted = _DEFAULTS
    if tolerances is not None:
        wanted = tolerances if isinstance(tolerances, Tolerances) else Tolerances.of(tolerances)
    if rtol is not None or isinstance(atol, float | int):
        wanted = Tolerances(rtol=rtol, atol=atol if isinstance(atol, float | int) else None).or_else(wanted)
    return RunSettings(
        method=method_with(method, step),
        strategy=strategy,
        derive_after=_stored_allowance(derive_after),
        tolerances={} if wanted is _DEFAULTS else wanted.specified_entries(),
        atol=atol if atol is None else _listed(atol),
        step=float(step or 0.0),
        max_step=None if math.isinf(max_step) else float(max_step),
        drive=scenario,
        inputs={name: value for name, value in inputs.items() if value is not None},
    )


def allowance_of(settings: RunSettings) -> Allowance:
    """Return ``derive_after`` of the settings of a run."""
    after = settings.derive_after
    return np.inf if isinstance(after, float | int) and after < 0 else after


def _listed(atol: float | Sequence[float]) -> float | tuple[float, ...]:
    return float(atol) if isinstance(atol, float | int) else tuple(float(value) for value in atol)


def _stored_allowance(derive_after: Allowance) -> float | dict[str, float] | None:
    """Return ``derive_after`` as settings of a run hold it: -1 for never."""
    if isinstance(derive_after, Mapping):
        return {name: float(value) for name, value in sorted(derive_after.items())}
    return None if derive_after is None else -1.0 if derive_after == np.inf else float(derive_after)


# -- Running forms of a graph --------------------------------------------------------------------------------
#
# Running forms of a graph that are kept from run to run, the modes that runs have derived, and what else is kept.

MOST_KEPT: Final = 2**26  # bytes of modes that runs have met, up to which the next run has them at once
MOST_EXECUTABLES: Final = 8  # ways of running for which kernels are kept
LONGEST_MEMORY: Final = 64  # starts, inputs and the like that are kept for the next runs

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
        # by strategy, those that no run has at the moment
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
            What :meth:`take` returned.
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
        """Memory of modes that are kept for the next runs, bytes.

        At most 64 MiB of those that runs have derived, and 64 MiB a way of running, of which eight are kept.  What is
        dropped is made again by the run that needs it, which gives the same to the last bit.
        """
        return self._modes.memory + sum(executable.memory for idle in self._executables.values() for executable in idle)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for ``key`` before, or make it now; kept are those that were used last.

        Parameters
        ----------
        key : Hashable
            All that the result depends on.
        make : Callable[[], T]
            Makes it, without arguments.

        Returns
        -------
        object
            What ``make`` returned, now or before.
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
        if strategy == "online":
            return OnlineExecutable(automaton, home)
        after = NEVER if derive_after == np.inf else derive_after
        return EarnedExecutable(automaton, home, derived=automaton.modes, known=self._modes, derive_after=after)

    def initial_state_of(self, begin: InitialConditions) -> InitialState:
        """Return the start that values make; settling takes its time, so it is kept for all runs that begin alike."""
        return self.remember(begin.key, lambda: solve_initial_state(self.graph.automaton, begin))


def _executable_key(strategy: str, derive_after: Allowance) -> tuple[str, Hashable]:
    return strategy, tuple(sorted(derive_after.items())) if isinstance(derive_after, Mapping) else derive_after


# -- Resolved arguments of a run -----------------------------------------------------------------------------
#
# What a run is given: parameters, inputs, start and tolerances, worked out once for all runs that begin alike.


@dataclass(frozen=True)
class RunSetup:
    """What a run is given: parameters by name and as a vector, its usual end (s), inputs, start."""

    numbers: Mapping[str, ParameterValue]
    vector: Array
    end: float
    inputs: Mapping[str, InputValue]
    drive: InputSignals
    start: InitialState


class RunSetups(ExecutablePool):
    """Executables of a graph, and what its runs are given."""

    def setup(
        self,
        scenario: str | None,
        inputs: Mapping[str, InputValue],
        parameters: Parameters | None,
        initial: Mapping[str, float | str],
        until: float | None,
    ) -> RunSetup:
        """Return what a run with these arguments of :func:`fsm_dyn.simulate` is given.

        Parameters
        ----------
        scenario : str
            Schedules of the model; by default ``schedule``.
        inputs : Mapping[str, InputValue]
            Signals by name, in the units of the inputs.
        parameters : Parameters
            Values by name, SI or with units.
        initial : Mapping[str, float or str]
            Coordinates, speeds and ``mode``.
        until : float
            End, s; by default that of the schedules.

        Returns
        -------
        RunSetup

        Raises
        ------
        InputError
            Values are not given by name.
        """
        if inputs or parameters or initial:
            for name, given in (("inputs", inputs), ("parameters", parameters), ("initial", initial)):
                if given and not isinstance(given, Mapping):
                    raise InputError(f"'{name}' is not a mapping", found=repr(given)[:80], allowed="values by name")
            return self._new_setup(scenario, inputs, parameters, initial, until)
        return self.remember(("usual", scenario, until), lambda: self._new_setup(scenario, {}, None, {}, until))

    def _new_setup(
        self,
        scenario: str | None,
        inputs: Mapping[str, InputValue],
        parameters: Parameters | None,
        initial: Mapping[str, float | str],
        until: float | None,
    ) -> RunSetup:
        graph, automaton = self.graph, self.graph.automaton
        numbers: Mapping[str, ParameterValue] = graph.values
        vector = graph.parameters
        if parameters:
            numbers = parameter_values(automaton.mechanism, parameters)
            vector = parameter_vector(numbers)
        named = scenario_schedules(automaton, scenario) if scenario is not None else {}
        end = default_end(automaton, numbers, named)
        replaced = {**named, **inputs}
        key = inputs_key(vector, replaced)
        made = self.input_signals(numbers, key, replaced, (0.0, end if until is None else until))

        def started() -> InitialState:
            return self.initial_state_of(initial_values(automaton, numbers, vector, initial, made))

        # by their text: 0.0 and -0.0 are two values
        start = started() if key is None else self.remember(("start of", *key, repr(sorted(initial.items()))), started)
        return RunSetup(numbers, vector, end, replaced, made, start)

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
            That of :func:`inputs_key`.
        inputs : Mapping[str, InputValue]
            By name, in the units of the inputs.
        span : tuple of float
            From when to when, s.
        """

        def make() -> InputSignals:
            return resolve_inputs(self.graph.automaton, numbers, inputs, span)

        if key is None:
            return make()
        items = key[1:]  # what is given, without the parameters
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
    """Return all that the inputs of a run depend on; None where a callable or a list is among them.

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
