"""What protects the hand: ramps, limits, faults, buttons; in one process, tick by tick."""

import math

import numpy as np
import pytest

from fsm_dyn.live import compiled_tick as ct
from fsm_dyn.live.control import FAULT, PAUSED, RUNNING
from fsm_dyn.live.device import Sample
from fsm_dyn.live.stepping import DeviceMap, Limits

QUIET = [[0, 0.0, 1.0, 0.0], [1, 0.0, 1.0, 0.0]]


def at(i, x=0.0, y=0.0, vx=0.0, vy=0.0, buttons=0):
    return Sample(0.0, i, [x, y], [vx, vy], buttons)


def test_the_grip_closes_and_opens_at_its_rate(bench):
    run = bench("virtual_wall", limits=Limits(ramp=0.1)).run(300)
    run.controller.command({"do": "pause"})
    run.run(300)
    grips = np.array(run.grips)
    assert np.abs(np.diff(grips)).max() <= 0.01 + 1e-12
    assert grips[250] == 1.0
    assert run.controller.phase == PAUSED
    assert grips[-1] == 0.0
    assert np.abs(run.forces[-1]).max() == 0.0


def test_force_and_slew_limits(bench):
    limits = Limits(force=2.0, slew=100.0, ramp=0.0)
    run = bench("shopping_cart", limits=limits).run(2000)
    forces = np.array(run.forces)
    assert run.stepper.tick_data.counts[ct.LIMITED] > 100
    assert np.linalg.norm(forces, axis=1).max() <= 2.0 * (1.0 + 1e-12)
    assert np.linalg.norm(np.diff(forces, axis=0), axis=1).max() <= 0.1 * (1.0 + 1e-12)


def test_the_device_is_anchored_where_the_port_is(bench):
    """Taking hold pulls at nothing, wherever the device happens to be."""
    run = bench("virtual_wall", motion=QUIET)
    for i in range(400):
        run.one(at(i, 0.3, -0.2))
    assert np.abs(run.stepper.loop.state.x[0]) < 1e-12
    assert run.stepper.tick_data.offset[0] == pytest.approx(-0.3, abs=1e-15)


@pytest.mark.parametrize(
    ("sample", "why"),
    [
        (at(50, math.nan), "not a number"),
        (at(50, 0.0, math.inf), "not a number"),
        (at(50, vx=2.0, vy=-2.0), "faster"),
        (at(50, 0.11), "workspace"),
        (at(50, 0.0, -0.21), "workspace"),
        (at(49), "no new sample"),
    ],
)
def test_faults_let_go_in_their_tick_and_stay(bench, sample, why):
    limits = Limits(velocity=2.5, low=(-0.1, -0.2), high=(0.1, 0.2), ramp=0.02)
    run = bench("virtual_wall", motion=QUIET, limits=limits, stall_ticks=0)
    for i in range(50):
        run.one(at(i, 0.05 * i / 50))
    assert np.abs(run.forces[-1]).max() > 0.0
    run.one(sample)
    assert run.controller.phase == FAULT
    assert why in next(e["why"] for e in run.events if e["event"] == "fault")
    for i in range(100, 150):
        run.one(at(i))
    run.controller.command({"do": "run"})
    run.one(at(150))
    assert not np.array(run.forces[50:]).any()
    assert run.controller.phase == FAULT
    run.controller.command({"do": "clear"})
    run.controller.command({"do": "run"})
    for i in range(200, 260):
        run.one(at(i, 0.04))
    assert run.controller.phase == RUNNING
    assert run.grips[-1] == 1.0
    assert np.isfinite(run.stepper.loop.state.x).all()


def test_without_the_dead_man_button_no_force(bench):
    run = bench("virtual_wall", limits=Limits(dead_man=2, ramp=0.05))
    run.run(300)
    assert not np.array(run.forces).any()
    run.run(300, buttons=0b100)
    assert run.grips[-1] == 1.0
    run.run(100)
    assert run.grips[-1] == 0.0
    assert not run.forces[-1].any()
    assert run.controller.phase == RUNNING


def test_the_clutch_lets_go_and_anchors_anew(bench):
    run = bench("virtual_wall", motion=QUIET, limits=Limits(clutch=0, ramp=0.01))
    for i in range(50):
        run.one(at(i))
    for i in range(50, 100):
        run.one(at(i, 0.2, 0.1, buttons=1))
    assert run.grips[-1] == 0.0
    before = run.stepper.loop.state.x[0]
    for i in range(100, 200):
        run.one(at(i, 0.2, 0.1))
    assert run.grips[-1] == 1.0
    assert run.stepper.loop.state.x[0] == pytest.approx(before, abs=1e-12)
    assert not np.array(run.forces)[:, 0].any(), "the device moved alone"


def test_taking_hold_waits_until_the_grip_is_open(bench):
    """A clutch pressed for a moment: the anchor is not set while the port is still held."""
    run = bench("virtual_wall", motion=QUIET, limits=Limits(clutch=0, ramp=0.02))
    for i in range(60):
        run.one(at(i))
    run.one(at(60, 0.1, buttons=1))
    for i in range(61, 81):
        run.one(at(i, 0.1))
        assert run.stepper.tick_data.offset[0] == 0.0 or run.grips[-1] == 0.0
    changes = np.diff(run.grips[59:])
    assert np.abs(changes).max() <= 0.05 + 1e-12


def test_another_port_scale_and_axes(bench):
    run = bench("virtual_wall", motion=QUIET, limits=Limits(ramp=0.01))
    for i in range(50):
        run.one(at(i))
    run.controller.command({"do": "port", "port": "handle", "axes": [1, -1], "scale": 2.0})
    for i in range(50, 100):
        run.one(at(i))
    assert run.stepper.mapping == DeviceMap("handle", (1, -1), 2.0, 1.0)
    run.one(at(100, 0.0, 0.01))
    tick = run.stepper.tick_data
    assert tick.now[tick.slot[0]] - tick.offset[0] == pytest.approx(0.02, abs=1e-15)
    assert tick.now[tick.slot[5]] == 0.0, "an axis without a device is not held"
    run.controller.command({"do": "port", "port": "nose"})
    for i in range(101, 150):
        run.one(at(i))
    assert run.events[-1]["event"] == "refused"
    assert "nose" in run.events[-1]["why"]


def test_slow_motion_scales_time_and_keeps_the_device_at_its_rate(bench):
    run = bench("virtual_wall", limits=Limits(ramp=0.01)).run(100)
    run.controller.command({"do": "speed", "value": 0.001})
    run.run(50)
    t = run.stepper.t
    run.run(1000)
    assert run.stepper.t - t == pytest.approx(1000 * 1e-6, rel=1e-9)
