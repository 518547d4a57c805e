"""Contacts that a person lets two shapes make in a live run: motion of declared ones, refusals, recordings."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.hand_commands import between_bodies, pairs_in_advance
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.page.live_view import coupled_for_page
from fsm_dyn.run.simulator import simulate

SIDE = 0.1
SCENE = {
    "fsm_dyn": 1, "name": "disc_on_block",
    "coordinates": {"x": "m", "q": "rad", "h": "m"},
    "frames": {"B": {"rotate": {"z": "q"}}},
    "points": {"C": {"from": "O", "at": "x*N.x"}, "D": {"from": "O", "at": "0.02 m*N.x + h*N.y"}},
    "bodies": {
        "box": {"frame": "B", "center": "C", "mass": "1 kg", "inertia": {"zz": "0.01 kg*m^2"}},
        "ball": {"center": "D", "mass": "0.5 kg"},
    },
    "shapes": {
        "block": {"polygon": {"frame": "B", "from": "C", "points": [
            [f"{i * SIDE} m", f"{j * SIDE} m"] for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]}},
        "disc": {"circle": {"frame": "N", "center": "D", "radius": "0.05 m"}},
        "ceiling": {"line": {"frame": "N", "from": "top", "along": "N.x"}, "side": "-N.y"},
    },
    "loads": [{"gravity": "-9.81 m/s^2*N.y", "on": "ball"}],
    "ports": {"handle": {"coordinate": "x"}},
    "initial": {"h": "0.25 m"},
}  # fmt: skip
SCENE["points"]["top"] = {"from": "O", "at": "0.35 m*N.y"}
PAIR = ("disc", "block")


@pytest.fixture(scope="module")
def scene():
    """Return the coupled graph with the contacts to impose of the disc."""
    return coupled_graph(fsm_dyn.compile(SCENE), touching=[PAIR, ("disc", "ceiling")])


def begun(bench, graph, **initial):
    run = bench(graph, motion=(), stall_ticks=10**6, initial=initial)
    run.stepper.prepare()
    return run


def constrain(run, **request):
    run.controller.command({"do": "constrain", "kind": "contact", **request})
    return [event for event in run.events if event["event"] in ("constraint", "command_rejected")][-1]


def states(run):
    return run.stepper.loop.state.x.copy()


def test_the_motion_is_that_of_a_declared_contact(bench, scene):
    declared = coupled_graph(fsm_dyn.compile({**SCENE, "contacts": {"touch": {"between": [*PAIR]}}}))
    imposed, written = (begun(bench, graph, x=-0.07).run(10) for graph in (scene, declared))  # near a corner
    assert constrain(imposed, a="block", b="disc")["number"] == 1
    for run in (imposed, written):
        run.run(700)
    assert len(written.transitions) >= 2
    np.testing.assert_allclose(states(imposed), states(written), rtol=0.0, atol=1e-12)
    # the same inputs offline make the same run
    options = {"method": "rk4", "step": imposed.stepper.period, "derive_after": math.inf}
    alone = simulate(scene, imposed.times[-1], inputs=imposed.tables(), initial={"x": -0.07}, **options)
    np.testing.assert_array_equal(alone.record.x[-1], states(imposed))


def test_shapes_pass_through_each_other_before_and_after(bench, scene):
    run = begun(bench, scene).run(5)
    constrain(run, a="disc", b="block")
    run.run(300)
    height = states(run)[2]
    assert height > 0.1
    assert run.stepper.mode != "all_free"
    run.controller.command({"do": "release", "number": 1})
    run.run(1)
    assert run.stepper.mode == "all_free"
    run.run(300)
    assert states(run)[2] < height - 0.1


def test_what_overlaps_or_is_not_derived_is_refused_without_any_effect(bench, scene):
    run, undisturbed = begun(bench, scene).run(170), begun(bench, scene).run(170)
    assert states(run)[2] < SIDE + 0.05
    assert "overlap" in constrain(run, a="disc", b="block")["reason"]
    for request in ({"a": "disc", "b": "nothing"}, {"a": "disc"}, {}, {"a": 3, "b": [1]}):
        assert "to impose" in constrain(run, **request)["reason"]
    assert constrain(run, a="disc", b="ceiling")["number"] == 2
    assert "touch already" in constrain(run, a="ceiling", b="disc")["reason"]
    run.controller.command({"do": "release"})
    for one in (run, undisturbed):
        one.run(50)
    np.testing.assert_array_equal(states(run), states(undisturbed))


def test_a_disc_beyond_a_line_without_ends_overlaps_it(bench):
    high = {**SCENE, "initial": {"h": "0.4 m"}}
    run = begun(bench, coupled_graph(fsm_dyn.compile(high), touching=[("disc", "ceiling")])).run(2)
    assert "overlap" in constrain(run, a="disc", b="ceiling")["reason"]


def test_a_recording_is_replayed_bit_for_bit(tmp_path):
    path = tmp_path / "run.mcap"
    settings = LiveSettings(touching=(PAIR,), ticks=900, derive=False, realtime_privileges=False, paced=False)
    with LiveSession.start(fsm_dyn.compile(SCENE), settings=settings, record=path) as session:
        session.send("constrain", kind="contact", a="disc", b="block")
        session.wait()
        events = session.events()
        assert session.report()["failure"] == ""
    recorded = read_recording(path)
    found, _ = replay(recorded)
    assert found.tobytes() == np.asarray(recorded.records).tobytes()
    alone = off_line(recorded)
    accepted = [event for event in events if event["event"] == "constraint"]
    refused = [event for event in events if event["event"] == "command_rejected"]
    assert len(accepted) + len(refused) == 1
    if accepted:  # an unpaced run may be far ahead when it reads the command
        assert len(found) >= 1
        assert "touch each other" in alone.transitions[0].cause


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        (("disc", "nobody"), "there is no shape"),
        (("block", "block"), "do not move relative"),
        (("block", "ceiling"), None),
    ],
)
def test_a_pair_that_cannot_be_is_refused_at_the_start(pair, why):
    graph = fsm_dyn.compile(SCENE)
    if why is None:
        assert len(coupled_graph(graph, touching=[pair]).automaton.contacts) == 4  # corners of the block
        return
    with pytest.raises(fsm_dyn.InputError, match=why):
        coupled_graph(graph, touching=[pair])


def test_a_page_derives_few_pairs_in_advance_and_finds_them_by_their_bodies():
    mechanism = fsm_dyn.load(SCENE)
    assert set(pairs_in_advance(mechanism)) == {("block", "disc"), ("disc", "ceiling"), ("block", "ceiling")}
    assert pairs_in_advance(fsm_dyn.load("piano_action")) == ()
    graph, _ = coupled_for_page(fsm_dyn.compile({**SCENE, "imposable": 1}), {}, pairs_in_advance(mechanism))
    roomy = graph.automaton.mechanism
    assert between_bodies(roomy, "ball", "box") == [("block", "disc")]
    assert between_bodies(roomy, "ground", "ball") == [("disc", "ceiling")]
    assert between_bodies(roomy, "box", "box") == []


def test_a_pair_that_a_contact_lists_is_refused():
    listed = {**SCENE, "contacts": {"own": {"between": [*PAIR]}}, "imposed": {"touch": {"contact": [*PAIR]}}}
    with pytest.raises(fsm_dyn.InputError, match="contact 'own' lists them"):
        fsm_dyn.load(listed)
