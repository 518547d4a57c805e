"""A hand at the virtual wall across every emulated device: what it is given when the force ends, and by whom."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.live.device_map import DeviceMap, Limits, device_map_for
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.devices.makers.emulated_library import Device, build

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "device.md"
DRIVERS = {
    "hapkit": {"mass": 0.05, "damping": 0.2},
    "udp": {"axes": 2, "mass": 0.2, "damping": 0.5},
    "inverse3": {"mass": 0.2, "damping": 0.5},
    "pantograph": {"mass": 0.1, "damping": 0.5},
    "force_dimension": {"mass": 0.2, "damping": 0.5},
    "touch": {"mass": 0.1, "damping": 0.5},
}
LIBRARIES = {"force_dimension": "emulated_dhd.c", "touch": "emulated_hd.c"}  # behind which the device is
UNWATCHED = {"pantograph", "touch"}  # have no watchdog, for which their force is limited to a fifth
WATCHDOG = 0.02  # s
HAND = {"stiffness": 60.0, "damping": 10.0}  # firm: a loose one swings with the stiffest couplers, whatever is done
BEHIND = {"hapkit": 0.05}  # m, where the hand wants to be; others are at the port, which begins 1 cm above the plate
HEAVY = 2.0  # kg, of the tool, for a device that follows
MOVES = 0.1  # m/s
PRESSED = {"pantograph": 0.3, "touch": 0.3}  # N, at least while the wall is pressed; others 1.5

COMMANDS = {
    "pause": {},
    "reset": {},
    "scrub": {"t": 0.5},
    "speed": {"value": 0.5},
    "set": {"values": {"k": 1e4}},
    "port": {"force_scale": 0.9},
}

OWNER = """
import json, sys
import fsm_dyn
from tests.benchmarks.hand import start
driver, options, stiffness = json.loads(sys.argv[1])
session = start(fsm_dyn.compile(fsm_dyn.load("virtual_wall")), driver, options, stiffness)
session.wait_for_ticks(300)
print(session.watchdog_pid, session.tick_pid, flush=True)
sys.stdin.read()
"""


def start(graph, driver, options, stiffness, **changes):
    """A session with usual settings: the wall, held through a coupler of a stiffness (N/m)."""
    from fsm_dyn.live.launch import coupled_graph

    if options.get("kind") == "admittance":
        return LiveSession.start(graph, driver, options, settings=LiveSettings(**changes), parameters={"m": HEAVY})
    graph = coupled_graph(graph)
    mapping = device_map_for(graph, "", 1) if driver == "hapkit" else DeviceMap()
    settings = LiveSettings(device_map=mapping, limits=changes.pop("limits", Limits()), **changes)
    return LiveSession.start(
        graph, driver, options, settings=settings,
        parameters={"handle_2_stiffness": stiffness, "handle_1_stiffness": stiffness},
    )  # fmt: skip


@functools.cache
def library(source):
    """Path of an emulated library, which is built once a process."""
    return build(source, Path(tempfile.mkdtemp(prefix="emulated_")) / "emulated.so")


def as_a_board(device):
    """Have an emulated device scheduled before all else, where permitted: a board has a processor for itself."""
    with contextlib.suppress(OSError, AttributeError):
        for thread in os.listdir(f"/proc/{device.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(80))
    return device


def emulated(driver, options):
    """The emulated device of a driver, started; its ``options`` are those of the driver."""
    if driver not in LIBRARIES:
        return as_a_board(emulation(driver, options))
    memory = Path(tempfile.mkdtemp(prefix="emulated_")) / "memory"
    os.environ["FSM_EMULATED_DEVICE"] = str(memory)  # where the library finds the device, one at a time
    device = Device(memory, **options, has_watchdog=bool(options["watchdog"]))
    device.options = {"library": str(library(LIBRARIES[driver]))}
    if driver not in UNWATCHED:
        device.options["watchdog"] = options["watchdog"]
    return as_a_board(device)


def undisturbed(measure, attempts=4):
    """Return what was measured with a new hand; again where this machine had other things to do."""
    for _ in range(attempts):
        try:
            return measure()
        except RuntimeError as error:
            print(f"\nagain: {error}")
    raise RuntimeError("this machine is too busy")


class Hand:
    """An emulated device whose hand presses the wall, and the session that holds it: in this process or in its own."""

    def __init__(
        self, graph, driver, *, watchdog=WATCHDOG, stiffness=1000.0, own_process=False, kind="impedance", **changes
    ):
        self.driver = driver
        self.axis = 0 if driver == "hapkit" else 1
        known = {**DRIVERS[driver], **({"kind": kind} if driver == "udp" else {})}
        watchdog = 0.0 if driver in UNWATCHED else watchdog
        self.device = emulated(driver, {**known, "watchdog": watchdog, "hand": HAND})
        self.owner = self.session = None
        try:
            if own_process:
                words = json.dumps([driver, self.device.options, stiffness])
                self.owner = subprocess.Popen(
                    [sys.executable, "-c", OWNER, words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                self.watchdog_pid, self.tick_pid = map(int, self.owner.stdout.readline().split())
            else:
                self.session = start(graph, driver, self.device.options, stiffness, **changes)
                self.session.wait_for_ticks(300)
                self.watchdog_pid, self.tick_pid = self.session.watchdog_pid, self.session.tick_pid
            self.place = self.device.state()["position"]
        except BaseException:
            self.close()
            raise

    def press(self, patience=10.0):
        """Have the hand press the wall until it rests there."""
        target = list(self.place)
        target[self.axis] -= BEHIND.get(self.driver, 0.06)
        self.device.do("hand", **HAND, target=target)
        until, calm = time.monotonic() + patience, 0
        while calm < 8:
            found = self.device.state()
            at_rest = (
                abs(found["force"][self.axis]) > PRESSED.get(self.driver, 1.5)
                and abs(found["velocity"][self.axis]) < 0.05
            )
            calm = calm + 1 if at_rest else 0
            if time.monotonic() > until:
                raise RuntimeError(f"it is not pressed: {found}, {self.session and self.session.report()}")
            time.sleep(0.02)
        self.device.log()

    def set_off(self, patience=10.0):
        """Have the hand pull a device that follows away from the wall until it moves."""
        target = list(self.place)
        target[self.axis] += 0.5
        self.device.do("hand", target=target)
        until = time.monotonic() + patience
        while self.device.state()["force"][self.axis] < MOVES:
            if time.monotonic() > until:
                raise RuntimeError(f"it does not move: {self.device.state()}")
        self.device.log()

    def stop(self, happen, duration):
        """Let something happen; return after what time no motion is commanded (s), by whom, and how far it went (m)."""
        start, begin = self.device.state()["position"][self.axis], time.monotonic()
        happen()
        time.sleep(duration)
        log, found = self.device.log(), self.device.state()
        moved = found["position"][self.axis] - start
        if any(found["force"]):
            return None, "nothing", moved
        moves = [k for k, entry in enumerate(log) if any(entry["force"])]
        first = log[moves[-1] + 1 if moves else 0]
        return max(0.0, first["time"] - begin), first["why"], moved

    def begin_again(self, patience=10.0):
        """Bring device and model back to where they began, and hold anew."""
        self.device.do("hand", **HAND, target=self.place)
        session = self.session
        time.sleep(0.3)  # until it is where it was, and what was commanded is done
        session.send("run")
        session.send("set", values={"k": 2e4})
        session.send("speed", value=1.0)
        session.send("port", force_scale=1.0)
        session.send("reset")
        time.sleep(0.1)
        until = time.monotonic() + patience
        while session.snapshot()["engagement"] < 1.0:
            if time.monotonic() > until or not session.alive:
                raise RuntimeError(f"it is not held: {session.report()}")
            time.sleep(0.02)

    def measure(self, happen, gone, duration):
        """Let something happen; return after what time the force is zero for good (s), by whom, and the meter."""
        self.device.do("measure")
        begin = time.monotonic()
        if gone:
            self.device.do("hand", stiffness=0.0, damping=0.0)
        happen()
        time.sleep(duration)
        meter, log = self.device.state()["meter"], self.device.log()
        if any(log[-1]["force"] if log else self.device.state()["force"]):
            return None, "none", meter
        forces = [k for k, entry in enumerate(log) if any(entry["force"])]
        first = log[forces[-1] + 1 if forces else 0] if log else {"time": begin, "why": "free"}
        why = "the guard" if (first["why"], first.get("sequence")) == ("host", 0) else first["why"]
        return max(0.0, first["time"] - begin), why, meter

    def close(self):
        for pid in (self.watchdog_pid, self.tick_pid) if hasattr(self, "tick_pid") else ():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        if self.owner is not None:
            with contextlib.suppress(OSError):
                self.owner.send_signal(signal.SIGCONT)
            self.owner.kill()
            self.owner.wait()
        if self.session is not None:
            self.session.close()
        self.device.close()


def put_rows(name, driver, lines):
    """Write the rows of a driver, which is the second column, into a table of the page on devices."""
    mark = re.compile(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->", re.DOTALL)
    found = mark.search(PAGE.read_text(encoding="utf-8"))
    assert found, f"the page has no place for '{name}'"
    head, rows = found[1].splitlines()[:2], found[1].splitlines()[2:]
    others = {other: [row for row in rows if row.split(" | ")[1] == other] for other in DRIVERS}
    put_table(name, [*head, *(row for own in {**others, driver: lines}.values() for row in own)])


def put_table(name, lines):
    """Write a table between its marks in the page on devices."""
    text = PAGE.read_text(encoding="utf-8")
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    assert mark.search(text), f"the page has no place for '{name}'"
    PAGE.write_text(mark.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], text), encoding="utf-8")
