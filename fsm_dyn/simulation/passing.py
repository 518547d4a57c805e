"""Steps near change points: how long they are, and when one is accepted (docs/theory.md, "Change points")."""

from __future__ import annotations

from typing import Final

from fsm_dyn.simulation import outcomes
from fsm_dyn.simulation import state as st
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.change_points import (
    allowance,
    clear_length,
    is_near,
    is_rounding,
    least_left,
    least_passage,
    look_ahead,
    passing_fraction,
)
from fsm_dyn.simulation.compiled import lean
from fsm_dyn.simulation.evaluation import guard_count
from fsm_dyn.simulation.integrators import ADAPTIVE, STAGES, MethodArrays, error_norm, rejection_factor
from fsm_dyn.simulation.limits import rests_in_change_point
from fsm_dyn.simulation.state import Options, State, Work
from fsm_dyn.simulation.tables import Tables

# what becomes of a trial step
ACCEPT: Final = 0
SHORTEN: Final = 1
RETAKE: Final = 2


@lean
def look(tables: Tables, state: State, work: Work, t: float, h: float) -> tuple[int, float]:
    """Look for change points ahead of an implicit step of length ``h``.

    Returns
    -------
    status : int
        ``GOING``, or ``UNDETERMINED`` where the mechanism rests in a change point.
    length : float
        Length of the step that keeps clear of them, ``h`` at most (s).
    """
    mode, rank = state.counters[st.MODE], state.rank
    if tables.mode_flags[mode] & tb.RANKS == 0:
        return outcomes.GOING, h
    seen = look_ahead(work, tables, t, state.x, state.x_dot, state.c, mode, rank)
    if seen and rests_in_change_point(work, tables, t, state.x, state.c, mode, rank):
        return outcomes.UNDETERMINED, h
    rank[st.LANDS] = 1.0 if is_near(rank, h, st.NEAR) else 0.0
    return outcomes.GOING, clear_length(rank[st.AHEAD], h, passing_fraction(0, False))


@lean
def keep_clear(tables: Tables, method: MethodArrays, options: Options, state: State, h: float) -> tuple[float, bool]:
    """Return the length of a step that keeps clear of change points, and whether it passes one.

    It is ``h`` at most, but where rounding asks for a longer step over a change point (:func:`least_passage`).
    """
    rank = state.rank
    passage, left = h, 0.0
    if method.counts[ADAPTIVE] != 0:
        rtol = options.numbers[st.RTOL]
        passage, left = h * least_passage(h * rank[st.RATE], rtol), least_left(tables, rtol)
    rank[st.LANDS] = 1.0 if is_near(rank, h, left) else 0.0
    if not rank[st.AHEAD] < 1.5 * passage:
        return h, False
    guards = guard_count(tables, state.counters[st.MODE]) > 0
    length = clear_length(rank[st.AHEAD], passage, passing_fraction(method.counts[STAGES], guards))
    passes = length > rank[st.AHEAD]
    return (length if passes else min(length, h)), passes


@lean
def judge(
    method: MethodArrays,
    options: Options,
    state: State,
    work: Work,
    h: float,
    row: int,
    passes: bool,
    forced: bool,
    tried: float,
    tried_error: float,
    finite: bool,
) -> tuple[int, float]:
    """Return whether a trial step is accepted, made shorter, or retaken at the length tried before, and its error.

    Parameters
    ----------
    passes, forced : bool
        Whether it passes a change point; whether it is accepted near one whatever its error.
    tried, tried_error : float
        Length (s) and error of the step that was rejected before it.
    """
    if not finite:
        return SHORTEN, 1e4
    rtol = options.numbers[st.RTOL]
    error = error_norm(method, h, state.x, work.x_end, work.k, rtol, options.atol, options.mask, row)
    if error <= 1.0:
        return ACCEPT, error
    if not error > 1.0 or state.rank[st.LANDS] == 0.0:
        return SHORTEN, error
    if forced or _at_floor(state, options, h, error, passes):
        state.rank[st.WORST] = max(state.rank[st.WORST], error)
        return ACCEPT, error
    if not passes and is_rounding(error, h, tried_error, tried):
        return RETAKE, error
    return SHORTEN, error


@lean
def _at_floor(state: State, options: Options, h: float, error: float, passes: bool) -> bool:
    """Whether a step near a change point is accepted as it is: rounding would make a shorter one no better."""
    rank = state.rank
    if not passes:
        return bool(error <= allowance(rank, h, options.numbers[st.RTOL]))
    longer = least_passage(h * rank[st.RATE], options.numbers[st.RTOL])
    return bool(error < 4.0 * longer**6 and longer > 1.0) or is_rounding(
        error, h, rank[st.TRIED_ERROR], rank[st.TRIED_STEP]
    )


@lean
def shorter(state: State, h: float, error: float, order: int, passes: bool) -> float:
    """Return by how much to shorten a rejected step: one over a change point by a little, as rounding grows then."""
    factor = rejection_factor(error, order)
    if not passes:
        return factor
    state.rank[st.TRIED_STEP], state.rank[st.TRIED_ERROR] = h, error
    return max(factor, 0.7)
