"""Building the runtime as WebAssembly: ``python -m fsm_dyn.exports.wasm_build``, run by ``make wasm``.

The result is shipped (``wasm/fsm_runtime.wasm``), so exporting a page needs no compiler. The same sources, compiler
and C library give the same bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import fsm_dyn.runtime
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.exports.c_model import KERNELS_HEADER
from fsm_dyn.exports.wasm import DATA_BEGIN
from fsm_dyn.programs.sources import CALLED

FOLDER: Final = Path(__file__).parent / "wasm"
BINARY: Final = FOLDER / "fsm_runtime.wasm"

_STACK: Final = 0x100000  # bytes, below the data of the runtime

_EXPORTED: Final = (
    *(f"fsm_machine_{name}" for name in ("bytes", "create", "restart", "advance", "time", "state", "context", "mode",
      "mode_count", "mode_contact", "missing")),
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
