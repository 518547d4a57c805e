"""What the kernels of a mode give, worked out on line; the one routine that stands behind all such kernels.

Slopes of gaps, slip speeds and ends of faces are known exactly from the terms.  Forces and written conditions would
need derivatives of the terms; they are differenced centrally along the flow, which is right to about nine digits:
an event is located by its value, and the slope only steers the search (docs/theory.md, "On-line embedding").
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.online.chart import choose_chart
from fsm_dyn.online.context import (
    AT_A,
    AT_GUARDS,
    AT_MULTIPLIERS,
    AT_PROBE,
    AT_PROBE_C,
    AT_Q_DOT,
    AT_STATIC,
    AT_U_DOT,
    AT_X,
    CHOSEN,
    FLOOR,
    KEPT,
    LEVEL,
    RANK,
    ROWS,
    WATCH,
    Online,
    open_online,
)
from fsm_dyn.online.embedding import accelerate
from fsm_dyn.online.guards import exact_slope, guard_values, has_exact_slope
from fsm_dyn.online.multipliers import find_multipliers
from fsm_dyn.online.pivots import row_pivots
from fsm_dyn.simulation import tables as tb
from fsm_dyn.simulation.bundles import pointer_at, shifted, start_of
from fsm_dyn.simulation.compiled import lean, routine
from fsm_dyn.simulation.kernels import call_kernel_at

Floats = NDArray[np.float64]

PROBE: Final = 6e-6  # time, relative to that of the motion, over which forces are differenced

# what :func:`evaluate` is asked for
RHS: Final = 0
FULL: Final = 1


@lean
def _rhs(o: Online, t: float, x: Floats, c: Floats, out: Floats) -> None:
    """Write ``x_dot`` as the ``rhs`` kernel of the mode would."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_q_dot, at_u_dot = chart[AT_Q_DOT], chart[AT_U_DOT]
    accelerate(o, t, x, c, False)
    n_q, U = o.sizes[tb.N_Q], o.sizes[tb.N_U]
    for i in range(n_q):
        out[i] = w[at_q_dot + i]
    for i in range(U):
        out[n_q + i] = w[at_u_dot + i]


@lean
def _work_out(o: Online, t: float, x: Floats, c: Floats, judge: bool) -> float:
    """Accelerations, forces and all that guards look at; returns the smallest pivot of the reduced equations."""
    chart, w = start_of(o.chart), start_of(o.room)
    least = accelerate(o, t, x, c, judge)
    at_x = chart[AT_X]
    if chart[RANK] == 0 and o.sizes[tb.N_ROWS] > 0:
        call_kernel_at(o.programs[ROWS], t, shifted(w, at_x), c, w, chart[AT_A])
    call_kernel_at(o.programs[WATCH], t, shifted(w, at_x), c, w, chart[AT_STATIC])
    find_multipliers(o)
    return least


@lean
def _is_finite(x: Floats, n: int) -> bool:
    """Whether the state (n,) is finite."""
    total = 0.0
    for i in range(n):
        total += abs(x[i])
    return bool(total < np.inf)


@lean
def _full(o: Online, t: float, x: Floats, c: Floats, out: Floats) -> None:
    """Write what the ``full`` kernel of the mode would, see :class:`~fsm_dyn.simulation.tables.Tables`.

    Where the pivot sounds the alarm another chart is chosen: below the floor, or far below the best that the chart
    has shown.  Errors of integration in independent speeds are divided by the pivot in the dependent ones.
    """
    chart, w = start_of(o.chart), start_of(o.room)
    at_q_dot, at_x, at_u_dot, at_multipliers = chart[AT_Q_DOT], chart[AT_X], chart[AT_U_DOT], chart[AT_MULTIPLIERS]
    n_q, U, R = o.sizes[tb.N_Q], o.sizes[tb.N_U], o.sizes[tb.N_ROWS]
    n, n_g = n_q + U, o.guard_quantity.shape[0]
    pivot = row_pivots(o, _work_out(o, t, x, c, True))
    if not pivot >= max(o.alarm[FLOOR], o.alarm[LEVEL]):
        choose_chart(o, t, x, c)
        pivot = row_pivots(o, _work_out(o, t, x, c, True))
    if not _is_finite(x, n):  # a trial that failed: what is tried next chooses anew
        o.chart[CHOSEN], pivot = 0, np.nan
    if o.alarm[KEPT] * pivot > o.alarm[LEVEL]:
        o.alarm[LEVEL] = o.alarm[KEPT] * pivot
    for i in range(n_q):
        out[i] = w[at_q_dot + i]
    for i in range(U):
        out[n_q + i] = w[at_u_dot + i]
        out[n + i] = w[at_x + n_q + i]
    out[n + U] = pivot
    values = n + U + 1
    slopes = values + n_g
    for r in range(R):
        out[slopes + n_g + r] = w[at_multipliers + r]
    guard_values(o, c, out, values)
    differs = False
    for g in range(n_g):
        if has_exact_slope(o, g):
            out[slopes + g] = exact_slope(o, c, g)
        else:
            differs = True
    if differs:
        _difference(o, t, c, out, slopes)


@lean
def _difference(o: Online, t: float, c: Floats, out: Floats, slopes: int) -> None:
    """Write the slopes that the terms do not give, by central differences along the flow."""
    chart, w = start_of(o.chart), start_of(o.room)
    at_x, at_probe, at_c, at_guards = chart[AT_X], chart[AT_PROBE], chart[AT_PROBE_C], chart[AT_GUARDS]
    n_g, n = o.guard_quantity.shape[0], o.sizes[tb.N_Q] + o.sizes[tb.N_U]
    s = o.sizes
    n_p, n_w = s[tb.N_P], s[tb.N_W]
    third = n_p + 3 * n_w + s[tb.N_CONTACTS] + s[tb.N_MEMORY]
    n_c = third + n_w
    time = _probe_time(out, w, at_x, n)
    for i in range(n):
        w[at_probe + i] = w[at_x + i]
    for i in range(n_c):
        w[at_c + i] = c[i]
    context = shifted(w, at_c)
    for side in range(2):
        along = time if side == 0 else -time
        for i in range(n):
            w[at_probe + i] += (along if side == 0 else 2.0 * along) * out[i]
        for i in range(n_p, n_p + 2 * n_w):  # inputs and their rates, at their rates
            context[i] = c[i] + along * c[i + n_w]
        for i in range(n_w):
            context[n_p + 2 * n_w + i] = c[n_p + 2 * n_w + i] + along * c[third + i]
        _work_out(o, t + along, shifted(w, at_probe), context, False)
        guard_values(o, context, w, at_guards + side * n_g)
    for g in range(n_g):
        if not has_exact_slope(o, g):
            out[slopes + g] = (w[at_guards + g] - w[at_guards + n_g + g]) / (2.0 * time)


@lean
def _probe_time(out: Floats, w: Floats, from_x: int, n: int) -> float:
    """Return over what time (s) to difference, from how fast the state changes."""
    fastest = 0.0
    for i in range(n):
        fastest = max(fastest, abs(out[i]) / (1.0 + abs(w[from_x + i])))
    return PROBE / (1.0 + fastest)


@routine
def evaluate(context_at: int, what: int, t: float, x_at: int, c_at: int, out_at: int) -> int:
    """Do what a kernel of a mode embedded on line does.

    Parameters
    ----------
    context_at : int
        Address of the mode's :class:`~fsm_dyn.online.context.Online` bundle.
    what : int
        ``RHS`` or ``FULL``.
    t : float
        Time, s.
    x_at, c_at, out_at : int
        Addresses of state, context and result, float64.

    Returns
    -------
    int
        0.
    """
    o = open_online(context_at)
    x, c, out = pointer_at(x_at), pointer_at(c_at), pointer_at(out_at)
    if o.chart[CHOSEN] == 0:
        choose_chart(o, t, x, c)
    if what == RHS:
        _rhs(o, t, x, c, out)
    else:
        _full(o, t, x, c, out)
    return 0
