"""Runs: a graph, its inputs and a method become a trajectory."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.artefact import Automaton
from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.automaton.start import Start
from fsm_dyn.compiling import Parameters, initial_start, initial_values, parameter_vector, start_from
from fsm_dyn.compiling import compile as compile_mechanism
from fsm_dyn.driving import InputValue, last_breakpoint, make_drive, named_drive
from fsm_dyn.errors import InputError, RunError, nearest
from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.programs import RunnableMode
from fsm_dyn.online.machine import OnlineMachine
from fsm_dyn.recording.assembly import record_of, run_model
from fsm_dyn.recording.record import RunModel
from fsm_dyn.recording.saved import read_run
from fsm_dyn.recording.trajectory import Trajectory
from fsm_dyn.simulation.drive import Drive
from fsm_dyn.simulation.integrators import METHODS
from fsm_dyn.simulation.machine import Machine
from fsm_dyn.simulation.moreau_jean_run import run_moreau_jean
from fsm_dyn.simulation.raw_run import renumbered
from fsm_dyn.simulation.run import STIFF_METHODS, run
from fsm_dyn.spec import load as load_mechanism
from fsm_dyn.spec.model import Schedule
from fsm_dyn.spec.values import ParameterValue, named_values, parameter_values

STRATEGIES = ("graph", "online", "mixed")
TIME_STEPPING = "moreau_jean"
ALL_METHODS = (*METHODS, *STIFF_METHODS, TIME_STEPPING)
SHORTEST_DEFAULT = 5.0  # s; a run without an end given lasts at least this long


def simulate(
    graph: ModeGraph,
    until: float | None = None,
    *,
    drive: str | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    parameters: Parameters | None = None,
    initial: Mapping[str, float | str] | None = None,
    method: str = "dopri5",
    strategy: str = "graph",
    rtol: float = 1e-9,
    atol: float | Sequence[float] = 1e-11,
    step: float | None = None,
    max_step: float = np.inf,
    max_steps: int = 10_000_000,
    on_failure: str = "raise",
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Run a mode graph from its start.

    Parameters
    ----------
    graph : ModeGraph
    until : float, optional
        End of the run, s; by default the end of the model's schedule, 5 s at least.
    drive : str, optional
        One of the model's ``drives``: named schedules that replace those of some inputs.
    inputs : mapping, optional
        Inputs that replace the schedule's: a number, an expression of ``t``, rows of (time, value), a mapping with
        ``linear``, ``steps`` or ``expression``, or a Python callable of the time.
    parameters : mapping, optional
        Parameters for this run (SI numbers, or text with units); nothing is compiled again.
    initial : mapping, optional
        Values that replace those under ``initial``: coordinates, speeds, memory, ``mode``.
    method : str
        ``dopri5`` (adaptive, the default), ``rk4 heun euler`` (fixed ``step``), ``radau bdf`` (stiff models),
        ``moreau_jean`` (time stepping with a fixed ``step``: no event is located).
    strategy : "graph", "online" or "mixed"
        How modes are evaluated: by kernels of their own, derived when first reached; all of them embedded on line from
        the unconstrained terms; or by kernels where the compiled graph has them and on line elsewhere.
    rtol, atol : float
        Relative and absolute tolerance of a step's error; ``atol`` may be one per coordinate and speed.
    step : float, optional
        Length of the fixed steps, s.
    max_step : float
        Longest step, s.
    max_steps : int
        Bound on the number of steps.
    on_failure : "raise" or "return"
        Whether a run that cannot go on raises, or returns what it recorded with its ``outcome``.
    progress : callable, optional
        Called a few times a second with the time reached, s.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        A name or value is impossible.
    RunError
        The run could not go on; its ``trajectory`` holds what was recorded.
    """
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy '{strategy}'", allowed=", ".join(STRATEGIES), remedy=nearest(strategy, STRATEGIES)
        )
    if method not in ALL_METHODS:
        raise InputError(
            f"there is no method '{method}'", allowed=", ".join(ALL_METHODS), remedy=nearest(method, ALL_METHODS)
        )
    if on_failure not in ("raise", "return"):
        raise InputError("on_failure", found=repr(on_failure), allowed="'raise' or 'return'")
    automaton = graph.automaton
    if parameters:
        numbers: Mapping[str, ParameterValue] = parameter_values(automaton.mechanism, parameters)
        vector = parameter_vector(numbers)
    else:
        numbers, vector = graph.values, graph.parameters
    named = named_drive(automaton, drive) if drive is not None else {}
    if until is None:
        until = max(last_breakpoint(automaton, numbers, named), SHORTEST_DEFAULT)
    replaced = {**named, **(inputs or {})}
    key = _inputs_key(vector, replaced)
    driven = _drive(graph, numbers, key, replaced, until)
    start = _start(graph, numbers, vector, key, initial or {}, driven)
    if method == TIME_STEPPING and strategy == "graph":
        # time stepping evaluates no mode, so none that it meets has to be derived
        strategy = "mixed"
    machine = take_machine(graph, strategy)
    try:
        number = machine.number_of(start.states)
        if method == TIME_STEPPING:
            raw = run_moreau_jean(
                machine.tables, start.x, start.context, number, until, step or 0.0, driven, machine, progress
            )
        else:
            raw = run(
                machine.tables,
                start.x,
                start.context,
                number,
                0.0,
                until,
                method="rk4" if step and method == "dopri5" else method,
                rtol=rtol,
                atol=atol if isinstance(atol, float | int) else np.asarray(atol, dtype=np.float64),
                step=step or 0.0,
                max_step=max_step,
                drive=driven,
                mode_source=machine,
                max_steps=max_steps,
                progress=progress,
            )
        context, automaton = start.context, machine.automaton
        modes = tuple(zip(machine.chart_names, machine.chart_programs, strict=True))
    finally:
        give_back(graph, strategy, machine)

    def inputs_at(times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return driven(times, context)

    raw, order = renumbered(raw, 0 if strategy == "online" else graph.derived)
    names, charts = zip(*[modes[number] for number in order], strict=True)
    model = _model(graph, automaton, names, charts, (numbers, vector))
    trajectory = Trajectory(model, record_of(automaton, names, raw, inputs_at, model.labelling))
    if raw.outcome.failed and on_failure == "raise":
        first, *rest = trajectory.describe_end()
        error = RunError("\n  ".join([f"{trajectory.model.name}: {first}", *rest]))
        error.trajectory = trajectory
        raise error
    return trajectory


def open_run(path: str | os.PathLike[str]) -> Trajectory:
    """Read a run that ``Trajectory.save`` wrote; its model is compiled from the text in the file.

    Raises
    ------
    InputError
        The file is not a saved run, or does not hold together.
    """
    saved = read_run(os.fspath(path))
    mechanism = load_mechanism(f"<{path}>", text=saved.text)
    values = named_values(mechanism, saved.parameters.tolist())
    graph = compile_mechanism(mechanism)
    automaton = graph.automaton
    home = initial_start(automaton, graph.values, graph.parameters)
    names, charts = [], []
    codes = [contact.codes for contact in automaton.contacts]
    for states in saved.modes:
        if len(states) != len(codes) or any(code not in known for code, known in zip(states, codes, strict=True)):
            raise InputError("the saved run does not fit its model", found=f"contact states {states}")
        index = automaton.find(states)
        if index < 0:
            automaton = automaton.with_mode(automaton.derive(states, 0.0, home.x, home.context))
        names.append(automaton.modes[index].name)
        charts.append(automaton.modes[index].programs)
    model = run_model(automaton, names, charts, saved.parameters, values)
    saved.check(model)
    return Trajectory(model, saved.record)


# What several runs of a graph share is made once: the key says all it depends on.


def _inputs_key(vector: Array, inputs: Mapping[str, InputValue]) -> tuple[Hashable, ...] | None:
    """All that the inputs of a run depend on; None where a callable or a list is among them."""
    if any(not isinstance(value, str | float | int | Schedule) for value in inputs.values()):
        return None
    return (vector.tobytes(), tuple(sorted(inputs.items(), key=lambda item: item[0])))


def _drive(
    graph: ModeGraph,
    numbers: Mapping[str, ParameterValue],
    key: tuple[Hashable, ...] | None,
    inputs: Mapping[str, InputValue],
    until: float,
) -> Drive:
    def make() -> Drive:
        return make_drive(graph.automaton, numbers, inputs, (0.0, until))

    return make() if key is None else graph.remember(("drive", *key), make)


def _start(
    graph: ModeGraph,
    numbers: Mapping[str, ParameterValue],
    vector: Array,
    key: tuple[Hashable, ...] | None,
    initial: Mapping[str, float | str],
    drive: Drive,
) -> Start:
    def make() -> Start:
        begin = initial_values(graph.automaton, numbers, vector, initial, drive)
        # settling takes its time, so a start is kept for all runs that begin alike, whatever their inputs do later
        return graph.remember(begin.key, lambda: start_from(graph.automaton, begin))

    # by their text: 0.0 and -0.0 are two values
    return make() if key is None else graph.remember(("start of", *key, repr(sorted(initial.items()))), make)


def _model(
    graph: ModeGraph,
    automaton: Automaton,
    names: tuple[str, ...],
    charts: tuple[RunnableMode, ...],
    parameters: tuple[Mapping[str, ParameterValue], Array],
) -> RunModel:
    numbers, vector = parameters
    return graph.remember(
        ("model", vector.tobytes(), names, tuple(map(id, charts))),
        lambda: run_model(automaton, names, charts, vector, numbers),
    )


def ready_machine(graph: ModeGraph) -> Machine:
    """Return the compiled form in which the graph's next run will find it, made now if there is none."""
    machine = take_machine(graph, "graph")
    give_back(graph, "graph", machine)
    return machine


def take_machine(graph: ModeGraph, strategy: str) -> Machine:
    """Return a compiled form of a graph without the charts of earlier runs; in no other run until it is given back.

    Parameters
    ----------
    strategy : "graph", "online" or "mixed"
        As for :func:`simulate`.
    """
    try:
        machine = _idle_machines(graph, strategy).pop()  # whoever takes it out has it, in whatever thread
    except IndexError:
        home = _home(graph)
        if strategy == "graph":
            machine = Machine(graph.automaton, home)
        else:
            # modes that earlier runs have added do not count, so that a run does not depend on them
            derived = graph.automaton.modes[: graph.derived] if strategy == "mixed" else ()
            machine = OnlineMachine(graph.automaton, home, derived=derived)
    machine.forget_charts()
    return machine


def give_back(graph: ModeGraph, strategy: str, machine: Machine) -> None:
    """Keep a machine for the graph's next run, and the modes it derived."""
    if strategy == "graph" and machine.automaton is not graph.automaton:
        graph.add_modes(machine.automaton.modes)
    _idle_machines(graph, strategy).append(machine)


def _idle_machines(graph: ModeGraph, strategy: str) -> list[Machine]:
    return graph.machines.setdefault(strategy, [])


def _home(graph: ModeGraph) -> tuple[Array, Array]:
    """Return where further modes are derived: the model's start with the parameters of its file, as when compiling.

    What a mode's programs are follows from the model alone then, and not from the parameters of the run that is first
    to need them.
    """
    numbers = parameter_values(graph.automaton.mechanism)
    begin = initial_values(graph.automaton, numbers, parameter_vector(numbers))
    home = graph.remember(begin.key, lambda: start_from(graph.automaton, begin))
    return home.x.copy(), home.context.copy()
