"""A one-way clutch is free one way and locked the other; against closed forms."""

import copy

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.limit_cycle import read_section
from fsm_dyn.analysis.sensitivities import sensitivities
from fsm_dyn.core.errors import InputError
from fsm_dyn.runtime.abi import Event

HUB, WHEEL, DRIVE, BRAKE = 1.0, 3.0, 8.0, 3.0

SHAFT = {
    "fsm_dyn": 1,
    "name": "freewheel",
    "parameters": {"I1": f"{HUB} kg*m^2", "I2": f"{WHEEL} kg*m^2", "T": f"{DRIVE} N*m", "B": f"{BRAKE} N*m"},
    "coordinates": {"a": "rad", "b": "rad"},
    "frames": {"H": {"rotate": {"z": "a"}}, "W": {"rotate": {"z": "b"}}},
    "bodies": {
        "hub": {"frame": "H", "center": "O", "mass": "1 kg", "inertia": {"zz": "I1"}},
        "wheel": {"frame": "W", "center": "O", "mass": "1 kg", "inertia": {"zz": "I2"}},
    },
    "speeds": {"w1": "rate(a)", "w2": "rate(b)"},
    "contacts": {"clutch": {"one_way": {"coordinate": "b - a"}}},
    "loads": [{"torque": "T*N.z", "on": "hub"}, {"torque": "-B*N.z", "on": "wheel"}],
    "modes": {"driven": {"clutch": "locked"}, "overrun": {"clutch": "free"}},
    "initial": {"a": "0 rad", "b": "0 rad", "w1": "0 rad/s", "w2": "9 rad/s"},
}


def changed(**parts):
    return copy.deepcopy(SHAFT) | parts


def test_an_overrunning_wheel_is_caught_up_with(run):
    """The hub gains on the wheel by T/I1 + B/I2; from equal speeds on they turn as one."""
    ended = run(changed(), 2.0)
    meets = 9.0 / (DRIVE / HUB + BRAKE / WHEEL)
    (locked,) = ended.transitions
    assert locked.time == pytest.approx(meets, abs=run.off)
    assert locked.cause == "clutch locks (velocity zero)"
    assert (locked.source, locked.target) == ("overrun", "driven")
    together = DRIVE * meets / HUB + (DRIVE - BRAKE) / (HUB + WHEEL) * (2.0 - meets)
    assert [ended["w1"][-1], ended["w2"][-1]] == pytest.approx([together] * 2, abs=30 * run.off)
    # the torque on the wheel passes through the clutch, against the hub
    force = WHEEL * (DRIVE - BRAKE) / (HUB + WHEEL) + BRAKE
    assert ended.multipliers["clutch"][-1, 0] == pytest.approx(force, rel=1e-6)
    assert np.abs(ended.energy.residual).max() < 1e-6 if run.off < 1e-6 else True


def test_frees_where_its_force_would_change_sign(run):
    """The drive fades as cos(om t): without a brake the force does, at a quarter of the period."""
    om = 2.0
    model = changed(
        parameters={**SHAFT["parameters"], "om": f"{om} rad/s"},
        loads=[{"torque": "T*cos(om*t)*N.z", "on": "hub"}],
        initial={"a": "0 rad", "b": "0 rad"},
    )
    ended = run(model, 2.0)
    (freed,) = ended.transitions
    assert freed.time == pytest.approx(np.pi / (2.0 * om), abs=run.off)
    assert freed.cause == "clutch frees (locking force zero)"
    reached = DRIVE / om / (HUB + WHEEL)
    last = reached + DRIVE / om / HUB * (np.sin(om * 2.0) - 1.0)
    assert [ended["w1"][-1], ended["w2"][-1]] == pytest.approx([last, reached], abs=10 * run.off)
    assert (ended["w2"] - ended["w1"]).min() > -10 * run.off


def test_the_mirror_turns_the_other_way(run):
    mirror = changed(
        contacts={"clutch": {"one_way": {"velocity": "w1 - w2"}}},
        parameters={**SHAFT["parameters"], "T": f"{-DRIVE} N*m", "B": f"{-BRAKE} N*m"},
        initial={**SHAFT["initial"], "w2": "-9 rad/s"},
    )
    one, other = run(changed(), 2.0), run(mirror, 2.0)
    assert [item.time for item in other.transitions] == pytest.approx([item.time for item in one.transitions])
    for name in ("a", "b", "w1", "w2"):
        assert other[name][-1] == pytest.approx(-one[name][-1], rel=1e-9)
    assert other.modes[-1] == one.modes[-1]


STAIRS = {
    "fsm_dyn": 1,
    "name": "stairs",
    "parameters": {"A": "8 N", "om": "4 rad/s"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"block": {"center": "P", "mass": "2 kg"}},
    "speeds": {"v": "rate(x)"},
    "contacts": {"ratchet": {"one_way": {"velocity": "v"}}},
    "loads": [{"force": "A*cos(om*t)*N.x", "at": "P"}],
    "initial": {"x": "0 m"},
}


def test_goes_up_by_stairs(run):
    """A force A cos(om t) on a block unable to go back: it stops at half a period and continues at three quarters.

    From then on its speed is 1 + sin(om t) in units of A / (m om), touching zero without a change of sign.
    """
    om, speed = 4.0, 8.0 / 2.0 / 4.0
    ended = run(STAIRS, 5.0)
    period = 2.0 * np.pi / om
    locked = [item.time for item in ended.transitions if item.cause.startswith("ratchet locks")]
    freed = [item.time for item in ended.transitions if item.cause.startswith("ratchet frees")]
    off = max(run.off, 1e-7)
    assert locked[0] == pytest.approx(0.5 * period, abs=off)
    assert min(abs(time - 0.75 * period) for time in freed) <= off  # time stepping frees it at the start as well
    assert ended["v"].min() > -10 * off
    last = speed * (1.0 + np.sin(om * 5.0))
    assert ended["v"][-1] == pytest.approx(last, abs=10 * off)
    gained = speed / om * (1.0 - np.cos(np.pi)) + speed * (5.0 - 0.75 * period) - speed / om * np.cos(om * 5.0)
    assert ended["x"][-1] == pytest.approx(gained, abs=10 * off)


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"method": "radau"}])
def test_an_impact_locks_it(options):
    """The hub is given a higher speed than the wheel has: they go on together, with the momentum of both."""
    model = changed(
        loads=[], transitions=[{"from": "*", "when": "t > 0.5 s", "reset": {"w1": "12 rad/s"}}],
        initial={**SHAFT["initial"], "w2": "4 rad/s"},
    )  # fmt: skip
    ended = fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0, **options)
    (hit,) = ended.transitions
    common = (HUB * 12.0 + WHEEL * 4.0) / (HUB + WHEEL)
    assert hit.impulse["clutch"] == pytest.approx(WHEEL * (common - 4.0))
    assert hit.u_after == pytest.approx([common, common])


def test_it_lets_speeds_of_its_way_jump():
    """A hub stopped by a reset does not change the wheel's motion."""
    model = changed(
        loads=[], transitions=[{"from": "*", "when": "t > 0.5 s", "reset": {"w1": "1 rad/s"}}],
        initial={**SHAFT["initial"], "w1": "4 rad/s", "w2": "4 rad/s"},
    )  # fmt: skip
    ended = fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0)
    assert ended.u[-1] == pytest.approx([1.0, 4.0])
    assert ended.modes[-1] == "overrun"


def test_speeds_against_it_at_the_start_are_an_impact(run):
    ended = run(changed(loads=[], initial={**SHAFT["initial"], "w1": "8 rad/s", "w2": "0 rad/s"}), 0.01)
    assert ended.u[-1] == pytest.approx([2.0, 2.0])


def test_transitions_wait_for_it():
    model = changed(memory={"n": 0}, transitions=[{"from": "*", "on": "clutch locks", "set": {"n": "n + 1"}}])
    assert fsm_dyn.simulate(fsm_dyn.compile(model), until=2.0)["n"][-1] == 1


def test_explained_drawn_and_kept(tmp_path):
    graph = fsm_dyn.compile(SHAFT)
    ended = fsm_dyn.simulate(graph, until=2.0)
    (clutch,) = ended.explain(1.5).contacts
    assert (clutch.state, clutch.gap, clutch.slip, clutch.friction) == ("locked", None, None, None)
    assert [(g.event, g.guard) for g in ended.explain(0.5).guards] == [("clutch locks", "speed of clutch")]
    assert [(g.event, g.guard) for g in ended.explain(1.5).guards] == [("clutch frees", "locking force of clutch")]
    edges = {(a, b): (d["cause"], d["event"], d["reset"]) for a, b, d in graph.nx.edges(data=True)}
    assert edges == {
        ("overrun", "driven"): ("clutch locks", "locks", ""),
        ("driven", "overrun"): ("clutch frees", "frees", ""),
    }
    graph.save(tmp_path / "graph.json")
    again = fsm_dyn.simulate(fsm_dyn.open_graph(tmp_path / "graph.json"), until=2.0)
    assert again.q.tobytes() == ended.q.tobytes()


def test_rests_on_it():
    """A weight on a winch with a ratchet hangs still, and the ratchet has its moment."""
    winch = changed(
        loads=[{"torque": "-B*N.z", "on": "wheel"}],
        contacts={"clutch": {"one_way": {"coordinate": "b"}}, "brake": {"lock": {"position": "a"}}},
        modes={"held": {"brake": "engaged"}},
        initial={"mode": "held", "a": "0 rad", "b": "0 rad"},
    )
    rest = fsm_dyn.static_equilibrium(fsm_dyn.compile(winch))
    assert rest.forces["clutch"] == pytest.approx(BRAKE)
    assert rest.states["clutch"] == "locked"


PLATE = {
    "fsm_dyn": 1,
    "name": "plate",
    "parameters": {"g": "10 m/s^2", "e": "0.5"},
    "coordinates": {"y": "m", "z": "m"},
    "points": {"P": {"from": "O", "at": "y*N.y"}, "Q": {"from": "O", "at": "z*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": "1 kg"}, "plate": {"center": "Q", "mass": "5 kg"}},
    "speeds": {"v": "rate(y)", "w": "rate(z)"},
    "contacts": {"ground": {"gap": "y - z", "restitution": "e"}, "ratchet": {"one_way": {"coordinate": "z"}}},
    "loads": [{"gravity": "-g*N.y"}],
    "initial": {"y": "1 m"},
}


def test_trains_of_impacts_end_on_a_ratchet(run):
    """A plate unable to go down is a floor: the ball rests after (1 + e) / (1 - e) of its fall's time."""
    ended = run(PLATE, 2.0)
    assert ended["z"] == pytest.approx(0.0, abs=1e-9)
    assert (ended["y"][-1], ended["v"][-1]) == pytest.approx((0.0, 0.0), abs=10 * run.off)
    rest = np.sqrt(2.0 / 10.0) * 3.0
    assert ended.transitions[-1].time == pytest.approx(rest, abs=20 * max(run.off, 1e-7))
    assert ended.modes[-1] == "ground_closed+ratchet_locked"
    assert ended.multipliers["ratchet"][-1, 0] == pytest.approx(60.0)


@pytest.mark.parametrize("name", ["T", "B"])
def test_sensitivities_pass_where_it_locks(name):
    """By differences of whole runs."""
    graph = fsm_dyn.compile(SHAFT)
    value, step = graph.values[name], 1e-5
    found = sensitivities(graph, until=2.0, by_parameters=[name]).by_parameters[name]
    runs = [fsm_dyn.simulate(graph, until=2.0, parameters={name: value + d}, rtol=1e-11) for d in (step, -step)]
    ends = [np.concatenate([run.q[-1], run.u[-1]]) for run in runs]
    assert found == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=1e-6)


WRONG = {
    "nothing": ("{}", "a one-way clutch needs one of coordinate, velocity"),
    "both": ("{coordinate: x, velocity: v}", "a one-way clutch has both 'coordinate' and 'velocity'"),
    "key": ("{coordinates: x}", "a one-way clutch has no key 'coordinates'"),
    "speed": ("{coordinate: v}", "'v'"),
    "constant": ("{velocity: 3 m/s}", "constrains nothing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_reported_with_their_place(message_of_block, case):
    text, message = WRONG[case]
    assert message in message_of_block(f"clutch: {{one_way: {text}}}")


def test_a_limit_cycle_may_begin_where_it_locks():
    automaton = fsm_dyn.compile(SHAFT).automaton
    assert read_section(automaton, "clutch locks").event == Event.CLOSES
    with pytest.raises(InputError, match="'clutch' never opens"):
        read_section(automaton, "clutch opens")
