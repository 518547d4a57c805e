"""Constraints that a person imposes in a live run: within two ticks, replayed, and refused without any effect."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import with_settings
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.run.simulator import simulate
from fsm_dyn.runtime.abi import Status

ROD = {"mass": "1 kg", "inertia": {"zz": "0.01 kg*m^2"}}
RODS = {
    "fsm_dyn": 1, "name": "two_rods", "coordinates": {"q1": "rad", "q2": "rad"},
    "frames": {"A": {"rotate": {"z": "q1"}}, "B": {"rotate": {"z": "q2"}}},
    "points": {
        "Ca": {"from": "O", "at": "0.2 m*A.x"}, "J": {"from": "O", "at": "0.4 m*A.x"},
        "Cb": {"from": "J", "at": "0.2 m*B.x"},
    },
    "bodies": {"upper": {"frame": "A", "center": "Ca", **ROD}, "lower": {"frame": "B", "center": "Cb", **ROD}},
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}], "ports": {"hand": {"coordinate": "q1"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def rods():
    """Return the coupled graph of two rods with room for two constraints."""
    return fsm_dyn.compile(with_settings(add_couplers(fsm_dyn.load(RODS)), imposable=2))


def begun(bench, graph):
    """Return a run with a filled mode pool and a device at rest."""
    run = bench(graph, motion=(), stall_ticks=10**6)
    run.stepper.prepare()
    return run


def tip(run):
    q1, q2 = run.stepper.loop.state.x[:2]
    return np.array([math.cos(q1) + math.cos(q2), math.sin(q1) + math.sin(q2)]) * 0.4


def constrain(run, **request):
    run.controller.command({"do": "constrain", **request})
    return [event for event in run.events if event["event"] in ("constraint", "command_rejected")][-1]


def names(run):
    return [item[-1] for item in run.transitions]


def test_a_pin_holds_within_two_ticks_until_it_is_released(bench, rods):
    run = begun(bench, rods).run(200)
    assert constrain(run, kind="pin", a=["lower", [0.2, 0.0]], b="ground")["number"] == 1
    run.run(2)
    held = tip(run)
    run.run(300)
    np.testing.assert_allclose(tip(run), held, atol=1e-6)
    run.controller.command({"do": "release", "number": 1})
    run.run(100)
    assert np.linalg.norm(tip(run) - held) > 1e-3
    # the same inputs offline make the same run
    options = {"method": "rk4", "step": run.stepper.period, "derive_after": math.inf}
    alone = simulate(rods, run.times[-1], inputs=run.tables(), **options)
    np.testing.assert_array_equal(alone.record.x[-1], run.stepper.loop.state.x)


@pytest.mark.parametrize(
    ("request_", "held"),
    [
        ({"kind": "weld", "a": "lower", "b": "upper"}, lambda q: q[1] - q[0]),
        ({"kind": "angle", "a": "lower", "b": "ground"}, lambda q: q[1]),
        ({"kind": "coordinate", "coordinate": "q2"}, lambda q: q[1]),
        (
            {"kind": "distance", "a": ["lower", [0.2, 0.0]], "b": ["ground", [0.5, 0.5]]},
            lambda q: math.hypot(*(0.4 * (f(q[0]) + f(q[1])) - 0.5 for f in (math.cos, math.sin))),
        ),
        (
            {"kind": "line", "a": ["lower", [0.2, 0.0]], "b": "ground", "along": [3.0, 4.0]},
            lambda q: 0.8 * (math.cos(q[0]) + math.cos(q[1])) - 0.6 * (math.sin(q[0]) + math.sin(q[1])),
        ),
    ],
)
def test_every_kind_holds_its_quantity(bench, rods, request_, held):
    run = begun(bench, rods).run(150)
    constrain(run, **request_)
    run.run(2)
    before = held(run.stepper.loop.state.x[:2])
    run.run(200)
    assert held(run.stepper.loop.state.x[:2]) == pytest.approx(before, abs=1e-6)
    assert run.stepper.t == pytest.approx(0.352)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"kind": "glue", "a": "lower", "b": "ground"}, "unknown kind of constraint"),
        ({"kind": "pin", "a": "nobody", "b": "ground"}, "no body 'nobody'"),
        ({"kind": "pin", "a": "lower", "b": "lower"}, "joins two bodies"),
        ({"kind": "pin", "a": ["lower", [math.nan, 0.0]], "b": "ground"}, "is no point"),
        ({"kind": "pin", "a": ["lower", [0.1]], "b": "ground"}, "2 components"),
        ({"kind": "pin", "a": ["lower", "xy"], "b": "ground"}, "2 components"),
        ({"kind": "pin", "a": 3, "b": "ground"}, "is no point"),
        ({"kind": "pin"}, "is no point"),
        ({"kind": "line", "a": "lower", "b": "ground", "along": [0.0, 0.0]}, "direction"),
        ({"kind": "coordinate", "coordinate": "x"}, "no coordinate"),
        ({"kind": ["pin"]}, "unknown kind of constraint"),
    ],
)
def test_a_request_that_cannot_be_met_changes_nothing(bench, rods, request_, why):
    run, undisturbed = begun(bench, rods).run(100), begun(bench, rods).run(100)
    assert why in constrain(run, **request_)["reason"]
    run.controller.command({"do": "release", "number": 7})
    assert "no constraint of the hand" in run.events[-1]["reason"]
    for one in (run, undisturbed):
        one.run(50)
    np.testing.assert_array_equal(run.stepper.loop.state.x, undisturbed.stepper.loop.state.x)
    assert run.grips == undisturbed.grips


def test_a_flood_is_refused_and_what_is_in_use_is_kept(bench, rods):
    run = begun(bench, rods).run(100)
    found = [constrain(run, kind="pin", a=["lower", [0.2, 0.0]], b="ground") for _ in range(200)]
    assert [item["event"] for item in found] == ["constraint"] * 2 + ["command_rejected"] * 198
    assert "in use" in found[-1]["reason"]
    run.run(20)
    held = tip(run)
    run.run(100)
    np.testing.assert_allclose(tip(run), held, atol=1e-6)
    run.controller.command({"do": "release"})
    run.run(3)
    assert constrain(run, kind="angle", a="upper", b="ground")["number"] == 1


def test_a_model_without_room_is_refused_with_a_remedy(bench):
    run = bench("virtual_wall")
    assert "imposable" in constrain(run, kind="pin", a="wall", b="ground")["reason"]


def test_a_return_to_an_earlier_instant_undoes_what_was_imposed(bench, rods):
    run = begun(bench, rods).run(200)
    constrain(run, kind="pin", a=["lower", [0.2, 0.0]], b="ground")
    run.run(100)
    held = tip(run)
    run.controller.command({"do": "pause"})
    run.run(400)
    run.controller.command({"do": "scrub", "t": 0.15})
    run.controller.command({"do": "run"})
    run.run(300)
    assert np.linalg.norm(tip(run) - held) > 1e-3
    constrain(run, kind="pin", a=["lower", [0.2, 0.0]], b="ground")
    run.run(50)
    run.controller.command({"do": "reset"})
    run.run(400)
    assert not [
        k
        for k in range(1, 3)
        if run.stepper.tick_data.targets[run.stepper.graph.automaton.terms.layout.w.index(f"hand_{k}")]
    ]


def test_a_recording_is_replayed_bit_for_bit(tmp_path):
    """A request without numbers is recorded and refused."""
    path = tmp_path / "run.mcap"
    settings = LiveSettings(imposable=2, ticks=1500, derive=False, realtime_privileges=False)
    with LiveSession.start(fsm_dyn.compile(RODS), settings=settings, record=path) as session:
        session.wait_for_ticks(100)
        session.send("constrain", kind="pin", a=["lower", [0.2, 0.0]], b="ground")
        session.send("constrain", kind="pin", a=["lower", [math.inf, 0.0]], b="ground")
        session.wait_for_ticks(400)
        session.send("constrain", kind="weld", a="lower", b="upper")
        session.wait_for_ticks(700)
        session.send("release")
        session.wait()
        assert session.report()["failure"] == ""
    recorded = read_recording(path)
    found, _ = replay(recorded)
    assert len(found) == 6
    assert found.tobytes() == np.asarray(recorded.records).tobytes()
    alone = off_line(recorded)
    assert [item.cause.split(";")[0] for item in alone.transitions] == [
        "a hand chooses two points", "a hand imposes: pin", "a hand chooses two points", "a hand imposes: weld",
        "a hand releases a constraint", "a hand releases a constraint",
    ]  # fmt: skip
    assert recorded.rows[-1, 1] > 1.0
    assert Status(alone.outcome.code) == Status.DONE
