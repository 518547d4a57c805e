"""The command line: exit codes, what goes to which stream, and what is written."""

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn import models
from fsm_dyn.cli import app
from fsm_dyn.cli.settings import assignments
from fsm_dyn.cli.watching import watch
from fsm_dyn.errors import InputError, RunError

COMMANDS = ("new", "models", "schema", "check", "compile", "graph", "run", "demo")


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    assert call("--help").stdout.count(f"{command} ") >= 1


def test_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from fsm_dyn.cli import app\n"
        "try: app(['run', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'sympy', 'numba', 'matplotlib', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_wrong_command_or_option_is_bad_input():
    assert call("rnu").exit_code == 2
    assert call("run", "shopping_cart", "--untill", "3").exit_code == 2


def test_models_are_listed_with_their_summaries():
    result = call("models")
    assert result.exit_code == 0
    for name in models.names():
        assert name in result.stdout
    listed = json.loads(call("models", "--json").stdout)
    assert [entry["name"] for entry in listed] == models.names()
    assert all(entry["summary"] for entry in listed)


def test_new_writes_a_file_that_checks_and_never_overwrites(tmp_path):
    assert call("new", "door", "--dir", tmp_path).exit_code == 0
    path = tmp_path / "door.yaml"
    text = path.read_text()
    assert text.startswith("#") or "fsm_dyn: 1" in text
    path.write_text("mine")
    result = call("new", "door", "--dir", tmp_path)
    assert result.exit_code == 2
    assert "exists already" in result.stderr
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
    for word in ("latched", "combinations that cannot be", "no way out", "pivot", "1e-06"):
        assert word in result.stdout
    found = json.loads(call("check", "latch", "--json").stdout)
    assert found["counts"]["contacts"] == len(fsm_dyn.load("latch").contacts)
    assert found["counts"]["modes"] == len(found["modes"]) > 3
    assert len(found["pruned"]) == found["counts"]["pruned"]
    assert found["tolerances"]["gap"]["unit"] == "m"


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
    assert path.stat().st_size > 200
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
    assert "<mapping>" not in result.stderr


def test_a_malformed_file_is_bad_input_with_its_place(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("fsm_dyn: 1\nbodys: {}\n")
    result = call("check", path)
    assert result.exit_code == 2
    assert f"{path}:2:1" in result.stderr
    assert "did you mean 'bodies'" in result.stderr


def test_values_are_split_at_the_first_sign_and_lists_read():
    given = assignments("--set", ["mB=25 kg", "f = a==b", "lip=[809 mm, 12 mm]", "w=[[0 s, 1 N], [1 s, 2 N]]"])
    assert given == {
        "mB": "25 kg",
        "f": "a==b",
        "lip": ["809 mm", "12 mm"],
        "w": [["0 s", "1 N"], ["1 s", "2 N"]],
    }
    assert assignments("--set", None) is None


@pytest.mark.parametrize("text", ["mB", "=3", "mB=", "mB=[1, 2"])
def test_a_malformed_value_is_refused(text):
    with pytest.raises(InputError, match="--set"):
        assignments("--set", [text])
    with pytest.raises(InputError, match="twice"):
        assignments("--set", ["a=1", "a=2"])


def test_watch_runs_again_after_every_change_and_survives_errors(tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.yaml"
    path.write_text("one")
    steps = iter(["two", None, "three", "four"])
    seen = []

    def action():
        seen.append(path.read_text())
        if seen[-1] == "two":
            raise InputError("two is bad")
        if seen[-1] == "three":
            raise ZeroDivisionError

    def edit(_):
        try:
            text = next(steps)
        except StopIteration:
            raise KeyboardInterrupt from None
        if text is None:
            path.unlink()
        else:
            path.write_text(text * 2 if text == "x" else text)
            os.utime(path, ns=(time.time_ns(), time.time_ns() + len(seen)))

    monkeypatch.setattr(time, "sleep", edit)
    watch(path, action)
    assert seen == ["one", "two", "three", "four"]
    told = capsys.readouterr().err
    assert "two is bad" in told
    assert "ZeroDivisionError" in told
    assert told.rstrip().endswith("stopped watching")


def test_errors_become_exit_codes_and_bugs_pass_through():
    import typer

    from fsm_dyn.cli.console import reporting

    for error, code in ((InputError("x"), 2), (RunError("y"), 1)):

        @reporting
        def command(error=error):
            raise error

        with pytest.raises(typer.Exit) as caught:
            command()
        assert caught.value.exit_code == code

    @reporting
    def bug():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bug()
