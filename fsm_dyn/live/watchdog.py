"""Watchdog process: ends a tick process whose heartbeat fails, and removes the force of the device.

It runs as a file, with the standard library alone, and so shares no failure with the tick process.  The tick process
is its child and inherits the device's transport.  The watchdog process polls the tick counter.  If ticks are missing
for a short time, it commands zero force and continues; the tick process detects it and begins at zero, or releases the
device after too long an absence.  If ticks are missing for longer than the timeout, or the tick process ends with an
error, it

1. kills the tick process and waits for its end, as no other process may write to the device, 2. writes the device's
safe packet to the transport.

It ends with the tick process.  When its standard input closes, the session has ended: it requests the end of the tick
process, or kills it while it still loads.  It also starts and ends the derivation process, if there is one.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import runpy
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsm_dyn.runtime.abi import LiveHeader, TickState, WatchdogAction
else:  # by path: this file runs without the package, and the constants do not need it
    _PATH = Path(__file__).parents[1] / "runtime" / "abi.py"
    _ABI = runpy.run_path(str(_PATH), run_name="abi")
    LiveHeader, TickState, WatchdogAction = _ABI["LiveHeader"], _ABI["TickState"], _ABI["WatchdogAction"]

SAFE_WRITE_TIMEOUT = 2.0  # s of attempts to write; then only the device's own watchdog is left
ZERO_WRITE_TIMEOUT = 0.005  # s likewise, if the tick process may continue
NICE = 5  # of the deriver
#: s without a beat outside the loop proper
STARTUP_TIMEOUT: dict[int, float] = {TickState.STARTING: 600.0, TickState.BUSY: 30.0, TickState.ENDED: 5.0}


class Header:
    """The counters of the shared block."""

    def __init__(self, address: str) -> None:
        descriptor = int(address) if address.isdigit() else os.open(address, os.O_RDWR)
        self._map = mmap.mmap(descriptor, 512)

    def __getitem__(self, position: int) -> int:
        value: int = struct.unpack_from("<q", self._map, 8 * position)[0]
        return value

    def __setitem__(self, position: int, value: int) -> None:
        struct.pack_into("<q", self._map, 8 * position, value)


def watch(
    header: Header,
    child: subprocess.Popen[bytes],
    timeout: float,
    period: float,
    zero_after: float = 0.0,
    show_zero: Callable[[], None] = lambda: None,
) -> int:
    """Watch the tick process until it ends; return the action taken: 0 none, ``KILLED`` or ``FOUND_TERMINATED``.

    Without a tick for ``zero_after`` seconds (0: never), ``show_zero`` is called.
    """
    waiting = selectors.DefaultSelector()
    try:
        waiting.register(sys.stdin, selectors.EVENT_READ)
        waiting.select(0)
    except (OSError, ValueError):  # a pipe cannot be waited for on this system
        waiting = selectors.DefaultSelector()
        threading.Thread(target=wait_for_owner, args=(header,), daemon=True).start()
    seen, since = (-1, int(TickState.STARTING)), time.monotonic()
    still = since  # time of the last tick, unaffected by delays of the watchdog process
    zeroed = True
    while child.poll() is None:
        asleep = time.monotonic()
        if waiting.get_map() and waiting.select(period):
            if not os.read(sys.stdin.fileno(), 4096):
                header[LiveHeader.STOP_REQUESTED] = 1
                waiting.unregister(sys.stdin)
        elif not waiting.get_map():
            time.sleep(period)
        header[LiveHeader.WATCHDOG_BEATS] += 1
        if header[LiveHeader.STOP_REQUESTED] and not header[LiveHeader.TICK_PID]:
            # it still loads, and will not touch the device any more
            child.kill()
            wait_for_end(child)
            header[LiveHeader.TICK_STATE] = TickState.ENDED
            return 0
        if is_ending(child.pid):  # killed, or at its end: sooner known than by waiting for it
            break
        now = time.monotonic()
        if now - asleep > period + 0.5 * timeout:
            since = now  # the watchdog process itself was delayed: earlier observations are void
        state = header[LiveHeader.TICK_STATE]
        if (header[LiveHeader.BEATS], state) != seen:  # a state just entered has its own patience
            seen, since, still = (header[LiveHeader.BEATS], state), now, now
            zeroed = state != TickState.RUNNING or zero_after == 0.0
        elif now - since > (timeout if state == TickState.RUNNING else STARTUP_TIMEOUT[state]):
            child.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
            wait_for_end(child)
            return WatchdogAction.KILLED
        elif not zeroed and now - still > zero_after:
            # counted first: a tick process continuing now writes no old force
            header[LiveHeader.ZERO_FORCE_PACKETS] += 1
            show_zero()
            zeroed = True
    return 0 if header[LiveHeader.TICK_STATE] == TickState.ENDED else WatchdogAction.FOUND_TERMINATED


def wait_for_owner(header: Header) -> None:
    """Read the standard input to its end, and ask the tick process to end."""
    with contextlib.suppress(OSError, ValueError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
        header[LiveHeader.STOP_REQUESTED] = 1


def wait_for_end(child: subprocess.Popen[bytes]) -> None:
    """Wait until a killed process runs no code any more.

    Linux sets the flag PF_EXITING about a tenth of a second before the process is gone: freeing its locked memory
    takes time.
    """
    while child.poll() is None:
        ends = is_ending(child.pid)
        if ends is None:
            child.wait()
        elif not ends:
            time.sleep(0.0002)
        else:
            return


def is_ending(pid: int) -> bool | None:
    """Return whether a process runs no code any more; None if the system does not tell, or has no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            flags = int(file.read().rsplit(")", 1)[1].split()[6])
    except (OSError, ValueError, IndexError):  # not Linux
        return None
    return bool(flags & 4)


def hand_on(size: int, child: subprocess.Popen[bytes], beside: subprocess.Popen[bytes] | None = None) -> None:
    """Read ``size`` bytes from the owner and write them to the processes, without waiting for these to read.

    The standard input of ``beside`` stays open: ``beside`` ends when it closes, with this process.
    """
    given = bytearray()
    while len(given) < size and (more := os.read(sys.stdin.fileno(), size - len(given))):
        given += more

    def write(pipe: Any, closes: bool) -> None:
        with contextlib.suppress(OSError):
            pipe.write(given)
            pipe.flush()
            if closes:
                pipe.close()

    threading.Thread(target=write, args=(child.stdin, True), daemon=True).start()
    if beside is not None:
        threading.Thread(target=write, args=(beside.stdin, False), daemon=True).start()


def make_safe(frames: Mapping[int, bytes], patience: float = SAFE_WRITE_TIMEOUT) -> None:
    """Write a packet to each device, by its transport, before any unsent bytes.

    A blocked device does not delay the others.
    """
    for transport in frames:
        discard_unsent(transport)
    remaining = dict(frames)
    until = time.monotonic() + patience
    while remaining and time.monotonic() < until:
        for transport, frame in list(remaining.items()):
            try:
                remaining[transport] = frame[os.write(transport, frame) :]
            except BlockingIOError:
                continue
            except OSError:  # the device itself is gone
                remaining[transport] = b""
            if not remaining[transport]:
                del remaining[transport]
        if remaining:
            time.sleep(0.001)


def discard_unsent(line: int) -> None:
    """Discard unsent bytes of a serial line."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        if os.isatty(line):
            termios.tcflush(line, termios.TCOFLUSH)


def main() -> None:
    """Run the watchdog process; the one argument is its configuration as JSON."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the session's: it ends everybody in order
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked by the parent at the start
    with contextlib.suppress(OSError, AttributeError):  # real-time priority above the watched process, if permitted
        if settings["privileges"]:
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(60))
    header = Header(settings["memory"])
    descriptors = [int(text) for text in settings["descriptors"]]
    keyword: dict[str, Any] = {"pass_fds": descriptors} if os.name == "posix" else {"close_fds": False}
    child = subprocess.Popen(settings["command"], stdin=subprocess.PIPE, **keyword)
    beside = None  # the deriver
    if settings["beside"]:
        beside = subprocess.Popen(settings["beside"], stdin=subprocess.PIPE, **keyword)
        with contextlib.suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, beside.pid, NICE)
    for descriptor in settings["between"]:  # the tick process and the deriver
        os.close(descriptor)
    hand_on(settings["given"], child, beside)
    zero, safe = (
        {device["transport"]: bytes.fromhex(device[frame]) for device in settings["devices"] if device[frame]}
        for frame in ("zero_frame", "safe_frame")
    )
    zero_after = settings["zero_after"] if zero else 0.0

    def show_zero() -> None:
        make_safe(zero, ZERO_WRITE_TIMEOUT)

    action = watch(header, child, settings["timeout"], settings["period"], zero_after, show_zero)
    if action:
        make_safe(safe)
    header[LiveHeader.WATCHDOG_ACTION] = action
    child.wait()
    if beside is not None:
        beside.kill()
        beside.wait()
    sys.exit(1 if action else 0)


if __name__ == "__main__":
    main()
