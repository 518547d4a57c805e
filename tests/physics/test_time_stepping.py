"""Moreau-Jean time stepping: an independent route to the motions that the event-driven runs find."""

import os
import re

import numpy as np
import pytest
import yaml

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import models
from tests.physics.agreement import moved, states_at
from tests.physics.variants import shipped

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
HALVINGS = 5
# an impact may fall anywhere in a step: errors are averaged over lengths spread by the golden ratio
PHASES = 1.0 - 0.45 * ((np.arange(12) * 0.6180339887) % 1.0)
PLACES = 2000

# model: end (s) before impacts that pile up, longest step (s), bound of the error at the end over the step
CONTINUOUS = {
    "bouncing_ball": (0.9, 4e-3, 6.0),
    "rolling_disk": (2.0, 4e-3, 8.0),
    "pendulum_with_stop": (2.0, 4e-3, 8.0),
    "rocking_block": (0.9, 4e-3, 4.0),
    "box_on_table": (1.0, 4e-3, 1.0),
    "stick_slip_belt": (3.0, 4e-3, 1.0),
    "ball_in_corner": (0.6, 4e-3, 16.0),
    "sliding_rod": (0.6, 4e-3, 6.0),
    "double_pendulum_with_stop": (0.8, 4e-3, 8.0),
    "cam_flat_follower": (0.1, 4e-3, 2.0),
    "twelve_contacts": (0.5, 4e-3, 20.0),
    "shopping_cart": (2.0, 4e-3, 0.3),
    "billiard_ball": (1.5, 4e-3, 4.0),
    "felt_drop": (0.5, 4e-4, 4.0),
    "toggle_switch": (0.8, 2e-3, 200.0),
    "geneva_drive": (0.5, 4e-3, 10.0),
    "planetary_gear": (1.0, 4e-3, 500.0),  # its angles grow to hundreds of radians
    "gripper": (1.2, 4e-3, 2.0),
    "latch_door": (0.9, 4e-3, 2.0),
    "virtual_wall": (1.5, 2e-3, 2.0),
    "carried_bar": (0.9, 4e-3, 2.0),
    "tray": (0.4, 4e-3, 6.0),
}
# those whose contacts ask for steps so short that they are left to the campaign
SHORT_STEPS = {
    "push_button": (1.0, 5e-5, 1.0),
    "piano_action_simple": (0.12, 2e-4, 40.0),
    "piano_action": (0.08, 5e-5, 40.0),
    "seat_belt_reel": (0.8, 2e-5, 2.0),
}
CAMPAIGN = "FSM_DYN_CAMPAIGN" in os.environ


def errors(graph, until, longest, **given):
    """Mean errors of the coordinates, at the end and integrated over the run (L1 norm), for each length of step."""
    exact = fsm_dyn.simulate(graph, until=until, **TIGHT, **given)
    times = np.linspace(0.0, until, PLACES + 1)[1:-1]
    n_q = exact.q.shape[1]
    there = states_at(exact, times)[:, :n_q]
    steps = longest * 0.5 ** np.arange(HALVINGS)
    found = []
    for step in steps:
        runs = [fsm_dyn.simulate(graph, until, method="moreau_jean", step=step * p, **given) for p in PHASES]
        end = np.mean([np.abs(run.q[-1] - exact.q[-1]).max() for run in runs])
        over = np.mean([np.abs(states_at(run, times)[:, :n_q] - there).max(axis=1).mean() * until for run in runs])
        found.append((end, over))
    return steps, np.array(found)


def spread(model, until, by, given, seed=0):
    """How far apart motions end (m, rad) whose starts differ by ``by`` of the states' scale."""
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until, **TIGHT, **given)
    layout = run.model.layout
    values = dict(zip((*layout.q, *layout.u), run.record.x[0].tolist(), strict=True))
    ends = []
    for k in range(4):
        near = moved(model, seed, given, values, by, k)
        other = fsm_dyn.simulate(fsm_dyn.compile(model), until, on_failure="return", **TIGHT, **near)
        if other.outcome.name == "done":  # a contact that is closed where the run begins may have been moved apart
            ends.append(float(np.abs(other.q[-1] - run.q[-1]).max()))
    return ends


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", [*CONTINUOUS, *(SHORT_STEPS if CAMPAIGN else ())])
def test_converges_to_the_event_driven_motion(model):
    """First order: errors below a constant times the step, and falling as fast as it over a sixteenfold refinement."""
    until, longest, bound = {**CONTINUOUS, **SHORT_STEPS}[model]
    steps, found = errors(fsm_dyn.compile(model), until, longest)
    orders = np.polyfit(np.log2(steps), np.log2(found), 1)[0]
    print(model, [f"{e:.1e}" for e in found[:, 0]], f"orders: end {orders[0]:.2f}, L1 {orders[1]:.2f}")  # noqa: T201
    assert np.all(found[:, 0] <= bound * steps)
    assert np.all(orders >= 0.9)
    assert max(spread(model, until, 1e-9, {}), default=0.0) <= 1e-5


REFUSED = {
    "latch": "user-defined transitions",
    "magnetic_latch": "user-defined transitions",
    "ratchet": "user-defined transitions",
    "cart_on_ramp": "user-defined transitions",
    "compass_gait": "user-defined transitions",
    "escapement_anchor": "user-defined transitions",
    "escapement_deadbeat": "user-defined transitions",
    "rimless_wheel": "user-defined transitions",
    "newtons_cradle": "at once",
}


@pytest.mark.parametrize("model", REFUSED)
def test_models_it_refuses(model):
    with pytest.raises(InputError, match=REFUSED[model]):
        fsm_dyn.simulate(fsm_dyn.compile(model), 0.1, method="moreau_jean", step=1e-3)


def test_every_model_with_contacts_is_compared_or_refused():
    with_contacts = {name for name in models.names() if fsm_dyn.load(name).contacts}
    assert with_contacts == {*CONTINUOUS, *SHORT_STEPS, *REFUSED}


# Motions that are not continuous in their start have no limit that a step could converge to.
DISCONTINUOUS = {
    "both faces of a corner at once": (
        "ball_in_corner", 0.4, {"initial": {"mode": "flying", "x": 0.3, "y": 0.3, "vx": -1.0, "vy": -1.0, "w": 10.0},
                                "parameters": {"slope": 0.0, "g": 0.0, "mu": 0.5}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DISCONTINUOUS)
def test_motions_left_out_because_they_jump_with_their_start(case):
    model, until, given = DISCONTINUOUS[case]
    found = {by: spread(model, until, by, given) for by in (1e-6, 1e-9)}
    print(case, found)  # noqa: T201 - shown by pytest -rP
    assert min(max(ends) for ends in found.values()) >= 1e-3


def test_a_rebound_with_friction_gains_no_energy():
    """A slender box with e = 1 and friction strikes with a corner: Newton's law alone would raise its energy."""
    graph = fsm_dyn.compile("box_on_table")
    given = {
        "initial": {"mode": "in_air", "q": 0.205, "y": 0.4134, "vx": -0.433, "vy": 0.37, "w": 9.1},
        "parameters": {"mu": 0.1, "e": 1.0, "b": 0.748, "reach": 0.0},
        "inputs": {"push": 8.2, "nudge": 5.6},
    }
    exact = fsm_dyn.simulate(graph, 0.4, **TIGHT, **given)
    ends = []
    for step in (2e-4, 2.5e-5):
        run = fsm_dyn.simulate(graph, 0.4, method="moreau_jean", step=step, **given)
        strike = next(x for x in run.transitions if "impacts" in x.cause)
        assert strike.energy_after <= strike.energy_before + 1e-9
        ends.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert ends[1] <= 0.3 * ends[0]
    assert ends[1] <= 2e-3


def test_nothing_touches_behind_a_face_that_ends():
    """The striker is behind the rear face of the door's bolt from the start: its gap is -41 mm, and means nothing."""
    graph = fsm_dyn.compile("latch_door")
    pushed = {"inputs": {"push": -20.0, "handle": 0.0}}
    exact = fsm_dyn.simulate(graph, 0.5, **TIGHT, **pushed)
    for step in (1e-3, 1e-4):
        run = fsm_dyn.simulate(graph, 0.5, method="moreau_jean", step=step, **pushed)
        assert not any(name.startswith("touch") for mode in set(run.modes) for name in mode.split("+"))
        np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=0.5 * step)


BEAM = """
fsm_dyn: 1
name: past_a_thin_wall
parameters: {m: 1 kg, r: 0.01 m, high: 0.1 m}
coordinates: {x: m, y: m}
points:
  C: {from: O, at: x*N.x + y*N.y}
bodies: {ball: {center: C, mass: m}}
speeds: {vx: rate(x), vy: rate(y)}
shapes:
  ball_rim: {circle: {center: C, radius: r}}
  wall: {polygon: {points: [[0 m, 0 m], [0.02 m, 0 m], [0.02 m, high], [0 m, high]]}}
contacts:
  touch: {between: [ball_rim, wall], restitution: 0.5}
inputs: {fx: N, fy: N}
loads:
  - {force: fx*N.x + fy*N.y, at: C}
initial: {x: -0.1 m, y: 0.05 m}
"""


def test_a_body_that_goes_round_a_wall_comes_to_its_other_side():
    """Up, over the top, down behind: what was the front is behind the ball now, what was behind it is struck."""
    graph = fsm_dyn.compile(yaml.safe_load(BEAM))
    over = {
        "fx": {"steps": [[0.0, 0.0], [0.4, 4.0], [0.6, -4.0], [0.8, 0.0], [1.2, -4.0]]},
        "fy": {"steps": [[0.0, 4.0], [0.2, -4.0], [0.4, 0.0], [0.8, -4.0], [1.0, 4.0], [1.2, 0.0]]},
    }
    exact = fsm_dyn.simulate(graph, 1.42, inputs=over, **TIGHT)
    struck = 1.2 + np.sqrt(2.0 * 0.03 / 4.0)
    assert [round(x.time, 6) for x in exact.transitions if "impacts" in x.cause] == [round(struck, 6)]
    for step in (1e-3, 1e-4):
        run = fsm_dyn.simulate(graph, 1.42, method="moreau_jean", step=step, inputs=over)
        strikes = [x.time for x in run.transitions if "impacts" in x.cause]
        assert len(strikes) == 1
        assert abs(strikes[0] - struck) <= 2 * step
        np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=2 * step)


def test_a_start_inside_a_wall_is_named():
    run = fsm_dyn.simulate(
        fsm_dyn.compile("bouncing_ball"), 1.0, method="moreau_jean", step=1e-3, initial={"mode": "flight", "y": -0.01},
        on_failure="return",
    )  # fmt: skip
    assert run.outcome.name == "initial penetration"
    assert len(run.t) == 1


@pytest.mark.parametrize("model", ["felt_drop", "push_button"])
def test_a_step_too_long_for_a_compliant_contact_is_refused_with_the_longest_that_is_not(model):
    graph = fsm_dyn.compile(model)
    with pytest.raises(InputError, match="too long for a compliant contact") as refusal:
        fsm_dyn.simulate(graph, 0.5, method="moreau_jean", step=2e-3)
    longest = float(re.search(r"at most (\S+) s", str(refusal.value)).group(1))
    exact = fsm_dyn.simulate(graph, 0.5, **TIGHT)
    run = fsm_dyn.simulate(graph, 0.5, method="moreau_jean", step=longest)
    assert np.abs(run.q - np.array(exact.sample(run.t).q)).max() <= 0.05 * np.abs(exact.q).max()
    with pytest.raises(InputError, match="too long"):
        fsm_dyn.simulate(graph, 0.5, method="moreau_jean", step=1.2 * longest)


def test_longest_step_of_a_linear_spring_is_a_radian_of_its_oscillation():
    """A body on a compliant floor of stiffness K oscillates with sqrt(K/m)."""
    graph = fsm_dyn.compile(yaml.safe_load(FLOOR))
    radian = np.sqrt(2.0 / 5e4)
    with pytest.raises(InputError, match="too long") as refusal:
        fsm_dyn.simulate(graph, 0.5, method="moreau_jean", step=1e-2)
    longest = float(re.search(r"at most (\S+) s", str(refusal.value)).group(1))
    assert 0.9 * radian <= longest <= radian


FLOOR = """
fsm_dyn: 1
name: compliant_floor
parameters: {m: 2 kg, g: 9.81 m/s^2}
coordinates: {y: m}
points:
  C: {from: O, at: y*N.y}
bodies: {ball: {center: C, mass: m}}
speeds: {v: rate(y)}
contacts:
  ground: {gap: y, compliant: {stiffness: 5e4 N/m}}
loads:
  - {gravity: -g*N.y}
initial: {y: 0.01 m}
"""


def test_contact_problems_that_were_not_solved_are_reported():
    """Sweeps solve none of the first steps of the action at rest, the cone program does, until contacts slide."""
    graph = fsm_dyn.compile("piano_action")
    with pytest.raises(fsm_dyn.RunError, match=r"contact solve did not converge at t = 0\.1"):
        fsm_dyn.simulate(graph, 0.2, method="moreau_jean", step=5e-5)
    run = fsm_dyn.simulate(graph, 0.05, method="moreau_jean", step=5e-5)
    assert not run.transitions
    assert np.abs(run.q - run.q[0]).max() < 1e-12


PLATE = """
fsm_dyn: 1
name: plate
coordinates: {x: m, z: m, y: m}
parameters: {mu_s: 0.6, mu_k: 0.3}
inputs: {push: N}
points: {P: {from: O, at: x*N.x + z*N.z + y*N.y}}
bodies: {plate: {center: P, mass: 1 kg}}
loads: [{gravity: 10 m/s^2*(-N.y)}, {law: push*0.8, coordinate: x}, {law: push*0.6, coordinate: z}]
contacts: {table: {gap: y, slip: SLIP, friction: {static: mu_s, kinetic: mu_k}, restitution: 0}}
"""


@pytest.mark.parametrize("slip", ["rate(x)*0.8 + rate(z)*0.6", "[rate(x), rate(z)]"], ids=["plane", "space"])
@pytest.mark.parametrize(("push", "stays"), [(4.5, True), (-4.5, True), (6.6, False), (-6.6, False)])
def test_what_comes_to_rest_is_held_by_static_friction(slip, push, stays):
    """A plate slides against a push, stops, and goes back if the push is beyond its static limit: 6 N, 3 N kinetic."""
    graph = fsm_dyn.compile(yaml.safe_load(PLATE.replace("SLIP", slip)))
    speed = -np.sign(push)
    start = {"x_dot": 0.8 * speed, "z_dot": 0.6 * speed, "mode": "table_slide"}
    run = fsm_dyn.simulate(graph, 1.0, method="moreau_jean", step=1e-3, inputs={"push": push}, initial=start)
    exact = fsm_dyn.simulate(graph, 1.0, inputs={"push": push}, initial=start)
    stop = 1.0 / (abs(push) + 3.0)
    back = 0.5 * (abs(push) - 3.0) * (1.0 - stop) ** 2 * (not stays)
    way = speed * (0.5 * stop - back)
    assert exact.q[-1, :2] == pytest.approx([0.8 * way, 0.6 * way], abs=1e-9)
    assert run.q[-1, :2] == pytest.approx(exact.q[-1, :2], abs=8e-3)  # two steps of the motion back
    assert (np.abs(run.u[-1, :2]).max() < 1e-9) == stays


def test_a_ball_comes_to_rest_where_impacts_pile_up():
    graph = fsm_dyn.compile("bouncing_ball")
    run = fsm_dyn.simulate(graph, until=6.0, method="moreau_jean", step=1e-3)
    assert run.modes[-1] == "resting"
    events = fsm_dyn.simulate(graph, until=6.0)
    rest = next(x.time for x in run.transitions if x.target == "resting")
    assert abs(rest - events.transitions[-1].time) <= 0.1
    strikes = [x.time for x in run.transitions][:5]
    np.testing.assert_allclose(strikes, [x.time for x in events.transitions][:5], atol=2e-2)


def test_nothing_is_derived_for_it():
    """A ball dropped among the pegs meets combinations of contacts that no graph run has reached."""
    graph = fsm_dyn.compile("twelve_contacts")
    derived = {mode.name for mode in graph.automaton.modes}
    dropped, rough = {"mode": "falling", "x": 0.43, "y": 1.22}, {"mu": 0.8, "e": 0.0}
    simulator = fsm_dyn.Simulator(graph)
    run = simulator.run(2.0, method="moreau_jean", step=1e-3, initial=dropped, parameters=rough)
    assert run.outcome.name == "done"
    assert len(set(run.modes) - derived) >= 3
    assert simulator.extended_graph() is graph
    assert np.isfinite(run.rows.multiplier_table).all()


def test_impulses_push_and_energy_does_not_rise():
    graph = fsm_dyn.compile("bouncing_ball")
    run = fsm_dyn.simulate(graph, until=2.0, method="moreau_jean", step=1e-3)
    assert len(run.transitions) >= 3
    for strike in run.transitions:
        assert strike.cause == "ground impacts and rebounds"
        assert min(value[0] for value in strike.impulse.values()) >= 0.0
        assert strike.energy_after <= strike.energy_before * (1 + 1e-9)


def test_what_it_refuses():
    with pytest.raises(InputError, match="needs the length of its steps"):
        fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), until=1.0, method="moreau_jean")
    with pytest.raises(InputError, match="user-defined transitions"):
        fsm_dyn.simulate(fsm_dyn.compile("latch"), until=1.0, method="moreau_jean", step=1e-3)
    with pytest.raises(InputError, match="at once"):
        fsm_dyn.simulate(fsm_dyn.compile("newtons_cradle"), until=1.0, method="moreau_jean", step=1e-3)
    with pytest.raises(InputError, match="Newton"):
        fsm_dyn.simulate(
            fsm_dyn.compile(shipped("ball_in_corner", law="poisson")), 1.0, method="moreau_jean", step=1e-3
        )


TOWER = """
fsm_dyn: 1
parameters: {m: 1 kg, ratio: 2, g: 9.81 m/s^2}
coordinates: {y1: m, y2: m}
points:
  P1: {from: O, at: y1*N.y}
  P2: {from: O, at: (0.1 m + y2)*N.y}
bodies:
  lower: {center: P1, mass: m}
  upper: {center: P2, mass: ratio*m}
speeds: {v1: rate(y1), v2: rate(y2)}
contacts:
  on_ground: {gap: y1}
  on_lower: {gap: y2 - y1}
loads:
  - {gravity: -g*N.y}
"""


def test_a_contact_problem_that_is_not_solved_ends_the_run_by_name(tmp_path):
    """Sweeps over a heavy body on a light one converge as (ratio / (ratio + 1))^n."""
    (tmp_path / "tower.yaml").write_text(TOWER)
    tower = fsm_dyn.compile(tmp_path / "tower.yaml")
    stepped = {"method": "moreau_jean", "step": 1e-3}
    run = fsm_dyn.simulate(tower, 0.01, parameters={"ratio": 50.0}, **stepped)
    np.testing.assert_allclose(run.q, 0.0, atol=1e-12)
    with pytest.warns(UserWarning, match="10 of 10 contact problems were not solved, the first at t = 0 s"):
        fsm_dyn.simulate(tower, 0.01, parameters={"ratio": 80.0}, **stepped)
    with pytest.raises(fsm_dyn.RunError, match=r"contact solve did not converge(.|\n)*dopri5"):
        fsm_dyn.simulate(tower, 0.01, parameters={"ratio": 500.0}, **stepped)
    assert fsm_dyn.simulate(tower, 0.01, parameters={"ratio": 500.0}).outcome.name == "done"
