"""Derivatives of reset maps: impacts and user-defined resets, with the active set fixed.

An impact is solved again as the linear system that the resolution ended with, the rows and their roles (held,
rebounding, slipping) read off the recorded impulses and speeds, and differentiated exactly (docs/theory.md,
"Sensitivities").  A map found so is used only if it gives the recorded speeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from fsm_dyn.analysis.analysis_setup import AnalysisSetup
from fsm_dyn.analysis.jacobians import Array, jacobian, time_derivative
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.errors import RunError
from fsm_dyn.laws import FREE
from fsm_dyn.programs import Layout, Program, support
from fsm_dyn.runtime.abi import ContactState, Reason
from fsm_dyn.simulation.run_arrays import RunArrays

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

    after: Array
    memory: Array
    by_state: Array
    by_time: Array

    def then(self, other: JumpMap) -> JumpMap:
        """Return this map followed by another, taken where this one ends."""
        return JumpMap(
            other.after, other.memory, other.by_state @ self.by_state, other.by_state @ self.by_time + other.by_time
        )


def jump_map(setting: AnalysisSetup, raw: RunArrays, number: int, before: int, after: int) -> JumpMap:
    """Return the map of a run's transition ``number`` between the rows ``before`` and ``after``.

    Raises
    ------
    RunError
        The impact follows a law that keeps no fixed linear system (an impact whose energy was limited, or a
        sequence of impacts in one instant).
    """
    automaton = setting.executable.automaton
    x, x_after = raw.x[before], raw.x[after]
    t = float(raw.t[after])
    context = setting.context(raw.held[after])
    place = automaton.terms.layout.memory_slice
    memory, memory_after = setting.context(raw.held[before])[place], context[place].copy()
    written = int(raw.transitions.written[number])
    reset = automaton.resets[written] if written >= 0 else None
    # a mode may begin at rest with new rows: only what jumps counts
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
    """Say by which law an impact has no fixed linear system, and what to do."""
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
    return "\n  remedy: let the motion pass this instant with other speeds, so that fewer contacts strike at once"


def _ways(resets: bool, strikes: bool) -> tuple[tuple[str, ...], ...]:
    """Return in which order the reset and the impact may have come: whichever gives what was recorded is right."""
    if resets and strikes:
        return ("impact", "reset"), ("reset", "impact")
    return (("reset",),) if resets else (("impact",),) if strikes else ((),)


def _reset_map(setting: AnalysisSetup, reset: Program, written: int, t: float, x: Array, context: Array) -> JumpMap:
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
    setting: AnalysisSetup, raw: RunArrays, number: int, t: float, x: Array, x_after: Array, context: Array
) -> JumpMap | None:
    """The impact with the rows that took impulses, from ``x``; None if its rows are inconsistent."""
    automaton = setting.executable.automaton
    layout = automaton.terms.layout
    n_u = len(layout.u)
    rows = _struck_rows(setting, raw, number, t, x, x_after, context)
    program = setting.simulator.remember(
        ("impact derivatives", rows, setting.constants), lambda: impact_program(automaton, rows, setting.constants)
    )

    def terms(unknown: Array) -> dict[str, Array]:
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
    """Whether a contact that strikes without rebound is open after, so that one of a little restitution rebounds.

    Raises
    ------
    RunError
        It stays closed without a force, and its restitution varies: a little of it would open the contact.
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
    setting: AnalysisSetup, raw: RunArrays, number: int, t: float, x: Array, x_after: Array, context: Array
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
        # one that rested before, or came with no speed to speak of, is merely held
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

    ``residual`` (n_u + n_rows,) is zero where ``M (u⁺ - u⁻) = Aᵀ Λ`` and the rows do what their roles say;
    ``matrix`` is its derivative by the unknowns, ``by_state`` that by states and constants, ``by_time`` by the time.
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
