"""Compares this checkout with another revision: ``compare.py REV [--models NAME ...] [--rounds N]``.

In every round each of the two has a process of its own, and both run in turn, a run here and a run there, so that
whatever else the machine does meets both.  The table has medians of the ratios over the rounds, and half the distance
between their quartiles as what they scatter by.  Run by ``make bench-against REV=...``.

``start``
    From the first import to the end of a first run of one step, from a warm cache.
``step``, ``transition``
    Runs of the same span with steps of four lengths have nearly the same transitions.  Their times lie on a line over
    the number of steps: its slope is what a step costs, and what it begins with, less what a run of one step takes, is
    what all transitions together cost.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import numpy as np

import fsm_dyn
from fsm_dyn.language import models
from tests.checkouts import build_runtime, environment

ROOT = Path(__file__).parents[3]
MEASURE = Path(__file__).with_name("measure.py")
QUANTITIES = ("step", "transition", "start")
BOUNDS = {False: 1.03, True: 1.25}  # of the step, for models without and with loops
SPAN = 2.0  # s; runs are shorter where so long a one takes more than MOST_STEPS steps
MOST_STEPS = 2000
LEAST_STEPS = 500  # of the longest; fewer take no longer than the rest of a run
SHORTER = (1.0, 0.5, 0.25, 0.125)  # lengths of the steps, of the longest
REPEATS = 30
LONGEST = 1.0  # s of processor time spent on the runs of one length
TINY = 1e-9  # s
FEW = 5  # transitions; what fewer of them cost drowns in what steps cost


@contextmanager
def worktree(revision, directory):
    """A checkout of the revision with its runtime built, gone afterwards."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(directory), revision], check=True)
    try:
        build_runtime(directory)
        yield directory
    finally:
        subprocess.run([*git, "remove", "--force", str(directory)], check=True)


def plan_of(name):
    """What is run of a model, and whether it has loops."""
    graph = fsm_dyn.compile(name)
    run = fsm_dyn.simulate(graph, SPAN, max_steps=MOST_STEPS, on_failure="return")
    steps = max(len(run.t) - 2 * len(run.transitions), LEAST_STEPS)
    until = float(run.t[-1])
    plan = {"model": name, "until": until, "step": until / steps}
    return plan, any(row.role == "position" for row in graph.automaton.rows)


class Side:
    """A process with the package under ``root``; ``ready`` is what it said first, None if it cannot run the model."""

    def __init__(self, root, cache, model):
        command, kept = [sys.executable, str(MEASURE), model], {"FSM_DYN_CACHE": str(cache)}
        # an editable install finds the library of this checkout, which does not lie among its sources
        variables = {**os.environ, **kept} if root == ROOT else environment(root, **kept)
        self.process = subprocess.Popen(
            command, cwd=root, env=variables, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True
        )
        self.ready = self.answer()
        if self.ready is not None and not Path(self.ready["file"]).is_relative_to(root):
            raise RuntimeError(f"measured {self.ready['file']}, not what is under {root}")

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def run(self, until, step):
        """Time, steps and transitions of a run."""
        self.process.stdin.write(json.dumps([until, step]) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def in_turn(sides, until, step):
    """What a run takes at the least (s) on each side, with its steps and transitions, both sides in turn."""
    runs = [[], []]
    for turn in range(REPEATS):
        for k in (0, 1) if turn % 2 else (1, 0):
            runs[k].append(sides[k].run(until, step))
        if turn > 1 and sum(run["time"] for side in runs for run in side) > LONGEST:
            break
    return [{**side[-1], "time": min(run["time"] for run in side[1:])} for side in runs]  # the first builds modes


def costs(runs, empty):
    """What a step and a transition cost, s: a line through the times of runs over their steps."""
    times, events = np.array([run["time"] for run in runs]), np.mean([run["transitions"] for run in runs])
    slope, intercept = np.polyfit([run["steps"] for run in runs], times, 1, w=1.0 / times)
    found = {"step": slope}
    if events >= FEW:
        found["transition"] = (intercept - empty["time"]) / events
    return found


def round_of(places, plan):
    """What each side found in one round, or None where one of them cannot run the model."""
    until, step = plan["until"], plan["step"]
    with Side(*places[0], plan["model"]) as here, Side(*places[1], plan["model"]) as there:
        sides = here, there
        if here.ready is None or there.ready is None:
            return None
        runs = [in_turn(sides, until, part * step) for part in SHORTER]
        empty = in_turn(sides, TINY, TINY)
        return [
            {"start": side.ready["start"], **costs([pair[k] for pair in runs], empty[k])}
            for k, side in enumerate(sides)
        ]


def ratios_of(places, plan, rounds):
    """Ratios of this checkout to the other, a list per quantity; empty where they cannot be compared."""
    for place in places:  # warms the caches
        with Side(*place, plan["model"]) as side:
            if side.ready is not None:
                side.run(plan["until"], plan["step"])
    found = {name: [] for name in QUANTITIES}
    for turn in range(rounds):
        order = 1 if turn % 2 else -1
        both = round_of(places[::order], plan)
        if both is None:
            return {}
        here, there = both[::order]
        for name in QUANTITIES:
            if here.get(name, 0.0) > 0.0 < there.get(name, 0.0):
                found[name].append(here[name] / there[name])
    return found


def scatter(values):
    """Half the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return 0.5 * (high - low)


def cell(values):
    """A median with what it scatters by."""
    return f"{statistics.median(values):6.3f} ±{scatter(values):5.3f}" if values else f"{'-':>13}"


def summary(medians):
    """Median, mean and worst of all models, a line per quantity."""
    for name in QUANTITIES:
        every = {model: values[name] for model, values in medians.items() if name in values}
        if every:
            worst = max(every, key=every.get)
            mean, middle = statistics.geometric_mean(every.values()), statistics.median(every.values())
            print(f"{name:<11} mean {mean:.3f}, median {middle:.3f}, worst {every[worst]:.3f} ({worst})")


def main():
    parser = argparse.ArgumentParser(description="compare step, transition and start with another revision")
    parser.add_argument("revision")
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--caches", type=Path, help="directory for the caches of both sides, for use again")
    given = parser.parse_args()
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{given.revision}^{{commit}}"],
        capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    if not commit:
        sys.exit(f"error: git knows no revision '{given.revision}'")
    medians, over = {}, []
    with tempfile.TemporaryDirectory() as made, worktree(commit, Path(made) / "there") as there:
        caches = given.caches or Path(made)
        places = [(ROOT, caches / "cache_here"), (there, caches / "cache_there")]
        print(f"this checkout / {commit[:12]}, processor time, {given.rounds} rounds each\n")
        print(f"{'model':<26}" + "".join(f"{name:>13} " for name in QUANTITIES) + " bound of the step")
        for name in given.models or models.names():
            plan, loops = plan_of(name)
            found = ratios_of(places, plan, given.rounds)
            medians[name] = {key: statistics.median(values) for key, values in found.items() if values}
            step, bound = found.get("step", []), BOUNDS[loops]
            beyond = bool(step) and medians[name]["step"] > bound
            clearly = beyond and medians[name]["step"] - scatter(step) > bound
            over += [name] if clearly else []
            remark = ("exceeded" if clearly else "exceeded, within scatter" if beyond else "") if found else "not run"
            cells = " ".join(cell(found.get(key, [])) for key in QUANTITIES)
            print(f"{name:<26}{cells}  {bound:.2f}{' (loops)' if loops else ''} {remark}", flush=True)
    print()
    if not any(medians.values()):
        sys.exit("error: no model could be run by both revisions")
    summary(medians)
    print(f"bound of the step exceeded: {', '.join(over) or 'by no model'}")


if __name__ == "__main__":
    main()
