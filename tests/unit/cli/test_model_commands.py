"""Commands about models: `new`, `models`, `schema`, `check`, `compile`, `graph`."""

import json
import re

import pytest

import fsm_dyn
from fsm_dyn.language import models
from tests.pictures import is_drawn
from tests.unit.cli.conftest import call

SLIDE = """
fsm_dyn: 1
name: slide
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {block: {center: P, mass: 1 kg}}
contacts: {left: {gap: x + 0.1 m}, right: {gap: 0.3 m - x}}
"""


def test_the_listing_of_models_agrees_with_the_models():
    for item in json.loads(call("models", "--json").stdout):
        mechanism = fsm_dyn.load(item["name"])
        assert item["summary"] == mechanism.summary
        assert item["variants"] == list(mechanism.variants)


def test_models_are_listed_with_their_summaries():
    result = call("models")
    assert result.exit_code == 0
    for name in models.names():
        assert name in result.stdout
    listed = json.loads(call("models", "--json").stdout)
    assert [(entry["theme"], entry["name"]) for entry in listed] == [
        (theme, name) for theme, own in models.by_theme().items() for name in own
    ]
    assert sorted(entry["name"] for entry in listed) == models.names()
    assert all(f"\n{theme}:\n" in result.stdout for theme in models.THEMES)
    assert {name for own in models.THEMES.values() for name in own} == {*models.names()}
    assert all(entry["summary"] for entry in listed)


def test_new_writes_a_file_that_checks_and_never_overwrites(tmp_path):
    assert call("new", "door", "--dir", tmp_path).exit_code == 0
    path = tmp_path / "door.yaml"
    text = path.read_text()
    assert text.startswith("#") or "fsm_dyn: 1" in text
    path.write_text("mine")
    result = call("new", "door", "--dir", tmp_path)
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["1door", "a/b", "do or", ".."])
def test_new_refuses_what_cannot_name_a_mechanism(tmp_path, name):
    assert call("new", name, "--dir", tmp_path).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_json(tmp_path):
    schema = json.loads(call("schema").stdout)
    assert {"coordinates", "contacts", "initial"} <= set(schema["properties"])
    assert call("schema", "--out", tmp_path / "s.json").exit_code == 0
    assert json.loads((tmp_path / "s.json").read_text()) == schema


def test_an_unknown_model_is_bad_input_on_stderr():
    result = call("check", "shoping_cart")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean 'shopping_cart'" in result.stderr


def test_check_counts_modes_and_prints_the_tolerances():
    result = call("check", "latch")
    assert result.exit_code == 0
    for word in ("latched", "infeasible modes", "terminal modes", "pivot", "1e-06"):
        assert word in result.stdout
    found = json.loads(call("check", "latch", "--json").stdout)
    assert found["counts"]["contacts"] == len(fsm_dyn.load("latch").contacts)
    assert found["counts"]["modes"] == len(found["modes"]) > 3
    assert len(found["infeasible"]) == found["counts"]["infeasible"]
    assert found["tolerances"]["gap"]["unit"] == "m"
    assert "geometry" not in found


def test_check_geometry(tmp_path):
    path = tmp_path / "slide.yaml"
    path.write_text(SLIDE)
    result = call("check", str(path), "--geometry")
    assert result.exit_code == 0, result.output
    assert "left closed and right closed  x would be -0.1 with left closed and 0.3 with right closed" in result.stdout
    assert "1 impossible, 4 possible, 0 undecided" in result.stdout
    assert "of 4 combinations of contact states 1 are impossible, 3 possible, 0 undecided" in result.stdout
    found = json.loads(call("check", str(path), "--geometry", "--json").stdout)["geometry"]
    assert (found["combinations"], found["remaining"], len(found["verdicts"])) == (4, 3, 5)


def test_proofs_are_written_and_checked(tmp_path):
    path, proofs = tmp_path / "slide.yaml", tmp_path / "proofs.json"
    path.write_text(SLIDE)
    result = call("check", str(path), "--proofs", str(proofs))
    assert result.exit_code == 0, result.output
    assert "1 proofs, 1 boxes" in result.output
    result = call("check", str(path), "--check-proofs", str(proofs))
    assert result.exit_code == 0, result.output
    assert "hold: contradictions verified in 1 boxes" in result.stdout
    tampered = json.loads(proofs.read_text())
    tampered["proofs"][0]["conditions"] = tampered["proofs"][0]["conditions"][:1]
    proofs.write_text(json.dumps(tampered))
    result = call("check", str(path), "--check-proofs", str(proofs))
    assert result.exit_code == 2
    assert "the proof that excludes left closed and right closed does not hold" in result.output


def test_reach_lists_and_draws_what_runs_visit(tmp_path):
    result = call("check", "latch", "--reach", "1")
    assert result.exit_code == 0, result.output
    assert "modes never entered: riding+seat_closed" in result.stdout
    assert "terminal modes: none" in result.stdout
    found = json.loads(call("check", "latch", "--reach", "1", "--json").stdout)["exploration"]
    assert found["never_entered"] == ["riding+seat_closed"]
    dot = call("graph", "latch", "--reach", "1", "--format", "dot").stdout
    assert "style=dashed" in dot
    assert re.search(r"\d+ of \d+: ", dot)
    assert json.loads(call("graph", "latch", "--reach", "0", "--json").stdout)["runs"] == 1
    machine = json.loads(call("graph", "latch", "--format", "transitions").stdout)
    assert machine["initial"] in machine["states"]


def test_compile_saves_an_automaton_that_graph_and_check_read(tmp_path):
    path = tmp_path / "disk.json"
    assert call("compile", "rolling_disk", "--save", path).exit_code == 0
    listed = json.loads(call("compile", path, "--json").stdout)
    assert {mode["name"] for mode in listed["modes"]} == {"rolling", "sliding", "flying"}
    assert call("check", path).exit_code == 0


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".dot", ".mmd"])
def test_graph_writes_what_the_suffix_says(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    result = call("graph", "shopping_cart", "--out", path)
    assert result.exit_code == 0
    if suffix in (".dot", ".mmd"):
        assert all(name in path.read_text() for name in ("rolling", "sticking", "caster_axis sticks"))
    else:
        assert is_drawn(path)
    assert str(path) in result.stdout


def test_graph_as_text_goes_to_the_terminal():
    assert call("graph", "shopping_cart", "--format", "dot").stdout.startswith('digraph "shopping_cart"')
    assert call("graph", "shopping_cart", "--format", "mermaid").stdout.startswith("flowchart")
    edges = json.loads(call("graph", "shopping_cart", "--json").stdout)["edges"]
    assert {(edge["source"], edge["target"]) for edge in edges} >= {("rolling", "sticking"), ("sticking", "rolling")}


def test_a_wrong_format_is_bad_input_before_anything_is_compiled(tmp_path):
    result = call("graph", "no_such_model", "--out", tmp_path / "graph.gif")
    assert result.exit_code == 2
    assert ".svg" in result.stderr


@pytest.mark.parametrize(
    ("option", "told"),
    [("tau_stik=1 N*m", "did you mean 'tau_stick'"), ("mB=2 m", "wrong unit"), ("mB=__import__('os')", "mB")],
)
def test_a_wrong_parameter_is_bad_input(option, told):
    result = call("compile", "shopping_cart", "--set", option)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.startswith("error: ")


def test_a_malformed_file_is_bad_input_with_its_place(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("fsm_dyn: 1\nbodys: {}\n")
    result = call("check", path)
    assert result.exit_code == 2
    assert f"{path}:2:1" in result.stderr
    assert "did you mean 'bodies'" in result.stderr


def test_a_mechanism_that_is_nowhere_cannot_be_drawn(tmp_path):
    path = tmp_path / "nowhere.yaml"
    path.write_text(
        "fsm_dyn: 1\nparameters: {l: 1 m, z: 0 kg}\ncoordinates: {x: m}\n"
        "points: {P: {from: O, at: x*N.x + l*(1 kg)/z*N.y}}\nbodies: {b: {center: P, mass: 1 kg}}\n"
    )
    result = call("run", path, "--until", "0.01", "--motion", "--out", tmp_path)
    assert result.exit_code == 2
    assert "cannot be drawn" in result.stderr
