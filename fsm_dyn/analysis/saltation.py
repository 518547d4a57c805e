"""Variations across a whole run: the flow within modes, the saltation matrix at every transition.

A neighbouring motion meets a guard at another time, ``δτ = -(∇g·δx + ∂g/∂p·δp)/ġ``.  Compared at equal times it has
moved with the flow before for so long and misses the flow after, so beside the derivative D of the jump it gains
``(D f⁻ + ∂R/∂t - f⁺) δτ`` (docs/theory.md, "Sensitivities"; Leine and Nijmeijer, *Dynamics and Bifurcations of
Non-Smooth Mechanical Systems*, 2004, chapter 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.jump_maps import JumpMap, jump_map
from fsm_dyn.analysis.variational_equation import propagate
from fsm_dyn.errors import RunError
from fsm_dyn.laws import Event
from fsm_dyn.modes.unconstrained_system import of_one_corner
from fsm_dyn.simulation import event_resolution
from fsm_dyn.simulation.run_arrays import RunArrays

GRAZING = 1e-9  # a guard that falls more slowly than this part of its gradient times the flow meets no surface


@dataclass(frozen=True)
class Crossing:
    """A transition to first order: its jump, the flows on both sides, and when neighbours meet it.

    ``delay_by_state`` (n_x,) and ``delay_by_parameters`` (n_m,) give δτ; both are zero where the instant is fixed.
    """

    jump: JumpMap
    flow_before: Array
    flow_after: Array
    delay_by_state: Array
    delay_by_parameters: Array

    @property
    def saltation(self) -> Array:
        """The saltation matrix, shape (n_x, n_x): variations after at equal times."""
        return self.jump.by_state + np.outer(self._shift - self.flow_after, self.delay_by_state)

    @property
    def section(self) -> Array:
        """Variations of the state just after, each motion at its own instant, shape (n_x, n_x)."""
        return self.jump.by_state + np.outer(self._shift, self.delay_by_state)

    @property
    def _shift(self) -> Array:
        return self.jump.by_state @ self.flow_before + self.jump.by_time

    def carry(self, Y: Array, n_m: int, *, on_section: bool = False) -> Array:
        """Carry variations (n_x, k + n_m), the last n_m those by parameters, across the transition."""
        result: Array = (self.section if on_section else self.saltation) @ Y
        if n_m:
            shift = self._shift - (0.0 if on_section else self.flow_after)
            result[:, -n_m:] += self.jump.by_parameters + np.outer(shift, self.delay_by_parameters)
        return result

    def delay(self, Y: Array, n_m: int) -> Array:
        """Variations of the instant, shape (k + n_m,)."""
        result: Array = self.delay_by_state @ Y
        if n_m:
            result[-n_m:] += self.delay_by_parameters
        return result


def jump_rows(raw: RunArrays) -> dict[int, int]:
    """Return for every row that a transition led to the number of the transition.

    A Zeno sequence of impacts is propagated at its last impact: its transition is recorded later, at the end of the
    sequence, and the row after the jump is that of the impact.
    """
    found = {}
    for number in range(len(raw.transitions)):
        row = int(raw.transitions.row[number])
        if raw.transitions.reason[number] == event_resolution.ZENO:
            source = raw.transitions.source[number]
            earlier = row
            while earlier > 1 and not (
                raw.t[earlier] == raw.t[earlier - 1] and raw.mode[earlier - 1] == source and raw.mode[earlier] != source
            ):
                earlier -= 1
            row = earlier if earlier > 1 else row
        found[row] = number
    return found


def crossing(setting: AnalysisSetup, raw: RunArrays, number: int, row: int) -> Crossing:
    """Return a run's transition ``number``, whose state after stands in ``row``, to first order.

    Raises
    ------
    RunError
        The transition is no differentiable map: the motion grazes the guard, or the impact has no fixed active set.
    """
    found = raw.transitions
    source, target = int(found.source[number]), int(found.target[number])
    t, before = float(raw.t[row]), row - 1
    jump = jump_map(setting, raw, number, before, row)
    old = setting.derivatives(source).ends.evaluate(t, raw.x[before], setting.context(raw.held[before]))
    new = setting.derivatives(target).ends.evaluate(t, raw.x[row], setting.context(raw.held[row]))
    n_x, n_m = raw.x.shape[1], len(setting.names)
    by_state, by_parameters = np.zeros(n_x), np.zeros(n_m)
    if found.reason[number] in (event_resolution.EVENT, event_resolution.ZENO):
        guard = _guard(setting, raw, number)
        slope, gradient = float(old["slopes"][guard]), old["guards_by_state"][guard]
        if not abs(slope) > GRAZING * np.abs(gradient * old["x_dot"]).max(initial=0.0):
            raise RunError(
                f"the motion only grazes '{setting.executable.charts[source].programs.guards[guard].text}' at"
                f" t = {t:.9g} s: neighbouring motions do not follow it"
            )
        by_state = -gradient / slope
        by_parameters = -old["guards_by_parameters"][guard] / slope
    return Crossing(jump, old["x_dot"], new["x_dot"], by_state, by_parameters)


def _guard(setting: AnalysisSetup, raw: RunArrays, number: int) -> int:
    """Return which guard of its mode led to a transition."""
    found = raw.transitions
    guards = setting.executable.charts[int(found.source[number])].programs.guards
    event, subject = int(found.event[number, 0]), int(found.contact[number, 0])
    if event == Event.CLOSES:  # the faces of an outline share the guard of the first
        subject = of_one_corner(setting.executable.automaton.contacts, subject)[0]
    wanted = (event, subject, float(found.direction[number, 0]))
    return next(i for i, g in enumerate(guards) if (int(g.event), g.subject, g.direction) == wanted)


def propagate_variations(
    setting: AnalysisSetup, raw: RunArrays, last: int, Y: Array, *, on_section: bool = False
) -> tuple[Array, Array]:
    """Carry variations from the start of a run to its row ``last``.

    Parameters
    ----------
    Y : ndarray, shape (n_x, k + n_m)
        Variations at the start: k of initial states, then one per parameter of the setting.
    on_section : bool
        Whether the last row is that after a transition and variations are wanted at each motion's own instant of it.

    Returns
    -------
    Y : ndarray, shape (n_x, k + n_m)
    delay : ndarray, shape (k + n_m,)
        Variations of the instant of the last transition on the way, s.
    """
    n_m = len(setting.names)
    jumps = jump_rows(raw)
    delay = np.zeros(Y.shape[1])
    first = 0
    for row in sorted(row for row in jumps if 0 < row <= last):
        Y = propagate(setting, raw, first, row - 1, Y)
        found = crossing(setting, raw, jumps[row], row)
        delay = found.delay(Y, n_m)
        Y = found.carry(Y, n_m, on_section=on_section and row == last)
        first = row
    return propagate(setting, raw, first, last, Y), delay
