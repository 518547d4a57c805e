"""Admittance devices: boundary of stability, limits, standing still, bad input."""

import json
import math
import os
import signal
import time

import numpy as np
import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import combined, udp
from fsm_dyn.devices.emulators.emulated_device import FollowingHandle, emulation
from fsm_dyn.live.controller import FAULT, FAULTS, RunController
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import ADMITTANCE, DeviceSpec, Sample
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.passivity import assess_admittance, inertia_seen, least_inertia
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import Fault, TickCounts

SLIDER = {
    "fsm_dyn": 1,
    "name": "slider",
    "parameters": {"m": "1 kg"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"slider": {"center": "P", "mass": "m"}},
    "ports": {"handle": {"point": "P", "body": "slider", "axes": ["N.x"]}},
}
UNLIMITED = Limits(speed=1e9, acceleration=1e12, ramp=0.001, low=(-1e6,), high=(1e6,), velocity=1e9)
PERIOD = 1e-3  # s
DAMPING = 20.0  # N s/m, of the hand


@pytest.fixture(scope="module")
def slider():
    return fsm_dyn.compile(SLIDER)


@pytest.fixture(scope="module")
def wall():
    return coupled_graph(fsm_dyn.compile("virtual_wall"), {"m": 2.0}, True)


class Loop:
    """A slider, and an emulated admittance device, on the clock of the loop."""

    def __init__(self, graph, hand, *, limits=UNLIMITED, mapping=None):
        self.hand, self.events = hand, []
        self.stepper = LiveStepper(graph, 1, limits=limits, mapping=mapping or DeviceMap())
        self.controller = RunController(self.stepper, self.events.append)
        self.sequence = 0

    def run(self, ticks):
        """Return position and commanded velocity of the device after each tick, shape (ticks, 2)."""
        found = np.empty((ticks, 2))
        for k in range(ticks):
            self.sequence += 1
            self.controller.tick(Sample(0.0, self.sequence, [self.hand.position], [self.hand.hand_force]))
            self.hand.force = float(self.stepper.tick_data.force[0])
            self.hand.advance(PERIOD)
            found[k] = self.hand.position, self.hand.force
        return found


def growth(slider, mass, stiffness, delay):
    """Return the growth factor of a swing of hand and device in two seconds."""
    hand = FollowingHandle(1.0, hand_stiffness=stiffness, hand_damping=DAMPING, bandwidth=1.0 / (math.pi * delay))
    assert hand.delay == pytest.approx(delay, rel=1e-12)
    loop = Loop(coupled_graph(slider, {"m": mass}, True), hand)
    loop.run(50)
    hand.target = 1e-3
    away = np.abs(loop.run(6000)[:, 0] - hand.target)
    return away[4000:].max() / away[2000:4000].max()


@pytest.mark.parametrize("mass", [1.0, 4.0, 10.0])
@pytest.mark.parametrize("delay", [4e-3, 10e-3])
def test_the_boundary_of_stability_is_within_5_percent_on_both_sides(slider, mass, delay):
    late = delay + PERIOD
    most = 0.999 * DAMPING / late
    stiffness = brentq(lambda k: least_inertia(k, DAMPING, late) - mass, 1.0, most)
    assert growth(slider, mass, 0.95 * stiffness, delay) < 0.95
    assert growth(slider, mass, 1.05 * stiffness, delay) > 1.05


def test_the_least_inertia_in_limits_with_a_closed_form():
    # small delay: w = sqrt(3 (B - K d) / B^3) K to lowest order in the arctangent's series, a little damping beyond K d
    k, d = 1000.0, 5e-3
    assert least_inertia(k, k * d, d) == math.inf
    assert least_inertia(k, 0.0, d) == math.inf
    assert least_inertia(k, 1.0, 0.0) == 0.0
    b = k * d * (1.0 + 1e-4)
    w = math.sqrt(3.0 * (b / k - d) / (b / k) ** 3)
    assert least_inertia(k, b, d) == pytest.approx(k / w**2, rel=1e-3)
    with pytest.raises(InputError, match="hand and delay"):
        least_inertia(0.0, 1.0, d)


def test_the_inertia_seen_of_a_bar_is_that_of_its_end():
    graph = coupled_graph(fsm_dyn.compile("carried_bar"), {}, True)
    free = inertia_seen(graph, "carried", "right")
    assert free["right_1"] == pytest.approx(0.4, rel=1e-12)
    assert free["right_2"] == pytest.approx(0.1, rel=1e-12)  # 1/(1/m + (l/2)^2/J)
    assert inertia_seen(graph, "lying", "right")["right_2"] == math.inf
    (_, up) = assess_admittance(graph, "carried", stiffness=500.0, damping=10.0, delay=4e-3, port="right", scale=2.0)
    assert up.inertia == pytest.approx(0.4, rel=1e-12)
    assert up.stable == (up.inertia > least_inertia(500.0, 10.0, 5e-3))
    for given, words in ((("lying", "top"), "no port"), (("flying", ""), "no mode")):
        with pytest.raises(InputError, match=words):
            inertia_seen(graph, *given)
    with pytest.raises(InputError, match="coupled for impedance"):
        inertia_seen(coupled_graph(fsm_dyn.compile("carried_bar")), "lying")


def hand_of(slider, **changes):
    hand = FollowingHandle(1.0, hand_stiffness=200.0, hand_damping=20.0)
    return hand, Loop(coupled_graph(slider, {"m": 3.0}, True), hand, **changes)


SLOW = Limits(speed=0.5, acceleration=0.75, ramp=0.001, low=(-1e6,), high=(1e6,))


@pytest.mark.parametrize("limits", [UNLIMITED, SLOW])
def test_what_is_commanded_adds_up_to_the_displacement_of_the_port(slider, limits):
    """With limits too: delayed displacement is made up for."""
    hand, loop = hand_of(slider, mapping=DeviceMap(scale=-2.0), limits=limits)
    loop.run(300)
    hand.target = 0.05
    start = float(loop.stepper.loop.state.x[0]) + 2.0 * hand.command
    loop.run(10000)
    assert (loop.stepper.tick_data.counts[TickCounts.SATURATED_TICKS] > 0) == (limits is SLOW)
    assert abs(hand.command) > 0.02
    # rounding of 10000 additions of parts of 0.1 m; a lag shrinks by a tenth in every tick
    assert float(loop.stepper.loop.state.x[0]) + 2.0 * hand.command == pytest.approx(start, abs=1e-12)


def test_speed_acceleration_and_workspace_are_kept(slider):
    limits = Limits(speed=0.2, acceleration=4.0, ramp=0.05, low=(-0.1,), high=(0.1,))
    hand, loop = hand_of(slider, limits=limits)
    loop.run(200)
    hand.hand_stiffness, hand.target = 20.0, 0.15  # it would go there
    found = loop.run(3000)
    assert 0.1 < np.abs(found[:, 1]).max() <= 0.2 * (1.0 + 1e-9)
    assert np.abs(np.diff(found[:, 1])).max() <= 4.0 * PERIOD * (1.0 + 1e-9)
    assert 0.09 < found[:, 0].max() < 0.1
    assert not loop.stepper.tick_data.counts[TickCounts.FAULT]
    hand.target = -0.15
    assert -0.1 < loop.run(6000)[:, 0].min() < -0.09


def test_a_port_that_outruns_the_device_is_a_fault(slider):
    limits = Limits(speed=0.02, acceleration=0.5, ramp=0.001, low=(-1e6,), high=(1e6,))
    hand, loop = hand_of(slider, limits=limits)
    loop.run(50)
    hand.target = 0.3
    found = loop.run(1000)
    (fault,) = [event for event in loop.events if event["event"] == "fault"]
    assert fault["reason"] == FAULTS[Fault.OUTRUN]
    after = fault["tick"] - 51
    assert not found[after:, 1].any()
    assert 0.0 < np.abs(found[:, 1]).max() <= 0.02 * (1.0 + 1e-9)
    assert loop.stepper.loop.state.x[1] > 0.02  # the port was faster than the device may be
    longest = 0.02**2 / (2.0 * 0.5)  # the way in which the device stops from its largest speed
    assert float(loop.stepper.loop.state.x[0]) - hand.command == pytest.approx(longest, abs=0.06 * PERIOD)


OUTLIERS = 10.0 ** np.arange(-3, 13)  # N


@pytest.mark.parametrize("count", [1, 2, 3])
def test_false_forces_of_every_size_move_nothing_or_little(slider, count):
    """No hand pushes; within the limits of force and rate a false sample is a push like any other, and as short."""
    limits = Limits(ramp=0.05, low=(-1.0,), high=(1.0,))
    most = limits.hand_force_rate * PERIOD
    for size in OUTLIERS:
        hand, loop = hand_of(slider, limits=limits)
        hand.hand_stiffness = hand.hand_damping = 0.0
        loop.run(200)
        for _ in range(count):
            loop.sequence += 1
            loop.controller.tick(Sample(0.0, loop.sequence, [hand.position], [float(size)]))
        rejected = size > most * (count if size <= limits.hand_force else 1.0)
        found = loop.run(2000)
        counts = loop.stepper.tick_data.counts
        if rejected:
            assert counts[TickCounts.REJECTED_TOTAL] == count
            assert not found[:, 1].any()
            assert (loop.controller.phase == FAULT) == (count > limits.outliers)
        # the momentum of 3 kg from such a push, over its duration: a hand is felt as well
        assert np.abs(found[:, 1]).max() <= 1.01 * most * count * (count + 1) * PERIOD / 3.0
    reasons = {event["reason"] for event in loop.events if event["event"] == "fault"}
    assert reasons == ({FAULTS[Fault.HAND_FORCE_EXCEEDED]} if count > limits.outliers else set())


def test_a_force_that_rises_too_fast_is_named(slider):
    hand, loop = hand_of(slider, limits=Limits(ramp=0.05, low=(-1.0,), high=(1.0,)))
    loop.run(200)
    for k in range(3):
        loop.sequence += 1
        loop.controller.tick(Sample(0.0, loop.sequence, [hand.position], [90.0]))
        assert loop.stepper.tick_data.counts[TickCounts.REJECTED] == k + 1
    (fault,) = [event for event in loop.events if event["event"] == "fault"]
    assert fault["reason"] == FAULTS[Fault.HAND_FORCE_JUMPED]


@pytest.mark.parametrize("how", ["pause", "fault", "no samples"])
def test_a_device_that_is_disengaged_stands_still(slider, how):
    hand, loop = hand_of(slider, limits=Limits(ramp=0.05, low=(-1.0,), high=(1.0,)))
    loop.run(200)
    hand.target = 0.3
    moving = loop.run(150)
    assert moving[-1, 1] > 0.05
    if how == "pause":
        loop.controller.command({"do": "pause"})
    elif how == "fault":
        loop.controller.fault(Fault.STALLED)
    else:
        counts = loop.stepper.tick_data.counts
        counts[TickCounts.RELEASE_TICKS], counts[TickCounts.RELEASE_TIME] = 12, 10**12
        loop.run = lambda ticks: silent(loop, ticks)
    after = loop.run(400)
    within = {"pause": 52, "fault": 1, "no samples": 13}[how]
    assert not after[within:, 1].any()
    # the position loop comes to rest within some of its time constants of 4 ms, and stays, though the hand pulls
    assert np.ptp(after[within + 100 :, 0]) < 1e-9
    assert hand.hand_force > 1.0


def silent(loop, ticks):
    """Ticks without a new sample; the device follows its commands."""
    found = np.empty((ticks, 2))
    for k in range(ticks):
        loop.controller.tick(Sample(0.0, loop.sequence, [loop.hand.position], [loop.hand.hand_force]))
        loop.hand.force = float(loop.stepper.tick_data.force[0])
        loop.hand.advance(PERIOD)
        found[k] = loop.hand.position, loop.hand.force
    return found


def at_rest_on_the_wall(session):
    """The last of five snapshots of pressing at rest; with late ticks the device may bounce first."""
    until, pressing = time.monotonic() + 30.0, 0
    while pressing < 5:
        seen = session.snapshot()
        assert time.monotonic() < until, seen
        pressing = pressing + 1 if seen["mode"] == "pressing" and seen["velocity"][1] < -3.0 else 0  # N, of the hand
        time.sleep(0.05)
    return seen


def test_a_rigid_wall_stops_the_device_and_the_run_is_replayed(wall, tmp_path):
    path = tmp_path / "followed.mcap"
    device = emulation("udp", {"axes": 2, "kind": "admittance", "hand": {"stiffness": 300.0, "damping": 20.0}})
    try:
        settings = LiveSettings(watchdog_timeout=0.5)
        with LiveSession.start(wall, "udp", device.options, settings=settings, record=path) as session:
            session.wait_for_ticks(300)
            device.do("hand", target=[0.0, -0.05])
            pressed = at_rest_on_the_wall(session)
            os.kill(session.tick_pid, signal.SIGKILL)
            begin = time.monotonic()
            session.wait(5.0)
            time.sleep(max(0.0, begin + 0.2 - time.monotonic()))
            device.do("hand", target=[0.05, 0.05])
            before = device.state()["position"]
            time.sleep(0.1)
            after = device.state()
    finally:
        device.close()
    # 20 kN/m yield by less than a millimetre; the device integrates by its own clock, the ticks by theirs
    assert pressed["position"][1] == pytest.approx(-0.01, abs=3e-3)
    assert after["force"] == [0.0, 0.0]  # the watchdog process sent: stand still
    assert after["position"] == pytest.approx(before, abs=1e-9)
    recorded = read_recording(path)
    records, _ = replay(recorded)
    assert len(records) == len(recorded.records) > 0
    assert np.array_equal(records, recorded.records)


def test_what_does_not_go_together_is_refused(slider, wall):
    options = {"axes": 1, "kind": "admittance", "port": 0}
    with pytest.raises(InputError, match="not observed with a device that follows"):
        LiveSession.start(slider, "udp", options, settings=LiveSettings(passivity="observe"))
    with pytest.raises(InputError, match="coupled for the other kind"):
        LiveSession.start(wall, "scripted", {"axes": 2})
    with pytest.raises(InputError, match="of one kind"):
        combined.combined_spec([DeviceSpec("a", 1), DeviceSpec("b", 1, kind=ADMITTANCE)])
    with pytest.raises(InputError, match="force_scale"):
        LiveStepper(coupled_graph(slider, {}, True), 1, mapping=DeviceMap(force_scale=0.0))
    with pytest.raises(InputError, match="kind of the driver udp"):
        udp.Driver.describe({"kind": "hydraulic"})
    with pytest.raises(InputError, match=r"limits\.speed"):
        Limits(speed=0.0).check(1)


def test_samples_without_a_force_are_dropped():
    device = emulation("udp", {"axes": 1, "kind": "admittance", "velocity": False})
    line = udp.Driver.open_transport(device.options)
    driver = udp.Driver({**device.options, "patience": 0.1}, line)
    try:
        with pytest.raises(TimeoutError, match="no force in it"):
            driver.open()
    finally:
        driver.close()
        device.close()


def call(*words):
    return CliRunner().invoke(app, list(words))


def test_the_commands():
    emulated = ("virtual_wall", "--driver", "udp", "--emulate", "--option", "kind=admittance", "--option", "axes=2")
    hand = ("--hand-stiffness", "300", "--hand-damping", "8")
    said = call("passivity", *emulated, *hand, "--set", "m=2 kg", "--mode", "free", "--json")
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)
    assert [c["stable"] for c in found["conditions"]] == [True, True]
    assert found["conditions"][0]["required"] == pytest.approx(least_inertia(300.0, 8.0, found["delay"]))
    assert "unstable" in call("passivity", *emulated, "--hand-stiffness", "900", "--hand-damping", "8").output
    assert "--hand-stiffness 500" in call("passivity", *emulated).output
    said = call("device", *emulated, "--set", "m=2 kg", "--duration", "0.3", "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["ticks"] == 300
    assert "the page shows no device that follows" in call("device", *emulated, "--no-browser").output
    # any driver, which once failed for every one
    assert call("passivity", "virtual_wall", "--driver", "hapkit", "--emulate").exit_code == 0
