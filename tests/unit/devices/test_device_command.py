"""The command ``device``: what it tells, what it refuses and with which remedy, and a run without a page."""

import json

import pytest
from typer.testing import CliRunner

from fsm_dyn.cli.console import app

RUNNER = CliRunner()


def refused(*words):
    done = RUNNER.invoke(app, ["device", *words])
    assert done.exit_code == 2, done.output
    return done.output


def test_the_drivers_that_ship():
    done = RUNNER.invoke(app, ["device", "--list-drivers", "--json"])
    drivers = {item["name"]: item for item in json.loads(done.output)["drivers"]}
    assert {"hapkit", "udp", "inverse3", "scripted", "replay", "pointer"} <= set(drivers)
    assert drivers["hapkit"]["has_emulator"]
    assert not drivers["replay"]["has_emulator"]
    assert "hapkit_frames" not in drivers, "a module is a driver if it has one"
    assert "serial ports:" in RUNNER.invoke(app, ["device", "--list-drivers"]).output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "a model and --driver are needed"),
        (("virtual_wall",), "--driver hapkit --emulate"),
        (("virtual_wall", "--driver", "hapkitt"), "fsm-dyn device --list"),
        (("virtual_wall", "--driver", "replay", "--emulate"), "no emulator for the driver 'replay'"),
        (("virtual_wall", "--driver", "hapkit", "--option", "mas=1"), "no option 'mas'"),
        (("virtual_wall", "--driver", "hapkit", "--emulate", "--option", "mas=1"), "no option 'mas'"),
        (("virtual_wall", "--driver", "hapkit", "--axes", "up", "--duration", "1"), "--axes takes numbers"),
        (("virtual_wall", "--driver", "hapkit", "--emulate", "--duration", "0.1", "--initial", "a=1"), "'a' is no"),
    ],
)
def test_what_it_refuses(words, told):
    assert told in refused(*words)


def test_a_recording_is_not_written_over(tmp_path):
    (tmp_path / "run.mcap").touch()
    assert "name a new file" in refused("virtual_wall", "--driver", "hapkit", "--record", str(tmp_path / "run.mcap"))


def test_a_driver_that_needs_a_package_more(tmp_path, monkeypatch):
    (tmp_path / "wanting.py").write_text("import a_package_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    output = refused("virtual_wall", "--driver", "wanting:Driver")
    assert "a_package_that_nobody_has" in output
    assert "pip install" in output


def test_a_run_without_a_page():
    words = [
        "virtual_wall",
        "--driver",
        "hapkit",
        "--emulate",
        "--duration",
        "0.3",
        "--watchdog-timeout",
        "5",
        "--json",
    ]
    done = RUNNER.invoke(app, ["device", *words])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["ticks"] == 300
    assert (report["phase"], report["fault"], report["watchdog_action"]) == ("paused", "", "")
