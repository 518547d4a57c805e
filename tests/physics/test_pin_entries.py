"""The section ``pins``: other parents, places, owners, names, outputs, limits, wear."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import fsm_dyn

MODELS = Path(__file__).parents[2] / "yaml_models"
G = 9.81


def shipped(name, **sections):
    text = (MODELS / f"{name}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(?<=[{ ])on:", '"on":', text)  # a boolean to readers of YAML 1.1
    return {**yaml.safe_load(text), **sections}


def run_of(model, until, **options):
    return fsm_dyn.simulate(fsm_dyn.compile(model), until, **options)


@pytest.mark.parametrize(("side", "drive"), [("-drum", -0.00356727), ("drum", 0.0)])
def test_cord_of_an_escapement(side, drive):
    """A weight on the wrong side of its drum pulls the wheel back: the clock goes by a couple that nothing gives."""
    model = shipped("escapement_anchor", pins={"cord": {"between": ["W", "weight"]}})
    model["points"]["Q"]["at"] = f"{side}*N.x - (60 mm + drum*w)*N.y"
    pins = run_of(model, 0.001).pins
    assert pins["cord"].info.parent == "W"
    np.testing.assert_allclose(pins["N_W"].torque[0, 2], drive, rtol=2e-6, atol=1e-12)
    weight = run_of(shipped("escapement_anchor", pins={}), 0.001).pins["N_weight"]
    np.testing.assert_allclose(pins["cord"].force[0], weight.force[0], rtol=1e-12)


@pytest.mark.parametrize("name", ["escapement_anchor", "escapement_deadbeat"])
def test_arbors_of_shipped_clocks_carry_the_weight(name):
    """Newton for wheel and weight together: no motor turns the arbor, which carries both, less what falls."""
    graph = fsm_dyn.compile(name)
    run = fsm_dyn.simulate(graph, 0.3)
    free = np.array(run.modes) == "all_free"
    assert free.sum() > 5
    pins, g = run.pins, 9.81
    falling = 0.02 * 0.01 * g / (2e-5 + 0.02 * 0.01**2)  # of the wheel, rad/s^2
    np.testing.assert_allclose(pins["N_W"].torque[:, 2], 0.0, atol=1e-12)
    np.testing.assert_allclose(pins["N_W"].force[free, 1], 0.07 * g - 0.02 * 0.01 * falling, rtol=1e-9)
    np.testing.assert_allclose(pins["cord"].force[free, 1], 2e-5 / 0.01 * falling, rtol=1e-9)


def test_roller_pin_of_the_stem():
    """The force at a point of two bodies depends on whose it is: the load there is on its owner."""
    model = shipped("cam_roller_follower")
    model["bodies"]["wheel"]["center"] = "follower_origin"
    model["constraints"]["touching"]["position"] = "norm(pos(follower_origin, C)) - (R + b)"
    model["joints"]["mesh"]["rolling"]["along"] = "cross(N.z, pos(follower_origin, C))/(R + b)"
    of_stem = run_of(model, 0.001).pins["pin"]
    model["pins"] = {"pin": {"between": ["follower", "wheel"], "owns": "follower_origin"}}
    of_roller = run_of(model, 0.001).pins["pin"]
    np.testing.assert_allclose(of_roller.force[0, :2], [2.711500, -11.005417], rtol=1e-6)
    np.testing.assert_allclose(of_stem.force[0, :2], [0.257410, 0.710084], rtol=2e-6)


def two_links(**sections):
    return shipped("double_pendulum_with_stop", **sections)


def test_names_and_places():
    plain = run_of(two_links(), 0.1)
    centre = next(name for name in two_links()["points"] if name != "O")
    knee = {"between": ["A", "B"], "at": centre, "outputs": ["force", "force_y"]}
    entries = {"hip": {"between": ["N", "A"]}, "knee": knee}
    run = run_of(two_links(pins=entries), 0.1)
    assert list(run.pins)[:2] == ["hip", "knee"]
    np.testing.assert_array_equal(run.rows.x, plain.rows.x)
    knee, before = run.pins["knee"], plain.pins["A_B"]
    np.testing.assert_allclose(knee.force, before.force, rtol=1e-12, atol=1e-12)
    moved = before.torque + np.cross(before.at - knee.at, before.force)
    np.testing.assert_allclose(knee.torque, moved, rtol=1e-11, atol=1e-12)
    assert run.columns[-2:] == ("pin.knee.force", "pin.knee.force_y")
    np.testing.assert_array_equal(run["pin.knee.force_y"], knee.force[:, 1])


def test_loop_by_its_segments():
    model = shipped("seven_body_mechanism", pins={"tip": {"between": ["K2", "K3"]}})
    pins = run_of(model, 1e-4).pins
    np.testing.assert_allclose(pins["tip"].force[0, :2], [98.566870396241, -6.122688344256], rtol=1e-10)
    assert pins["tip"].info.kind == "rows"
    assert "loop3" not in pins


def test_limits_are_requirements():
    limits = {"hip": {"between": ["N", "A"], "limits": {"force": "1 N", "impulse": "10 N*s"}}}
    verdicts = run_of(two_links(pins=limits), 0.2).judge()
    assert verdicts["hip_force_limit"].verdict == "violated"
    met = verdicts["hip_impulse_limit"]
    assert met.verdict == "met"
    largest = np.linalg.norm([0.598176, 0.553302])
    assert met.margin == pytest.approx(10.0 - largest, rel=1e-6)
    assert met.unit == "N*s"


def test_entries_that_are_refused():
    """Of two entries about one connection one would be passed over; a limit that nothing can keep is a mistake."""
    twice = two_links(pins={"hip": {"between": ["N", "A"], "outputs": ["force"]}, "N_A": {"limits": {"force": "9 N"}}})
    with pytest.raises(fsm_dyn.ModelError, match="connection 'hip' and connection 'N_A' are the same one"):
        list(run_of(twice, 0.01).pins)
    with pytest.raises(fsm_dyn.ModelError, match="the force of connection 'hip' is not positive"):
        run_of(two_links(pins={"hip": {"between": ["N", "A"], "limits": {"force": "0 N"}}}), 0.01)


def test_wear_of_a_swinging_bob():
    """Let go at the height of its pin a bob is pulled by 3 m g cos s: down to the lowest point 3 m g r of work."""
    m, r = 0.4, 0.005
    model = {
        "fsm_dyn": 1,
        "name": "bob",
        "joints": {"pin": {"revolute": {"child": "B", "at": "O", "axis": "N.z"}}},
        "points": {"P": {"from": "O", "at": "-0.5 m*B.y"}},
        "bodies": {"bob": {"frame": "B", "center": "P", "mass": f"{m} kg", "inertia": {"zz": "0 kg*m^2"}}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "modes": {"swinging": {}},
        "transitions": [{"name": "low", "when": "pin", "crossing": "falling", "from": "swinging", "stop": True}],
        "pins": {"pin": {"wear": {"rate": "2e-15 m^2/N", "area": "50 mm^2", "radius": f"{r} m"}}},
        "initial": {"pin": "90 deg"},
    }
    run = run_of(model, 1.0)
    found = run.wear["pin"]
    assert found.work[-1] == pytest.approx(3.0 * m * G * r, rel=1e-7)
    assert found.sliding[-1] == pytest.approx(0.5 * np.pi * r, rel=1e-9)
    assert found.depth[-1] == pytest.approx(2e-15 / 50e-6 * found.work[-1], rel=1e-12)


def test_wear_of_a_sliding_block():
    """Down a guide at an angle the block wears by m g cos a times its way, whatever drives it."""
    model = {
        "fsm_dyn": 1,
        "name": "slide",
        "joints": {"guide": {"prismatic": {"child": "B", "at": "O", "parent": "R", "axis": "R.x"}}},
        "frames": {"R": {"rotate": {"z": "-30 deg"}}},
        "bodies": {"block": {"frame": "B", "center": "B_origin", "mass": "2 kg", "inertia": {"zz": "1 kg*m^2"}}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "pins": {"guide": {"wear": {"rate": "1e-14 m^2/N", "area": "100 mm^2"}}},
    }
    run = run_of(model, 0.5)
    way = 0.5 * G * 0.5 * 0.5**2
    found = run.wear["guide"]
    assert found.sliding[-1] == pytest.approx(way, rel=1e-9)
    assert found.work[-1] == pytest.approx(2.0 * G * np.cos(np.radians(30.0)) * way, rel=1e-9)


def test_friction_of_a_latch():
    run = run_of("latch_door", 0.2)
    assert run.energy.friction["touch_face2"][-1] == pytest.approx(7.836136e-3, rel=1e-6)


REFUSED = {
    "{hip: {between: [N, C]}}": "there is no frame or body 'C'",
    "{hip: {between: [A, A]}}": "between a segment and itself",
    "{hop: {outputs: force}}": "there is no connection 'hop'",
    "{N_A: {at: Z}}": "there is no point 'Z'",
    "{N_A: {outputs: fource}}": "did you mean 'force'",
    "{N_A: {limits: {force: 1 N*m}}}": "is in",
    "{N_A: {wear: {rate: 1e-15 m^2, area: 1 mm^2}}}": "is in",
    "{N_A: {wear: {rate: 1e-15 m^2/N}}}": "lacks the key 'area'",
    "{N_A: {limit: {force: 1 N}}}": "did you mean 'limits'",
}


@pytest.mark.parametrize("entry", REFUSED)
def test_refused_entries(entry):
    with pytest.raises(fsm_dyn.ModelError) as refused:
        fsm_dyn.load(two_links(pins=yaml.safe_load(entry)))
    assert REFUSED[entry] in str(refused.value)


def test_segments_in_the_other_order():
    run = run_of(two_links(pins={"knee": {"between": ["B", "A"]}}), 0.01)
    with pytest.raises(fsm_dyn.ModelError, match=r"write between: \[A, B\]"):
        list(run.pins)


def test_study_of_the_force_in_a_pin():
    """The peak of a study is that of each run, also where several runs are made in one call."""
    graph = fsm_dyn.compile(two_links())
    name = next(iter(graph.automaton.mechanism.parameters))
    values = [float(graph.values[name]) * k for k in (0.9, 1.0, 1.2)]
    found = fsm_dyn.study(graph, {name: values}, outputs=["pin.A_B.force"], until=0.1)
    for value, case in zip(values, found.rows, strict=True):
        run = run_of(two_links(), 0.1, parameters={name: value})
        assert case.maximum["pin.A_B.force"] == pytest.approx(run.extremes("pin.A_B.force").maximum, rel=1e-12)
    with pytest.raises(fsm_dyn.InputError, match="no connection 'A_C'"):
        fsm_dyn.study(graph, {name: values}, outputs=["pin.A_C.force"], until=0.1)


def test_wear_of_a_braked_box_as_quantities(tmp_path):
    """Friction stops it after v^2/(2 mu g): columns, requirements, and the depth by hand."""
    mu, m, v, rate, area = 0.3, 2.0, 1.5, 3e-14, 4e-4
    away, work = v**2 / (2.0 * mu * 9.81), m * v**2 / (2.0 * mu)
    limits = {"fine": "final(pin.table.depth) < 0.6 nm", "worn": "final(pin.table.depth) < 0.5 nm",
              "short": "final(pin.table.sliding) < 0.4 m", "least": "final(pin.table.work) > 7.4 J"}  # fmt: skip
    box = {
        "fsm_dyn": 1, "name": "box", "initial": {"x_dot": f"{v} m/s"}, "requirements": limits,
        "joints": {"x": {"prismatic": {"child": "S", "at": "O", "axis": "N.x"}},
                   "y": {"prismatic": {"parent": "S", "child": "B", "at": "S_origin", "axis": "S.y"}}},
        "bodies": {"box": {"frame": "B", "center": "B_origin", "mass": f"{m} kg"}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "contacts": {"table": {"gap": "dot(pos(B_origin), N.y)", "slip": "dot(vel(B_origin), N.x)", "friction": mu,
                               "restitution": 0}},
        "pins": {"table": {"wear": {"rate": f"{rate} m^2/N", "area": f"{area} m^2"}}},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(box), until=1.0)
    wanted = {"sliding": away, "work": work, "depth": rate * work / area}
    for part, value in wanted.items():
        assert run[f"pin.table.{part}"][-1] == pytest.approx(value, rel=1e-12)
    verdicts = {name: item.verdict for name, item in run.judge().items()}
    assert verdicts == {"fine": "met", "worn": "violated", "short": "met", "least": "met"}
    heading, *_, last = run.to_csv(tmp_path / "box.csv", pins=True).read_text().splitlines()
    written = dict(zip(heading.split(","), last.split(","), strict=True))
    assert float(written["pin.table.depth [m]"]) == run["pin.table.depth"][-1]
    assert "pin.table.work [J]" in written
    refused = {"always pin.table.depth < 1 nm": "adds up", "final(pin.y.depth) < 1 nm": "nothing is known",
               "final(pin.table.depth) < 1 N": "is in N"}  # fmt: skip
    for formula, reason in refused.items():
        with pytest.raises(fsm_dyn.ModelError, match=reason):
            fsm_dyn.compile({**box, "requirements": {"bad": formula}})


@pytest.mark.parametrize("entry", [None, {}, {"limits": None}, {"limits": {}}])
@pytest.mark.parametrize("name", ["hip", "string"])
def test_an_entry_without_a_statement_is_refused(name, entry):
    with pytest.raises(fsm_dyn.ModelError, match="no key is given, so it has no effect"):
        fsm_dyn.load(two_links(pins={name: entry}))


def test_a_contact_called_as_a_function_may_have_an_entry():
    model = shipped("double_pendulum_with_stop", pins={"floor": {"between": ["A", "B"], "limits": {"force": "9 N"}}})
    assert [*fsm_dyn.load(model).requirements] == ["floor_force_limit"]
