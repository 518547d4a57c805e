"""Prints a digest of one run of each model named, to be compared between processes: ``python bytes_of_runs.py PLAN``.

The plan is JSON: ``runs``, pairs of model and strategy (``early``: ``auto`` that soon derives) in their order, and
``after``: what happens before the runs that count, ``nothing`` or ``others`` of the same graph with another parameter,
before them and beside them in a thread.
"""

import hashlib
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsm_dyn
from fsm_dyn.core.errors import FsmDynError
from fsm_dyn.language.values import parameter_values

UNTIL = {"seven_body_mechanism": 0.005, "felt_drop": 0.5, "push_button": 0.5, "chain": 1.0, "rattleback": 1.0}  # s
LONGEST = 2.0  # s
CHANGED = 1.07  # factor of a parameter, for a run that meets its modes elsewhere and in another order
THREADS = 3
EARLY = 60  # evaluations after which a mode embedded online is derived


def digest(trajectory):
    """The saved run, to the last bit: rows, their modes, transitions, model."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.json"
        trajectory.save(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def run(graph, strategy, **settings):
    """The run that counts, unless settings say otherwise."""
    until = UNTIL.get(graph.name, LONGEST)
    if strategy == "early":
        strategy, settings = "auto", {"derive_after": EARLY, **settings}
    return fsm_dyn.simulate(graph, until, strategy=strategy, on_failure="return", **settings)


def other_settings(graph):
    """A parameter with another value, the first with which the model begins."""
    for name, value in parameter_values(graph.automaton.mechanism).items():
        if isinstance(value, float) and value:
            changed = {name: CHANGED * value}
            try:
                fsm_dyn.simulate(graph, 1e-6, parameters=changed, on_failure="return")
            except FsmDynError:
                continue
            return {"parameters": changed}
    return {}


def digests(name, strategy, after):
    """The digests of all equal runs."""
    graph = fsm_dyn.compile(name)
    if after == "nothing":
        return {digest(run(graph, strategy))}
    other = other_settings(graph)
    run(graph, strategy, **other)
    with ThreadPoolExecutor(THREADS) as pool:
        runs = [pool.submit(run, graph, strategy, **(other if k == 0 else {})) for k in range(THREADS)]
        return {digest(each.result()) for each in runs[1:]}


if __name__ == "__main__":
    plan = json.loads(sys.argv[1])
    found = {f"{name}, {strategy}": sorted(digests(name, strategy, plan["after"])) for name, strategy in plan["runs"]}
    sys.stdout.write(json.dumps(found))
