"""Variants: changes by an overlay, and unchanged parts."""

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.components import split_name

TEXT = """
fsm_dyn: 1
name: drop
parameters: {m: 2 kg, e: 0.5}
coordinates: {y: m}
points: {P: {from: O, at: y*N.y}}
bodies: {block: {center: P, mass: m}}
contacts: {ground: {gap: y, restitution: e}}
loads:
  - {gravity: -10 m/s^2*N.y}
  - {force: 1 N*N.y, at: P, name: lift}
initial: {y: 1 m}
variants:
  felt: {contacts: {ground: {restitution: null, compliant: {stiffness: 1e5 N/m}}}}
  heavy: {parameters: {m: 3 kg}, loads: [{force: 2 N*N.y, at: P, name: lift}, {force: 1 N*N.x, at: P}]}
  plain: {name: other, loads: null}
"""


def test_mappings_merge_and_null_takes_out():
    felt = loader.load("drop", text=TEXT, variant="felt")
    assert felt.name == "drop-felt"
    assert felt.contacts["ground"].kind == "compliant"
    assert felt.contacts["ground"].gap.text == "y"
    assert felt.parameters["e"].values[0].text == "0.5"
    plain = loader.load("drop", text=TEXT, variant="plain")
    assert (plain.name, plain.loads) == ("other", ())


def test_loads_are_added_and_replaced_by_name():
    heavy = loader.load("drop", text=TEXT, variant="heavy")
    assert [load.value.text for load in heavy.loads] == ["-10 m/s^2*N.y", "2 N*N.y", "1 N*N.x"]


def test_the_model_itself_knows_its_variants_and_is_not_changed_by_them():
    base = loader.load("drop", text=TEXT)
    assert base.variants == ("felt", "heavy", "plain")
    without = loader.load("drop", text=TEXT[: TEXT.index("variants:")])
    assert base.digest == without.digest
    assert loader.load("drop", text=base.text).digest == base.digest


@pytest.mark.parametrize("variant", ["felt", "heavy", "plain"])
def test_the_text_of_a_variant_stands_for_itself(variant):
    chosen = loader.load("drop", text=TEXT, variant=variant)
    assert loader.load("again", text=chosen.text).digest == chosen.digest


def test_named_after_a_colon(tmp_path):
    (tmp_path / "drop.yaml").write_text(TEXT)
    graph = fsm_dyn.compile(f"{tmp_path}/drop.yaml:felt")
    assert graph.name == "drop-felt"
    with pytest.raises(ModelError, match="did you mean 'felt'"):
        fsm_dyn.load(f"{tmp_path}/drop.yaml:fellt")
    with pytest.raises(InputError, match="no shipped model"):
        fsm_dyn.load("drop_of:felt")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a:b", ("a:b", None)),
        ("ab:c", ("ab", "c")),
        (r"C:\x.yaml", (r"C:\x.yaml", None)),
        ("x/y.yaml", ("x/y.yaml", None)),
    ],
)
def test_what_a_colon_separates(text, parts):
    assert split_name(text) == parts
