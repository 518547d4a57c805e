"""Compiling exports for tests; the runtime, the same for all models, is compiled once for all of them."""

import ctypes
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

import fsm_dyn
from tests.runtime.building import BUILT, COMPILER, SANITIZE

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Werror"]
FLAGS = ["-std=c99", "-ffp-contract=off", *WARNINGS, "-DFSM_NO_HOST", "-I."]

#: Of what takes minutes on a machine that is full.
LONG = (pytest.mark.long, pytest.mark.timeout(900))

#: Compilers are not run under the sanitizers that this process may have.
PLAIN = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def quick_units(patch, *flags):
    """Let units be compiled without optimisation; what they share is kept in the user's cache."""
    patch.setenv("CFLAGS", " ".join(("-O0", *flags)))


def machine_object(folder, *flags):
    """Return the object code of the runtime with the machine, which no model changes."""
    sources = sorted([*folder.glob("fsm_[mps]*.[ch]"), *(folder / "runtime").glob("*.[ch]")])
    digest = hashlib.sha256(repr([(path.name, path.read_bytes()) for path in sources]).encode())
    digest.update(repr(flags).encode())
    made = BUILT / f"machine_{digest.hexdigest()[:16]}.o"
    if not made.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        unfinished = made.with_suffix(f".{id(flags)}")
        command = [COMPILER, *FLAGS, "-fPIC", "-O1", *flags, "-c", "fsm_machine.c", "-o", str(unfinished)]
        subprocess.run(command, cwd=folder, check=True, env=PLAIN)
        unfinished.replace(made)
    return made


def built(folder, name, *flags):
    """Compile the example of an export and return the path of the program."""
    program = folder / "program"
    sources = ["main.c", f"{name}.c", str(machine_object(folder, *flags))]
    subprocess.run([COMPILER, *FLAGS, "-O0", *flags, *sources, "-o", str(program), "-lm"], cwd=folder, check=True)
    return program


def printed(program):
    """Return transitions as (time, text), the end, states and outputs that the example prints."""
    done = subprocess.run([program], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    transitions, values, end = [], {}, ""
    for line in done.stdout.splitlines():
        if line.startswith("phase "):
            continue
        if " -> " in line:
            time, text = line.split(" ", 1)
            transitions.append((float(time), text))
        elif " = " in line:
            name, value = line.split(" = ")
            values[name] = float(value)
        else:
            end = end or line
    return transitions, end, values


class Machine:
    """A machine of an exported model, called from Python."""

    def __init__(self, folder, name):
        library = folder / "library.so"
        sources = [f"{name}.c", str(machine_object(folder))]
        command = [COMPILER, *FLAGS, "-O0", "-fPIC", "-shared", *sources, "-o", str(library), "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self.lib = ctypes.CDLL(str(library))
        self.model = ctypes.addressof(ctypes.c_char.in_dll(self.lib, f"{name}_model"))
        self.lib.fsm_machine_bytes.restype = self.lib.fsm_machine_mode.restype = ctypes.c_int64
        self.lib.fsm_machine_create.restype = self.lib.fsm_machine_state.restype = ctypes.c_void_p
        self.lib.fsm_machine_time.restype = self.lib.fsm_machine_output.restype = ctypes.c_double
        self.bytes = self.lib.fsm_machine_bytes(ctypes.c_void_p(self.model))
        self.kept = []

    def create(self, size=None):
        """Make a machine in memory that is full of something else; None where that is refused."""
        memory = (ctypes.c_uint64 * (self.bytes // 8))(*[0xAAAAAAAAAAAAAAAA] * (self.bytes // 8))
        self.kept.append(memory)
        given = ctypes.c_int64(self.bytes if size is None else size)
        return self.lib.fsm_machine_create(ctypes.c_void_p(self.model), memory, given)

    def advance(self, machine, until):
        """Run to a time, s; return the status."""
        return self.lib.fsm_machine_advance(ctypes.c_void_p(machine), ctypes.c_double(until))

    def start(self, machine, x, given):
        """Begin at a state (n,); return whether that was possible."""
        self.lib.fsm_machine_start.restype = ctypes.c_bool
        values = (ctypes.c_double * len(x))(*x)
        return self.lib.fsm_machine_start(ctypes.c_void_p(machine), values, bytes(map(int, given)))

    def state(self, machine, count):
        """Return the state, shape (count,)."""
        at = self.lib.fsm_machine_state(ctypes.c_void_p(machine))
        return list((ctypes.c_double * count).from_address(at))


def exported(name, folder, **options):
    """Export a shipped model and return graph and folder."""
    graph = fsm_dyn.compile(name)
    return graph, Path(fsm_dyn.export(graph, folder / "exported", **options))


__all__ = ["FLAGS", "LONG", "SANITIZE", "Machine", "built", "exported", "printed", "quick_units"]
