"""Reading and writing of datagrams in compiled code against the driver's own, and at 10 kHz."""

from __future__ import annotations

import math
import random
import socket
import struct
import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices import udp
from fsm_dyn.devices import udp as datagrams
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.devices.udp import SampleDatagram
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Fault, ForceFlag, LiveHeader, LivePhase

pytestmark = pytest.mark.skipif(not library.has_pacing(), reason="this system cannot sleep until a deadline")


class Twin:
    """A driver, read and written by Python or by compiled code, and a program that sends to it."""

    def __init__(self, compiled):
        self.block = tick_data.SharedBlock.create(tick_data.BlockLayout(3, 5))
        options = {"axes": 2, "port": 0, "bandwidth": 20.0}
        self.driver = udp.Driver(options, udp.Driver.open_transport(options))
        self.driver.attach(self.block)
        self.place = self.driver._socket.getsockname()
        self.program = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.program.bind(("127.0.0.1", 0))
        self.program.settimeout(5.0)
        self.send(datagrams.pack_sample(SampleDatagram(1, 0.0, 0, (0.0, 0.0), (0.0, 0.0))))
        self.driver.open()
        self.io = self.driver.compiled() if compiled else None
        self.sample, self.force = np.zeros(7), np.zeros(2)

    def send(self, data):
        self.program.sendto(data, self.place)

    def read(self):
        if self.io is None:
            found = self.driver.read()
            return [*found.position, *found.velocity, found.sequence, found.buttons, found.time]
        library.function("fsm_udp_read")(self.io.data, self.sample.ctypes.data)
        return self.sample.tolist()

    def write(self, force):
        self.force[:] = force
        if self.io is None:
            self.driver.write(force)
        else:
            library.function("fsm_udp_write")(self.io.data, self.force.ctypes.data)
        return datagrams.unpack_force(self.program.recv(1024), 2)

    def close(self):
        self.driver.close()
        self.program.close()
        self.block.close(remove=True)


@pytest.fixture
def twins():
    made = [Twin(False), Twin(True)]
    yield made
    for each in made:
        each.close()


def anything(rng, k):
    """A good sample, with or without velocity, or one of the many that are none."""
    sequence, time = k + 2 - 5 * (rng.random() < 0.1), 1e-3 * (k + 1)
    numbers = [rng.uniform(-1, 1) for _ in range(4)]
    sample = SampleDatagram(
        sequence, time, k % 7, tuple(numbers[:2]), tuple(numbers[2:]) if rng.random() < 0.5 else None
    )
    data = datagrams.pack_sample(sample)
    spoil = rng.randrange(16)
    if spoil == 0:
        return data[: rng.randrange(len(data))]
    if spoil == 1:
        at = rng.randrange(6)
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if spoil == 2:
        return data[:-8] + struct.pack("<d", rng.choice([math.nan, math.inf]))
    if spoil == 3:
        return data + bytes(8 * rng.randrange(1, 20))
    if spoil == 4:
        return data[:16] + struct.pack("<d", math.nan) + data[24:]
    return data


def test_both_take_the_same_of_whatever_comes(twins):
    """Thousands of datagrams, good and bad: the same samples, and the same counts by reason."""
    rng, (plain, compiled) = random.Random(5), twins
    for k in range(3000):
        data = anything(rng, k)
        plain.send(data)
        compiled.send(data)
        if k % 3 == 0:
            found = compiled.read()
            assert found == pytest.approx(plain.read(), rel=1e-12, abs=1e-15)  # a contracted sum rounds once less
    counts = plain.driver.diagnostics()
    assert compiled.driver.diagnostics() == counts
    assert set(counts) == {"size", "magic", "version", "axes", "number", "old"}


def test_both_send_the_same(twins):
    for k in range(5):
        phase, fault = (LivePhase.FAULT, Fault.STALLED) if k == 3 else (LivePhase.RUNNING, Fault.NONE)
        sent = []
        for twin in twins:
            twin.block.header[LiveHeader.PHASE], twin.block.header[LiveHeader.FAULT] = phase, fault
            twin.send(datagrams.pack_sample(SampleDatagram(10 + k, 1.0 + k, 0, (0.0, 0.0))))
            twin.read()
            sent.append(twin.write([0.1 * k, -1.0]))
        plain, compiled = sent
        assert compiled._replace(time=0.0, echo=0) == plain._replace(time=0.0, echo=0)
        assert compiled.time == pytest.approx(plain.time, abs=5.0)
        assert (compiled.echo, plain.echo) == (10 + k, 10 + k)
        assert compiled.flags == (ForceFlag.FAULT if k == 3 else ForceFlag.RUNNING)
    for twin in twins:
        twin.driver.close()  # Python's own word, counted on
        last = datagrams.unpack_force(twin.program.recv(1024), 2)
        assert (last.sequence, last.flags, last.force) == (6, ForceFlag.LET_GO, (0.0, 0.0))


def test_a_program_that_is_no_more_is_no_news(twins):
    _, compiled = twins
    compiled.write([0.0, 0.0])
    compiled.program.close()
    before = compiled.read()
    for _ in range(20):
        library.function("fsm_udp_write")(compiled.io.data, compiled.force.ctypes.data)
        assert compiled.read() == before
    compiled.driver._peer = None


def wait_for(condition):
    until = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_ten_kilohertz_with_an_emulated_device():
    """It feels the plate; without samples the fault is reported and the force is zero, by the host."""
    device = emulation("udp", {"axes": 2, "watchdog": 0.0})
    settings = LiveSettings(
        period=1e-4,
        realtime_privileges=False,
        watchdog_timeout=2.0,
        stall_ticks=5000,
        limits=Limits(ramp=0.02, velocity=20.0),
    )
    try:
        with LiveSession.start(fsm_dyn.compile("virtual_wall"), "udp", device.options, settings=settings) as session:
            session.wait_for_ticks(300)
            device.do("hand", stiffness=300.0, damping=10.0, target=[0.0, -0.03])
            wait_for(lambda: device.state()["force"][1] > 0.3)
            device.do("stall")
            wait_for(lambda: session.snapshot()["fault"] == "the device gave no new sample")
            wait_for(lambda: device.state()["force"] == [0.0, 0.0])
            assert device.log()[-1]["why"] == "host"
    finally:
        device.close()
