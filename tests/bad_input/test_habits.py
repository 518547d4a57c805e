"""Words and signs that a newcomer brings from elsewhere are answered by those of the language."""

import json

import pytest
import yaml
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app

DROP = """\
fsm_dyn: 1
name: drop
parameters: {g: 9.81 m/s^2}
coordinates: {y: m}
points: {P: {from: O, at: y*N.y}}
bodies: {ball: {center: P, mass: 1 kg}}
speeds: {v: "dot(vel(P), N.y)"}
initial: {y: 1 m}
"""


@pytest.mark.parametrize(
    ("wrong", "right", "place", "remedy"),
    [
        ("forces: [{gravity: -g*N.y}]", "loads: [{gravity: -g*N.y}]", "9:1", "'loads'"),
        ("gravity: -g*N.y", "loads: [{gravity: -g*N.y}]", "9:1", "'loads'"),
        ("drawing: {N: {line: [[-1, 0], [1, 0]]}}", "view: {N: {line: [[-1, 0], [1, 0]]}}", "9:1", "'view'"),
        ("loads: [{gravity: -g*N.Y}]", "loads: [{gravity: -g*N.y}]", "9:19", "N.y"),
        (
            "loads: [{force: (1 N if y > 0 m else 2 N)*N.y, at: P}]",
            'loads: [{force: "where(y > 0 m, 1 N, 2 N)*N.y", at: P}]', "9:17", "where(condition, a, b)",
        ),
        (
            'loads: [{force: "(y > 0 m ? 1 N : 2 N)*N.y", at: P}]',
            'loads: [{force: "where(y > 0 m, 1 N, 2 N)*N.y", at: P}]', "9:17", "where(condition, a, b)",
        ),
        ("outputs: {h: y + 0,5 m}", "outputs: {h: y + 0.5 m}", "9:20", "decimals have a point"),
        ('outputs: {h: "y + 0,5 m"}', 'outputs: {h: "y + 0.5 m"}', "9:14", "decimals have a point"),
        (
            "shapes: {s: {segment: {points: [[-1 m, 0 m], [1 m, 0 m]], side: N.y}}}",
            "shapes: {s: {segment: {points: [[-1 m, 0 m], [1 m, 0 m]]}, side: N.y}}", "9:59", "a key of the shape",
        ),
    ],
)  # fmt: skip
def test_the_remedy_works(wrong, right, place, remedy, tmp_path):
    path = tmp_path / "drop.yaml"
    path.write_text(DROP + wrong + "\n", encoding="utf-8")
    with pytest.raises(fsm_dyn.ModelError) as caught:
        fsm_dyn.load(path)
    assert str(caught.value).startswith(f"{path}:{place}: ")
    assert remedy in str(caught.value).split("remedy:")[1]
    path.write_text(DROP + right + "\n", encoding="utf-8")
    fsm_dyn.load(path)


def test_a_contact_may_be_called_as_a_function_is(tmp_path):
    path = tmp_path / "drop.yaml"
    path.write_text(
        DROP + "loads: [{gravity: -g*N.y}]\ncontacts: {floor: {gap: y, restitution: 0.5}}\n"
        'requirements: {few: "count(floor closes) <= 3", under: "always y < 2 m while floor is open"}\n',
        encoding="utf-8",
    )
    graph = fsm_dyn.compile(path)
    run = fsm_dyn.simulate(graph, 0.6)
    assert [x.cause for x in run.transitions] == ["floor impacts and rebounds"]
    fsm_dyn.export(graph, tmp_path / "c")


@pytest.mark.parametrize(("word", "command"), [("simulate", "run"), ("plot", "run"), ("rnu", "run"), ("play", "view")])
def test_commands_of_other_tools(word, command):
    result = CliRunner().invoke(app, [word, "latch"])
    assert result.exit_code == 2
    assert f"Did you mean '{command}'?" in result.stderr


def test_public_names_alone_are_completed():
    assert {"simulate", "plot", "Model"} <= set(dir(fsm_dyn))
    assert not {"Any", "annotations", "import_module", "sys"} & set(dir(fsm_dyn))
    assert callable(fsm_dyn.plot.draw)


def test_times_have_units_like_everything_else():
    graph = fsm_dyn.compile("bouncing_ball")
    plain = fsm_dyn.simulate(graph, 0.25, step=1e-3)
    for until, step in (("250 ms", "1 ms"), ("0.25 s", 1e-3)):
        assert fsm_dyn.simulate(graph, until, step=step).q.tobytes() == plain.q.tobytes()
    with pytest.raises(fsm_dyn.InputError, match="'until' has the wrong unit"):
        fsm_dyn.simulate(graph, "2 m")
    result = CliRunner().invoke(app, ["run", "bouncing_ball", "--until", "250ms", "--step", "1 ms", "--json"])
    assert json.loads(result.stdout)["end"] == 0.25
    result = CliRunner().invoke(app, ["run", "bouncing_ball", "--until", "2 m"])
    assert result.exit_code == 2
    assert "wrong unit" in result.stderr


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("shapes: {s: {curve: {x: 0.4 m*cos(s), y: 2.5 m}}}", "curve 's' encloses nothing"),
        ("use: {other: {file: gripper_finger, with: {length: []}}}", "the list is empty"),
    ],
)
def test_nothing_in_a_value_is_refused(lines, message):
    with pytest.raises(fsm_dyn.ModelError, match=message):
        fsm_dyn.load(yaml.safe_load(DROP + lines))
