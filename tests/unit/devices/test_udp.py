"""The driver ``udp`` and a program beside it, in this process: who is listened to, and to what."""

from __future__ import annotations

import math
import os
import random
import socket
import time
import types

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import driver_tools as wire
from fsm_dyn.devices import udp
from fsm_dyn.devices import udp as datagrams
from fsm_dyn.devices.driver_tools import VelocityFilter
from fsm_dyn.devices.udp import ForceDatagram, SampleDatagram
from fsm_dyn.live.driver_protocol import NOTHING, SAFE_FRAME, DeviceDynamics
from fsm_dyn.runtime.abi import ForceFlag


class Pair:
    """A driver with its socket as another process would have it, and a program that sends to it."""

    def __init__(self, **options):
        self.options = {"axes": 2, "port": 0, **options}
        self.transport = udp.Driver.open_transport(self.options)
        self.guards = os.dup(self.transport)
        self.driver = udp.Driver(self.options, self.transport)
        with socket.socket(fileno=os.dup(self.guards)) as same:
            self.place = same.getsockname()
        self.program = self.another()
        self.sequence = 0

    def another(self):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("127.0.0.1", 0))
        made.settimeout(5.0)
        return made

    def send(self, x, sender=None, sequence=None, time=None, velocity=(0.0, 0.0)):
        self.sequence = self.sequence + 1 if sequence is None else sequence
        sample = SampleDatagram(self.sequence, 0.001 * self.sequence if time is None else time, 3, (x, 0.0), velocity)
        (sender or self.program).sendto(datagrams.pack_sample(sample), self.place)

    def received(self):
        return datagrams.unpack_force(self.program.recv(1024), 2)

    def close(self):
        self.driver.close()
        os.close(self.guards)
        self.program.close()


@pytest.fixture
def pair():
    made = []

    def make(**options):
        made.append(Pair(**options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_samples_come_and_forces_go(pair):
    it = pair()
    it.send(0.25, velocity=(1.5, 0.0))
    it.driver.open()
    sample = it.driver.read()
    assert (sample.position, sample.velocity, sample.buttons) == ((0.25, 0.0), (1.5, 0.0), 3)
    assert it.driver.write([1.0, -2.0]) == [1.0, -2.0]
    force = it.received()
    assert (force.force, force.echo, force.flags) == ((1.0, -2.0), 1, ForceFlag.RUNNING)
    assert it.driver.read() is sample, "no news"


def test_the_safe_packet_reaches_the_peer_through_the_guard(pair):
    """The guard writes to the descriptor that it shares with the driver, and knows of no peer."""
    it = pair()
    with pytest.raises(OSError, match=r"."):  # nobody is there yet: it goes nowhere, and that is reported
        os.write(it.guards, it.driver.spec.safe_packet)
    it.send(0.0)
    it.driver.open()
    os.write(it.guards, it.driver.spec.safe_packet)
    assert it.received() == ForceDatagram(0, 0.0, 0, (0.0, 0.0), ForceFlag.LET_GO)


def test_the_end_lets_go(pair):
    it = pair()
    it.send(0.0)
    it.driver.open()
    it.driver.write([5.0, 0.0])
    it.driver.close()
    assert it.received().force == (5.0, 0.0)
    last = it.received()
    assert (last.force, last.flags) == ((0.0, 0.0), ForceFlag.LET_GO)


@pytest.mark.parametrize("declared", [False, True])
def test_strangers_are_counted_and_move_nothing(pair, declared):
    """Before there is a peer and after; an untrusted source's datagrams are as good as the peer's."""
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stranger.bind(("127.0.0.1", 0))
    mine = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mine.bind(("127.0.0.1", 0))
    it = pair(**({"peer": f"127.0.0.1:{mine.getsockname()[1]}"} if declared else {}))
    it.program.close()
    it.program = mine
    if declared:
        it.send(9.0, stranger)
        assert it.driver.read().position == (0.0, 0.0)
    it.send(0.1)
    it.driver.open()
    for k in range(20):
        it.send(9.0, stranger, sequence=100 + k)
    for _ in range(3):
        assert it.driver.read().position == (0.1, 0.0)
    assert it.driver.diagnostics() == {"stranger": 20 + declared}
    stranger.close()


NOISE = random.Random(500).randbytes(500)


def test_bad_and_old_datagrams_are_counted_and_move_nothing(pair):
    it = pair()
    it.send(0.1, sequence=2**32 - 2, time=5.0)
    it.driver.open()
    good = datagrams.pack_sample(SampleDatagram(2**32 - 1, 6.0, 0, (9.0, 0.0), (0.0, 0.0)))
    for bad in (good[:40], b"XXXX" + good[4:], good[:4] + b"\x09" + good[5:], good[:-8] + b"\xff" * 8, NOISE):
        it.program.sendto(bad, it.place)
    it.send(9.0, sequence=2**32 - 2, time=5.1)
    it.send(9.0, sequence=2**32 - 3, time=5.2)
    it.send(9.0, sequence=2**32 - 1, time=4.9)
    assert it.driver.read().position == (0.1, 0.0)
    dropped = it.driver.dropped
    assert dropped["old"] == 3
    assert dropped["number"] == dropped["version"] == 1
    assert dropped["size"] + dropped["magic"] == 3
    it.send(0.2, sequence=3, time=5.3)  # past the end of 32 bits
    assert it.driver.read().position == (0.2, 0.0)


def test_a_program_started_anew_counts_from_where_it_likes(pair, monkeypatch):
    it = pair()
    it.send(0.1, sequence=5000)
    it.driver.open()
    it.send(0.2, sequence=1)
    assert it.driver.read().position == (0.1, 0.0)
    now = time.monotonic()
    monkeypatch.setattr(udp.time, "monotonic", lambda: now + udp.SILENCE + 0.1)
    it.send(0.3, sequence=1)
    assert it.driver.read().position == (0.3, 0.0)


def test_a_program_that_is_no_more_is_named(pair):
    it = pair()
    it.send(0.0)
    it.driver.open()
    it.program.close()

    def use():
        for _ in range(100):  # the answer of the system comes after the first
            it.driver.write([0.0, 0.0])
            it.driver.read()

    with pytest.raises(ConnectionRefusedError, match=r"device program at 127\.0\.0\.1, port \d+, is no more"):
        use()
    it.driver._peer = None  # nothing is there that could be commanded to disengage


def test_nobody_comes(pair):
    it = pair(patience=0.05)
    it.program.sendto(b"hello", it.place)
    with pytest.raises(
        TimeoutError, match=r"no sample of 2 axes came to 127\.0\.0\.1, port \d+ in 0\.05 s; dropped: 1 size"
    ):
        it.driver.open()


def test_velocity_by_the_filter(pair):
    """Where a program sends none: a ramp's velocity is approached as `1 - exp(-2 pi f t)`."""
    it = pair(bandwidth=20.0)
    h, v = 1e-3, 0.4
    for k in range(50):
        it.send(v * k * h, velocity=None, time=k * h)
    it.driver.open()
    found = it.driver.read().velocity
    assert found[0] == pytest.approx(v * (1.0 - math.exp(-2.0 * math.pi * 20.0 * 49 * h)), rel=1e-9)  # rounding
    assert found[1] == 0.0


def test_the_filter_makes_little_of_a_sensors_steps():
    """Steps of a resolution r, that seldom come, are let through as about 2 pi f r instead of r / h."""
    f, h, r = 10.0, 1e-3, 1e-5
    rates = VelocityFilter(1, f)
    speed = 1e-3  # m/s: a step each ten samples
    x = r * (np.arange(4000) // 10)
    found = np.array([rates.take(h * k, [float(p)])[0] for k, p in enumerate(x)])[2000:]
    assert np.mean(found) == pytest.approx(speed, rel=1e-2)
    assert np.ptp(found) <= 2.0 * np.pi * f * r


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"axes": 7}, "1 to 6"),
        ({"axes": 2, "turns": [2]}, "0 to 1"),
        ({"ports": 4}, "no option 'ports'"),
        ({"port": 70000}, "65535"),
        ({"watchdog": -1}, "watchdog"),
        ({"bandwidth": 0}, "(?s)bandwidth.*above 0"),
        ({"axes": "two"}, "1 to 6"),
        ({"axes": True}, "1 to 6"),
        ({"turns": 1}, "a list"),
        ({"mass": "heavy"}, "mass"),
        ({"force": float("nan")}, "force"),
        ({"patience": -1}, "patience"),
        ({"host": "0.0.0.0"}, "peer=192"),
        ({"host": "::"}, "peer=192"),
        ({"host": "example"}, "an address"),
        ({"host": "0.0.0.0", "peer": "1.2.3.4:x"}, "an address"),
    ],
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        udp.Driver({**options}, udp.Driver.open_transport({"port": 0}))


def test_what_is_known_of_the_device():
    spec = udp.Driver.describe({"axes": 2, "turns": [1], "force": 3, "torque": 0.2, "mass": 0.3, "delay": 0.001})
    assert (spec.force, spec.torque, spec.rotational_axes) == (3.0, 0.2, (1,))
    assert spec.handle == DeviceDynamics(mass=0.3, delay=0.001, velocity_bandwidth=None)


def test_what_waited_while_the_model_was_made_ready_is_gone_through_at_once(pair):
    it = pair()
    for k in range(150):
        it.send(1e-3 * k)
    it.driver.open()
    for k in range(150, 250):  # more than a tick takes
        it.send(1e-3 * k)
    assert it.driver.read().position[0] == pytest.approx(0.249)


def test_what_stops_it():
    assert udp.Driver.describe({}).stop_mechanism == SAFE_FRAME
    assert udp.Driver.describe({"watchdog": 0}).stop_mechanism == SAFE_FRAME  # nothing is lost on this computer
    far = {"host": "0.0.0.0", "peer": "192.0.2.7"}
    assert udp.Driver.describe(far).stop_mechanism == SAFE_FRAME
    assert udp.Driver.describe({**far, "watchdog": 0}).stop_mechanism == NOTHING


def test_a_port_that_is_taken_is_reported(pair):
    it = pair()
    it.send(0.0)
    it.driver.open()  # shares its port with its own second socket from now on, and with nobody else
    with pytest.raises(InputError, match="another run may listen there"):
        udp.Driver.open_transport({"port": it.place[1]})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("192.0.2.7", ("192.0.2.7", 0)),
        ("192.0.2.7:4000", ("192.0.2.7", 4000)),
        ("::1", ("::1", 0)),
        ("[::1]:4000", ("::1", 4000)),
    ],
)
def test_addresses(text, found):
    assert udp.address_of(text) == found


def test_where_a_guard_could_not_share_a_socket(monkeypatch):
    monkeypatch.setattr(wire, "os", types.SimpleNamespace(name="nt"))
    with pytest.raises(InputError, match="Linux, macOS"):
        udp.Driver.open_transport({"port": 0})
