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
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.modes.unconstrained_system import of_one_corner
from fsm_dyn.runtime.abi import Reason
from fsm_dyn.simulation.run_arrays import RunArrays

GRAZING = 1e-9  # a guard that falls more slowly than this part of its gradient times the flow meets no surface
PASSED = 1e-9  # of its terms, by which a guard is below zero that a jump has passed
TOGETHER = 1e-7  # of their size, by which delays of guards may differ that neighbours meet together


@dataclass(frozen=True)
class Crossing:
    """A transition to first order: its jump, the flows on both sides, and when neighbours meet it.

    Flows and ``delay_by_state``, which gives δτ, have the shape (n_z,): the states, then memory and parameters, which
    no flow changes.  The delay is zero where the instant is fixed.  A transition that ``follows`` was made due by the
    one before it in the same instant, as it is for neighbours: its delay is that of the one before.
    """

    jump: JumpMap
    flow_before: Array
    flow_after: Array
    delay_by_state: Array
    follows: bool = False

    @property
    def section(self) -> Array:
        """Variations just after, each motion at its own instant, shape (n_z, n_z)."""
        return self.after(np.eye(len(self.delay_by_state)), self.delay_by_state, at_own_instants=True)

    def after(self, Y: Array, delay: Array, *, at_own_instants: bool = False) -> Array:
        """Return variations after, of those before ``Y`` (n_z, k) that meet it later by ``delay`` (k,).

        They are those at equal times, or of each motion just after its own instant.
        """
        shift = self.jump.by_state @ self.flow_before + self.jump.by_time
        shift = shift if at_own_instants else shift - self.flow_after
        return self.jump.by_state @ Y + np.outer(shift, delay)


def jump_rows(raw: RunArrays) -> dict[int, int]:
    """Return for every row that a transition led to the number of the transition.

    A Zeno sequence of impacts is propagated at its last impact: its transition is recorded later, at the end of the
    sequence, and the row after the jump is that of the impact.
    """
    found = {}
    for number in range(len(raw.transitions)):
        row = int(raw.transitions.row[number])
        if raw.transitions.reason[number] == Reason.ZENO:
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
        The transition is no differentiable map: the motion grazes the guard, guards fire together of which neighbouring
        motions meet one before the other, or the impact has no fixed active set.
    """
    found = raw.transitions
    source, target = int(found.source[number]), int(found.target[number])
    t, before = float(raw.t[row]), row - 1
    jump = jump_map(setting, raw, number, before, row)
    old = setting.derivatives(source).ends.evaluate(t, raw.x[before], setting.context(raw.held[before]))
    new = setting.derivatives(target).ends.evaluate(t, raw.x[row], setting.context(raw.held[row]))
    delay, follows = np.zeros(setting.variations), False
    if found.reason[number] in (Reason.EVENT, Reason.ZENO):
        guards = _guards(setting, raw, number)
        if found.reason[number] == Reason.ZENO:
            guards = guards[:1]  # the impacts of all contacts come to one end
        met = [guard for guard in guards if not _was_passed(raw, guard, old, before)]
        # a jump that was no transition, of an input or by the time, has its instant for all neighbours
        follows = not met and number > 0 and raw.transitions.row[number - 1] == before
        delays = [_delay(setting, source, guard, old, t) for guard in met]
        delay = delays[0] if delays else delay
        ways = admissible_variations(setting, source, t, raw.x[before], setting.context(raw.held[before]))
        for other in delays[1:]:
            sizes = np.abs(other * ways.T).sum(axis=1)
            if (np.abs(ways.T @ (other - delay)) > TOGETHER * (sizes + np.abs(delay * ways.T).sum(axis=1))).any():
                raise RunError(_fired_together(setting, raw, number, t))
    none = np.zeros(len(setting.constants))
    return Crossing(jump, np.append(old["x_dot"], none), np.append(new["x_dot"], none), delay, follows)


def _was_passed(raw: RunArrays, guard: int, old: dict[str, Array], before: int) -> bool:
    """Whether a jump in this instant has taken the motion beyond a guard, and not the flow."""
    gradient, slope = old["guards_by_state"][guard], float(old["slopes"][guard])
    terms = np.abs(gradient * raw.x[before]).sum() + abs(slope) * (raw.t[-1] - raw.t[0])
    return float(old["guards"][guard]) < -PASSED * terms or not (gradient.any() or slope)


def _delay(setting: AnalysisSetup, source: int, guard: int, old: dict[str, Array], t: float) -> Array:
    """Return by how much later neighbouring motions meet a guard, as a linear function, shape (n_z,)."""
    slope = float(old["slopes"][guard])
    gradient = old["guards_by_state"][guard]
    if not abs(slope) > GRAZING * np.abs(gradient * old["x_dot"]).max(initial=0.0):
        raise RunError(
            f"the motion only grazes '{setting.executable.charts[source].programs.guards[guard].text}' at"
            f" t = {t:.9g} s: neighbouring motions do not follow it"
        )
    delay: Array = -np.append(gradient, old["guards_by_parameters"][guard]) / slope
    return delay


def _guards(setting: AnalysisSetup, raw: RunArrays, number: int) -> list[int]:
    """Return which guards of its mode led to a transition, each once."""
    found, contacts = raw.transitions, setting.executable.automaton.contacts
    guards = setting.executable.charts[int(found.source[number])].programs.guards
    keys = [(int(guard.event), guard.subject, guard.direction) for guard in guards]
    numbers = []
    for k in range(int(found.fired[number])):
        event, subject = int(found.event[number, k]), int(found.contact[number, k])
        if event == Event.CLOSES:  # the faces of an outline share the guard of the first
            subject = of_one_corner(contacts, subject)[0]
        numbers.append(keys.index((event, subject, float(found.direction[number, k]))))
    return list(dict.fromkeys(numbers))


def _fired_together(setting: AnalysisSetup, raw: RunArrays, number: int, t: float) -> str:
    guards = setting.executable.charts[int(raw.transitions.source[number])].programs.guards
    names = [guards[guard].text for guard in _guards(setting, raw, number)]
    return (
        f"the transition at t = {t:.9g} s cannot be differentiated: {' and '.join(names)} fire together, and"
        " neighbouring motions meet one before the other\n  remedy: let the motion pass this instant with other values"
        " (initial=, parameters=), so that they come one after the other"
    )


def admissible_variations(setting: AnalysisSetup, number: int, t: float, x: Array, context: Array) -> Array:
    """Return ways in which states and memory may vary within a mode, shape (n_z, n_z); parameters do not.

    Parameters
    ----------
    number : int
        Of the mode.
    t : float
        s
    x : ndarray, shape (n_x,)
    context : ndarray, shape (n_c,)
    """
    executable = setting.executable
    system, n_q = executable.automaton.system, len(executable.automaton.terms.layout.q)
    states = tuple(int(code) for code in executable.tables.mode_states[number])
    rows = [r for r in ActiveSet.of(system, states).rows if system.rows[r].positional]
    slopes = system.configuration.evaluate(t, x, context)["jacobian"][rows]
    for first in system.quaternions:
        norm = np.zeros((1, n_q))
        norm[0, first : first + 4] = x[first : first + 4]
        slopes = np.vstack([slopes, norm])
    ends = setting.derivatives(number).ends.evaluate(t, x, context)
    ways = np.eye(setting.variations)
    ways[len(x) + len(setting.kept) :] = 0.0
    ways[:n_q, :n_q] = np.eye(n_q) - np.linalg.pinv(slopes, rcond=1e-10) @ slopes
    ways[n_q : len(x)] = np.hstack([ends["u_by_state"], ends["u_by_parameters"]]) @ ways
    return ways


def propagate_variations(
    setting: AnalysisSetup, raw: RunArrays, last: int, Y: Array, *, on_section: bool = False
) -> Array:
    """Carry variations from the start of a run to its row ``last``.

    Parameters
    ----------
    Y : ndarray, shape (n_z, k)
        Variations at the start: of the state, the memory and the parameters of the setting.
    on_section : bool
        Whether the last row is that after a transition and variations are wanted at each motion's own instant of it.

    Returns
    -------
    ndarray, shape (n_z, k)
    """
    jumps = jump_rows(raw)
    first, delay = 0, None
    for row in sorted(row for row in jumps if 0 < row <= last):
        Y = propagate(setting, raw, first, row - 1, Y)
        found = crossing(setting, raw, jumps[row], row)
        if not found.follows:
            delay = found.delay_by_state @ Y
        elif delay is None:
            raise RunError(_follows_impacts(setting, raw, jumps[row], row))
        Y = found.after(Y, delay, at_own_instants=on_section and row == last)
        delay = delay if raw.transitions.reason[jumps[row]] != Reason.ZENO else None
        first = row
    return propagate(setting, raw, first, last, Y)


def saltation_matrices(setting: AnalysisSetup, raw: RunArrays) -> list[Array]:
    """Return the saltation matrices of a run's transitions, each (n_z, n_z): one for those that follow one another."""
    matrices: list[Array] = []
    delay = np.zeros(setting.variations)
    for row, number in sorted(jump_rows(raw).items()):
        if row > 0:
            found = crossing(setting, raw, number, row)
            Y = matrices.pop() if found.follows else np.eye(setting.variations)
            delay = delay if found.follows else found.delay_by_state
            matrices.append(found.after(Y, delay))
    return matrices


def _follows_impacts(setting: AnalysisSetup, raw: RunArrays, number: int, row: int) -> str:
    cause = setting.executable.automaton.user_transitions[int(raw.transitions.written[number])].name
    return (
        f"the transition '{cause}' at t = {raw.t[row]:.9g} s cannot be differentiated: it follows in the instant in"
        " which infinitely many impacts end\n  remedy: let it wait for another event, or take restitution 0 where the"
        " motion comes to rest"
    )
