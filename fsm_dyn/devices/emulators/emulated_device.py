"""Common part of emulated devices with several axes: handles, watchdog, and commands that inject faults."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from fsm_dyn.devices.driver_options import OptionReader
from fsm_dyn.devices.emulators.following import FollowingHandle
from fsm_dyn.devices.emulators.handle import EmulatedHandle, Meter
from fsm_dyn.live.driver_protocol import ADMITTANCE, IMPEDANCE

STEP: Final = 2.5e-4  # s, in which the handles move: a force takes effect within one
_LATE: Final = 0.1  # s behind the clock at the most; more is skipped
OPTIONS: Final = frozenset({"axes", "mass", "damping", "friction", "resolution", "rate", "watchdog", "hand", "kind"})
HAND: Final = {"stiffness": 60.0, "damping": 2.0, "target": 0.0}  # a light grip


def check(device: str, options: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """Raise InputError for unknown or invalid options of an emulator.

    Parameters
    ----------
    device : str
        Its name, for messages.
    options : Mapping[str, Any]
        As given.
    known : Collection[str], optional
        Further options that the emulator has.
    """
    given = OptionReader(f"emulated {device}", options, OPTIONS | set(known))
    given.count("axes", 3, 1, 6)
    given.count("port", 0, 0, 65535)
    given.number("mass", 0.2, above=True)
    given.number("rate", 1000.0, above=True, most=1e4)
    for name in ("damping", "friction", "resolution", "watchdog"):
        given.number(name, 0.0)
    given.choice("kind", IMPEDANCE, (IMPEDANCE, ADMITTANCE))
    hand = options.get("hand") or {}
    if not isinstance(hand, Mapping) or set(hand) - set(HAND):
        raise given.invalid("hand", ", ".join(HAND))


class EmulatedDevice:
    """Handles of a device, one per axis, with the forces shown on them.

    Parameters
    ----------
    options : mapping
        ``axes`` (3); ``mass`` (0.2 kg), ``damping`` (0.5 N s/m), ``friction`` (0 N) and ``resolution`` (0 m) of each;
        ``rate`` (1000 Hz) of its samples; ``watchdog`` (0.02 s; 0: it has none); ``hand`` that holds it: a mapping with
        ``stiffness``, ``damping`` and ``target`` (60 N/m, 2 N s/m, 0 m); ``kind`` (``impedance``; ``admittance``:
        stiff, geared, measures the hand's force and follows, of :class:`~.following.FollowingHandle`).

    Attributes
    ----------
    plugged, stalled, frozen : bool
        Whether it has power, sends no samples, is stopped altogether.
    counts : Counter
        Events, by name.
    spoiling : PacketCorruption
        Faults injected into its samples on the line.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        axes = int(options.get("axes", 3))
        numbers = [float(options.get(name, usual)) for name, usual in (("mass", 0.2), ("damping", 0.5))]
        more = [float(options.get(name, 0.0)) for name in ("friction", "resolution")]
        self.follows = options.get("kind") == ADMITTANCE
        handle = FollowingHandle if self.follows else EmulatedHandle
        self.handles = [handle(*numbers, *more) for _ in range(axes)]
        self._hand(**{**HAND, **dict(options.get("hand") or {})})
        self.spoiling, self.meter = PacketCorruption(), Meter()
        self.period = 1.0 / float(options.get("rate", 1000.0))
        self._watchdog_time = float(options.get("watchdog", 0.02))
        self._watchdog_on = self._watchdog_time > 0.0
        self.plugged, self.stalled, self.frozen = True, False, False
        self.let_go = ""
        self.counts: Counter[str] = Counter(forces=0)
        self._log: list[dict[str, Any]] = []
        self.handles[0].advance(STEP)  # the first call is slow: it is made before the device is ready
        self._moved_until = self._heard = time.monotonic()

    @property
    def known(self) -> dict[str, float]:
        """Options of a driver about the device; the delay of its samples is their period."""
        one = self.handles[0]
        if isinstance(one, FollowingHandle):
            return {"delay": self.period + one.delay}
        numbers = {"mass": one.mass, "damping": one.damping, "friction": one.friction, "resolution": one.resolution}
        return {**numbers, "delay": self.period}

    @property
    def force(self) -> list[float]:
        """Force shown on each axis, N."""
        return [handle.force for handle in self.handles]

    @property
    def position(self) -> tuple[float, ...]:
        """Positions that the sensors measure, m."""
        return tuple(handle.measured + self.spoiling.shift for handle in self.handles)

    @property
    def velocity(self) -> tuple[float, ...]:
        """True velocities, m/s."""
        return tuple(handle.velocity for handle in self.handles)

    @property
    def second(self) -> tuple[float, ...]:
        """The second half of a sample: true velocities, m/s, or of a device that follows the forces of the hand, N."""
        return tuple(h.hand_force if isinstance(h, FollowingHandle) else h.velocity for h in self.handles)

    @property
    def speaks(self) -> bool:
        """Whether samples leave the device."""
        return self.plugged and not self.stalled and not self.frozen

    def apply_force(self, force: Sequence[float]) -> None:
        """Show a force received from the host."""
        self._heard = time.monotonic()
        self.counts["forces"] += 1
        if self.plugged:
            self.let_go = ""
            self._show(force, "host")

    def advance(self) -> None:
        """Advance to the present time and evaluate the watchdog."""
        now = time.monotonic()
        self._moved_until = max(self._moved_until, now - _LATE)
        while now - self._moved_until >= STEP:
            self.meter.advance(self.handles, STEP)
            self._moved_until += STEP
        if self._watchdog_on and any(self.force) and now - self._heard >= self._watchdog_time:
            self.release("watchdog")

    def release(self, why: str) -> None:
        """Show no force."""
        self.let_go = why
        self._show((0.0,) * len(self.handles), why)

    def _show(self, force: Sequence[float], why: str) -> None:
        if list(force) == self.force:
            return
        for handle, value in zip(self.handles, force, strict=True):
            handle.force = float(value)
        self._log.append(
            {"time": time.monotonic(), "force": self.force, "position": [h.position for h in self.handles], "why": why}
        )

    # -- fault injection -----------------------------------------------------------------------------------

    def commands(self) -> dict[str, Callable[..., Mapping[str, Any] | None]]:
        """Return the functions of the commands that every such device has."""
        return {
            "unplug": self._unplug, "plug": self._plug, "stall": self._stall, "freeze": self._freeze,
            **self.spoiling.commands(), "hand": self._hand, "watchdog": self._watchdog, "measure": self._measure,
            "state": self._state,
            "log": self._take_log,
        }  # fmt: skip

    def _unplug(self) -> None:
        self.plugged = False
        self.release("no power")

    def _plug(self) -> None:
        self.plugged = True

    def _stall(self, on: bool = True) -> None:
        self.stalled = bool(on)

    def _freeze(self, on: bool = True) -> None:
        self.frozen = bool(on)

    def _watchdog(self, on: bool = True) -> None:
        self._watchdog_on = bool(on) and self._watchdog_time > 0.0

    def _measure(self) -> None:
        self.meter = Meter()

    def _hand(
        self,
        stiffness: float | None = None,
        damping: float | None = None,
        target: float | Sequence[float] | None = None,
    ) -> None:
        """Attach a hand to the device, or move its target; a stiffness of zero removes it."""
        given = [value for value in (stiffness, damping) if value is not None]
        places = [target] * len(self.handles) if isinstance(target, int | float | None) else list(target)
        if (
            not all(math.isfinite(float(x)) for x in [*given, *(x for x in places if x is not None)])
            or min(given, default=0.0) < 0.0
        ):
            raise ValueError("stiffness and damping are numbers from 0, targets are numbers")
        for handle, place in zip(self.handles, places, strict=True):
            handle.hand_stiffness = handle.hand_stiffness if stiffness is None else float(stiffness)
            handle.hand_damping = handle.hand_damping if damping is None else float(damping)
            handle.target = handle.target if place is None else float(place)
            if handle.hand_stiffness == 0.0:
                handle.hand_damping = 0.0

    def _state(self) -> dict[str, Any]:
        return {
            "time": time.monotonic(), "position": [h.position for h in self.handles], "velocity": list(self.velocity),
            "force": self.force, "plugged": self.plugged, "stalled": self.stalled, "frozen": self.frozen,
            **self.spoiling.state(), "let_go": self.let_go, "counts": dict(self.counts),
            "hand": {
                "stiffness": self.handles[0].hand_stiffness, "damping": self.handles[0].hand_damping,
                "target": [h.target for h in self.handles],
            },
            "watchdog": self._watchdog_time * self._watchdog_on, "meter": asdict(self.meter),
        }  # fmt: skip

    def _take_log(self) -> dict[str, Any]:
        found, self._log = self._log, []
        return {"log": found}


class PacketCorruption:
    """Corruption of samples on the line until it is switched off: ``garbage``, ``half`` packets, a ``jump``."""

    def __init__(self) -> None:
        self.how = ""
        self.once = 0  # bytes of garbage still to be sent
        self.shift = 0.0  # of all positions, m

    def commands(self) -> dict[str, Callable[..., Mapping[str, Any] | None]]:
        """Return the functions of the commands."""
        return {"garbage": self._garbage, "half": self._half, "jump": self._jump}

    def packets(self, data: bytes) -> list[bytes]:
        """Return what is sent in place of a packet: the garbage that is due, then the packet as it is corrupted."""
        first = [os.urandom(self.once)] if self.once else []
        self.once = 0
        if self.how == "garbage":
            data = os.urandom(len(data))
        elif self.how == "half":
            data = data[: len(data) // 2]
        return [*first, data]

    def state(self) -> dict[str, bool]:
        """Return the active corruption."""
        return {"garbled": self.how == "garbage", "halved": self.how == "half"}

    def _garbage(self, on: bool = True, bytes: int = 0) -> None:
        if bytes:
            self.once = int(bytes)
        else:
            self.how = "garbage" if on else ""

    def _jump(self, by: float = 0.0) -> None:
        self.shift = float(by)

    def _half(self, on: bool = True) -> None:
        self.how = "half" if on else ""
