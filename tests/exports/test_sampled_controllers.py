"""Sampled controllers in exports: the runs of Python, and of a simulator that integrates itself."""

import pytest

import fsm_dyn
from fsm_dyn.exports.export import prepared
from tests.exports.building import built, quick_units
from tests.exports.test_c99 import check_same
from tests.exports.test_html import bits, in_node

STRIKER = {
    "fsm_dyn": 1,
    "name": "striker",
    "parameters": {"k": "60 N/m", "d": "2 N*s/m", "T": "2 ms", "goal": "20 mm"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"mass": {"center": "P", "mass": "0.2 kg"}},
    "contacts": {"wall": {"gap": "12 mm - x", "restitution": 0.5}},
    "memory": {"strokes": 0},
    "transitions": [
        {"from": "*", "on": "wall closes", "set": {"strokes": "strokes + 1"}},
        {"from": "*", "when": "t - 0.4 s", "stop": True},
    ],
    "controllers": {
        "servo": {
            "period": "T",
            "delay": 1,
            "inputs": {"e": {"value": "where(strokes > 3, 0 m, goal) - x", "quantum": "0.1 mm"}},
            "memory": {"last": {"unit": "m", "update": "e"}},
            "outputs": {"push": {"unit": "N", "value": "k*e + d*(e - last)/T", "quantum": "1 mN"}},
        }
    },
    "loads": [{"force": "push*N.x", "at": "P"}],
    "outputs": {"pushed": "push"},
}


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(STRIKER)


def test_c99_has_the_same_bits(graph, tmp_path):
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "out"), "striker"))


def test_a_page_has_the_same_bits(graph):
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    found = in_node(prepared(graph))
    assert found["made"] == len(run.transitions) == 5
    assert found["x"] == bits([*run.q[-1], *run.u[-1]])


def test_a_unit_steps_over_no_sample(graph, tmp_path, monkeypatch):
    """By its own steps and by those of an importer, to 1e-7 s as in the tests of other models."""
    fmpy = pytest.importorskip("fmpy")
    from tests.exports.importer import Importer, compare

    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path, "fmu3") / "striker.fmu"
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    compare(Importer(path, tmp_path), path, run, 1e-7)
    rows = fmpy.simulate_fmu(str(path), fmi_type="CoSimulation", stop_time=81 * 0.0037, output_interval=0.0037)
    wanted = dict(run.rows.columns())["pushed"][run.t <= rows["time"][-1]][-1]
    assert rows["pushed"][-1] == pytest.approx(wanted, abs=1e-9)
