"""Writing rows and transitions into the buffers of a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation import resolution
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import shifted, start_of
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.faces import within_face
from fsm_dyn.simulation.state import Buffers, State, Work
from fsm_dyn.simulation.tables import Tables
from fsm_dyn.simulation.terms import open_terms

Floats = NDArray[np.float64]


@lean
def write_row(tables: Tables, state: State, buffers: Buffers, x_mid: Floats) -> None:
    """Record the state at hand; ``x_mid`` is the state at the middle of the step that led here."""
    i = state.counters[st.ROWS]
    n = state.x.shape[0]
    n_p = tables.sizes[tb.N_P]
    row = shifted(start_of(buffers.rows), i * buffers.rows.shape[1])
    row[0] = state.clock[st.TIME]
    at, rates, middle = shifted(row, 1), shifted(row, 1 + n), shifted(row, 1 + 2 * n)
    for j in range(n):
        at[j] = state.x[j]
        rates[j] = state.x_dot[j]
        middle[j] = x_mid[j]
    held = shifted(row, 1 + 3 * n - n_p)
    for j in range(n_p, state.c.shape[0]):
        held[j] = state.c[j]
    buffers.modes[i] = state.counters[st.MODE]
    state.counters[st.ROWS] = i + 1


@lean
def _subject(tables: Tables, work: Work, guard: int) -> int:
    """Return whose guard fired: of the faces of an outline that share one, the face that was met."""
    contact = tables.guard_contact[guard]
    if tables.guard_event[guard] != tb.CLOSES or tables.contact_outline[contact] < 0:
        return contact
    terms, best, largest = open_terms(work.addresses[0]), contact, -np.inf
    for k in range(contact, tables.sizes[tb.N_CONTACTS]):
        gap = terms.residual[tables.contact_rows[k, 0]]
        same = tables.contact_outline[k] == tables.contact_outline[contact]
        if same and gap > largest and within_face(tables, terms, k):
            best, largest = k, gap
    return best


@lean
def write_transition(tables: Tables, state: State, work: Work, buffers: Buffers, source: int) -> None:
    """Record the transition that led to the row written last."""
    i = state.counters[st.TRANSITIONS]
    record = buffers.transitions
    n_fired = min(state.counters[st.FIRED], st.MAX_FIRED)
    most = tables.sizes[tb.MAX_GUARDS]
    record[i, st.RECORD_TIME] = state.clock[st.TIME]
    record[i, st.RECORD_SOURCE] = source
    record[i, st.RECORD_TARGET] = state.counters[st.MODE]
    record[i, st.RECORD_ROW] = state.counters[st.ROWS] - 1
    record[i, st.RECORD_REASON] = state.counters[st.REASON]
    record[i, st.RECORD_FIRED] = n_fired
    record[i, st.RECORD_CANDIDATES] = work.notes[resolution.CANDIDATES]
    record[i, st.RECORD_CONSISTENT] = work.notes[resolution.CONSISTENT]
    record[i, st.RECORD_CHOSEN_BY] = work.notes[resolution.CHOSEN_BY]
    record[i, st.RECORD_WRITTEN] = work.notes[resolution.WRITTEN_TRANSITION]
    record[i, st.RECORD_ENERGY_BEFORE] = work.energy[resolution.ENERGY_BEFORE]
    record[i, st.RECORD_ENERGY_AFTER] = work.energy[resolution.ENERGY_AFTER]
    record[i, st.RECORD_BETA] = work.energy[resolution.ENERGY_BETA]
    at = st.RECORD_GUARDS
    for k in range(n_fired):
        guard = state.fired[k]
        record[i, at] = tables.guard_event[guard]
        record[i, at + 1] = _subject(tables, work, guard)
        record[i, at + 2] = tables.guard_direction[guard]
        record[i, at + 3] = state.guards[3 * most + k]
        record[i, at + 4] = state.guards[4 * most + k]
        at += st.GUARD_WIDTH
    at = st.RECORD_GUARDS + st.MAX_FIRED * st.GUARD_WIDTH
    for r in range(tables.sizes[tb.N_ROWS]):
        record[i, at + r] = work.impulse[r]
    at += tables.sizes[tb.N_ROWS]
    n_u = tables.sizes[tb.N_U]
    for j in range(n_u):
        record[i, at + j] = work.u_before[j]
        record[i, at + n_u + j] = state.x[tables.sizes[tb.N_Q] + j]
    at += 2 * n_u
    for j in range(resolution.LOG_LENGTH):
        record[i, at + j] = work.log[j]
    state.counters[st.TRANSITIONS] = i + 1


@lean
def write_passage(tables: Tables, state: State, buffers: Buffers) -> None:
    """Record that the step just made passed a change point."""
    i, rank = state.counters[st.PASSED], state.rank
    record, n_rows = buffers.passages, tables.sizes[tb.N_ROWS]
    record[i, st.PASSAGE_TIME] = rank[st.PASSES_AT]
    record[i, st.PASSAGE_MODE] = state.counters[st.MODE]
    record[i, st.PASSAGE_RANK] = rank[st.INDEPENDENT]
    record[i, st.PASSAGE_LOST] = rank[st.LOST]
    record[i, st.PASSAGE_ERROR] = rank[st.TRIED_ERROR]
    for r in range(n_rows):
        record[i, st.PASSAGE_ROWS + r] = rank[st.RANK_COUNT + n_rows + r]
    rank[st.PASSES_AT] = np.inf
    rank[st.TRIED_ERROR] = 0.0
    state.counters[st.PASSED] = i + 1
