"""A maker's library in a separate process, so that the force ends when the tick process stands still.

A library that talks to the device itself leaves the watchdog process nothing to write to: while the tick process is
stopped, the last force stays.  So the library runs in a child of the session, between the device and the loop::

    tick process ─┐
                  ├─ socket, forces ▶ library process ─ maker's library ▶ device
    watchdog ─────┘         ◀ samples ┘

The session kills a library process that is stopped; after one that was killed another one opens the device and removes
its force.

The library process shows the last force that arrived, at most ``KEPT`` seconds old, and gives a sample each
``INTERVAL``.  The watchdog process sends the zero frame like to any device.  When the last descriptor of the other
end is closed, by whatever end of the processes, it removes the force and closes the device.

The socket keeps the bounds of messages, of which the first byte is the kind; both ends are on one machine.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.driver_protocol import NOTHING, SAFE_FRAME, Device, DeviceSpec, Sample, driver_class

KEPT: Final = 0.02  # s for which a force is shown without another one
INTERVAL: Final = 2.5e-4  # s between samples
STOPPED: Final = 0.1  # s after which a stopped library process is killed, as a tick process without ticks
PATIENCE: Final = 30.0  # s for the library to open its device
LIBRARY_LAG: Final = 0.01  # s, half of the window from which a library estimates velocities
REPEATED: Final = 0.025  # s of the same numbers in motion: velocities estimated from counts change within some 20 ms
AT_REST: Final = 1e-9  # m/s, left by rounding
_WATCH_EVERY: Final = 0.02  # s between looks at a library process
_COUNTS_EVERY: Final = 1000  # samples between looks at the driver's counts
_OPEN, _PRIORITY, _FORCE, _CLOSE = b"O", b"P", b"F", b"C"  # to the library process
_READY, _SAMPLE, _COUNTS, _ERROR, _CLOSED = b"R", b"S", b"D", b"E", b"c"  # from it
_ROOM: Final = 65536  # bytes of the longest message

AVAILABLE: Final = sys.platform == "linux"  # elsewhere no local socket keeps the bounds of messages and shows its end


def _force_message(force: Sequence[float]) -> bytes:
    return _FORCE + struct.pack(f"<{len(force)}d", *force)


def _text_message(kind: bytes, data: Mapping[str, Any]) -> bytes:
    return kind + json.dumps(data).encode()


def start(driver: str, options: Mapping[str, Any]) -> int:
    """Start a library process; return the descriptor of its socket for the tick process and the watchdog process.

    ``driver``: driver that calls the library, ``module:Class``; ``options``: options of the driver, complete.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = _process(driver, options, theirs.fileno())
    watch = threading.Thread(
        target=_watch, args=(process, theirs, driver, options), name="library process", daemon=True
    )  # fmt: skip
    watch.start()
    return ours.detach()


def _process(driver: str, options: Mapping[str, Any], line: int = -1) -> subprocess.Popen[bytes]:
    """Start a process with a library: for the descriptor of a socket, or to remove the force of its device."""
    words = [str(line), driver, json.dumps(options)]
    return subprocess.Popen(
        [sys.executable, "-m", "fsm_dyn.devices.library_process", *words],
        pass_fds=[line] if line >= 0 else [], stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _watch(process: subprocess.Popen[bytes], line: socket.socket, driver: str, options: Mapping[str, Any]) -> None:
    """Wait for the end of a library process; kill a stopped one, and remove the force that a killed one has left.

    ``line``: its end of the socket, closed with it so that the other end notices; ``driver``, ``options``: as of
    :func:`start`.
    """
    stopped = 0
    while process.poll() is None:
        time.sleep(_WATCH_EVERY)
        stopped = stopped + 1 if _is_stopped(process.pid) else 0
        if stopped > STOPPED / _WATCH_EVERY:
            process.kill()
    line.close()
    if process.returncode < 0:  # by a signal
        _process(driver, options).wait()


def _is_stopped(pid: int) -> bool:
    """Return whether a process is stopped, by a signal or by a debugger."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        return stat.rpartition(")")[2].split()[0] in "Tt"
    return False


class RepeatedNumbers:
    """Distinguishes repeated numbers of a library from new ones: it gives neither a sequence number nor a time.

    Numbers of a device at rest are equal as well, so that equal ones count as repeated only with a velocity, after
    ``REPEATED``. ``count``: repeated samples.
    """

    def __init__(self) -> None:
        self._numbers: tuple[Sequence[float], ...] = ()
        self._since = 0.0
        self.count = 0

    def has(self, now: float, position: Sequence[float], velocity: Sequence[float]) -> bool:
        """Take a sample (m, m/s) at a time (s); return whether it repeats the one before."""
        numbers = position, velocity
        if numbers != self._numbers:
            self._numbers, self._since = numbers, now
            return False
        repeated = now - self._since > REPEATED and any(abs(rate) > AT_REST for rate in velocity)
        self.count += repeated
        return repeated

    def counts(self) -> dict[str, int]:
        """Return the count by its name in the diagnostics of a driver; empty without any."""
        return {"samples repeated by the library": self.count} if self.count else {}


class LibraryDriver:
    """Driver of a device behind a maker's library: in a separate process with a transport, else in this one.

    Parameters
    ----------
    options : mapping
    transport : int, optional
        As :meth:`open_transport` returned it.
    """

    DIRECT: ClassVar[Any]  # the driver that calls the library

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        own = transport is None
        self._device: Any = self.DIRECT(options) if own else RemoteDevice(self.describe(options), int(transport or 0))
        self.write, self.close = self._device.write, self._device.close
        self.read, self.diagnostics = self._device.read, self._device.diagnostics

    @property
    def spec(self) -> DeviceSpec:
        """Properties of the device; once it is open, with its own largest force."""
        found: DeviceSpec = self._device.spec
        return found

    @classmethod
    def complete(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Find the library; raise InputError if it is missing, for another processor, or too old."""
        found: dict[str, Any] = cls.DIRECT.complete(options)
        return found

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the device by its options.

        A device without a watchdog keeps its limit of a fifth: the library process itself may be stopped.
        """
        spec: DeviceSpec = cls.DIRECT.describe(options)
        if not AVAILABLE:
            return spec
        zero = _force_message((0.0,) * spec.axes)
        stops = NOTHING if spec.stop_mechanism == NOTHING else SAFE_FRAME
        return replace(spec, stop_mechanism=stops, safe_packet=zero, zero_frame=zero)

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Start the library process, return the descriptor of its socket; None where the system has no such socket."""
        return start(f"{cls.DIRECT.__module__}:{cls.DIRECT.__qualname__}", options) if AVAILABLE else None

    def open(self) -> None:
        """Open the device; raises what the driver that calls the library raises."""
        self._device.open()

    def calibrate(self) -> None:
        """Do nothing: devices behind libraries have an absolute zero."""

    def maker_figures(self) -> dict[str, float]:
        """Return limits and temperatures as the library gives them; names have the unit."""
        found: dict[str, float] = self._device.maker_figures()
        return found


class RemoteDevice:
    """The device at the other end of the socket of a library process. ``transport``: descriptor of the socket."""

    def __init__(self, spec: DeviceSpec, transport: int) -> None:
        self.spec = spec
        self._line = socket.socket(fileno=transport)
        self._line.setblocking(False)
        self._numbers = struct.Struct(f"<dqq{2 * spec.axes}d")
        self._latest = Sample(0.0, 0, (0.0,) * spec.axes, (0.0,) * spec.axes)
        self._counts: dict[str, int] = {}
        self._figures: dict[str, float] = {}
        self._begun = False

    def open(self) -> None:
        """Have the device opened, and wait for its first sample.

        Raises InputError, ConnectionError as of the driver that calls the library; or it does not answer.
        """
        self._line.send(_OPEN)
        self._line.settimeout(PATIENCE)
        try:
            answer = self._line.recv(_ROOM)
        except TimeoutError as error:
            raise ConnectionError(f"the library of the {self.spec.name} does not open its device") from error
        self._line.setblocking(False)
        if answer[:1] != _READY:
            self._raise(answer)
        found = json.loads(answer[1:])
        self._figures = found["figures"]
        self.spec = replace(self.spec, force=found["force"], torque=found["torque"])
        until = time.monotonic() + PATIENCE
        while self.read().sequence == 0 and time.monotonic() < until:
            time.sleep(INTERVAL)

    def read(self) -> Sample:
        """Return the latest sample; raise ConnectionError if the device does not answer."""
        latest = b""
        while True:
            try:
                data = self._line.recv(_ROOM)
            except BlockingIOError:
                break
            kind = data[:1]
            if kind == _SAMPLE:
                latest = data
            elif kind == _COUNTS:
                self._counts = json.loads(data[1:])
            else:
                self._raise(data)
        if latest:
            time_, sequence, buttons, *numbers = self._numbers.unpack(latest[1:])
            axes = self.spec.axes
            self._latest = Sample(time_, sequence, numbers[:axes], numbers[axes:], buttons)
        return self._latest

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command a force; one that the library process has no room for is lost, as no later one can be shown."""
        if not self._begun:  # by now the tick process has its own privileges
            self._begun = True
            if AVAILABLE and os.sched_getscheduler(0) != os.SCHED_OTHER:
                self._line.send(_text_message(_PRIORITY, {"number": os.sched_getparam(0).sched_priority}))
        with contextlib.suppress(BlockingIOError):
            self._line.send(_force_message(force))
        return force

    def diagnostics(self) -> dict[str, int]:
        """Return the counts of the driver that calls the library."""
        return self._counts

    def maker_figures(self) -> dict[str, float]:
        """Return limits and temperatures as the library gave them when the device was opened; names have the unit."""
        return self._figures

    def close(self) -> None:
        """Have the force removed and the device closed; may be called again."""
        if self._line.fileno() < 0:
            return
        with contextlib.suppress(OSError):
            self._line.settimeout(1.0)
            self._line.send(_CLOSE)
            while self._line.recv(_ROOM)[:1] not in (_CLOSED, b""):
                pass
        self._line.close()

    def _raise(self, message: bytes) -> None:
        """Raise the error in a message; an empty one is the end of the library process."""
        if message[:1] != _ERROR:
            raise ConnectionError(f"the process of the {self.spec.name}'s library has ended")
        told = json.loads(message[1:])
        if told["kind"] == InputError.__name__:
            raise InputError(**told["parts"])
        raise ConnectionError(told["text"])


# -- The library process -------------------------------------------------------------------------------------


def serve(line: socket.socket, device: Device) -> None:
    """Open a device for the other end of a socket, show its forces and give samples, until it is closed.

    ``line``: that of :func:`start`; ``device``: driver that calls the library, not yet open.
    """
    try:
        if line.recv(_ROOM)[:1] != _OPEN:
            return
        try:
            device.open()
            device.calibrate()
            figures: dict[str, float] = getattr(device, "maker_figures", dict)()
            gc.collect()  # once, and never while samples are given
            gc.freeze()
            gc.disable()
            told = {"force": device.spec.force, "torque": device.spec.torque, "figures": figures}
            line.send(_text_message(_READY, told))
            _exchange(line, device)
        except Exception as error:  # a driver may raise anything
            with contextlib.suppress(OSError):
                line.send(_text_message(_ERROR, _error_data(error)))
    finally:
        with contextlib.suppress(Exception):
            device.close()
        with contextlib.suppress(OSError):
            line.send(_CLOSED)


def _exchange(line: socket.socket, device: Device) -> None:
    """Show forces and give samples until the other end is closed or asks for the end."""
    line.setblocking(False)
    numbers = struct.Struct(f"<dqq{2 * device.spec.axes}d")
    zero = (0.0,) * device.spec.axes
    shown, since, sequence, looked = False, 0.0, 0, 0
    counts: Mapping[str, int] = {}
    while True:
        select.select([line], [], [], INTERVAL)
        force, ends = _latest_force(line)
        if force is not None:
            device.write(force)
            shown, since = any(force), time.monotonic()
        elif shown and time.monotonic() - since > KEPT:
            device.write(zero)
            shown = False
        if ends:
            return
        sample = device.read()
        if sample.sequence != sequence:
            sequence = sample.sequence
            words = sample.time, sequence, sample.buttons, *sample.position, *sample.velocity
            with contextlib.suppress(BlockingIOError):  # the tick process stands still
                line.send(_SAMPLE + numbers.pack(*words))
        looked += 1
        if looked % _COUNTS_EVERY == 1 and (found := dict(getattr(device, "diagnostics", dict)())) != counts:
            with contextlib.suppress(BlockingIOError):
                line.send(_text_message(_COUNTS, found))
                counts = found


def _latest_force(line: socket.socket) -> tuple[Sequence[float] | None, bool]:
    """Return the force that arrived last, None without one, and whether this is the end."""
    force = None
    while True:
        try:
            data = line.recv(_ROOM)
        except BlockingIOError:
            return force, False
        except ConnectionResetError:  # closed at the other end with samples unread
            return force, True
        kind = data[:1]
        if kind == _FORCE:
            force = struct.unpack(f"<{(len(data) - 1) // 8}d", data[1:])
        elif kind == _PRIORITY:
            with contextlib.suppress(OSError):  # not permitted
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(json.loads(data[1:])["number"]))
        else:
            return force, True


def _error_data(error: Exception) -> dict[str, Any]:
    if isinstance(error, InputError):
        parts = {name: getattr(error, name) for name in ("message", "found", "allowed", "remedy")}
        return {"kind": InputError.__name__, "parts": parts}
    text = str(error) if isinstance(error, OSError) and str(error) else repr(error)
    return {"kind": type(error).__name__, "text": text}


def main() -> None:
    """Run a library process; arguments: descriptor of the socket or -1, driver, its options as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the session's: the socket shows the end
    line, device = int(sys.argv[1]), driver_class(sys.argv[2])(json.loads(sys.argv[3]))
    if line >= 0:
        serve(socket.socket(fileno=line), device)
        return
    try:
        device.open()  # with a force of zero
    finally:
        device.close()


if __name__ == "__main__":
    main()
