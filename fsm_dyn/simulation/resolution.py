"""What happens at an instant of transition: impacts, written changes, the next mode; and drift projection.

The order is that of docs/theory.md, "Resolution": which contacts are closed; an impact if velocities demand one;
written resets; then, on the level of accelerations, the combination of contact states that is consistent.
Everything is worked out from the unconstrained terms, so no mode has to be derived to be considered.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation import tolerances as tol
from fsm_dyn.simulation.arena import OVERFLOWN, Workspace, copied, indices, mark, matrix, release, vector
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.constrained import factor_bilateral
from fsm_dyn.simulation.contact_law import LOG_SIZE, LOG_WIDTH
from fsm_dyn.simulation.contexts import memory_at, sigma_at
from fsm_dyn.simulation.features import follow_slip, forget_leaving, has_corners, rest_on_one
from fsm_dyn.simulation.fired import any_event, mark_closing, read_slack, recall_limits
from fsm_dyn.simulation.impacts import ARREST, any_strikes, bilateral_rows, collide, strike
from fsm_dyn.simulation.kernels import call_kernel
from fsm_dyn.simulation.linear import put
from fsm_dyn.simulation.next_state import ARRESTED, settle_states
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import Terms, open_terms
from fsm_dyn.simulation.touching import find_active
from fsm_dyn.simulation.train_end import end_train

# why ``resolve`` is called
START: Final = 0
EVENT: Final = 1
INPUT_JUMP: Final = 2
ZENO: Final = 3
CONTRADICTION: Final = 4  # rows that repeated each other agree no longer

MOST_CORNERS: Final = 4  # impacts in one instant, each of the pairs of coinciding corners that the last one leaves
AGAIN: Final = 4  # transitions in one instant after which what came to its limit in it is left for good

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
CONSISTENT: Final = 4  # of the combinations tried, how many agreed
CHOSEN_BY: Final = 5  # how the one taken was found: see next_state
TARGET: Final = 6  # mode found, for which a chart has to be chosen first
NOTE_COUNT: Final = 7

LOG_LENGTH: Final = LOG_SIZE * LOG_WIDTH  # room for the first candidates: see contact_law.write_log


def workspace(sizes: NDArray[np.int64], contacts: int) -> tuple[int, int]:
    """Return how many floats and integers of an arena suffice for a transition in which so many contacts meet.

    A projection needs less.  Counted out over all that may stand at the same time: the mechanism's own system and the
    responses of the contacts' ``n`` rows, three scaled copies of the meeting, one part of it and one judgement.
    """
    held, n = sizes[tb.N_ROWS], 3 * contacts
    system = sizes[tb.N_U] + held
    context = sizes[tb.N_P] + 4 * sizes[tb.N_W] + sizes[tb.N_CONTACTS] + sizes[tb.N_MEMORY]
    floats = system * (system + n + 12) + 23 * n * n + 108 * n + 20
    floats += held * (4 * sizes[tb.N_U] + 3 * held + 8) + 2 * system  # the rank of rows is looked at by itself
    floats += 2 * (sizes[tb.N_Q] + sizes[tb.N_U]) + 2 * context + 6 * sizes[tb.N_CONTACTS]
    integers = 3 * system + 2 * held + 8 * sizes[tb.N_CONTACTS] + 100 * contacts + sizes[tb.MAX_GUARDS] + 450
    return int(floats), int(integers)


_workspace = lean(workspace)


@lean
def _has_room(work: Workspace, tables: Tables, closed: NDArray[np.int64]) -> bool:
    """Whether the arena suffices for the contacts that meet now; if not, that is noted."""
    contacts = 0
    for k in range(closed.shape[0]):
        contacts += (
            closed[k] == 1 or tables.contact_kind[k] == tb.DRY_FRICTION or tables.contact_kind[k] == tb.COMPLIANT
        )
    floats, integers = _workspace(tables.sizes, contacts)
    if work.floats.shape[0] < floats or work.integers.shape[0] < integers:
        work.top[OVERFLOWN] = 1
        return False
    return True


@lean
def resolve(
    work: Workspace,
    tables: Tables,
    t: float,
    x: NDArray[np.float64],
    c: NDArray[np.float64],
    mode: int,
    reason: int,
    remaining: float,
    fired: NDArray[np.int64],
    n_fired: int,
    guards: NDArray[np.float64],
    fineness: float,
    limits: NDArray[np.int64],
    wanted: NDArray[np.int8],
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
    notes: NDArray[np.int64],
    log: NDArray[np.float64],
    implied: NDArray[np.int64],
) -> tuple[int, int]:
    """Resolve position, velocity and acceleration at one instant and find the next mode.

    Parameters
    ----------
    work : Workspace
        Workspace; of its arena, see :func:`workspace`, what others hold is lost.
    tables : Tables
        The automaton.
    t : float
        The instant (s).
    x : float64 array, shape (n_q + n_u,)
        State before, all speeds consistent with ``mode``; on return the state after (impacts, written resets).
    c : float64 array, shape (n_c,)
        Context, inputs as they are *after* the instant; on return with the slip directions and the memory after.
    mode : int
        Mode before.
    reason : int
        ``START``, ``EVENT``, ``INPUT_JUMP``, ``ZENO`` (what fired ends its train of impacts) or ``CONTRADICTION``.
    remaining : float
        How long that train goes on (s).
    fired : int64 array, ``n_fired`` : int
        Numbers (in ``tables.guard_event``) of all guards that reached zero together, the first one leading;
        none unless the reason is ``EVENT`` or ``ZENO``.
    guards : float64 array
        ``State.guards``.
    fineness : float
        How finely the event was located (s).
    limits : int64 array, shape (2 n_contacts,)
        ``State.limits``; counts once an instant has seen ``AGAIN`` transitions.
    wanted : int8 array, shape (n_contacts,)
        Out: the contact states found (with ``NEED_MODE``: those for which there is no mode yet).
    impulse : float64 array, shape (n_rows,)
        Out: impulse along every row (zero where none).
    energy : float64 array, shape (ENERGY_COUNT,)
        Out: kinetic plus potential energy before and after (J), and the fraction kept by the energy remedy.
    notes : int64 array, shape (NOTE_COUNT,)
        Out: see ``CHANGED`` and its neighbours; ``INSTANT`` is in.
    log : float64 array, shape (LOG_LENGTH,)
        Out: the candidates of the decision, see :func:`~fsm_dyn.simulation.contact_law.write_log`.
    implied : int64 array, shape (n_contacts,)
        Out: 1 for contacts whose gaps two closed ones keep, see :mod:`fsm_dyn.simulation.features`.

    Returns
    -------
    status : int
        ``GOING``; ``STOPPED`` after a written transition with ``stop`` (state and mode valid);
        ``NEED_MODE`` (``wanted`` filled); ``BUFFER_FULL`` where the arena is too small; or a failure of
        :mod:`fsm_dyn.simulation.outcomes`.
        Unless it is ``GOING`` or ``STOPPED``, ``x`` and ``c`` are as they were: the call can be repeated.
    next_mode : int
        The mode after.
    """
    sizes = tables.sizes
    n_contacts = sizes[tb.N_CONTACTS]
    release(work, (0, 0))
    state, context = copied(work, x), copied(work, c)
    terms = open_terms(work.addresses[0])
    for r in range(sizes[tb.N_ROWS]):
        impulse[r] = 0.0
    energy[ENERGY_BETA] = 1.0
    call_kernel(tables.terms[0], t, state, context, terms.whole)
    energy[ENERGY_BEFORE] = terms.energies[0] + terms.energies[1]

    event, direction = indices(work, n_contacts), vector(work, n_contacts)
    written = _read_fired(tables, mode, fired, n_fired, terms, event, direction)
    slack = matrix(work, n_contacts, 2)
    if written < 0:
        read_slack(tables, mode, guards, fired, n_fired, fineness, slack)
    if reason == EVENT and notes[INSTANT] >= AGAIN:
        recall_limits(limits, event, direction)
    if reason == EVENT and written < 0 and not any_event(event):
        notes[CHANGED], notes[CANDIDATES], notes[CONSISTENT], notes[CHOSEN_BY] = 0, 0, 0, 0
        return outcomes.GOING, mode  # gaps fell through zero beyond their faces
    before = indices(work, n_contacts)
    for k in range(n_contacts):
        before[k] = tables.mode_states[mode, k]
        wanted[k] = before[k]
        asked = tables.transition_states[written, k] if written >= 0 else -1
        if asked == tb.FREE or (asked > tb.FREE and tables.contact_kind[k] == tb.LOCK):
            wanted[k] = asked
    closed = indices(work, n_contacts)
    deep = outcomes.PENETRATION if reason == START else outcomes.PENETRATION_LATER
    near = tables.tolerances[tol.GAP if reason == START or reason == INPUT_JUMP else tol.PROJECTION]
    u = state[sizes[tb.N_Q] :]
    if not find_active(tables, terms, u, wanted, before, event, written, near, closed, implied):
        return deep, mode
    if not _has_room(work, tables, closed):
        return outcomes.BUFFER_FULL, mode

    top = mark(work)
    if reason == ZENO:
        for k in range(n_contacts):
            if before[k] == tb.FREE and event[k] != tb.CLOSES:
                closed[k] = 0  # near, but not of the train: its impact is its own
        status = end_train(work, tables, terms, u, wanted, closed, remaining, impulse, log)
    else:
        status = strike(work, tables, terms, state, wanted, closed, False, impulse, energy, log)
        for _ in range(MOST_CORNERS):
            if status != outcomes.GOING or not _changed(sizes, state, x) or not has_corners(tables, closed):
                break
            # the speeds after the impact choose other pairs of the corners that coincide
            call_kernel(tables.terms[0], t, state, context, terms.whole)
            forget_leaving(tables, terms, event)
            if not find_active(tables, terms, u, wanted, before, event, written, near, closed, implied):
                return deep, mode
            if not any_strikes(tables, terms, closed, u, tables.tolerances[tol.SPEED]):
                break
            release(work, top)
            status = strike(work, tables, terms, state, wanted, closed, False, impulse, energy, log)
    if status != outcomes.GOING:
        return status, mode
    _forget_limits(tables, state, x, event)
    stop = False
    if written >= 0:
        stop = tables.transitions[written, tb.TRANSITION_STOP] == 1
        if tables.transitions[written, tb.TRANSITION_RESET] != 0:
            _reset(tables, written, t, state, context, vector(work, state.shape[0] + sizes[tb.N_MEMORY]))
            call_kernel(tables.terms[0], t, state, context, terms.whole)
            near = tables.tolerances[tol.GAP]
            if not find_active(tables, terms, u, wanted, before, event, written, near, closed, implied):
                return deep, mode
            if not _has_room(work, tables, closed):
                return outcomes.BUFFER_FULL, mode
            release(work, top)
            status = strike(work, tables, terms, state, wanted, closed, True, impulse, energy, log)
            if status != outcomes.GOING:
                return status, mode
    release(work, top)
    call_kernel(tables.terms[0], t, state, context, terms.whole)
    if has_corners(tables, closed):
        rest_on_one(work, tables, terms, u, wanted, before, event, closed)
        release(work, top)
    energy[ENERGY_AFTER] = terms.energies[0] + terms.energies[1]
    sigma = context[sigma_at(sizes) : sigma_at(sizes) + n_contacts]
    old_sigma, old_closed = copied(work, sigma), indices(work, n_contacts)
    put(old_closed, closed)
    top = mark(work)
    status, notes[CANDIDATES], notes[CONSISTENT], notes[CHOSEN_BY] = settle_states(
        work, tables, terms, state, before, event, direction, slack, closed, wanted, sigma, log
    )
    if status == outcomes.INCONSISTENT and tables.sizes[tb.ON_INCONSISTENT] == 1:
        release(work, top)
        status = _arrest(work, tables, terms, state, wanted, closed, impulse, energy, log)
        if status == outcomes.GOING:
            call_kernel(tables.terms[0], t, state, context, terms.whole)
            energy[ENERGY_AFTER] = terms.energies[0] + terms.energies[1]
            put(closed, old_closed)
            put(sigma, old_sigma)
            for k in range(n_contacts):
                event[k] = 0
            status, notes[CANDIDATES], notes[CONSISTENT], _ = settle_states(
                work, tables, terms, state, before, event, direction, slack, closed, wanted, sigma, log
            )
            notes[CHOSEN_BY] = ARRESTED
    if work.top[OVERFLOWN] != 0:
        return outcomes.BUFFER_FULL, mode
    if status != outcomes.GOING:
        return status, mode
    follow_slip(tables, terms, before, wanted, sigma)
    next_mode = find_mode(tables, wanted)
    if next_mode < 0:
        return outcomes.NEED_MODE, mode
    if tables.mode_group[next_mode] == tables.mode_group[mode]:
        next_mode = mode  # the same mode, in the chart in use
    notes[WRITTEN_TRANSITION] = written
    notes[CHANGED] = 1 if written >= 0 or next_mode != mode else 0
    for i in range(x.shape[0]):
        if state[i] != x[i]:
            notes[CHANGED] = 1
        x[i] = state[i]
    for i in range(c.shape[0]):
        if context[i] != c[i]:
            notes[CHANGED] = 1
        c[i] = context[i]
    return (outcomes.STOPPED if stop else outcomes.GOING), next_mode


@lean
def _arrest(
    work: Workspace,
    tables: Tables,
    terms: Terms,
    state: NDArray[np.float64],
    wanted: NDArray[np.int8],
    closed: NDArray[np.int64],
    impulse: NDArray[np.float64],
    energy: NDArray[np.float64],
    log: NDArray[np.float64],
) -> int:
    """An impact without collision: friction jams, and the slip is brought to rest at once.  Returns a status."""
    u = state[tables.sizes[tb.N_Q] :]
    bilateral = factor_bilateral(work, terms, bilateral_rows(work, tables, wanted), u.shape[0])
    return collide(work, tables, terms, bilateral, u, closed, ARREST, impulse, energy, log)


@lean
def _read_fired(
    tables: Tables,
    mode: int,
    fired: NDArray[np.int64],
    n_fired: int,
    terms: Terms,
    event: NDArray[np.int64],
    direction: NDArray[np.float64],
) -> int:
    """Sort fired guards by contact; return the written transition to take (the first in the file), or -1."""
    written = -1
    for i in range(n_fired):
        guard = fired[i]
        k = tables.guard_contact[guard]
        if tables.guard_event[guard] == tb.WRITTEN:
            if written < 0 or k < written:
                written = k
        elif tables.guard_event[guard] == tb.CLOSES:
            mark_closing(tables, terms, k, event)
        else:
            released = event[k] == tb.OPENS and tables.contact_flags[k] & tb.TWO_SIDED == 0
            if not released or tables.guard_event[guard] == tb.LEAVES:  # without a force there is no friction either
                event[k] = tables.guard_event[guard]
                direction[k] = tables.guard_direction[guard]
    for w in range(tables.transitions.shape[0]):
        code = tables.transitions[w, tb.TRANSITION_EVENT]
        if code == 0 or tables.transition_leaves[w, mode] == 0 or (written >= 0 and written < w):
            continue
        if event[tables.transitions[w, tb.TRANSITION_CONTACT]] == code:
            written = w
    return written


@lean
def _changed(sizes: NDArray[np.int64], state: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    """Whether an impact has changed the speeds."""
    changed = False
    for i in range(sizes[tb.N_Q], state.shape[0]):
        changed = changed or state[i] != before[i]
    return changed


@lean
def _forget_limits(
    tables: Tables, state: NDArray[np.float64], before: NDArray[np.float64], event: NDArray[np.int64]
) -> None:
    """Void what forces and slip reached in the same instant as an impact, which leaves others behind."""
    struck = _changed(tables.sizes, state, before)
    for k in range(event.shape[0]):
        released = event[k] == tb.OPENS and tables.contact_kind[k] == tb.GAP
        if struck and (released or event[k] == tb.STICKS or event[k] == tb.SLIDES):
            event[k] = 0


@lean
def _reset(
    tables: Tables,
    written: int,
    t: float,
    state: NDArray[np.float64],
    context: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Apply a written reset: all assignments at once, from the values before."""
    n_x, n_memory = state.shape[0], tables.sizes[tb.N_MEMORY]
    kept = memory_at(tables.sizes)
    call_kernel(tables.transitions[written, tb.TRANSITION_RESET], t, state, context, out)
    for i in range(n_x):
        state[i] = out[i]
    for i in range(n_memory):
        context[kept + i] = out[n_x + i]


@lean
def find_mode(tables: Tables, wanted: NDArray[np.int8]) -> int:
    """Return the first mode with these contact states, -1 if there is none."""
    for mode in range(tables.mode_states.shape[0]):
        same = True
        for k in range(wanted.shape[0]):
            if tables.mode_states[mode, k] != wanted[k]:
                same = False
                break
        if same:
            return mode
    return -1
