"""Exports to C99 under random starts, parameters and inputs, against Python bit for bit.

``python -m tests.exports.random_starts [--sanitize] [--seconds S] [--batches N] [--jobs N] [--ledger F]``

A case is a batch of starts of one model with contacts.  The modes that they reach are exported and compiled once; then
every start is run by Python and by the exported machine, which has its own kernels and tables, and gets the state, the
parameters, the tolerances and the schedule of Python's run.  Batches that the ledger has are not run again.  With
``--sanitize`` the machines run under the address and undefined-behaviour sanitizers, which end the process of a batch
at the first finding.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

import fsm_dyn
from fsm_dyn.core.errors import FsmDynError
from fsm_dyn.exports.export import _c99, _write, prepared
from fsm_dyn.run.loop import run_automaton
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.runtime.abi import Status
from tests.campaigns.ledger import ROOT, Ledger
from tests.campaigns.run import run as run_cases
from tests.exports.building import COMPILER, FLAGS, PLAIN, SANITIZE, machine_object
from tests.physics.campaign import ADAPTIVE
from tests.physics.starts import STARTS
from tests.physics.variants import VARIANTS, start
from tests.runtime.building import sanitizer_environment

SANITIZED = os.environ.get("FSM_SANITIZED_EXPORTS") == "1"
CAMPAIGN = "exports to C99, sanitized" if SANITIZED else "exports to C99"
BEGIN = 3_000_000  # seeds that nothing else uses
BATCH = 50  # starts
BATCHES = 200
MOST_STEPS = 20_000
MOST_TRANSITIONS = 20_000
NAMES = [*STARTS, *VARIANTS]
SHIM = Path(__file__).with_name("random_run.c")


@cache
def graph_of(name):
    """The compiled model, once a process."""
    return fsm_dyn.compile(name if name in STARTS else VARIANTS[name][0])


def in_python(simulator, executable, one):
    """Return the values that a start gives to a run, and the run."""
    options = RunOptions(
        one.until, inputs=one.inputs, parameters=one.parameters, initial=one.initial, max_steps=MOST_STEPS
    )
    given = simulator.setup(options)
    numerics = simulator.numerics(given.numbers, given.vector, ADAPTIVE)
    executable.use(numerics)
    x, c = given.start.x, given.start.context
    mode = executable.mode_index(given.start.states)
    run = run_automaton(
        executable.tables, x, c, mode, 0.0, options.resolved(numerics), drive=given.drive, mode_source=executable,
    )  # fmt: skip
    return (x, c, mode, given.drive, numerics), run


def library(graph, executable, folder):
    """Export all modes that an executable has by now; return the compiled library and the model in it."""
    exported = replace(
        prepared(graph, listed_modes=True),
        tables=executable.tables,
        programs=[(chart.programs.rhs, chart.programs.full) for chart in executable.charts],
        mode_names=executable.chart_names,
    )
    _write(folder, _c99(exported))
    flags = SANITIZE if SANITIZED else []
    made, sources = folder / "library.so", [f"{exported.prefix}.c", str(SHIM), str(machine_object(folder, *flags))]
    command = [COMPILER, *FLAGS, "-O0", *flags, "-fPIC", "-shared", *sources, "-o", str(made), "-lm"]
    subprocess.run(command, cwd=folder, check=True, env=PLAIN)
    lib = ctypes.CDLL(str(made))
    lib.fsm_machine_bytes.restype = lib.random_run.restype = ctypes.c_int64
    return lib, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(lib, f"{exported.prefix}_model")))


def in_c(lib, model, given, until, n_u):
    """Return status, end (time, then state), and transitions (time, source, target, speeds after) of the machine."""
    x, c, mode, drive, numerics = given
    size = lib.fsm_machine_bytes(model) + 8 * len(drive.arrays.jets)  # the exported schedule may need none
    memory = np.full(size // 8, 0xAAAAAAAAAAAAAAAA, np.uint64)
    atol, tolerances = np.array(np.broadcast_to(numerics.atol, x.shape)), numerics.tolerances.as_array()
    end, rows, n = np.zeros(1 + len(x)), np.zeros(MOST_TRANSITIONS * (3 + n_u)), ctypes.c_int64(MOST_TRANSITIONS)
    arrays = [np.ascontiguousarray(a, np.float64) for a in (x, c, tolerances, atol)]
    x_at, c_at, tolerances_at, atol_at = (ctypes.c_void_p(a.ctypes.data) for a in arrays)
    status = lib.random_run(
        model, ctypes.c_void_p(memory.ctypes.data), ctypes.c_int64(size), x_at, c_at, ctypes.c_int64(mode),
        ctypes.c_void_p(drive.packed.address), ctypes.c_int64(drive.segment_at(0.0)), tolerances_at, atol_at,
        ctypes.c_double(numerics.rtol), ctypes.c_double(until), ctypes.c_void_p(end.ctypes.data),
        ctypes.c_void_p(rows.ctypes.data), ctypes.byref(n),
    )  # fmt: skip
    rows = rows[: n.value * (3 + n_u)].reshape(-1, 3 + n_u)
    return status, end, rows


def difference(run, found):
    """Return where the machine's run has other bits than Python's, or nothing."""
    status, end, rows = found
    made = run.transitions
    wanted = np.column_stack([made.time, made.source, made.target, made.u_after])
    if len(rows) != len(wanted):
        return f"{len(rows)} transitions for {len(wanted)}"
    if (other := np.flatnonzero((rows.view(np.uint64) != wanted.view(np.uint64)).any(axis=1))).size:
        return f"transition {other[0]} differs"
    if status != run.outcome.code:
        return f"ends with {status} for {run.outcome.code}"
    if end.tobytes() != np.array([run.t[-1], *run.x[-1]]).tobytes():
        return "the end differs"
    return ""


def case(seed):
    """A batch of starts of one model; those that are refused, or take too many steps, are left out and counted."""
    name = NAMES[seed % len(NAMES)]
    graph, first = graph_of(name), BEGIN + BATCH * (seed // len(NAMES))
    simulator = Simulator(graph)
    executable = simulator.take("compiled")
    starts, left = [], 0
    for number in range(first, first + BATCH):  # to reach modes
        one = start(name, number)
        try:
            _, run = in_python(simulator, executable, one)
        except FsmDynError:
            left += 1
            continue
        if run.outcome.code == Status.TOO_MANY_STEPS or len(run.transitions) > MOST_TRANSITIONS:
            left += 1
        else:
            starts.append(one)
    found, tried, transitions = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        lib, model = library(graph, executable, Path(folder))
        known = len(executable.charts)
        for one in starts:
            given, run = in_python(simulator, executable, one)
            if len(executable.charts) > known:  # it asked for a chart that it had not asked for before
                raise RuntimeError(f"{name}, seed {one.seed}: a further chart")
            tried, transitions = tried + 1, transitions + len(run.transitions)
            if where := difference(run, in_c(lib, model, given, one.until, run.transitions.u_after.shape[1])):
                found.append(f"{where} [{one}]")
    return {
        "ok": not found, "reason": found[0] if found else "the same bits", "model": name, "tried": tried,
        "wrong": len(found), "left_out": left, "transitions": transitions,
    }  # fmt: skip


def outcome(_, seed):
    """Run a case; return its result for the ledger, an exception included."""
    begin = time.perf_counter()
    try:
        result = case(seed)
    except Exception as error:  # a result like any other
        result = {"ok": False, "reason": f"raises {type(error).__name__}: {str(error).splitlines()[0][:200]}"}
    return {**result, "seconds": round(time.perf_counter() - begin, 3)}


def main():
    parser = argparse.ArgumentParser(description="exports to C99 against Python from random starts")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no batch begins later")
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=ROOT / "out" / "exports.jsonl")
    parser.add_argument("--sanitize", action="store_true", help="run the machines under sanitizers")
    given = parser.parse_args()
    if given.sanitize and not SANITIZED:  # the sanitizers have to be there before Python
        environment = {**sanitizer_environment(), "FSM_SANITIZED_EXPORTS": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.exports.random_starts", *sys.argv[1:]], environment)
    ledger = Ledger(given.ledger)
    cases = [(CAMPAIGN, seed) for seed in range(given.batches) if (CAMPAIGN, seed) not in ledger]
    run_cases(ledger, cases, given.jobs, given.seconds, outcome)
    done = [entry for entry in ledger.entries if entry["campaign"] == CAMPAIGN]
    for entry in done:
        if not entry["ok"]:
            print(f"{entry['seed']}: {entry['reason']}")  # noqa: T201
    tried, wrong = (sum(entry.get(word, 0) for entry in done) for word in ("tried", "wrong"))
    print(f"{tried} runs of {len({entry.get('model') for entry in done})} models, {wrong} with other bits")  # noqa: T201
    return not all(entry["ok"] for entry in done)


if __name__ == "__main__":
    sys.exit(main())
