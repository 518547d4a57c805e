"""Stated ranges of coordinates: where runs may begin, where they end and by which name, and that they cost no bit."""

import re

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import loader, models
from fsm_dyn.language.scales import own_scales
from fsm_dyn.language.values import parameter_values
from fsm_dyn.runtime.abi import Status

METHODS = [("dopri5", {}), ("rk4", {"step": 0.013}), ("radau", {}), ("bdf", {})]


def block(*bounds, pull="0 N"):
    """A block on a rail that begins at 0 with 1 m/s."""
    return {
        "fsm_dyn": 1, "name": "block", "parameters": {"far": "0.3 m", "pull": pull},
        "coordinates": {"x": {"unit": "m", "range": list(bounds)}},
        "points": {"P": {"from": "O", "at": "x*N.x"}}, "bodies": {"block": {"center": "P", "mass": "1 kg"}},
        "loads": [{"force": "pull*N.x", "at": "P"}], "initial": {"x_dot": "1 m/s"},
    }  # fmt: skip


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_a_run_ends_in_the_instant_in_which_a_coordinate_leaves_its_range(method, options):
    """x = t - t^2/2 with a force of -1 N: the upper bound 0.3 m is left at t = 1 - sqrt(0.4) s."""
    run = fsm_dyn.simulate(fsm_dyn.compile(block("-1 m", "far", pull="-1 N")), 3.0, method=method, **options)
    assert run.outcome.code == Status.LEFT_RANGE
    assert not run.outcome.failed
    assert run.outcome.sentence == "x leaves its range at the upper bound 0.3 m."
    assert run.describe_outcome()[1] == "x leaves its range at the upper bound 0.3 m"
    # the location of events has the accuracy of the method's tolerances, rtol 1e-8 by default
    assert run.record.t[-1] == pytest.approx(1.0 - np.sqrt(0.4), abs=1e-7)
    assert run.transitions[-1].cause == "x leaves its range at the upper bound far"


def test_the_lower_bound_and_a_parameter_that_moves_it():
    graph = fsm_dyn.compile(block("-far", "inf", pull="-1 N"), parameters={"far": "0.5 m"})
    run = fsm_dyn.simulate(graph, 9.0)
    assert run.outcome.sentence == "x leaves its range at the lower bound -0.5 m."
    assert run.record.t[-1] == pytest.approx(1.0 + np.sqrt(2.0), abs=1e-7)


FROM = {
    "a start at the bound": ({"x_dot": "-1 m/s"}, {}, 0.0),
    "a force at the bound": ({"x_dot": "0 m/s"}, {"loads": [{"force": "-1 N*N.x", "at": "P"}]}, 2e-6),
    "a reset": ({"x": "0.1 m"}, {"reset": {"x": "2 m"}}, 0.125),
    "a reset to the bound": ({"x": "0 m"}, {"reset": {"x": "far"}}, 0.125),
    "an impulse": ({"x_dot": "0 m/s"}, {"impulse": [{"along": "-1 N*s", "coordinate": "x"}]}, 0.125),
}


@pytest.mark.parametrize("strategy", ["compiled", "online"])
@pytest.mark.parametrize("cause", FROM)
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_a_bound_that_is_left_where_it_is_reached_is_noticed(method, options, cause, strategy):
    initial, change, time = FROM[cause]
    model = block("0 m", "far")
    model["initial"] |= initial
    if "loads" in change:
        model |= change
    elif change:
        model["transitions"] = [{"from": "*", "when": "t - 0.125 s", **change}]
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 3.0, method=method, strategy=strategy, **options)
    assert run.outcome.code == Status.LEFT_RANGE
    assert run.record.t[-1] == pytest.approx(time, abs=2e-6 if time == 2e-6 else 1e-9)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_what_a_contact_turns_back_at_a_bound_has_not_left_it(method, options, restitution):
    """Falls, bounces and then rests on the very bound of its range; the impact is decided first."""
    model = block("0 m", "inf", pull="-9.81 N")
    model |= {"contacts": {"stop": {"gap": "x", "restitution": restitution}}, "initial": {"x": "0.1 m"}}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 3.0, method=method, **options)
    assert run.outcome.code == Status.DONE
    assert run.labels[-1] == "stop_closed"


def test_time_stepping_ends_with_the_first_step_that_leaves():
    run = fsm_dyn.simulate(fsm_dyn.compile(block("-1 m", "far")), 3.0, method="moreau_jean", step=0.013)
    assert run.outcome.code == Status.LEFT_RANGE
    assert run.record.t[-1] == pytest.approx(24 * 0.013)  # 23 steps lead to 0.299 m
    assert run.describe_outcome()[1] == "x leaves its range at the upper bound 0.3 m"


def test_the_sentence_is_kept_in_the_file_of_a_run(tmp_path):
    run = fsm_dyn.simulate(fsm_dyn.compile(block("-1 m", "far")), 3.0)
    run.save(tmp_path / "run.json")
    assert fsm_dyn.open_run(tmp_path / "run.json").outcome == run.outcome


def test_a_start_outside_is_refused_with_name_value_and_bounds(tmp_path):
    path = tmp_path / "block.yaml"
    path.write_text(
        "fsm_dyn: 1\ncoordinates:\n  x: {unit: m, range: [0 m, 1 m]}\npoints: {P: {from: O, at: x*N.x}}\n"
        "bodies: {block: {center: P, mass: 1 kg}}\ninitial: {x: 2 m}\n"
    )
    with pytest.raises(ModelError) as caught:
        fsm_dyn.compile(path)
    assert str(caught.value).startswith(f"{path}:3:3: the motion would begin with 'x' outside its range")
    assert "found: x = 2 (SI units)" in str(caught.value)
    assert "allowed: 0 to 1" in str(caught.value)
    graph = fsm_dyn.compile(block("-1 m", "far"))
    with pytest.raises(ModelError, match="outside its range"):
        fsm_dyn.simulate(graph, 1.0, initial={"x": 0.4})
    assert fsm_dyn.simulate(graph, 0.1, initial={"x": -1.0}).outcome.code == Status.DONE  # a bound belongs to it


@pytest.mark.parametrize("joint", ["revolute", "prismatic"])
def test_a_joint_states_the_range_of_its_coordinate(joint):
    unit = "rad" if joint == "revolute" else "m"
    model = {
        "fsm_dyn": 1, "parameters": {"m": "1 kg"},
        "joints": {"j": {joint: {"child": "A", "at": "O", "axis": "N.z", "range": [f"-1 {unit}", f"0.5 {unit}"]}}},
        "bodies": {"arm": {"frame": "A", "center": "A_origin", "mass": "m", "inertia": {"zz": "1 kg*m^2"}}},
        "initial": {"j_dot": f"1 {unit}/s"},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.0)
    assert run.outcome.sentence == f"j leaves its range at the upper bound 0.5 {unit}."
    with pytest.raises(ModelError, match="no coordinate that it bounds"):
        fsm_dyn.load({**model, "joint_coordinates": "absolute", "initial": {}})


@pytest.mark.parametrize("name", ["piano_action_simple"])
def test_within_its_ranges_a_model_runs_to_the_same_bits_as_without(name, tmp_path):
    text = models.resolve(name).read_text(encoding="utf-8")
    plain, count = re.subn(r"\{unit: (\w+), range: \[.*?\]\}", r"\1", text)
    assert count > 0
    (tmp_path / f"{name}.yaml").write_text(plain, encoding="utf-8")
    graphs = [fsm_dyn.compile(name), fsm_dyn.compile(tmp_path / f"{name}.yaml")]
    scales = [own_scales(g.automaton.mechanism, parameter_values(g.automaton.mechanism)) for g in graphs]
    assert scales[0] == scales[1]
    runs = [fsm_dyn.simulate(graph, 2.0, scenario="slow") for graph in graphs]
    assert runs[0].outcome.code == Status.DONE
    for column in ("t", "x", "mode"):
        assert getattr(runs[0].record, column).tobytes() == getattr(runs[1].record, column).tobytes()


def test_ranges_make_no_edges():
    graph = fsm_dyn.compile(block("-1 m", "far"))
    assert graph.nx.number_of_edges() == 0


JOINT = """
fsm_dyn: 1
name: bounded
joints: {{j: {{{joint}}}}}
bodies: {{b: {{frame: L, center: L_origin, mass: 1 kg, inertia: {{xx: 1 kg*m^2, yy: 1 kg*m^2, zz: 1 kg*m^2}}}}}}
loads: [{{force: "{force}", at: L_origin}}, {{torque: "{torque}", on: b}}]
"""


@pytest.mark.parametrize(
    ("joint", "force", "torque", "left", "way"),
    [
        ("cylindrical: {child: L, at: O, axis: N.x, range: {slide: [0 m, 0.5 m], turn: [-2, 2]}}", "x", "x/10",
         "j_slide leaves its range at the upper bound 0.5 m", 0.5),
        ("cylindrical: {child: L, at: O, axis: N.x, range: {turn: [-0.1 rad, inf]}}", "x", "-x",
         "j_turn leaves its range at the lower bound -0.1 rad", 0.1),
        ("universal: {child: L, at: O, axis: [N.x, L.y], range: {2: [-0.1, 0.2]}}", "0", "y", "j_2 leaves", 0.2),
        ("planar: {child: L, at: O, axis: N.z, range: {y: [-1 m, 0.2 m]}}", "y", "0", "j_y leaves", 0.2),
        ("pin_slider: {child: L, at: O, axis: N.x, pin: N.z, range: {turn: [-1, 0.3]}}", "0", "z", "j_turn", 0.3),
        ("ball: {child: L, at: O, angles: xyz, range: {3: [-1, 0.2]}}", "0", "z", "j_3 leaves", 0.2),
        ("free: {child: L, at: O, angles: xyz, range: {z: [-1 m, 0.2 m]}}", "z", "0", "j_z leaves", 0.2),
    ],
)  # fmt: skip
def test_each_coordinate_of_a_joint_may_have_a_range(joint, force, torque, left, way):
    """From rest under one newton on 1 kg, or one newton metre on 1 kg m², the bound is met after √(2 way)."""
    pushes = {letter: f"N.{letter}" for letter in "xyz"}

    def vector(text, unit):
        if text == "0":
            return f"0 {unit}*N.x"
        sign, size = ("-" if text[0] == "-" else ""), (0.1 if "/10" in text else 1.0)
        return f"{sign}{size} {unit}*{pushes[text.lstrip('-')[0]]}"

    model = JOINT.format(joint=joint, force=vector(force, "N"), torque=vector(torque, "N*m"))
    run = fsm_dyn.simulate(fsm_dyn.compile(loader.load(text=model)), 3.0)
    assert run.outcome.name == "left its range"
    assert left in run.outcome.sentence
    assert run.t[-1] == pytest.approx(np.sqrt(2.0 * way), abs=1e-9)


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        ("planar: {child: L, at: O, axis: N.z, range: {yy: [-1 m, 0.2 m]}}", "no coordinate 'yy' .*did you mean 'y'"),
        ("ball: {child: L, at: O, range: {1: [-1, 0.2]}}", "Euler parameters have no ranges"),
        ("cylindrical: {child: L, at: O, axis: N.x, range: [0 m, 1 m]}", "must be a mapping"),
        ("weld: {child: L, at: O, range: {x: [0 m, 1 m]}}", "no key 'range'"),
    ],
)
def test_a_range_of_no_coordinate_is_refused(joint, words):
    with pytest.raises(ModelError, match=f"(?s){words}"):
        loader.load(text=JOINT.format(joint=joint, force="1 N*N.x", torque="0 N*m*N.x"))
