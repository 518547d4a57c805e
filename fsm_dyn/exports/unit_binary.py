"""Binaries of units: each source is compiled by itself, and its object code is kept in the user's cache.

The runtime takes nearly all of the time and is the same for all models, so it is compiled once for each version of the
standard, compiler and options. What is kept follows the rules of machine code (:class:`ObjectCache`): files that
another user may write to, or whose content does not have the digest in their header, count as absent.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm

from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.programs.kernels import ObjectCache

_FLAGS: Final = ("-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-DFSM_NO_HOST", "-I.")


def compiler() -> list[str]:
    """Return the C compiler: of the environment variable CC, the one Python was built with, or cc.

    Returns
    -------
    list of str
        The words of the command; CC may have several, as ``ccache gcc``.

    Raises
    ------
    InputError
        There is none.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    built_with = shlex.split(sysconfig.get_config_var("CC") or "")[:1]  # its options are those of Python
    for command in (chosen, built_with, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    raise InputError(
        "there is no C compiler, which an export to FMI needs",
        remedy="install one (Debian, Ubuntu: the package gcc; macOS: xcode-select --install), or name it by CC",
    )


def shared_library(sources: Mapping[str, bytes], compiled: Sequence[str]) -> bytes:
    """Compile sources to a shared library.

    Parameters
    ----------
    sources : mapping
        Contents of C files and headers by their paths.
    compiled : sequence of str
        Those that are compiled; the others are included.

    Returns
    -------
    bytes
        The library; the same whether its object code was kept or not.

    Raises
    ------
    InputError
        There is no C compiler.
    RunError
        The compiler failed.
    """
    command = compiler()
    flags = [*_FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, content in sources.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        objects = []
        for name in compiled:
            objects.append(f"{name.removesuffix('.c')}.o")
            (folder / objects[-1]).write_bytes(_object_code(folder, [*command, *flags], name))
        _call([*command, *flags, "-shared", *objects, "-o", "unit", "-lm"], folder)
        return (folder / "unit").read_bytes()


def _object_code(folder: Path, command: Sequence[str], name: str) -> bytes:
    """Return the object code of a source, kept or compiled.

    The key is a digest of the preprocessed source, so of all headers too, of the command, of version and file of the
    compiler, and of the processor, which options such as ``-march=native`` ask for.
    """
    program = Path(shutil.which(command[0]) or command[0]).resolve()
    version = subprocess.run([*command, "--version"], capture_output=True, check=False).stdout
    file, processor = program.stat(), (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    made_of = repr((name, *command, str(program), file.st_size, file.st_mtime_ns, version, processor))
    key = sha256(made_of.encode() + b"\0" + _call([*command, "-E", name], folder)).hexdigest()
    cache = ObjectCache.default()
    kept = cache.load(key)
    if kept is None:
        _call([*command, "-c", name, "-o", "unfinished.o"], folder)
        kept = (folder / "unfinished.o").read_bytes()
        cache.store(key, kept)
    return kept


def _call(command: Sequence[str], folder: Path) -> bytes:
    """Call the compiler in a folder and return its output; raise RunError if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace")[-2000:]
        raise RunError(f"{command[0]} could not compile the unit\n{reason}")
    return done.stdout
