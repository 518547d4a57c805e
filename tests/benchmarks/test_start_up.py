"""How long it takes until a model is ready, and how much memory a run needs, in fresh processes."""

import json
import os
import subprocess
import sys
import time

import pytest

import fsm_dyn

pytestmark = pytest.mark.benchmark

READY = """
import json, resource, time
import sympy, numba, llvmlite, pydantic, networkx, scipy
import fsm_dyn
from fsm_dyn import compiling, running, symbolic
from fsm_dyn.simulation.machine import Machine
begin = time.perf_counter()
graph = fsm_dyn.compile("shopping_cart")
Machine(graph.automaton)
ready = time.perf_counter() - begin
begin = time.perf_counter()
fsm_dyn.simulate(graph)
first = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"ready": ready, "first": first, "peak": peak}))
"""


def measure(cache):
    done = subprocess.run(
        [sys.executable, "-c", READY], env={**os.environ, "FSM_DYN_CACHE": str(cache)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_cart_from_text_and_from_the_cache(tmp_path):
    cold = measure(tmp_path)
    warm = measure(tmp_path)
    assert cold["ready"] <= 1.0
    assert warm["ready"] <= 0.2
    assert cold["first"] <= 30.0
    assert cold["peak"] <= 400
    assert warm["peak"] <= 400


def test_whole_process_of_a_cached_run(tmp_path):
    environment = {**os.environ, "FSM_DYN_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "fsm_dyn.cli", "run", "shopping_cart"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    assert sorted(times)[2] <= 2.0


READING = """
import sys, time
from fsm_dyn import models, spec
path = models.resolve("shopping_cart")
times = []
for _ in range(6):
    begin = time.perf_counter()
    spec.load(path)
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
