"""The columns of a row of a live run: the data of one tick for viewers, recordings and replays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FIXED: Final = (
    "tick", "t", "wall", "execution_time", "wakeup_latency", "mode", "status", "phase", "fault", "advanced",
    "incomplete", "transitions", "engagement", "buttons",
)  # fmt: skip
ADVANCED: Final = FIXED.index("advanced")
STATUS: Final = FIXED.index("status")
INCOMPLETE: Final = FIXED.index("incomplete")


@dataclass(frozen=True)
class TickColumns:
    """Names of the columns of a row after the fixed ones.

    These are inputs, state, device, force shown, ports, discrete, motion.  ``ports`` are the axes of all ports; each
    has three columns: force of the port on the model, position, rate.  ``discrete`` is what the model remembers beside
    its state: the slip directions and the memory, by their names in the kernels' context.  With it a row says all that
    forces and guards follow from.  ``smooth`` are the inputs that run as cubics, with two columns each: rate and
    second rate.  ``execution_time`` (of the tick before) and
    ``wakeup_latency`` are in s.
    """

    inputs: tuple[str, ...]
    state: tuple[str, ...]
    device: int
    ports: tuple[str, ...]
    discrete: tuple[str, ...] = ()
    smooth: tuple[str, ...] = ()

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each group stands."""
        lengths = {
            "fixed": len(FIXED), "inputs": len(self.inputs), "state": len(self.state), "position": self.device,
            "velocity": self.device, "force": self.device, "ports": 3 * len(self.ports),
            "discrete": len(self.discrete), "motion": 2 * len(self.smooth),
        }  # fmt: skip
        places, at = {}, 0
        for name, length in lengths.items():
            places[name] = slice(at, at + length)
            at += length
        return places

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.places["motion"].stop)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of every column."""
        device = [f"device_{what}_{i + 1}" for what in ("position", "velocity", "force") for i in range(self.device)]
        ports = [f"{axis}_{what}" for what in ("force", "position", "velocity") for axis in self.ports]
        motion = [f"input_{name}_{what}" for what in ("rate", "rate2") for name in self.smooth]
        return (
            *FIXED,
            *(f"input_{name}" for name in self.inputs),
            *self.state,
            *device,
            *ports,
            *self.discrete,
            *motion,
        )

    def as_dict(self, row: NDArray[np.float64], modes: tuple[str, ...]) -> dict[str, Any]:
        """Return a row as a mapping, with the mode by its name."""
        found: dict[str, Any] = dict(zip(FIXED, row[: len(FIXED)].tolist(), strict=True))
        for name in ("tick", "status", "phase", "fault", "transitions", "buttons"):
            found[name] = int(found[name])
        number = int(found["mode"])
        found["mode"] = modes[number] if 0 <= number < len(modes) else f"mode {number}"
        found["inputs"] = dict(zip(self.inputs, row[self.places["inputs"]].tolist(), strict=True))
        found["discrete"] = dict(zip(self.discrete, row[self.places["discrete"]].tolist(), strict=True))
        found["state"] = dict(zip(self.state, row[self.places["state"]].tolist(), strict=True))
        for name in ("position", "velocity", "force"):
            found[name] = row[self.places[name]].tolist()
        n = len(self.ports)
        ports = row[self.places["ports"]].tolist()
        found["ports"] = {
            axis: {"force": ports[i], "position": ports[n + i], "velocity": ports[2 * n + i]}
            for i, axis in enumerate(self.ports)
        }
        return found
