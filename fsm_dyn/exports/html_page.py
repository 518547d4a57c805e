"""A page that simulates alone: the page of ``fsm-dyn view``, the runtime and a model as WebAssembly, in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.compilation import Parameters
from fsm_dyn.exports.c_model import ExportedRun
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.page_data import packed, page_data
from fsm_dyn.exports.wasm_build import BINARY
from fsm_dyn.live.port_coupling import PortAxis, coupled_ports
from fsm_dyn.spec.values import evaluate
from fsm_dyn.viewer.default_ports import with_default_ports
from fsm_dyn.viewer.live_broadcast import plain
from fsm_dyn.viewer.live_view import coupled_for_page
from fsm_dyn.viewer.playback_frames import plain_json
from fsm_dyn.viewer.report import COMPILING_POLICY, page_text

#: Script that a page without a runtime of its own reads it from, beside it; one for all pages of a folder.
RUNTIME_SCRIPT: Final = "fsm_runtime.js"
_SHARING_POLICY: Final = COMPILING_POLICY.replace("script-src", "script-src 'self'", 1)
_MOST_TRIED: Final = 12  # runs with a dragged port
_STROKES: Final = (1.0, 0.2, 0.05, 0.02)  # s, of a key
_REACH: Final = 0.3  # of the mechanism's extent, m, or as an angle, rad: how far a port is dragged


def for_page(graph: ModeGraph, parameters: Parameters | None) -> tuple[ModeGraph, dict[str, Any]]:
    """Return the graph with ports that the pointer can drag, and its parameters unlike the file's."""
    if not with_default_ports(graph.automaton.mechanism).ports:
        return graph, dict(parameters or {})
    return coupled_for_page(graph, parameters)


def page(run: ExportedRun, graph: ModeGraph, shared: bool = False) -> bytes:
    """Return the page.

    Parameters
    ----------
    run : ExportedRun
        Of what :func:`for_page` returned.
    graph : ModeGraph
    shared : bool
        Whether the runtime is in :data:`RUNTIME_SCRIPT` beside the page instead of in it.
    """
    data, module = page_data(run, graph)
    runtime = f'<script src="{RUNTIME_SCRIPT}"></script>\n' if shared else _holder("runtime-data", BINARY.read_bytes())
    holder = runtime + _holder("module-data", module) + _holder("machine-data", plain_json(plain(data)).encode())
    policy = _SHARING_POLICY if shared else COMPILING_POLICY
    return page_text(graph.name, holder, in_space=not data["model"]["picture"]["planar"], policy=policy).encode()


def shared_page(graph: ModeGraph) -> bytes:
    """Return the page of a model that reads the runtime from :data:`RUNTIME_SCRIPT`."""
    coupled, changed = for_page(graph, None)
    return page(prepared(coupled, parameters=changed, tried=dragged(coupled)), coupled, shared=True)


def runtime_script() -> bytes:
    """Return the content of :data:`RUNTIME_SCRIPT`."""
    return f'globalThis.fsmRuntime = "{packed(BINARY.read_bytes())}";\n'.encode()


def _holder(name: str, content: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{packed(content)}</script>\n'


def dragged(graph: ModeGraph) -> list[dict[str, Any]]:
    """Return inputs of runs in which one port is dragged, so that the page has modes that the pointer reaches."""
    automaton = graph.automaton
    start = initial_state(automaton, graph.values, graph.parameters)
    values = automaton.report.evaluate(0.0, start.x, start.context)
    outputs = dict(zip(automaton.mechanism.outputs, np.atleast_1d(values.get("outputs", [])), strict=True))
    points = automaton.geometry.evaluate(0.0, start.x, start.context)["points"]
    extent = float(np.ptp(points, axis=0).max(initial=0.0)) or 1.0
    found: list[dict[str, Any]] = []
    for port in coupled_ports(automaton.mechanism):
        axes = [axis for axis in port.axes if not axis.prescribed_coordinate]
        press = automaton.mechanism.ports[port.name].press
        if press and axes:
            lifted, pressed = (float(evaluate(text, graph.values)) for text in press)
            found += [_stroke(axes[0], lifted, pressed, taking) for taking in _STROKES]
            continue
        for axis in axes:
            reach, begin = _REACH * (1.0 if axis.is_rotational else extent), float(outputs[axis.outputs[1]])
            found += [_drag(axis, begin, sense * reach) for sense in (1.0, -1.0)]
    return found[:_MOST_TRIED]


def _stroke(axis: PortAxis, lifted: float, pressed: float, taking: float) -> dict[str, Any]:
    """Return the inputs of a key that is pressed in a time (s), held down, released, and pressed again."""
    times = np.cumsum([0.0, 0.3, taking, 0.5, taking, 0.3, 2.0 * taking, 0.3])
    places = [lifted, lifted, pressed, pressed, lifted, lifted, 1.5 * pressed, lifted]
    return _led(axis, [(float(t), place) for t, place in zip(times, places, strict=True)])


def _drag(axis: PortAxis, begin: float, far: float) -> dict[str, Any]:
    """Return the inputs of one drag: out, back past the begin, and to it."""
    corners = [(0.0, 0.0), (0.1, 0.0), (0.6, far), (0.9, far), (1.6, -far), (1.9, -far), (2.4, 0.0)]
    return _led(axis, [(t, begin + away) for t, away in corners])


def _led(axis: PortAxis, corners: Sequence[tuple[float, float]]) -> dict[str, Any]:
    end = corners[-1][0]
    return {
        axis.device: {"linear": [list(corner) for corner in corners]},
        axis.engagement: {"linear": [[0.0, 0.0], [0.1, 1.0], [end, 1.0]]},
    }
