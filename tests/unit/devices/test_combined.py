"""Several devices as one: forces at rest, faults of one of them, limits of each, recordings, bad input."""

import contextlib
import math
import os
import signal
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import combined, scripted
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import DeviceSpec, Sample
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.watchdog import make_safe
from fsm_dyn.runtime.abi import TickCounts

TWO = (DeviceMap(), DeviceMap())
HAND = {"stiffness": 300.0, "damping": 5.0}
SOON = 0.02  # s; measured: 6 ms
ATTEMPTS = 3  # a core that other work holds may stand still for longer than that
EXACT = 1e-9  # N, of forces at rest: rounding of some newtons is 1e-15, what is left of the motion after 6 s below it


@pytest.fixture(scope="module")
def bar():
    return coupled_graph(fsm_dyn.compile("carried_bar"))


def at_rest(*places, **options):
    """A scripted hand that goes to these places within half a second and stays there."""
    motion = [[axis, place, 0.0, math.pi / 2] for axis, place in enumerate(places)]
    return {"driver": "scripted", "options": {"axes": len(places), "motion": motion, "stop": "watchdog", **options}}


def last_tick(graph, devices, ticks=6000, record=None):
    """The tick seen after so many; the run lasts much longer, so that its end is not seen on a busy machine."""
    settings = LiveSettings(device_map=TWO, paced=False, ticks=10 * ticks)
    with LiveSession.start(graph, "combined", {"devices": devices}, settings=settings, record=record) as session:
        session.wait_for_ticks(ticks)
        return session.snapshot()


def test_action_equals_reaction_on_both_ends_of_a_bar(bar):
    found = last_tick(bar, [at_rest(-0.01, 0.05), at_rest(0.01, 0.05)])
    left, right = np.array(found["force"][:2]), np.array(found["force"][2:])
    assert found["mode"] == "carried"
    assert left[0] > 1.0  # the hands pull
    assert abs(left[0] + right[0]) < EXACT
    assert abs(left[1] + right[1] + 0.4 * 9.81) < EXACT


def test_action_equals_reaction_on_the_fingers_of_the_gripper():
    graph = coupled_graph(fsm_dyn.compile("gripper"))
    found = last_tick(graph, [at_rest(0.04), at_rest(0.04)])
    assert found["mode"] == "gripped"
    assert -found["force"][0] > 60.0 * 0.012  # more than the spring of a finger: the block is pressed
    assert abs(found["force"][0] - found["force"][1]) < EXACT


def test_a_recording_of_two_devices_is_replayed_bit_for_bit(bar, tmp_path):
    path = tmp_path / "two.mcap"
    last_tick(bar, [at_rest(-0.01, 0.05), at_rest(0.01, 0.05)], 800, path)
    recorded = read_recording(path)
    assert recorded.columns.device == 4
    assert len(recorded.records) > 0
    records, stepper = replay(recorded)
    assert np.array_equal(records, recorded.records)
    row = recorded.columns.as_dict(recorded.rows[-1], recorded.settings.modes)
    assert stepper.loop.state.x.tolist() == list(row["state"].values())
    settings = LiveSettings(device_map=TWO, paced=False, ticks=800)
    with LiveSession.start(bar, "replay", {"file": str(path)}, settings=settings) as session:
        session.wait_for_ticks(700)
        assert session.snapshot()["mode"] == "carried"


PULLED = {"carried_bar": ((-0.02, 0.03), (0.02, 0.03)), "gripper": ((0.04,), (0.04,))}  # m, where the hands want to be


@contextlib.contextmanager
def held(name):
    """Two emulated devices that pull at the bar or close the gripper, and the session that couples them."""
    graph, places = coupled_graph(fsm_dyn.compile(name)), PULLED[name]
    axes = len(places[0])
    devices = [emulation("udp", {"axes": axes, "watchdog": 0.0, "hand": HAND}) for _ in range(2)]
    entries = [{"driver": "udp", "options": device.options} for device in devices]
    limits = Limits(velocity=20.0)
    settings = LiveSettings(device_map=TWO, watchdog_timeout=0.2, limits=limits)
    session = None
    try:
        session = LiveSession.start(graph, "combined", {"devices": entries}, settings=settings)
        session.wait_for_ticks(300)
        for device, place in zip(devices, places, strict=True):
            device.do("hand", target=list(place))
        until = time.monotonic() + 20.0
        while min(abs(device.state()["force"][0]) for device in devices) < 0.5:
            assert time.monotonic() < until, session.report()
            time.sleep(0.02)
        yield session, devices
    finally:
        if session is not None:
            session.close()
        for device in devices:
            device.close()


def time_to_zero(device, begin):
    """Return the time (s) from ``begin`` until the force of an emulated device was zero for good."""
    time.sleep(0.3)
    log = device.log()
    assert not any(device.state()["force"])
    forces = [k for k, entry in enumerate(log) if any(entry["force"])]
    return log[forces[-1] + 1 if forces else 0]["time"] - begin


def silence(device, session):
    device.do("stall")


def kill_device(device, session):
    os.kill(device.pid, signal.SIGKILL)


def kill_ticks(device, session):
    os.kill(session.tick_pid, signal.SIGKILL)


@pytest.mark.parametrize("name", PULLED)
@pytest.mark.parametrize("happen", [silence, kill_device, kill_ticks])
def test_one_of_them_lost_disengages_the_other_within_20_ms(name, happen):
    times = []
    while not times or (times[-1] >= SOON and len(times) < ATTEMPTS):
        with held(name) as (session, (first, second)):
            begin = time.monotonic()
            happen(first, session)
            times.append(time_to_zero(second, begin))
            if happen is kill_ticks:  # the watchdog process writes to both: they have no watchdog
                times[-1] = max(times[-1], time_to_zero(first, begin))
    assert times[-1] < SOON, times


def test_limits_of_force_and_slew_are_of_each_device(bar):
    limits = Limits(force=0.5, slew=2000.0, ramp=0.01, velocity=100.0)
    stepper = LiveStepper(bar, 4, mapping=TWO, limits=limits, parts=(2, 2))
    controller = RunController(stepper, lambda event: None)
    hand = combined.Driver({"devices": [at_rest(-0.3, 0.0, stiffness=3e3)] * 2})
    for _ in range(600):
        controller.tick(hand.read())
        hand.write(stepper.tick_data.force.tolist())
    force = stepper.tick_data.force
    # by a common norm each would get 0.5/sqrt(2) = 0.354 N
    np.testing.assert_allclose([np.hypot(*force[:2]), np.hypot(*force[2:])], 0.5, rtol=1e-12)


@pytest.mark.parametrize(("quick", "taken"), [((0.9, 0.9), True), ((1.1, 0.0), False)])
def test_limits_of_velocity_are_of_each_device(bar, quick, taken):
    stepper = LiveStepper(bar, 4, mapping=TWO, limits=Limits(velocity=1.0), parts=(2, 2))
    controller = RunController(stepper, lambda event: None)
    controller.tick(Sample(0.0, 1, [0.0] * 4, [quick[0], 0.0, quick[1], 0.0]))
    assert stepper.tick_data.counts[TickCounts.SAMPLE_ACCEPTED] == taken


class Steps:
    """A device whose samples are those of a list."""

    spec = DeviceSpec("steps", 1)

    def __init__(self, samples):
        self.samples, self.sent, self.fails = list(samples), [], False

    def read(self):
        return self.samples.pop(0) if len(self.samples) > 1 else self.samples[0]

    def write(self, force):
        if self.fails:
            raise OSError("gone")
        self.sent.append(force)
        return force

    def close(self):
        self.sent.append("closed")
        if self.fails:
            raise OSError("gone")


def steps(*sequences, buttons=0):
    return Steps([Sample(0.0, k, [0.1 * k], [0.0], buttons) for k in sequences])


def made_of(*devices):
    driver = combined.Driver({"devices": [at_rest(0.0), at_rest(0.0)]})
    driver._devices = list(devices)
    driver._reads, driver._writes = [d.read for d in devices], [d.write for d in devices]
    return driver


def test_a_sample_is_new_once_every_device_has_a_new_one():
    driver = made_of(steps(1, 2, 3, 3, 4), steps(1, 1, 2, 3, 3))
    found = [driver.read() for _ in range(6)]
    assert [sample.sequence for sample in found] == [1, 1, 2, 2, 3, 3]
    assert found[2].position == pytest.approx([0.3, 0.2])
    assert made_of(steps(1, buttons=1), steps(1, buttons=2)).read().buttons == 1 + (2 << 16)


def test_where_one_cannot_be_written_to_no_other_keeps_its_force():
    first, second = steps(1), steps(1)
    driver = made_of(first, second)
    driver.write([1.0, 2.0])
    second.fails = True
    with pytest.raises(OSError, match="gone"):
        driver.write([1.0, 2.0])
    assert first.sent[-1] == [0.0]
    second.fails, first.fails = False, True
    with pytest.raises(OSError, match="gone"):
        driver.write([1.0, 2.0])
    assert second.sent[-1] == [0.0]
    with pytest.raises(OSError, match="gone"):
        driver.close()
    assert second.sent[-1] == "closed"


def test_a_device_that_takes_nothing_does_not_hold_up_the_safe_packet_of_another():
    (stuck, full), (there, line) = os.pipe(), os.pipe()
    try:
        for end in (full, line):
            os.set_blocking(end, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(full, b"x" * 4096):
                pass
        begin = time.monotonic()
        make_safe({full: b"zero", line: b"zero"}, 0.3)
        assert time.monotonic() - begin >= 0.3  # it kept trying
        assert os.read(there, 10) == b"zero"
    finally:
        for end in (stuck, full, there, line):
            os.close(end)


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([{"driver": "udp"}], "2 to 3"),
        ([{"driver": "udp", "speed": 1}] * 2, "2 to 3"),
        ([{"driver": "pointer"}] * 2, "devices 1 and 2 would be the same one"),
        ([{"driver": "gamepad", "options": {"device": "/dev/input/event3"}}, {"driver": "gamepad"}], "own device"),
        ([{"driver": "nothing"}, {"driver": "udp"}], "no driver 'nothing'"),
        ([{"driver": "combined", "options": {"devices": [{"driver": "udp"}] * 2}}] * 2, "combined again"),
    ],
)
def test_bad_devices_are_refused_before_any_is_opened(devices, words):
    with pytest.raises(InputError, match=words):
        combined.Driver.describe({"devices": devices})


def test_two_drivers_on_one_transport_are_refused_and_leave_nothing_open():
    before = os.listdir("/proc/self/fd")
    with pytest.raises(InputError, match="cannot listen"):
        combined.Driver.open_transport({"devices": [{"driver": "udp", "options": {"port": 24817}}] * 2})
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    ("maps", "words"),
    [
        ((DeviceMap(),), "device maps of a live run"),
        ((DeviceMap("left"), DeviceMap("left")), "two devices at port 'left'"),
        ((DeviceMap(axes=(0, 2)), DeviceMap()), "do not fit port 'left'"),
        ((DeviceMap(offset=(0.0, 0.0)), DeviceMap()), "offsets or none"),
        ((DeviceMap(force_scale=0.5), DeviceMap()), "same force_scale"),
        ((DeviceMap(), DeviceMap("top")), "no port 'top'"),
    ],
)
def test_bad_maps_are_refused(bar, maps, words):
    with pytest.raises(InputError, match=words):
        LiveStepper(bar, 4, mapping=maps, parts=(2, 2))


def test_the_port_of_two_devices_is_not_changed_under_way(bar):
    events = []
    controller = RunController(LiveStepper(bar, 4, mapping=TWO, parts=(2, 2)), events.append)
    controller.command({"do": "port", "port": "right"})
    controller.run_tick(1, 0)
    assert [event["event"] for event in events if "stay at their ports" in event.get("reason", "")] == [
        "command_rejected"
    ]


def test_the_spec_is_that_of_the_weaker_device():
    parts = [
        DeviceSpec("a", 2, "watchdog", force=3.0, rotational_axes=(1,), low=(-1.0, -2.0), high=(1.0, 2.0)),
        DeviceSpec("b", 1, "none", force=9.0, rotational_axes=(0,)),
    ]
    found = combined.combined_spec(parts)
    assert (found.axes, found.force, found.rotational_axes, found.stop_mechanism) == (3, 3.0, (1, 2), "none")
    assert found.low == (-1.0, -2.0, -1e3)


def test_the_command_couples_two_emulated_devices():
    words = ["device", "carried_bar", "--driver", "udp", "--driver", "hapkit", "--emulate", "--option", "1.axes=2"]
    said = CliRunner().invoke(app, [*words, "--port", "right", "--port", "left", "--duration", "0.5", "--json"])
    assert said.exit_code == 0, said.output
    assert '"ticks": 500' in said.output
    for more, reason in (
        ([], "the page shows one device"),
        (["--duration", "1", "--option", "axes=2"], "NUMBER.NAME=VALUE"),
        (["--duration", "1", "--axes", "0,5"], "do not fit port"),
        (["--duration", "1", "--port", "a", "--port", "b", "--port", "c"], "3 times"),
    ):
        said = CliRunner().invoke(app, [*words, *more])
        assert said.exit_code != 0
        assert reason in said.output


def test_scripted_hands_are_driven_alike_by_compiled_functions():
    plain, quick = (combined.Driver({"devices": [at_rest(0.1, 0.2), at_rest(0.3)]}) for _ in range(2))
    quick.calibrate()
    assert all(write.__self__.__class__ is not scripted.Driver for write in quick._writes)
    for k in range(50):
        one, other = plain.read(), quick.read()
        np.testing.assert_allclose(one.position, other.position, rtol=1e-12, atol=1e-15)
        assert one.sequence == other.sequence
        force = [0.01 * k, -0.5, 0.2]
        assert plain.write(force) == quick.write(force) == force
