"""A day of play, saved and continued each simulated hour in a process of its own.

``python -m tests.campaigns.continued FILE UNTIL PIECE`` continues the saved run in a file to a time (s), so much of it
at a time that no more is recorded at once, and saves it there again; it prints what came of it.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import fsm_dyn
from tests.campaigns.endurance import INPUTS, simulator_of
from tests.campaigns.ledger import ROOT
from tests.campaigns.ramps import NAMED
from tests.continued import rows_that_differ

HOUR, DAY = 3600.0, 86400.0
PIECE = {"piano_action": 0.2}  # s, recorded at once
USUAL_PIECE = 1.0
GROWTH = 32768  # kB of the largest memory of a process, from the second hour to any later one
LONGEST = 7200.0  # s, of a process


def drive(model, rng):
    """Inputs that never repeat: products of two sines of frequencies at random, between least and largest value."""
    found = {}
    for name, (low, high) in INPUTS[model].items():
        one, two = rng.uniform(2.0, 12.0, 2)
        phases = rng.uniform(0.0, 6.0, 2)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        found[name] = f"{middle:.6f} + {half:.6f}*sin({one:.6f}*t + {phases[0]:.6f})*sin({two:.6f}*t + {phases[1]:.6f})"
    return found


def go_on(path, until, piece):
    """Continue a saved run to a time (s) and save it in the same file; what came of it."""
    run, transitions = fsm_dyn.open_run(path), 0
    while run.t[-1] < until and not run.outcome.failed:
        before = run.t[-1]
        run = run.resume(min(before + piece, until), whole=False, on_failure="return")
        transitions += len([item for item in run.transitions if item.time > before])
    run.save(path)
    return {
        "end": float(run.t[-1]), "rows": len(run), "transitions": transitions, "outcome": run.outcome.name,
        "named": run.outcome.code in NAMED, "failed": run.outcome.failed,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "file": Path(path).stat().st_size // 1024,
    }  # fmt: skip


def hour(path, until, piece):
    """The same in a fresh process."""
    command = [sys.executable, "-m", "tests.campaigns.continued", str(path), repr(until), repr(piece)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, cwd=ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def day(model, seed, hours=24, length=HOUR, piece=None, compared=2):
    """Play for so many hours (of ``length`` s); the first ones ``compared`` with a run that is not interrupted."""
    piece = piece or PIECE.get(model, USUAL_PIECE)
    rng, complaints, starts, told = np.random.default_rng([21, seed]), [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "play.run.json"
        begun = 0
        for number in range(hours):
            if number == begun:
                inputs, starts = drive(model, rng), starts + 1
                fsm_dyn.simulate(simulator_of(model).graph, 0.1 * piece, inputs=inputs, on_failure="return").save(path)
            end = (number + 1 - begun) * length
            told.append(hour(path, end, piece))
            if told[-1]["failed"]:
                if not told[-1]["named"]:
                    complaints.append(f"hour {number} ends with '{told[-1]['outcome']}' at {told[-1]['end']:.9g} s")
                begun = number + 1  # it ended for good: another play begins
            elif number - begun == compared - 1 and starts == 1:
                whole = fsm_dyn.simulate(simulator_of(model).graph, end, inputs=inputs)
                if found := rows_that_differ(whole, fsm_dyn.open_run(path)):
                    complaints.append(f"{', '.join(found)} differ from those of the run that was not interrupted")
    memory = [each["memory"] for each in told]
    grown = max(memory[1:], default=0) - memory[min(1, len(memory) - 1)]
    if grown > GROWTH:
        complaints.append(f"the memory of a process has grown by {grown} kB")
    return {
        "ok": not complaints, "reason": complaints[0] if complaints else "flat and equal", "model": model,
        "transitions": sum(each["transitions"] for each in told), "starts": starts, "simulated": hours * length,
        "memory": max(memory), "by hour": memory, "grown": grown,
        "file": max(each["file"] for each in told), "found": complaints,
    }  # fmt: skip


def case(seed):
    """A day of one of the models."""
    return day(list(INPUTS)[seed % len(INPUTS)], seed, compared=0)


def table(entries):
    """What came of it, as markdown."""
    yield "\n| model | simulated, s | transitions | plays | largest memory, kB | grown, kB | largest file, kB |\n"
    yield "|---|--:|--:|--:|--:|--:|--:|\n"
    for e in entries:
        cells = (f"{e['simulated']:.0f}", e["transitions"], e["starts"], e["memory"], e["grown"], e["file"])
        yield f"| {e['model']} | {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    print(json.dumps(go_on(sys.argv[1], *map(float, sys.argv[2:]))))  # noqa: T201
