"""Ticks at 1 kHz with two emulated devices, on the ends of a bar and on the fingers of a gripper, compared with one.

What else this machine does is the larger part of the slowest ticks: runs alternate, and medians are compared.
"""

import os

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.live.device_map import DeviceMap
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
SECONDS = int(os.environ.get("SECONDS", "15"))
REPETITIONS = 5
TIMES = ("execution_time", "wakeup_latency")


AXES = {"carried_bar": 2, "gripper": 1}  # of a port


def percentiles(graph, axes, count):
    """Return the report of a run with emulated devices, each at a port."""
    devices = [emulation("udp", {"axes": axes, "hand": {"stiffness": 300.0, "damping": 5.0}}) for _ in range(count)]
    try:
        entries = [{"driver": "udp", "options": device.options} for device in devices]
        driver, options, maps = "combined", {"devices": entries}, (DeviceMap(),) * count
        if count == 1:
            driver, options, maps = "udp", entries[0]["options"], DeviceMap()
        settings = LiveSettings(device_map=maps, watchdog_timeout=0.5)
        with LiveSession.start(graph, driver, options, settings=settings) as session:
            session.wait_for_ticks(1000 * SECONDS)
            report = session.close()
            return [report[name]["p99.9"] for name in TIMES]
    finally:
        for device in devices:
            device.close()


@pytest.mark.parametrize("name", AXES)
def test_two_devices_cost_no_more_than_a_third_more_than_one(name):
    graph = fsm_dyn.compile(name)
    runs = [[percentiles(graph, AXES[name], count) for count in (1, 2)] for _ in range(REPETITIONS)]
    found = np.median(runs, axis=0)
    for time, one, two in zip(TIMES, *found, strict=True):
        print(f"\n{name}, {time}, p99.9: {1e6 * one:.0f} µs with one device, {1e6 * two:.0f} µs with two")
    assert (found[1] <= 1.3 * found[0]).all()
