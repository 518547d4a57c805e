"""What happens at an event: impacts, the next mode, and drift projection.

First version: frictionless gap contacts one after another, with Newton's restitution, and written
transitions.  The signatures are those the stepper relies on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.compiled import inner
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.tables import Tables

# why ``resolve`` is called
START: Final = 0
EVENT: Final = 1
INPUT_JUMP: Final = 2
ZENO: Final = 3

# entries of ``energy``
ENERGY_BEFORE: Final = 0
ENERGY_AFTER: Final = 1
ENERGY_BETA: Final = 2  # fraction of the restitution impulse kept by the energy remedy, 1: all of it
ENERGY_COUNT: Final = 3

# entries of ``notes``
CHANGED: Final = 0  # 1: something changed (mode, speeds, slip direction, memory), so the transition is recorded
CANDIDATES: Final = 1  # combinations of contact states that were tried
WRITTEN_TRANSITION: Final = 2  # index of the written transition taken, -1: none
INSTANT: Final = 3  # in: transitions made so far in this instant
NOTE_COUNT: Final = 4


def workspace(sizes: NDArray[np.int64]) -> tuple[int, int]:
    """Return how many floats and integers of workspace :func:`resolve` and :func:`project` need."""
    n = int(sizes[tb.N_U] + sizes[tb.N_K])
    n_full = int(sizes[tb.N_Q] + 2 * sizes[tb.N_U] + 1 + 2 * sizes[tb.MAX_GUARDS] + sizes[tb.N_ROWS])
    n_state = int(sizes[tb.N_Q] + sizes[tb.N_U] + sizes[tb.N_MEMORY])
    return int(sizes[tb.N_TERMS]) + n_full + n_state + n * n + 4 * n, n


@inner
def resolve(
    tables: Tables,
    t: float,
    x: NDArray[np.float64],
    c: NDArray[np.float64],
    mode: int,
    reason: int,
    fired: NDArray[np.int64],
    n_fired: int,
    work: NDArray[np.float64],
    iwork: NDArray[np.int64],
    wanted: NDArray[np.int8],
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
    notes: NDArray[np.int64],
) -> tuple[int, int]:
    """Resolve position, velocity and acceleration at one instant and find the next mode.

    Parameters
    ----------
    tables : Tables
        The automaton.
    t : float
        The instant (s).
    x : float64 array, shape (n_q + n_u,)
        State before, all speeds consistent with ``mode``; on return the state after (impacts, written resets).
    c : float64 array, shape (n_c,)
        Context ``[p | w | w.rate | w.rate2 | sigma | memory]``, inputs as they are *after* the instant; on return
        with the slip directions and the memory after.
    mode : int
        Mode before.
    reason : int
        ``START``, ``EVENT``, ``INPUT_JUMP`` or ``ZENO`` (all impacts of the fired guards are plastic).
    fired : int64 array, ``n_fired`` : int
        Numbers (in ``tables.guard_event``) of all guards that reached zero together, the first one leading;
        none unless the reason is ``EVENT`` or ``ZENO``.
    work : float64 array, iwork : int64 array
        Workspace of the lengths given by :func:`workspace`.
    wanted : int8 array, shape (n_contacts,)
        Out, with ``NEED_MODE``: the contact states for which there is no mode yet.
    impulse : float64 array, shape (n_rows,)
        Out: impulse along every row (zero where none), filled by this function.
    energy : float64 array, shape (ENERGY_COUNT,)
        Out: kinetic plus potential energy before and after (J), and the fraction kept by the energy remedy.
    notes : int64 array, shape (NOTE_COUNT,)
        Out: see ``CHANGED`` and its neighbours; ``INSTANT`` is in.

    Returns
    -------
    status : int
        ``GOING``; ``STOPPED`` after a written transition with ``stop`` (state and mode valid);
        ``NEED_MODE`` (``wanted`` filled) or a failure of :mod:`fsm_dyn.simulation.outcomes`.
        Unless it is ``GOING`` or ``STOPPED``, ``x`` and ``c`` are as they were: the call can be repeated.
    next_mode : int
        The mode after.
    """
    sizes = tables.sizes
    n_q, n_u, n_rows = sizes[tb.N_Q], sizes[tb.N_U], sizes[tb.N_ROWS]
    n = n_u + sizes[tb.N_K]
    n_contacts = sizes[tb.N_CONTACTS]
    terms = work[: sizes[tb.N_TERMS]]
    rest = work[sizes[tb.N_TERMS] :]
    for r in range(n_rows):
        impulse[r] = 0.0
    notes[CHANGED] = 0
    notes[CANDIDATES] = 1
    notes[WRITTEN_TRANSITION] = -1
    energy[ENERGY_BETA] = 1.0
    call_kernel(tables.terms[0], t, x, c, terms)
    at_mass = n_q + n_q * n
    at_rows = at_mass + n * n + n
    at_b = at_rows + n_rows * n
    at_residual = at_b + 2 * n_rows
    at_restitution = at_residual + n_rows + 2 * n_contacts
    at_energy = at_restitution + 2 * n_contacts
    energy[ENERGY_BEFORE] = terms[at_energy] + terms[at_energy + 1]
    energy[ENERGY_AFTER] = energy[ENERGY_BEFORE]
    next_mode = mode
    status = outcomes.GOING
    for k in range(n_contacts):
        wanted[k] = tables.mode_states[mode, k]
    for i in range(n_fired):
        guard = fired[i]
        k = tables.guard_contact[guard]
        if tables.guard_event[guard] == tb.WRITTEN:
            row = tables.transitions[k]
            notes[WRITTEN_TRANSITION] = k
            notes[CHANGED] = 1
            if row[tb.TRANSITION_RESET] != 0:
                after = rest
                call_kernel(row[tb.TRANSITION_RESET], t, x, c, after)
                for j in range(n_q + n_u):
                    x[j] = after[j]
                for j in range(sizes[tb.N_MEMORY]):
                    c[c.shape[0] - sizes[tb.N_MEMORY] + j] = after[n_q + n_u + j]
            if row[tb.TRANSITION_TARGET] >= 0:
                next_mode = row[tb.TRANSITION_TARGET]
            if row[tb.TRANSITION_STOP] == 1:
                status = outcomes.STOPPED
        elif tables.guard_event[guard] == tb.OPENS:
            wanted[k] = tb.FREE
            notes[CHANGED] = 1
        elif tables.guard_event[guard] == tb.CLOSES:
            notes[CHANGED] = 1
    if notes[WRITTEN_TRANSITION] >= 0:
        call_kernel(tables.terms[0], t, x, c, terms)
        energy[ENERGY_AFTER] = terms[at_energy] + terms[at_energy + 1]
        return status, next_mode
    for k in range(n_contacts):
        r = tables.contact_rows[k, 0]
        if wanted[k] == tb.HELD or r < 0 or abs(terms[at_residual + r]) > tables.tolerances[tol.GAP]:
            continue
        row = terms[at_rows + r * n : at_rows + r * n + n]
        column = rest[:n]
        _solve(terms[at_mass : at_mass + n * n], row, rest[n : n + n * n], column)
        speed = terms[at_b + r]
        inertia = 0.0
        for j in range(n):
            inertia += row[j] * column[j]
        for j in range(n_u):
            speed += row[j] * x[n_q + j]
        if speed > tables.tolerances[tol.SPEED]:
            continue
        restitution = terms[at_restitution + k]
        if reason == ZENO or speed > -tables.tolerances[tol.SPEED]:
            restitution = 0.0
        impulse[r] = -(1.0 + restitution) * speed / inertia
        for j in range(n_u):
            x[n_q + j] += column[j] * impulse[r]
        if restitution == 0.0:
            wanted[k] = tb.HELD
            notes[CHANGED] = 1
    for m in range(sizes[tb.N_MODES]):
        same = True
        for k in range(n_contacts):
            same = same and tables.mode_states[m, k] == wanted[k]
        if same and n_contacts > 0:
            next_mode = m
            break
    if next_mode != mode:
        notes[CHANGED] = 1
    call_kernel(tables.terms[0], t, x, c, terms)
    energy[ENERGY_AFTER] = terms[at_energy] + terms[at_energy + 1]
    return status, next_mode


@inner
def _solve(
    mass: NDArray[np.float64], right: NDArray[np.float64], scratch: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Solve ``mass @ out = right`` for a symmetric positive definite matrix given row by row."""
    n = right.shape[0]
    for i in range(n * n):
        scratch[i] = mass[i]
    for i in range(n):
        out[i] = right[i]
    for i in range(n):
        for j in range(i + 1, n):
            factor = scratch[j * n + i] / scratch[i * n + i]
            for k in range(i, n):
                scratch[j * n + k] -= factor * scratch[i * n + k]
            out[j] -= factor * out[i]
    for back in range(n):
        i = n - 1 - back
        for k in range(i + 1, n):
            out[i] -= scratch[i * n + k] * out[k]
        out[i] /= scratch[i * n + i]


@inner
def project(
    tables: Tables,
    t: float,
    x: NDArray[np.float64],
    c: NDArray[np.float64],
    mode: int,
    work: NDArray[np.float64],
    iwork: NDArray[np.int64],
    drift: NDArray[np.float64],
) -> int:
    """Bring the configuration back onto the rows of its mode when their residual exceeds the tolerance.

    Called after each accepted step in modes with the flag ``PROJECTS``, before guards are evaluated.

    Parameters
    ----------
    tables, t, x, c, mode, work, iwork
        As for :func:`resolve`; ``x`` in and out (coordinates, and speeds where they must follow).
    drift : float64 array, shape (2,)
        In and out: energy put in by projections so far (J), and the largest residual met (m).

    Returns
    -------
    int
        0: untouched; 1: moved (the derivative at hand is no longer valid); ``PROJECTION_FAILED``.
    """
    return 0
