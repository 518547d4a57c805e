"""Running an automaton: the Python around the compiled loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fsm_dyn.errors import InputError, nearest
from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import Packed
from fsm_dyn.simulation.drive import Drive, make_drive
from fsm_dyn.simulation.integrators import METHOD, METHODS, MethodArrays
from fsm_dyn.simulation.outcomes import OUTCOMES, Outcome
from fsm_dyn.simulation.stepper import advance
from fsm_dyn.simulation.tables import Tables

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FIRST_CHUNK: Final = 2000
_CHUNK_SECONDS: Final = 0.1
_FIRST_ROWS: Final = 512
_FIRST_TRANSITIONS: Final = 64
_WORST_PIVOT: Final = 1e-13


class ModeSource(Protocol):
    """Gives modes and charts that were not derived in advance.

    Both return tables in which what was there keeps its number.
    """

    def mode_needed(self, states: NDArray[np.int8], t: float, x: Floats, c: Floats) -> Tables:
        """Append the mode with these contact states; raise RunError where it may not be."""

    def chart_needed(self, number: int, t: float, x: Floats, c: Floats) -> Tables:
        """Append another chart of mode ``number`` that is good at the state given, if there is one."""


@dataclass(frozen=True)
class Transitions:
    """The transitions of a run, one entry (or row) each.

    ``row`` is the row of the state after; the row before it holds the state before.  ``reason`` is one of
    ``START EVENT INPUT_JUMP ZENO`` of :mod:`fsm_dyn.simulation.resolution`.  Of the guards that fired together,
    ``fired`` in number, ``event contact direction value slope`` have shape (n, MAX_FIRED); for a written transition
    ``contact`` is its index.  ``impulse`` has shape (n, n_rows), ``u_before u_after`` (n, n_u), energies are in J.
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

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class RawRun:
    """A run as arrays.

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
        Context after the parameters: inputs, their rates and second rates, slip directions, memory.
    transitions : Transitions
    outcome : Outcome
        Why the run ended.
    tables : Tables
        The automaton as it is at the end, with the modes added on the way.
    wanted : int8 array, shape (n_contacts,)
        Contact states asked for last.
    steps, rejected, retakes : int
        Steps accepted, rejected, and retaken to locate events.
    drift_energy, drift_residual : float
        Energy put in by projections (J), largest residual met.
    mode_end, c_end
        Mode and context at the end.
    """

    t: Floats
    x: Floats
    x_dot: Floats
    x_mid: Floats
    mode: Integers
    held: Floats
    transitions: Transitions
    outcome: Outcome
    tables: Tables
    wanted: NDArray[np.int8]
    steps: int
    rejected: int
    retakes: int
    drift_energy: float
    drift_residual: float
    mode_end: int
    c_end: Floats = field(repr=False)


@dataclass
class _Loop:
    """What one run holds between calls of the compiled loop."""

    tables: Tables
    tables_packed: Packed
    state: st.State
    state_packed: Packed
    work: st.Work
    work_packed: Packed
    buffers: st.Buffers
    buffers_packed: Packed
    charted: int = -1  # number of steps made when a chart was asked for last


_PACKED_TABLES: list[tuple[Tables, Packed]] = []


def pack_tables(tables: Tables) -> Packed:
    """Return the bundle of tables, remembering that of the tables used last."""
    for known, packed in _PACKED_TABLES:
        if known is tables:
            return packed
    packed = st.TABLES.pack(tables)
    _PACKED_TABLES.insert(0, (tables, packed))
    del _PACKED_TABLES[8:]
    return packed


@lru_cache(maxsize=len(METHODS))
def _method(name: str) -> tuple[MethodArrays, Packed]:
    arrays = METHODS[name].arrays()
    return arrays, METHOD.pack(arrays)


def run(
    tables: Tables,
    x0: ArrayLike,
    c0: ArrayLike,
    mode0: int,
    t0: float,
    until: float,
    *,
    method: str = "dopri5",
    rtol: float = 1e-9,
    atol: float | ArrayLike = 1e-12,
    step: float = 0.0,
    max_step: float = np.inf,
    drive: Drive | None = None,
    mode_source: ModeSource | None = None,
    max_steps: int = 10_000_000,
    max_instant: int = 100,
    mask: NDArray[np.int8] | None = None,
    progress: Callable[[float], None] | None = None,
) -> RawRun:
    """Run an automaton from ``t0`` to ``until``.

    Parameters
    ----------
    tables : Tables
        The automaton.
    x0 : array-like, shape (n_q + n_u,)
        Coordinates and speeds at ``t0``.
    c0 : array-like, shape (n_p + 3 n_w + n_contacts + n_memory,)
        Context; its inputs are overwritten from ``drive``.
    mode0 : int
        Mode to begin with; the resolution at the start may choose another.
    t0, until : float
        Time span (s).
    method : str
        ``dopri5`` (adaptive), ``rk4``, ``heun``, ``euler`` (fixed step), ``radau``, ``bdf`` (stiff models).
    rtol, atol : float
        Tolerances of adaptive methods; ``atol`` may be one per state.
    step : float
        Step of the methods with fixed step (s); rows stand at ``t0 + k step`` besides the events.
    max_step : float
        Longest step (s).
    drive : Drive, optional
        Inputs over time; all zero without.
    mode_source : ModeSource, optional
        Asked for modes and charts that the tables lack.
    max_steps, max_instant : int
        Bounds on the steps of the run and on the transitions in one instant.
    mask : int8 array, shape (1 or n_modes, n_q + n_u), optional
        Zero for states that the error estimate leaves out.
    progress : callable, optional
        Called about ten times a second with the time reached (s).

    Returns
    -------
    RawRun
        Whatever the outcome: what was recorded up to then.

    Raises
    ------
    InputError
        An argument is impossible.
    RunError
        From ``mode_source``.
    """
    x, c = np.asarray(x0, dtype=np.float64), np.asarray(c0, dtype=np.float64)
    _check(tables, x, c, mode0, t0, until, method, rtol, step, max_step)
    s = tables.sizes
    if drive is None:
        drive = make_drive([f"w{i}" for i in range(int(s[tb.N_W]))], int(s[tb.N_P]))
    absolute = np.empty(len(x))
    absolute[:] = atol
    options = st.Options(
        numbers=np.array([until, step, max_step, rtol]),
        counts=np.array([_FIRST_CHUNK, max_steps, max_instant], dtype=np.int64),
        atol=absolute,
        mask=np.ones((1, len(x)), dtype=np.int8) if mask is None else mask,
    )
    if method in STIFF_METHODS:
        from fsm_dyn.simulation.stiff import run_stiff

        return run_stiff(tables, x, c, mode0, t0, options, method, drive, mode_source, progress)
    method_arrays, method_packed = _method(method)
    loop = _begin(tables, t0, x, c, mode0, drive, int(method_arrays.counts[0]))
    return _finish(loop, _drive_loop(loop, options, drive, method_packed, mode_source, progress))


STIFF_METHODS: Final = ("radau", "bdf")


def _check(
    tables: Tables,
    x: Floats,
    c: Floats,
    mode0: int,
    t0: float,
    until: float,
    method: str,
    rtol: float,
    step: float,
    max_step: float,
) -> None:
    s = tables.sizes
    known = (*METHODS, *STIFF_METHODS)
    if method not in known:
        raise InputError(f"there is no method '{method}'", allowed=", ".join(known), remedy=nearest(method, known))
    for name, found, wanted in (
        ("x0", len(x), s[tb.N_Q] + s[tb.N_U]),
        ("c0", len(c), s[tb.N_P] + 3 * s[tb.N_W] + s[tb.N_CONTACTS] + s[tb.N_MEMORY]),
    ):
        if found != wanted:
            raise InputError(f"{name} has the wrong length", found=str(found), allowed=str(int(wanted)))
    if not 0 <= mode0 < s[tb.N_MODES]:
        raise InputError("there is no such mode number", found=str(mode0), allowed=f"0 to {int(s[tb.N_MODES]) - 1}")
    if not (np.isfinite(t0) and np.isfinite(until) and until >= t0):
        raise InputError("a run goes forward between two finite times", found=f"from {t0} to {until}")
    if not (rtol > 0.0 and max_step > 0.0):
        raise InputError("rtol and max_step must be positive", found=f"rtol = {rtol}, max_step = {max_step}")
    if method in METHODS and not METHODS[method].adaptive and not (np.isfinite(step) and step > 0.0):
        raise InputError(
            f"method '{method}' needs the length of its steps", found=f"step = {step}", remedy="give step=... (s)"
        )


def _begin(tables: Tables, t0: float, x: Floats, c: Floats, mode0: int, drive: Drive, stages: int) -> _Loop:
    state, state_packed = st.new_state(tables, t0, x, c, mode0)
    state.counters[st.SEGMENT] = drive.segment_at(t0)
    work, work_packed = st.new_work(tables, stages)
    buffers = st.new_buffers(tables, _FIRST_ROWS, _FIRST_TRANSITIONS)
    return _Loop(
        tables,
        pack_tables(tables),
        state,
        state_packed,
        work,
        work_packed,
        buffers,
        st.BUFFERS.pack(buffers),
    )


def _drive_loop(
    loop: _Loop,
    options: st.Options,
    drive: Drive,
    method: Packed,
    mode_source: ModeSource | None,
    progress: Callable[[float], None] | None,
) -> int:
    """Call the compiled loop until the run is over, giving it what it asks for; return how the run ended."""
    packed_options = st.OPTIONS.pack(options)
    try:
        while True:
            began = time.perf_counter()
            status = int(
                advance(
                    loop.tables_packed.address,
                    drive.packed.address,
                    method.address,
                    packed_options.address,
                    loop.state_packed.address,
                    loop.work_packed.address,
                    loop.buffers_packed.address,
                )
            )
            if status == outcomes.PAUSED:
                took = max(time.perf_counter() - began, 1e-6)
                options.counts[st.CHUNK] = max(100, int(options.counts[st.CHUNK] * min(_CHUNK_SECONDS / took, 10.0)))
                if progress is not None:
                    progress(float(loop.state.clock[st.TIME]))
            elif status > outcomes.LAST_INTERNAL:
                return status
            else:
                refused = _supply(loop, status, mode_source)
                if refused is not None:
                    return refused
    except KeyboardInterrupt:
        return outcomes.INTERRUPTED


def _supply(loop: _Loop, status: int, mode_source: ModeSource | None) -> int | None:
    """Give the compiled loop what it asks for; return how the run ends where that cannot be had."""
    if status == outcomes.BUFFER_FULL:
        _grow_buffers(loop)
    elif status == outcomes.NEED_MODE:
        if mode_source is None:
            return outcomes.NO_MODE
        t, x, c = float(loop.state.clock[st.TIME]), loop.state.x.copy(), loop.state.c.copy()
        _take_tables(loop, mode_source.mode_needed(loop.work.wanted.copy(), t, x, c))
    elif status == outcomes.NEED_CHART and not _other_chart(loop, mode_source):
        return outcomes.SINGULAR
    return None


def _other_chart(loop: _Loop, mode_source: ModeSource | None) -> bool:
    """Ask for another chart; where there is none, go on in the present one as long as its pivot allows."""
    state = loop.state
    steps = int(state.counters[st.STEPS])
    if mode_source is not None and loop.charted != steps:
        loop.charted = steps
        t, x, c = float(state.clock[st.TIME]), state.x.copy(), state.c.copy()
        before = int(loop.tables.sizes[tb.N_MODES])
        _take_tables(loop, mode_source.chart_needed(int(state.counters[st.MODE]), t, x, c))
        if int(loop.tables.sizes[tb.N_MODES]) > before:
            return True
    pivot = float(state.clock[st.PIVOT])
    state.clock[st.PIVOT_ALARM] = 0.1 * pivot
    return pivot > _WORST_PIVOT


def _take_tables(loop: _Loop, tables: Tables) -> None:
    """Go on with tables that have grown."""
    if tables is loop.tables:
        return
    before = loop.tables
    wanted = loop.work.wanted.copy()
    stages = len(loop.work.k) // max(len(loop.state.x), 1) - 1
    loop.state, loop.state_packed = st.resized_state(loop.state, before, tables)
    loop.work, loop.work_packed = st.new_work(tables, stages)
    loop.work.wanted[:] = wanted
    loop.tables, loop.tables_packed = tables, pack_tables(tables)


def _grow_buffers(loop: _Loop) -> None:
    """Double the room for what is nearly full."""
    old = loop.buffers
    rows, records = int(loop.state.counters[st.ROWS]), int(loop.state.counters[st.TRANSITIONS])
    more_rows = len(old.modes) * (2 if 2 * rows > len(old.modes) else 1)
    more_records = len(old.transitions) * (2 if 2 * records > len(old.transitions) else 1)
    new = st.new_buffers(loop.tables, more_rows, more_records)
    new.rows[:rows] = old.rows[:rows]
    new.modes[:rows] = old.modes[:rows]
    new.transitions[:records] = old.transitions[:records]
    loop.buffers, loop.buffers_packed = new, st.BUFFERS.pack(new)


def _finish(loop: _Loop, status: int) -> RawRun:
    """Cut what was recorded out of the buffers."""
    state, s = loop.state, loop.tables.sizes
    n = int(state.counters[st.ROWS])
    n_x = len(state.x)
    rows = loop.buffers.rows[:n]
    return RawRun(
        t=rows[:, 0].copy(),
        x=rows[:, 1 : 1 + n_x].copy(),
        x_dot=rows[:, 1 + n_x : 1 + 2 * n_x].copy(),
        x_mid=rows[:, 1 + 2 * n_x : 1 + 3 * n_x].copy(),
        mode=loop.buffers.modes[:n].copy(),
        held=rows[:, 1 + 3 * n_x :].copy(),
        transitions=read_transitions(
            loop.buffers.transitions[: int(state.counters[st.TRANSITIONS])], int(s[tb.N_ROWS]), int(s[tb.N_U])
        ),
        outcome=OUTCOMES[status],
        tables=loop.tables,
        wanted=loop.work.wanted.copy(),
        steps=int(state.counters[st.STEPS]),
        rejected=int(state.counters[st.REJECTED]),
        retakes=int(state.counters[st.RETAKES]),
        drift_energy=float(state.drift[0]),
        drift_residual=float(state.drift[1]),
        mode_end=int(state.counters[st.MODE]),
        c_end=state.c.copy(),
    )


def read_transitions(records: Floats, n_rows: int, n_u: int) -> Transitions:
    """Take records of transitions apart."""
    whole = records[:, : st.RECORD_GUARDS]
    at = st.RECORD_GUARDS + st.MAX_FIRED * st.GUARD_WIDTH
    guards = records[:, st.RECORD_GUARDS : at].reshape(len(records), st.MAX_FIRED, st.GUARD_WIDTH)
    present = np.arange(st.MAX_FIRED) < whole[:, st.RECORD_FIRED, None]
    numbers = whole.astype(np.int64)

    def guard(column: int) -> Any:
        return np.where(present, guards[:, :, column], -1.0 if column < 2 else np.nan)

    return Transitions(
        time=whole[:, st.RECORD_TIME].copy(),
        source=numbers[:, st.RECORD_SOURCE],
        target=numbers[:, st.RECORD_TARGET],
        row=numbers[:, st.RECORD_ROW],
        reason=numbers[:, st.RECORD_REASON],
        fired=numbers[:, st.RECORD_FIRED],
        candidates=numbers[:, st.RECORD_CANDIDATES],
        written=numbers[:, st.RECORD_WRITTEN],
        energy_before=whole[:, st.RECORD_ENERGY_BEFORE].copy(),
        energy_after=whole[:, st.RECORD_ENERGY_AFTER].copy(),
        beta=whole[:, st.RECORD_BETA].copy(),
        event=guard(0).astype(np.int64),
        contact=guard(1).astype(np.int64),
        direction=guard(2),
        value=guard(3),
        slope=guard(4),
        impulse=records[:, at : at + n_rows].copy(),
        u_before=records[:, at + n_rows : at + n_rows + n_u].copy(),
        u_after=records[:, at + n_rows + n_u : at + n_rows + 2 * n_u].copy(),
    )
