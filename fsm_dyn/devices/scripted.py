"""A simulated hand that follows a prescribed motion: a device without hardware."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.devices.driver_tools import OptionReader
from fsm_dyn.live.driver_protocol import NOTHING, SAFE_FRAME, WATCHDOG, DeviceSpec, Sample
from fsm_dyn.live.pacing import CompiledIO
from fsm_dyn.run.structures import Bundle
from fsm_dyn.runtime import library
from fsm_dyn.runtime.layouts import ScriptedHand

# -- A simulated hand that follows a prescribed motion: a device without hardware ----------------------------
#
# The hand is a mass under the force of the model, with a spring and a damper to a target moving as a sum of sines. It
# moves by one period per reading, independent of the clock, so runs are reproducible.
#
# Options
# -------
# axes : int
#     Number of axes (1).
# turns : list of int
#     Rotational axes, in rad, rad/s and N m instead of m, m/s and N (none).
# motion : list of [axis, amplitude (m), frequency (Hz), phase (rad)]
#     Target of the hand; amplitudes grow from zero over the first half second.
# mass, stiffness, damping : float
#     Of the hand (0.3 kg, 300 N/m, 12 N s/m).
# period : float
#     Time between readings, s; the session's period.
# wire : str
#     A file for the forces, one a line, as written to a device's transport.
# stop : str
#     Declared stop mechanism of the device (``safe_frame`` with a wire, else ``none``).
# fault, fault_at : str, float
#     Fault injection: at this time (s) the driver will ``raise``, ``hang``, ``stall`` or return ``nan``.

FAULTS: Final = ("", "raise", "hang", "stall", "nan")
_KNOWN: Final = frozenset(
    {"axes", "turns", "motion", "mass", "stiffness", "damping", "period", "wire", "stop", "fault", "fault_at"}
)
MASS, STIFFNESS, DAMPING, PERIOD = 0.3, 300.0, 12.0, 1e-3  # kg, N/m, N s/m, s
_GENTLE: Final = 0.5  # s


def usual_motion(axes: int) -> list[list[float]]:
    """Return a motion suited to most mechanisms: 10 cm at half a hertz, with a frequency for each axis."""
    return [[axis, 0.1, 0.5 + 0.2 * axis, 0.3 * axis] for axis in range(axes)]


class Driver:
    """The scripted hand; see the module."""

    def __init__(self, options: Mapping[str, Any], transport: int | None = None) -> None:
        self.spec = self.describe(options)
        self._transport = transport
        n = self.spec.axes
        self._motion = [
            (int(i), float(a), 2.0 * math.pi * float(f), float(p)) for i, a, f, p in options.get("motion", ())
        ]
        self._mass = float(options.get("mass", MASS))
        self._stiffness = float(options.get("stiffness", STIFFNESS))
        self._damping = float(options.get("damping", DAMPING))
        self._period = float(options.get("period", PERIOD))
        self._fault, self._fault_at = str(options.get("fault", "")), float(options.get("fault_at", 0.0))
        self._position, self._velocity, self._force = [0.0] * n, [0.0] * n, [0.0] * n
        self._readings = 0
        self._hand: Any = None  # the compiled one

    def compiled(self) -> Any:
        """Return the compiled reading and writing of the hand; None with a wire or an injected fault."""
        if self._transport is not None or self._fault:
            return None
        # plain ticks have no use for it

        numbers = (self._mass, self._stiffness, self._damping, self._period, _GENTLE)
        self._hand, io = compiled_hand(numbers, self._motion, self.spec.axes)
        return io

    @classmethod
    def describe(cls, options: Mapping[str, Any]) -> DeviceSpec:
        """Return the description of the device by its options."""
        given = OptionReader("scripted device", options, _KNOWN)
        axes = given.count("axes", 1, 1, 6)
        stop = given.choice("stop", SAFE_FRAME if options.get("wire") else NOTHING, (NOTHING, SAFE_FRAME, WATCHDOG))
        given.choice("fault", "", FAULTS)
        given.motion(axes)
        for name, usual in (("mass", MASS), ("period", PERIOD)):
            given.number(name, usual, above=True)
        for name, usual in (("stiffness", STIFFNESS), ("damping", DAMPING), ("fault_at", 0.0)):
            given.number(name, usual)
        turns = given.turns(axes)
        return DeviceSpec("scripted", axes, stop, 0.01, b"guard" + b" 0" * axes + b"\n", rotational_axes=turns)

    @classmethod
    def open_transport(cls, options: Mapping[str, Any]) -> int | None:
        """Return the descriptor of the wire, if there is one."""
        if not options.get("wire"):
            return None
        return os.open(str(options["wire"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def open(self) -> None:
        """Nothing has to be opened."""

    def calibrate(self) -> None:
        """The hand begins at zero."""

    def close(self) -> None:
        """Write the end of the driver to the wire."""
        if self._transport is not None:
            os.write(self._transport, b"close\n")

    def read(self) -> Sample:
        """Move the hand by one period and return its position."""
        t = self._readings * self._period
        if self._fault and t >= self._fault_at:
            if self._fault == "raise":
                raise RuntimeError("an injected failure")
            if self._fault == "hang":
                time.sleep(3600.0)
            if self._fault == "stall":
                return Sample(t, self._readings, self._position, self._velocity)
        self._readings += 1
        target = [0.0] * len(self._position)
        rate = [0.0] * len(self._position)
        gentle = min(t / _GENTLE, 1.0)
        for axis, amplitude, frequency, phase in self._motion:
            target[axis] += gentle * amplitude * math.sin(frequency * t + phase)
            rate[axis] += gentle * amplitude * frequency * math.cos(frequency * t + phase)
        for i in range(len(target)):
            pull = self._stiffness * (target[i] - self._position[i]) + self._damping * (rate[i] - self._velocity[i])
            self._velocity[i] += self._period * (pull + self._force[i]) / self._mass
            self._position[i] += self._period * self._velocity[i]
        if self._fault == "nan" and t >= self._fault_at:
            return Sample(t, self._readings, [math.nan] * len(target), self._velocity)
        return Sample(t, self._readings, self._position, self._velocity)

    def write(self, force: Sequence[float]) -> Sequence[float]:
        """Let the force act on the hand until the next reading."""
        self._force = [float(value) for value in force]
        if self._hand is not None:
            self._hand.force[:] = self._force
        if self._transport is not None:
            os.write(self._transport, ("tick" + "".join(f" {value:.9g}" for value in self._force) + "\n").encode())
        return force


# -- The scripted hand as the runtime reads and writes it ----------------------------------------------------
#
# The scripted hand as the runtime reads and writes it (``runtime/pacing.c``): a driver for fast loops.

HAND: Final = Bundle(ScriptedHand)


def compiled_hand(
    numbers: Sequence[float], motion: Sequence[tuple[float, ...]], axes: int
) -> tuple[ScriptedHand, CompiledIO]:
    """Return a hand at rest and how it is read and written.

    ``numbers``: those of :class:`ScriptedHand` but the time; ``motion``: four numbers for each sinusoid.
    """
    swings = np.array(motion, dtype=np.float64).reshape(-1, 4)
    hand = ScriptedHand(np.array([*numbers, 0.0]), swings, np.zeros(axes), np.zeros(axes), np.zeros(axes))
    packed = HAND.pack(hand)
    read, write = library.address("fsm_hand_read"), library.address("fsm_hand_write")
    return hand, CompiledIO(read, write, packed.address, (hand, packed))
