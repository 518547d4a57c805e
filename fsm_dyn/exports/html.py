"""A self-contained page: the page of ``fsm-dyn view``, the runtime and a model as WebAssembly."""

from __future__ import annotations

import base64
import gzip
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import fsm_dyn.runtime
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.unconstrained_system import FOLLOWS
from fsm_dyn.exports.c_model import (
    KERNELS_HEADER,
    PAGE_SPARE,
    embeds_online,
    input_moves,
    memory_words,
    method_fields,
    most_guards,
    page_modes,
    parameter_limits,
    phase_fields,
    reads_time,
    schedule_fields,
    spare_parts,
    start_reads,
    table_fields,
    tunable_parameters,
    with_spare_modes,
)
from fsm_dyn.exports.exported_machine import ExportedMachine
from fsm_dyn.language.elements import PortAxis, TableSchedule
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.language.values import units as units_of
from fsm_dyn.live.device_map import coupled_ports
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.broadcast import plain
from fsm_dyn.page.frames import FrameEncoder, guard_texts
from fsm_dyn.page.live_view import coupled_for_page, is_scheduled
from fsm_dyn.page.playback import plain_json
from fsm_dyn.page.ports import PortHandle, PortHandles, with_default_ports
from fsm_dyn.page.report import COMPILING_POLICY, page_text
from fsm_dyn.page.story import phases_payload
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.sources import CALLED, CALLED_OF_ONE, F64, I32, function_body, share_angles, unsigned
from fsm_dyn.run.online import online_programs
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, vector_of
from fsm_dyn.run.transitions import cause_words
from fsm_dyn.runtime.abi import StartUse

# -- WebAssembly: the runtime, and kernels and tables of a model in shared memory ------------------------------


# -- Arrays and structures of the runtime as bytes in the memory of WebAssembly ------------------------------
#
# Arrays and structures of the runtime as bytes in the memory of WebAssembly: pointers of four bytes, little-endian.
#
# The same calls as :class:`fsm_dyn.exports.c_model.Data`, with bytes in place of text.


class Field(NamedTuple):
    """A field of a structure: its alignment and its bytes."""

    alignment: int
    content: bytes


def pointer(address: int) -> Field:
    """Return an address field; 0 is NULL."""
    return Field(4, struct.pack("<I", address))


def real(value: float) -> Field:
    """Return a field of type double."""
    return Field(8, struct.pack("<d", value))


class Image:
    """Constant data from an address on, eight bytes aligned. ``begin``: address of the first byte."""

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self.content = bytearray()

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self._begin + len(self.content)

    def put(self, content: bytes) -> int:
        """Append bytes and return their address."""
        at = self.end
        self.content += content + bytes(-len(content) % 8)
        return at

    def array(self, name: str, values: NDArray[Any]) -> Field:
        """Append an array and return its address; NULL if it is empty."""
        del name
        plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        return pointer(self.put(plain.tobytes()) if values.size else 0)

    def integer(self, value: int) -> Field:
        """Return a field of integer type."""
        return Field(8, struct.pack("<q", value))

    def view_at(self, address: int, *lengths: int) -> Field:
        """Return a view of the array at an address."""
        return Field(8, struct.pack(f"<I4x{len(lengths)}q", address, *lengths))

    def function(self, kernel: int | None) -> Field:
        """Return the address of a kernel; None: NULL."""
        return pointer(kernel or 0)

    def absent(self, length: int) -> Field:
        """Return a view; its array is made later."""
        return self.view_at(0, length)

    def view(self, name: str, values: NDArray[Any]) -> Field:
        """Append an array and return a view of it."""
        return self.view_at(struct.unpack("<I", self.array(name, values).content)[0], *values.shape)

    def kernels(self, name: str, numbers: Iterable[int]) -> Field:
        """Append an array of kernels, 0 for a missing one, and return a view of it."""
        entries = np.array(list(numbers), np.uint32)
        return self.view(name, entries)

    def structure(self, name: str, kind: str, values: Mapping[str, float | int]) -> Field:
        """Append a structure of numbers and return its address."""
        del name, kind
        fields = (real(value) if isinstance(value, float) else self.integer(value) for value in values.values())
        return pointer(self.put(laid_out(fields)))


def laid_out(fields: Iterable[Field]) -> bytes:
    """Return the fields of a structure behind one another, each aligned as C aligns it."""
    content = bytearray()
    for field in fields:
        content += bytes(-len(content) % field.alignment) + field.content
    return bytes(content)


# -- An automaton as a module of WebAssembly -----------------------------------------------------------------
#
# An automaton as a module of WebAssembly: its kernels, and its tables in the memory shared with the runtime.

#: Upper ends of the runtime's data and table; a model's begin there.
DATA_BEGIN: Final = 0x200000
TABLE_BEGIN: Final = 1024
PAGE: Final = 0x10000  # bytes of memory are counted in these

_TYPES: Final = (
    b"\x60\x04" + F64 + 3 * I32 + b"\x00",  # kernels
    b"\x60\x01" + F64 + b"\x01" + F64,
    b"\x60\x02" + 2 * F64 + b"\x01" + F64,
)
_KERNEL, _OF_ONE, _OF_TWO = range(len(_TYPES))


@dataclass(frozen=True)
class WasmModel:
    """A module and the addresses in it."""

    module: bytes  # imports memory, table and elementary functions of the runtime from ``runtime``
    model: int  # address of ``struct fsm_model``
    end: int  # address after the data; the caller's memory may begin there
    kernels: int  # number of table entries used from ``TABLE_BEGIN`` on
    # report, pins, extra: table indices of the report, of the outputs of connections (0 without any), and of further
    # programs
    report: int
    pins: int
    extra: Sequence[int]


def wasm_model(machine: ExportedMachine, further: Sequence[Program] = ()) -> WasmModel:
    """Return the model as WebAssembly. ``further``: compiled too, to be called from outside."""
    image, bodies = Image(DATA_BEGIN), []
    machine = for_page_memory(machine)

    def kernel(name: str, program: Program) -> int:
        del name
        bodies.append(function_body(share_angles(program)))  # the same operations as machine code, so the same bits
        return TABLE_BEGIN + len(bodies) - 1

    tables = table_fields(machine, image, kernel)
    spare = image.put(_spare(image, machine, kernel)) if machine.spare else 0
    resets = [0 if program is None else kernel("reset", program) for program in machine.automaton.resets]
    report = kernel("report", machine.automaton.report)
    pins = 0 if machine.pins is None else kernel("pins", machine.pins)
    phases = 0
    if machine.phases is not None:
        phases = image.put(laid_out(phase_fields(machine.phases, image, kernel).values()))
    outputs = machine.automaton.report.slices.get("outputs", slice(0, 0))
    schedule, method = schedule_fields(machine.inputs, image, kernel), method_fields(machine.options.method, image)
    integer = image.integer
    model = image.put(
        laid_out(
            [
                pointer(0),  # names are not in it
                pointer(image.put(laid_out(tables.values()))),
                pointer(image.put(laid_out(map(pointer, resets)))),
                pointer(image.put(laid_out(schedule.values()))),
                integer(machine.inputs.segment_at(0.0)),
                pointer(image.put(laid_out(method.values()))),
                pointer(report),
                *map(integer, (machine.automaton.report.size, outputs.start, len(machine.names["output"]))),
                *(image.array(name, values) for name, values in (("x", machine.x), ("c", machine.c))),
                integer(machine.mode),
                image.array("atol", np.asarray(machine.options.atol)),
                *map(real, (machine.options.rtol or 0.0, machine.options.step or 0.0, machine.options.until or 0.0)),
                image.array("input_moves", input_moves(machine.automaton)),
                *(6 * [pointer(0)]),
                pointer(spare),
                integer(0),  # the page has its own names of modes embedded online
                *(2 * [pointer(0)]),
                integer(int(reads_time(machine))),
                *(image.array(name, values) for name, values in parameter_limits(machine).items()),
                *(2 * [pointer(0)]),  # the page has its own ways to begin elsewhere
                pointer(pins),
                integer(len(machine.forces.units)),
                *(3 * [pointer(0)]),
                pointer(phases),
                pointer(0),
            ]
        )
    )
    extra = [kernel("further", program) for program in further]
    return WasmModel(_module(image, bodies), model, image.end, len(bodies), report, pins, extra)


def for_page_memory(machine: ExportedMachine) -> ExportedMachine:
    """Return the run with room for the modes embedded online in a page, if the model allows any."""
    return with_spare_modes(machine, PAGE_SPARE) if embeds_online(machine.automaton) else machine


def machine_bytes(machine: ExportedMachine) -> int:
    """Return the largest size of a machine, bytes."""
    return 8 * memory_words(for_page_memory(machine))


def _spare(image: Image, machine: ExportedMachine, kernel: Callable[[str, Program], int]) -> bytes:
    """Return ``struct fsm_spare_parts``."""
    parts = spare_parts(machine.automaton, machine.tables, machine.numerics)
    programs = image.put(
        laid_out(pointer(kernel("online", program)) for program in online_programs(machine.automaton.terms))
    )
    guards = image.put(
        laid_out(
            real(value) if isinstance(value, float) else image.integer(value)
            for guard in parts.guards
            for value in guard
        )
    )
    known = {key: pointer(value) for key, value in (("programs", programs), ("guards", guards))}
    known |= {"most": image.integer(machine.spare), "follows": real(FOLLOWS)}
    known["flags_of_all"] = image.integer(parts.flags_of_all)
    order = ("most", "programs", "state_begin", "flags", "flags_of_all", "guard_begin", "guards", "corners", "follows",
             "lengths", "places")  # fmt: skip
    return laid_out(
        known[key] if key in known else image.array(key, np.array(getattr(parts, key), np.int64)) for key in order
    )


def _module(image: Image, bodies: Sequence[bytes]) -> bytes:
    """Return a module of kernels and data."""
    pages = -(-image.end // PAGE)
    functions = [_import(name, b"\x00" + unsigned(_OF_ONE if name in CALLED_OF_ONE else _OF_TWO)) for name in CALLED]
    memory = _import("memory", b"\x02\x00" + unsigned(pages))
    table = _import("__indirect_function_table", b"\x01\x70\x00" + unsigned(TABLE_BEGIN + len(bodies)))
    first = len(functions)
    places = (unsigned(first + k) for k in range(len(bodies)))
    return b"\x00asm\x01\x00\x00\x00" + b"".join(
        [
            _section(1, _TYPES),
            _section(2, [*functions, memory, table]),
            _section(3, [unsigned(_KERNEL) for _ in bodies]),
            _section(9, [b"\x00" + _offset(TABLE_BEGIN) + _listed(list(places))]),
            _section(10, bodies),
            _section(11, [b"\x00" + _offset(DATA_BEGIN) + unsigned(len(image.content)) + bytes(image.content)]),
        ]
    )


def _listed(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _section(number: int, items: Iterable[bytes]) -> bytes:
    content = _listed(list(items))
    return bytes([number]) + unsigned(len(content)) + content


def _import(name: str, what: bytes) -> bytes:
    def text(word: str) -> bytes:
        return unsigned(len(word)) + word.encode()

    return text("runtime") + text(name) + what


def _offset(value: int) -> bytes:
    """Return a constant address as an expression."""
    return _constant(value) + b"\x0b"


def _constant(value: int) -> bytes:
    """Return the instruction to push an address: a signed integer in LEB128."""
    out = bytearray()
    while value >= 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return b"\x41" + bytes(out) + bytes([value])


FOLDER: Final = Path(__file__).parent / "wasm"
BINARY: Final = FOLDER / "fsm_runtime.wasm"

_STACK: Final = 0x100000  # bytes, below the data of the runtime

_EXPORTED: Final = (
    *(f"fsm_machine_{name}" for name in ("bytes", "create", "restart", "advance", "time", "state", "context", "mode",
      "phase", "mode_count", "mode_contact", "missing")),
    *(name for name in CALLED if name.startswith("fsm_")),
)  # fmt: skip
_FLAGS: Final = (
    "--target=wasm32-wasi", "--sysroot=/usr", "-std=c99", "-O2", "-ffp-contract=off", "-DFSM_NO_HOST",
    "-DFSM_SPARE_MOST=256", "-nostartfiles",
    "-Wall", "-Wextra", "-Wconversion", "-Werror", "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--export-table",
    "-Wl,--growable-table", "-Wl,--stack-first", f"-Wl,-z,stack-size={_STACK}",
    f"-Wl,--initial-memory={DATA_BEGIN}",
    *(f"-Wl,--export={name}" for name in _EXPORTED),
)  # fmt: skip


def build() -> bytes:
    """Return the runtime as WebAssembly.

    Raises InputError: there is no clang. Raises RunError: it does not compile: parts of the toolchain are missing.
    """
    if shutil.which("clang") is None:
        raise InputError(
            "there is no clang", remedy="install clang lld wasi-libc libclang-rt-14-dev-wasm32 (Debian's names)"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(Path(fsm_dyn.runtime.__file__).parent, folder / "runtime")
        for source in (*(FOLDER.parent / "c99").glob("fsm_*.[ch]"), FOLDER / "fsm_wasm.c"):
            shutil.copy(source, folder)
        (folder / "fsm_kernels.h").write_text(KERNELS_HEADER, encoding="utf-8")
        command = ["clang", *_FLAGS, "-I.", "fsm_wasm.c", "-o", "out.wasm", "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunError("the runtime does not compile to WebAssembly: " + done.stderr.strip()[-600:])
        return (folder / "out.wasm").read_bytes()


# -- The page --------------------------------------------------------------------------------------------------


# -- Contents of a self-contained page -----------------------------------------------------------------------
#
# Contents of a self-contained page: the model, its kernels, and the description of display frames.

PERIOD: Final = 1e-3  # s, of the inputs' samples


def page_data(machine: ExportedMachine, graph: ModeGraph, own_ports: bool) -> tuple[dict[str, Any], bytes]:
    """Return the data of a page, and the model as WebAssembly.

    ``run``: of a coupled graph, if the pointer moves ports; ``own_ports``: whether the ports are declared in the model
    file, not default ones.
    """
    layout = machine.automaton.terms.layout
    ports = coupled_ports(machine.automaton.mechanism)
    columns = TickColumns(layout.w, layout.x, 0, tuple(axis.name for port in ports for axis in port.axes))
    encoder = FrameEncoder(graph, columns, machine.x, machine.c, coupled=bool(ports))
    states = [tuple(int(code) for code in row) for row in machine.tables.mode_states]
    labels = [encoder.evaluator.number(codes) for codes in states]
    model = wasm_model(machine, [machine.automaton.geometry])
    data = {
        "model": _payload(encoder, machine, states, own_ports),
        "machine": machine_lengths(machine, model, [machine.automaton.geometry]),
        "kernels": {"report": model.report, "pins": model.pins, "geometry": model.extra[0]},
        "outputs": {
            "points": _span(machine.automaton.geometry.slices["points"]),
            "frames": _span(machine.automaton.geometry.slices["frames"]),
            **{name: _span(machine.automaton.report.slices[name]) for name in ("kinetic_energy", "potential_energy")},
            "outputs": _span(machine.automaton.report.slices.get("outputs", slice(0, 0))),
        },
        "modes": [{"label": label, "states": codes} for label, codes in zip(labels, states, strict=True)],
        "guard_counts": np.diff(machine.tables.mode_guard_start).tolist(),
        "rows": [row.name for row in machine.automaton.rows],
        "words": cause_words(machine.automaton),
        "drawing": _drawing(encoder),
        "handles": _handles(encoder, machine),
        "sources": encoder.quantities.sources,
        "endings": {code: [outcome.name, outcome.sentence] for code, outcome in OUTCOMES.items()},
        "period": PERIOD,
        "further": page_modes(machine.automaton, encoder.words) if embeds_online(machine.automaton) else None,
    }  # fmt: skip
    return data, model.module


def packed(content: bytes) -> str:
    """Return bytes compressed by gzip, in base 64; the same text whenever it is made."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _span(part: slice) -> list[int]:
    return [part.start, part.stop]


def machine_lengths(machine: ExportedMachine, model: WasmModel, further: Sequence[Program]) -> dict[str, float]:
    """Return the address of a model and the lengths of its arrays, for ``machine.js``."""
    layout, automaton = machine.automaton.terms.layout, machine.automaton
    pins = [machine.pins] if machine.pins else []
    programs = [*further, *pins, automaton.report, *(full for _, full in machine.programs)]
    return {
        "n_q": len(layout.q), "n_u": len(layout.u), "n_x": layout.n_x, "n_c": layout.n_c, "n_p": len(layout.p),
        "n_w": len(layout.w), "n_rows": len(automaton.rows), "n_contacts": len(automaton.contacts),
        "n_arguments": layout.n_x if machine.pins is None else machine.pins.layout.n_x,
        "n_out": max(program.size for program in programs) + 2 * most_guards(automaton, machine.tables),
        "n_modes": len(machine.programs),
        "model": model.model, "end": model.end,
        "bytes": machine_bytes(machine), "until": machine.options.until or 0.0, "table": TABLE_BEGIN + model.kernels,
    }  # fmt: skip


def _payload(
    encoder: FrameEncoder, machine: ExportedMachine, states: Sequence[tuple[int, ...]], own_ports: bool
) -> dict[str, Any]:
    """Return the message ``model`` of the page."""
    payload, mechanism = encoder.payload(), machine.automaton.mechanism
    guards = {mode.states: mode.programs.guards for mode in machine.automaton.modes}
    ports = payload["ports"]
    return {
        "kind": "model", "number": 1, **payload,
        "forces": [],  # they take partial velocities, which are not in the page
        "pushes": [],  # they take the texts of loads
        "guards": [guard_texts(machine.automaton, guards[codes], encoder.words) for codes in states],
        "phases": phases_payload(mechanism),
        "port": ports[0]["name"] if ports else "",
        "speed": 1.0,
        "schedule": not own_ports if is_scheduled(mechanism) else None,
        "period": PERIOD,
        "setup": {"parameters": _parameters(encoder, machine), "drives": _drives(machine), "waiting": [], "mode": ""},
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


def _handles(encoder: FrameEncoder, machine: ExportedMachine) -> list[dict[str, Any]]:
    """Return the position of each handle, the directions of its axes, and the inputs set by the pointer."""
    handles: PortHandles | None = encoder.port_handles
    if handles is None:
        return []
    scene, layout = encoder.picture.scene, machine.automaton.terms.layout
    outputs = list(machine.automaton.mechanism.outputs)

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


def _parameters(encoder: FrameEncoder, machine: ExportedMachine) -> list[dict[str, Any]]:
    """Return the tunable parameters: single numbers on which no other parameter and no gap depends."""
    alone = {name for name, use in zip(machine.automaton.terms.layout.p, start_reads(machine), strict=True)
             if use == StartUse.ALONE}  # fmt: skip
    mechanism, tunable = machine.automaton.mechanism, set(tunable_parameters(machine)) - alone
    units, names = units_of(mechanism), list(machine.automaton.terms.layout.p)
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


def _drives(machine: ExportedMachine) -> list[dict[str, Any]]:
    """Return the inputs not set by ports, with the largest magnitude of their schedule."""
    mechanism = machine.automaton.mechanism
    held = {name for port in coupled_ports(mechanism) for name in port.inputs}
    values = parameter_values(mechanism)

    def size(name: str) -> float:
        schedule = mechanism.inputs[name].schedule
        texts = schedule.values if isinstance(schedule, TableSchedule) else ()
        return max((abs(float(np.sum(evaluate_expression(text, values)))) for text in texts), default=0.0) or 1.0

    layout = machine.automaton.terms.layout
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


def page(machine: ExportedMachine, graph: ModeGraph, own_ports: bool, shared: bool = False) -> bytes:
    """Return the page.

    ``run``: run of the graph returned by :func:`for_page`; ``own_ports``: whether the ports are declared in the model
    file, not default ones; ``shared``: whether the page reads the runtime from :data:`RUNTIME_SCRIPT` in its folder.
    """
    data, module = page_data(machine, graph, own_ports)
    runtime = f'<script src="{RUNTIME_SCRIPT}"></script>\n' if shared else _holder("runtime-data", BINARY.read_bytes())
    holder = runtime + _holder("module-data", module) + _holder("machine-data", plain_json(plain(data)).encode())
    policy = _SHARING_POLICY if shared else COMPILING_POLICY
    return page_text(graph.name, holder, in_space=not data["model"]["picture"]["planar"], policy=policy).encode()


def runtime_script() -> bytes:
    """Return the content of :data:`RUNTIME_SCRIPT`."""
    return f'globalThis.fsmRuntime = "{packed(BINARY.read_bytes())}";\n'.encode()


def _holder(name: str, content: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{packed(content)}</script>\n'


if __name__ == "__main__":
    BINARY.write_bytes(build())
    sys.stdout.write(f"{BINARY}: {BINARY.stat().st_size} bytes\n")
