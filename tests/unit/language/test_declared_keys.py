"""What follows from the declared keys: the tables of the language page, and the methods of the builder."""

import dataclasses
import inspect
import json
import re
from keyword import iskeyword
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.language.describe_keys import METHODS, METHODS_FILE, builder_methods, mapping_classes, with_tables
from fsm_dyn.language.keyed import KeyedMapping, keys_of
from fsm_dyn.language.loader import _LEFT_OUT, load
from fsm_dyn.language.mechanism_form import MechanismForm
from fsm_dyn.language.model import Body

PAGE = Path(__file__).parents[3] / "docs" / "language.md"


def test_the_tables_of_the_page_are_those_of_the_keys():
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run make language"


def test_the_page_has_a_table_of_every_mapping():
    marks = re.findall(r"<!-- keys: ([\w ]+) -->", PAGE.read_text(encoding="utf-8"))
    shown = {name for mark in marks for name in mark.split()}
    assert {cls.__name__ for cls in (MechanismForm, *mapping_classes(MechanismForm))} == shown


def test_the_methods_of_the_builder_are_those_of_the_keys():
    assert METHODS_FILE.read_text(encoding="utf-8") == builder_methods(), "run make language"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_of_the_builder_shows_its_keys(method):
    function = getattr(fsm_dyn.Model, method.name)
    keys = [f"{name}_" if iskeyword(name) else name for name in keys_of(method.cls)]
    shown = [item.name for item in inspect.signature(function).parameters.values() if item.kind is item.KEYWORD_ONLY]
    assert shown == keys
    assert all(f"\n{name} : Value, optional\n" in inspect.getdoc(function) for name in keys)


def data_classes(cls=KeyedMapping):
    for child in cls.__subclasses__():
        yield child
        yield from data_classes(child)


@pytest.mark.parametrize("cls", [cls for cls in data_classes() if cls.digested], ids=lambda cls: cls.__name__)
def test_no_field_is_forgotten_by_the_digest(cls):
    later = {attribute for attribute, key in keys_of(cls).values() if key.later}
    apart = {*_LEFT_OUT, *later, *({"tensor"} if cls is Body else ())}  # as inertia and about
    names = [item.name for item in dataclasses.fields(cls)]
    assert [name for name in names if name not in apart and name not in cls.digested] == []


def test_every_key_has_a_meaning():
    classes = (MechanismForm, *mapping_classes(MechanismForm))
    assert [f"{cls.__name__}.{name}" for cls in classes for name, (_, key) in keys_of(cls).items() if not key.doc] == []


def test_an_unknown_key_of_a_call_is_refused_with_its_place():
    model = fsm_dyn.Model("ball").coordinate("y", "m").point("P", from_="O", at="y*N.y")
    model.body("ball", center="P", mass="1 kg", inertai={"zz": "1 kg*m^2"})
    with pytest.raises(fsm_dyn.ModelError, match=r"test_declared_keys\.py:\d+:\d+: a body has no key 'inertai'"):
        model.mechanism()


def test_an_editor_finds_the_place_in_an_error():
    page = (PAGE.parent / "how_to" / "editor.md").read_text(encoding="utf-8")
    settings = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)]
    pattern = settings[-1]["tasks"][0]["problemMatcher"]["pattern"]
    with pytest.raises(fsm_dyn.ModelError) as caught:
        load("/models/ball.yaml", text="fsm_dyn: 1\nname: ball\nbodis: {}\n")
    found = re.match(pattern["regexp"], f"error: {caught.value}".splitlines()[0])
    shown = [found[pattern[part]] for part in ("file", "line", "column", "message")]
    assert shown == ["/models/ball.yaml", "3", "1", "a model has no key 'bodis'"]
