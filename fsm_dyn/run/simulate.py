"""Simulation of a mode graph, and reading of saved runs."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from fsm_dyn.automaton.initial_values import model_start
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, Location, RunError
from fsm_dyn.derive.mode_programs import RunnableMode
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.values import Parameters, named_values
from fsm_dyn.run.continuation import continuation_of
from fsm_dyn.run.online_executable import OnlineExecutable
from fsm_dyn.run.record import RunRecord, run_model
from fsm_dyn.run.run_files import SavedRun, parse_run, read_run
from fsm_dyn.run.run_inputs import InputValue, scenario_schedules
from fsm_dyn.run.simulator import Resume, Run, simulator_of
from fsm_dyn.run.tolerances import Tolerances, numerics_of
from fsm_dyn.run.trajectory import Trajectory


def simulate(
    graph: ModeGraph,
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
    """Run a mode graph from its start.

    Parameters
    ----------
    graph : ModeGraph
    until : float, optional
        End of the run, s; by default the end of the model's schedule, 5 s at least.
    scenario : str, optional
        One of the model's ``scenarios``: named schedules that replace those of some inputs.
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
    strategy : "auto", "compiled" or "online"
        How modes are evaluated.  ``auto``: by their own kernels if the graph has them; others are embedded
        online from the unconstrained terms at once, and derived in the run when they have been evaluated often.
        ``compiled``: by their own kernels, derived when first reached.  ``online``: all embedded online.
    derive_after : float or mapping, optional
        For ``auto``, after how many evaluations in the run a mode embedded online is derived: by default when they
        have cost about as much as deriving it will; ``inf``: never.  Or this by the names of modes; no other is
        derived then.
    tolerances : Tolerances or mapping, optional
        What counts as zero, and the accuracy of the integration; what is not given is the model's own (``numerics`` in
        its file) or follows from the mechanism's own units.
    rtol, atol : float, optional
        Those of the tolerances; ``atol`` may be one per coordinate and speed.
    step : float, optional
        Length of the fixed steps, s; with it ``dopri5``, the default method, becomes ``rk4``.
    max_step : float
        Longest step, s.
    max_steps : int
        Bound on the number of steps.
    on_failure : "raise" or "return"
        Whether a run that fails raises, or returns its rows with its ``outcome``.
    progress : callable, optional
        Called a few times a second with the time reached, s.

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
    return simulator_of(graph).run(
        until,
        scenario=scenario,
        inputs=inputs,
        parameters=parameters,
        initial=initial,
        method=method,
        strategy=strategy,
        derive_after=derive_after,
        tolerances=tolerances,
        rtol=rtol,
        atol=atol,
        step=step,
        max_step=max_step,
        max_steps=max_steps,
        on_failure=on_failure,
        progress=progress,
    )


def open_run(path: str | os.PathLike[str]) -> Trajectory:
    """Read a run that ``Trajectory.save`` wrote; its model is compiled from the text in the file.

    Parameters
    ----------
    path : str or path
        A file that ``Trajectory.save`` wrote.

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


def _opened(saved: SavedRun, path: str) -> Trajectory:
    """Return the run of a file's content; ``path`` for messages."""
    from fsm_dyn.automaton.compilation import compile as compile_mechanism  # for saved runs alone

    mechanism = load_mechanism(f"<{path}>", text=saved.text)
    values = named_values(mechanism, saved.parameters.tolist())
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
        names.append(executable.chart_names[number])
        charts.append(executable.chart_programs[number])
    stored = saved.continuation
    given = {} if isinstance(stored, str) else stored.settings.tolerances or {}
    numerics = numerics_of(automaton, values, Tolerances(**given))
    model = run_model(automaton, names, charts, saved.parameters, values, numerics)
    saved.check(model)
    record = _labelled(saved.record, dict(zip(names, model.labels, strict=True)))
    if isinstance(stored, str):
        return Trajectory(model, record, final=stored)
    lengths = (automaton.terms.layout.n_x, automaton.terms.layout.n_c)
    counts = (len(saved.record.t), len(saved.record.transitions))
    continuation = continuation_of(stored, codes, saved.modes, lengths, *counts)
    scenario = stored.settings.drive
    inputs: dict[str, InputValue] = {} if scenario is None else dict(scenario_schedules(automaton, scenario))
    inputs |= cast("dict[str, InputValue]", stored.settings.inputs)
    run = Run(graph, values, saved.parameters, stored.settings, inputs)
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
    """Pickle a run as the data of its file: its model is compiled, or found in the cache, where it is read."""
    return _unpickled, (run.to_bytes(),)


copyreg.pickle(Trajectory, _pickled)
