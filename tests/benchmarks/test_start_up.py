"""How long it takes until a model is ready, and how much memory a run needs, in fresh processes."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

import pytest

import fsm_dyn
from tests.runtime.building import FOLDER, compile_library

pytestmark = pytest.mark.benchmark

FIRST = """
import json, pathlib, time
begin = time.process_time()
import fsm_dyn
graph = fsm_dyn.compile("shopping_cart")
ready = time.process_time()
fsm_dyn.simulate(graph)
end = time.process_time()
status = pathlib.Path("/proc/self/status").read_text()  # ru_maxrss counts the process that started this one
peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
print(json.dumps({"ready": ready - begin, "first": end - begin, "peak": peak}))
"""


def measure(script, cache, times=1):
    """Least of each figure that a script prints in processes of its own."""
    found = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "FSM_DYN_CACHE": str(cache)}, capture_output=True,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: min(item[name] for item in found) for name in found[0]}


def test_first_run_from_text_and_from_the_cache(tmp_path):
    """Processor time (s) of import, compiling and the first run, and peak memory (MB)."""
    cold = measure(FIRST, tmp_path)
    warm = measure(FIRST, tmp_path, 5)
    print(f"\nshopping_cart from text {cold}, from the cache {warm}")
    assert cold["ready"] <= 4.0
    assert warm["first"] <= 1.0
    assert cold["peak"] <= 200
    assert warm["peak"] <= 200


def children(command, environment):
    """Processor time (s) of a process and all it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(("command", "most"), [("run", 4.0), ("check", 3.0)])
def test_whole_process_with_a_cached_model(tmp_path, command, most):
    """Ratio of its processor time to that of importing NumPy, SciPy and Matplotlib: median of 20 pairs."""
    kept = {"FSM_DYN_CACHE": str(tmp_path / "models"), "PYTHONPYCACHEPREFIX": str(tmp_path / "code")}
    environment = {**os.environ, **kept}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as where the package is installed
    ours = [sys.executable, "-m", "fsm_dyn", command, "bouncing_ball"]
    others = [sys.executable, "-c", "import numpy, scipy, matplotlib"]
    pairs = [(children(ours, environment), children(others, environment)) for _ in range(21)][1:]
    found = statistics.median(first / second for first, second in pairs)
    print(f"\nfsm-dyn {command} bouncing_ball: {min(pairs)[0]:.2f} s, {found:.2f} of the imports")
    assert found <= most


def test_the_runtimes_own_build(tmp_path):
    """Processor time on one core, with the optimisation that it is shipped with."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    compile_library([FOLDER / "fsm_runtime.c"], tmp_path / "runtime.so", "-O2", "-fvisibility=hidden")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"\nthe runtime's build {spent:.1f} s")
    assert spent <= 8.0


READING = """
import sys, time
from fsm_dyn.language import loader, models
path = models.resolve("shopping_cart")
times = []
for _ in range(6):
    begin = time.perf_counter()
    loader.load(path)
    times.append(time.perf_counter() - begin)
print(min(times))
"""


def test_reading_the_cart_takes_milliseconds():
    done = subprocess.run([sys.executable, "-c", READING], check=True, capture_output=True, text=True)
    assert float(done.stdout) <= 0.03


def test_twelve_contacts_are_not_derived_in_all_their_modes():
    """Of half a million modes two are derived ahead."""
    begin = time.perf_counter()
    fsm_dyn.compile("twelve_contacts", cache=False)
    assert time.perf_counter() - begin <= 5.0
