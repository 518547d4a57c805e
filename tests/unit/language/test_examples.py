"""The example in an error about a missing mapping is valid in the language."""

import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.describe_keys import mapping_classes
from fsm_dyn.language.keyed import keys_of
from fsm_dyn.language.loader import load
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.yaml import LocatedStr, compose

CLASSES = mapping_classes(MechanismForm)
LINES = {name: key.kind.line for name, (_, key) in keys_of(MechanismForm).items() if key.kind.line}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_example_fits_its_mapping(cls):
    tree = compose(cls.example, "example.yaml")
    ((word, value),) = tree.items() if len(tree) == 1 else [(LocatedStr("one"), tree)]
    cls.read(value, word)


@pytest.mark.parametrize("name", LINES)
def test_an_example_fits_its_section(name):
    rest = "" if name == "bodies" else "bodies: {b: {center: O, mass: 1}}\n"
    MechanismForm.read(compose(f"fsm_dyn: 1\n{rest}{LINES[name]}\n", "example.yaml"))


def test_every_section_of_names_has_an_example():
    sections = {name for name, (_, key) in keys_of(MechanismForm).items() if "by name" in key.kind.word}
    assert sections <= set(LINES)


@pytest.mark.parametrize(
    ("line", "example"),
    [
        ("frames: {B: {rotate: [N.z, q]}}", "such as `rotate: {z: q}`"),
        ("bodies: {b: {center: O, mass: 1, inertia: 0.01}}", "such as `inertia: {zz: 0.01 kg*m^2}`"),
        ("shapes: {s: {segment: [[0, 0], [1, 0]]}}", "such as `segment: {points: [[0, 0], [1 m, 0]]}`"),
    ],
)
def test_an_error_shows_it(line, example):
    rest = "" if line.startswith("bodies") else "bodies: {b: {center: O, mass: 1}}\n"
    with pytest.raises(ModelError) as caught:
        load("m.yaml", text=f"fsm_dyn: 1\nname: m\ncoordinates: {{q: rad}}\n{rest}{line}\n")
    assert example in str(caught.value)
