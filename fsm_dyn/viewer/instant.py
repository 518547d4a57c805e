"""One instant of a live run made whole again: state, context and what the compiled programs say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.artefact import Automaton, Mode
from fsm_dyn.automaton.graph import SINGULAR, ModeGraph
from fsm_dyn.live.rows import FIXED, Columns
from fsm_dyn.modes.programs import RunnableMode
from fsm_dyn.programs import Kernel, compile_programs

Floats = NDArray[np.float64]

TIME: Final = FIXED.index("t")
MODE: Final = FIXED.index("mode")
MOST_CHARTS: Final = 8  # of one mode


@dataclass(frozen=True)
class Chart:
    """A mode in one choice of independent speeds, compiled; ``number`` counts all that were needed."""

    number: int
    programs: RunnableMode
    kernel: Kernel


class Instants:
    """Evaluates the programs of a held graph at rows of a live run; every evaluation takes some microseconds.

    Parameters
    ----------
    graph : ModeGraph
        Held; its parameters are those of the run.
    columns : Columns
        Of the run's rows.
    """

    def __init__(self, graph: ModeGraph, columns: Columns) -> None:
        self.automaton: Automaton = graph.automaton
        self.layout = self.automaton.terms.layout
        self.parameters: Floats = graph.parameters
        self._places = columns.places
        self._smooth = np.array([columns.inputs.index(name) for name in columns.smooth], dtype=np.int64)
        self._kernels = compile_programs([self.automaton.geometry, self.automaton.report, self.automaton.terms])
        self.geometry, self.report, self.terms = self._kernels[0], self._kernels[1], self._kernels[2]
        self.charts: list[Chart] = []
        self._charts: dict[tuple[int, ...], list[Chart]] = {}

    def take(self, row: Floats, before: Floats | None = None) -> tuple[Floats, Floats]:
        """Return state and context of a row; ``before`` is the row before it, for the rates of the inputs."""
        layout, places = self.layout, self._places
        c = np.zeros(layout.n_c)
        c[layout.p_slice] = self.parameters
        c[layout.w_slice] = row[places["inputs"]]
        c[layout.sigma_slice.start :] = row[places["discrete"]]
        if before is not None and row[TIME] > before[TIME]:
            # inputs run straight from tick to tick
            rate = (row[places["inputs"]] - before[places["inputs"]]) / (row[TIME] - before[TIME])
            c[layout.w_rate_slice] = rate
        if len(self._smooth):  # save those that run as cubics
            motion = row[places["motion"]]
            c[layout.w_rate_slice.start + self._smooth] = motion[: len(self._smooth)]
            c[layout.w_rate2_slice.start + self._smooth] = motion[len(self._smooth) :]
        return row[places["state"]], c

    def full(self, states: Sequence[int], x: Floats, c: Floats) -> tuple[Chart, dict[str, Floats]]:
        """Return guards and multipliers of a mode at a state, in a chart of the mode that is good there."""
        key = tuple(int(code) for code in states)
        best: tuple[Chart, dict[str, Floats]] | None = None
        for chart in self._charts.setdefault(key, []):
            out = chart.kernel.outputs(0.0, x, c)
            if out["pivot"][0] >= SINGULAR:
                return chart, out
            best = best or (chart, out)
        if best is not None and len(self._charts[key]) >= MOST_CHARTS:
            return best
        chart = self._chart(key, self._mode(key) if best is None else self.automaton.derive(key, 0.0, x, c))
        return chart, chart.kernel.outputs(0.0, x, c)

    def know(self, states: Sequence[int]) -> None:
        """Derive a mode, if it is not yet."""
        self._mode(tuple(int(code) for code in states))

    def _mode(self, key: tuple[int, ...]) -> Mode:
        number = self.automaton.find(key)
        if number < 0:
            x, c = np.zeros(self.layout.n_x), np.zeros(self.layout.n_c)
            x[list(self.automaton.quaternions)] = 1.0
            c[self.layout.p_slice] = self.parameters
            self.automaton = self.automaton.with_mode(self.automaton.derive(key, 0.0, x, c))
        return self.automaton.modes[number]

    def _chart(self, key: tuple[int, ...], mode: Mode) -> Chart:
        chart = Chart(len(self.charts), mode.programs, compile_programs([mode.programs.full])[0])
        self.charts.append(chart)
        self._charts[key].append(chart)
        return chart

    def points(self, x: Floats, c: Floats) -> tuple[Floats, Floats]:
        """Return the points, shape (n, 3), m, and the frames, shape (k, 3, 3), at a state."""
        out = self.geometry.outputs(0.0, x, c)
        return out["points"], out["frames"]

    def partial_velocities(self, x: Floats, c: Floats) -> tuple[Floats, Floats]:
        """Return how points and frames move with the declared speeds.

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
