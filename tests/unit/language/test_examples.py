"""The example in an error about a missing mapping is valid in the language."""

import importlib
import pkgutil

import pytest

from fsm_dyn import language as forms
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.form import EXAMPLES, Form, validated
from fsm_dyn.language.loader import load
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.yaml import compose

for module in pkgutil.iter_modules(forms.__path__):
    importlib.import_module(f"{forms.__name__}.{module.name}")


def forms_of(form=Form):
    for child in form.__subclasses__():
        yield child
        yield from forms_of(child)


FORMS = {form.what: form for form in forms_of()}
SECTIONS = [what for what in EXAMPLES if what in MechanismForm.allowed_keys()]


@pytest.mark.parametrize("what", [what for what in EXAMPLES if what in FORMS])
def test_an_example_fits_its_form(what):
    tree = compose(EXAMPLES[what], "example.yaml")
    (value,) = tree.values() if len(tree) == 1 else [tree]
    validated(FORMS[what], value)


@pytest.mark.parametrize("what", SECTIONS)
def test_an_example_fits_its_section(what):
    rest = "" if what == "bodies" else "bodies: {b: {center: O, mass: 1}}\n"
    validated(MechanismForm, compose(f"fsm_dyn: 1\n{rest}{EXAMPLES[what]}\n", "example.yaml"))


def test_every_form_of_the_language_has_an_example():
    alike = (
        "cylindrical joint",
        "universal joint",
        "ball joint",
        "planar joint",
        "weld",
        "pin-slider joint",
        "gear pair",
    )
    left = {what for what in FORMS if what not in EXAMPLES and not what.endswith((*alike, "rolling joint"))}
    assert left <= {"this", "a model", "a place to attach to"}


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
