"""Self-contained page: the page of ``fsm-dyn view``, the runtime and a model as WebAssembly."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.exports.c_model import embeds_online, most_guards, page_modes, start_reads, tunable_parameters
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.exports.wasm import BINARY, TABLE_BEGIN, WasmModel, machine_bytes, wasm_model
from fsm_dyn.language.elements import PortAxis, TableSchedule
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.language.values import units as units_of
from fsm_dyn.live.device_map import coupled_ports
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.broadcast import plain
from fsm_dyn.page.frames import FrameEncoder, guard_texts
from fsm_dyn.page.live_phases import phases_payload
from fsm_dyn.page.live_view import coupled_for_page, is_scheduled
from fsm_dyn.page.playback import plain_json
from fsm_dyn.page.ports import PortHandle, PortHandles, with_default_ports
from fsm_dyn.page.report import COMPILING_POLICY, page_text
from fsm_dyn.programs.program import Program
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, vector_of
from fsm_dyn.run.transitions import cause_words
from fsm_dyn.runtime.abi import StartUse

# -- Contents of a self-contained page -----------------------------------------------------------------------
#
# Contents of a self-contained page: the model, its kernels, and the description of display frames.

PERIOD: Final = 1e-3  # s, of the inputs' samples


def page_data(run: ExportedRun, graph: ModeGraph, own_ports: bool) -> tuple[dict[str, Any], bytes]:
    """Return the data of a page, and the model as WebAssembly.

    Parameters
    ----------
    run : ExportedRun
        Of a coupled graph, if the pointer moves ports.
    graph : ModeGraph
        The graph of the run.
    own_ports : bool
        Whether the ports are declared in the model file, not default ones.
    """
    layout = run.automaton.terms.layout
    ports = coupled_ports(run.automaton.mechanism)
    columns = TickColumns(layout.w, layout.x, 0, tuple(axis.name for port in ports for axis in port.axes))
    encoder = FrameEncoder(graph, columns, run.x, run.c, coupled=bool(ports))
    states = [tuple(int(code) for code in row) for row in run.tables.mode_states]
    labels = [encoder.evaluator.number(codes) for codes in states]
    model = wasm_model(run, [run.automaton.geometry])
    data = {
        "model": _payload(encoder, run, states, own_ports),
        "machine": machine_lengths(run, model, [run.automaton.geometry]),
        "kernels": {"report": model.report, "pins": model.pins, "geometry": model.extra[0]},
        "outputs": {
            "points": _span(run.automaton.geometry.slices["points"]),
            "frames": _span(run.automaton.geometry.slices["frames"]),
            **{name: _span(run.automaton.report.slices[name]) for name in ("kinetic_energy", "potential_energy")},
            "outputs": _span(run.automaton.report.slices.get("outputs", slice(0, 0))),
        },
        "modes": [{"label": label, "states": codes} for label, codes in zip(labels, states, strict=True)],
        "guard_counts": np.diff(run.tables.mode_guard_start).tolist(),
        "rows": [row.name for row in run.automaton.rows],
        "words": cause_words(run.automaton),
        "drawing": _drawing(encoder),
        "handles": _handles(encoder, run),
        "sources": encoder.quantities.sources,
        "endings": {code: [outcome.name, outcome.sentence] for code, outcome in OUTCOMES.items()},
        "period": PERIOD,
        "further": page_modes(run.automaton, encoder.words) if embeds_online(run.automaton) else None,
    }  # fmt: skip
    return data, model.module


def packed(content: bytes) -> str:
    """Return bytes compressed by gzip, in base 64; the same text whenever it is made."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _span(part: slice) -> list[int]:
    return [part.start, part.stop]


def machine_lengths(run: ExportedRun, model: WasmModel, further: Sequence[Program]) -> dict[str, float]:
    """Return the address of a model and the lengths of its arrays, for ``machine.js``."""
    layout, automaton = run.automaton.terms.layout, run.automaton
    programs = [*further, *([run.pins] if run.pins else []), automaton.report, *(full for _, full in run.programs)]
    return {
        "n_q": len(layout.q), "n_u": len(layout.u), "n_x": layout.n_x, "n_c": layout.n_c, "n_p": len(layout.p),
        "n_w": len(layout.w), "n_rows": len(automaton.rows), "n_contacts": len(automaton.contacts),
        "n_arguments": layout.n_x if run.pins is None else run.pins.layout.n_x,
        "n_out": max(program.size for program in programs) + 2 * most_guards(automaton, run.tables),
        "n_modes": len(run.programs),
        "model": model.model, "end": model.end,
        "bytes": machine_bytes(run), "until": run.options.until or 0.0, "table": TABLE_BEGIN + model.kernels,
    }  # fmt: skip


def _payload(
    encoder: FrameEncoder, run: ExportedRun, states: Sequence[tuple[int, ...]], own_ports: bool
) -> dict[str, Any]:
    """Return the message ``model`` of the page."""
    payload, mechanism = encoder.payload(), run.automaton.mechanism
    guards = {mode.states: mode.programs.guards for mode in run.automaton.modes}
    ports = payload["ports"]
    return {
        "kind": "model", "number": 1, **payload,
        "forces": [],  # they take partial velocities, which are not in the page
        "pushes": [],  # they take the texts of loads
        "guards": [guard_texts(run.automaton, guards[codes], encoder.words) for codes in states],
        "phases": phases_payload(mechanism),
        "port": ports[0]["name"] if ports else "",
        "speed": 1.0,
        "schedule": not own_ports if is_scheduled(mechanism) else None,
        "period": PERIOD,
        "setup": {"parameters": _parameters(encoder, run), "drives": _drives(run), "waiting": [], "mode": ""},
        "recording": "", "device": None, "alone": True,
        "transitions": [],
        "totals": {"visits": {}, "crossings": [], "seconds": {}, "transitions": 0},
    }  # fmt: skip


def _drawing(encoder: FrameEncoder) -> dict[str, Any]:
    """Return the frames and points of outlines, anchors and solids, by number; -1 is N and its origin."""
    scene = encoder.picture.scene

    def fixed(frame: str, origin: str) -> list[int]:
        return [_number(scene.frames, frame, NEWTONIAN), _number(scene.points, origin, ORIGIN)]

    return {
        "flat": encoder.picture.flat.tolist(),
        "shapes": [fixed(shape.frame, shape.origin) for shape in scene.shapes],
        "anchors": [
            {
                "frame": _number(scene.frames, anchor.frame, NEWTONIAN),
                "origin": _number(scene.points, anchor.origin, ORIGIN),
                "offset": anchor.offset.tolist(),
            }
            for anchor in scene.anchors
        ],
        "solids": [fixed(solid.frame, solid.origin) for solid in encoder.solids],
    }


def _number(names: Sequence[str], name: str, base: str) -> int:
    return -1 if name == base else list(names).index(name)


def _handles(encoder: FrameEncoder, run: ExportedRun) -> list[dict[str, Any]]:
    """Return the position of each handle, the directions of its axes, and the inputs set by the pointer."""
    handles: PortHandles | None = encoder.port_handles
    if handles is None:
        return []
    scene, layout = encoder.picture.scene, run.automaton.terms.layout
    outputs = list(run.automaton.mechanism.outputs)

    def axis(own: PortAxis) -> dict[str, Any]:
        numbers = [layout.w.index(name) for name in own.inputs]
        device, rate, engagement = numbers if len(numbers) > 1 else (numbers[0], -1, -1)
        return {"device": device, "rate": rate, "engagement": engagement, "position": outputs.index(own.outputs[1])}

    return [
        {
            "name": handle.port.name,
            "frame": _number(scene.frames, handle.frame, NEWTONIAN),
            "origin": _number(scene.points, handle.origin, ORIGIN),
            "offset": handle.offset.tolist(),
            "coordinate": handle.coordinate,
            "twist": handle.twist,
            "directions": _directions(handle, scene.frames, encoder.graph.values),
            "axes": [axis(own) for own in handle.port.axes],
        }
        for handle in handles.handles
    ]


def _directions(handle: PortHandle, frames: Sequence[str], values: Mapping[str, Any]) -> list[list[list[float]]]:
    """Return the axes of a handle as sums: their part in N, then those fixed in each frame."""
    none = {name: np.zeros((3, 3)) for name in frames}
    found = []
    for text in handle.directions:
        in_space = vector_of(text, values, none)
        parts = [vector_of(text, values, {**none, name: np.eye(3)}) - in_space for name in frames]
        found.append([part.tolist() for part in (in_space, *parts)])
    return found


def _parameters(encoder: FrameEncoder, run: ExportedRun) -> list[dict[str, Any]]:
    """Return the tunable parameters: single numbers on which no other parameter and no gap depends."""
    alone = {name for name, use in zip(run.automaton.terms.layout.p, start_reads(run), strict=True)
             if use == StartUse.ALONE}  # fmt: skip
    mechanism, tunable = run.automaton.mechanism, set(tunable_parameters(run)) - alone
    units, names = units_of(mechanism), list(run.automaton.terms.layout.p)
    coupling = {
        name for port in coupled_ports(mechanism) for axis in port.axes for name in (axis.stiffness, axis.damping)
    }
    values = {**parameter_values(mechanism), **encoder.graph.values}
    found = [
        {
            "name": name, "value": values[name], "now": values[name], "unit": units.get(name, ""), "reset": False,
            "hand": name in coupling, "index": names.index(name),
        }
        for name in mechanism.parameters
        if name in tunable and not isinstance(values[name], tuple)
    ]  # fmt: skip
    return sorted(found, key=lambda item: bool(item["hand"]))


def _drives(run: ExportedRun) -> list[dict[str, Any]]:
    """Return the inputs not set by ports, with the largest magnitude of their schedule."""
    mechanism = run.automaton.mechanism
    held = {name for port in coupled_ports(mechanism) for name in port.inputs}
    values = parameter_values(mechanism)

    def size(name: str) -> float:
        schedule = mechanism.inputs[name].schedule
        texts = schedule.values if isinstance(schedule, TableSchedule) else ()
        return max((abs(float(np.sum(evaluate_expression(text, values)))) for text in texts), default=0.0) or 1.0

    layout = run.automaton.terms.layout
    return [
        {
            "name": name,
            "unit": "" if item.is_boolean else item.unit or "",
            "size": size(name),
            "index": layout.w.index(name),
            "boolean": item.is_boolean,
        }
        for name, item in mechanism.inputs.items()
        if name not in held
    ]


# -- The page as one file ------------------------------------------------------------------------------------
#
# Self-contained page: the page of ``fsm-dyn view``, the runtime and a model as WebAssembly, in a file.

#: Script with the runtime for pages without their own copy; one for all pages of a folder.
RUNTIME_SCRIPT: Final = "fsm_runtime.js"
_SHARING_POLICY: Final = COMPILING_POLICY.replace("script-src", "script-src 'self'", 1)


def for_page(graph: ModeGraph, parameters: Parameters | None) -> tuple[ModeGraph, dict[str, Any]]:
    """Return the graph with ports for the pointer, and its parameters unlike the file's."""
    if not with_default_ports(graph.automaton.mechanism).ports:
        return graph, dict(parameters or {})
    return coupled_for_page(graph, parameters)


def page(run: ExportedRun, graph: ModeGraph, own_ports: bool, shared: bool = False) -> bytes:
    """Return the page.

    Parameters
    ----------
    run : ExportedRun
        Run of the graph returned by :func:`for_page`.
    graph : ModeGraph
    own_ports : bool
        Whether the ports are declared in the model file, not default ones.
    shared : bool
        Whether the page reads the runtime from :data:`RUNTIME_SCRIPT` in its folder.
    """
    data, module = page_data(run, graph, own_ports)
    runtime = f'<script src="{RUNTIME_SCRIPT}"></script>\n' if shared else _holder("runtime-data", BINARY.read_bytes())
    holder = runtime + _holder("module-data", module) + _holder("machine-data", plain_json(plain(data)).encode())
    policy = _SHARING_POLICY if shared else COMPILING_POLICY
    return page_text(graph.name, holder, in_space=not data["model"]["picture"]["planar"], policy=policy).encode()


def runtime_script() -> bytes:
    """Return the content of :data:`RUNTIME_SCRIPT`."""
    return f'globalThis.fsmRuntime = "{packed(BINARY.read_bytes())}";\n'.encode()


def _holder(name: str, content: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{packed(content)}</script>\n'
