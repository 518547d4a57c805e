"""Sensitivities of a run across all its transitions: flow, saltation, reset maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.linearisation import jacobian, time_derivative
from fsm_dyn.analysis.variations import (
    AnalysisSetup,
    FlowSwitch,
    delay_at_choice,
    flow_switches,
    parameter_derivatives,
    start_derivatives,
)
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, RunError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.derive.unconstrained_system import of_one_corner
from fsm_dyn.language.contacts import SurfaceContact
from fsm_dyn.language.laws import FREE
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import support
from fsm_dyn.run.extremes import quartic
from fsm_dyn.run.input_signals import InputValue, schedule_parameters
from fsm_dyn.run.loop_state import RunArrays
from fsm_dyn.run.time_switches import choices
from fsm_dyn.runtime.abi import ContactState, Event, Reason

# -- The variational equation along a run, within the modes --------------------------------------------------
#
# ``Y' = J(t) Y + B(t)`` with the exact Jacobian of the mode, evaluated on the run's own dense output, is solved by
# Gauss' method of three stages (order six) on halves of the run's steps; being linear, it needs no iteration
# (docs/theory.md, "Sensitivities"). Hairer, Lubich, Wanner, *Geometric Numerical Integration*, II.1.3.

HALVES: Final = 2
CHUNK: Final = 1000  # steps evaluated at once
_ROOT: Final = np.sqrt(15.0)
NODES: Final = np.array([0.5 - _ROOT / 10.0, 0.5, 0.5 + _ROOT / 10.0])
WEIGHTS: Final = np.array([5.0, 8.0, 5.0]) / 18.0
STAGES: Final = np.array(
    [
        [5.0 / 36.0, 2.0 / 9.0 - _ROOT / 15.0, 5.0 / 36.0 - _ROOT / 30.0],
        [5.0 / 36.0 + _ROOT / 24.0, 2.0 / 9.0, 5.0 / 36.0 - _ROOT / 24.0],
        [5.0 / 36.0 + _ROOT / 30.0, 2.0 / 9.0 + _ROOT / 15.0, 5.0 / 36.0],
    ]
)


def propagate(setting: AnalysisSetup, raw: RunArrays, first: int, last: int, Y: Floats) -> Floats:
    """Carry variations from row ``first`` of a run to row ``last``, without a change of mode between them.

    Steps are cut at switches of choices of the state, and the variations jump with the flow. ``last``: row of the
    returned variations; ``Y``, shape (n_z, k): variations at the first row: of the state, the memory and the parameters
    of the setting. The result has the shape (n_z, k). Raises RunError: a switch of the flow cannot be differentiated.
    """
    n, Y = raw.x.shape[1], Y.copy()
    switches = flow_switches(setting, raw, first, last) if last > first else []
    for begin in range(first, last, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, last))
        rows = rows[raw.t[rows + 1] > raw.t[rows]]
        own = [item for item in switches if begin <= item.row < begin + CHUNK]
        parts = _parts(rows, own)
        if len(rows):
            jumps = {(item.row, item.fraction): item for item in own}
            for row, end, R, r in zip(parts.row, parts.end, *_propagators(setting, raw, parts), strict=True):
                Y[:n] = R @ Y[:n] + r @ Y[n:]
                if (int(row), float(end)) in jumps:
                    item = jumps[int(row), float(end)]
                    Y[:n] += np.outer(item.jump, item.delay @ Y)
    return Y


class _StepParts(NamedTuple):
    """Parts of steps: the rows at the begin of the steps, and the fractions at begin and end of each part."""

    row: npt.NDArray[np.signedinteger[Any]]
    begin: Floats
    end: Floats


def _parts(rows: npt.NDArray[np.signedinteger[Any]], switches: Sequence[FlowSwitch]) -> _StepParts:
    """Return the halves of steps, cut at switches of the flow."""
    row = np.concatenate([np.repeat(rows, HALVES), np.array([item.row for item in switches], dtype=rows.dtype)])
    end = np.concatenate([np.tile((np.arange(HALVES) + 1.0) / HALVES, len(rows)), [item.fraction for item in switches]])
    order = np.lexsort([end, row])
    row, end = row[order], end[order]
    begin = np.where(np.append(True, row[1:] != row[:-1]), 0.0, np.append(0.0, end[:-1])) if len(row) else end
    return _StepParts(row, begin, end)


def _propagators(setting: AnalysisSetup, raw: RunArrays, parts: _StepParts) -> tuple[Floats, Floats]:
    """Propagators (m, n_x, n_x) and forcings (m, n_x, n_m) of parts of steps."""
    n, n_m, m = raw.x.shape[1], len(setting.constants), len(parts.row)
    index, length = np.repeat(parts.row, len(NODES)), parts.end - parts.begin
    theta = (parts.begin[:, None] + length[:, None] * NODES).ravel()
    step = raw.t[parts.row + 1] - raw.t[parts.row]
    h = np.repeat(step, len(NODES))
    times = raw.t[index] + theta * h
    x = quartic(theta, h, raw.x[index], raw.x_dot[index], raw.x_mid[index + 1], raw.x[index + 1], raw.x_dot[index + 1])
    context = setting.context(raw.held[index])
    w = setting.drive.names
    if w:
        n_p = len(setting.vector)
        context[:, n_p : n_p + 3 * len(w)] = setting.drive(times, context[0])
    J, B = np.empty((len(index), n, n)), np.empty((len(index), n, n_m))
    # the row at the end of a step has the mode of the step, in its chart
    for number in np.unique(raw.mode[index + 1]):
        here = raw.mode[index + 1] == number
        values = setting.derivatives(int(number)).flow.evaluate(times[here], x[here], context[here])
        J[here], B[here] = values["by_state"], values["by_parameters"]
    part = step * length
    stages = J.reshape(m, 3, n, 1, n)
    system = -part[:, None, None, None, None] * STAGES[None, :, None, :, None] * stages
    matrix = system.reshape(m, 3 * n, 3 * n) + np.eye(3 * n)
    right = np.concatenate([J, B], axis=2).reshape(m, 3 * n, n + n_m)
    slopes = np.linalg.solve(matrix, right).reshape(m, 3, n, n + n_m)
    total = part[:, None, None] * np.einsum("s,msij->mij", WEIGHTS, slopes)
    return total[:, :, :n] + np.eye(n), total[:, :, n:]


# -- Derivatives of reset maps: impacts and user-defined resets, with the active set fixed -------------------
#
# An impact is solved again as the final linear system of the resolution, with the rows and their roles (held,
# rebounding, slipping) from the recorded impulses and speeds, and differentiated exactly (docs/theory.md,
# "Sensitivities"). The map is used only if it gives the recorded speeds.

Role: TypeAlias = Literal["hold", "rebound", "slip"]
Rows: TypeAlias = tuple[tuple[int, Role, int], ...]  # row, role, sign of the slip

SLOW: Final = 1e-8  # a speed after an impact below this (relative to the largest) is zero
ROUNDING: Final = 1e-12  # an impulse below this part of the largest is none
AGREES: Final = 1e-6


@dataclass(frozen=True)
class JumpMap:
    """A state after as a function of the state before, to first order.

    ``after`` (n_x,) and the memory ``memory`` (n_memory,) after; the derivatives of state, memory and parameters,
    ``by_state`` (n_z, n_z) and ``by_time`` (n_z,).
    """

    after: Floats
    memory: Floats
    by_state: Floats
    by_time: Floats

    def then(self, other: JumpMap) -> JumpMap:
        """Return this map followed by another, taken at the end of this one."""
        return JumpMap(
            other.after, other.memory, other.by_state @ self.by_state, other.by_state @ self.by_time + other.by_time
        )


def jump_map(setting: AnalysisSetup, raw: RunArrays, number: int, before: int, after: int) -> JumpMap:
    """Return the map of a run's transition ``number`` between the rows ``before`` and ``after``.

    Raises RunError: the impact has no fixed linear system (an impact with limited energy, or a sequence of impacts in
    one instant).
    """
    automaton = setting.executable.automaton
    x, x_after = raw.x[before], raw.x[after]
    t = float(raw.t[after])
    context = setting.context(raw.held[after])
    place = automaton.terms.layout.memory_slice
    memory, memory_after = setting.context(raw.held[before])[place], context[place].copy()
    written = int(raw.transitions.written[number])
    reset = automaton.resets[written] if written >= 0 else None
    # a mode may begin at rest with new rows: only jumps count
    size = 1.0 + np.abs(x_after).max()
    for stages in _ways(reset is not None, bool(np.any(raw.transitions.impulse[number] != 0.0))):
        n_z = setting.variations
        found: JumpMap | None = JumpMap(x, memory, np.eye(n_z), np.zeros(n_z))
        for stage in stages:
            if found is None:
                break
            context[place] = found.memory
            if stage == "reset" and reset is not None:
                step: JumpMap | None = _reset_map(setting, reset, written, t, found.after, context)
            else:
                step = _impact_map(setting, raw, number, t, found.after, x_after, context)
            found = None if step is None else found.then(step)
        if found is None or not np.allclose(found.memory, memory_after, rtol=AGREES, atol=AGREES):
            continue
        if np.abs(found.after - x_after).max() <= AGREES * size:
            return found
    raise RunError(
        f"the transition at t = {t:.9g} s cannot be differentiated: its impact is no linear map of the speeds before"
        + _why_not(automaton, raw, number)
    )


def _why_not(automaton: Automaton, raw: RunArrays, number: int) -> str:
    """Return the reason for an impact without a fixed linear system, and a remedy."""
    kept = float(raw.transitions.beta[number])
    if kept < 1.0:
        return (
            f"; energy-consistent: restitution reduced to {kept:.6g} of the impact law"
            "\n  remedy: lower restitution or friction"
        )
    struck = raw.transitions.impulse[number] != 0.0
    if automaton.mechanism.impacts == "sequential" and struck.sum() > 1:
        return "; its impacts were sequential\n  remedy: impacts: simultaneous"
    if any(contact.poisson and struck[contact.normal_row] for contact in automaton.contacts):
        return "; restitution is Poisson's, of impulses\n  remedy: restitution_law: newton"
    if any(
        isinstance(spec := automaton.mechanism.contacts[contact.name], SurfaceContact)
        and spec.tangential_restitution is not None
        and struck[contact.normal_row]
        for contact in automaton.contacts
    ):
        return "; restitution acts along the surface too\n  remedy: remove tangential_restitution"
    return "\n  remedy: let the motion pass this instant with other speeds, so that fewer contacts strike at once"


def _ways(resets: bool, strikes: bool) -> tuple[tuple[str, ...], ...]:
    """Return the possible orders of reset and impact; the one with the recorded result is right."""
    if resets and strikes:
        return ("impact", "reset"), ("reset", "impact")
    return (("reset",),) if resets else (("impact",),) if strikes else ((),)


def _reset_map(setting: AnalysisSetup, reset: Program, written: int, t: float, x: Floats, context: Floats) -> JumpMap:
    layout = reset.layout
    n_x, memory = layout.n_x, [layout.memory.index(name) for name in setting.kept]

    def make() -> Program:
        graph, symbols, nodes = reset.graph()
        varied = nodes["after"][[*range(n_x), *(n_x + k for k in memory)]]
        return Program.from_nodes(
            layout,
            {
                "after": nodes["after"],
                "by_state": jacobian(varied, [symbols[name] for name in (*layout.x, *setting.constants)]),
                "by_time": time_derivative(list(varied), layout, symbols, graph),
            },
        )

    program = setting.simulator.remember(("reset derivatives", written, setting.constants), make)
    found = program.evaluate(t, x, context)
    by_state, by_time = np.eye(setting.variations), np.zeros(setting.variations)
    by_state[: n_x + len(memory)], by_time[: n_x + len(memory)] = found["by_state"], found["by_time"]
    return JumpMap(found["after"][:n_x], found["after"][n_x:], by_state, by_time)


def _impact_map(
    setting: AnalysisSetup, raw: RunArrays, number: int, t: float, x: Floats, x_after: Floats, context: Floats
) -> JumpMap | None:
    """The impact with the rows of recorded impulses, from ``x``; None if its rows are inconsistent."""
    automaton = setting.executable.automaton
    layout = automaton.terms.layout
    n_u = len(layout.u)
    rows = _struck_rows(setting, raw, number, t, x, x_after, context)
    program = setting.simulator.remember(
        ("impact derivatives", rows, setting.constants), lambda: impact_program(automaton, rows, setting.constants)
    )

    def terms(unknown: Floats) -> dict[str, Floats]:
        n_p = len(layout.p)
        return program.evaluate(t, x, np.concatenate([context[:n_p], unknown, context[n_p:]]))

    zero = terms(np.zeros(n_u + len(rows)))
    scale = np.maximum(np.abs(zero["matrix"]).max(axis=1), 1e-300)[:, None]  # redundant rows: the smallest impulses
    inverse = np.linalg.pinv(zero["matrix"] / scale, rcond=1e-12) / scale.T
    unknown = -inverse @ zero["residual"]
    values = terms(unknown)
    if not np.abs(values["residual"] / scale[:, 0]).max() <= AGREES * (1.0 + np.abs(unknown).max()):
        return None
    n_q, speeds = len(layout.q), layout.u_slice
    by_state, by_time = np.eye(setting.variations), np.zeros(setting.variations)
    by_state[speeds] = -(inverse @ values["by_state"])[:n_u]
    by_time[speeds] = -(inverse @ values["by_time"])[:n_u]
    return JumpMap(np.concatenate([x[:n_q], unknown[:n_u]]), context[layout.memory_slice], by_state, by_time)


def _opens(setting: AnalysisSetup, raw: RunArrays, number: int, contact: int, t: float) -> bool:
    """Whether a contact is open after an impact without rebound; with a little restitution it rebounds.

    Raises RunError: it stays closed without a force, and its restitution varies: a little of it would open the contact.
    """
    automaton, found = setting.executable.automaton, raw.transitions
    target, row = int(found.target[number]), int(found.row[number])
    if raw.tables.mode_states[target][contact] == FREE:
        return True
    _, symbols, nodes = automaton.terms.graph()
    if {symbols[name] for name in setting.names}.isdisjoint(support([nodes["restitution"][contact]])):
        return False
    full = setting.executable.charts[target].programs.full
    normal = full.evaluate(t, raw.x[row], setting.context(raw.held[row]))["multipliers"][
        automaton.contacts[contact].normal_row
    ]
    if normal > 0.0:
        return False
    raise RunError(
        f"at t = {t:.9g} s '{automaton.contacts[contact].name}' closes without rebound and without a force that would"
        " hold it: with any restitution it opens, so there is no derivative by it\n  remedy: give it a restitution"
    )


def _struck_rows(
    setting: AnalysisSetup, raw: RunArrays, number: int, t: float, x: Floats, x_after: Floats, context: Floats
) -> Rows:
    """Rows with impulses in a transition, and the role of each after it."""
    automaton = setting.executable.automaton
    n_q = len(automaton.terms.layout.q)
    terms = automaton.terms.evaluate(t, x, context)
    A, b = terms["A"][:, : len(x) - n_q], terms["b"]
    before, after = A @ x[n_q:] + b, A @ x_after[n_q:] + b
    impulse = raw.transitions.impulse[number]
    small = SLOW * (1.0 + np.abs(x_after[n_q:]).max())
    plastic = int(raw.transitions.reason[number]) == Reason.ZENO
    states = raw.tables.mode_states[raw.transitions.target[number]]
    rows: list[tuple[int, Role, int]] = []
    for r, row in enumerate(automaton.rows):
        contact = automaton.contacts[row.contact] if row.contact >= 0 else None
        engaged = contact is not None and contact.contact_law.switched and states[row.contact] == ContactState.HELD
        if row.role in ("velocity", "position") or engaged:
            rows.append((r, "hold", 0))
    for k, contact in enumerate(automaton.contacts):
        r = contact.normal_row
        if not contact.contact_law.rigid or impulse[r] <= ROUNDING * np.abs(impulse).max():
            continue
        # a contact at rest before, or with a negligible approach speed, is merely held
        strikes = not plastic and before[r] < -small
        bounces = strikes and (
            after[r] > small if terms["restitution"][k] > 0.0 else _opens(setting, raw, number, k, t)
        )
        rows.append((r, "rebound" if bounces else "hold", 0))
        tangent = contact.tangent_row
        if contact.in_space:
            raise RunError(
                f"at t = {t:.9g} s '{contact.name}' strikes with friction in space: no sensitivity goes through"
                " it yet\n  remedy: ask for motions without such impacts"
            )
        if tangent >= 0:
            slips = not contact.sticks_always and abs(after[tangent]) > small
            rows.append((tangent, "slip" if slips else "hold", int(np.sign(after[tangent])) if slips else 0))
    return tuple(rows)


def impact_program(automaton: Automaton, rows: Rows, constants: tuple[str, ...]) -> Program:
    """Return the program of an impact's equations, with the speeds after and the impulses as arguments after ``p``.

    ``residual`` (n_u + n_rows,) is zero for ``M (u⁺ - u⁻) = Aᵀ Λ`` with the rows in their roles; ``matrix`` is its
    derivative by the unknowns, ``by_state`` by states and constants, ``by_time`` by the time.
    """
    graph, symbols, nodes = automaton.terms.graph()
    layout = automaton.terms.layout
    n_u = len(layout.u)
    names = (*(f"after.{name}" for name in layout.u), *(f"impulse.{r}" for r, _, _ in rows))
    unknown = [graph.symbol(name) for name in names]
    speeds, impulses = unknown[:n_u], dict(zip([r for r, _, _ in rows], unknown[n_u:], strict=True))
    u = [symbols[name] for name in layout.u]
    M, A, b = nodes["M"], nodes["A"], nodes["b"]

    def total(entries: Iterator[Any]) -> Any:
        return sum(entries, start=graph.constant(0.0))

    def speed(r: int, of: list[Any]) -> Any:
        return total(A[r, j] * of[j] for j in range(n_u)) + b[r]

    residual = [
        total(M[i, j] * (speeds[j] - u[j]) for j in range(n_u)) - total(A[r, i] * impulses[r] for r in impulses)
        for i in range(n_u)
    ]
    for r, role, sign in rows:
        k = automaton.rows[r].contact
        if role == "slip":
            normal = impulses[automaton.contacts[k].normal_row]
            residual.append(impulses[r] + float(sign) * nodes["kinetic"][k] * normal)
        elif role == "rebound":
            residual.append(speed(r, speeds) + nodes["restitution"][k] * speed(r, u))
        else:
            residual.append(speed(r, speeds))
    wider = Layout(layout.q, layout.u, (*layout.p, *names), layout.w, layout.contacts, layout.memory)
    return Program.from_nodes(
        wider,
        {
            "residual": residual,
            "matrix": jacobian(residual, unknown),
            "by_state": jacobian(residual, [symbols[name] for name in (*layout.x, *constants)]),
            "by_time": time_derivative(residual, layout, symbols, graph),
        },
    )


# -- Variations across a whole run ---------------------------------------------------------------------------
#
# The flow within modes, the saltation matrix at every transition.
#
# A neighbouring motion meets a guard at another time, ``δτ = -(∇g·δx + ∂g/∂p·δp)/ġ``. Compared at equal times it has
# moved with the flow before for so long and misses the flow after, so next to the derivative D of the jump it gains
# ``(D f⁻ + ∂R/∂t - f⁺) δτ`` (docs/theory.md, "Sensitivities"; Leine and Nijmeijer, *Dynamics and Bifurcations of
# Non-Smooth Mechanical Systems*, 2004, chapter 7).

GRAZING = 1e-9  # rate of a guard relative to its gradient times the flow; a slower one grazes its surface
PASSED = 1e-9  # relative to its terms; a guard farther below zero was passed by a jump
TOGETHER = 1e-7  # relative difference of the delays of guards met together by neighbours


@dataclass(frozen=True)
class Crossing:
    """A transition to first order: its jump, the flows on both sides, and the delay of neighbours.

    Flows and ``delay_by_state`` (for δτ) have the shape (n_z,): the states, then memory and parameters, constant in the
    flow. The delay is zero for a fixed instant. A transition ``follows`` if the previous one in the same instant has
    triggered it, for neighbours too: its delay is the previous one's.
    """

    jump: JumpMap
    flow_before: Floats
    flow_after: Floats
    delay_by_state: Floats
    follows: bool = False

    @property
    def section(self) -> Floats:
        """Variations just after, each motion at its own instant, shape (n_z, n_z)."""
        return self.after(np.eye(len(self.delay_by_state)), self.delay_by_state, at_own_instants=True)

    def after(self, Y: Floats, delay: Floats, *, at_own_instants: bool = False) -> Floats:
        """Return variations after the transition, from ``Y`` (n_z, k) before, with the ``delay`` (k,).

        They are those at equal times, or of each motion just after its own instant.
        """
        shift = self.jump.by_state @ self.flow_before + self.jump.by_time
        shift = shift if at_own_instants else shift - self.flow_after
        return self.jump.by_state @ Y + np.outer(shift, delay)


def jump_rows(raw: RunArrays) -> dict[int, int]:
    """Return the number of the transition by its target row.

    A Zeno sequence of impacts is propagated at its last impact: its transition is recorded later, at the end of the
    sequence, and the row after the jump is the impact's.
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
    """Return a run's transition ``number``, with its state after in ``row``, to first order.

    Raises RunError: the transition is no differentiable map: the motion grazes the guard, guards fire together but one
    after the other in neighbouring motions, or the impact has no fixed active set.
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
        # a jump without a transition, of an input or by the time, has the same instant for all neighbours
        follows = not met and number > 0 and raw.transitions.row[number - 1] == before
        delays = [_delay(setting, source, guard, old, t) for guard in met]
        if not met and not follows and not (before > 0 and raw.t[before - 1] == t):
            held = setting.context(raw.held[before])
            jumps = [delay_at_choice(setting, source, guard, t, raw.x[before], held) for guard in guards]
            delays = [found for found in jumps if found is not None]
        delay = delays[0] if delays else delay
        ways = admissible_variations(setting, source, t, raw.x[before], setting.context(raw.held[before]))
        for other in delays[1:]:
            sizes = np.abs(other * ways.T).sum(axis=1)
            if (np.abs(ways.T @ (other - delay)) > TOGETHER * (sizes + np.abs(delay * ways.T).sum(axis=1))).any():
                raise RunError(_fired_together(setting, raw, number, t))
    none = np.zeros(len(setting.constants))
    return Crossing(jump, np.append(old["x_dot"], none), np.append(new["x_dot"], none), delay, follows)


def _was_passed(raw: RunArrays, guard: int, old: dict[str, Floats], before: int) -> bool:
    """Whether a jump in this instant has taken the motion beyond a guard, and not the flow."""
    gradient, slope = old["guards_by_state"][guard], float(old["slopes"][guard])
    terms = np.abs(gradient * raw.x[before]).sum() + abs(slope) * (raw.t[-1] - raw.t[0])
    return float(old["guards"][guard]) < -PASSED * terms or not (gradient.any() or slope)


def _delay(setting: AnalysisSetup, source: int, guard: int, old: dict[str, Floats], t: float) -> Floats:
    """Return the delay of neighbouring motions at a guard as a linear function, shape (n_z,)."""
    slope = float(old["slopes"][guard])
    gradient = old["guards_by_state"][guard]
    if not abs(slope) > GRAZING * np.abs(gradient * old["x_dot"]).max(initial=0.0):
        raise RunError(
            f"the motion only grazes '{setting.executable.charts[source].programs.guards[guard].text}' at"
            f" t = {t:.9g} s: neighbouring motions do not follow it"
        )
    delay: Floats = -np.append(gradient, old["guards_by_parameters"][guard]) / slope
    return delay


def _guards(setting: AnalysisSetup, raw: RunArrays, number: int) -> list[int]:
    """Return the guards of the mode that caused a transition, each once."""
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


def admissible_variations(setting: AnalysisSetup, number: int, t: float, x: Floats, context: Floats) -> Floats:
    """Return the admissible variations of states and memory within a mode, shape (n_z, n_z); parameters do not vary.

    ``t``: s; ``x``, shape (n_x,); ``context``, shape (n_c,).
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
    setting: AnalysisSetup, raw: RunArrays, last: int, Y: Floats, *, on_section: bool = False
) -> Floats:
    """Carry variations from the start of a run to its row ``last``.

    ``Y``, shape (n_z, k): variations at the start: of the state, the memory and the parameters of the setting;
    ``on_section``: whether the last row follows a transition, with variations at each motion's own instant of it. The
    result has the shape (n_z, k).
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


def saltation_matrices(setting: AnalysisSetup, raw: RunArrays) -> list[Floats]:
    """Return the saltation matrices of a run's transitions, each (n_z, n_z): one for a chain in one instant."""
    matrices: list[Floats] = []
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


# -- Sensitivities of the end of a run to its start and parameters -------------------------------------------


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of the state at the end of a run.

    Attributes
    ----------
    t : float
        End of the run, s.
    x : ndarray, shape (n_x,)
        Coordinates and speeds there.
    names : tuple of str
        Names of coordinates and speeds, in order.
    by_initial : mapping of str to ndarray, shape (n_x,)
        By each requested initial value, as written under ``initial``: the others follow.
    by_parameters : mapping of str to ndarray, shape (n_x,)
        By each requested parameter; the start and dependent parameters follow.
    saltations : tuple of ndarray, shape (n_x, n_x)
        The saltation matrix of every transition, in order of time; one for a chain in one instant.
    """

    t: float
    x: Floats
    names: tuple[str, ...]
    by_initial: Mapping[str, Floats]
    by_parameters: Mapping[str, Floats]
    saltations: tuple[Floats, ...]


def sensitivities(
    graph: ModeGraph,
    until: float,
    *,
    by_initial: Sequence[str] = (),
    by_parameters: Sequence[str] = (),
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    initial: Mapping[str, float | str] | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Sensitivities:
    """Return the derivatives of the state at the end of a run by initial values and parameters.

    The transitions must stay the same ones in the same order; otherwise there is no derivative.  Memory is part of the
    state, the start is differentiated exactly.

    Parameters
    ----------
    graph : ModeGraph
        The compiled model.
    until : float
        End of the run, s.
    by_initial, by_parameters : sequences of str
        Coordinates and speeds of the start, and parameters (``lip[0]`` for an element), as variables of
        differentiation.
    parameters, inputs, initial, rtol, atol
        As for ``fsm_dyn.simulate``.

    Raises
    ------
    InputError
        A name is unknown, or a schedule or an instant of a switch of the model depends on a named parameter.
    RunError
        The run fails, its start has no derivative, or one of its transitions cannot be differentiated.
    """
    layout = graph.automaton.terms.layout
    follow = parameter_directions(graph, parameters or {}, by_parameters)
    moved = tuple(name for name, row in zip(layout.p, follow, strict=True) if np.any(row != 0.0))
    follow = follow[[layout.p.index(name) for name in moved]]
    _refuse_schedules(graph, inputs or {}, moved)
    setting = AnalysisSetup.of(graph, parameters, inputs, rtol, atol, moved)
    for name in by_initial:
        if name not in layout.x:
            raise InputError(f"'{name}' is no coordinate or speed", remedy=did_you_mean(name, layout.x))
    start = setting.start(initial)
    raw = setting.run(start.x, start.context, start.states, until)
    if raw.outcome.failed:
        raise RunError(f"{graph.name}: {raw.outcome} (at t = {raw.t[-1]:.9g} s)")
    begin = start_derivatives(setting, start, initial or {}, tuple(by_initial))
    Y = propagate_variations(setting, raw, len(raw.t) - 1, begin)[: layout.n_x]
    k = len(by_initial)
    P = Y[:, k:] @ follow
    return Sensitivities(
        float(raw.t[-1]),
        raw.x[-1],
        layout.x,
        {name: Y[:, i] for i, name in enumerate(by_initial)},
        {name: P[:, i] for i, name in enumerate(by_parameters)},
        tuple(matrix[: layout.n_x, : layout.n_x] for matrix in saltation_matrices(setting, raw)),
    )


def _refuse_schedules(graph: ModeGraph, inputs: Mapping[str, InputValue], moved: Sequence[str]) -> None:
    """Refuse parameters in inputs, or in instants of switches of the model."""
    automaton, names = graph.automaton, {name.partition("[")[0] for name in moved}
    read = {
        f"the input '{name}'": schedule_parameters(automaton, [inputs.get(name, item.schedule)])
        for name, item in automaton.mechanism.inputs.items()
    }
    jumps = choices(automaton.terms)
    if jumps:
        found = frozenset().union(*(support(choice.jump.graph()[2]["jump"].ravel()) for choice in jumps))
        read["an instant at which the model switches"] = frozenset(symbol.name.partition("[")[0] for symbol in found)
    for what, parameters in read.items():
        for name in sorted(names & parameters):
            raise InputError(
                f"no derivative by '{name}': {what} depends on it",
                remedy="write the parameter as a factor into the load, or the condition as a transition (`when`)",
            )


def parameter_directions(graph: ModeGraph, given: Parameters, names: Sequence[str]) -> Floats:
    """Derivatives of all parameters by the named ones, shape (n_p, n_names): a file's may depend on earlier ones.

    Raises InputError: a name is no parameter.
    """
    mechanism, layout = graph.automaton.mechanism, graph.automaton.terms.layout
    for name in names:
        if name not in layout.p:
            raise InputError(
                f"'{name}' is no parameter of '{graph.name}'",
                allowed=", ".join(layout.p),
                remedy=did_you_mean(name, layout.p),
            )
    return parameter_derivatives(
        mechanism, layout, parameter_vector(parameter_values(mechanism, given)), names, tuple(given)
    )
