"""Older spellings of keys, states and events: same digest, one warning each, an error if both are given."""

import re

import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.renamed import RenamedWarning
from fsm_dyn.language.loader import load
from fsm_dyn.language.older_spellings import KEYS
from fsm_dyn.language.schema import json_schema

# One line for every section that has a key, state or event with an older spelling.
MODEL = """\
fsm_dyn: 1
name: block
coordinates: {x: m, y: m, q: rad}
frames: {B: {parent: N, rotate: {z: q}}}
points: {P: {from: O, at: x*N.x + y*N.y}, L: {from: O, at: -1 m*N.x}, R: {from: O, at: 1 m*N.x}}
bodies: {b: {frame: B, center: P, mass: 1 kg, inertia: {zz: 1 kg*m^2}}}
shapes: {table: {segment: {frame: N, ends: [L, R]}, side: N.y}}
contacts:
  hard: {gap: x, restitution: 0.5, restitution_law: poisson, sound_frequency: 220 Hz}
  soft: {gap: x + 1 m, compliant: {stiffness: 1 N/m, dissipation: 0.1 s/m}}
  face: {point: P, on: table}
  slot: {gap: y, bilateral: true, slip: rate(x), friction: 0.1}
  brake: {dry_friction: {speed: rate(q), static: 0.2 N*m, kinetic: 0.1 N*m}}
inputs: {push: N}
scenarios:
  pushed: {push: 1 N}
loads: [{force: push*N.x, at: P}]
modes:
  above: {slot: slide}
  below: {slot: slide_opposite, brake: slide}
transitions:
  - {from: "*", on: face leaves_face, stop: true}
on_nonunique: prefer_previous
ports:
  handle: {point: P, body: b, axes: [N.x], rotation: N.z}
variants:
  other: {ports: {handle: {rotation: -N.z}}}
"""
OLD = {
    "scenarios:": "drives:",
    "on_nonunique": "on_several",
    "rotation:": "twist:",
    "restitution_law": "law",
    "sound_frequency": "pitch",
    "dissipation": "loss",
    "slide_opposite": "slide_under",
    "brake: slide}": "brake: slip}",
    "leaves_face": "leaves",
}


def older(text: str) -> str:
    for new, old in OLD.items():
        assert new in text
        text = text.replace(new, old)
    return text


@pytest.mark.parametrize("variant", [None, "other"])
def test_digest_of_the_new_spelling(variant: str | None) -> None:
    mechanism = load("m.yaml", text=older(MODEL), variant=variant)
    assert mechanism.digest == load("m.yaml", text=MODEL, variant=variant).digest
    assert load("m.yaml", text=mechanism.text).digest == mechanism.digest
    assert "twist" not in mechanism.text  # a saved model has the new spelling


def test_one_warning_for_each_with_its_place(tmp_path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(older(MODEL))
    with pytest.warns(RenamedWarning) as caught:
        load(path)
    messages = [str(item.message) for item in caught]
    assert len(messages) == len(set(messages)) == len(OLD)
    before = older(MODEL).split("twist:")[0].split("\n")
    assert (
        f"{path}:{len(before)}:{len(before[-1]) + 1}: key 'twist' is called 'rotation' now" in messages
    )  # the first of two
    path.write_text(MODEL)
    load(path)  # no warning: they are errors in tests


@pytest.mark.parametrize("key", KEYS, ids=[key.old for key in KEYS])
def test_both_spellings_are_an_error(key) -> None:
    both = re.sub(rf"(?m)(^|[{{ ]){key.new}(: *)(\S[^,}}\n]*)?", rf"\1{key.new}\2\3, {key.old}\2\3", MODEL, count=1)
    if not key.section:
        both = MODEL + (f"{key.old}: prefer_previous\n" if key.old == "on_several" else f"{key.old}: {{}}\n")
    with pytest.raises(ModelError, match=f"'{key.old}' is the older spelling of '{key.new}'") as caught:
        load("m.yaml", text=both)
    assert caught.value.where.line == both[: both.index(f"{key.old}:")].count("\n") + 1


def test_messages_name_the_key_that_was_written() -> None:
    text = MODEL.replace("{point: P, body: b, axes: [N.x], rotation: N.z}", "{coordinate: x, twist: N.z}")
    with pytest.raises(ModelError, match="'twist' does not go with 'coordinate'"):
        load("m.yaml", text=text)


def test_schema_marks_them() -> None:
    schema = json_schema()
    for key in KEYS:
        properties = (schema["$defs"][key.form] if key.form else schema)["properties"]
        assert properties[key.old]["deprecated"]
        assert "deprecated" not in properties[key.new]
