"""The check of a device: passed by emulated devices, failed in the right step by those that are wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import device_check, hapkit, scripted, udp
from fsm_dyn.devices.device_check import check_device, report, workspace_picture
from fsm_dyn.live.driver_protocol import ADMITTANCE, Sample

HAND = {"axes": 2, "mass": 0.1, "stiffness": 100.0, "damping": 5.0}
STEPS = ["ready", "zero force", "direction of axis 0", "direction of axis 1", "soft spring", "unplugging"]


class ScriptedDevice(scripted.Driver):
    """The scripted hand, which wrong devices derive from; its force is applied by ``applied``."""

    def applied(self, force):
        return force

    def write(self, force):
        super().write(self.applied(force))
        return force


class ReversedDevice(ScriptedDevice):
    def applied(self, force):
        return [force[0], -force[1]]


class SwappedDevice(ScriptedDevice):
    def applied(self, force):
        return [force[1], force[0]]


class DeadDevice(ScriptedDevice):
    def applied(self, force):
        return [0.0, 0.0]


class TremblingDevice(ScriptedDevice):
    """A force that changes its sign 40 times a second: the spring never comes to rest."""

    def applied(self, force):
        return [x + (2.0 if self._readings % 25 < 12 else -2.0) * any(force) for x in force]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Shorter steps than a person needs: 8 time constants of the hands used here at least."""
    for name, seconds in (("QUIET_TIME", 0.15), ("REST_TIME", 0.3), ("SPRING_TIME", 0.6), ("PATIENCE", 0.15)):
        monkeypatch.setattr(device_check, name, seconds)


def checked(driver, **options):
    _, steps = check_device(driver, {**HAND, **options}, 0.5, lambda: None)
    return {step.name: step for step in steps}


@pytest.mark.parametrize(
    ("driver", "failed"),
    [
        (ScriptedDevice, {}),
        (ReversedDevice, {"direction of axis 1": "negative direction"}),
        (SwappedDevice, {"direction of axis 0": "does not move", "direction of axis 1": "does not move"}),
        (DeadDevice, {"direction of axis 0": "does not move", "direction of axis 1": "does not move"}),
        (TremblingDevice, {"soft spring": "not come to rest"}),
    ],
)
def test_each_mistake_fails_in_its_step(driver, failed):
    """A scripted hand cannot be unplugged: that step fails in each of them."""
    found = checked(f"{driver.__module__}:{driver.__name__}")
    wrong = any("direction" in name for name in failed)
    assert list(found) == [name for name in STEPS if not (wrong and name == "soft spring")]
    assert not found["unplugging"].passed
    for name, remark in failed.items():
        assert not found[name].passed
        assert remark in found[name].remark
    if not failed:
        assert all(step.passed for name, step in found.items() if name != "unplugging")
    assert found["zero force"].passed


def test_a_device_that_fails_ends_the_check():
    found = checked("scripted", fault="raise", fault_at=0.3)
    assert list(found) == ["ready", "zero force", "driver"]
    assert "an injected failure" in found["driver"].remark
    for fault, remark in (("nan", "not finite"), ("stall", "samples a second")):
        found = checked("scripted", fault=fault, fault_at=0.01)
        assert list(found) == ["ready", "zero force", "unplugging"], "no force without good samples"
        assert remark in found["zero force"].remark


def test_bad_input_is_refused_before_anything_is_opened():
    with pytest.raises(InputError, match="no driver"):
        check_device("nothing", {}, 1.0, lambda: None)
    with pytest.raises(InputError, match="axes"):
        check_device("scripted", {"axes": 9}, 1.0, lambda: None)


def test_the_report_names_each_step():
    spec, steps = check_device("scripted", HAND, 0.5, lambda: None)
    text = report("scripted", spec, steps, 0.5)
    assert all(f"| {name} |" in text for name in STEPS)
    assert "| unplugging | **no** |" in text


@pytest.mark.parametrize("driver", ["udp", "pantograph", "udp that follows"])
def test_emulated_devices_pass(driver, tmp_path):
    """By the command, which unplugs them itself and writes the report."""
    file, follows, driver = tmp_path / "report.md", "follows" in driver, driver.split()[0]
    hand = '{"stiffness": 100, "damping": 8}'
    words = ["device", "--check", driver, "--emulate", "--option", f"hand={hand}", "--report", str(file), "--json"]
    if follows:
        words += ["--option", "kind=admittance"]
    done = CliRunner().invoke(app, [*words, *(["--option", "axes=2"] if driver == "udp" else [])])
    assert done.exit_code == 0, done.output
    assert [step["passed"] for step in json.loads(done.output)["steps"]] == [True] * len(STEPS)
    assert file.read_text(encoding="utf-8").startswith(f"# Check of `{driver}`")


def test_several_devices_are_refused_before_anything_is_sent():
    with pytest.raises(InputError, match="one device"):
        check_device("combined", {"devices": [{"driver": "udp", "options": {"port": 0}}] * 2}, 0.5, lambda: None)


class FollowingDevice(scripted.Driver):
    """Follows velocities along two axes; a hand draws it back by 100 N/m, which its sensor measures."""

    sign, drift = 1.0, 0.0

    @classmethod
    def describe(cls, options):
        return replace(super().describe(options), kind=ADMITTANCE)

    def read(self):
        self._readings += 1
        for i, speed in enumerate(self._force):
            self._position[i] += 1e-3 * (speed + self.drift)
        forces = [-100.0 * self.sign * x for x in self._position]
        return Sample(1e-3 * self._readings, self._readings, tuple(self._position), tuple(forces))


class WrongSensor(FollowingDevice):
    sign = -1.0


class DriftingDevice(FollowingDevice):
    drift = 0.01


class UnfeelingDevice(FollowingDevice):
    sign = 0.0


@pytest.mark.parametrize(
    ("driver", "failed"),
    [
        (FollowingDevice, {}),
        (WrongSensor, {"yielding": "wrong sign"}),
        (DriftingDevice, {"standing still": "it moves"}),
        (UnfeelingDevice, {"yielding": "push it lightly"}),
    ],
)
def test_a_device_that_follows_is_checked_by_velocities(driver, failed, monkeypatch):
    monkeypatch.setattr(
        device_check, "TRAVEL", 0.015
    )  # a pulse moves it by 10 mm, a sensor of the wrong sign on to here
    found = checked(f"{driver.__module__}:{driver.__name__}")
    if driver is DriftingDevice:
        assert list(found) == ["ready", "standing still", "unplugging"], "no velocity where it does not stand still"
    else:
        assert list(found) == ["ready", "standing still", *STEPS[2:4], "yielding", "unplugging"]
    for name, step in found.items():
        assert step.passed == (name not in {*failed, "unplugging"}), (name, step)
        assert failed.get(name, "") in step.remark


def test_the_report_names_workspace_and_all_that_removes_the_force():
    written = report("udp", udp.Driver.describe({"axes": 2, "turns": [1], "workspace": [0.2, [-1.0, 2.0]]}), [], 1.0)
    assert "<svg" not in written
    assert "| 0 | m | -0.2 | 0.2 |\n| 1 | rad | -1 | 2 |" in written
    assert "- the watchdog of the device: after 20 ms without a command" in written
    assert "the safe packet: after 100 ms" in report("hapkit", hapkit.Driver.describe({}), [], 1.0)
    bare = report("scripted", scripted.Driver.describe({"stop": "none"}), [], 1.0)
    assert "The workspace is unknown." in bare
    assert "limits the force to a fifth" in bare


def test_the_workspace_is_drawn_to_scale():
    """Two axes of one kind as a rectangle, three as two of them, different kinds as bars; the cross is zero."""
    plane = workspace_picture(udp.Driver.describe({"axes": 2, "workspace": [0.2, [-0.1, 0.3]]}))
    assert '<rect x="28" y="28" width="160" height="160"' in plane
    assert "M103.0 148.0h10M108.0 143.0v10" in plane  # a quarter of the height above its lower edge
    space = workspace_picture(udp.Driver.describe({"axes": 3, "workspace": [0.2, 0.1, 0.05]}))
    assert re.findall(r'width="(\d+)" height="(\d+)" fill="#EEF', space) == [("160", "80"), ("40", "80")]
    bars = workspace_picture(udp.Driver.describe({"axes": 2, "turns": [1], "workspace": [0.2, [-1.0, 2.0]]}))
    assert "axis 0: -200 to 200 mm" in bars
    assert "axis 1: -1 to 2 rad" in bars
    spec = udp.Driver.describe({"axes": 3})
    assert "<svg" in report("udp", spec, [], 1.0, drawn=True)
