"""Results of a run as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime.abi import GUARD_WIDTH, MAX_FIRED, RecordColumn, Sizes
from fsm_dyn.runtime.layouts import Tables
from fsm_dyn.simulation.outcomes import Outcome

if TYPE_CHECKING:
    from fsm_dyn.simulation.saved_state import SavedState

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TransitionArrays:
    """The transitions of a run, one entry (or row) each.

    ``row`` is the row of the state after; the row before it holds the state before.  ``reason`` is one of
    :class:`fsm_dyn.runtime.abi.Reason`.  Of the guards that fired together, ``fired`` in number, ``event contact
    direction value slope`` have shape (n, MAX_FIRED); for a user transition ``contact`` is its index.  ``impulse``
    has shape (n, n_rows), ``u_before u_after`` (n, n_u), energies are in J.  ``candidates consistent chosen_by log``
    tell of the decision: see :mod:`fsm_dyn.simulation.candidates`.
    """

    time: Floats
    source: Integers
    target: Integers
    row: Integers
    reason: Integers
    fired: Integers
    candidates: Integers
    written: Integers
    energy_before: Floats
    energy_after: Floats
    beta: Floats
    event: Integers
    contact: Integers
    direction: Floats
    value: Floats
    slope: Floats
    impulse: Floats
    u_before: Floats
    u_after: Floats
    consistent: Integers
    chosen_by: Integers
    log: Floats

    def __len__(self) -> int:
        return len(self.time)


@dataclass  # not frozen: to fill one that is takes six times as long
class RunArrays:
    """A run as arrays, which nothing changes.

    Attributes
    ----------
    t : float64 array, shape (n,)
        Times (s); equal neighbours are the two sides of a transition or of a jump of an input.
    x, x_dot : float64 arrays, shape (n, n_q + n_u)
        States and derivatives.
    x_mid : float64 array, shape (n, n_q + n_u)
        State at the middle of the step that ends at the row.
    mode : int64 array, shape (n,)
        Mode number; a row that ends a step carries the mode of the step.
    held : float64 array, shape (n, 3 n_w + n_contacts + n_memory)
        Context after the parameters: inputs, their rates and second rates, slip directions, memory, third rates.
    records : float64 array
        The transitions as the loop wrote them; read them as ``transitions``.
    outcome : Outcome
        Why the run ended.
    tables : Tables
        The automaton as it is at the end, with the modes added on the way.
    requested_states : int8 array, shape (n_contacts,)
        Contact states asked for last.
    steps, rejected, retakes : int
        Steps accepted, rejected, and retaken to locate events.
    drift_energy, drift_residual : float
        Energy put in by projections (J), largest residual met.
    tried, log
        Of the last decision: how many combinations were tried, and the log of candidates.
    mode_end, c_end
        Mode and context at the end.
    rank : float64 array
        What was known last of the rank of the rows held (``State.rank``).
    passages : float64 array
        Passages through change points as the loop wrote them, a row each (``PASSAGE_TIME`` ... of the state).
    saved : SavedState, optional
        From where the run can be continued, if it was to be and can.
    """

    t: Floats
    x: Floats
    x_dot: Floats
    x_mid: Floats
    mode: Integers
    held: Floats
    records: Floats = field(repr=False)
    outcome: Outcome
    tables: Tables
    requested_states: NDArray[np.int8]
    steps: int
    rejected: int
    retakes: int
    drift_energy: float
    drift_residual: float
    mode_end: int
    c_end: Floats = field(repr=False)
    tried: int = 0
    log: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    rank: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    passages: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    saved: SavedState | None = field(default=None, repr=False)

    @cached_property
    def transitions(self) -> TransitionArrays:
        """The transitions, taken out of their records when first asked for."""
        return read_transitions(self.records, int(self.tables.sizes[Sizes.N_ROWS]), int(self.tables.sizes[Sizes.N_U]))


def read_transitions(records: Floats, n_rows: int, n_u: int) -> TransitionArrays:
    """Take records of transitions apart."""
    whole = records[:, : RecordColumn.GUARDS]
    at = RecordColumn.GUARDS + MAX_FIRED * GUARD_WIDTH
    guards = records[:, RecordColumn.GUARDS : at].reshape(len(records), MAX_FIRED, GUARD_WIDTH)
    present = np.arange(MAX_FIRED) < whole[:, RecordColumn.FIRED, None]

    def integers(column: int) -> Integers:
        return whole[:, column].astype(np.int64)

    def guard(column: int) -> Any:
        return np.where(present, guards[:, :, column], -1.0 if column < 2 else np.nan)

    return TransitionArrays(
        time=whole[:, RecordColumn.TIME].copy(),
        source=integers(RecordColumn.SOURCE),
        target=integers(RecordColumn.TARGET),
        row=integers(RecordColumn.ROW),
        reason=integers(RecordColumn.REASON),
        fired=integers(RecordColumn.FIRED),
        candidates=integers(RecordColumn.CANDIDATES),
        written=integers(RecordColumn.WRITTEN),
        energy_before=whole[:, RecordColumn.ENERGY_BEFORE].copy(),
        energy_after=whole[:, RecordColumn.ENERGY_AFTER].copy(),
        beta=whole[:, RecordColumn.BETA].copy(),
        event=guard(0).astype(np.int64),
        contact=guard(1).astype(np.int64),
        direction=guard(2),
        value=guard(3),
        slope=guard(4),
        impulse=records[:, at : at + n_rows].copy(),
        u_before=records[:, at + n_rows : at + n_rows + n_u].copy(),
        u_after=records[:, at + n_rows + n_u : at + n_rows + 2 * n_u].copy(),
        consistent=integers(RecordColumn.CONSISTENT),
        chosen_by=integers(RecordColumn.CHOSEN_BY),
        log=records[:, at + n_rows + 2 * n_u :].copy(),
    )


def order_of(mode: Integers, changes: Integers, mode_end: int, fixed: int) -> tuple[int, ...]:
    """Return the modes of a run in the order of their appearance, after the first ``fixed`` ones.

    Parameters
    ----------
    mode : int64 array, shape (n,)
        Mode of each row.
    changes : int64 array, shape (m, 2)
        Modes before and after each transition.
    mode_end : int
        Mode at the end.
    """
    turns = mode[1:][mode[1:] != mode[:-1]]  # charts change between transitions as well
    met = [mode[:1], changes.ravel(), turns, np.array([mode_end])]
    return tuple(dict.fromkeys([*range(fixed), *np.concatenate(met).tolist()]))


def renumbered(raw: RunArrays, fixed: int, order: tuple[int, ...] | None = None) -> tuple[RunArrays, tuple[int, ...]]:
    """Number the modes of a run by what happened in it alone.

    An executable numbers modes in the order in which its runs reached them, earlier runs too.

    Parameters
    ----------
    fixed : int
        How many modes were there before any run; they keep their numbers.
    order : tuple of int, optional
        The modes by new number, where the run is a part of a longer one (:func:`order_of`).

    Returns
    -------
    RunArrays
        The run; the further modes it reached have the next numbers in their order of appearance.
    tuple of int
        By new number the number in the executable.
    """
    count = int(raw.tables.sizes[Sizes.N_MODES])
    if order is None and count <= fixed:
        return raw, tuple(range(count))
    columns = [RecordColumn.SOURCE, RecordColumn.TARGET]
    changes = raw.records[:, columns].astype(np.int64)
    if order is None:
        order = order_of(raw.mode, changes, raw.mode_end, fixed)
    if order == tuple(range(len(order))):
        return raw, order
    new = np.full(max(order) + 1, -1)
    new[list(order)] = np.arange(len(order))
    records = raw.records.copy()
    records[:, columns] = new[changes]
    tables = raw.tables._replace(mode_states=raw.tables.mode_states[list(order)])
    changed = replace(raw, mode=new[raw.mode], records=records, mode_end=int(new[raw.mode_end]), tables=tables)
    return changed, order
