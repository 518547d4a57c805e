"""The parts ``artefacts`` and ``exports``: stored automata, and every file of every export.

Exports to FMI compile: the compiler is replaced by a script that writes down its arguments, so that the flags are
recorded and no processor is.  The sources of the runtime, the same in all exports, are recorded once, with the first
model.  The example of the export to C99 is built and run.
"""

import json
import os
import re
import shutil
import subprocess
import zipfile

from tests.oracle.command_line import record_call

COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do echo "$1"; shift; done > compiled.txt
mv compiled.txt "$2"
"""
TARGETS = ("c99", "cortex-m", "fmu2", "fmu3", "html")
FIXED = ("--method", "rk4", "--step", "0.001")
#: The token of a unit is a digest of its sources: a change of these is reported, its own would hide them.
TOKEN = re.compile(rb"\{[0-9a-f]{32}\}")


def record_artefacts(items, model, folder):
    """Add the saved automaton of a model, and what its command prints."""
    if record_call(items, "compile", "compile", model, "--save", "saved.json", folder=folder):
        items.data("saved automaton", json.loads((folder / "saved.json").read_bytes()))
        record_call(items, "check of the saved automaton", "check", "saved.json", "--json", folder=folder)


def record_exports(items, model, folder, runtime):
    """Add the files of all exports of a model.

    Parameters
    ----------
    runtime : bool
        Whether the sources of the runtime are added too.
    """
    compiler = folder / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    before = os.environ.get("CC")
    os.environ["CC"] = str(compiler)
    try:
        for target in TARGETS:
            _record(items, model, folder, target, (), runtime)
        _record(items, model, folder, "c99", ("--real", "float"), False)
        _record(items, model, folder, "c99", FIXED, False)
    finally:
        if before is None:
            del os.environ["CC"]
        else:
            os.environ["CC"] = before


def _record(items, model, folder, target, options, runtime):
    name = " ".join((target, *options))
    place = folder / name.replace(" ", "_")
    if not record_call(items, name, "export", model, "--to", target, "--out", place, *options, folder=folder):
        return
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        inner = path.relative_to(place).as_posix()
        if path.suffix == ".fmu":
            with zipfile.ZipFile(path) as unit:
                for entry in unit.namelist():
                    _add(items, f"{name} {entry}", TOKEN.sub(b"{token}", unit.read(entry)), runtime)
        else:
            _add(items, f"{name} {inner}", path.read_bytes(), runtime)
    if target == "c99" and shutil.which("make"):
        _run_example(items, name, place)


def _add(items, name, content, runtime):
    if runtime or "runtime/" not in name:
        items.content(name, content)


def _run_example(items, name, place):
    """Build the example of an export without optimisation, and add what it prints."""
    done = subprocess.run(
        ["make", "-s", "-C", str(place), "CC=cc", "CFLAGS=-O0", "run"], capture_output=True, text=True, check=False
    )
    items.text(f"{name} run", f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
