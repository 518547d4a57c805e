"""Simulators: the shared objects of the runs of a graph in one thread; runs made, continued, read."""

from __future__ import annotations

import copyreg
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import bound_arrays, model_start
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.storage import run_version
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.errors import InputError, Location, ModelError, RunError, warn_of_energy, warn_of_start, warn_of_steps
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.mode_programs import RunnableMode
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.memory import check_periods, check_steps
from fsm_dyn.language.values import named_values
from fsm_dyn.run.continuation import (
    Before,
    Continuation,
    Saver,
    StoredContinuation,
    check_continuation,
    continuation_of,
    numbered,
)
from fsm_dyn.run.encounters import starts_behind
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.input_signals import InputSignals, scenario_schedules
from fsm_dyn.run.loop import run_automaton
from fsm_dyn.run.loop_state import RunArrays, Workspace
from fsm_dyn.run.moreau_jean import run_moreau_jean
from fsm_dyn.run.online import OnlineExecutable
from fsm_dyn.run.record import RunModel, RunRecord, record_of, run_model, with_parameters
from fsm_dyn.run.run_files import StoredRun, parse_run, read_run
from fsm_dyn.run.run_options import TIME_STEPPING, RunOptions, check_change, continued, takes_options
from fsm_dyn.run.run_setup import RunArguments, RunSetups, inputs_key
from fsm_dyn.run.tolerances import Tolerances, numerics_of
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import guard_name
from fsm_dyn.runtime.abi import Event

if TYPE_CHECKING:
    from fsm_dyn.automaton.feasibility import GeometricFeasibility


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


def _plain(value: Any) -> Any:
    """Return a pair of names as a list, as a file has it."""
    return [*value] if isinstance(value, tuple) else value


class Simulator(RunSetups):
    """Runs a mode graph, as often as is wanted.

    All data of running are held here and not by the graph: kernels in memory, modes derived by runs,
    inputs and starts worked out before, workspace and buffers.  The result of a run depends on the graph and the
    arguments of :meth:`run` alone, to the last bit, not on the runs before it.

    A simulator runs in one thread at a time; each thread has its own.  Simulators of one graph share no
    changing data.  :func:`fsm_dyn.simulate` keeps one for every graph and thread.

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

    @typed
    def __init__(self, graph: ModeGraph) -> None:
        super().__init__(graph)
        self.workspace = Workspace()
        self._alone = _Alone(graph.name)

    def __repr__(self) -> str:
        return f"<Simulator of {self.graph!r}>"

    @takes_options(RunOptions)
    def run(self, options: RunOptions) -> Trajectory:
        """Run the graph from its start; arguments, result and exceptions are those of :func:`fsm_dyn.simulate`.

        Raises
        ------
        RunError
            Another thread is in a run of this simulator.
        """
        return self.carry_out(options)

    @typed
    def carry_out(self, options: RunOptions) -> Trajectory:
        """Run the graph from its start with options; result and errors are those of :meth:`run`."""
        with self._alone:
            run = self.setup(options)
            bounded = options if options.until is not None else replace(options, until=run.end)
            trajectory = self._carry_out(run, bounded, run.drive, run.start)
        return _checked(trajectory, options.on_failure)

    def resume(self, run: RunArguments, before: Before, options: RunOptions) -> Trajectory:
        """Continue a run with options; result and errors are those of ``Trajectory.resume``."""
        check_continuation(before.continuation, run.digest, run_version())
        if (options.method, options.step) != (run.options.method, run.options.step):
            check_change(run.options.method, options.method)
            before.saved_by = run.options.method
        if options.stored() != run.options.stored():
            run = RunArguments(run.graph, options, run.numbers, run.vector, run.inputs)
        until = options.until or 0.0
        with self._alone:
            drive = self.input_signals(run.numbers, inputs_key(run.vector, run.inputs), run.inputs, (0.0, until))
            trajectory = self._carry_out(run, options, drive, before)
        return _checked(trajectory, options.on_failure)

    def constrain(
        self, name: str, *, at: float | str | None = None, until: float | str | None = None, **what: Any
    ) -> Simulator:
        """Return a simulator of the graph with one more constraint, imposed at a time of its runs.

        Its rows are derived now; in a run they are switched, and their modes are embedded online.

        Parameters
        ----------
        name : str
            Of the constraint, and of the input above 0.5 while it holds: ``inputs`` of a run replace its times.
        at, until : float or str, optional
            Times of its imposition and of its release, s, or with a unit; neither: it waits for its input.
        **what : Any
            ``pin``, ``weld``, ``angle``, ``distance``, ``line`` with ``along``, or ``coordinate``; ``holds_to``,
            ``within``, ``draw_in``: the keys of the section ``imposed`` (docs/language.md).

        Raises
        ------
        InputError
            A point, body or coordinate is unknown, or the name is taken.

        Examples
        --------
        >>> import fsm_dyn
        >>> free = fsm_dyn.Simulator(fsm_dyn.compile("bouncing_ball"))
        >>> held = free.constrain("hook", at=0.1, until=0.3, coordinate="y")
        >>> [round(float(y), 3) for y in held.run(0.35).sample([0.1, 0.3])["y"]]
        [0.951, 0.951]
        """
        # with the language, which a run does not need
        from fsm_dyn.automaton import compilation
        from fsm_dyn.language.loader import imposing
        from fsm_dyn.language.values import parameter_values

        mechanism = self.graph.automaton.mechanism
        usual = parameter_values(mechanism)
        changed = {key: value for key, value in self.graph.values.items() if value != usual[key]}
        entry = {"at": at, "until": until, **{key: _plain(value) for key, value in what.items()}}
        return Simulator(compilation.compile(imposing(mechanism, name, **entry), changed))

    def prepare(self, strategy: str = "auto") -> None:
        """Load the machine code of all modes of the graph, which the first run would do otherwise.

        Parameters
        ----------
        strategy : str, optional
            ``auto``, ``compiled`` or ``online``, as of :func:`fsm_dyn.simulate`.
        """
        strategy = RunOptions(strategy=strategy).strategy
        executable = self.take(strategy)
        for number in range(len(executable.charts)):
            executable.wake(number)
        self.give_back(executable, strategy)

    def extended_graph(self, run: Trajectory | None = None) -> ModeGraph:
        """Return the graph with further modes, which then are its own: its runs have their kernels from the beginning.

        Parameters
        ----------
        run : Trajectory, optional
            A run of the graph whose modes are added; those embedded online are derived now, except where
            this is impossible.  By default, all modes derived by runs of this simulator are added, up to 64 MiB of
            them: the last used ones.
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

    # -- parts of a run ----------------------------------------------------------------------------------------

    def _carry_out(
        self, run: RunArguments, options: RunOptions, drive: InputSignals, start: InitialState | Before
    ) -> Trajectory:
        """Run from an initial state, or continue a run."""
        executable = self.take(options.evaluation, options.derive_after)
        try:
            executable.use(self.numerics(run.numbers, run.vector, options.specified))
            raw = self._integrate(executable, run, options, drive, start)
            return self._trajectory(executable, raw, run, drive, start if isinstance(start, Before) else None)
        finally:
            self.give_back(executable, options.evaluation, options.derive_after)

    def _integrate(
        self,
        executable: Executable,
        run: RunArguments,
        options: RunOptions,
        drive: InputSignals,
        start: InitialState | Before,
    ) -> RunArrays:
        """Return the rows of a run by its method, adaptive, of fixed steps, or time stepping."""
        saver = None if run.final else Saver(executable, run.model)
        if isinstance(start, Before):
            resumed = start.ready(executable)
            x, held = start.record.x[start.row], start.record.held[start.row]
            context, number = np.concatenate([run.vector, held]), resumed[1].mode
        else:
            resumed, x, context, number = None, start.x, start.context, executable.mode_index(start.states)
        if options.method == TIME_STEPPING:
            check_steps(executable.automaton.mechanism, run.numbers, options.step or 0.0)
            return run_moreau_jean(
                executable.tables, x, context, number, options, drive, executable, saver, resumed,
                bound_arrays(executable.automaton, run.numbers), [*executable.automaton.mechanism.contacts],
            )  # fmt: skip
        check_periods(executable.automaton.mechanism, run.numbers, executable.numerics.tolerances.coincidence or 0.0)
        return run_automaton(
            executable.tables, x, context, number, 0.0, options.resolved(executable.numerics), drive=drive,
            mode_source=executable, workspace=self.workspace, saver=saver, resumed=resumed,
            saved_by=start.saved_by if isinstance(start, Before) else "",
        )  # fmt: skip

    def _trajectory(
        self, executable: Executable, raw: RunArrays, run: RunArguments, drive: InputSignals, before: Before | None
    ) -> Trajectory:
        """Return a run as its user meets it."""
        context = raw.c_end
        part = numbered(run, raw, [chart.programs.states for chart in executable.charts], before)
        charts = tuple(executable.charts[number].programs for number in part.order)
        names = tuple(executable.mode_name(chart.states).name for chart in charts)
        model = self._model(executable.automaton, names, charts, run)
        if self.graph.geometry is not None:
            self._warn_of_excluded(self.graph.geometry, model, names, set(part.raw.mode.tolist()))
        record = record_of(executable.automaton, names, part.raw, lambda times: drive(times, context), model.labelling)
        resume = None if part.continuation is None else Resume(run, part.continuation)
        final = run.final or f"it ended for good: {raw.outcome.name}"
        trajectory = Trajectory(model, part.joined(record), resume, final)
        of_start: tuple[str, ...] = ()
        if before is None and not trajectory.outcome.failed:
            begin, first = trajectory.record, np.concatenate([run.vector, trajectory.record.held[0]])
            least = executable.numerics.tolerances.gap or 0.0
            states = charts[begin.mode[0]].states
            of_start = starts_behind(executable.automaton, states, float(begin.t[0]), begin.x[0], first, least)
        of_steps = _undecided(executable.automaton, raw)
        trajectory.check(of_start, of_steps, fixed_steps=run.options.step is not None)
        return trajectory

    @staticmethod
    def _warn_of_excluded(
        geometry: GeometricFeasibility, model: RunModel, names: tuple[str, ...], visited: set[int]
    ) -> None:
        """Warn if a run has reached a mode proven infeasible by an assessment of the graph."""
        for number in sorted(visited):
            name, chart = names[number], model.charts[number]
            states = {contact.name: code for contact, code in zip(model.contacts, chart.states, strict=True)}
            mode = geometry.modes.get(name)
            reason = mode.reason if mode is not None and mode.verdict == "impossible" else geometry.excluded(states)
            if reason:
                warnings.warn(f"the run met '{name}', which the geometry excludes: {reason}", stacklevel=5)

    def _model(
        self, automaton: Automaton, names: tuple[str, ...], charts: tuple[RunnableMode, ...], run: RunArguments
    ) -> RunModel:
        key = names, tuple(map(id, charts))
        given = run.options.specified

        def made() -> RunModel:
            first = self.remember(("model", *key), lambda: run_model(automaton, names, charts, run.vector, run.numbers))
            numerics = self.numerics(run.numbers, run.vector, given)
            return with_parameters(first, automaton, run.vector, run.numbers, numerics)

        return self.remember(("model", run.vector.tobytes(), tuple((given or {}).items()), *key), made)


@dataclass(frozen=True)
class Resume:
    """Continues a run, with the simulator of the thread for its graph; ``make`` returns the state to resume from."""

    run: RunArguments
    make: Callable[[], Continuation]

    @cached_property
    def continuation(self) -> Continuation:
        """State to continue the run from."""
        return self.make()

    def __call__(self, before: Trajectory, whole: bool, **options: Any) -> Trajectory:
        """Run on from a trajectory, with these options in the place of its own."""
        begin = Before(before.record, self.continuation, whole)
        return simulator_of(self.run.graph).resume(self.run, begin, continued(self.run.options, options))

    def stored(self) -> StoredContinuation:
        """Return the data of a saved run."""
        return self.continuation.stored()


def _undecided(automaton: Automaton, raw: RunArrays) -> tuple[str, ...]:
    steps, event, subject = raw.undecided.tolist()
    if not steps:
        return ()
    name = guard_name(automaton, Event(event), subject)
    return (
        f"{steps} steps were halved as bounds of the guard of '{name}' were too wide to decide it: bring repeated "
        "terms of its expression together, or set a shorter longest step",
    )


def _checked(trajectory: Trajectory, on_failure: str) -> Trajectory:
    """Return a run; warn of its warnings, raise RunError if it failed and this was requested."""
    if trajectory.warnings:
        begins = len(trajectory.of_start) + len(trajectory.of_steps)
        warn_of_start(trajectory.model.name, trajectory.of_start)
        warn_of_steps(trajectory.model.name, trajectory.of_steps)
        warn_of_energy(trajectory.model.name, trajectory.warnings[begins:])
    if trajectory.outcome.failed and on_failure == "raise":
        first, *rest = trajectory.describe_outcome()
        error = RunError("\n  ".join([f"{trajectory.model.name}: {first}", *rest]))
        error.trajectory = trajectory
        raise error
    return trajectory


class _OfThread(threading.local):
    """The simulators of one thread, by graph; a simulator is released with its graph."""

    def __init__(self) -> None:
        self.simulators: weakref.WeakKeyDictionary[ModeGraph, Simulator] = weakref.WeakKeyDictionary()


_of_thread = _OfThread()


def simulator_of(graph: ModeGraph) -> Simulator:
    """Return the simulator of this thread for a graph. Raises InputError: it is no graph."""
    if not isinstance(graph, ModeGraph):
        raise InputError(
            "a run is made of a compiled model",
            found=repr(graph)[:60],
            allowed="a ModeGraph",
            remedy="compile it first: fsm_dyn.simulate(fsm_dyn.compile('NAME or FILE.yaml'))",
        )
    found = _of_thread.simulators.get(graph)
    if found is None:
        # of a twin with the same data, as its contents would keep the graph itself alive
        found = _of_thread.simulators[graph] = Simulator(replace(graph))
    return found


@takes_options(RunOptions)
def simulate(graph: ModeGraph, options: RunOptions) -> Trajectory:
    """Run a mode graph from its start.

    Parameters
    ----------
    graph : ModeGraph
    options : RunOptions
        By their names; ``until`` may come first without its name.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        A name is unknown, or a value is not allowed.
    RunError
        The run failed; its ``trajectory`` contains the rows up to there.
    """
    return simulator_of(graph).carry_out(options)


@typed
def open_run(path: str | os.PathLike[str]) -> Trajectory:
    """Read a run written by ``Trajectory.save``; its model is compiled from the text in the file.

    Parameters
    ----------
    path : str or path
        A file of ``Trajectory.save``.

    Returns
    -------
    Trajectory
        The run with its rows, transitions and dense output; it can be continued if it could be when it was saved.

    Raises
    ------
    InputError
        The file is not a saved run, or is inconsistent.
    """
    return _opened(read_run(os.fspath(path)), os.fspath(path))


def _opened(saved: StoredRun, path: str) -> Trajectory:
    """Return the run of a file's content; ``path`` for messages."""
    from fsm_dyn.automaton.compilation import compile as compile_mechanism  # for saved runs alone

    mechanism = load_mechanism(f"<{path}>", text=saved.text)
    values = named_values(mechanism, saved.parameters)
    graph = compile_mechanism(mechanism)
    automaton = graph.automaton
    names: list[str] = []
    charts: list[RunnableMode] = []
    codes = [contact.codes for contact in automaton.contacts]
    executable: OnlineExecutable | None = None
    for states in saved.modes:
        if len(states) != len(codes) or any(code not in known for code, known in zip(states, codes, strict=True)):
            raise InputError("the saved run does not fit its model", found=f"contact states {states}")
        index = automaton.find(states)
        if index >= 0:
            names.append(automaton.modes[index].name)
            charts.append(automaton.modes[index].programs)
            continue
        if executable is None:  # modes first reached in the run are embedded online
            home = model_start(automaton)
            executable = OnlineExecutable(automaton, (home.x, home.context))
        try:
            number = executable.mode_index(states)
        except RunError as error:
            raise InputError("the saved run does not fit its model", found=str(error)) from None
        charts.append(executable.charts[number].programs)
        names.append(executable.mode_name(charts[-1].states).name)
    stored = saved.continuation
    given = {} if isinstance(stored, str) else stored.settings.tolerances
    numerics = numerics_of(automaton, values, Tolerances(**given))
    model = run_model(automaton, names, charts, np.array(saved.parameters), values, numerics)
    record = _labelled(saved.record(model), dict(zip(names, model.labels, strict=True)))
    if isinstance(stored, str):
        return Trajectory(model, record, final=stored)
    lengths = (automaton.terms.layout.n_x, automaton.terms.layout.n_c)
    counts = (len(record.t), len(record.transitions))
    continuation = continuation_of(stored, codes, saved.modes, lengths, *counts)
    try:
        options = RunOptions.of_stored(stored.settings)
    except InputError as error:  # by a method not registered here
        return Trajectory(model, record, final=str(error).splitlines()[0])
    named = {} if options.scenario is None else scenario_schedules(automaton, options.scenario)
    run = RunArguments(graph, options, values, model.parameters, {**named, **(options.inputs or {})})
    return Trajectory(model, record, Resume(run, lambda: continuation))


def _labelled(record: RunRecord, labels: Mapping[str, str]) -> RunRecord:
    """Return a record whose transitions have the labels of this version, by the names of their modes."""
    transitions = tuple(
        replace(item, source_label=labels[item.source], target_label=labels[item.target]) for item in record.transitions
    )
    return replace(record, read_transitions=lambda: transitions)


def _unpickled(data: bytes) -> Trajectory:
    return _opened(parse_run(data, Location("a pickled run")), "a pickled run")


def _pickled(run: Trajectory) -> tuple[Callable[[bytes], Trajectory], tuple[bytes]]:
    """Pickle a run as the data of its file: its model is compiled, or found in the cache, on reading."""
    return _unpickled, (run.to_bytes(),)


copyreg.pickle(Trajectory, _pickled)
