"""The command `live`."""

import json
import os
import re

import pytest

from fsm_dyn.live.recording import read_recording
from tests.unit.cli.conftest import call


def test_live_tells_how_time_was_kept(tmp_path):
    path = tmp_path / "run.mcap"
    stiff = ("--set", "handle_2_stiffness=4 kN/m", "--set", "handle_2_damping=0 N*s/m", "--passivity", "observe")
    result = call("live", "virtual_wall", "--duration", "1.5", "--no-pacing", "--record", path, *stiff)
    assert result.exit_code == 0
    leak = re.search(
        r"gave the device up to (\S+) J, and \S+ J while it was disengaged; damping dissipated 0 J", result.stdout
    )
    assert float(leak[1]) > 1e-6
    assert "virtual_wall: 1500 ticks" in result.stdout
    assert "wakeup latency" in result.stdout
    assert "sliding" in result.stdout
    recorded = read_recording(path)
    assert recorded.complete
    assert len(recorded.rows) == 1500


def test_live_with_a_fault_fails():
    result = call(
        "live",
        "latch",
        "--duration",
        "0.5",
        "--no-pacing",
        "--json",
        "--option",
        "fault=nan",
        "--option",
        "fault_at=0.2",
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["fault"] == "a position, velocity or force was not a number"


def test_live_refuses_what_the_steps_of_a_tick_cannot_carry():
    result = call("live", "virtual_wall", "--duration", "0.6", "--no-pacing", "--set", "handle_2_stiffness=1e99 N/m")
    assert result.exit_code == 2
    assert "'handle_2_stiffness' is more than the steps of a tick can carry" in result.stderr
    assert re.search(r"allowed: about \d", result.stderr)


def test_live_says_why_a_model_could_not_go_on(tmp_path):
    """A force that grows without bound takes speeds out of the range of numbers."""
    model = tmp_path / "grows.yaml"
    model.write_text(
        "fsm_dyn: 1\nname: grows\ncoordinates: {x: m}\npoints: {P: {from: O, at: x*N.x}}\n"
        "bodies: {b: {center: P, mass: 1 kg}}\nloads: [{force: exp(4000*t/(1 s))*(1 N)*N.x, at: P}]\n",
        encoding="utf-8",
    )
    result = call("live", model, "--duration", "0.6", "--no-pacing", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["phase"] == "failed"
    assert re.match(r"at 0\.\d+ s: .+ Remedy: ", report["failure"])
    assert report["failure"] in result.stderr
    assert "steps are of 0.001 s" in result.stderr.lower()


def test_live_with_a_wrong_word_is_bad_input():
    assert call("live", "virtual_wall", "--duration", "1", "--passivity", "on").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("live", "latch", "--duration", "inf"), "--duration"),
        (("live", "latch", "--duration", "1e300"), "--duration"),
        (("live", "latch", "--period", "nan"), "--period"),
        (("live", "latch", "--duration", "1", "--period", "0"), "--period"),
        (("live", "latch", "--stall-timeout", "inf"), "--stall-timeout"),
        (("device", "virtual_wall", "--driver", "hapkit", "--duration", "1e300"), "--duration"),
        (("live", "latch", "--option", "axes=1" + "0" * 400), "axes of the scripted device"),
        (("live", "latch", "--option", f"motion={'[' * 1000}{']' * 1000}"), "--option: the brackets"),
    ],
)
def test_numbers_that_make_no_live_run_are_bad_input(arguments, message):
    result = call(*arguments, "--no-pacing") if arguments[0] == "live" else call(*arguments)
    assert result.exit_code == 2
    assert f"error: {message}" in result.stderr
    assert len(result.stderr) < 1000


def test_what_is_no_file_is_bad_input(tmp_path):
    for name in ("a.yaml", "a.json", "a.mcap"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "b.mcap").mkdir()
    for command, name in (("compile", "a.yaml"), ("compile", "a.json"), ("view", "a.mcap"), ("view", "b.mcap")):
        result = call(command, tmp_path / name, *(["--no-browser"] * (command == "view")))
        assert result.exit_code == 2
        assert "pipe or device" in result.stderr
