"""Verdicts: never ``pass`` with unknown properties, and the numbers they rest on."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.driver_protocol import DeviceDynamics
from fsm_dyn.live.passivity import assess
from fsm_dyn.live.sampled_loop import z_width

KNOWN = DeviceDynamics(mass=0.1, damping=1.0, friction=0.05, resolution=1e-5)


def checks(found, axis="handle_1"):
    return {check.condition: check for check in found.checks if check.axis == axis}


def test_what_is_not_known_is_unknown_with_what_would_be_needed(held):
    found = assess(held("virtual_wall"))
    assert found.verdict == "unknown"
    assert {check.verdict for check in found.checks} == {"unknown"}
    assert checks(found)["wall"].required == pytest.approx(200.0 * 0.5e-3 + 2.0)
    assert checks(found)["quantisation"].required is None
    assert checks(assess(held("virtual_wall"), DeviceDynamics(resolution=1e-4)))["quantisation"].verdict == "unknown"
    straight = assess(held("toggle_switch"), KNOWN, turns=())  # a handle for an angle, in rad/m
    assert checks(straight, "tip_1")["wall"].unit == "N s/m"
    assert checks(straight, "tip_1")["wall"].verdict == "pass"
    axes_that_turn = checks(assess(held("shopping_cart"), KNOWN), "handle_rotation")
    assert axes_that_turn["wall"].verdict == "unknown", "a handle is known along straight axes only"


def test_a_soft_coupler_passes_and_a_stiff_one_fails(held):
    soft = assess(held("virtual_wall", handle_1_damping=0.2, handle_2_damping=0.2), KNOWN, modes=["free", "pressing"])
    assert soft.verdict == "pass", str(soft)
    stiff = assess(held("virtual_wall", handle_2_stiffness=3000.0, handle_2_damping=0.2), KNOWN)
    assert stiff.verdict == "fail"
    assert checks(stiff, "handle_2")["wall"].verdict == "fail"
    assert checks(stiff, "handle_2")["wall"].required == pytest.approx(1.7)
    assert checks(stiff)["wall"].verdict == "fail"
    assert checks(stiff, "handle_2")["quantisation"].required == pytest.approx(3000.0 * 1e-5 / 2)


def test_scale_counts_twice_and_a_delay_counts(held):
    one = checks(assess(held("virtual_wall"), KNOWN))
    two = checks(assess(held("virtual_wall"), KNOWN, mapping=DeviceMap(scale=2.0, force_scale=0.5)))
    for name in ("wall", "coupler", "two-port", "mode free", "quantisation"):
        assert two[name].required == pytest.approx(2.0 * one[name].required, rel=1e-9)
    late = checks(assess(held("virtual_wall", handle_1_damping=0.0), DeviceDynamics(damping=1.0, delay=1e-3)))
    assert late["wall"].required == pytest.approx(200.0 * 1.5e-3, rel=1e-6)
    assert late["coupler"].required == np.inf


def test_stable_alone_is_reported_but_decides_nothing(held):
    """With K = 1800 N/m and B = 0.5: alone it would be stable to 3000 N/m, passive to 1000 N/m."""
    found = assess(held("bouncing_ball", hand_1_stiffness=1800.0, hand_1_damping=0.5), KNOWN)
    assert checks(found, "hand_1")["stable alone"].verdict == "pass"
    assert found.verdict == "fail"


def test_a_coordinate_that_is_prescribed_has_its_response_alone(held):
    """No coupler is in between; the mass felt behind the filter is not passive once sampled."""
    crank = {
        "fsm_dyn": 1,
        "name": "crank",
        "parameters": {"m": "2 kg"},
        "coordinates": {"x": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x"}},
        "bodies": {"b": {"center": "P", "mass": "m"}},
        "ports": {"crank": {"coordinate": "x", "kinematic": "15 Hz"}},
    }
    found = assess(held(crank), KNOWN)
    assert [check.condition for check in found.checks] == ["mode motion"]
    assert found.verdict == "fail"
    assert found.stiffness == {}
    with pytest.raises(InputError, match="no axis"):
        assess(held("virtual_wall"), KNOWN, mapping=DeviceMap(axes=(-1, -1)))


def test_the_z_width_grows_with_the_rate_to_what_the_sensor_allows():
    width = z_width(KNOWN, rates=(500.0, 1000.0, 4000.0))
    np.testing.assert_allclose(width.wall, [1000.0, 2000.0, 8000.0])
    np.testing.assert_allclose(width.coupler / width.rate, width.coupler[0] / 500.0, rtol=1e-6)
    assert np.all(width.coupler < width.wall)
    assert width.quantised == pytest.approx(2 * 0.05 / 1e-5)
    late = z_width(DeviceDynamics(damping=1.0, delay=1e-3), rates=(1000.0,))
    assert late.wall[0] == pytest.approx(1.0 / 1.5e-3, rel=1e-6)
    assert late.quantised is None
    with pytest.raises(InputError, match="damping"):
        z_width(DeviceDynamics())


def test_the_command_tells_and_draws(tmp_path):
    run = CliRunner().invoke(app, ["passivity", "virtual_wall", "--damping", "3", "--set", "k=5 kN/m"])
    assert run.exit_code == 0, run.output
    assert "the resolution is not known" in run.output
    picture = tmp_path / "width.svg"
    arguments = ["passivity", "bouncing_ball", "--json", "--mode", "resting", "--initial", "y=0"]
    run = CliRunner().invoke(app, [*arguments, "--damping", "0.1", "--figure", str(picture)])
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    assert told["verdict"] == "fail", "a verdict is a result, not an error"
    assert {check["condition"] for check in told["checks"]} >= {"wall", "coupler", "two-port", "mode resting"}
    assert "<svg" in picture.read_text(encoding="utf-8")
    for wrong in (
        ["--figure", str(picture)],
        ["--mode", "nowhere"],
        ["--period", "1"],
        ["--port", "door"],
        ["--driver", "nothing"],
    ):
        assert CliRunner().invoke(app, [*arguments[:3], *wrong]).exit_code == 2
