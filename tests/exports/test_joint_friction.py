"""Joints with friction in exports: the runs of Python, and of a simulator that integrates itself."""

import pytest

import fsm_dyn
from fsm_dyn.exports.export import prepared
from tests.exports.building import built, quick_units
from tests.exports.test_c99 import check_same
from tests.exports.test_html import bits, in_node

# A carriage in a guide carries a wheel, out of balance, in a journal bearing; both are pushed, stop and start again.
TROLLEY = {
    "fsm_dyn": 1,
    "name": "trolley",
    "joints": {
        "guide": {"prismatic": {"child": "A", "at": "O", "axis": "N.x", "friction": {"static": 0.3, "kinetic": 0.2}}},
        "shaft": {
            "revolute": {
                "parent": "A", "child": "W", "at": "A_origin", "axis": "A.z",
                "radius": "10 mm", "friction": {"static": 0.4, "kinetic": 0.3},
            }
        },
    },
    "points": {"C": {"from": "W_origin", "at": "1 mm*W.x"}},
    "bodies": {
        "carriage": {"frame": "A", "center": "A_origin", "mass": "2 kg"},
        "wheel": {"frame": "W", "center": "C", "mass": "1 kg", "inertia": {"zz": "2e-3 kg*m^2"}},
    },
    "inputs": {"push": "N", "turn": "N*m"},
    "schedule": {
        "push": {"linear": [["0.4 s", "0 N"], ["0.5 s", "12 N"], ["0.7 s", "-12 N"], ["0.8 s", "0 N"]]},
        "turn": {"linear": [["0.5 s", "0 N*m"], ["0.6 s", "0.1 N*m"], ["0.7 s", "0 N*m"]]},
    },
    "loads": [
        {"gravity": "-9.81 m/s^2*N.y"},
        {"force": "push*N.x", "at": "A_origin"},
        {"torque": "turn*N.z", "on": "wheel"},
    ],
    "initial": {"guide_dot": "0.5 m/s", "shaft_dot": "5 rad/s"},
    "outputs": {"travel": "guide", "turned": "shaft"},
    "transitions": [{"from": "*", "when": "t - 1.2 s", "stop": True}],
}  # fmt: skip


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(TROLLEY)


def test_c99_has_the_same_bits(graph, tmp_path):
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "out"), "trolley"))


def test_a_page_has_the_same_bits(graph):
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    found = in_node(prepared(graph))
    assert found["made"] == len(run.transitions) >= 6
    assert {item.target for item in run.transitions} == set(graph.modes)
    assert found["x"] == bits([*run.q[-1], *run.u[-1]])


@pytest.mark.parametrize("unit", ["fmu2", "fmu3"])
def test_a_unit_slips_and_sticks_at_the_same_times(graph, unit, tmp_path, monkeypatch):
    """By its own steps and by those of an importer, to 1e-7 s as in the tests of other models."""
    fmpy = pytest.importorskip("fmpy")
    from tests.exports.importer import Importer, compare

    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path, unit) / "trolley.fmu"
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    compare(Importer(path, tmp_path), path, run, 1e-7)
    rows = fmpy.simulate_fmu(str(path), fmi_type="CoSimulation", stop_time=1.0, output_interval=0.01)
    wanted = run.sample(rows["time"])
    assert rows["travel"] == pytest.approx(wanted["travel"], abs=1e-8)
    assert rows["turned"] == pytest.approx(wanted["turned"], abs=1e-7)  # of 1 rad
