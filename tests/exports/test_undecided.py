"""A guard that bounds do not decide is named by exports too, as by the warning of the run."""

import subprocess

import pytest

import fsm_dyn
from tests.campaigns.narrow_guards import counting
from tests.exports.building import LONG, built, quick_units


@pytest.fixture(scope="module")
def graph():
    """Two waves that are one, whose bounds know nothing of each other, 1e-4 above a condition."""
    model = counting("sin(n*q)*cos(n*q) - 0.5*sin(2*n*q) < c")
    model["parameters"] |= {"c": -1e-4, "n": 1e4}
    ends = {"inputs": ["w"], "outputs": {"seen": "w"}, "schedule": {"w": {"linear": [[0, 0], [0.1, 1]]}}}
    return fsm_dyn.compile(model | ends | {"initial": {"q_dot": 1.0}})


@pytest.fixture(scope="module")
def steps(graph):
    with pytest.warns(fsm_dyn.core.errors.StepWarning, match="steps were halved"):
        run = fsm_dyn.simulate(graph)
    return run.warnings[0].split(" steps")[0]


def test_a_program_in_c_prints_it(graph, steps, tmp_path):
    folder = fsm_dyn.export(graph, tmp_path / "exported")
    told = subprocess.run([built(folder, graph.name)], capture_output=True, text=True, check=True).stdout
    assert f"{steps} steps were halved as bounds of the guard of 'transition happens' were too wide" in told


@pytest.mark.parametrize("target", [pytest.param("fmu2", marks=LONG), "fmu3"])
def test_a_unit_logs_it(graph, target, tmp_path, monkeypatch):
    fmpy = pytest.importorskip("fmpy")
    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path / "exported", target) / f"{graph.name}.fmu"
    logged = []
    fmpy.simulate_fmu(
        str(path), fmi_type="CoSimulation", stop_time=0.1, output_interval=0.01, debug_logging=True,
        logger=lambda *call: logged.append(call[-1].decode()),
    )  # fmt: skip
    assert any("steps were halved as bounds of the guard of 'transition happens'" in line for line in logged)
