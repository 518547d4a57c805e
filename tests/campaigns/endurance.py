"""Play without end in one process: random drives of mechanisms, one after another, while the memory is watched.

A simulator keeps the modes that its runs have met, up to a bound, and fills it for as long as there are new ones: their
growth is told apart.
"""

import ctypes
import gc
import os
import resource
from functools import cache
from pathlib import Path

import numpy as np

import fsm_dyn
from tests.campaigns.ramps import NAMED

INPUTS = {  # least and largest value of every input, SI
    "piano_action": {"finger": (0.0, 12.0)},
    "latch_door": {"push": (-30.0, 60.0), "handle": (0.0, 20.0)},
    "escapement_anchor": {},
    "escapement_deadbeat": {},
    "seat_belt_reel": {"lean": (-20.0, 60.0), "deceleration": (0.0, 100.0)},
}
CLOCKS = {"m_weight": (0.01, 0.04), "c": (5e-4, 3e-3)}  # kg, N m s: parameters of escapements, which have no input
PLAY = 2.0  # s of each
WARM = 700.0  # s of play before the memory is watched: until simulators have the 64 starts and inputs that they keep
LOOKS = 50  # plays over which the least memory counts: that of the piano's goes up and down by 3 MB
GROWTH = 4096  # kB of the resident memory, whatever the time; a leak of 1 kB a play is 3600 kB in two hours
KEPT = 1.25  # resident bytes of a mode that is kept by each that is counted: its guards and names (1.16 of the piano)
CLOSURE = 1e-6  # of the energy that passes through a play, at usual tolerances
TWO_HOURS = 7200.0


@cache
def simulator_of(model):
    """The compiled model, with what its runs keep, once a process."""
    return fsm_dyn.Simulator(fsm_dyn.compile(model))


def kept():
    """Memory of modes that are kept up to a bound for the runs to come, kB."""
    return sum(simulator_of(model).memory for model in INPUTS) // 1024


def resident():
    """Memory of this process now, kB, without what the allocator merely keeps for later."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    path = Path("/proc/self/statm")
    if path.exists():
        return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def drive(ranges, rng):
    """Inputs at random: ramps and steps between corners, zero now and then."""
    found = {}
    for name, (low, high) in ranges.items():
        corners = np.sort(rng.uniform(0.0, PLAY, rng.integers(2, 8)))
        rows = [[0.0, 0.0], *([float(t), float(rng.uniform(low, high) * (rng.integers(4) > 0))] for t in corners)]
        found[name] = {("linear", "steps")[rng.integers(2)]: rows}
    return found


def play(seconds, seed=0):
    """Play for so much simulated time; a result for the ledger."""
    rng, done, number = np.random.default_rng([20, seed]), 0.0, 0
    looked, warm = [], min(WARM, 0.5 * seconds)  # (resident, kept) after each play, kB
    counts = {"plays": 0, "transitions": 0, "named ends": 0}
    worst, complaints = 0.0, []
    while done < seconds:
        if done >= warm:
            looked.append((resident(), kept()))
        model = list(INPUTS)[number % len(INPUTS)]
        clock = {} if INPUTS[model] else {name: float(rng.uniform(*ends)) for name, ends in CLOCKS.items()}
        run = simulator_of(model).run(
            PLAY, inputs=drive(INPUTS[model], rng), parameters=clock, on_failure="return"
        )  # fmt: skip
        if run.outcome.failed:
            counts["named ends"] += 1
            if run.outcome.code not in NAMED:
                complaints.append(f"play {number} of {model} ends with '{run.outcome.name}' at {run.t[-1]:.9g} s")
        if np.abs(run.energy.residual).max() > 1e-13:
            worst = max(worst, run.energy.relative_residual)
            if run.energy.relative_residual > CLOSURE:
                complaints.append(
                    f"play {number} of {model}: the energy account leaves {run.energy.relative_residual:.3g}"
                )
        counts["plays"] += 1
        counts["transitions"] += len(run.transitions)
        done, number = done + PLAY, number + 1
        del run
    begun, stocked = min(looked[:LOOKS])
    ended, left = min(looked[-LOOKS:])
    grown, modes = ended - begun, left - stocked
    if grown - KEPT * modes > GROWTH:
        complaints.append(f"the memory has grown by {grown} kB, {modes} kB of them modes that are kept")
    return {
        "ok": not complaints, "reason": complaints[0] if complaints else "flat", **counts, "simulated": done,
        "resident": begun, "grown": grown, "modes": modes, "closure": worst, "found": complaints[:20],
    }  # fmt: skip


def two_hours(seed):
    """Two hours in one process."""
    return play(TWO_HOURS, seed)


def table(entries):
    """What came of it, as markdown."""
    yield "\n| simulated, s | plays | transitions | named ends | resident, kB | grown, kB | modes, kB | energy lost |\n"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    for e in entries:
        names = ("plays", "transitions", "named ends", "resident", "grown", "modes")
        cells = (f"{e['simulated']:.0f}", *(e[name] for name in names))
        yield f"| {' | '.join(map(str, cells))} | {e['closure']:.1e} |\n"
