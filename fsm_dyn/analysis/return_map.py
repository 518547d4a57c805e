"""The return map of a section: from just after it to just after it again, with its derivative."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.memory_roles import memory_of_motion
from fsm_dyn.analysis.poincare_sections import CrossingSection, EventSection, Section
from fsm_dyn.analysis.saltation import admissible_variations, crossing, jump_rows, propagate_variations
from fsm_dyn.analysis.symmetry import Relabelling
from fsm_dyn.errors import RunError
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.runtime.abi import Reason
from fsm_dyn.simulation.run_arrays import RunArrays

FIRST_HORIZON = 1.0  # s
TOUCHING = 1e-7  # a gap (m) that is closed at the section stays so while Newton's method moves the state
RANK = 1e-9
NEWTON_STEPS = 6
MOST_SHOWN = 5  # values of memory that a message lists


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
    setting : AnalysisSetup
    begin, end : Section
        The section, and what it is called when it is reached again (another foot, where left and right change places).
    relabelling : Relabelling
    longest : float
        How long to wait for a return, s.
    advancing : collection of str
        What the motion does not depend on: coordinates, memory.
    """

    def __init__(
        self,
        setting: AnalysisSetup,
        begin: Section,
        end: Section,
        relabelling: Relabelling,
        longest: float,
        advancing: Collection[str] = (),
    ) -> None:
        self.setting = setting
        self.begin, self.end = begin, end
        self.relabelling = relabelling
        self.longest = longest
        self.horizon = min(FIRST_HORIZON, longest)
        system = setting.executable.automaton.system
        self.system = system
        layout = system.layout
        first = layout.memory_slice.start
        self.kept = [first + layout.memory.index(name) for name in setting.kept]
        #: numbers in the context of the memory that is to be the same after a return
        self.separate = [
            first + layout.memory.index(name)
            for name in memory_of_motion(setting.executable.automaton)
            if name not in setting.kept and name not in advancing
        ]

    def state(self, point: SectionPoint) -> Array:
        """Return the state at a point with the memory that varies, shape (n_z,)."""
        return np.concatenate([point.x, point.context[self.kept]])

    def point(self, z: Array, base: SectionPoint) -> SectionPoint:
        """Return the point with a state, brought onto the rows that hold at ``base``."""
        n_x, context = len(base.x), base.context.copy()
        context[self.kept] = z[n_x:]
        there = SectionPoint(z[:n_x], context, base.states)
        return SectionPoint(self._consistent(there), context, base.states)

    def reach(self, point: SectionPoint) -> Return:
        """Run from anywhere to the section itself, nothing renamed."""
        raw, row, time = self._run_to(self.begin, point, ())
        return Return(raw, row, time, self._point(raw, row))

    def __call__(self, point: SectionPoint, *, settled: bool = True) -> Return:
        """Run from the section to its next return.

        Parameters
        ----------
        point : SectionPoint
        settled : bool
            Whether memory is to have its values again, else the return is the next crossing.

        Raises
        ------
        RunError
            It does not return.
        """
        raw, row, time = self._run_to(self.end, point, self.separate if settled else ())
        there, new = self._point(raw, row), self.relabelling
        self.horizon = min(1.3 * time, self.longest)
        context = new.context(there.context, self.system.layout)
        return Return(raw, row, time, SectionPoint(new.state(there.x), context, new.states(there.states)))

    def period(self, found: Return, point: SectionPoint) -> float:
        """Return the time of a return to the cycle itself, s.

        A run that begins where a contact just opened may take a moment to open again.  Then the time is taken between
        two returns of one run.
        """
        if not (isinstance(self.end, EventSection) and np.any(found.raw.transitions.reason == Reason.START)):
            return found.time
        raw = self.setting.run(point.x, point.context, point.states, 2.2 * found.time)
        again = self.relabelling.section(self.end)
        if not isinstance(again, EventSection):
            return found.time
        setting = self.setting
        begun = setting.context(found.raw.held[found.row])[self.separate]
        shift = self._shift[self.separate]
        rows = again.rows(raw, found.time)
        row = next((r for r in rows if np.array_equal(setting.context(raw.held[r])[self.separate] + shift, begun)), -1)
        return float(raw.t[row]) - found.time if row >= 0 else found.time

    def derivative(self, found: Return) -> tuple[Array, Array]:
        """Return the map's derivative (n_z, n_z), and a basis (n_z, d) of the section just after it."""
        setting, raw, row = self.setting, found.raw, found.row
        n = setting.variations
        if isinstance(self.end, EventSection):
            Y = propagate_variations(setting, raw, row, np.eye(n), on_section=True)
            met = crossing(setting, raw, jump_rows(raw)[row], row)
            if met.follows:
                raise RunError(
                    f"the section '{self.end.text}' follows another transition in the same instant\n  remedy: take that"
                    " one as the section"
                )
            onto = met.section
            before = row - 1
        else:
            Y = propagate_variations(setting, raw, row, np.eye(n))
            context = setting.context(raw.held[row])
            none = np.zeros(len(setting.kept))
            gradient = np.append(self.end.program.evaluate(raw.t[row], raw.x[row], context)["by_state"], none)
            flow = np.append(raw.x_dot[row], none)
            onto = np.eye(n) - np.outer(flow, gradient) / float(gradient @ flow)
            Y = onto @ Y
            before = row
        renamed = np.eye(n)
        renamed[: len(self.relabelling.matrix), : len(self.relabelling.matrix)] = self.relabelling.matrix
        number, context = int(raw.mode[before]), setting.context(raw.held[before])
        ways = admissible_variations(setting, number, float(raw.t[before]), raw.x[before], context)
        left, sizes, _ = np.linalg.svd(renamed @ onto @ ways)
        rank = int(np.sum(sizes > RANK * max(sizes.max(initial=0.0), 1e-300)))
        return renamed @ Y, left[:, :rank]

    @property
    def _shift(self) -> Array:
        """By how much entries of the context are set back after a return, shape (n_c,)."""
        shift = np.zeros(self.system.layout.n_c)
        shift[self.system.layout.memory_slice] = self.relabelling.memory_shift
        return shift

    def _consistent(self, point: SectionPoint) -> Array:
        """Return the state of a point on the rows that hold there, and on the gap that the section closes."""
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
        x = point.x.copy()
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

    def _run_to(self, section: Section, point: SectionPoint, separate: Sequence[int]) -> tuple[RunArrays, int, float]:
        """Run to a section; entries ``separate`` of the context are to be those of the point again, set back."""
        horizon, wanted, shift = self.horizon, point.context[list(separate)], self._shift[list(separate)]
        while True:
            raw = self.setting.run(point.x, point.context, point.states, horizon)
            others: dict[tuple[float, ...], None] = {}
            for row, time in self._crossings(section, raw):
                found = self.setting.context(raw.held[row])[list(separate)] + shift
                if not np.array_equal(found, wanted):
                    others[tuple(found.tolist())] = None
                elif isinstance(section, EventSection):
                    return raw, row, time
                else:
                    raw = self._polished(section, point, time)
                    return raw, len(raw.t) - 1, float(raw.t[-1])
            if raw.t[-1] < horizon or raw.outcome.failed:
                raise RunError(
                    f"the motion does not return to '{section.text}': it ends at t = {raw.t[-1]:.6g} s"
                    f" ({raw.outcome.name})\n  remedy: start nearer to the cycle, with initial= or guess="
                )
            if horizon >= self.longest:
                raise RunError(self._never(section, wanted, list(others)))
            horizon = min(2.0 * horizon, self.longest)

    def _crossings(self, section: Section, raw: RunArrays) -> Iterator[tuple[int, float]]:
        """Yield the crossings of a section in a run: a row with the memory there, and the time, s."""
        if isinstance(section, EventSection):
            yield from ((row, float(raw.t[row])) for row in section.rows(raw))
        else:
            yield from section.times(self.setting, raw)

    def _never(self, section: Section, wanted: Array, others: list[tuple[float, ...]]) -> str:
        """Return the reason for no return within the longest time."""
        if not others:
            return (
                f"the motion does not return to '{section.text}' within {self.longest:g} s\n  remedy: start"
                " elsewhere (initial=), look at a run of the model, or wait longer (max_return_time=)"
            )
        layout = self.system.layout
        names = [layout.c[k] for k in self.separate]
        met = [
            f"{name} was {start:g} and became {', '.join(f'{other[i]:g}' for other in others[:MOST_SHOWN])}"
            for i, (name, start) in enumerate(zip(names, wanted, strict=True))
            if any(other[i] != start for other in others)
        ]
        return (
            f"the motion does not return to '{section.text}' with the memory that it had there, within"
            f" {self.longest:g} s: {'; '.join(met)}\n  remedy: memory on which the motion does not depend goes under"
            " advancing=['NAME'], with its growth where the mechanism repeats itself, advancing={'NAME': 1}; or wait"
            " longer (max_return_time=)"
        )

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
