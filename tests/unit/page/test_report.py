"""The report: one file, in which nothing is asked for and nothing a model says becomes markup."""

import base64
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.page import report
from fsm_dyn.page.playback import PlaybackFrames, from_trajectory

NAUGHTY = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def cart():
    return fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), until=3.0)


def data_of(text):
    return json.loads(re.search(r'id="playback-data">(.*?)</script>', text, re.DOTALL)[1])


def test_modules_become_one_script():
    """Each module once, before those that import it; every name that is imported is handed out."""
    script = report.bundled("app")
    names = re.findall(r"^const module_(\w+) = ", script, re.MULTILINE)
    files = {path.stem for path in (report.STATIC / "js").glob("*.js")} - {"models"}  # of the page of all models
    assert set(names) == files
    assert len(names) == len(files)
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    for name in names:
        source = (report.STATIC / "js" / f"{name}.js").read_text(encoding="utf-8")
        for wanted, other in re.findall(r'import \{ ([^}]*) \} from "\./(\w+)\.js"', source):
            assert names.index(other) < names.index(name)
            body = script[script.index(f"const module_{other} =") :]
            given = re.search(r"^return \{ (.*?) \};\n\}\)", body, re.MULTILINE)[1].split(", ")
            assert set(wanted.split(", ")) <= set(given)


def test_frames_are_those_of_the_run(cart):
    film = from_trajectory(cart)
    text = report.report_text(film)
    data = data_of(text)
    places, clocks = data["frames"]["places"], data["frames"]["clocks"]
    numbers = np.frombuffer(base64.b64decode(data["frames"]["data"]), "<f4")
    assert len(places) == len(clocks) + 1
    assert places[-1] == len(numbers)
    assert clocks[0] == 0.0
    assert clocks[-1] == 3.0
    playback = PlaybackFrames(film)
    for k in (0, len(clocks) // 2, len(clocks) - 1):
        whole = playback.frame(film.number(clocks[k]))
        assert numbers[places[k] : places[k + 1]] == pytest.approx(whole, rel=1e-6, abs=1e-6)
    for x in cart.transitions:  # both sides of every transition are there
        assert x.time in clocks
    told = [cart.reading.sentences.cause(k) for k in range(len(cart.transitions))]
    assert [item["cause"] for item in data["transition_details"]] == told


def test_nothing_is_loaded_and_names_stay_text(tmp_path):
    model = fsm_dyn.load("bouncing_ball")
    text = model.text.replace(model.summary, NAUGHTY)
    path = tmp_path / "ball.yaml"
    path.write_text(text, encoding="utf-8")
    graph = fsm_dyn.compile(str(path))
    out = report.write_report(fsm_dyn.simulate(graph, until=0.2), tmp_path / "ball.html", graph)
    page = out.read_text(encoding="utf-8")
    assert data_of(page)["model"]["summary"] == NAUGHTY
    assert "<img" not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "default-src 'none'" in page


def test_the_commands_that_write_one(tmp_path):
    target = tmp_path / "cart.html"
    found = CliRunner().invoke(app, ["run", "shopping_cart", "--until", "0.5", "--html", str(target)])
    assert found.exit_code == 0, found.output
    assert f"wrote {target}" in found.output
    assert data_of(target.read_text(encoding="utf-8"))["model"]["playback"]["span"] == [0.0, 0.5]
    refused = CliRunner().invoke(app, ["view", "shopping_cart", "--html", str(target)])
    assert refused.exit_code == 2
    assert "fsm-dyn run" in refused.output


def test_a_path_that_cannot_be_written(cart, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        report.write_report(cart, tmp_path / "nowhere" / "report.html")


def test_what_writes_animations_comes_along(cart):
    script = report.gif_encoder()
    assert not re.search(r"\b(import|export)\b\s*[{\w]", script)
    handed = script[script.rindex("return {") :]
    assert {"GIFEncoder", "quantize", "applyPalette"} <= set(re.findall(r"[{,](\w+):", handed))
    assert report.report_text(from_trajectory(cart)).count("const gifEncoder") == 1


def test_what_draws_in_space_comes_along_where_it_is_needed_and_no_further(cart):
    script = report.drawing_in_space()
    assert len(script) < 1.3e6
    assert "@license" in script
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    handed = script[script.rindex("\nreturn {", 0, script.rindex("})((() => {")) :].split("}", 1)[0]
    names = {piece.split(":")[0].split(" as ")[-1].strip(" {\n") for piece in handed[8:].split(",")}
    used = re.findall(r"\bT\.(\w+)", (report.STATIC / "js" / "scene3d.js").read_text(encoding="utf-8"))
    assert len(set(used)) > 10
    assert set(used) <= names
    assert "const inSpace" not in report.report_text(from_trajectory(cart))
    ball = fsm_dyn.simulate(fsm_dyn.compile("billiard_ball"), until=0.05)
    text = report.report_text(from_trajectory(ball))
    assert text.count("const inSpace") == 1
    assert len(text) < 3e6
