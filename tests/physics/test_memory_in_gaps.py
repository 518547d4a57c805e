"""Gaps that depend on memory: constant between transitions, they jump with what a transition sets."""

from math import sqrt

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError, RunError
from fsm_dyn.exports.export import prepared
from tests.exports.building import built, quick_units
from tests.exports.test_c99 import check_same
from tests.exports.test_html import bits, in_node

G, H, AT = 9.81, 0.02, 0.5


def ledge(change="level - 1", **contact):
    """A ball on a ledge whose height is a memory times 20 mm; at 0.5 s a transition changes the memory."""
    return {
        "fsm_dyn": 1,
        "name": "ledge",
        "parameters": {"m": "0.5 kg", "h": "20 mm", "g": "9.81 m/s^2"},
        "coordinates": {"y": "m"},
        "points": {"P": {"from": "O", "at": "y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": "m"}},
        "memory": {"level": 1},
        "contacts": {"rest": {"gap": "y - h*level", **contact}},
        "loads": [{"gravity": "-g*N.y"}],
        "transitions": [{"from": "*", "when": "t - 0.5 s", "crossing": "rising", "set": {"level": change},
                         "because": "the ledge is moved"}],
        "initial": {"y": "20 mm"},
    }  # fmt: skip


RATCHET = {
    "fsm_dyn": 1,
    "name": "wheel",
    "parameters": {"J": "0.02 kg*m^2", "pitch": "0.5236 rad", "e": 0.5},
    "coordinates": {"q": "rad"},
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "bodies": {"wheel": {"frame": "B", "center": "O", "mass": "1 kg", "inertia": {"zz": "J"}}},
    "memory": {"tooth": 0},
    "contacts": {"pawl": {"gap": "0.1 m*(q - tooth*pitch)", "restitution": "e"}},
    "inputs": {"torque": "N*m"},
    "schedule": {"torque": {"steps": [["0 s", "0.4 N*m"], ["0.5 s", "-0.4 N*m"]]}},
    "loads": [{"torque": "torque*N.z", "on": "wheel"}],
    "transitions": [
        {"from": "*", "when": "q - (tooth + 1)*pitch", "crossing": "rising", "set": {"tooth": "tooth + 1"},
         "because": "a tooth passes"},
        {"from": "*", "when": "t - 1.4 s", "stop": True},
    ],
    "outputs": {"angle": "q"},
}  # fmt: skip
METHODS = [("dopri5", {}, 1e-9), ("rk4", {"step": 1e-3}, 1e-8), ("radau", {}, 1e-7), ("bdf", {}, 1e-6)]


@pytest.fixture(scope="module")
def ratchet():
    return fsm_dyn.compile(RATCHET)


@pytest.mark.parametrize(("method", "options", "close"), METHODS)
@pytest.mark.parametrize("strategy", ["compiled", "online", "auto"])
def test_a_ledge_that_is_drawn_away_drops_the_ball(method, options, close, strategy):
    run = fsm_dyn.simulate(fsm_dyn.compile(ledge()), 0.8, method=method, strategy=strategy, **options)
    moved, lands = run.transitions
    assert (moved.source, moved.target) == ("rest_closed", "all_free")
    assert moved.time == pytest.approx(AT, abs=1e-11)
    assert moved.cause == "the ledge is moved; rest opens"
    assert lands.time == pytest.approx(AT + sqrt(2 * H / G), rel=close)
    assert run["y"][-1] == pytest.approx(0.0, abs=1e-11)
    assert run["level"][-1] == 0.0


def test_a_ledge_that_is_moved_into_the_ball_ends_the_run_by_name():
    with pytest.raises(RunError, match="penetration during the run at t = 0") as raised:
        fsm_dyn.simulate(fsm_dyn.compile(ledge("level + 1")), 0.8)
    assert "a transition at this instant whose reset or set moves a gap below zero" in str(raised.value)


def test_a_reset_of_a_coordinate_lifts_off_too():
    model = ledge()
    model["transitions"][0] |= {"reset": {"y": "y + h"}, "set": {}}
    moved, lands = fsm_dyn.simulate(fsm_dyn.compile(model), 0.8).transitions
    assert moved.target == "all_free"
    assert lands.time == pytest.approx(AT + sqrt(2 * H / G), rel=1e-9)


@pytest.mark.parametrize("change", ["level - 1", "level + 1"])
def test_a_spring_that_is_moved_does_work(change):
    """The energy that the jump puts into the spring is that of the balance: k (δ + h)²/2 - k δ²/2."""
    model = ledge(change, compliant={"stiffness": "2000 N/m", "dissipation": "20 s/m"})
    model["initial"] = {"y": "20 mm - m*g/(2000 N/m)"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.8)
    moved = next(item for item in run.transitions if "moved" in item.cause)
    before, after = 0.5 * G / 2000, (0.5 * G / 2000 + H if change == "level + 1" else 0.0)
    assert moved.energy_after - moved.energy_before == pytest.approx(1000 * (after**2 - before**2), rel=1e-6)
    assert run.energy.relative_residual < 1e-8


@pytest.mark.parametrize(("method", "options", "close"), METHODS)
def test_a_wheel_falls_back_on_the_tooth_that_passed_last(ratchet, method, options, close):
    run = fsm_dyn.simulate(ratchet, 1.4, method=method, **options)
    passed = [item.time for item in run.transitions if item.cause == "a tooth passes"]
    alpha, pitch = 0.4 / 0.02, 0.5236
    driven = [sqrt(2 * k * pitch / alpha) for k in range(1, 5) if sqrt(2 * k * pitch / alpha) < 0.5]
    assert passed[: len(driven)] == pytest.approx(driven, rel=close)
    top = alpha * 0.5**2  # as far to stop as to start
    assert len(passed) == int(top / pitch)
    back = 1.0 + sqrt(2 * (top - len(passed) * pitch) / alpha)
    strikes = next(item for item in run.transitions if item.cause.startswith("pawl"))
    assert strikes.time == pytest.approx(back, rel=close)
    assert strikes.u_after[0] == pytest.approx(-0.5 * strikes.u_before[0], rel=close)
    assert run.energy.relative_residual < 1e-6


def test_time_stepping_has_the_memory_of_the_start():
    model = {name: entry for name, entry in ledge().items() if name != "transitions"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.4, method="moreau_jean", step=1e-3, initial={"y": "30 mm"})
    assert run["y"][-1] == pytest.approx(H, abs=5e-4)  # the way of one step


def test_derivations_agree():
    assert fsm_dyn.verify(fsm_dyn.load(RATCHET), states=5).passed
    assert fsm_dyn.verify(fsm_dyn.load(ledge()), states=5).passed


def test_a_saved_automaton_runs_the_same(ratchet, tmp_path):
    run = fsm_dyn.simulate(ratchet, 1.4)
    ratchet.save(tmp_path / "wheel.fsm")
    again = fsm_dyn.simulate(fsm_dyn.open_graph(tmp_path / "wheel.fsm"), 1.4)
    np.testing.assert_array_equal(run.q, again.q)
    assert [x.cause for x in run.transitions] == [x.cause for x in again.transitions]


def test_c99_and_pages_have_the_same_bits(ratchet, tmp_path):
    check_same(ratchet, built(fsm_dyn.export(ratchet, tmp_path / "out"), "wheel"))
    run = fsm_dyn.Simulator(ratchet).run(strategy="compiled")
    found = in_node(prepared(ratchet))
    assert found["made"] == len(run.transitions)
    assert found["x"] == bits([*run.q[-1], *run.u[-1]])


@pytest.mark.parametrize("unit", ["fmu2", "fmu3"])
def test_a_unit_passes_the_same_teeth(ratchet, unit, tmp_path, monkeypatch):
    pytest.importorskip("fmpy")
    from tests.exports.importer import Importer, compare

    quick_units(monkeypatch)
    path = fsm_dyn.export(ratchet, tmp_path, unit) / "wheel.fmu"
    compare(Importer(path, tmp_path), path, fsm_dyn.Simulator(ratchet).run(strategy="compiled"), 1e-7)


def test_geometry_is_judged_for_every_value_of_memory():
    """A ledge at any level may be touched with the wall: its level is not that of the start."""
    model = ledge()
    model["contacts"]["wall"] = {"gap": "1 m - y"}
    verdicts = fsm_dyn.compile(model).assess_geometry().verdicts
    assert all(item.verdict != "impossible" for item in verdicts if item.closed == (True, True))


@pytest.mark.parametrize(
    ("section", "entry", "words"),
    [
        ("constraints", {"line": {"position": "y - h*level"}}, "level"),
        ("points", {"S": {"from": "O", "at": "h*level*N.y"}}, "level"),
        ("contacts", {"slot": {"gap": "y - h*level", "slip": "y_dot", "friction": 0.1, "bilateral": True}}, "level"),
        ("contacts", {"hook": {"lock": {"position": "y - h*level"}}}, "level"),
    ],
)
def test_what_is_held_may_not_jump(section, entry, words):
    model = ledge()
    model[section] = {**model.get(section, {}), **entry}
    with pytest.raises(ModelError, match=f"'{words}' is a memory and may not stand"):
        fsm_dyn.load(model)


def test_controllers_are_not_in_gaps():
    model = ledge()
    model["controllers"] = {"c": {"period": "1 ms", "outputs": {"drive": {"unit": "m", "value": "0 m"}}}}
    model["contacts"]["rest"]["gap"] = "y - drive"
    with pytest.raises(ModelError, match="'drive'"):
        fsm_dyn.load(model)
