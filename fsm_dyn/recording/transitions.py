"""One change of mode, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsm_dyn.recording.arrays import FloatArray


@dataclass(frozen=True)
class Transition:
    """One change of mode.

    Attributes
    ----------
    time : float
        When, s.
    source, target : str
        Names of the modes before and after.
    cause : str
        The contact and its event, or the condition the user wrote.
    impulse : mapping of str to ndarray
        Impulse by contact or constraint, one value per row (normal before tangent), N·s or N·m·s; empty without one.
    energy_before, energy_after : float
        Kinetic and potential energy together, J.
    u_before, u_after : ndarray, shape (n_u,)
    candidates : int
        How many combinations of contact states agreed with the forces; above 1 the documented preference chose.
    guard, slope : float
        Value and rate of the guard that fired, just before; nan where none did.
    why : tuple of str
        How the answer was found, then what was tried and how each candidate fared.
    fired : tuple of (str, float, float)
        All guards that fired together: what each announces, its value and its slope just before.
    """

    time: float
    source: str
    target: str
    cause: str
    impulse: Mapping[str, FloatArray]
    energy_before: float
    energy_after: float
    u_before: FloatArray
    u_after: FloatArray
    candidates: int = 1
    guard: float = float("nan")
    slope: float = float("nan")
    why: tuple[str, ...] = ()
    fired: tuple[tuple[str, float, float], ...] = ()

    @property
    def energy_lost(self) -> float:
        """Energy that the transition took out of the motion, J."""
        return self.energy_before - self.energy_after

    def __str__(self) -> str:
        text = f"{self.time:.6f} s  {self.source} → {self.target}  {self.cause}"
        impulses = ", ".join(f"{name} {_numbers(values)}" for name, values in self.impulse.items())
        if impulses:
            text += f"  (impulse {impulses}; energy {-self.energy_lost:+.3g} J)"
        return text


def _numbers(values: FloatArray) -> str:
    return " / ".join(f"{value:.3g}" for value in np.atleast_1d(values))
