"""Differences between systems, as far as testable on one: clocks, memory, privileges, waiting for the owner."""

import ctypes
import io
import os
import subprocess
import sys
import tempfile
import time
import types

import pytest

from fsm_dyn.live import pacing as realtime
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live import watchdog
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.runtime.abi import LiveHeader


def test_deadlines_go_by_a_clock_that_is_fine_enough():
    """Windows counts its monotonic clock in steps of 16 ms; its performance counter is steady too."""
    assert realtime.clock_of("win32") is time.perf_counter_ns
    assert realtime.clock_of("darwin") is realtime.clock_of("linux") is time.monotonic_ns
    until = realtime.clock() + 3_000_000
    assert realtime.wait_until(until) >= until


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_what_a_system_does_not_have_is_said(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.delattr(os, "sched_setscheduler", raising=False)
    asked = []
    kernel = types.SimpleNamespace(
        GetCurrentProcess=lambda: -1, SetPriorityClass=lambda process, level: asked.append(level) or 1
    )
    clock = types.SimpleNamespace(timeBeginPeriod=lambda ms: asked.append(ms) or 97)  # refused
    monkeypatch.setattr(ctypes, "windll", types.SimpleNamespace(kernel32=kernel, winmm=clock), raising=False)
    for name in ("collect", "freeze", "disable"):
        monkeypatch.setattr(f"gc.{name}", lambda: None)
    told = realtime.ask_for_privileges()
    assert "SCHED_FIFO: not granted (not on this system)" in told
    assert not any("slices" in line for line in told)
    assert "locked memory: not granted (not on this system)" in told
    if system == "win32":
        assert "high priority: granted" in told
        assert "timer of 1 ms: not granted (refused)" in told
        assert asked == [0x80, 1]


SLICES = """
import os, pathlib, re, sys
import fsm_dyn.live.pacing as pacing
os.sched_setscheduler = lambda *arguments: (_ for _ in ()).throw(PermissionError(1, "Operation not permitted"))
print(pacing.ask_for_privileges())
print(re.search(r"se\\.slice\\s*:\\s*(\\d+)", pathlib.Path("/proc/self/sched").read_text()).group(1))
"""


@pytest.mark.skipif(sys.platform != "linux" or not os.path.exists("/proc/self/sched"), reason="of Linux alone")
def test_time_slices_are_short_without_privileges():
    """Judged by the kernel's account of the process; kernels before 6.12 have no such slices."""
    done = subprocess.run([sys.executable, "-c", SLICES], capture_output=True, text=True, check=True)
    told, slice_ = done.stdout.splitlines()
    assert "SCHED_FIFO: not granted" in told
    granted = "time slices of 0.1 ms: granted" in told
    assert granted == (int(slice_) == 100_000)
    assert granted or "time slices of 0.1 ms: not granted (not " in told


@pytest.mark.parametrize("system", ["posix", "windows"])
def test_a_run_without_anonymous_memory(held, monkeypatch, motions, system, tmp_path):
    """Elsewhere than on Linux the processes share a file; it has no name, or goes with the run."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if system == "windows":
        monkeypatch.setattr(tick_data, "anonymous", lambda: None)
    monkeypatch.delattr(os, "sched_setscheduler", raising=False)
    hand = {"axes": 1, "motion": motions["latch"][0], "stop": "watchdog"}
    settings = LiveSettings(paced=False, realtime_privileges=False, watchdog_timeout=20.0, ticks=400)
    with LiveSession.start(held("latch"), "scripted", hand, settings=settings) as session:
        path = session._block.path
        assert os.listdir(tmp_path) == ([os.path.basename(path)] if system == "windows" else [])
        assert session.wait(60.0), session.log()
    report = session.close()
    assert (report["ticks"], report["phase"], report["watchdog_action"]) == (400, "paused", "")
    assert os.listdir(tmp_path) == []


class Unselectable:
    """Like selectors on Windows, which can wait for sockets only."""

    def register(self, file, events):
        pass

    def select(self, timeout):
        raise OSError("not a socket")


def test_the_guard_notices_its_owner_where_pipes_cannot_be_waited_for(monkeypatch):
    """The pipe of its standard input closes: a thread sees it, and the tick process is asked to end."""
    block = tick_data.SharedBlock.create(tick_data.BlockLayout(4, 4))
    header = watchdog.Header(block.address)
    reading, writing = os.pipe()
    made = iter([Unselectable()])
    real = watchdog.selectors.DefaultSelector
    monkeypatch.setattr(watchdog.selectors, "DefaultSelector", lambda: next(made, None) or real())
    monkeypatch.setattr(sys, "stdin", io.FileIO(reading, closefd=False))
    code = "import mmap, os, struct, sys, time\nm = mmap.mmap(int(sys.argv[1]), 512)\n"
    code += "struct.pack_into('<q', m, 96, 1)\n"
    code += "while not struct.unpack_from('<q', m, 16)[0]: time.sleep(0.002)\nstruct.pack_into('<q', m, 24, 3)"
    child = subprocess.Popen([sys.executable, "-c", code, block.address], pass_fds=[int(block.address)])
    threading = watchdog.threading
    while not header[LiveHeader.TICK_PID]:
        time.sleep(0.01)
    threading.Timer(0.3, os.close, (writing,)).start()
    assert watchdog.watch(header, child, 20.0, 0.002) == 0
    assert header[LiveHeader.STOP_REQUESTED] == 1
    assert child.wait(20.0) == 0  # the watchdog process continues after detecting its end
    os.close(reading)
    block.close()
