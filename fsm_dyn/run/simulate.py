"""Simulation of a mode graph, and reading of saved runs."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from fsm_dyn.automaton.initial_values import model_start
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, Location, RunError
from fsm_dyn.derive.mode_programs import RunnableMode
from fsm_dyn.language.loader import load as load_mechanism
from fsm_dyn.language.values import named_values
from fsm_dyn.run.continuation import continuation_of
from fsm_dyn.run.online_executable import OnlineExecutable
from fsm_dyn.run.record import RunRecord, run_model
from fsm_dyn.run.run_files import SavedRun, parse_run, read_run
from fsm_dyn.run.run_inputs import scenario_schedules
from fsm_dyn.run.run_options import RunOptions, takes_options
from fsm_dyn.run.run_setup import RunArguments
from fsm_dyn.run.simulator import Resume, simulator_of
from fsm_dyn.run.tolerances import Tolerances, numerics_of
from fsm_dyn.run.trajectory import Trajectory


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
        charts.append(executable.charts[number].programs)
        names.append(executable.mode_name(charts[-1].states).name)
    stored = saved.continuation
    given = {} if isinstance(stored, str) else stored.settings.tolerances
    numerics = numerics_of(automaton, values, Tolerances(**given))
    model = run_model(automaton, names, charts, saved.parameters, values, numerics)
    saved.check(model)
    record = _labelled(saved.record, dict(zip(names, model.labels, strict=True)))
    if isinstance(stored, str):
        return Trajectory(model, record, final=stored)
    lengths = (automaton.terms.layout.n_x, automaton.terms.layout.n_c)
    counts = (len(saved.record.t), len(saved.record.transitions))
    continuation = continuation_of(stored, codes, saved.modes, lengths, *counts)
    try:
        options = RunOptions.of_stored(stored.settings)
    except InputError as error:  # by a method not registered here
        return Trajectory(model, record, final=str(error).splitlines()[0])
    named = {} if options.scenario is None else scenario_schedules(automaton, options.scenario)
    run = RunArguments(graph, options, values, saved.parameters, {**named, **(options.inputs or {})})
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
