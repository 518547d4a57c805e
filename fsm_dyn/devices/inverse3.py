"""Haply's Inverse3 through its local service: JSON over a WebSocket, three axes.

The service is Haply's, as documented on docs.haply.co: "WebSocket Protocol" and "Control Commands" of the Inverse SDK,
3.1 and 3.5.  Its first message lists the devices; then it answers every message with one state:

    {"inverse3": [{"device_id": "049D", "commands": {"set_cursor_force": {"vector": {"x": 0, "y": 0, "z": 0}}}}]}
    {"inverse3": [{"device_id": "049D", "state": {"cursor_position": {"x": ...}, "cursor_velocity": {"x": ...}}}]}

in N, m and m/s, in the coordinates configured in the service. A command lasts for its tick; without commands a device
goes idle, after an undocumented time.  Therefore the watchdog process removes the force: its safe packet is a force of
zero followed by the end of the connection, each a whole masked WebSocket frame.

Older services take the force as ``values``, newer ones as ``vector``, and ignore an unknown key without an error.
Therefore the state's ``current_cursor_force`` is compared with the force sent.  Before a run, the key is determined
with a force of 10 mN.  During a run, forces above 50 mN not shown for 50 ms, or a ``status`` without calibration, are
a fault.

Options
-------
device_id : str
    Of the device; needed if there are several.
host, port
    Of the service (127.0.0.1, 10001).  It has no authentication: keep it on this computer.
format : str
    ``3.5`` (forces are a ``vector``), or ``3.1`` (they are ``values``), for older services; by default it is probed.
profile : str
    Name of the session in Haply's Hub, which keeps its settings by it (``fsm_dyn:live``); empty: none.
workspace : list
    For each axis its range to either side of zero, or its least and greatest position, m (0.5: beyond the reach of its
    arms in any coordinates).
force : float
    Largest force of the device, N.
bandwidth : float
    Of the velocity estimate if the service reports no velocity, Hz (30).
patience : float
    Longest wait for the service, s (5).
mass, damping, friction, resolution, delay : float
    Apparent dynamics of the device as far as known, see :class:`~fsm_dyn.live.driver_protocol.DeviceDynamics`.

The buttons are those of the first wireless grip: a, b and c are 0, 1 and 2.
"""

from __future__ import annotations

import json
import math
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.driver_tools import (
    HANDLE,
    OptionReader,
    VelocityFilter,
    WebSocketLine,
    close_frame,
    shared,
    text_frame,
)
from fsm_dyn.live.driver_protocol import SAFE_FRAME, VELOCITY_LAG, DeviceSpec, Sample, lag_of

PORT: Final = 10001
BANDWIDTH: Final = 30.0  # Hz
PATIENCE: Final = 5.0  # s
REACH: Final = 0.5  # m
AXES: Final = ("x", "y", "z")
FORMATS: Final = {"3.5": "vector", "3.1": "values"}
PROFILE: Final = "fsm_dyn:live"
PROBE: Final = (0.0, 0.0, 0.01)  # N, too little to be felt
PROBES: Final = 20  # least number of its messages
PROBING: Final = 0.1  # s, least duration
LEAST: Final = 0.05  # N, below which a force need not be shown
SHOWN: Final = 0.1  # least part of a force to be shown; filters of the service attenuate
UNSHOWN: Final = 0.05  # s after which nothing shown is a fault
ANSWERS: Final = 10  # least number of answers without force for a fault
_GRIPS: Final = "wireless_verse_grip"
_KNOWN: Final = frozenset(
    {"device_id", "host", "port", "format", "profile", "force", "bandwidth", "patience", "workspace", *HANDLE}
)


def command(device: str, force: Sequence[float], key: str = "vector", session: Mapping[str, Any] | None = None) -> str:
    """Return the message to command a force (N) on a device, with session data if given."""
    values = dict(zip(AXES, map(float, force), strict=True))
    shown = {"inverse3": [{"device_id": device, "commands": {"set_cursor_force": {key: values}}}]}
    return json.dumps({"session": session, **shown} if session else shown)


def session_of(profile: str) -> dict[str, Any]:
    """Return the first message about the session: its profile, and a request for the configuration."""
    named = {"configure": {"profile": {"name": profile}}} if profile else {}
    return {**named, "force_render_full_state": {}}


def within(found: Any, *names: str) -> Any:
    """Return the entry of nested mappings under a path of names, or None."""
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def configured(config: Any) -> dict[str, int]:
    """Return the reported settings of a device that change forces, as counts by name."""
    found = {}
    if within(config, "gravity_compensation", "enabled") is False:
        found["gravity compensation off"] = 1
    if within(config, "torque_scaling", "enabled") is False:
        found["torque scaling off"] = 1
    gain = within(config, "filters", "force_gate", "gain")
    if isinstance(gain, int | float) and math.isfinite(gain):
        found["force gate, %"] = round(100 * gain)
    return found


def uncalibrated(told: Any) -> bool:
    """Return whether a device reports itself not calibrated."""
    return within(told, "status", "calibrated") is False


class ForceCheck:
    """Comparison of the forces sent with those reported by the service.

    The lag between them is not documented, so only forces missing for a while are detected.
    """

    def __init__(self) -> None:
        self._least, self._since, self._answers = 0.0, math.inf, 0

    def sent(self, force: Sequence[float]) -> None:
        """Note a sent force, N."""
        size = math.hypot(*force)
        if size < LEAST:
            self._since = math.inf
        elif self._since == math.inf:
            self._least, self._since, self._answers = size, time.monotonic(), 0
        else:
            self._least = min(self._least, size)

    def shown(self, force: Sequence[float]) -> None:
        """Compare a reported force, N. Raises ConnectionError: the service shows none of the sent forces."""
        if self._since == math.inf:
            return
        now, size = time.monotonic(), math.hypot(*force)
        if size >= SHOWN * self._least:
            self._since = math.inf
            return
        self._answers += 1
        if self._answers >= ANSWERS and now - self._since >= UNSHOWN:
            raise ConnectionError(
                f"the Inverse service does not show the force that it is sent: current_cursor_force is {size:.3g} N "
                f"where {self._least:.3g} N and more were sent for {now - self._since:.2g} s"
            )


def vector(found: Any) -> tuple[float, float, float]:
    """Return the three numbers of a vector; raise ValueError unless all are finite."""
    if not isinstance(found, Mapping) or not all(isinstance(found.get(axis), int | float) for axis in AXES):
        raise ValueError("number")
    try:
        x, y, z = (float(found[axis]) for axis in AXES)
    except OverflowError:  # an integer of more than 308 digits
        raise ValueError("number") from None
    if not all(map(math.isfinite, (x, y, z))):
        raise ValueError("number")
    return x, y, z


def parsed(message: bytes) -> dict[str, Any]:
    """Return the content of a message of the service; raise ValueError if it is invalid."""
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("no JSON")
    return found


def listed(message: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the devices listed in a message, by name; raise ValueError if the list is missing."""
    devices = message.get("inverse3", [])
    if not isinstance(devices, list) or not all(isinstance(item, dict) and "device_id" in item for item in devices):
        raise ValueError("no list of devices")
    return {str(item["device_id"]): item for item in devices}


class Driver:
    """The service's client; see the module."""

    SELECTED_BY: Final[tuple[str, ...]] = ("host", "port", "device_id")

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        self.spec = self.describe(options)
        self._device = str(options.get("device_id", ""))
        self._key = FORMATS[str(options.get("format", "3.5"))]
        self._profile = str(options.get("profile", PROFILE))
        self._patience = float(options.get("patience", PATIENCE))
        self._line = WebSocketLine(socket.socket(fileno=transport), "the Inverse service")
        self._rates = VelocityFilter(3, float(options.get("bandwidth", BANDWIDTH)))
        self._latest = Sample(0.0, 0, (0.0,) * 3, (0.0,) * 3)
        self._closed = False
        self._check = ForceCheck()
        self._configured: dict[str, int] = {}
        self.untold = 0  # states without a reported force
        self.dropped: Counter[str] = Counter()

    @classmethod
    def complete(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with the name of the device and the format of forces, which the service is asked for.

        Raises
        ------
        InputError
            There is no service or no such device, several could be meant, it is not calibrated, or shows no force.
        """
        cls.describe(options)
        transport = cls.open_transport(options)
        line = WebSocketLine(socket.socket(fileno=transport), "the Inverse service")
        patience = float(options.get("patience", PATIENCE))
        try:
            wanted = cls._chosen(cls._inventory(line, patience), options)
            form = options.get("format") or cls._probed(line, wanted, patience)
        except (OSError, ValueError) as error:
            raise InputError(
                "the Inverse service", found=str(error), remedy="is it Haply's that listens there?"
            ) from error
        finally:
            line.close()
        return {**options, "device_id": wanted, "format": form}

    @staticmethod
    def _chosen(devices: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]) -> str:
        """Return the name of the selected device; raise InputError if it cannot be used."""
        wanted = str(options.get("device_id", "")) or (next(iter(devices)) if len(devices) == 1 else "")
        if wanted not in devices:
            raise InputError(
                f"no Inverse3 '{wanted}'" if wanted else "which Inverse3?",
                found=", ".join(devices) or "none is plugged in",
                remedy="choose one by --option device_id=...",
            )
        if uncalibrated(devices[wanted]):
            raise InputError(
                f"the Inverse3 '{wanted}'",
                found="its status says that it is not calibrated",
                remedy="calibrate it as its manual says, or in Haply's Hub",
            )
        return wanted

    @classmethod
    def _probed(cls, line: WebSocketLine, device: str, patience: float) -> str:
        """Return the format of forces accepted by the service: the one whose force it then reports."""
        for form, key in FORMATS.items():
            for _ in range(PROBES):
                before = cls._shown(line, device, (0.0,) * 3, key, patience)
            begin, times, found = time.monotonic(), 0, False
            while not found and (times < PROBES or time.monotonic() - begin < PROBING):
                found = _follows(cls._shown(line, device, PROBE, key, patience), before)
                times += 1
            cls._shown(line, device, (0.0,) * 3, key, patience)
            if found:
                return form
        raise InputError(
            "the Inverse service",
            found=f"it shows no force, be it sent as {' or as '.join(FORMATS.values())}",
            remedy="is the device powered and ready, and does no other program move it?",
        )

    @classmethod
    def _shown(
        cls, line: WebSocketLine, device: str, force: Sequence[float], key: str, patience: float
    ) -> tuple[float, float, float]:
        """Send a force and return the force in the answer."""
        line.say(command(device, force, key))
        told = within(cls._devices(line, patience).get(device), "state", "current_cursor_force")
        if told is None:
            raise InputError(
                "the Inverse service",
                found="it tells no current_cursor_force, by which the format of forces is found out",
                remedy=f"--option format=..., one of {', '.join(FORMATS)}",
            )
        return vector(told)

    @staticmethod
    def _inventory(line: WebSocketLine, patience: float) -> dict[str, Mapping[str, Any]]:
        """Return the devices in the first message of the service."""
        line.open(patience)
        return Driver._devices(line, patience)

    @staticmethod
    def _devices(line: WebSocketLine, patience: float) -> dict[str, Mapping[str, Any]]:
        """Return the devices in the next message."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            for message in line.receive():
                return listed(parsed(message))
            line.wait(0.05)
        raise TimeoutError(f"the Inverse service reported no devices within {patience:g} s")

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the device by its options."""
        given = OptionReader("driver inverse3", options, _KNOWN)
        form = given.choice("format", "3.5", FORMATS)
        given.count("port", PORT, 1, 65535)
        bandwidth = given.number("bandwidth", BANDWIDTH, above=True)
        given.number("patience", PATIENCE)
        if isinstance(options.get("device_id"), float):  # 0E00 is a number to JSON
            raise InputError(
                "device_id of the driver inverse3",
                found=str(options["device_id"]),
                allowed="a text",
                remedy="""quote it: --option 'device_id="0E00"'""",
            )
        if not isinstance(options.get("profile", PROFILE), str):
            raise given.invalid("profile", "a text")
        device = str(options.get("device_id", ""))
        zero = text_frame(command(device, (0.0,) * 3, FORMATS[form])) if device else b""
        low, high = given.workspace((REACH,) * 3)
        return DeviceSpec(
            "inverse3",
            3,
            SAFE_FRAME,
            safe_packet=zero + close_frame(),
            force=given.number("force", math.inf, above=True),
            handle=given.handle(),
            velocity_lag=max(VELOCITY_LAG, lag_of(bandwidth)),
            zero_frame=zero,
            low=low,
            high=high,
        )

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return a socket connected to the service."""
        host, port = str(options.get("host", "127.0.0.1")), int(options.get("port", PORT))
        try:
            found = socket.create_connection((host, port), timeout=float(options.get("patience", PATIENCE)))
        except OSError as error:
            raise InputError(
                f"no Inverse service at {host}, port {port}",
                found=str(error.strerror or error),
                remedy="start Haply's service or its Hub; without a device: --emulate",
            ) from error
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a force is not to wait for the next one
        return shared(found)

    def open(self) -> None:
        """Connect to the service and wait for the first state."""
        devices = self._inventory(self._line, self._patience)
        if self._device not in devices:
            raise ConnectionError(
                f"the Inverse service has no device '{self._device}', but {', '.join(devices) or 'none'}"
            )
        self._configured = configured(devices[self._device].get("config"))
        self._line.say(command(self._device, (0.0,) * 3, self._key, session_of(self._profile)))
        until = time.monotonic() + self._patience
        while self._latest.sequence == 0:
            if time.monotonic() > until:
                raise TimeoutError(f"the Inverse3 '{self._device}' told no position within {self._patience:g} s")
            self._line.wait(0.05)
            self.read()

    def calibrate(self) -> None:
        """Do nothing: the service calibrates the device."""

    def read(self) -> Sample:
        """Return the latest state of the device.

        Raises
        ------
        ConnectionError
            The service has closed the connection, speaks something else or shows no force, or the device is not
            calibrated.
        """
        for message in self._line.receive():
            try:
                self._take(parsed(message))
            except ValueError as error:
                self.dropped[str(error)] += 1
        return self._latest

    def _take(self, message: Mapping[str, Any]) -> None:
        """Take a state; raise ValueError with the reason if it is invalid."""
        found = listed(message).get(self._device)
        if found is None:
            raise ValueError("without the device")
        state = found.get("state")
        if not isinstance(state, Mapping):
            raise ValueError("without a state")
        now, position = time.monotonic(), vector(state.get("cursor_position"))
        measured, shown = state.get("cursor_velocity"), state.get("current_cursor_force")
        if shown is not None:
            self._check.shown(vector(shown))
        velocity = self._rates.take(now, position) if measured is None else vector(measured)
        self._latest = Sample(now, self._latest.sequence + 1, position, velocity, _buttons(message))
        if "config" in found:
            self._configured = configured(found["config"])
        if uncalibrated(found):
            raise ConnectionError(f"the Inverse3 '{self._device}' is not calibrated any more")
        if shown is None:
            self.untold += 1

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Command a force; if the service does not read, the force is lost and a stall follows."""
        if self._line.say(command(self._device, force, self._key)):
            self._check.sent(force)
        else:
            self.dropped["not sent"] += 1
        return force

    def diagnostics(self) -> dict[str, int]:
        """Return counts of invalid messages by reason, and the settings of the service that change forces."""
        untold = {"without the force shown": self.untold} if self.untold else {}
        return {**self.dropped, **untold, **self._configured}

    def close(self) -> None:
        """Leave the service, after a force of zero; may be called again."""
        if not self._closed:
            self._closed = True
            try:
                self.write((0.0,) * 3)
            finally:
                self._line.close()


def _follows(shown: Sequence[float], before: Sequence[float]) -> bool:
    """Return whether the force shown has followed the probe."""
    along = sum((s - b) * p for s, b, p in zip(shown, before, PROBE, strict=True))
    return along >= SHOWN * math.hypot(*PROBE) ** 2


def _buttons(message: Mapping[str, Any]) -> int:
    """Return the buttons of the first grip."""
    try:
        pressed = message[_GRIPS][0]["state"]["buttons"]
        return sum(1 << i for i, name in enumerate("abc") if pressed.get(name) is True)
    except (KeyError, IndexError, TypeError, AttributeError):
        return 0
