"""The command ``export``: what it refuses, with exit code 2 and a remedy, and where it writes."""

import json

import pytest
from typer.testing import CliRunner

import fsm_dyn.language.models
from fsm_dyn.cli.console import app
from tests.exports.building import quick_units


def call(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def ball(tmp_path):
    """Return a function that writes the ball's model under another name, with other lines."""

    def write(name, more=""):
        text = fsm_dyn.language.models.find("bouncing_ball").read_text(encoding="utf-8")
        path = tmp_path / "model.yaml"
        path.write_text(text.replace("name: bouncing_ball", f"name: {name}") + more, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("latch", "--to", "fmu4"), "not one of 'c99', 'cortex-m', 'fmu2', 'fmu3', 'html'"),
        (("ltch",), "did you mean 'latch'?"),
        (("latch", "--method", "rk5"), "remedy: did you mean 'rk4'?"),
        (("latch", "--method", "radau"), "remedy: leave the method out"),
        (("latch", "--method", "rk4"), "on the command line --step '1 ms'"),
        (("latch", "--real", "float", "--to", "fmu3"), "allowed: c99, cortex-m of floats"),
        (("latch", "--spare-modes", "100"), "allowed: 0 to 64"),
        (("latch", "--spare-modes", "4"), "remedy: leave spare modes out"),
        (("latch", "--set", "k=1"), "no parameter 'k'"),
        (("latch", "--input", "pusch=1 N"), "remedy: did you mean 'push'?"),
        (("latch", "--scenario", "slam"), "no scenario 'slam'"),
    ],
)
def test_what_is_refused(arguments, words, tmp_path):
    done = call(*arguments, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "more", "options", "words"),
    [
        ("runtime", "", (), "remedy: rename the model"),
        ("ball", "outputs: {count: y}\n", (), "remedy: rename one of them"),
        ("ball", "numerics: {rtol: 1e-10}\n", ("--real", "float"), "'rtol' is too small for floats"),
    ],
)
def test_a_model_that_cannot_leave(ball, tmp_path, name, more, options, words):
    done = call(ball(name, more), *options, "--out", tmp_path / "out")
    assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert words in done.stderr


@pytest.mark.parametrize("target", ["c99", "fmu3", "html"])
def test_folders_that_cannot_be_written(target, tmp_path, monkeypatch):
    """The reason is that of the system, also where it is known of one file only."""
    quick_units(monkeypatch)
    (tmp_path / "mine.txt").write_text("kept")
    for out, words in ((tmp_path / "mine.txt", "is a file"), ("/proc/no/such", "No such file"), ("/proc", "/proc ")):
        done = call("latch", "--to", target, "--out", out)
        assert done.exit_code == 2
        assert words in done.stderr
        assert "remedy: name" in done.stderr
        assert "None" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    done = call("latch", "--to", "fmu3", "--out", tmp_path / "out")
    assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert "remedy: install one (Debian, Ubuntu: the package gcc" in done.stderr


@pytest.mark.parametrize(("target", "ending"), [("fmu3", "fmu"), ("html", "html")])
def test_a_file_can_be_named(ball, tmp_path, monkeypatch, target, ending):
    """By its folder, which may hold other files, or by itself; a name that C does not allow as its identifier."""
    quick_units(monkeypatch)
    model = ball("a-ball")
    for out, file in ((".", f"a_u2d_ball.{ending}"), (f"named.{ending}", f"named.{ending}")):
        done = call(model, "--to", target, "--out", tmp_path / out, "--json")
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["file"] == str(tmp_path / file)
        assert (tmp_path / file).stat().st_size > 100_000
    (tmp_path / f"folder.{ending}").mkdir()
    done = call(model, "--to", target, "--out", tmp_path / f"folder.{ending}")
    assert done.exit_code == 2
    assert "is a folder" in done.stderr


def test_the_files_of_a_folder_are_listed(tmp_path):
    done = call("latch", "--modes-only", "--out", tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert found["folder"] == str(tmp_path / "out")
    assert {"latch.c", "latch.h", "main.c", "runtime/fsm_runtime.c"} <= set(found["files"])
    assert "latch_input_push = 0, // N; 25.0 at the start" in (tmp_path / "out" / "latch.h").read_text()
