"""How a device with a zero of its own is put at a port: which axes it moves, and where on them its zero lies."""

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
    """Return a port of a held graph by name, the first one for an empty name.

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
    """Return the map that puts a device's zero, where it has one, at the place of a port where the model begins.

    Such a device stays where it is when it takes hold anew: after other parameters, after a
    reset; the grip closes slowly enough for that.

    Parameters
    ----------
    graph : ModeGraph
        Held.
    name : str
        Of the port; empty: the first.
    n_device : int
        Number of the device's axes.
    axes : tuple of int
        As in :class:`~fsm_dyn.live.device_map.DeviceMap`; empty: as :func:`facing_axes` says.
    scale : float or tuple of float
        As in :class:`~fsm_dyn.live.device_map.DeviceMap`.
    zeroed : bool
        Whether it has a zero; otherwise it is at the port wherever it takes hold.
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
    """Return for each axis of a port the device's axis that moves it, -1 for none; empty: in order, they suffice.

    Of more axes than the device has, those are taken along which a motion of the port closes a gap of the model where
    it begins most directly: by the cosine between the gradients of port position and gap in the coordinates.

    Parameters
    ----------
    graph : ModeGraph
        Held.
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
    # of equals the first ones
    chosen = sorted(sorted(range(len(port.axes)), key=lambda i: (-round(float(scores[i]), 6), i))[:n_device])
    return tuple(chosen.index(i) if i in chosen else -1 for i in range(len(port.axes)))


def _outputs(graph: ModeGraph, port: CoupledPort) -> list[int]:
    """Return which outputs of the model are the positions of a port's axes."""
    names = list(graph.automaton.mechanism.outputs)
    return [names.index(axis.outputs[1]) for axis in port.axes]


def _gradients(graph: ModeGraph, port: CoupledPort) -> tuple[Floats, Floats]:
    """Return how the port's axes, shape (n_a, n_q), and all gaps, shape (n_c, n_q), change with the coordinates."""
    automaton = graph.automaton
    start = initial_state(automaton, graph.values, graph.parameters)
    # an axis that turns with a body has its way as a coordinate of its own, which closes no gap by itself
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
