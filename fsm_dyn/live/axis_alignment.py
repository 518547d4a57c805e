"""Device maps for devices with a zero of their own: selection of port axes, and offsets."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.port_coupling import CoupledPort, coupled_ports
from fsm_dyn.programs import compile_programs

Floats = NDArray[np.float64]
_STEP: Final = 1e-6  # of a coordinate, for a difference


def port_of(graph: ModeGraph, name: str) -> CoupledPort:
    """Return a port of a coupled graph by name; the first one for an empty name.

    Raises
    ------
    InputError
        There is no such port.
    """
    ports = coupled_ports(graph.automaton.mechanism)
    for port in ports:
        if not name or port.name == name:
            return port
    names = [port.name for port in ports]
    raise InputError(f"no port '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))


def device_map_for(
    graph: ModeGraph,
    name: str,
    n_device: int,
    axes: tuple[int, ...] = (),
    scale: float | tuple[float, ...] = 1.0,
    *,
    zeroed: bool = True,
) -> DeviceMap:
    """Return the device map that puts the zero of a device, if it has one, at the port's initial position.

    The offset of such a device is kept when it engages again after a reset or a change of parameters; the ramp of the
    engagement bounds the force that follows.

    Parameters
    ----------
    graph : ModeGraph
        Of a coupled model.
    name : str
        Of the port; empty: the first.
    n_device : int
        Number of the device's axes.
    axes : tuple of int
        As in :class:`~fsm_dyn.live.device_map.DeviceMap`; empty: those of :func:`aligned_axes`.
    scale : float or tuple of float
        As in :class:`~fsm_dyn.live.device_map.DeviceMap`.
    zeroed : bool
        Whether the device has a zero; otherwise its position counts from where it engages.
    """
    port = port_of(graph, name)
    axes = axes or aligned_axes(graph, port.name, n_device)
    if not zeroed:
        return DeviceMap(port.name, axes, scale)
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    (report,) = compile_programs([graph.automaton.report])
    found = report.outputs(0.0, start.x, start.context)["outputs"]
    home = tuple(float(found[k]) for k in _outputs(graph, port))
    return DeviceMap(port.name, axes, scale, offset=home)


def aligned_axes(graph: ModeGraph, name: str, n_device: int) -> tuple[int, ...]:
    """Return the device axis for each axis of a port, -1 for none; empty if the device has axes enough.

    A port with more axes than the device uses those that are best aligned with a gap at the initial state, by the
    cosine between the gradients of port position and gap with respect to the coordinates.

    Parameters
    ----------
    graph : ModeGraph
        Of a coupled model.
    name : str
        Of the port; empty: the first.
    n_device : int
        Number of the device's axes.
    """
    port = port_of(graph, name)
    if len(port.axes) <= n_device:
        return ()
    at, gaps = _gradients(graph, port)
    lengths = np.linalg.norm(at, axis=1)[:, None] * np.linalg.norm(gaps, axis=1)[None, :]
    facing = np.abs(at @ gaps.T) / np.where(lengths > 0.0, lengths, np.inf)
    scores = facing.max(axis=1, initial=0.0)
    # equal scores: the first axes
    chosen = sorted(sorted(range(len(port.axes)), key=lambda i: (-round(float(scores[i]), 6), i))[:n_device])
    return tuple(chosen.index(i) if i in chosen else -1 for i in range(len(port.axes)))


def _outputs(graph: ModeGraph, port: CoupledPort) -> list[int]:
    """Return the numbers of the outputs that are positions of a port's axes."""
    names = list(graph.automaton.mechanism.outputs)
    return [names.index(axis.outputs[1]) for axis in port.axes]


def _gradients(graph: ModeGraph, port: CoupledPort) -> tuple[Floats, Floats]:
    """Return the gradients of the port's axes, shape (n_a, n_q), and of all gaps, shape (n_c, n_q)."""
    automaton = graph.automaton
    start = initial_state(automaton, graph.values, graph.parameters)
    # outputs, not coordinates: the coordinate of a body-fixed axis is in no gap
    outputs = _outputs(graph, port)
    rows = [contact.normal_row for contact in automaton.contacts if contact.normal_row >= 0]
    report, terms = compile_programs([automaton.report, automaton.terms])

    def places(x: Floats) -> Floats:
        at = report.outputs(0.0, x, start.context)["outputs"][outputs]
        return np.concatenate([at, terms.outputs(0.0, x, start.context)["residual"][rows]])

    columns = []
    for j in range(len(automaton.terms.layout.q)):
        h = _STEP * (1.0 + abs(start.x[j]))
        ahead, behind = start.x.copy(), start.x.copy()
        ahead[j] += h
        behind[j] -= h
        columns.append((places(ahead) - places(behind)) / (2.0 * h))
    found = np.array(columns).T
    return found[: len(outputs)], found[len(outputs) :]
