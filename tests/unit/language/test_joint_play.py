"""Backlash and clearance in a model file: expansion, names, and refused cases."""

import json

import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import describe_keys
from fsm_dyn.language.loader import load

MODEL = """
fsm_dyn: 1
parameters: {b: 0.5 deg}
joints:
  hinge: {revolute: {child: A, at: O, axis: N.z, KEYS}}
points: {C: {from: A_origin, at: 10 mm*A.x}, D: {from: O, at: 10 mm*N.x}}
bodies: {arm: {frame: A, center: O, mass: 1 kg, inertia: {zz: 1e-3 kg*m^2}}}
"""


def model(keys):
    return MODEL.replace("KEYS", keys)


def test_the_mode_graph_has_the_contacts_of_a_backlash():
    graph = fsm_dyn.compile(load(text=model("backlash: b")))
    assert {"all_free", "hinge_lower_closed", "hinge_upper_closed"} <= set(graph.modes)


def test_a_clearance_makes_coordinates_across_the_axis_and_a_contact():
    mechanism = load(text=model("range: [-1 deg, 1 deg], clearance: {value: 20 um, sound_frequency: 200 Hz}"))
    assert list(mechanism.coordinates) == ["hinge", "hinge_x", "hinge_y"]
    assert [c.range == () for c in mechanism.coordinates.values()] == [False, True, True]
    assert mechanism.contacts["hinge_clearance"].sound_frequency.text == "200 Hz"
    assert mechanism.joints["hinge"].kind == "planar"
    assert mechanism.joints["hinge"].clearance.text == "20 um"


@pytest.mark.parametrize(
    ("keys", "message", "at"),
    [
        ("backlash: 0 deg", "the backlash of 'hinge' is not positive", "0 deg"),
        ("clearance: -20 um", "the clearance of 'hinge' is not positive", "-20 um"),
        ("backlash: 20 um", "m|unit|dimension", "20 um"),
        ("clearance: 0.5 deg", "m|unit|dimension", "0.5 deg"),
        ("backlash: {restitution: 0.1}", "lacks the key 'value'", "backlash"),
        ("backlash: {value: b, friction: 0.1}", "a backlash has no key 'friction'", "friction"),
        ("backlash: {value: b, restitution: 1.5}", "the restitution of 'hinge_lower' is impossible", "1.5"),
        ("backlash: {value: b, restitution: 0, compliant: {stiffness: 1 N*m}}", "is compliant and has", "restitution"),
        ("clearance: {value: 20 um, friction: 0.1}", "has the key 'friction' but not 'radius'", "friction"),
        ("clearance: {value: 20 um, radius: 3 mm}", "has the key 'radius' but not 'friction'", "radius"),
        ("backlash: [1 deg, 2 deg]", "a backlash must be a mapping", "[1 deg"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(keys, message, at):
    with pytest.raises(ModelError, match=message) as caught:
        load("play.yaml", text=model(keys))
    line = model(keys).splitlines()[4]
    assert (caught.value.where.file, caught.value.where.line) == ("play.yaml", 5)
    assert caught.value.where.column == line.index(at) + 1


def test_a_joint_that_closes_a_loop_has_no_coordinate_for_a_backlash():
    text = (
        model("backlash: b").replace("at: O", "at: [C, D]") + "frames: {A: {rotate: {z: q}}}\ncoordinates: {q: rad}\n"
    )
    text = text.replace("A_origin", "O")
    with pytest.raises(ModelError, match="'hinge' has a backlash but no coordinate that it bounds"):
        load(text=text)


@pytest.mark.parametrize("turn", ["frames: {B: {rotate: {x: q}}}", "frames: {B: {body: zx, angles: [q, 0]}}"])
def test_a_gear_pair_with_backlash_needs_angles_about_its_axis(turn):
    text = model("rates: true").replace(
        "points:", "  mesh: {gear: {parent: A, child: B, axis: N.z, ratio: 2, backlash: b}}\npoints:"
    )
    with pytest.raises(ModelError, match="the backlash of gear 'mesh' needs the angle of its child") as caught:
        load(text=f"{text}{turn}\ncoordinates: {{q: rad}}\n")
    assert "gap" in caught.value.remedy


def test_a_name_of_a_contact_that_is_taken_is_refused():
    with pytest.raises(ModelError, match="a joint makes 'hinge_lower', which already exists"):
        load(text=model("backlash: b") + "contacts: {hinge_lower: {gap: hinge}}\n")


def test_in_a_component_the_contacts_get_its_name_in_front():
    inside = model("backlash: b, clearance: 1 mm") + 'transitions: [{from: "*", on: hinge_upper closes, stop: true}]\n'
    lines = "".join(f"      {line}\n" for line in inside.splitlines() if line)
    whole = load(
        text="fsm_dyn: 1\ncoordinates: {z: m}\npoints: {Z: {from: O, at: z*N.z}}\n"
        "bodies: {weight: {center: Z, mass: 1 kg}}\n"
        f"use:\n  left:\n    model:\n{lines}modes: {{pressed: {{left_hinge_upper: closed}}}}\n"
    )
    assert list(whole.contacts) == ["left_hinge_lower", "left_hinge_upper", "left_hinge_clearance"]
    assert whole.transitions[0].on == ("left_hinge_upper", "closes")
    assert "left_b" in whole.contacts["left_hinge_lower"].gap.text


def test_calls_make_the_same_model_as_the_file():
    made = fsm_dyn.Model("play").parameter("b", "0.5 deg")
    made.joint(
        "hinge", revolute={"child": "A", "at": "O", "axis": "N.z", "backlash": {"value": "b", "restitution": 0.2}}
    )
    made.body("arm", frame="A", center="O", mass="1 kg", inertia={"zz": "1e-3 kg*m^2"})
    text = model("backlash: {value: b, restitution: 0.2}").replace("fsm_dyn: 1", "fsm_dyn: 1\nname: play")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("points"))
    assert made.mechanism().digest == load(text=text).digest
    assert load(text=made.to_yaml()).digest == made.mechanism().digest


def test_the_schema_has_both_forms():
    revolute = describe_keys.json_schema()["$defs"]["RevoluteForm"]["properties"]
    assert '"type": ["string", "number"]' in json.dumps(revolute["backlash"]) or "$ref" in json.dumps(
        revolute["backlash"]
    )
