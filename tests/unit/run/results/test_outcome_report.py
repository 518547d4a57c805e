"""How runs end that cannot go on: state, the candidates examined and the numbers, in words and as a picture."""

import numpy as np
import pytest
import yaml

import fsm_dyn
from fsm_dyn import plot
from tests.pictures import is_drawn

SLIDER = """
fsm_dyn: 1
name: corridor
parameters: {m: 1, r: 0.1, width: 0.5}
coordinates: [x]
inputs: [push]
points:
  C: {from: O, at: x*N.x}
bodies:
  ball: {center: C, mass: m}
contacts:
  left: {gap: x - r}
  right: {gap: width - x - r}
loads:
  - {force: push*N.x, at: C}
initial: {x: 0.2}
"""

PADDLE = """
fsm_dyn: 1
name: paddle
parameters: {m: 1, k: 10}
coordinates: [x, y]
points:
  C: {from: O, at: x*N.x}
  D: {from: O, at: y*N.x}
bodies:
  ball: {center: C, mass: m}
contacts:
  touch: {gap: y - x}
modes:
  riding: {touch: closed}
loads:
  - {force: k*(0.2-y)*N.x, at: D}
initial: {mode: riding, x: 0.1}
"""

TOGGLE = """
fsm_dyn: 1
name: toggle
parameters: {m: 1}
coordinates: [x]
points:
  C: {from: O, at: x*N.x}
bodies:
  ball: {center: C, mass: m}
memory: {n: 0}
transitions:
  - {from: "*", when: "x > 1e-10*n", set: {n: n + 1}, because: it passed}
initial: {x: -0.5, x_dot: 1}
"""


SLED = """
fsm_dyn: 1
name: sled
parameters: {m: 1, J: 0.1, mu: 0.1, rough: 0.3, a: 1}
coordinates: [x, y, q]
frames:
  B: {parent: N, rotate: {z: q}}
points:
  C: {from: O, at: x*N.x + y*N.y}
  L: {from: C, at: -a*B.x}
  R: {from: C, at: a*B.x}
bodies:
  sled: {frame: B, center: C, mass: m, inertia: {zz: J}}
loads:
  - {gravity: -9.81*N.y}
contacts:
  rear:   {gap: "dot(pos(L), N.y)", slip: "dot(vel(L), N.x)", friction: mu}
  middle: {gap: "dot(pos(C), N.y)", slip: "dot(vel(C), N.x)", friction: rough}
  front:  {gap: "dot(pos(R), N.y)", slip: "dot(vel(R), N.x)", friction: mu}
initial: {x_dot: 1}
"""

HEMMED_IN = """
fsm_dyn: 1
name: hemmed_in
parameters: {m: 1, e: 1}
coordinates: [x]
impacts: sequential
points:
  C: {from: O, at: x*N.x}
bodies:
  ball: {center: C, mass: m}
contacts:
  left:  {gap: x, restitution: e}
  right: {gap: -x, restitution: e}
initial: {x_dot: 1}
"""


def ended(text, **options):
    return fsm_dyn.simulate(fsm_dyn.compile(yaml.safe_load(text)), 2.0, on_failure="return", **options)


def test_a_run_that_is_done_says_no_more():
    run = ended(SLIDER)
    assert run.describe_outcome() == ("done at t = 2 s in mode 'all_free'",)


def test_a_jam_tells_its_candidates_in_words_in_the_file_and_in_the_picture(tmp_path):
    graph = fsm_dyn.compile("sliding_rod")
    run = fsm_dyn.simulate(
        graph, 1.0, parameters={"mu": 2.0}, initial={"mode": "sliding", "q": 2.2, "vx": 1.0}, on_failure="return"
    )
    words = run.describe_outcome()
    assert words[0] == "inconsistent contact state at t = 0 s in mode 'sliding'"
    assert any(line.startswith("state: x = 0") for line in words)
    tried = [line for line in words if line.startswith("tried: ")]
    assert any("foot: penetrating acceleration" in line for line in tried)
    assert any("foot: tensile normal force" in line for line in tried)
    assert fsm_dyn.open_run(run.save(tmp_path / "rod.run.json")).describe_outcome() == words
    picture = plot.outcome(run)
    assert "foot: tensile normal force" in picture.texts[-1].get_text()
    assert is_drawn(plot.save(picture, tmp_path / "rod.png"))


def test_report_of_nonunique_contact_state(tmp_path):
    """The rod of Painlevé while it turns fast: its foot may lift, or jam on, and nothing in rigid contact decides."""
    start = {"mode": "sliding", "q": 2.2, "vx": 1.0, "w": 5.0}
    graph = fsm_dyn.compile("sliding_rod")
    run = fsm_dyn.simulate(graph, 1.0, parameters={"mu": 2.0}, initial=start, on_failure="return")
    assert run.outcome.name == "non-unique contact state"
    assert sum(line.endswith(": consistent") for line in run.describe_outcome()) == 2
    assert is_drawn(plot.save(plot.outcome(run), tmp_path / "rod.png"))


def test_report_of_nonunique_motion_under_friction(tmp_path):
    """Three feet, the middle one rougher: how they share the weight decides how fast the sled stops."""
    several = ended(SLED)
    assert several.outcome.name == "non-unique contact state"
    assert is_drawn(plot.save(plot.outcome(several), tmp_path / "sled.png"))
    in_slots = ended(SLED.replace("mu}", "mu, bilateral: true}").replace("rough}", "rough, bilateral: true}"))
    assert in_slots["x"][-1] == pytest.approx(1.0 / (2.0 * 0.5 / 3.0 * 9.81), rel=1e-9)  # on equal springs
    alike = ended(SLED, parameters={"rough": 0.1})
    assert alike.outcome.name == "done"
    assert alike["x"][-1] == pytest.approx(1.0 / (2.0 * 0.1 * 9.81), rel=1e-9)


def test_report_of_impact_sequence_that_does_not_terminate(tmp_path):
    run = ended(HEMMED_IN)
    assert run.outcome.name == "impact sequence does not terminate"
    assert "left: approach velocity -1 m/s" in run.describe_outcome()
    assert is_drawn(plot.save(plot.outcome(run), tmp_path / "ball.png"))
    assert ended(HEMMED_IN, parameters={"e": 0.5}).outcome.name == "done"


def test_a_start_inside_a_wall_tells_how_deep():
    run = ended(SLIDER, initial={"x": 0.07})
    assert run.outcome.name == "initial penetration"
    assert "left: penetration 0.03 m" in run.describe_outcome()


def test_what_has_no_inertia_is_reported():
    run = ended(PADDLE)
    assert run.outcome.name == "singular configuration"
    assert "mass matrix singular along y_dot unless a contact constrains it" in run.describe_outcome()


def test_chatter_tells_the_transitions_it_is_made_of():
    run = ended(TOGGLE)
    assert run.outcome.name == "chattering"
    assert sum("it passed" in line for line in run.describe_outcome()) == 6


@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_a_combination_that_is_not_listed_ends_the_run_by_its_name(strategy):
    tree = yaml.safe_load(SLIDER) | {"modes": {"only_listed": True, "free": {"left": "open", "right": "open"}}}
    graph = fsm_dyn.compile(tree)
    run = fsm_dyn.simulate(graph, 2.0, inputs={"push": 1.0}, strategy=strategy, on_failure="return")
    assert run.outcome.name == "mode not listed"
    assert run.t[-1] == pytest.approx(np.sqrt(0.4), abs=1e-9)
    assert "tried: right_closed" in run.describe_outcome()
    with pytest.raises(fsm_dyn.RunError, match="right_closed"):
        fsm_dyn.simulate(graph, 2.0, inputs={"push": 1.0}, strategy=strategy)


def test_walls_without_play_do_not_brace_each_other():
    graph = fsm_dyn.compile(yaml.safe_load(SLIDER))
    assert "exclude each other" in graph.infeasible["left_closed+right_closed"]
    simulator = fsm_dyn.Simulator(graph)
    settings = {"parameters": {"width": 0.2}, "initial": {"x": 0.1}, "strategy": "compiled"}
    for push, bears in ((1.0, "right_closed"), (-1.0, "left_closed")):
        run = simulator.run(1.0, inputs={"push": push}, **settings)
        assert run.modes[-1] == bears
        assert run.outcome.name == "done"
        assert run.q[-1] == pytest.approx([0.1], abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_states_are_drawn_of_a_run_that_ended_at_once(tmp_path):
    run = ended(SLIDER, initial={"x": 0.07})
    assert len(run) == 1
    assert is_drawn(plot.save(plot.states(run), tmp_path / "states.png"))


def test_a_controller_that_ends_every_step_is_named():
    graph = fsm_dyn.compile("magnetic_latch")
    fast = fsm_dyn.simulate(graph, until=1.0, parameters={"T": 1e-6}, max_steps=500, on_failure="return")
    told = [line for line in fast.describe_outcome() if line.startswith("controller servo (")]
    assert len(told) == 1
    assert float(told[0].split("sampled ")[1].split()[0]) == pytest.approx(500, abs=2)
    slow = fsm_dyn.simulate(graph, until=1.0, parameters={"T": 0.1}, max_steps=20, on_failure="return")
    assert slow.outcome.name == "too many steps"
    assert not any("controller" in line for line in slow.describe_outcome())
