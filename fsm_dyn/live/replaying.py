"""Replaying a recording: the same ticks with the inputs that were recorded, as fast as they go."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton import storage
from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.compiling import graph_of
from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live.process import new_stepper
from fsm_dyn.live.recording import Recorded
from fsm_dyn.live.rows import ADVANCED
from fsm_dyn.live.stepping import Stepper
from fsm_dyn.simulation import outcomes

_REPEATED: Final = ("reset", "speed", "set")  # the commands that the recorded inputs do not tell of


def recorded_graph(recorded: Recorded) -> ModeGraph:
    """Return the graph that a recording carries."""
    return graph_of(storage.from_data(json.loads(recorded.graph)), recorded.settings["parameters"])


def replay(recorded: Recorded) -> tuple[NDArray[np.float64], Stepper]:
    """Run a recording again.

    Returns
    -------
    records : float64 array
        The transitions, in the form of ``recorded.records`` and equal to them bit for bit.
    stepper : Stepper
        As it is at the end.
    """
    stepper = new_stepper(recorded.settings, recorded_graph(recorded))
    commands: dict[int, list[dict[str, Any]]] = {}
    for event in recorded.events:
        if event.get("event") == "done" and event["command"]["do"] in _REPEATED:
            commands.setdefault(int(event["tick"]), []).append(event["command"])
    inputs = recorded.rows[:, recorded.columns.places["inputs"]]
    found = []
    tick = stepper.tick_data
    tick.counts[ct.GIVEN] = 1
    for row, values in zip(recorded.rows, inputs, strict=True):
        for command in commands.get(int(row[0]), ()):
            _carry_out(stepper, command)
        tick.counts[ct.ADVANCING] = int(row[ADVANCED])
        if not tick.counts[ct.ADVANCING]:
            continue
        tick.next[:] = values
        status = stepper.tick(shown=False)
        found += [np.concatenate([row[:1], record]) for record in stepper.records()]
        if status in (outcomes.NEED_MODE, outcomes.NEED_CHART, outcomes.BUFFER_FULL):
            stepper.supply(status)
    width = recorded.settings["record"]
    return np.array(found).reshape(-1, width), stepper


def _carry_out(stepper: Stepper, command: dict[str, Any]) -> None:
    match command["do"]:
        case "reset":
            stepper.reset()
        case "speed":
            stepper.set_speed(float(command["value"]))
        case "set":
            stepper.set_parameters({name: float(value) for name, value in command["values"].items()})
