"""Run parameters: parameters, free inputs and initial mode of a live run, set from its page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fsm_dyn import expressions
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError
from fsm_dyn.live.port_coupling import coupled_ports
from fsm_dyn.live.session import LiveSession
from fsm_dyn.spec.input_declarations import TableSchedule
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.values import ParameterValue, evaluate, flat_parameters, flat_values, parameter_values
from fsm_dyn.spec.values import units as units_of
from fsm_dyn.viewer.row_evaluation import Floats


class RunParameters:
    """Parameters of a run, and those pending until the next reset.

    Parameters
    ----------
    graph : ModeGraph
        Coupled, as it runs.
    session : LiveSession
    parameters : mapping
        Values that differ from the model's file.
    scheduled : bool
        Whether the model's input schedule is applied.
    """

    def __init__(self, graph: ModeGraph, session: LiveSession, parameters: Mapping[str, Any], scheduled: bool) -> None:
        self._mechanism: Mechanism = graph.automaton.mechanism
        self._session, self._scheduled = session, scheduled
        self.overrides: dict[str, Any] = dict(parameters)
        self._values: dict[str, ParameterValue] = dict(graph.values)
        self._begun: dict[str, ParameterValue] = dict(graph.values)
        self._units = units_of(self._mechanism)
        self._structural = session.structural
        self.waiting: set[str] = set()  # names that are applied at the next reset

    def payload(self) -> dict[str, Any]:
        """Return the payload of parameters and inputs."""
        return {"parameters": self._parameters(), "drives": self._drives(), "waiting": sorted(self.waiting)}

    def _parameters(self) -> list[dict[str, Any]]:
        """Return the independent scalar parameters, those of couplers last."""
        couplers = {
            name
            for port in coupled_ports(self._mechanism)
            for axis in port.axes
            for name in (axis.stiffness, axis.damping)
        }
        found = []
        for name, value in self._begun.items():
            parameter = self._mechanism.parameters[name]
            free = expressions.free_names(expressions.parse(parameter.values[0]))
            if isinstance(value, tuple) or (free & set(self._begun) and name not in self.overrides):
                continue
            found.append(
                {
                    "name": name, "value": value, "now": self._values[name], "unit": self._units.get(name, ""),
                    "reset": bool(self._followers(name) & self._structural), "hand": name in couplers,
                }
            )  # fmt: skip
        return sorted(found, key=lambda item: bool(item["hand"]))

    def _followers(self, name: str) -> set[str]:
        """Return a parameter and its dependents, elements of vectors by their own names."""
        found = {name}
        for other, parameter in self._mechanism.parameters.items():  # a parameter depends on earlier ones
            if found & {free for text in parameter.values for free in expressions.free_names(expressions.parse(text))}:
                found.add(other)
        return {flat for flat in flat_parameters(self._mechanism) if flat.partition("[")[0] in found}

    def _drives(self) -> list[dict[str, Any]]:
        """Return the inputs that neither a device nor the active schedule sets."""
        held = {name for port in coupled_ports(self._mechanism) for name in port.inputs}
        return [
            {"name": name, "unit": item.unit or "", "size": self._size(name)}
            for name, item in self._mechanism.inputs.items()
            if name not in held and (item.schedule is None or not self._scheduled)
        ]

    def _size(self, name: str) -> float:
        """Return the maximum magnitude of an input in the model's schedule, 1 without one."""
        schedule = self._mechanism.inputs[name].schedule
        texts = schedule.values if isinstance(schedule, TableSchedule) else ()
        return max((abs(float(np.sum(evaluate(text, self._values)))) for text in texts), default=0.0) or 1.0

    def set(self, name: str, value: float) -> None:
        """Set a parameter and its dependents; structural ones are applied at the next reset.

        Raises
        ------
        InputError
            The parameter is unknown or the value invalid.
        """
        overrides = {**self.overrides, name: value}
        values = parameter_values(self._mechanism, overrides)
        before = flat_values(self._mechanism, self.overrides)
        after = flat_values(self._mechanism, overrides)
        changed = {key: found for key, found in after.items() if found != before[key] and math.isfinite(found)}
        if changed:
            self._session.send("set", values=changed)
        self.overrides, self._values = overrides, values

    def drive(self, name: str, value: float) -> None:
        """Set an input; raises InputError if it is not free."""
        known = [item["name"] for item in self._drives()]
        if name not in known:
            raise InputError(f"no input '{name}' to set", allowed=", ".join(known))
        self._session.send("input", values={name: value})

    def apply_event(self, event: Mapping[str, Any], parameters: Floats, names: tuple[str, ...]) -> bool:
        """Apply an event of the run; return whether it is a reset that changed pending parameters.

        ``parameters``, in the order of ``names``, are those of the row evaluation; changed values are written there.
        """
        if event.get("event") == "pending_reset":
            self.waiting |= set(event["parameters"])
        if event.get("event") != "command_done":
            return False
        command = event["command"]
        if command["do"] == "set":
            for name, value in command["values"].items():
                if name not in self._structural and name in names:
                    parameters[names.index(name)] = float(value)
        anew = command["do"] == "reset" and bool(self.waiting)
        if command["do"] == "reset":
            self.waiting.clear()
        return anew


def check_mode(graph: ModeGraph, mode: str) -> None:
    """Raise InputError unless the model has an initial state in the mode.

    Parameters
    ----------
    graph : ModeGraph
        The compiled model.
    """
    if mode:
        initial_state(graph.automaton, graph.values, graph.parameters, {"mode": mode})
