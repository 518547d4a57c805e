"""Protection of the hand: ramps, limits, faults, buttons; in one process, tick by tick."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.controller import FAULT, PAUSED, RUNNING
from fsm_dyn.live.device_map import DeviceMap, Limits, add_couplers
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.tick_process import columns_of, ring_of
from fsm_dyn.runtime.abi import LiveHeader, TickCounts

QUIET = [[0, 0.0, 1.0, 0.0], [1, 0.0, 1.0, 0.0]]


FREELY = 1e4  # m/s, of a device with any position in the next tick


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
    assert run.stepper.tick_data.counts[TickCounts.SATURATED_TICKS] > 100
    assert np.linalg.norm(forces, axis=1).max() <= 2.0 * (1.0 + 1e-12)
    assert np.linalg.norm(np.diff(forces, axis=0), axis=1).max() <= 0.1 * (1.0 + 1e-12)


def test_the_device_is_anchored_where_the_port_is(bench):
    """Engaging pulls at nothing, wherever the device happens to be."""
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
        (at(50, -0.09), "jumped"),
        (at(50, 0.0, -0.21), "workspace"),
        (at(49), "no new sample"),
    ],
)
def test_faults_let_go_in_their_tick_and_stay(bench, sample, why):
    limits = Limits(velocity=2.5, low=(-0.1, -0.2), high=(0.1, 0.2), ramp=0.02, outliers=0)
    run = bench("virtual_wall", motion=QUIET, limits=limits, stall_ticks=0)
    for i in range(50):
        run.one(at(i, 0.05 * i / 50, vx=1.0))
    assert np.abs(run.forces[-1]).max() > 0.0
    run.one(sample)
    assert run.controller.phase == FAULT
    assert why in next(e["reason"] for e in run.events if e["event"] == "fault")
    for i in range(100, 150):
        run.one(at(i, 0.04))
    run.controller.command({"do": "run"})
    run.one(at(150, 0.04))
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
    run = bench("virtual_wall", limits=Limits(dead_man_button=2, ramp=0.05))
    run.run(300)
    assert not np.array(run.forces).any()
    run.run(300, buttons=0b100)
    assert run.grips[-1] == 1.0
    run.run(100)
    assert run.grips[-1] == 0.0
    assert not run.forces[-1].any()
    assert run.controller.phase == RUNNING


def test_the_clutch_lets_go_and_anchors_anew(bench):
    run = bench("virtual_wall", motion=QUIET, limits=Limits(clutch_button=0, ramp=0.01, velocity=FREELY))
    for i in range(50):
        run.one(at(i))
    for i in range(50, 70):
        run.one(at(i, buttons=1))
    for i in range(70, 100):
        run.one(at(i, 0.2, 0.1, buttons=1))
    assert run.grips[-1] == 0.0
    before = run.stepper.loop.state.x[0]
    for i in range(100, 200):
        run.one(at(i, 0.2, 0.1))
    assert run.grips[-1] == 1.0
    assert run.stepper.loop.state.x[0] == pytest.approx(before, abs=1e-12)
    assert not np.array(run.forces)[:, 0].any(), "the device moved alone"


def test_engaging_waits_until_the_grip_is_open(bench):
    """A clutch pressed for a moment: the anchor is not set while the port is still held."""
    run = bench("virtual_wall", motion=QUIET, limits=Limits(clutch_button=0, ramp=0.02, velocity=FREELY))
    for i in range(60):
        run.one(at(i))
    run.one(at(60, 0.1, buttons=1))
    for i in range(61, 81):
        run.one(at(i, 0.1))
        assert run.stepper.tick_data.offset[0] == 0.0 or run.grips[-1] == 0.0
    changes = np.diff(run.grips[59:])
    assert np.abs(changes).max() <= 0.05 + 1e-12


def test_another_port_scale_and_axes(bench):
    run = bench("virtual_wall", motion=QUIET, limits=Limits(ramp=0.01, velocity=FREELY))
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
    assert run.events[-1]["event"] == "command_rejected"
    assert "nose" in run.events[-1]["reason"]


def test_slow_motion_scales_time_and_keeps_the_device_at_its_rate(bench):
    run = bench("virtual_wall", limits=Limits(ramp=0.01)).run(100)
    run.controller.command({"do": "speed", "value": 0.001})
    run.run(50)
    t = run.stepper.t
    run.run(1000)
    assert run.stepper.t - t == pytest.approx(1000 * 1e-6, rel=1e-9)


def test_every_quiet_command_opens_the_grip_first_and_anchors_anew(bench):
    """Pause, reset, going back, speed, parameters, port: the force fades, the command, the force comes back."""
    for command in (
        {"do": "reset"},
        {"do": "scrub", "t": 0.1},
        {"do": "speed", "value": 0.5},
        {"do": "set", "values": {"k": 1e4}},
        {"do": "port", "scale": 2.0},
        {"do": "pause"},
    ):
        limits = Limits(ramp=0.05, force=1e6, slew=1e9)
        run = bench("virtual_wall", motion=QUIET, limits=limits)
        for i in range(300):
            run.one(at(i, 0.0001 * i, 0.1 * math.sin(0.01 * i), 0.1, math.cos(0.01 * i)))
        run.controller.command(command)
        seen = len(run.grips)
        for i in range(300, 500):
            run.one(at(i, 0.03, 0.1 * math.sin(3.0)))
        grips, forces = np.array(run.grips[seen - 1 :]), np.array(run.forces[seen - 1 :])
        assert np.abs(np.diff(grips)).max() <= 0.02 + 1e-12, command
        opened = int(np.argmin(grips))
        assert grips[opened] == 0.0, command
        assert not forces[opened].any(), command
        done = next(e for e in run.events if e["event"] == "command_done")
        assert done["tick"] >= seen + opened - 1, "carried out before the grip was open"
        if command["do"] == "pause":
            assert run.controller.phase == PAUSED
            run.controller.command({"do": "run"})
            for i in range(500, 600):
                run.one(at(i, 0.03, 0.1 * math.sin(3.0)))
        assert run.grips[-1] == 1.0
        tick = run.stepper.tick_data
        place = tick.offset[0] + tick.scale[0] * 0.03
        assert tick.now[tick.slot[0]] == pytest.approx(place, abs=1e-15), "anchored where the device is"


def test_going_back_is_to_a_mark_and_on_from_there_it_is_the_same_run(bench):
    """The ball is uncoupled: from the mark on its motion is the same as before, to the last bit."""
    run = bench("bouncing_ball", motion=QUIET, axes=2, limits=Limits(dead_man_button=0))
    run.run(1500)
    until = run.stepper.t
    then, changes = run.stepper.loop.state.x.copy(), list(run.transitions)
    assert len(changes) >= 2
    run.transitions.clear()
    run.controller.command({"do": "scrub", "t": 0.2041})
    run.one(run.hand.read())
    assert run.stepper.t == pytest.approx(0.2 + 1e-3, abs=1e-12)
    while run.stepper.t < until - 1e-9:
        run.one(run.hand.read())
    assert [t for t, _, _ in run.transitions] == pytest.approx([t for t, _, _ in changes if t > 0.2], abs=1e-9)
    # the grid of steps begins anew at the mark: the instants of the steps differ in the last bits
    np.testing.assert_allclose(run.stepper.loop.state.x, then, rtol=1e-9, atol=1e-9)


def test_going_back_before_anything_happened_is_refused(bench):
    run = bench("latch", paused=True)
    run.controller.command({"do": "scrub", "t": 0.0})
    run.run(1)
    assert run.events[-1]["event"] == "command_rejected"


def test_going_back_keeps_the_parameters_set_meanwhile(bench):
    run = bench("virtual_wall", motion=QUIET, limits=Limits(dead_man_button=0)).run(200)
    run.controller.command({"do": "set", "values": {"k": 1e4}})
    run.run(20)
    run.controller.command({"do": "scrub", "t": 0.05})
    run.run(2)
    layout = run.stepper.graph.automaton.terms.layout
    assert run.stepper.loop.state.c[layout.p.index("k")] == 1e4
    assert run.stepper.t < 0.06


def test_a_parameter_that_makes_a_force_jump_lets_contacts_be_decided_anew(bench):
    """Friction removed under a sticking block: it slips in this instant, not at the next crossing of its guard."""
    model = {
        "fsm_dyn": 1, "name": "block",
        "parameters": {"m": "1 kg", "F": "5 N", "pull": "3 N"},
        "coordinates": {"x": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x"}},
        "bodies": {"b": {"center": "P", "mass": "m"}},
        "contacts": {"rub": {"dry_friction": {"speed": "rate(x)", "static": "F", "kinetic": "0.5*F"}}},
        "loads": [{"law": "pull", "coordinate": "x"}],
        "ports": {"hand": {"coordinate": "x"}},
    }  # fmt: skip
    run = bench(fsm_dyn.compile(add_couplers(fsm_dyn.load(model))), motion=(), limits=Limits(dead_man_button=0)).run(
        100
    )
    assert "slide" not in run.stepper.mode
    run.controller.command({"do": "set", "values": {"F": 2.0}})
    run.run(100)
    assert "slide" in run.stepper.mode
    assert len(run.transitions) == 1
    # 3 N of pull less 1 N of friction on 1 kg, over 0.1 s
    assert run.stepper.loop.state.x.tolist() == pytest.approx([0.5 * 2.0 * 0.1**2, 0.2], rel=1e-9)


def test_a_guard_counts_as_gone_only_if_it_was_watched(bench):
    """Silence of the guard while the tick process itself was held up says nothing; silence while it ticks does."""
    run = bench("latch")
    stepper, controller = run.stepper, run.controller
    block = tick_data.SharedBlock.create(
        tick_data.BlockLayout(columns_of(stepper).width, 1 + stepper.loop.buffers.transitions.shape[1])
    )
    stepper.publish_to(ring_of(block))
    millisecond = 1_000_000
    stepper.tick_data.counts[TickCounts.WATCHDOG_TIMEOUT] = 100 * millisecond
    try:
        for wall in (0, 1, 900, 901):  # ms: held up for most of a second
            controller.take(at_one(wall))
            controller.run_tick(wall, 0, wall * millisecond)
        assert controller.phase == RUNNING
        for wall in range(902, 1000):
            controller.take(at_one(wall))
            controller.run_tick(wall, 0, wall * millisecond)
        assert controller.phase == RUNNING
        for wall in range(1000, 1003):
            controller.take(at_one(wall))
            controller.run_tick(wall, 0, wall * millisecond)
        assert controller.phase == FAULT
        assert run.events[-2]["reason"] == "the watchdog process is gone"
        assert block.header[LiveHeader.BEATS] == block.header[LiveHeader.ROWS] == 105
    finally:
        block.close(remove=True)


def at_one(sequence):
    return Sample(0.0, sequence, [0.0], [0.0])


@pytest.mark.parametrize(
    "command",
    [
        {"do": "set", "values": {"e": 1.5}},
        {"do": "set", "values": {"e": 0.5, "m": -1.0}},
        {"do": "set", "values": {"e": math.nan}},
        {"do": "input", "values": {"push": math.inf}},
    ],
)
def test_values_that_the_file_could_not_hold_are_refused_and_the_run_goes_on(bench, command):
    run = bench("bouncing_ball", limits=Limits(ramp=0.01)).run(50)
    before = run.stepper.parameters.copy(), dict(run.stepper.values), len(run.times)
    run.controller.command(command)
    run.run(50)
    assert run.events[-1]["event"] == "command_rejected"
    assert (run.stepper.parameters == before[0]).all()
    assert run.stepper.values == before[1]
    assert len(run.times) > before[2]
    assert run.controller.phase == RUNNING
