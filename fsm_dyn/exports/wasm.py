"""An automaton as a module of WebAssembly: its kernels and tables in shared memory; building the runtime for it.

``python -m fsm_dyn.exports.wasm``, run by ``make wasm``, writes the runtime (``wasm/fsm_runtime.wasm``). It is shipped,
so exporting a page needs no compiler. The same sources, compiler and C library give the same bytes.
"""

from __future__ import annotations

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
    parameter_limits,
    phase_fields,
    reads_time,
    schedule_fields,
    spare_parts,
    table_fields,
    with_spare_modes,
)
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.sources import CALLED, CALLED_OF_ONE, F64, I32, function_body, share_angles, unsigned
from fsm_dyn.run.online import online_programs

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
    """Constant data from an address on, eight bytes aligned.

    Parameters
    ----------
    begin : int
        Address of the first byte.
    """

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
    """A module and the addresses in it.

    Attributes
    ----------
    module : bytes
        Imports memory, table and elementary functions of the runtime from ``runtime``.
    model : int
        Address of ``struct fsm_model``.
    end : int
        Address after the data; the caller's memory may begin there.
    kernels : int
        Number of table entries used from ``TABLE_BEGIN`` on.
    report, pins, extra : int, int, sequence of int
        Table indices of the report, of the outputs of connections (0 without any), and of further programs.
    """

    module: bytes
    model: int
    end: int
    kernels: int
    report: int
    pins: int
    extra: Sequence[int]


def wasm_model(run: ExportedRun, further: Sequence[Program] = ()) -> WasmModel:
    """Return the model as WebAssembly.

    Parameters
    ----------
    run : ExportedRun
    further : sequence of Program
        Compiled too, to be called from outside.
    """
    image, bodies = Image(DATA_BEGIN), []
    run = for_page_memory(run)

    def kernel(name: str, program: Program) -> int:
        del name
        bodies.append(function_body(share_angles(program)))  # the same operations as machine code, so the same bits
        return TABLE_BEGIN + len(bodies) - 1

    tables = table_fields(run, image, kernel)
    spare = image.put(_spare(image, run, kernel)) if run.spare else 0
    resets = [0 if program is None else kernel("reset", program) for program in run.automaton.resets]
    report = kernel("report", run.automaton.report)
    pins = 0 if run.pins is None else kernel("pins", run.pins)
    phases = 0
    if run.phases is not None:
        phases = image.put(laid_out(phase_fields(run.phases, image, kernel).values()))
    outputs = run.automaton.report.slices.get("outputs", slice(0, 0))
    schedule, method = schedule_fields(run.inputs, image, kernel), method_fields(run.options.method, image)
    integer = image.integer
    model = image.put(
        laid_out(
            [
                pointer(0),  # names are not in it
                pointer(image.put(laid_out(tables.values()))),
                pointer(image.put(laid_out(map(pointer, resets)))),
                pointer(image.put(laid_out(schedule.values()))),
                integer(run.inputs.segment_at(0.0)),
                pointer(image.put(laid_out(method.values()))),
                pointer(report),
                *map(integer, (run.automaton.report.size, outputs.start, len(run.names["output"]))),
                *(image.array(name, values) for name, values in (("x", run.x), ("c", run.c))),
                integer(run.mode),
                image.array("atol", np.asarray(run.options.atol)),
                *map(real, (run.options.rtol or 0.0, run.options.step or 0.0, run.options.until or 0.0)),
                image.array("input_moves", input_moves(run.automaton)),
                *(6 * [pointer(0)]),
                pointer(spare),
                integer(int(reads_time(run))),
                *(image.array(name, values) for name, values in parameter_limits(run).items()),
                *(2 * [pointer(0)]),  # the page has its own ways to begin elsewhere
                pointer(pins),
                integer(len(run.forces.units)),
                *(3 * [pointer(0)]),
                pointer(phases),
                pointer(0),
            ]
        )
    )
    extra = [kernel("further", program) for program in further]
    return WasmModel(_module(image, bodies), model, image.end, len(bodies), report, pins, extra)


def for_page_memory(run: ExportedRun) -> ExportedRun:
    """Return the run with room for the modes embedded online in a page, if the model allows any."""
    return with_spare_modes(run, PAGE_SPARE) if embeds_online(run.automaton) else run


def machine_bytes(run: ExportedRun) -> int:
    """Return the largest size of a machine, bytes."""
    return 8 * memory_words(for_page_memory(run))


def _spare(image: Image, run: ExportedRun, kernel: Callable[[str, Program], int]) -> bytes:
    """Return ``struct fsm_spare_parts``."""
    parts = spare_parts(run.automaton, run.tables, run.numerics)
    programs = image.put(
        laid_out(pointer(kernel("online", program)) for program in online_programs(run.automaton.terms))
    )
    guards = image.put(
        laid_out(
            real(value) if isinstance(value, float) else image.integer(value)
            for guard in parts.guards
            for value in guard
        )
    )
    known = {key: pointer(value) for key, value in (("programs", programs), ("guards", guards))}
    known |= {"most": image.integer(run.spare), "follows": real(FOLLOWS)}
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

    Raises
    ------
    InputError
        There is no clang.
    RunError
        It does not compile: parts of the toolchain are missing.
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


if __name__ == "__main__":
    BINARY.write_bytes(build())
    sys.stdout.write(f"{BINARY}: {BINARY.stat().st_size} bytes\n")
