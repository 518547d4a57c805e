"""Conditions that jumps make true, in exports: the runs of Python, and inputs that are set from outside."""

import ctypes

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.runtime.abi import Status
from tests.exports.building import Machine, built, quick_units
from tests.exports.test_c99 import check_same
from tests.physics.test_jumps import BALL, CAUSES, PASSED, all_of_them, model_of


@pytest.mark.parametrize("cause", sorted(CAUSES | PASSED))
def test_c99_has_the_same_bits(cause, tmp_path):
    end = {"from": "*", "when": "t - 0.5", "stop": True}
    graph = fsm_dyn.compile(model_of(cause, [*all_of_them(), end]))
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "out"), "jump"))


TRIGGERED = BALL | {
    "name": "jump",
    "inputs": ["F"],
    "memory": {"hits": 0, "crossed": 0},
    "transitions": [
        {"from": "*", "when": "F >= 1", "set": {"hits": "hits + 1"}},
        {"from": "*", "when": "F - 0.5", "crossing": "both", "set": {"crossed": "crossed + 1"}},
        {"from": "*", "when": "F > 2", "reset": {"y_dot": "7"}},
    ],
    "initial": {"y": 0},
    "outputs": {"n": "hits", "k": "crossed"},
}


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(TRIGGERED)


def test_inputs_of_c99_are_triggers(graph, tmp_path):
    """A boolean that is held acts once, in its instant; one that is set acts where it crosses."""
    unit = Machine(fsm_dyn.export(graph, tmp_path / "out"), "jump")
    machine = unit.create()

    def put(how, value):
        getattr(unit.lib, f"fsm_machine_{how}_input")(
            ctypes.c_void_p(machine), ctypes.c_int64(0), ctypes.c_double(value)
        )

    def counts():
        return [unit.lib.fsm_machine_output(ctypes.c_void_p(machine), ctypes.c_int64(i)) for i in range(2)]

    assert unit.advance(machine, 0.1) == Status.DONE
    put("hold", 1.0)
    assert unit.advance(machine, 0.1) == Status.DONE
    assert counts() == [1, 1]
    assert unit.advance(machine, 0.3) == Status.DONE
    put("hold", 1.0)
    assert unit.advance(machine, 0.4) == Status.DONE
    assert counts() == [1, 1]
    put("hold", 0.0)
    put("hold", 1.0)
    assert unit.advance(machine, 0.5) == Status.DONE
    assert counts() == [1, 1]  # nothing looked at it in between
    put("hold", 0.0)
    assert unit.advance(machine, 0.5) == Status.DONE
    assert counts() == [1, 2]
    put("set", 4.0)
    assert unit.advance(machine, 0.7) == Status.DONE
    assert counts() == [2, 3]
    assert unit.state(machine, 2) == pytest.approx([0.7, 7.0])  # 7 m/s from 0.6 s on, where F is 2


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
@pytest.mark.parametrize("version", ["fmu2", "fmu3"])
def test_inputs_of_units_are_triggers(graph, tmp_path, monkeypatch, version, kind):
    """Steps of an importer's input, up, down, and up again, at instants that are communication points."""
    fmpy = pytest.importorskip("fmpy")
    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path, version) / "jump.fmu"
    steps = [(0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.3, 1.0), (0.3, 0.0), (0.4, 0.0), (0.4, 3.0), (1.0, 3.0)]
    given = np.array(steps, dtype=[("time", float), ("F", float)])
    rows = fmpy.simulate_fmu(
        str(path), fmi_type=kind, input=given, stop_time=0.6, output_interval=0.05, output=["n", "k", "y"]
    )
    found = {round(float(row["time"]), 6): (row["n"], row["k"], row["y"]) for row in rows}
    assert found[0.05][:2] == (0, 0)
    assert found[0.25][:2] == (1, 1)
    assert found[0.35][:2] == (1, 2)
    assert found[0.6][:2] == (2, 3)
    assert found[0.6][2] == pytest.approx(
        7 * 0.2, abs=1e-6 if kind == "ModelExchange" else 7 * 0.05 + 1e-6
    )  # an interval later


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
@pytest.mark.parametrize("version", ["fmu2", "fmu3"])
def test_units_act_on_what_holds_between_two_jumps(tmp_path, monkeypatch, version, kind):
    """An impact makes conditions true that the reset of its transition ends; one of them again at 1 m/s, none at 3."""
    fmpy = pytest.importorskip("fmpy")
    quick_units(monkeypatch)
    graph = fsm_dyn.compile(model_of("impact, reset", all_of_them()) | {"outputs": {"n": "k"}})
    run = fsm_dyn.simulate(graph, until=0.3)
    path = fsm_dyn.export(graph, tmp_path, version) / "jump.fmu"
    rows = fmpy.simulate_fmu(str(path), fmi_type=kind, stop_time=0.3, output_interval=0.05, output=["n", "y"])
    assert rows[-1]["n"] == run["k"][-1] > run["k"][0]
    assert rows[-1]["y"] == pytest.approx(run["y"][-1], abs=1e-6)
