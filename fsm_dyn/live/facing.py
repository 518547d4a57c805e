"""Which axes of a port a device with fewer of them is to move: those along which contacts are met."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.compiling import initial_start
from fsm_dyn.live.holding import HeldPort, held_ports
from fsm_dyn.programs import compile_programs

Floats = NDArray[np.float64]
_STEP: Final = 1e-6  # of a coordinate, for a difference


def facing_axes(graph: ModeGraph, name: str, n_device: int) -> tuple[int, ...]:
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
    ports = held_ports(graph.automaton.mechanism)
    port = next((port for port in ports if port.name == name), ports[0])
    if len(port.axes) <= n_device:
        return ()
    at, gaps = _gradients(graph, port)
    lengths = np.linalg.norm(at, axis=1)[:, None] * np.linalg.norm(gaps, axis=1)[None, :]
    facing = np.abs(at @ gaps.T) / np.where(lengths > 0.0, lengths, np.inf)
    scores = facing.max(axis=1, initial=0.0)
    # of equals the first ones
    chosen = sorted(sorted(range(len(port.axes)), key=lambda i: (-round(float(scores[i]), 6), i))[:n_device])
    return tuple(chosen.index(i) if i in chosen else -1 for i in range(len(port.axes)))


def _gradients(graph: ModeGraph, port: HeldPort) -> tuple[Floats, Floats]:
    """Return how the port's axes, shape (n_a, n_q), and all gaps, shape (n_c, n_q), change with the coordinates."""
    automaton = graph.automaton
    start = initial_start(automaton, graph.values, graph.parameters)
    names = list(automaton.mechanism.outputs)
    # an axis that turns with a body has its way as a coordinate of its own, which closes no gap by itself
    outputs = [names.index(axis.outputs[1]) for axis in port.axes]
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
