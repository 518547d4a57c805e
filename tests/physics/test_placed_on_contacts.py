"""Resets and assignments that place a body on a contact with an approach speed: it strikes there, as by motion.

Closed form: with the speed ``v`` at a gap of zero the speed after is ``-e v``, the normal impulse ``m (1 + e) v``, and
friction gives up to ``mu`` times that.
"""

import sys

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import RunError
from fsm_dyn.exports.export import prepared
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.stepper import LiveStepper
from tests.exports.building import built
from tests.exports.test_c99 import check_same
from tests.exports.test_html import bits, in_node
from tests.physics.flush import brick, losses, scene

M, E, MU, V, T = 2, 0.5, 0.3, 2.0, 0.2
RUNS = {
    "dopri5": {}, "online": {"strategy": "online"}, "auto": {"strategy": "auto"},
    "rk4": {"method": "rk4", "step": 0.03}, "radau": {"method": "radau"}, "bdf": {"method": "bdf"},
}  # fmt: skip
BALL = {
    "fsm_dyn": 1,
    "name": "ball",
    "coordinates": ["x", "y", "z"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
    "bodies": {"ball": {"center": "P", "mass": M}},
    "memory": {"level": 0, "seen": 0},
    "contacts": {"c": {"gap": "y - level", "restitution": E}},
    "requirements": {"counted": "count(c closes) >= 1"},
    "initial": {"y": 1, "y_dot": -V},
}
DOWN = {"reset": {"y": "0", "y_dot": f"-{V}"}}
JUMPS = {
    "reset": DOWN,
    "just above": {"reset": {"y": "5e-10", "y_dot": f"-{V}"}},
    "just below": {"reset": {"y": "-5e-10", "y_dot": f"-{V}"}},
    "set": {"set": {"level": f"1 - {V * T}"}},
    "set with an impulse": {"set": {"level": f"1 - {V * T}"}, "impulse": [{"linear": "0*N.y", "at": "P"}]},
}
LAWS = {
    "newton": {},
    "poisson": {"restitution_law": "poisson"},
    "plastic": {"restitution": 0},
    "slides": {"slip": "x_dot", "friction": MU},
    "slides in space": {"slip": ["x_dot", "z_dot"], "friction": MU},
    "caught": {"slip": "x_dot", "friction": "inf"},
}
ASIDE = np.array([3.0, 4.0])


def placed(jump, when=f"t - {T}", **more):
    """Return the ball with a jump, and one transition that counts what the contact does."""
    seen = {"from": "*", "on": "c closes", "set": {"seen": "seen + 1"}, "because": "seen"}
    return BALL | {"transitions": [{"from": "*", "when": when, "because": "the jump", **jump}, seen]} | more


def rebound(run, impulse, lost):
    """Assert the closed form of the transition at ``T``, and that it closes the contact, once."""
    struck = run.transitions[0]
    assert struck.time == pytest.approx(T, abs=1e-9)
    assert struck.cause == "the jump; c closes and opens"
    assert struck.impulse["c"] == pytest.approx(np.atleast_1d(impulse))
    assert struck.energy_lost == pytest.approx(lost)
    assert run["seen"][-1] == 1
    assert [item.cause for item in run.transitions[1:]] == ["seen"]
    assert run.judge()["counted"].verdict == "met"


@pytest.fixture(scope="module", params=JUMPS)
def jumping(request):
    return request.param, fsm_dyn.Simulator(fsm_dyn.compile(placed(JUMPS[request.param])))


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_a_ball_placed_on_its_floor_rebounds(jumping, options):
    jump, simulator = jumping
    run = simulator.run(until=0.5, **options)
    rebound(run, M * (1 + E) * V, 0.5 * M * (1 - E**2) * V**2)
    assert run.u[-1] == pytest.approx([0, E * V, 0])
    level = 1 - V * T if jump.startswith("set") else 0.0
    assert run.q[-1] == pytest.approx([0, level + E * V * 0.3, 0], abs=1e-8)
    assert np.abs(run.energy.residual).max() <= 1e-9


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}], ids=["compiled", "online"])
@pytest.mark.parametrize("law", LAWS)
def test_every_law_of_a_rigid_contact(law, options):
    jump = {"reset": DOWN["reset"] | {"x_dot": f"{ASIDE[0]}", "z_dot": f"{ASIDE[1]}"}}
    model = placed(jump, contacts={"c": BALL["contacts"]["c"] | LAWS[law]})
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.5, **options)
    e = 0.0 if law == "plastic" else E
    normal = M * (1 + e) * V
    after = {
        "slides": ASIDE - [MU * normal / M, 0],
        "slides in space": ASIDE - MU * normal / M * ASIDE / np.linalg.norm(ASIDE),
        "caught": ASIDE * [0, 1],
    }.get(law, ASIDE)
    assert run.transitions[0].u_after == pytest.approx([after[0], e * V, after[1]])
    friction = {"slides in space": M * (after - ASIDE)}.get(law, M * (after - ASIDE)[:1] if "slip" in LAWS[law] else [])
    lost = 0.5 * M * V**2 - 0.5 * M * (after @ after + (e * V) ** 2)
    rebound(run, [normal, *friction], lost)


def test_a_contact_that_is_closed_is_struck_by_a_reset_and_answers_an_impulse():
    """The speed of a reset is one before an impact; an impulse acts together with that of the floor."""
    rest = {"initial": {"y": 0}, "loads": [{"gravity": "-10*N.y"}]}
    for jump, after in (({"reset": {"y_dot": f"-{V}"}}, E * V), ({"impulse": [{"linear": "-4*N.y", "at": "P"}]}, 0.0)):
        run = fsm_dyn.simulate(fsm_dyn.compile(placed(jump, **rest)), until=T + 0.01)
        assert run.transitions[0].u_after == pytest.approx([0, after, 0])
        assert run.transitions[0].impulse["c"] == pytest.approx([M * (V + after)])
        assert run["seen"][-1] == 0  # it was closed


def test_what_touches_without_a_force_is_struck():
    here = [{"from": "*", "when": f"t - {at}", "reset": values} for at, values in
            ((T / 2, {"y": "0", "y_dot": "0"}), (T, {"y_dot": f"-{V}"}))]  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(BALL | {"transitions": here}), until=0.5)
    assert run.u[-1] == pytest.approx([0, E * V, 0])
    assert run.judge()["counted"].verdict == "met"


def test_a_compliant_contact_closes_and_pushes_from_there():
    """Half a period of its spring later the ball leaves as fast as it came."""
    stiffness = 1000
    contact = {"c": {"gap": "y", "compliant": {"stiffness": stiffness}}}
    run = fsm_dyn.simulate(fsm_dyn.compile(placed(DOWN, contacts=contact)), until=0.5)
    assert [item.cause for item in run.transitions[:2]] == ["the jump; c closes", "seen"]
    assert run.transitions[2].time == pytest.approx(T + np.pi * np.sqrt(M / stiffness), abs=1e-6)
    assert run.u[-1] == pytest.approx([0, V, 0], abs=1e-6)


def test_two_carts_and_a_stop_placed_against_one():
    """Newton's law and the momentum of both carts, and a limit that comes with memory."""
    carts = {
        "fsm_dyn": 1,
        "name": "carts",
        "coordinates": ["a", "b"],
        "points": {"A": {"from": "O", "at": "a*N.x"}, "B": {"from": "O", "at": "b*N.x"}},
        "bodies": {"left": {"center": "A", "mass": 2}, "right": {"center": "B", "mass": 1}},
        "memory": {"end": 9},
        "contacts": {
            "hit": {"gap": "b - a", "restitution": E},
            "stop": {"joint_stop": {"coordinate": "b", "upper": "end"}, "restitution": E},
        },
        "transitions": [
            {"from": "*", "when": f"t - {T}", "reset": {"a": "b", "a_dot": "3"}},
            {"from": "*", "when": "b - 2.5", "set": {"end": "2.5"}},
        ],
        "initial": {"b": 1},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(carts), until=0.8)
    first, second = run.transitions
    assert first.u_after == pytest.approx([1.5, 3.0])
    assert second.time == pytest.approx(T + 0.5)
    assert second.u_after == pytest.approx([1.5, -1.5])
    assert second.impulse["stop"] == pytest.approx([4.5])


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_brick_placed_flat_on_the_ground_moves_as_one_that_starts_there(speed):
    motion = {"y_box": 0.05, "y_box_dot": -V, "x_box_dot": speed}
    ground = {"ground": {"line": {"along": "N.x"}, "side": "N.y"}}
    model = scene({"box": brick(0.2, 0.1, y=1.0)}, ground, friction=MU, restitution=E)
    started = fsm_dyn.simulate(fsm_dyn.compile(model | {"initial": motion}), until=0.3)
    reset = {key: str(value) for key, value in (motion | {"q_box": 0, "q_box_dot": 0}).items()}
    jump = {"transitions": [{"from": "*", "when": f"t - {T}", "reset": reset | {"x_box": "0"}}]}
    run = fsm_dyn.simulate(fsm_dyn.compile(model | jump), until=T + 0.3)
    assert run.transitions[0].u_after == pytest.approx(started.transitions[0].u_after, abs=1e-12)
    assert run.transitions[0].u_after[1] == pytest.approx(E * V)
    assert run.q[-1] == pytest.approx(started.q[-1], abs=1e-8)
    assert losses(run)[1:] == pytest.approx(losses(started)[1:], abs=1e-8)


def test_starts_and_resumed_runs_are_alike(jumping):
    """A start in this state, and a run cut before, in and behind the instant."""
    jump, simulator = jumping
    whole = simulator.run(until=0.5)
    for cut in (0.1, T, 0.3):
        again = simulator.run(until=cut).resume(0.5)
        assert repr(again.transitions) == repr(whole.transitions)
        assert again.u[-1].tobytes() == whole.u[-1].tobytes()
    if jump == "reset":
        start = simulator.run(until=0.1, initial={"y": 0.0, "y_dot": -V})
        assert start.transitions[0].u_after == pytest.approx([0, E * V, 0])
        assert start.transitions[0].impulse["c"] == pytest.approx([M * (1 + E) * V])


def test_a_gap_below_zero_is_a_penetration():
    with pytest.raises(RunError, match="penetration during the run"):
        fsm_dyn.simulate(fsm_dyn.compile(placed({"reset": {"y": "-1e-6", "y_dot": f"-{V}"}})), until=0.5)


def test_a_live_run_rebounds_in_its_tick():
    model = placed(DOWN, ports={"hand": {"coordinate": "x"}})
    stepper = LiveStepper(fsm_dyn.compile(add_couplers(fsm_dyn.load(model))), 1, 1e-3, 4)
    controller = RunController(stepper, lambda event: None)
    for tick in range(300):
        controller.tick(Sample(0.0, tick, [0.0], [0.0]))
    assert stepper.loop.state.x[4] == pytest.approx(E * V)


@pytest.mark.skipif(sys.platform == "win32", reason="builds by make")
def test_c99_and_pages_have_the_same_bits(tmp_path):
    graph = fsm_dyn.compile(placed(DOWN, name="ball"))
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "out"), "ball"))
    found = in_node(prepared(graph))
    run = fsm_dyn.Simulator(graph).run(strategy="compiled")
    assert found["made"] == len(run.transitions)
    assert found["x"] == bits([*run.q[-1], *run.u[-1]])
