"""Replay of recordings: the same ticks with the recorded inputs, not paced."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.initial_values import model_start
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.live.mode_pool import OwnKernels
from fsm_dyn.live.recording import Recording, recorded_graph
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import ADVANCED, INCOMPLETE_COLUMN, STATUS_COLUMN
from fsm_dyn.live.tick_process import new_stepper
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.run.executable import compiled_together
from fsm_dyn.run.online import own_programs
from fsm_dyn.run.simulator import simulate
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.runtime.abi import Status, TickCounts

_ASKING: Final = (Status.NEED_MODE, Status.NEED_CHART, Status.BUFFER_FULL)
_REPEATED: Final = ("reset", "scrub", "speed", "set")  # commands with effects beyond the recorded inputs


def replay(recorded: Recording) -> tuple[NDArray[np.float64], LiveStepper]:
    """Repeat the run of a recording tick by tick.

    Parameters
    ----------
    recorded : Recording
        An opened recording.

    Returns
    -------
    records : float64 array
        The transitions, in the form of ``recorded.records`` and equal to them bit for bit.
    stepper : LiveStepper
        In its state at the end.
    """
    stepper = new_stepper(recorded.settings, recorded_graph(recorded))
    stepper.prepare()
    commands: dict[int, list[dict[str, Any]]] = {}
    for event in recorded.events:
        if event.get("event") == "command_done" and event["command"]["do"] in _REPEATED:
            commands.setdefault(int(event["tick"]), []).append(event["command"])
        elif event.get("event") == "kernel_adopted":
            commands.setdefault(int(event["tick"]), []).append({"do": "take over", "states": tuple(event["states"])})
    inputs = recorded.rows[:, recorded.columns.places["inputs"]]
    motion = recorded.columns.places["motion"]
    found = []
    tick = stepper.tick_data
    tick.counts[TickCounts.INPUTS_SET] = 1
    for row, values in zip(recorded.rows, inputs, strict=True):
        for command in commands.get(int(row[0]), ()):
            _carry_out(stepper, command)
        tick.counts[TickCounts.ADVANCING] = int(row[ADVANCED])
        if not tick.counts[TickCounts.ADVANCING]:
            continue
        tick.next[:] = values
        tick.motion_next[:] = row[motion]
        status = stepper.tick(shown=False)
        found += _stamped(row, stepper)
        while status in _ASKING and status != int(row[STATUS_COLUMN]):  # supplied within the tick, as in the live run
            stepper.supply(status)
            status = stepper.tick(shown=False, again=True)
            found += _stamped(row, stepper)
        if status in _ASKING:
            stepper.supply(status)
    width = recorded.settings.record
    return np.array(found).reshape(-1, width), stepper


def _own_kernels(graph: ModeGraph, states: tuple[int, ...]) -> OwnKernels | None:
    """Derive a mode and make its kernels, as the derivation process of the live run did."""
    begin = model_start(graph.automaton)
    programs = own_programs(graph.automaton, states, (begin.x, begin.context))
    if programs is None:
        return None
    parts = [compile_programs(part, optimisation=level) for part, level in compiled_together(programs)]
    rhs, full = (kernel.address for part in parts for kernel in part)
    return OwnKernels(rhs, full, parts)


def _stamped(row: NDArray[np.float64], stepper: LiveStepper) -> list[NDArray[np.float64]]:
    """Return the records of the latest transitions, the number of the tick in front."""
    return [np.concatenate([row[:1], record]) for record in stepper.records()]


def off_line(recorded: Recording) -> Trajectory:
    """Simulate a recording without commands offline, with the recorded inputs; the result is equal bit for bit.

    The run ends with the last complete tick.  As in the live run, modes not derived at its start are embedded online
    and switch to derived kernels at the same times; these have the same equations, but round differently.
    """
    settings, graph = recorded.settings, recorded_graph(recorded)
    taken_over = {
        graph.automaton.name_of(event["states"]).name: int(event["evaluations"])
        for event in recorded.events
        if event.get("event") == "kernel_adopted"
    }
    return simulate(
        graph,
        until=float(recorded.rows[recorded.rows[:, INCOMPLETE_COLUMN] == 0.0][-1, 1]),
        method=settings.method,
        step=settings.period / (settings.substeps or 1),
        inputs=input_tables(recorded),
        derive_after=taken_over or math.inf,
        initial=dict(settings.initial),
    )


def input_tables(recorded: Recording) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the inputs of a recording as tables for :func:`fsm_dyn.run.simulator.simulate`.

    A run without commands makes the same transitions offline, bit for bit: see :func:`off_line`.
    """
    stepper = new_stepper(recorded.settings, recorded_graph(recorded))
    tick, columns, rows = stepper.tick_data, recorded.columns, recorded.rows[recorded.rows[:, INCOMPLETE_COLUMN] == 0.0]
    rows = rows[rows[:, ADVANCED] != 0.0]
    times = np.concatenate([[0.0], rows[:, 1]])
    values = np.vstack([tick.now, rows[:, columns.places["inputs"]]])
    rates = np.vstack([tick.motion, rows[:, columns.places["motion"]]])
    n = len(columns.smooth)
    tables = {}
    for i, name in enumerate(columns.inputs):
        parts = [times, values[:, i]]
        if name in columns.smooth:
            k = columns.smooth.index(name)
            parts += [rates[:, k], rates[:, n + k]]
        tables[name] = {"sampled": np.column_stack(parts)}
    return tables


def _carry_out(stepper: LiveStepper, command: dict[str, Any]) -> None:
    match command["do"]:
        case "take over":
            kernels = _own_kernels(stepper.graph, command["states"])
            if kernels is not None:
                stepper.take_over(command["states"], kernels)
        case "reset":
            stepper.reset()
        case "scrub":
            stepper.rewind(float(command["t"]))
        case "speed":
            stepper.set_speed(float(command["value"]))
        case "set":
            stepper.set_parameters({name: float(value) for name, value in command["values"].items()})
