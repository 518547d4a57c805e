"""The return map of a section: from just after it to just after it again, with its derivative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.poincare_sections import CrossingSection, EventSection, Section
from fsm_dyn.analysis.saltation import crossing, jump_rows, propagate_variations
from fsm_dyn.analysis.symmetry import Relabelling
from fsm_dyn.errors import RunError
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.simulation import event_resolution
from fsm_dyn.simulation.run_arrays import RunArrays

FIRST_HORIZON = 1.0  # s
TOUCHING = 1e-7  # a gap (m) that is closed at the section stays so while Newton's method moves the state
RANK = 1e-9
NEWTON_STEPS = 6


@dataclass(frozen=True)
class SectionPoint:
    """A state just after the section: ``x`` (n_x,), the context (n_c,) and the contact states of the mode."""

    x: Array
    context: Array
    states: tuple[int, ...]


@dataclass(frozen=True)
class Return:
    """One return: the run, the row just after the section, and the point there under its new names."""

    raw: RunArrays
    row: int
    time: float
    point: SectionPoint


class ReturnMap:
    """Returns to a section.

    Parameters
    ----------
    setting : Setting
    begin, end : Section
        The section, and what it is called when it is reached again (another foot, where left and right change places).
    relabelling : Relabelling
    longest : float
        How long to wait for a return, s.
    """

    def __init__(
        self, setting: AnalysisSetup, begin: Section, end: Section, relabelling: Relabelling, longest: float
    ) -> None:
        self.setting = setting
        self.begin, self.end = begin, end
        self.relabelling = relabelling
        self.longest = longest
        self.horizon = min(FIRST_HORIZON, longest)
        system = setting.executable.automaton.system
        self.system = system
        self.configuration = system.configuration

    def reach(self, point: SectionPoint) -> Return:
        """Run from anywhere to the section itself, nothing renamed."""
        raw, row, time = self._run_to(self.begin, point)
        return Return(raw, row, time, self._point(raw, row))

    def __call__(self, point: SectionPoint) -> Return:
        """Run from the section to its next return.

        Raises
        ------
        RunError
            It does not return.
        """
        raw, row, time = self._run_to(self.end, point)
        there, new = self._point(raw, row), self.relabelling
        sigma = self.setting.executable.automaton.terms.layout.sigma_slice
        self.horizon = min(1.3 * time, self.longest)
        renamed = SectionPoint(new.state(there.x), new.context(there.context, sigma), new.states(there.states))
        return Return(raw, row, time, renamed)

    def period(self, found: Return, point: SectionPoint) -> float:
        """Return the time of a return to the cycle itself, s.

        A run that begins where a contact just let go may take a moment to let go again.  Then the time is taken between
        two returns of one run.
        """
        if not (isinstance(self.end, EventSection) and np.any(found.raw.transitions.reason == event_resolution.START)):
            return found.time
        raw = self.setting.run(point.x, point.context, point.states, 2.2 * found.time)
        again = self.relabelling.section(self.end)
        row = again.first(raw, found.time) if isinstance(again, EventSection) else -1
        return float(raw.t[row]) - found.time if row >= 0 else found.time

    def derivative(self, found: Return) -> tuple[Array, Array]:
        """Return the map's derivative (n_x, n_x), and a basis (n_x, d) of the section just after it."""
        setting, raw, row = self.setting, found.raw, found.row
        n = raw.x.shape[1]
        if isinstance(self.end, EventSection):
            Y, _ = propagate_variations(setting, raw, row, np.eye(n), on_section=True)
            onto = crossing(setting, raw, jump_rows(raw)[row], row).section
            before = row - 1
        else:
            Y, _ = propagate_variations(setting, raw, row, np.eye(n))
            context = setting.context(raw.held[row])
            gradient = self.end.program.evaluate(raw.t[row], raw.x[row], context)["by_state"]
            flow = raw.x_dot[row]
            onto = np.eye(n) - np.outer(flow, gradient) / float(gradient @ flow)
            Y = onto @ Y
            before = row
        tangents = self.relabelling.matrix @ onto @ self._tangents(raw, before)
        left, sizes, _ = np.linalg.svd(tangents)
        rank = int(np.sum(sizes > RANK * max(sizes.max(initial=0.0), 1e-300)))
        return self.relabelling.matrix @ Y, left[:, :rank]

    def consistent(self, x: Array, point: SectionPoint) -> Array:
        """Return ``x`` brought onto the rows that hold at ``point``, and onto the gap that the section closes."""
        system, context = self.system, point.context
        n_q, n_u = len(system.layout.q), len(system.layout.u)
        active = ActiveSet.of(system, point.states)
        rows = list(active.rows)
        terms = system.evaluate(0.0, point.x, context)
        if isinstance(self.begin, EventSection) and self.begin.event:
            r = system.contacts[self.begin.subject].normal_row
            if r >= 0 and r not in rows and abs(terms["residual"][r]) <= TOUCHING:
                rows.append(r)
        positional = [r for r in rows if system.rows[r].positional]
        x = x.copy()
        for _ in range(NEWTON_STEPS):
            terms = system.evaluate(0.0, x, context)
            residual = terms["residual"][positional]
            if not np.abs(residual).max(initial=0.0) > 1e-13:
                break
            motion = _least_motion(terms["M"][:n_u, :n_u], terms["A"][positional, :n_u], -residual)
            x[:n_q] += terms["W"][:, :n_u] @ motion
            for first in system.quaternions:
                x[first : first + 4] /= np.linalg.norm(x[first : first + 4])
        held = list(active.rows)
        terms = system.evaluate(0.0, x, context)
        A = terms["A"][held, :n_u]
        x[n_q:] += _least_motion(terms["M"][:n_u, :n_u], A, -(A @ x[n_q:] + terms["b"][held]))
        return x

    def _tangents(self, raw: RunArrays, row: int) -> Array:
        """Ways in which the state may vary within its mode at a row, shape (n_x, n_ways)."""
        system, setting = self.system, self.setting
        x, context, n_q = raw.x[row], setting.context(raw.held[row]), len(system.layout.q)
        number = int(raw.mode[row])
        states = tuple(int(code) for code in raw.tables.mode_states[number])
        rows = [r for r in ActiveSet.of(system, states).rows if system.rows[r].positional]
        slopes = self.configuration.evaluate(raw.t[row], x, context)["jacobian"][rows]
        for first in system.quaternions:
            norm = np.zeros((1, n_q))
            norm[0, first : first + 4] = x[first : first + 4]
            slopes = np.vstack([slopes, norm])
        ways = np.zeros((len(x), len(x)))
        ways[:n_q, :n_q] = _null(slopes, n_q)
        speeds = setting.derivatives(number).ends.evaluate(raw.t[row], x, context)["u_by_state"]
        ways[n_q:, n_q:] = np.eye(len(x) - n_q)
        ways[n_q:] = speeds @ ways
        return ways

    def _run_to(self, section: Section, point: SectionPoint) -> tuple[RunArrays, int, float]:
        horizon = self.horizon
        while True:
            raw = self.setting.run(point.x, point.context, point.states, horizon)
            if isinstance(section, EventSection):
                row = section.first(raw)
                if row >= 0:
                    return raw, row, float(raw.t[row])
            else:
                time = section.first(self.setting, raw)
                if time is not None:
                    raw = self._polished(section, point, time)
                    return raw, len(raw.t) - 1, float(raw.t[-1])
            if raw.t[-1] < horizon or raw.outcome.failed:
                raise RunError(
                    f"the motion does not return to '{section.text}': it ends at t = {raw.t[-1]:.6g} s"
                    f" ({raw.outcome.name})\n  remedy: start nearer to the cycle, with initial= or guess="
                )
            if horizon >= self.longest:
                raise RunError(
                    f"the motion does not return to '{section.text}' within {self.longest:g} s\n  remedy: start"
                    " elsewhere (initial=), look at a run of the model, or wait longer (max_return_time=)"
                )
            horizon = min(2.0 * horizon, self.longest)

    def _polished(self, section: CrossingSection, point: SectionPoint, time: float) -> RunArrays:
        """Run exactly to a crossing: the dense output places it, the method's own steps give its state."""
        for _ in range(2):
            raw = self.setting.run(point.x, point.context, point.states, time)
            values = section.program.evaluate(raw.t[-1], raw.x[-1], self.setting.context(raw.held[-1]))
            time -= float(values["value"]) / float(values["by_state"] @ raw.x_dot[-1])
        return self.setting.run(point.x, point.context, point.states, time)

    def _point(self, raw: RunArrays, row: int) -> SectionPoint:
        states = tuple(int(code) for code in raw.tables.mode_states[raw.mode[row]])
        return SectionPoint(raw.x[row].copy(), self.setting.context(raw.held[row]), states)


def _least_motion(M: Array, A: Array, target: Array) -> Array:
    """The motion v with ``A v = target`` that is smallest in the metric of M (docs/theory.md, (7.1))."""
    n, m = len(M), len(A)
    matrix = np.block([[M, -A.T], [A, np.zeros((m, m))]])
    motion: Array = np.linalg.lstsq(matrix, np.concatenate([np.zeros(n), target]), rcond=1e-12)[0][:n]
    return motion


def _null(rows: Array, n: int) -> Array:
    """The projector onto the null space of ``rows`` (m, n)."""
    if not len(rows):
        return np.eye(n)
    projector: Array = np.eye(n) - np.linalg.pinv(rows, rcond=1e-10) @ rows
    return projector
