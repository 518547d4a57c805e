"""Functional Mock-up Units as files: the sources of a unit, their binary for this platform, and its description."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Final

from fsm_dyn.errors import InputError, RunError
from fsm_dyn.exports import fmi2, fmi3
from fsm_dyn.exports.c_data import text
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.exports.fmi_tangents import tangents_source
from fsm_dyn.exports.fmi_variables import event_indicators, list_variables

_SHARED: Final = (
    "fsm_exchange.h", "fsm_exchange.c", "fsm_fmu.h", "fsm_fmu.c", "fsm_fmu_copies.c", "fsm_fmu_run.c",
    "fsm_fmu_tangents.c",
)  # fmt: skip
#: What each version of the standard adds: the file that is compiled, and those that it includes.
_OWN: Final = {2: ("fsm_fmi2.c",), 3: ("fsm_fmi3.c", "fsm_fmi3_absent.c")}
_UNIT: Final = """\
/* The unit: the exported model, the token by which it is instantiated, and what the adapter knows of its variables. */

#include "{prefix}.h"
#include "fsm_fmu.h"

const struct fsm_model *const fsm_fmu_model = &{prefix}_model;
const char *const fsm_fmu_token = {token};
const int64_t fsm_fmu_indicators = {count};
const int32_t fsm_fmu_indicator_of[] = {{{numbers}}};
"""
_FLAGS: Final = (
    "-std=c99",
    "-O2",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
    "-DFSM_NO_HOST",
    "-I.",
)
_SYSTEMS: Final = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}


def unit_files(run: ExportedRun, sources: Mapping[str, bytes], version: int) -> dict[str, bytes]:
    """Return the files in a unit by their paths, its binary for this platform among them.

    Parameters
    ----------
    run : ExportedRun
    sources : mapping
        The files of the export to C99.
    version : int
        2 or 3, of the standard.

    Raises
    ------
    InputError
        There is no C compiler; two variables have the same name.
    RunError
        The compiler failed.
    """
    prefix, variables = run.prefix, list_variables(run)
    own = resources.files("fsm_dyn.exports") / "fmi"
    kept = {name: sources[name] for name in sources if name.endswith((".c", ".h")) and name != "main.c"}
    kept |= {name: (own / name).read_bytes() for name in (*_SHARED, *_OWN[version])}
    token = "{" + sha256(b"".join(kept[name] for name in sorted(kept))).hexdigest()[:32] + "}"
    kept["fsm_unit.c"] = _own_source(run, token)
    kept["fsm_tangents.c"] = tangents_source(run).encode()
    compiled = [f"{prefix}.c", "fsm_tangents.c", "fsm_unit.c", _OWN[version][0]]
    files = {
        f"binaries/{_folder(version)}/{prefix}{_SYSTEMS[sys.platform][1]}": _library(kept, compiled),
        **{f"sources/{name}": content for name, content in kept.items()},
    }
    if version == 2:
        files["modelDescription.xml"] = fmi2.model_description(run, variables, token, compiled)
        files["documentation/LICENSE"] = sources["LICENSE"]
    else:
        files["modelDescription.xml"] = fmi3.model_description(run, variables, token)
        files["sources/buildDescription.xml"] = fmi3.build_description(prefix, compiled)
        files["documentation/licenses/LICENSE"] = sources["LICENSE"]
    return files


def _own_source(run: ExportedRun, token: str) -> bytes:
    """Return the generated source of a unit."""
    of_guard, names = event_indicators(run)
    numbers = ", ".join(map(str, of_guard or [0]))
    return _UNIT.format(prefix=run.prefix, token=text(token), count=len(names), numbers=numbers).encode()


def _folder(version: int) -> str:
    """Return the folder of binaries of this platform, as a version of the standard names it."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system = _SYSTEMS[sys.platform][0]
    if version == 3:
        return f"{machine}-{system}"
    return {"windows": "win", "darwin": "darwin"}.get(system, system) + ("64" if sys.maxsize > 2**32 else "32")


def compiler() -> list[str]:
    """Return the C compiler: of the environment variable CC, the one Python was built with, or cc.

    Raises
    ------
    InputError
        There is none.
    """
    for command in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        if command and shutil.which(shlex.split(command)[0]):
            return shlex.split(command)[:1]
    raise InputError(
        "there is no C compiler, which an export to FMI needs",
        remedy="install one (Debian, Ubuntu: the package gcc; macOS: xcode-select --install), or name it by CC",
    )


def _library(sources: Mapping[str, bytes], compiled: list[str]) -> bytes:
    """Compile sources to a shared library and return it."""
    command = compiler()
    with tempfile.TemporaryDirectory() as place:
        for name, content in sources.items():
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        flags = [*_FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
        done = subprocess.run(
            [*command, *flags, *compiled, "-o", "unit", "-lm"], cwd=place, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RunError(f"{command[0]} could not compile the unit\n{done.stderr[-2000:]}")
        return (Path(place) / "unit").read_bytes()
