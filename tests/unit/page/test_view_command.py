"""The command `view` reports what is not possible, before anything runs."""

import socket

import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app

BAD_INPUT = 2


def refused(*arguments):
    result = CliRunner().invoke(app, ["view", *map(str, arguments), "--no-browser"])
    assert result.exit_code == BAD_INPUT, result.output
    return result.output


def test_a_model_that_is_wrong_is_reported_at_the_terminal(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text("fsm_dyn: 1\nname: wrong\nbodies: 7\n", encoding="utf-8")
    assert f"{path}:3:" in refused(path)


def test_a_recording_is_never_written_over(tmp_path):
    path = tmp_path / "run.mcap"
    path.write_bytes(b"precious")
    assert "name a new file" in refused("bouncing_ball", "--record", path)
    assert path.read_bytes() == b"precious"


def test_a_saved_automaton_cannot_be_watched(tmp_path):
    path = tmp_path / "ball.json"
    fsm_dyn.compile("bouncing_ball").save(path)
    assert "--watch" in refused(path, "--watch")


def test_a_port_that_is_taken_is_reported():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert "another --page-port" in refused("bouncing_ball", "--page-port", other.getsockname()[1])


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_ports_have_bounds(port):
    refused("bouncing_ball", "--page-port", port)
