"""An emulated paddle across a pseudo-terminal: state machine of the firmware, and mechanics of its handle."""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import time
import tty
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.devices import hapkit as hf
from fsm_dyn.devices.emulators.emulated_device import (
    LOOKS,
    CommandChannel,
    EmulatedHandle,
    EmulationProcess,
    Meter,
    OwnClock,
    given_options,
    new_folder,
)
from fsm_dyn.live.pacing import ask_for_privileges
from fsm_dyn.live.strokes import Rhythm, Stroke

# -- State machine of the paddle's firmware: the force shown, and the packets sent ---------------------------
#
# The same as ``hapkit_board`` in ``firmware/hapkit/hapkit_protocol.h``; a test compares them.

WORD: Final = 1 << 32  # period of its clock, microseconds
HALF_WORD: Final = 1 << 16


@dataclass
class Board:
    """State of the firmware; units as in the packets: µm, nm, µN, µs.

    After its start, and after its watchdog has removed the force, it shows no force before it has received one of zero.
    """

    radius: int
    resolution: int
    most: int
    watchdog: int
    force: int = 0
    let_go: bool = True
    limited: bool = False
    talks: bool = False
    wants_zero: bool = False
    echo: int = 0
    sequence: int = 0
    last: int = 0
    reader: hf.PacketReader = field(default_factory=hf.PacketReader)

    def take(self, data: bytes, now: int) -> bytes:
        """Carry out the packets completed by these bytes; return the answers."""
        answers = b""
        for body in self.reader.feed(data):
            answers += self._obey(body, now)
        return answers

    def _obey(self, body: hf.Body, now: int) -> bytes:
        match body:
            case hf.HelloBody():
                self.talks = True
                return hf.encode_packet(
                    hf.IdentityBody(hf.VERSION, self.radius, self.resolution, self.most, self.watchdog)
                )
            case hf.ZeroBody():
                self.wants_zero = True
            case hf.ForceBody():
                self.echo, self.last = body.sequence, now
                force = max(-self.most, min(self.most, body.force))
                self.limited = force != body.force
                self.let_go = self.let_go and force != 0
                self.force = 0 if self.let_go else force
        return b""

    def watch(self, now: int) -> None:
        """Remove the force when none was received in time; called in every cycle, after the packets received."""
        if self.watchdog and not self.let_go and (now - self.last) % WORD > self.watchdog:
            self.force, self.let_go = 0, True

    def sample(self, now: int, counts: int, velocity: int) -> bytes:
        """Return a sample as a packet."""
        self.sequence = (self.sequence + 1) % HALF_WORD
        state = hf.LET_GO * self.let_go | hf.LIMITED * self.limited
        return hf.encode_packet(
            hf.SampleBody(
                self.sequence, now % WORD, counts, velocity, self.echo, self.force, state, self.reader.dropped % 256
            )
        )


# -- An emulated paddle across a pseudo-terminal -------------------------------------------------------------
#
# An emulated paddle across a pseudo-terminal: state machine of the firmware, and mechanics of a handle.
#
# Options
# -------
# mass, damping, friction : float
#     Of the handle: kg, N s/m and N (0.1, 0.5 and 0).
# resolution : float
#     Distance per count of the sensor, m (20 µm).
# force : float
#     Largest force, N (5).
# watchdog : float
#     Time without a force after which the firmware removes the force, s (0.02); 0: never.
# rate : float
#     Samples a second (2000).
# radius : float
#     Of the handle, m (0.08).
# power : str
#     Supply of the board: the ``line``, so unplugging removes the force, or its ``own``.
# hand : mapping
#     Hand on it: ``stiffness``, ``damping``, ``target`` (60 N/m, 0.2 N s/m, 0 m: a light grip); both 0: no hand.

USUAL: Final[dict[str, Any]] = {
    "mass": 0.1, "damping": 0.5, "friction": 0.0, "resolution": 20e-6, "force": 5.0, "watchdog": 0.02, "rate": 2000.0,
    "radius": 0.08, "power": "line", "hand": {},
}  # fmt: skip
HAND: Final = {"stiffness": 60.0, "damping": 0.2, "target": 0.0}
COMMANDS: Final = (
    "unplug", "plug", "garbage", "half", "stall", "freeze", "hand", "play", "watchdog", "jump", "measure",
)  # fmt: skip
BEGINS, WATCHDOG, NO_POWER, HOST = "begins", "watchdog", "no power", "host"  # causes of the present force
GRID: Final = 1e-4  # s, of the mechanics
MICRO: Final = 1e6
_SMOOTH: Final = 2.0 * math.pi * 200.0  # rad/s, of the filter of the velocity, as in the sketch
_MOST: Final = 4096  # bytes read at once
_LOGGED: Final = 20000  # changes of the force kept until they are asked for


def start(options: Mapping[str, Any]) -> EmulationProcess:
    """Start an emulated paddle. Raises InputError: an option is unknown, or its value is invalid."""
    check(options)
    return EmulationProcess(__name__, options)


def check(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options completed by their defaults; raise InputError for invalid ones."""
    for name in options:
        if name not in USUAL:
            raise InputError(f"the emulated hapkit has no option '{name}'", allowed=", ".join(USUAL))
    found = {**USUAL, **options}
    for name, value in found.items():
        least = 0.0 if name in ("damping", "friction", "resolution", "watchdog") else 1e-9
        if isinstance(USUAL[name], float) and not (isinstance(value, int | float) and least <= value < 1e6):
            raise InputError(f"{name} of the emulated hapkit", found=str(value), allowed=f"from {least:g}")
    if found["power"] not in ("line", "own") or set(found["hand"]) - set(HAND):
        raise InputError("the emulated hapkit", found=f"power {found['power']}, hand {found['hand']}")
    return found


class EmulatedHapkit:
    """The emulated device: board, handle and line. ``options``: complete, as :func:`check` returns them."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._nm = max(1, round(1e9 * float(options["resolution"])))
        self._resolution = 1e-9 * self._nm
        self._zero = 0  # counts
        self.handle = EmulatedHandle(options["mass"], options["damping"], options["friction"])
        self.hand(**{**HAND, **options["hand"]})
        self.board = self._new_board()
        self._folder = new_folder()
        self.path = self._folder / "port"
        self._line = self._kept = -1
        self._own = OwnClock()
        self._begun = self._at = self._own.now()  # time reached by the mechanics
        self._last = self._at, 0  # time and counts of the sample before, for the velocity
        self._velocity = 0.0  # as the firmware estimates it, m/s
        self._shown, self._why = 0.0, BEGINS
        self._log: list[dict[str, Any]] = []
        self._stalled = self._frozen = self._garbles = self._halves = False
        self._shift, self._meter = 0.0, Meter()
        self._motion: Stroke | Rhythm | None = None  # of the hand's target
        self._motion_began = 0.0
        self.plug()

    def _new_board(self) -> Board:
        given = self._options
        return Board(
            round(MICRO * given["radius"]), self._nm, round(MICRO * given["force"]), round(MICRO * given["watchdog"])
        )

    # -- fault injection -----------------------------------------------------------------------------------

    def plug(self) -> None:
        """Connect the line; a board powered by it restarts."""
        if self._line >= 0:
            return
        self._line, self._kept = os.openpty()  # kept open: the line stays when a driver closes its end
        tty.setraw(self._kept)
        os.set_blocking(self._line, False)
        if self._options["power"] == "line":
            self.board, self._zero, self._why = self._new_board(), 0, BEGINS
        link = self.path.with_name("next")
        link.symlink_to(os.ttyname(self._kept))
        link.replace(self.path)

    def unplug(self) -> None:
        """Disconnect the line."""
        if self._line < 0:
            return
        self.path.unlink()
        for end in (self._line, self._kept):
            os.close(end)
        self._line = self._kept = -1
        if self._options["power"] == "line":
            self.board.force, self.board.let_go, self.board.talks = 0, True, False
            self._show(NO_POWER)

    def garbage(self, bytes: int = 0, on: bool = False) -> None:
        """Send noise: some bytes of it, or, while ``on``, instead of every sample."""
        self._garbles = bool(on)
        if bytes:
            self._send(os.urandom(min(int(bytes), _MOST)))

    def half(self, on: bool = False) -> None:
        """Send half a sample, once or, while ``on``, instead of every one."""
        self._halves = bool(on)
        if not on:
            frame = self._sample(self._own.now())
            self._send(frame[: len(frame) // 2])

    def jump(self, by: float = 0.0) -> None:
        """Add an error to the positions sent, m."""
        self._shift = float(by)

    def measure(self) -> None:
        """Restart the meter."""
        self._meter = Meter()

    def stall(self, on: bool = True) -> None:
        """Send no samples any more, but take forces."""
        self._stalled = bool(on)

    def freeze(self, on: bool = True) -> None:
        """Neither read nor send any more; the watchdog continues in its own interrupt."""
        self._frozen = bool(on)

    def hand(
        self, stiffness: float | None = None, damping: float | None = None, target: Any = None, speed: float = 0.0
    ) -> None:
        """Attach a hand to the handle, or move its target: at once, or with a largest speed (m/s)."""
        handle = self.handle
        target = target[0] if isinstance(target, list) else target
        given = [value for value in (stiffness, damping, target, speed) if value is not None]
        if not all(math.isfinite(float(value)) for value in given) or min(stiffness or 0.0, damping or 0.0, speed) < 0:
            raise ValueError("stiffness, damping and speed are numbers from 0, target is a number")
        handle.hand_stiffness = handle.hand_stiffness if stiffness is None else float(stiffness)
        handle.hand_damping = handle.hand_damping if damping is None else float(damping)
        if target is None:
            return
        target = float(target) + self._zero * self._resolution
        if speed and target != handle.target:
            self._begin(Stroke(handle.target, target, float(speed)))
        elif not speed:
            self._motion, handle.target = None, target

    def play(self, rate: float, notes: int, pressed: float, lifted: float = 0.0) -> None:
        """Let the hand play notes in a rhythm: notes a second, their number, its lower and upper positions, m."""
        zero = self._zero * self._resolution
        self._begin(Rhythm(float(rate), int(notes), float(pressed) + zero, float(lifted) + zero))

    def _begin(self, motion: Stroke | Rhythm) -> None:
        """Let the hand's target move from now on."""
        self._advance(self._own.now())
        self._motion, self._motion_began = motion, self._at

    def watchdog(self, on: bool = True) -> None:
        """Disable or enable the watchdog of the firmware."""
        self.board.watchdog = round(MICRO * self._options["watchdog"]) if on else 0

    def state(self) -> dict[str, Any]:
        """Return the state of the device; see :class:`.emulated_device.Emulation`."""
        handle, board = self.handle, self.board
        zero = self._zero * self._resolution  # positions are relative to the zero of the driver
        return {
            "time": self._at + self._own.stood,
            "position": [handle.position - zero], "velocity": [handle.velocity], "force": [self._shown],
            "plugged": self._line >= 0, "stalled": self._stalled, "frozen": self._frozen, "garbled": self._garbles,
            "halved": self._halves,
            "let_go": self._why if board.let_go else "",
            "hand": {
                "stiffness": handle.hand_stiffness, "damping": handle.hand_damping, "target": [handle.target - zero],
            },
            "watchdog": 1e-6 * board.watchdog, "meter": asdict(self._meter),
            "counts": {"dropped": board.reader.dropped, "samples": board.sequence, "echo": board.echo},
        }  # fmt: skip

    def log(self) -> dict[str, Any]:
        """Return the changes of the force shown since this was asked last, and the last force packet before each."""
        found, self._log = self._log, []
        return {"log": found}

    # -- time ----------------------------------------------------------------------------------------------

    def run(self, lines: CommandChannel) -> None:
        """Run until the commands end."""
        pause = 1.0 / self._options["rate"]
        now = next_sample = self._own.now()
        while True:
            waiting = [lines.descriptor, *([self._line] if self._line >= 0 and not self._frozen else [])]
            ready, _, _ = select.select(waiting, [], [], min(LOOKS, max(0.0, next_sample - now)))
            if lines.descriptor in ready and not lines.serve():
                return
            now = self._own.now()
            if self._line >= 0 and not self._frozen:
                self._obey(now)
            self.board.watch(self._clock(now))
            self._show(WATCHDOG if self.board.let_go else HOST)
            if now >= next_sample:
                self._move(now)
                next_sample = next_sample + pause if now < next_sample + pause else now + pause
                if self.board.talks and not (self._stalled or self._frozen):
                    self._send(self._corrupted(self._sample(now)))

    def _clock(self, now: float) -> int:
        return int(MICRO * (now - self._begun)) % WORD

    def _obey(self, now: float) -> None:
        """Carry out the packets received."""
        try:
            data = os.read(self._line, _MOST)
        except BlockingIOError:
            return
        answer = self.board.take(data, self._clock(now))
        if answer:
            self._send(answer)
        if self.board.wants_zero:
            self.board.wants_zero = False
            self._zero += self._measured()

    def _show(self, why: str) -> None:
        """Apply the board's force from now on; the mechanics has advanced to now under the previous one."""
        force = 1e-6 * self.board.force
        if force == self._shown:
            if not self.board.let_go:
                self._why = HOST
            return
        self._advance(self._own.now())
        self._shown = self.handle.force = force
        self._why = why
        place = self.handle.position - self._zero * self._resolution
        entry = {
            "time": time.monotonic(),
            "force": [force],
            "position": [place],
            "why": why,
            "sequence": self.board.echo,
        }
        self._log.append(entry)
        del self._log[:-_LOGGED]

    def _advance(self, now: float) -> None:
        steps = int((now - self._at) / GRID)
        for k in range(steps):
            if self._motion is not None:
                since = self._at + k * GRID - self._motion_began
                self.handle.target = self._motion.at(since)[0]
                if since > self._motion.duration:
                    self._motion = None
            self._meter.advance((self.handle,), GRID)
        self._at += steps * GRID

    def _measured(self) -> int:
        """Return the counts of the sensor since the last zero."""
        return math.floor(self.handle.position / self._resolution + 0.5) - self._zero

    def _move(self, now: float) -> None:
        """Advance, and estimate the velocity as the firmware does, from filtered differences."""
        self._advance(now)
        at, counts = self._at, self._measured() + self._zero
        before, counted = self._last
        if at > before:
            rate = self._resolution * (counts - counted) / (at - before)
            self._velocity += (1.0 - math.exp(-_SMOOTH * (at - before))) * (rate - self._velocity)
            self._last = at, counts

    def _sample(self, now: float) -> bytes:
        counts = self._measured() + round(self._shift / self._resolution)
        return self.board.sample(self._clock(now), counts, round(MICRO * self._velocity))

    def _corrupted(self, frame: bytes) -> bytes:
        if self._garbles:
            return os.urandom(len(frame))
        return frame[: len(frame) // 2] if self._halves else frame

    def _send(self, data: bytes) -> None:
        """Send bytes as far as the buffer of the line has room; the rest is lost."""
        if self._line >= 0:
            with contextlib.suppress(BlockingIOError):
                os.write(self._line, data)

    def close(self) -> None:
        """Remove remaining files."""
        shutil.rmtree(self._folder, ignore_errors=True)


def main() -> None:
    """Run the emulator; see :mod:`fsm_dyn.devices.emulators`."""
    options = check(given_options())
    paddle = EmulatedHapkit(options)
    lines = CommandChannel({name: getattr(paddle, name) for name in (*COMMANDS, "state", "log")})
    known = {name: options[name] for name in ("mass", "damping", "friction", "force", "resolution")}
    paddle.handle.advance(GRID)  # the first solution takes a while
    ask_for_privileges()  # a device is on time
    try:
        lines.ready({"path": str(paddle.path), **known, "delay": 1.0 / options["rate"]}, COMMANDS)
        paddle.run(lines)
    finally:
        paddle.close()


if __name__ == "__main__":
    main()
