"""Common parts of emulated devices: handles, followers, axes, the command channel."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import math
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from scipy.linalg import expm

from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.devices.driver_tools import OptionReader
from fsm_dyn.live.driver_protocol import ADMITTANCE, IMPEDANCE

# -- Mechanics of an emulated device along one axis ----------------------------------------------------------
#
# Mechanics of an emulated device along one axis: a mass with damping, dry friction and optionally a hand.
#
# The force is constant between two instants, as at the output stage of a device, and the motion is the exact solution
# of
#
#     m x'' + b x' = force + k (target - x) - c x'
#
# so any energy gained in a loop is due to sampling and hold, not to the integration of the handle. Dry friction is an
# impulse per short step, at most the one needed to stop the handle (Moreau).

_SHORT: Final = 1e-4  # s, longest step with dry friction


@lru_cache(maxsize=64)
def _held_solution(mass: float, damping: float, stiffness: float, step: float) -> tuple[float, ...]:
    """Return the exact map over a step: (x, v) from (x, v, force), row by row."""
    matrix = np.array([[0.0, 1.0, 0.0], [-stiffness / mass, -damping / mass, 1.0 / mass], [0.0, 0.0, 0.0]])
    return tuple(float(value) for value in expm(matrix * step)[:2].ravel())


@dataclass
class EmulatedHandle:
    """A handle with one axis.

    Attributes
    ----------
    mass, damping, friction : float
        Of the handle: kg, N s/m and N.
    resolution : float
        Of the sensor, m; 0: exact.
    hand_stiffness, hand_damping : float
        Of the hand on it, N/m and N s/m; zero: no hand.
    target : float
        Target of the hand, m.
    force : float
        Shown, N; constant until it is changed.
    position, velocity : float
        True ones, m and m/s.
    """

    mass: float
    damping: float = 0.0
    friction: float = 0.0
    resolution: float = 0.0
    hand_stiffness: float = 0.0
    hand_damping: float = 0.0
    target: float = 0.0
    force: float = 0.0
    position: float = field(default=0.0)
    velocity: float = field(default=0.0)

    @property
    def measured(self) -> float:
        """Position measured by the sensor, m."""
        if self.resolution <= 0.0:
            return self.position
        return self.resolution * math.floor(self.position / self.resolution + 0.5)

    def advance(self, duration: float) -> None:
        """Advance by a time (s) under the force shown; solutions for a few durations are cached."""
        if duration <= 0.0:
            return
        steps = max(1, math.ceil(duration / _SHORT - 1e-9)) if self.friction > 0.0 else 1
        step = duration / steps
        damping = self.damping + self.hand_damping
        xx, xv, xf, vx, vv, vf = _held_solution(self.mass, damping, self.hand_stiffness, step)
        stops = self.friction * step / self.mass
        for _ in range(steps):
            x, v = self.position - self.target, self.velocity
            self.position = self.target + xx * x + xv * v + xf * self.force
            v = vx * x + vv * v + vf * self.force
            if self.friction > 0.0:
                v = math.copysign(max(0.0, abs(v) - stops), v)
                if v == 0.0 and self.velocity == 0.0:
                    self.position = x + self.target  # it sticks
            self.velocity = v


@dataclass
class Meter:
    """Meter of the work done on the handles of a device by the forces shown, and of their speed."""

    # work, most_work: done on handles and hand by the forces shown, J, and its largest value so far
    work: float = 0.0
    most_work: float = 0.0
    peak_speed: float = 0.0  # norm of the velocities of all axes, m/s
    peak_energy: float = 0.0  # largest kinetic energy of the handles, J

    def advance(self, handles: Sequence[EmulatedHandle], duration: float) -> None:
        """Advance the handles by a time (s) under the forces shown, and measure."""
        square = energy = 0.0
        for handle in handles:
            before = handle.position
            handle.advance(duration)
            self.work += handle.force * (handle.position - before)
            square += handle.velocity**2
            energy += 0.5 * handle.mass * handle.velocity**2
        self.most_work = max(self.most_work, self.work)
        self.peak_speed = max(self.peak_speed, math.sqrt(square))
        self.peak_energy = max(self.peak_energy, energy)


# -- Mechanics of an emulated device -------------------------------------------------------------------------
#
# Mechanics of an emulated admittance device along one axis: stiff, geared, with position loop and force sensor.
#
# Its gears keep the hand from moving it. The commanded velocity is integrated to a position, which the loop follows as
#
#     x'' = w^2 (command - x) - 2 d w x'
#
# and the sensor measures the force ``k (place - x) - c x'`` of a hand; its place moves to its target. The commanded
# velocity is constant between two instants, and the motion is the exact solution.

HAND_SPEED: Final = 1.0  # m/s, with which a hand moves to another place: its force is measured, and does not jump
BANDWIDTH: Final = 40.0  # Hz, of the position loop
DAMPING_RATIO: Final = 1.0


@lru_cache(maxsize=16)
def _exact_step(rate: float, ratio: float, step: float) -> tuple[float, ...]:
    """Return the exact map over a step: (command, x, v) from (command, x, v, commanded velocity), row by row."""
    matrix = np.zeros((4, 4))
    matrix[0, 3] = matrix[1, 2] = 1.0
    matrix[2, :3] = rate * rate, -rate * rate, -2.0 * ratio * rate
    return tuple(float(value) for value in expm(matrix * step)[:3].ravel())


@dataclass
class FollowingHandle(EmulatedHandle):
    """A handle that follows the integral of ``force``, the commanded velocity, m/s."""

    bandwidth: float = BANDWIDTH  # of the position loop, Hz
    damping_ratio: float = DAMPING_RATIO
    command: float = 0.0  # commanded position, m
    place: float = field(init=False)  # position of the hand on its way to ``target``, m

    def __post_init__(self) -> None:
        self.place = self.target

    @property
    def delay(self) -> float:
        """Delay of the position behind the command, s, for motions slower than the loop."""
        return self.damping_ratio / (math.pi * self.bandwidth)

    @property
    def hand_force(self) -> float:
        """Force of the hand measured by the sensor, N."""
        return self.hand_stiffness * (self.place - self.position) - self.hand_damping * self.velocity

    def advance(self, duration: float) -> None:
        """Advance by a time (s) at the velocity commanded."""
        if duration <= 0.0:
            return
        way = HAND_SPEED * duration
        self.place += min(max(self.target - self.place, -way), way)
        state = self.command, self.position, self.velocity, self.force
        step = _exact_step(2.0 * math.pi * self.bandwidth, self.damping_ratio, duration)
        self.command, self.position, self.velocity = (
            sum(factor * value for factor, value in zip(step[4 * i : 4 * i + 4], state, strict=True)) for i in range(3)
        )


# -- Common part of emulated devices with several axes -------------------------------------------------------
#
# Common part of emulated devices with several axes: handles, watchdog, and commands for fault injection.

STEP: Final = 2.5e-4  # s, in which the handles move: a force takes effect within one
LOOKS: Final = 1e-3  # s, at most, that an emulator waits for the line
HELD_UP: Final = 3e-3  # s between two readings of the clock, beyond which the process stood still
OPTIONS: Final = frozenset({"axes", "mass", "damping", "friction", "resolution", "rate", "watchdog", "hand", "kind"})
HAND: Final = {"stiffness": 60.0, "damping": 2.0, "target": 0.0}  # a light grip


def check(device: str, options: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """Raise InputError for unknown or invalid options of an emulator.

    ``device``: its name, for messages; ``options``: as given; ``known``: further options of the emulator.
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


class OwnClock:
    """Time of an emulated board (s): that of the clock, without the times in which its process stood still.

    A board has a processor to itself. One that continued under its last force over a time in which its process was not
    running would give the handle an energy that neither the loop nor a board gives: packets of zero force, and its own
    watchdog, would have acted meanwhile. ``stood``: time left out so far, s.
    """

    def __init__(self) -> None:
        self._seen = time.monotonic()
        self.stood = 0.0

    def now(self) -> float:
        """Return the present time of the board; to be asked more often than every 3 ms."""
        before, self._seen = self._seen, time.monotonic()
        passed = self._seen - before
        self.stood += passed - STEP if passed > HELD_UP else 0.0
        return self._seen - self.stood


class EmulatedDevice:
    """Handles of a device, one per axis, with the forces shown on them.

    ``options``: ``axes`` (3); ``mass`` (0.2 kg), ``damping`` (0.5 N s/m), ``friction`` (0 N) and ``resolution`` (0 m)
    of each; ``rate`` (1000 Hz) of its samples; ``watchdog`` (0.02 s; 0: it has none); ``hand`` on it: a mapping with
    ``stiffness``, ``damping`` and ``target`` (60 N/m, 2 N s/m, 0 m); ``kind`` (``impedance``; ``admittance``: stiff,
    geared, measures the hand's force and follows, of :class:`FollowingHandle`). ``plugged``, ``stalled``, ``frozen``:
    whether it has power, sends no samples, is stopped altogether; ``counts``, Counter: events, by name; ``spoiling``,
    PacketCorruption: faults injected into its samples on the line.
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
        self._clock = OwnClock()
        self._moved_until = self._heard = self._clock.now()

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
        """Positions measured by the sensors, m."""
        return tuple(handle.measured + self.spoiling.shift for handle in self.handles)

    @property
    def velocity(self) -> tuple[float, ...]:
        """True velocities, m/s."""
        return tuple(handle.velocity for handle in self.handles)

    @property
    def second(self) -> tuple[float, ...]:
        """The second half of a sample: true velocities, m/s, or for an admittance device the forces of the hand, N."""
        return tuple(h.hand_force if isinstance(h, FollowingHandle) else h.velocity for h in self.handles)

    @property
    def speaks(self) -> bool:
        """Whether samples leave the device."""
        return self.plugged and not self.stalled and not self.frozen

    def apply_force(self, force: Sequence[float]) -> None:
        """Show a force received from the host."""
        self.advance()  # under the force so far
        self._heard = self._clock.now()
        self.counts["forces"] += 1
        if self.plugged:
            self.let_go = ""
            self._show(force, "host")

    def advance(self) -> None:
        """Advance to the present time and evaluate the watchdog."""
        now = self._clock.now()
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
        """Return the functions of the commands common to these devices."""
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
            "stood": self._clock.stood,
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
        """Return the replacement of a packet: any pending garbage, then the corrupted packet."""
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


# -- Command channel of an emulator: one line of JSON per command, read without blocking ---------------------

_FOLDER: Final = "fsm_dyn_emulator_{}_"  # with the number of the process
_CHUNK: Final = 65536


def given_options() -> dict[str, Any]:
    """Return the value of ``--options`` on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--options", default="{}", help="a mapping as JSON")
    found: dict[str, Any] = json.loads(parser.parse_args().options)
    return found


def new_folder() -> Path:
    """Make a temporary folder of this process."""
    return Path(tempfile.mkdtemp(prefix=_FOLDER.format(os.getpid())))


def remove_folders(process: int) -> None:
    """Remove the temporary folders of an ended emulator, even a killed one."""
    for folder in Path(tempfile.gettempdir()).glob(_FOLDER.format(process) + "*"):
        shutil.rmtree(folder, ignore_errors=True)


class CommandChannel:
    """Commands from the standard input, answers to the standard output.

    ``table``: function of each command; called with the arguments by name, returns the answer or None.
    """

    def __init__(self, table: Mapping[str, Callable[..., Mapping[str, Any] | None]]) -> None:
        self._table = table
        self._rest = b""
        self.descriptor: Final = sys.stdin.fileno()  # to wait for together with other descriptors
        os.set_blocking(self.descriptor, False)

    def ready(self, options: Mapping[str, Any], commands: Iterable[str]) -> None:
        """Report the device ready to open, with these options of its driver."""
        self._tell({"options": dict(options), "commands": list(commands)})

    def serve(self) -> bool:
        """Carry out the commands received; return whether there may be more."""
        try:
            found = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return True
        if not found:
            return False
        *lines, self._rest = (self._rest + found).split(b"\n")
        for line in lines:
            self._tell(self._carried_out(json.loads(line)))
        return True

    def _carried_out(self, command: dict[str, Any]) -> Mapping[str, Any]:
        name = command.pop("do", "")
        if name not in self._table:
            return {"refused": f"no command '{name}'; there are {', '.join(self._table)}"}
        try:
            return self._table[name](**command) or {}
        except (TypeError, ValueError) as error:
            return {"refused": f"{name}: {error}"}

    @staticmethod
    def _tell(message: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


PATIENCE: Final = 20.0  # s until an emulator is ready: it loads NumPy and SciPy
ANSWER: Final = 5.0  # s for an answer
# threads of the libraries behind NumPy would delay an emulator of higher priority
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Emulation(Protocol):
    """A running emulated device."""

    options: dict[str, Any]  # options of the driver to find it
    # supported commands, of: ``unplug``, ``plug``, ``garbage``, ``half``, ``stall``, ``freeze``, ``hand``, ``play``,
    # ``watchdog``, ``jump``, ``measure``
    commands: tuple[str, ...]

    def do(self, command: str, **arguments: Any) -> None:
        """Send a command to the device; return after it was carried out.

        ``unplug`` and ``plug``; ``garbage`` and ``half`` (a packet) with ``on`` (true until it is false) or, once,
        ``bytes``; ``stall`` with ``on`` (no samples, forces are taken); ``freeze`` with ``on`` (reads nothing, sends
        nothing); ``hand`` with ``stiffness``, ``damping``, ``target`` (one number, or one per axis; stiffness 0: no
        hand) and optionally ``speed``, the largest towards the target (m/s); ``play`` with ``rate`` (notes a second),
        ``notes``, ``pressed`` and ``lifted`` (positions of the hand, m); ``watchdog`` with ``on``; ``jump`` with ``by``
        (m, error of the positions sent); ``measure``, which restarts the meter. Raises InputError: there is no such
        command, or an argument is invalid.
        """

    def state(self) -> dict[str, Any]:
        """Return the state of the device: ``time`` (s, of ``time.monotonic``), ``position``, ``velocity``, ``force``.

        These are the true ones, one number per axis. With them come ``plugged``, ``stalled``, ``frozen``, ``let_go``
        (why no force is shown: ``""``, ``watchdog``, ``no power``), ``hand``, ``counts`` and the ``meter``: work of
        the forces shown since ``measure``, as in :class:`Meter`.
        """

    def log(self) -> list[dict[str, Any]]:
        """Return every change of the force shown since this was asked last: ``time``, ``force``, ``position``, ``why``.

        ``why`` is ``host`` or another cause, as in ``let_go``.
        """

    def close(self) -> None:
        """End it; may be called again."""


class EmulationProcess:
    """An :class:`Emulation` in a separate process.

    ``module``: of the program, dotted; ``options``: of the emulator. Raises RunError: it did not start.
    """

    def __init__(self, module: str, options: Mapping[str, Any]) -> None:
        self._module = module
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the emulator)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, "--options", json.dumps(dict(options))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._noise, text=True, start_new_session=True,
            env={**os.environ, **_ALONE},
        )  # fmt: skip
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name="emulator", daemon=True)
        self._listener.start()
        try:
            ready = self._answer(PATIENCE)
        except BaseException:
            self.close()
            raise
        self.options: dict[str, Any] = ready["options"]
        self.commands: tuple[str, ...] = tuple(ready["commands"])

    @property
    def pid(self) -> int:
        """Process number."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def _answer(self, patience: float) -> dict[str, Any]:
        try:
            found = self._answers.get(timeout=patience)
        except queue.Empty:
            raise RunError(f"the emulator {self._module} does not answer") from None
        if found is None:
            self._answers.put(None)  # for later calls
            self._noise.seek(0)
            raise RunError(f"the emulator {self._module} has ended\n{self._noise.read().decode(errors='replace')}")
        if "refused" in found:
            raise InputError(f"emulated device: {found['refused']}")
        return found

    def _ask(self, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
                self._process.stdin.flush()
            except (OSError, ValueError):
                pass  # it has ended, as the answer reports
            return self._answer(ANSWER)

    def do(self, command: str, **arguments: Any) -> None:
        """Send a command to the device; see :meth:`Emulation.do`."""
        if command not in self.commands:
            raise InputError(f"the emulated device knows no '{command}'", allowed=", ".join(self.commands))
        self._ask(command, arguments)

    def state(self) -> dict[str, Any]:
        """Return the state of the device; see :meth:`Emulation.state`."""
        return self._ask("state", {})

    def log(self) -> list[dict[str, Any]]:
        """Return the changes of the force shown; see :meth:`Emulation.log`."""
        found: list[dict[str, Any]] = self._ask("log", {})["log"]
        return found

    def close(self) -> None:
        """End the process; may be called again."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()  # until the end of its output
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._noise.close()
        remove_folders(self._process.pid)

    def __enter__(self) -> EmulationProcess:
        """Return it."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End it."""
        self.close()


def emulation(driver: str, options: Mapping[str, Any]) -> Emulation:
    """Start the emulator of a shipped driver. Raises InputError: the driver has no emulator."""
    name = f"{__package__}.{driver}"
    if not driver.isidentifier() or importlib.util.find_spec(name) is None:
        raise InputError(
            f"there is no emulator for the driver '{driver}'",
            remedy="leave out --emulate; 'fsm-dyn device --list-drivers' tells which drivers have one",
        )
    started: Emulation = importlib.import_module(name).start(options)
    return started
