"""Variants: changes by an overlay, and unchanged parts."""

import warnings

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError, UnusedWarning, VariantWarning
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


@pytest.mark.parametrize(
    ("overlay", "section", "meant"),
    [
        ("{parameters: {mm: 3 kg}}", "parameters", "m"),
        ("{parameters: {kg: 3 kg}}", "parameters", ""),
        ("{parameters: {mass: 3 kg}}", "parameters", ""),
        ("{coordinates: {yy: m}}", "coordinates", "y"),
        ("{inputs: {push: N}, schedule: {push: 3 N}}", "inputs", ""),
        ("{memory: {count: 0}}", "memory", ""),
        ("{points: {PP: {from: O, at: y*N.y}}}", "points", "P"),
    ],
)
def test_a_variant_adds_no_quantity_that_nothing_uses(overlay, section, meant):
    text = TEXT.replace("plain: {name: other, loads: null}", f"plain: {overlay}")
    word = overlay[1:].split("{")[1].split(":")[0]
    remedy = f"did you mean '{meant}'" if meant else "name it in an expression, or omit it"
    with pytest.raises(ModelError) as caught:
        loader.load("drop", text=text)
    assert (
        caught.value.message == f"in variant plain: the model has no '{word}' among its {section}, and nothing uses it"
    )
    assert (caught.value.where.line, caught.value.found) == (16, word)
    assert caught.value.remedy.startswith(remedy)


@pytest.mark.parametrize(
    "overlay",
    [
        "{parameters: {mm: 3 kg}, bodies: {block: {mass: 2*mm}}}",
        "{memory: {count: 0}, transitions: [{from: '*', on: ground closes, set: {count: 1}}]}",
        "{outputs: {high: y}, requirements: {low: always high < 2 m}}",
    ],
)
def test_a_variant_adds_what_it_uses(overlay):
    text = TEXT.replace("plain: {name: other, loads: null}", f"plain: {overlay}")
    assert loader.load("drop", text=text, variant="plain").name == "drop-plain"


def test_a_variant_warns_of_an_added_load_named_almost_as_another():
    text = TEXT.replace("at: P, name: lift}, {force: 1", "at: P, name: lifft}, {force: 1")
    with pytest.warns(VariantWarning, match="drop:15:.*in variant heavy: loads has no 'lifft' in the model; did you"):
        loader.load("drop", text=text)


USING = "fsm_dyn: 1\ncoordinates: [x]\npoints: {P: {from: O, at: x*N.x}}\nbodies: {b: {center: P, mass: 1}}\n"


@pytest.mark.parametrize("line", ["parameters: {spare: 3}", "inputs: [spare]", "memory: {spare: 0}"])
def test_a_model_warns_of_what_nothing_uses(line):
    text = USING + line
    with pytest.warns(UnusedWarning, match=r"m:5:\d+: nothing uses 'spare' of .*omit it"):
        loader.load("m", text=text)


@pytest.mark.parametrize(
    "user",
    [
        "outputs: {o: 2*spare}",
        "requirements: {r: peak(x) < spare}",
        "variants: {v: {outputs: {o: spare}}}",
    ],
)
def test_what_is_used_anywhere_is_not_warned_of(user):
    text = USING + "parameters: {spare: 3}\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedWarning)
        loader.load("m", text=text + user)


def test_a_model_without_a_name_is_read_again_from_its_text(tmp_path):
    """Graphs and runs keep the text of a model, not the file whose name it had."""
    path = tmp_path / "nameless.yaml"
    path.write_text(
        "fsm_dyn: 1  # without a name\ncoordinates: {x: m}\npoints: {P: {from: O, at: x*N.x}}\n"
        "bodies: {ball: {center: P, mass: 1 kg}}\n"
        "initial: {x_dot: 1 m/s}\nvariants: {fast: {initial: {x_dot: 2 m/s}}}\n"
    )
    for name in (path, f"{path}:fast"):
        graph = fsm_dyn.compile(name)
        graph.save(tmp_path / "graph.json")
        again = fsm_dyn.open_graph(tmp_path / "graph.json")
        assert again.name == graph.name
        run = fsm_dyn.simulate(graph, 1.0)
        run.save(tmp_path / "run.npz")
        assert fsm_dyn.open_run(tmp_path / "run.npz").q[-1][0] == run.q[-1][0]
