"""Co-simulation in a second importer: Ecos, which knows both versions of the standard."""

import json
import subprocess
import sys

import fmpy
import numpy as np
import pytest

import fsm_dyn
from tests.exports.building import quick_units

CASES = [("latch", 3), *(pytest.param(*case, marks=pytest.mark.long) for case in
                        [("latch", 2), ("piano_action_simple", 2), ("piano_action_simple", 3)])]  # fmt: skip
LENGTH = 0.01  # s, of a communication step
STEPS = 50

# In a separate process: a library that is missing, or a crash, ends that one alone.
RUN = """
import json, sys
from ecospy import EcosSimulation, EcosSimulationStructure
unit, length, steps, *names = sys.argv[1:]
structure = EcosSimulationStructure()
structure.add_model("it", unit)
with EcosSimulation(structure=structure, step_size=float(length)) as run:
    run.init()
    run.step(int(steps))
    print(json.dumps([run.get_real(f"it::{name}") for name in names]))
"""


@pytest.fixture(scope="module")
def ecos():
    ecospy = pytest.importorskip("ecospy")
    found = subprocess.run([sys.executable, "-c", "import ecospy"], capture_output=True, text=True)
    if found.returncode:  # it needs libtbb
        pytest.skip(found.stderr.splitlines()[-1])
    return ecospy


@pytest.mark.parametrize(("name", "version"), CASES)
@pytest.mark.usefixtures("ecos")
def test_the_same_as_in_fmpy_and_in_our_own_run(name, version, tmp_path, monkeypatch):
    """FMPy rounds the communication points otherwise; our own run has other steps, so it is the method's error away."""
    quick_units(monkeypatch)
    graph = fsm_dyn.compile(name)
    unit = str(fsm_dyn.export(graph, tmp_path, target=f"fmu{version}") / f"{name}.fmu")
    names = [*graph.automaton.terms.layout.q, *graph.automaton.terms.layout.u]
    command = [sys.executable, "-c", RUN, unit, str(LENGTH), str(STEPS), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = np.array(json.loads(done.stdout.splitlines()[-1]))
    end = LENGTH * STEPS
    rows = fmpy.simulate_fmu(
        unit, fmi_type="CoSimulation", stop_time=end, step_size=LENGTH, output_interval=LENGTH, output=names
    )
    np.testing.assert_allclose(found, [rows[name][-1] for name in names], rtol=1e-9, atol=1e-10)
    own = fsm_dyn.simulate(graph, end)
    np.testing.assert_allclose(found, [*own.q[-1], *own.u[-1]], rtol=1e-6, atol=1e-8)
    assert len(own.transitions) > 0
