"""Positions, partial velocities and constraint rows of a mechanism at one state, from compiled programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.programs import compile_programs
from fsm_dyn.results.arrays import FloatArray


@dataclass(frozen=True)
class Configuration:
    """A mechanism at one state.

    Attributes
    ----------
    points, frames : ndarrays
        As of :meth:`Kinematics.points`.
    linear, angular : ndarrays
        As of :meth:`Kinematics.partial_velocities`.
    rows : ndarray, shape (n_rows, n_u)
        Constraint rows.
    terms : mapping of str to ndarray
        All unconstrained terms.
    """

    points: FloatArray
    frames: FloatArray
    linear: FloatArray
    angular: FloatArray
    rows: FloatArray
    terms: Mapping[str, FloatArray]

    @property
    def finite(self) -> bool:
        """Whether rows and partial velocities are numbers."""
        return all(np.isfinite(values).all() for values in (self.rows, self.linear, self.angular))


class Kinematics:
    """Evaluator of the programs of a mechanism that no mode changes; microseconds per evaluation.

    Parameters
    ----------
    automaton : Automaton
    """

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.layout = automaton.terms.layout
        self.geometry, self.report, self.terms = compile_programs(
            [automaton.geometry, automaton.report, automaton.terms]
        )

    def points(self, x: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return positions of points, m, shape (n, 3), and rotation matrices of frames, shape (k, 3, 3)."""
        out = self.geometry.outputs(0.0, x, c)
        return out["points"], out["frames"]

    def partial_velocities(self, x: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return partial velocities of points and partial angular velocities of frames.

        Returns
        -------
        linear : ndarray, shape (n_points, 3, n_u)
            Velocity of every point per speed, resolved in N.
        angular : ndarray, shape (n_frames, 3, n_u)
            Angular velocity of every frame per speed, resolved in N.
        """
        layout = self.layout
        n_q = len(layout.q)
        points, frames = self.points(x, c)
        by_q = np.zeros((*points.shape, n_q))
        turn = np.zeros((len(frames), 3, n_q))
        for j in range(n_q):
            h = 1e-6 * (1.0 + abs(x[j]))
            ahead, behind = x.copy(), x.copy()
            ahead[j] += h
            behind[j] -= h
            (p1, f1), (p0, f0) = self.points(ahead, c), self.points(behind, c)
            by_q[..., j] = (p1 - p0) / (2.0 * h)
            spin = np.einsum("fij,fkj->fik", (f1 - f0) / (2.0 * h), frames)  # Ṙ Rᵀ
            turn[..., j] = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)
        w = self.terms.outputs(0.0, x, c)["W"][:n_q, : len(layout.u)]
        return by_q @ w, turn @ w

    def configuration(self, x: FloatArray, c: FloatArray) -> Configuration:
        """Return the mechanism at a state (n_x,) and context (n_c,), SI."""
        terms = self.terms.outputs(0.0, x, c)
        rows = terms["A"][:, : len(self.layout.u)]
        return Configuration(*self.points(x, c), *self.partial_velocities(x, c), rows, terms)
