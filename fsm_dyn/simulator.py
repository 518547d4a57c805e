"""What runs of a graph share: kernels in memory, modes derived on the way, starts, inputs and workspace."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import (
    InitialConditions,
    bound_arrays,
    initial_values,
    parameter_vector,
    solve_initial_state,
)
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.compilation import COMPILER, Parameters
from fsm_dyn.errors import InputError, ModelError, RunError, did_you_mean
from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.programs import RunnableMode
from fsm_dyn.online.earned_modes import EarnedExecutable
from fsm_dyn.online.online_executable import OnlineExecutable
from fsm_dyn.renamed import renamed_keywords, warn_renamed
from fsm_dyn.results.continuation import (
    Continuation,
    RunSettings,
    StoredContinuation,
    check_continuation,
    storable,
)  # fmt: skip
from fsm_dyn.results.record import RunModel
from fsm_dyn.results.result_builder import record_of, run_model, with_parameters
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.resumption import Before, Run, numbered
from fsm_dyn.run_inputs import InputValue, input_parameters, last_breakpoint, resolve_inputs, scenario_schedules
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.derived_modes import DerivedModes
from fsm_dyn.simulation.executable import Executable
from fsm_dyn.simulation.input_signals import InputSignals
from fsm_dyn.simulation.integrators import METHODS
from fsm_dyn.simulation.loop_state import Workspace
from fsm_dyn.simulation.moreau_jean_run import run_moreau_jean
from fsm_dyn.simulation.numerics import Numerics, numerics_of
from fsm_dyn.simulation.run_arrays import RunArrays
from fsm_dyn.simulation.run_loop import STIFF_METHODS
from fsm_dyn.simulation.run_loop import run_automaton as integrate
from fsm_dyn.simulation.saving import Saver
from fsm_dyn.simulation.tolerances import Tolerances
from fsm_dyn.spec.model import Schedule
from fsm_dyn.spec.sampling import check_steps
from fsm_dyn.spec.values import ParameterValue, parameter_values

if TYPE_CHECKING:
    from fsm_dyn.automaton.geometric_feasibility import GeometricFeasibility

STRATEGIES: Final = ("auto", "compiled", "online")
OLD_STRATEGIES: Final = {"graph": "compiled", "mixed": "auto"}
TIME_STEPPING: Final = "moreau_jean"
ALL_METHODS: Final = (*METHODS, *STIFF_METHODS, TIME_STEPPING)
_DEFAULTS: Final = Tolerances()
SHORTEST_DEFAULT: Final = 5.0  # s; a run without an end given lasts at least this long
MOST_KEPT: Final = 2**26  # bytes of modes that runs have met, up to which the next run has them at once
MOST_EXECUTABLES: Final = 8  # ways of running for which kernels are kept
LONGEST_MEMORY: Final = 64  # starts, inputs and the like that are kept for the next runs

T = TypeVar("T")
Allowance = float | Mapping[str, float] | None  # evaluations online after which modes are derived, or these by name


@dataclass(frozen=True)
class RunSetup:
    """What a run is given: parameters by name and as a vector, its usual end (s), inputs, start."""

    numbers: Mapping[str, ParameterValue]
    vector: Array
    end: float
    inputs: Mapping[str, InputValue]
    drive: InputSignals
    start: InitialState


class _Alone:
    """Refuses a run of a simulator while another thread is in one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._running = threading.RLock()

    def __enter__(self) -> None:
        if not self._running.acquire(blocking=False):
            raise RunError(
                f"this simulator of '{self._name}' is running in another thread"
                "\n  remedy: one fsm_dyn.Simulator for each thread, or fsm_dyn.simulate, which keeps one for each"
            )

    def __exit__(self, *raised: object) -> None:
        self._running.release()


class Simulator:
    """Runs a mode graph, as often as is wanted.

    Everything that running takes is held here and not by the graph: kernels in memory, modes that runs have derived,
    inputs and starts worked out before, workspace and buffers.  What a run gives depends on the graph and the
    arguments of :meth:`run` alone, to the last bit, not on the runs before it.

    A simulator runs in one thread at a time; each thread has its own.  Simulators of one graph share nothing
    that changes.  :func:`fsm_dyn.simulate` keeps one for every graph and thread.

    Parameters
    ----------
    graph : ModeGraph

    Attributes
    ----------
    graph : ModeGraph
        As given.

    Examples
    --------
    >>> import fsm_dyn
    >>> simulator = fsm_dyn.Simulator(fsm_dyn.compile("bouncing_ball"))
    >>> [round(simulator.run(0.5, initial={"y": h}).transitions[0].time, 3) for h in (0.5, 1.0)]
    [0.319, 0.452]
    """

    def __init__(self, graph: ModeGraph) -> None:
        self.graph = graph
        self.workspace = Workspace()
        # by strategy, those that no run has at the moment
        self._executables: dict[tuple[str, Hashable], list[Executable]] = {}
        self._modes = DerivedModes(MOST_KEPT)  # by runs
        self._memory: dict[Hashable, Any] = {}
        self._alone = _Alone(graph.name)
        if graph.start is not None:
            self._memory[initial_values(graph.automaton, graph.values, graph.parameters).key] = graph.start

    def __repr__(self) -> str:
        return f"<Simulator of {self.graph!r}>"

    @renamed_keywords(drive="scenario")
    def run(
        self,
        until: float | None = None,
        *,
        scenario: str | None = None,
        inputs: Mapping[str, InputValue] | None = None,
        parameters: Parameters | None = None,
        initial: Mapping[str, float | str] | None = None,
        method: str = "dopri5",
        strategy: str = "auto",
        derive_after: float | Mapping[str, float] | None = None,
        tolerances: Tolerances | Mapping[str, float | str] | None = None,
        rtol: float | None = None,
        atol: float | Sequence[float] | None = None,
        step: float | None = None,
        max_step: float = np.inf,
        max_steps: int = 10_000_000,
        on_failure: str = "raise",
        progress: Callable[[float], None] | None = None,
    ) -> Trajectory:
        """Run the graph from its start; arguments, result and what is raised are those of :func:`fsm_dyn.simulate`.

        Raises
        ------
        RunError
            Another thread is in a run of this simulator.
        """
        strategy = strategy_named(strategy, method, derive_after)
        _check_names(method, on_failure)
        with self._alone:
            given = self.setup(scenario, inputs or {}, parameters, initial or {}, until)
            wanted = _DEFAULTS
            if tolerances is not None:
                wanted = tolerances if isinstance(tolerances, Tolerances) else Tolerances.of(tolerances)
            if rtol is not None or isinstance(atol, float | int):
                wanted = Tolerances(rtol=rtol, atol=atol if isinstance(atol, float | int) else None).or_else(wanted)
            stored = {name: storable(value) for name, value in (inputs or {}).items()}
            settings = RunSettings(
                method="rk4" if step and method == "dopri5" else method,
                strategy=strategy,
                derive_after=_stored_allowance(derive_after),
                tolerances={} if wanted is _DEFAULTS else wanted.specified_entries(),
                atol=atol if atol is None else _listed(atol),
                step=float(step or 0.0),
                max_step=None if np.isinf(max_step) else float(max_step),
                drive=scenario,
                inputs={name: value for name, value in stored.items() if value is not None},
            )
            functions = [name for name, value in stored.items() if value is None]
            final = f"the input '{functions[0]}' is a Python function or a schedule made in Python" if functions else ""
            run = Run(self.graph, given.numbers, given.vector, settings, given.inputs, final)
            end = given.end if until is None else until
            trajectory = self._carry_out(run, end, given.drive, given.start, None, max_steps, progress)
        return _checked(trajectory, on_failure)

    def resume(
        self,
        run: Run,
        before: Before,
        until: float,
        *,
        max_steps: int,
        on_failure: str,
        progress: Callable[[float], None] | None,
    ) -> Trajectory:
        """Continue a run; arguments, result and what is raised are those of ``Trajectory.resume``."""
        _check_names(run.settings.method, on_failure)
        check_continuation(before.continuation, run.digest, COMPILER)
        with self._alone:
            driven = self._driven(run.numbers, _inputs_key(run.vector, run.inputs), run.inputs, (0.0, until))
            trajectory = self._carry_out(run, until, driven, None, before, max_steps, progress)
        return _checked(trajectory, on_failure)

    def prepare(self, strategy: str = "auto") -> None:
        """Load the machine code of all modes of the graph, which the first run would do otherwise.

        Parameters
        ----------
        strategy : str, optional
            ``auto``, ``compiled`` or ``online``, as of :func:`fsm_dyn.simulate`.
        """
        strategy = strategy_named(strategy)
        self.give_back(self.take(strategy), strategy)

    def extended_graph(self, run: Trajectory | None = None) -> ModeGraph:
        """Return the graph with further modes, which then are its own: its runs have their kernels from the beginning.

        Parameters
        ----------
        run : Trajectory, optional
            A run of the graph whose modes are added; those that were embedded online are derived now, except where
            that cannot be.  By default, all modes that runs of this simulator have derived are added, up to 64 MiB of
            them: those that were used last.
        """
        if run is None:
            return self.graph.with_modes(self._modes)
        executable, modes = self.take("compiled"), []
        try:
            for chart in run.model.charts:
                with suppress(ModelError):  # its contacts share forces in more ways than can be listed
                    modes.append(executable.derived(tuple(chart.states)))
        finally:
            self.give_back(executable, "compiled")
        return self.graph.with_modes(modes)

    # -- what analyses use as well -----------------------------------------------------------------------------

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

    # -- parts of a run ----------------------------------------------------------------------------------------

    @property
    def _fixed(self) -> int:
        """How many modes the graph has of itself."""
        return len(self.graph.automaton.modes)

    def _new_executable(self, strategy: str, derive_after: Allowance) -> Executable:
        automaton = self.graph.automaton
        numbers = parameter_values(automaton.mechanism)  # of the file, see model_start
        start = self._started(initial_values(automaton, numbers, parameter_vector(numbers)))
        home = start.x.copy(), start.context.copy()
        if strategy == "compiled":
            return Executable(self.extended_graph().automaton, home, known=self._modes)
        if strategy == "online":
            return OnlineExecutable(automaton, home)
        after = tb.NEVER if derive_after == np.inf else derive_after
        return EarnedExecutable(automaton, home, derived=automaton.modes, known=self._modes, derive_after=after)

    def _started(self, begin: InitialConditions) -> InitialState:
        """Return the start that values make; settling takes its time, so it is kept for all runs that begin alike."""
        return self.remember(begin.key, lambda: solve_initial_state(self.graph.automaton, begin))

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
        """
        if inputs or parameters or initial:
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
        end = max(last_breakpoint(automaton, numbers, named), SHORTEST_DEFAULT)
        replaced = {**named, **inputs}
        key = _inputs_key(vector, replaced)
        made = self._driven(numbers, key, replaced, (0.0, end if until is None else until))

        def started() -> InitialState:
            return self._started(initial_values(automaton, numbers, vector, initial, made))

        # by their text: 0.0 and -0.0 are two values
        start = started() if key is None else self.remember(("start of", *key, repr(sorted(initial.items()))), started)
        return RunSetup(numbers, vector, end, replaced, made, start)

    def _driven(
        self,
        numbers: Mapping[str, ParameterValue],
        key: tuple[Hashable, ...] | None,
        inputs: Mapping[str, InputValue],
        span: tuple[float, float],
    ) -> InputSignals:
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

    def _carry_out(
        self,
        run: Run,
        until: float,
        drive: InputSignals,
        start: InitialState | None,
        before: Before | None,
        max_steps: int,
        progress: Callable[[float], None] | None,
    ) -> Trajectory:
        """Run from an initial state, or continue a run."""
        settings = run.settings
        numerics = self.numerics(run.numbers, run.vector, settings.tolerances)
        after = settings.derive_after
        if isinstance(after, float | int) and after < 0:
            after = np.inf
        executable = self.take(settings.strategy, after)
        try:
            executable.use(numerics)
            saver = None if run.final else Saver(executable, run.model)
            if start is not None:
                resumed, x, context, number = None, start.x, start.context, executable.mode_index(start.states)
            if before is not None:
                resumed = before.ready(executable)
                x, held = before.run.record.x[before.row], before.run.record.held[before.row]
                context, number = np.concatenate([run.vector, held]), resumed[1].mode
            if settings.method == TIME_STEPPING:
                check_steps(executable.automaton.mechanism, run.numbers, settings.step)
                raw = run_moreau_jean(
                    executable.tables,
                    x,
                    context,
                    number,
                    until,
                    settings.step,
                    drive,
                    executable,
                    progress,
                    saver,
                    resumed,
                    bound_arrays(executable.automaton, run.numbers),
                )
            else:
                raw = integrate(
                    executable.tables,
                    x,
                    context,
                    number,
                    0.0,
                    until,
                    method=settings.method,
                    rtol=numerics.rtol,
                    atol=numerics.atol if settings.atol is None else np.asarray(settings.atol, dtype=np.float64),
                    step=settings.step,
                    max_step=np.inf if settings.max_step is None else settings.max_step,
                    drive=drive,
                    mode_source=executable,
                    max_steps=max_steps,
                    progress=progress,
                    workspace=self.workspace,
                    saver=saver,
                    resumed=resumed,
                )
            return self._trajectory(executable, raw, run, drive, before)
        finally:
            self.give_back(executable, settings.strategy, after)

    def _trajectory(
        self, executable: Executable, raw: RunArrays, run: Run, drive: InputSignals, before: Before | None
    ) -> Trajectory:
        """Return a run as its user meets it."""
        context = raw.c_end
        part = numbered(run, raw, [chart.states for chart in executable.chart_programs], before)
        names = tuple(executable.chart_names[number] for number in part.order)
        charts = tuple(executable.chart_programs[number] for number in part.order)
        model = self._model(executable.automaton, names, charts, run)
        if self.graph.geometry is not None:
            self._warn_of_excluded(self.graph.geometry, model, names, set(part.raw.mode.tolist()))
        record = record_of(executable.automaton, names, part.raw, lambda times: drive(times, context), model.labelling)
        if part.continuation is None:
            final = run.final or f"it ended for good: {raw.outcome.name}"
            return Trajectory(model, part.joined(record), final=final)
        return Trajectory(model, part.joined(record), Resume(run, part.continuation))

    @staticmethod
    def _warn_of_excluded(
        geometry: GeometricFeasibility, model: RunModel, names: tuple[str, ...], visited: set[int]
    ) -> None:
        """Warn where a run has met a mode that an assessment of the graph proves impossible."""
        for number in sorted(visited):
            name, chart = names[number], model.charts[number]
            states = {contact.name: code > 0 for contact, code in zip(model.contacts, chart.states, strict=True)}
            mode = geometry.modes.get(name)
            reason = mode.reason if mode is not None and mode.verdict == "impossible" else geometry.excluded(states)
            if reason:
                warnings.warn(f"the run met '{name}', which the geometry excludes: {reason}", stacklevel=5)

    def _model(
        self, automaton: Automaton, names: tuple[str, ...], charts: tuple[RunnableMode, ...], run: Run
    ) -> RunModel:
        key = names, tuple(map(id, charts))

        def made() -> RunModel:
            first = self.remember(("model", *key), lambda: run_model(automaton, names, charts, run.vector, run.numbers))
            return with_parameters(first, automaton, run.vector, run.numbers)

        return self.remember(("model", run.vector.tobytes(), *key), made)


@dataclass(frozen=True)
class Resume:
    """Continues a run, with the simulator that the thread keeps for its graph; ``make`` gives what from."""

    run: Run
    make: Callable[[], Continuation]

    @cached_property
    def continuation(self) -> Continuation:
        """What the run is continued from."""
        return self.make()

    def __call__(
        self,
        before: Trajectory,
        until: float,
        *,
        whole: bool,
        max_steps: int,
        on_failure: str,
        progress: Callable[[float], None] | None,
    ) -> Trajectory:
        """Run on from a trajectory."""
        begin = Before(before, self.continuation, whole)
        simulator = simulator_of(self.run.graph)
        return simulator.resume(self.run, begin, until, max_steps=max_steps, on_failure=on_failure, progress=progress)

    def stored(self) -> StoredContinuation:
        """Return what a saved run keeps."""
        return self.continuation.stored()


def _checked(trajectory: Trajectory, on_failure: str) -> Trajectory:
    """Return a run; raise RunError where it failed and that was asked for."""
    if trajectory.outcome.failed and on_failure == "raise":
        first, *rest = trajectory.describe_outcome()
        error = RunError("\n  ".join([f"{trajectory.model.name}: {first}", *rest]))
        error.trajectory = trajectory
        raise error
    return trajectory


def _listed(atol: float | Sequence[float]) -> float | tuple[float, ...]:
    return float(atol) if isinstance(atol, float | int) else tuple(float(value) for value in atol)


class _OfThread(threading.local):
    """The simulators of one thread, by graph; a simulator is released with its graph."""

    def __init__(self) -> None:
        self.simulators: weakref.WeakKeyDictionary[ModeGraph, Simulator] = weakref.WeakKeyDictionary()


_of_thread = _OfThread()


def simulator_of(graph: ModeGraph) -> Simulator:
    """Return the simulator that this thread keeps for a graph."""
    if not isinstance(graph, ModeGraph):
        raise InputError(
            "a run is made of a compiled model",
            found=repr(graph)[:60],
            allowed="a ModeGraph",
            remedy="compile it first: fsm_dyn.simulate(fsm_dyn.compile('NAME or FILE.yaml'))",
        )
    found = _of_thread.simulators.get(graph)
    if found is None:
        # of a twin with the same data, as what it holds would keep the graph itself alive
        found = _of_thread.simulators[graph] = Simulator(replace(graph))
    return found


def strategy_named(name: str, method: str = "", derive_after: Allowance = None) -> str:
    """Return the strategy of this name, which may be an old one, for a run by this method.

    Raises
    ------
    InputError
        There is no such strategy, or ``derive_after`` does not go with it.
    """
    if name in OLD_STRATEGIES:
        warn_renamed("strategy", name, OLD_STRATEGIES[name])
    strategy = OLD_STRATEGIES.get(name, name)
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


def _stored_allowance(derive_after: Allowance) -> float | dict[str, float] | None:
    """Return ``derive_after`` as settings of a run hold it: -1 for never."""
    if isinstance(derive_after, Mapping):
        return {name: float(value) for name, value in sorted(derive_after.items())}
    return None if derive_after is None else -1.0 if derive_after == np.inf else float(derive_after)


def _executable_key(strategy: str, derive_after: Allowance) -> tuple[str, Hashable]:
    return strategy, tuple(sorted(derive_after.items())) if isinstance(derive_after, Mapping) else derive_after


def _check_names(method: str, on_failure: str) -> None:
    if method not in ALL_METHODS:
        raise InputError(
            f"there is no method '{method}'", allowed=", ".join(ALL_METHODS), remedy=did_you_mean(method, ALL_METHODS)
        )
    if on_failure not in ("raise", "return"):
        raise InputError("on_failure", found=repr(on_failure), allowed="'raise' or 'return'")


def _inputs_key(vector: Array, inputs: Mapping[str, InputValue]) -> tuple[Hashable, ...] | None:
    """All that the inputs of a run depend on; None where a callable or a list is among them."""
    if any(not isinstance(value, str | float | int | Schedule) for value in inputs.values()):
        return None
    return (vector.tobytes(), tuple(sorted(inputs.items(), key=lambda item: item[0])))
