"""Motion between recorded rows, and least and largest values along it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.records import dataclass

# -- The motion between two recorded rows --------------------------------------------------------------------
#
# The motion between two recorded rows: one quartic per step (docs/theory.md, "Between the rows").

_ROUNDING = 256.0 * np.finfo(np.float64).eps


def quartic(theta: Floats, h: Floats, x0: Floats, d0: Floats, xm: Floats, x1: Floats,
            d1: Floats) -> Floats:  # fmt: skip
    """Evaluate the quartic that meets both ends with their slopes and the middle of a step.

    It is the cubic through the ends, plus the one quartic vanishing there with its slope, scaled to meet the middle.
    ``theta``, shape (n,): fraction of each step, 0 to 1; ``h``, shape (n,): length of each step, s; ``x0``, ``xm``,
    ``x1``, shape (n, n_x): states at the start, the middle and the end; ``d0``, ``d1``, shape (n, n_x): rates at the
    start and the end. The result has the shape (n, n_x).
    """
    s = theta[:, None]
    step = h[:, None]
    r = 1.0 - s
    with np.errstate(invalid="ignore", over="ignore"):  # rates at the failure of a run may be infinite
        cubic = r * r * ((1.0 + 2.0 * s) * x0 + s * step * d0) + s * s * ((1.0 + 2.0 * r) * x1 - r * step * d1)
        middle_of_cubic = 0.5 * (x0 + x1) + 0.125 * step * (d0 - d1)
        return cubic + 16.0 * (s * r) ** 2 * (xm - middle_of_cubic)


def quartic_bounds(h: Floats, x0: Floats, d0: Floats, xm: Floats, x1: Floats,
                   d1: Floats) -> tuple[Floats, Floats]:  # fmt: skip
    """Return bounds of the quartics of steps: the least and greatest of their Bernstein coefficients.

    A polynomial on [0, 1] lies within the hull of these (Farouki, "The Bernstein polynomial basis", 2012, section 5).
    ``h``, ``x0``, ``d0``, ``xm``, ``x1``, ``d1``, shape (n,): as for :func:`quartic`, of one state. Returns ``lower,
    upper``, shape (n,): wider than the hull by its rounding.
    """
    second, fourth = x0 + 0.25 * h * d0, x1 - 0.25 * h * d1
    third = (16.0 * xm - x0 - 4.0 * (second + fourth) - x1) / 6.0
    lower, upper = np.minimum(x0, x1), np.maximum(x0, x1)
    for coefficient in (second, third, fourth):
        np.minimum(lower, coefficient, out=lower)
        np.maximum(upper, coefficient, out=upper)
    rounding = _ROUNDING * np.maximum(abs(lower), abs(upper))
    return lower - rounding, upper + rounding


def state_within(t: Floats, x: Floats, x_dot: Floats, x_mid: Floats, times: Floats,
                 first: Integers, columns: slice) -> tuple[Floats, Floats]:  # fmt: skip
    """Return states within steps of a run.

    ``t``, ``x``, ``x_dot``, ``x_mid``, shape (n,) and (n, n_x): as of :class:`~fsm_dyn.run.record.RunRecord`.
    ``times``, shape (m,): times, s. ``first``, shape (m,): first rows of the steps; the last row of a run stands for
    itself. ``columns``: which coordinates and speeds. Returns ``states``, shape (m, columns); ``theta``, shape (m,):
    fractions of the steps.
    """
    last = np.minimum(first + 1, len(t) - 1)
    start = t[first]
    h = t[last] - start
    theta = np.divide(times - start, h, out=np.zeros_like(times), where=h > 0.0)
    # The middle of the last row's (empty) step is not a number, and is multiplied by an exact zero below.
    state, rate, halfway = x[:, columns], x_dot[:, columns], x_mid[:, columns]
    middle = np.where(h[:, None] > 0.0, halfway[last], state[first])
    return quartic(theta, h, state[first], rate[first], middle, state[last], rate[last]), theta


def locate(t: Floats, times: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Return for every time the row at or before it, and the last row of its step.

    At a transition the later of the two rows is taken: a trajectory is continuous from the right.  On the last row
    both indices are this row.
    """
    first = np.searchsorted(t, times, side="right") - 1
    return first, np.minimum(first + 1, len(t) - 1)


# -- Least and largest values of quantities over runs --------------------------------------------------------
#
# Least and largest values of quantities over runs: of their rows, and of the dense output between them.

INSIDE = 7  # times inside a step, or a bracket of it
ROUNDS = 14  # each makes the brackets four times shorter: 4**-14 of a step, beyond the square root of machine precision
_EXTREME_ROUNDING = 4.0 * np.finfo(np.float64).eps
_FRACTIONS = np.linspace(0.0, 1.0, INSIDE + 2)
_NEAR_END = np.array([2.0**-26, 2.0**-20])  # of a step, from its end


@dataclass(frozen=True)
class Extremes:
    """Least and greatest value of a quantity over a run, SI, with the earliest times of them, s."""

    minimum: float
    maximum: float
    minimum_time: float
    maximum_time: float


def extremes(t: Floats, at_rows: Floats, between: Callable[[Floats, Integers], Floats]) -> Extremes:
    """Return the extremes of a quantity over a whole run; see :func:`largest_of_runs`.

    ``t``, shape (n,): times of the rows, s; ``at_rows``, shape (n,): the quantity at the rows, SI; ``between``: gives
    the quantity, shape (m,), at times of shape (m,) within the steps from the rows, shape (m,).
    """
    minimum, maximum, minimum_time, maximum_time = extremes_of_runs(t, at_rows, np.array([0, len(t)]), between)
    return Extremes(float(minimum[0]), float(maximum[0]), float(minimum_time[0]), float(maximum_time[0]))


def extremes_of_runs(
    t: Floats, at_rows: Floats, begin: Integers, between: Callable[[Floats, Integers], Floats]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return least and greatest value of a quantity in each of several runs, and the earliest times of them, s.

    ``t``, ``at_rows``, ``between``: as for :func:`extremes`; the rows of the runs stand one behind the other.
    ``begin``, shape (runs + 1,): first row of each run, and the number of all rows.
    """
    count = len(begin) - 1
    run = np.repeat(np.arange(count), np.diff(begin))
    first = np.flatnonzero((np.diff(t) > 0.0) & (run[1:] == run[:-1]))
    steps, end = Steps(first, first + 1, run[first], count), t[begin[1:] - 1]
    values, times = [], []
    for sign in (-1.0, 1.0):
        signed = sign * at_rows
        value = np.maximum.reduceat(signed, begin[:-1])  # a row at an instant of two transitions is in no step
        time = np.minimum.reduceat(np.where(signed == value[run], t, np.inf), begin[:-1])
        inside, when = largest_of_runs(t, signed, steps, end, partial(_signed, between, sign))
        larger = inside > value
        values.append(sign * np.where(larger, inside, value))
        times.append(np.where(larger, when, time))
    return values[0], values[1], times[0], times[1]


def _signed(between: Callable[[Floats, Integers], Floats], sign: float, times: Floats, first: Integers) -> Floats:
    return sign * between(times, first)


def largest(
    t: Floats,
    at_rows: Floats,
    first: Integers,
    end: float,
    between: Callable[[Floats, Integers], Floats],
    bound: Floats | None = None,
) -> tuple[float, float]:
    """Return the supremum of a quantity over some steps of a run, and its time; see :func:`largest_of_runs`."""
    steps = Steps(first, np.minimum(first + 1, len(t) - 1), np.zeros(len(first), np.int64), 1)
    value, time = largest_of_runs(t, at_rows, steps, np.array([end]), between, bound)
    return float(value[0]), float(time[0])


@dataclass(frozen=True)
class Steps:
    """Steps of several runs whose rows stand one behind the other."""

    # first, last: shape (k,): rows at which they begin and end; a last row of a run stands for itself
    first: Integers
    last: Integers
    run: Integers  # shape (k,): number of the run of each, never decreasing
    count: int
    # shape (runs + 1,): if these are all steps of the runs, and every row belongs to one: first row of each run, and
    # their number
    whole: Integers | None = None

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def begin(self) -> Integers:
        """Numbers of the first steps of the runs with steps."""
        return np.flatnonzero(np.diff(self.run, prepend=-1))

    def only(self, chosen: Booleans | Integers) -> Steps:
        """Return some of the steps, in their order."""
        return Steps(self.first[chosen], self.last[chosen], self.run[chosen], self.count)


def largest_of_runs(
    t: Floats,
    at_rows: Floats,
    steps: Steps,
    end: Floats,
    between: Callable[[Floats, Integers], Floats],
    bound: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the supremum of a quantity over some steps of each of several runs, and its time.

    The largest values of a uniform grid in each step are bracketed, and the brackets refined as long as they may hold
    the largest value of all: the quantity is taken to have at most one maximum within two intervals of that grid.
    ``t``, shape (n,): times of the rows, s. ``at_rows``, shape (n,). ``end``, shape (runs,): time after which a run
    does not count, s; at or after the last of its ``t[first]``. ``between``: gives the quantity, shape (m,), at times
    of shape (m,) within the steps from the rows, shape (m,). ``bound``, shape (n,): upper bound of the quantity in the
    step from each row: steps with a bound below a row's value are skipped. Returns ``value``, shape (runs,): minus
    infinity of a run without steps; ``time``, shape (runs,): s.
    """
    if bound is not None:
        steps = steps.only(_reaching(t, at_rows, steps, end, bound))
    cut = t[steps.last] > end[steps.run]
    lower, upper = t[steps.first], np.where(cut, end[steps.run], t[steps.last])
    grid = lower[:, None] + (upper - lower)[:, None] * _FRACTIONS
    grid[:, -1] = upper
    values = np.empty_like(grid)
    values[:, 0], values[:, -1] = at_rows[steps.first], at_rows[steps.last]
    if cut.any():
        values[cut, -1] = between(upper[cut], steps.first[cut])
    point = upper == lower
    values[point] = at_rows[steps.first[point], None]
    values[~point, 1:-1] = _evaluated(between, grid[~point, 1:-1], steps.first[~point])
    best, time = _best(values, grid, steps)
    active = ~point
    grid, values, steps = grid[active], values[active], steps.only(active)
    for number in range(ROUNDS):
        spread = np.ptp(values, axis=1)
        so_far = best[steps.run]
        reachable = (values.max(axis=1) + spread >= so_far) & (spread > _EXTREME_ROUNDING * abs(so_far))
        grid, values, steps = grid[reachable], values[reachable], steps.only(reachable)
        if number == 0:
            inside = ~_falling_from_end(between, grid, values, steps)  # else the value at its row is known
            grid, values, steps = grid[inside], values[inside], steps.only(inside)
        if not len(steps):
            break
        grid, values = _bracketed(grid, values)
        values[:, 1:-1] = _evaluated(between, grid[:, 1:-1], steps.first)
        value, instant = _best(values, grid, steps)
        better = value > best
        best, time = np.where(better, value, best), np.where(better, instant, time)
    return best, time


def _reaching(t: Floats, at_rows: Floats, steps: Steps, end: Floats, bound: Floats) -> Booleans | Integers:
    """Return the steps of each run in which the bound is not below the largest value of a row."""
    if steps.whole is not None and np.isinf(end).all():
        reached = np.maximum.reduceat(at_rows, steps.whole[:-1])
        rows = np.flatnonzero(~(bound < np.repeat(reached, np.diff(steps.whole))))
        found = np.searchsorted(steps.first, rows)
        begins: Integers = found[steps.first[found] == rows]
        return begins
    ends = at_rows[steps.last]
    ends[t[steps.last] > end[steps.run]] = -np.inf
    reached = _largest_by_run(np.maximum(at_rows[steps.first], ends), steps)
    reaching: Booleans = ~(bound[steps.first] < reached[steps.run])
    return reaching


def _falling_from_end(
    between: Callable[[Floats, Integers], Floats], grid: Floats, values: Floats, steps: Steps
) -> Booleans:
    """Return which steps have their largest value at an end, and smaller ones next to it.

    Next to it: as near as the square root of the machine precision resolves, and farther for more rounding.
    """
    top = values.argmax(axis=1)
    falling: Booleans = (top == 0) | (top == INSIDE + 1)
    chosen = np.flatnonzero(falling)
    edge, length = grid[chosen, top[chosen]], grid[chosen, -1] - grid[chosen, 0]
    inwards = np.where(top[chosen] == 0, length, -length)
    near_end = _evaluated(between, edge[:, None] + inwards[:, None] * _NEAR_END, steps.first[chosen])
    falling[chosen] = (near_end <= values[chosen, top[chosen], None]).all(axis=1)
    return falling


def _bracketed(grid: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return new grids from the neighbour before each largest value to the one after; values at their ends are set."""
    rows = np.arange(len(grid))
    top = values.argmax(axis=1)
    low, high = np.maximum(top - 1, 0), np.minimum(top + 1, INSIDE + 1)
    start, stop = grid[rows, low], grid[rows, high]
    finer = start[:, None] + (stop - start)[:, None] * _FRACTIONS
    finer[:, -1] = stop
    found = np.empty_like(values)
    found[:, 0], found[:, -1] = values[rows, low], values[rows, high]
    return finer, found


def _evaluated(between: Callable[[Floats, Integers], Floats], times: Floats, first: Integers) -> Floats:
    if not times.size:
        return times
    return between(times.ravel(), np.repeat(first, times.shape[1])).reshape(times.shape)


def _best(values: Floats, grid: Floats, steps: Steps) -> tuple[Floats, Floats]:
    """Return the largest value of each run and the earliest time of it."""
    best = _largest_by_run(values.max(axis=1), steps)
    times = np.where(values == best[steps.run, None], grid, np.inf).min(axis=1)
    return best, -_largest_by_run(-times, steps)


def _largest_by_run(values: Floats, steps: Steps) -> Floats:
    """Return the largest of the values of each run, minus infinity without any."""
    found = np.full(steps.count, -np.inf)
    if len(steps):
        found[steps.run[steps.begin]] = np.maximum.reduceat(values, steps.begin)
    return found
