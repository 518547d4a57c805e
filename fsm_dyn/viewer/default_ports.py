"""Default ports of a model without ports: one per moving body, to drag it with the pointer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from fsm_dyn import expressions
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.expressions import Text
from fsm_dyn.live.port_coupling import coupled_ports
from fsm_dyn.spec import Mechanism
from fsm_dyn.spec.frame import SimpleFrame
from fsm_dyn.spec.loader import with_settings
from fsm_dyn.spec.model import Body
from fsm_dyn.spec.values import evaluate, parameter_values

SUFFIX: Final = "_port"  # of the names of default ports
MOST: Final = 6  # most default ports
FREQUENCY: Final = 2.0  # Hz, natural frequency of a body on its coupler
DAMPING: Final = 0.7  # damping ratio

_AXES: Final = ("N.x", "N.y", "N.z")


def with_default_ports(mechanism: Mechanism, axes: int = 2) -> Mechanism:
    """Return the mechanism with ports: unchanged if it has any, else with one for each of its first ``MOST`` bodies.

    The port of a body is its centre along the first ``axes`` axes of N, or its rotation angle if the centre is at rest.
    """
    if mechanism.ports:
        return mechanism
    ports: dict[str, Any] = {}
    for body in mechanism.bodies.values():
        port = _port(mechanism, body, axes)
        if port is not None and len(ports) < MOST:
            ports[f"{body.name}{SUFFIX}"] = port
    return with_settings(mechanism, ports=ports) if ports else mechanism


def _port(mechanism: Mechanism, body: Body, axes: int) -> dict[str, Any] | None:
    if body.center != "O":
        return {"point": body.center, "body": body.name, "axes": list(_AXES[:axes])}
    frame = mechanism.frames.get(body.frame or "")
    if isinstance(frame, SimpleFrame):
        angle = frame.angle.text.strip()
        if angle in mechanism.coordinates:
            return {"coordinate": angle}
    return None


def default_coupler_parameters(graph: ModeGraph) -> dict[str, float]:
    """Return stiffness and damping of the couplers of a graph with default ports, from the mass of their bodies."""
    mechanism = graph.automaton.mechanism
    values = parameter_values(mechanism)
    found: dict[str, float] = {}
    for port in coupled_ports(mechanism):
        body = mechanism.bodies.get(mechanism.ports[port.name].body or "")
        if body is None:
            continue
        mass = _number(body.mass, values)
        if mass is None:
            continue
        rate = 2.0 * math.pi * FREQUENCY
        for axis in port.axes:
            found[axis.stiffness] = mass * rate * rate
            found[axis.damping] = 2.0 * DAMPING * mass * rate
    return found


def _number(text: Text, values: Mapping[str, Any]) -> float | None:
    """Return a mass that depends on parameters alone, else None."""
    if not expressions.free_names(expressions.parse(text)) <= set(values):
        return None
    number = float(evaluate(text, values))
    return number if number > 0.0 else None
