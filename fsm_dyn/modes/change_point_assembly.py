"""Starts in a change point or close to it: coordinates and speeds that are not given, as limits along the motion.

Where constraint rows have nearly lost rank, the error of a coordinate is that of a residual divided by what is left of
them, and the error of a speed is divided by it once more.  Configurations on both sides of the start, put on the rows
where there is enough left of them, have neither; the polynomial through them gives the start (docs/theory.md, "Change
points").  In the change point itself the motion begins along the solutions of the rows' second derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.least_squares import dependent_columns, least_squares, norm, product

WEAK: Final = 1e-3  # what is left of a row, below which the start may be close to a change point
BLURRED: Final = 1e-5  # the same, below which the rows themselves do not determine the speeds
FIRM: Final = 1e-2  # what is left of rows and columns that are relied on
REDUNDANT: Final = 1e-9
TURN: Final = 0.05  # part of its size by which a coordinate moves from one configuration to the next
WEIGHTS: Final = (8.0 / 5.0, -4.0 / 5.0, 8.0 / 35.0, -1.0 / 35.0)  # of each pair, see runtime/change_point_start.c
LANDED: Final = 1e-12
MOVES: Final = 20  # of Newton's method
REFINED: Final = 3  # times the limit is taken, each time along the speeds found before
SAME: Final = 1e-6  # relative difference of speeds that are the same
EXACT: Final = 1e-9  # the same of those that solve equations
NEAREST: Final = 1e-8  # in own units: coordinates are not known better in a change point
FARTHEST: Final = 1.5  # power of ten of the speeds from which that search starts, in those given
LOOKS: Final = 4  # next to the start, whether more rows are independent there
STARTS: Final = 4  # of the search for the solutions of the second derivative, and as many for each row that vanishes

Motion = tuple[Array, Array]  # coordinates (n_q,) and speeds (n_u,)


@dataclass(frozen=True)
class StartRows:
    """The rows of a mode about a start.

    Residuals, ``A``, ``b`` and speeds are in the mechanism's own units, coordinates in SI units.

    Parameters
    ----------
    closure : callable
        Residuals (m,) of a configuration (n_q,), and their derivatives along its ways (m, n_ways).
    motion : callable
        ``A`` (m, n_u), ``b`` (m,) and the rates of the coordinates (n_q,) of a configuration and speeds.
    curvature : callable
        ``gamma`` (k, m) of a configuration and several speeds (k, n_u).
    ways : callable
        The ways in which a configuration may change (n_q, n_ways).
    move : callable
        The configuration changed by (n_q,).
    order_of_ways, order_of_speeds : sequence of int
        Columns in the order in which they are made independent: what is given comes first.
    given_coordinates, given_speeds : sequence of int
    q_unit : ndarray, shape (n_q,)
    """

    closure: Callable[[Array], tuple[Array, Array]]
    motion: Callable[[Array, Array], tuple[Array, Array, Array]]
    curvature: Callable[[Array, Array], Array]
    ways: Callable[[Array], Array]
    move: Callable[[Array, Array], Array]
    order_of_ways: Sequence[int]
    order_of_speeds: Sequence[int]
    given_coordinates: Sequence[int]
    given_speeds: Sequence[int]
    q_unit: Array

    def matrix(self, q: Array) -> Array:
        """Return the matrix of the rows at a configuration."""
        return self.motion(q, np.zeros(len(self.order_of_speeds)))[0]


def motions_from(rows: StartRows, q: Array, u: Array) -> list[Motion]:
    """Return the starts of motions near ``q`` whose given speeds are those of ``u``.

    None where the start is not near a change point, or no branch has these speeds.

    Parameters
    ----------
    rows : StartRows
    q : ndarray, shape (n_q,)
        The configuration as the rows give it.
    u : ndarray, shape (n_u,)
        The speeds as the rows give them there.
    """
    A, b, _ = rows.motion(q, u)
    left, combinations = remainders(A)
    weak = left < WEAK * left[0]
    if not weak.any() or not u.any() or np.abs(b).max() > EXACT:  # rows that time moves are not the same later
        return []
    if not _rank_grows(rows, q, u, int((~weak).sum())):
        return []
    candidates = [u]
    if left[weak].min() < BLURRED * left[0]:
        candidates = _solutions(rows, q, u, combinations[~weak], combinations[weak])
    found: list[Motion] = []
    for candidate in candidates:
        motion = _limit(rows, q, candidate)
        if motion is not None and not any(_same(motion[1], other[1]) for other in found):
            found.append(motion)
    return _through(rows, q, found)


def remainders(rows: Array) -> tuple[Array, Array]:
    """Return what is left of each row freed of those taken before, the largest first, and how it is freed.

    Parameters
    ----------
    rows : ndarray, shape (m, n)

    Returns
    -------
    left : ndarray, shape (m,)
    combinations : ndarray, shape (m, m)
        ``combinations @ rows`` are the remainders, in the same order.
    """
    work, combinations = rows.copy(), np.eye(len(rows))
    order = list(range(len(rows)))
    for k in range(len(rows)):
        sizes = [norm(work[i]) for i in order[k:]]
        best = k + int(np.argmax(sizes))
        order[k], order[best] = order[best], order[k]
        row, square = order[k], sizes[best - k] ** 2
        if k and sizes[best - k] <= REDUNDANT * norm(work[order[0]]):
            break
        for i in order[k + 1 :]:
            share = float((work[i] * work[row]).sum()) / max(square, 1e-300)
            work[i] -= share * work[row]
            combinations[i] -= share * combinations[row]
    return np.array([norm(work[i]) for i in order]), combinations[order]


def _rank_grows(rows: StartRows, q: Array, u: Array, rank: int) -> bool:
    """Whether more rows are independent next to a start than at it; those redundant everywhere are not.

    It is looked at along the speeds and others, as those known may lead back into the change point.
    """
    random = np.random.default_rng(20030818)
    for look in range(LOOKS):
        _, _, rates = rows.motion(q, u + (look > 0) * float(np.abs(u).max()) * random.uniform(-1.0, 1.0, len(u)))
        nearby = _landed(rows, rows.move(q, 2.0 * _pace(rows, q, rates) * rates), None)
        if nearby is not None:
            left, _ = remainders(rows.matrix(nearby))
            if int((left >= WEAK * left[0]).sum()) > rank:
                return True
    return False


def _pace(rows: StartRows, q: Array, rates: Array) -> float:
    """Return the time in which a coordinate moves by a small part of its size."""
    return TURN / max(float((np.abs(rates) / (rows.q_unit + np.abs(q))).max()), 1e-300)


def _landed(rows: StartRows, q: Array, columns: Sequence[int] | None) -> Array | None:
    """Return the configuration put on the rows, by all ways or by some of them; None if there is none."""
    for _ in range(MOVES):
        residual, slopes = rows.closure(q)
        if not len(residual):
            return q
        chosen = list(range(slopes.shape[1]) if columns is None else columns)
        if not np.isfinite(slopes).all() or not chosen:
            return None
        step = least_squares(slopes[:, chosen], -residual, REDUNDANT)
        q = rows.move(q, product(rows.ways(q)[:, chosen], step))
        if np.abs(step).max() <= LANDED:
            break
    return q if np.abs(rows.closure(q)[0]).max(initial=0.0) <= LANDED else None


def _dependent(matrix: Array, order: Sequence[int]) -> list[int]:
    """Return the columns that give a matrix its rank, those that come last in an order if they are firm enough."""
    everything = dependent_columns(matrix, order)
    firm = dependent_columns(matrix, order, FIRM)
    return firm if len(firm) == len(everything) else everything


def _limit(rows: StartRows, q: Array, u: Array) -> Motion | None:
    """Return the start of the motion along the branch to which speeds ``u`` lead from ``q``, if there is one."""
    found = None
    for _ in range(REFINED):
        motion = _limit_along(rows, q, u)
        if motion is None:
            return None
        converged = found is not None and np.abs(motion[1] - found[1]).max() <= LANDED * np.abs(motion[1]).max()
        found, u = motion, motion[1]
        if converged:
            break
    return found


def _limit_along(rows: StartRows, q: Array, u: Array) -> Motion | None:
    """Return coordinates and speeds in the middle of configurations on both sides along ``u``."""
    _, _, rates = rows.motion(q, u)
    time = _pace(rows, q, rates)
    nearby = _landed(rows, rows.move(q, 2.0 * time * rates), None)
    if nearby is None:
        return None
    ways = _dependent(rows.closure(nearby)[1], rows.order_of_ways)
    speeds = _dependent(rows.matrix(nearby), rows.order_of_speeds)
    mean_q, mean_u = np.zeros(len(q)), np.zeros(len(u))
    for k, weight in enumerate(WEIGHTS, 1):
        for side in (1.0, -1.0):
            aside = rows.move(q, side * k * time * rates)
            there = _landed(rows, aside, ways)
            if there is None or np.abs((there - aside) / (rows.q_unit + np.abs(q))).max() > 0.5 * k * TURN:
                return None
            moving = _completed(rows, there, u, speeds)
            if moving is None:
                return None
            mean_q += 0.5 * weight * there
            mean_u += 0.5 * weight * moving
    q_given, u_given = list(rows.given_coordinates), list(rows.given_speeds)
    if np.abs((mean_q - q)[q_given] / rows.q_unit[q_given]).max(initial=0.0) > NEAREST:
        return None
    if np.abs((mean_u - u)[u_given]).max(initial=0.0) > SAME * np.abs(u).max():
        return None
    mean_q[q_given], mean_u[u_given] = q[q_given], u[u_given]
    return mean_q, mean_u


def _completed(rows: StartRows, q: Array, u: Array, columns: Sequence[int]) -> Array | None:
    """Return the speeds with those of some columns as the rows give them, None where they contradict the rows."""
    A, b, _ = rows.motion(q, u)
    found = u.copy()
    chosen = list(columns)
    found[chosen] += least_squares(A[:, chosen], -(product(A, u) + b), REDUNDANT)
    return found if np.abs(product(A, found) + b).max() <= EXACT * (1.0 + np.abs(found).max()) else None


def _through(rows: StartRows, q: Array, found: list[Motion]) -> list[Motion]:
    """Return the motion on whose branch the configuration is, all of them where that is not known."""
    away = sorted(float(np.abs((other - q) / rows.q_unit).max()) for other, _ in found)
    if len(found) < 2 or away[1] < NEAREST or away[0] > 0.1 * away[1]:
        return found
    return [one for one in found if float(np.abs((one[0] - q) / rows.q_unit).max()) == away[0]]


def _same(one: Array, other: Array) -> bool:
    return bool(np.abs(one - other).max() <= SAME * max(np.abs(one).max(), np.abs(other).max()))


def _solutions(rows: StartRows, q: Array, u: Array, strong: Array, vanishing: Array) -> list[Array]:
    """Return the speeds that the rows allow in a change point, found from several starts.

    Parameters
    ----------
    strong : ndarray, shape (r, m)
        Combinations of rows that are independent there.
    vanishing : ndarray, shape (k, m)
        Combinations of which little is left; their second derivative has to vanish along the motion.
    """
    free = [i for i in rows.order_of_speeds if i not in rows.given_speeds]
    found = _roots(rows, q, u, strong, vanishing, free)
    for one in found:  # what the rows leave free stays as it was
        _, _, rates = rows.motion(q, one)
        nearby = _landed(rows, rows.move(q, 2.0 * _pace(rows, q, rates) * rates), None)
        if nearby is not None:
            chosen = [i for i in _dependent(rows.matrix(nearby), rows.order_of_speeds) if i not in rows.given_speeds]
            return found if len(chosen) == len(free) else _roots(rows, q, u, strong, vanishing, chosen)
    return found


def _roots(rows: StartRows, q: Array, u: Array, strong: Array, vanishing: Array, free: Sequence[int]) -> list[Array]:
    """Return what solves the rows in a change point, by Newton's method in the free speeds."""
    A, b, _ = rows.motion(q, u)
    size = float(np.abs(u).max())
    columns = list(free)

    def equations(at: Array) -> Array:
        (gamma,) = rows.curvature(q, at[None])
        return np.concatenate([product(strong, product(A, at) + b), product(vanishing, gamma) / size])

    def slopes(at: Array) -> Array:
        steps = size * np.eye(len(at))[columns]  # exact, as the equations are of the second degree
        change = (rows.curvature(q, at + steps) - rows.curvature(q, at - steps)).T / (2.0 * size)
        return np.concatenate([product(strong, A[:, columns]), product(vanishing, change) / size])

    random = np.random.default_rng(20030818)
    found: list[Array] = []
    for start in range(STARTS + STARTS * len(vanishing)):
        at = u.copy()
        if start:
            at[columns] += size * 10.0 ** random.uniform(0.0, FARTHEST) * random.uniform(-1.0, 1.0, len(columns))
        for _ in range(MOVES):
            value = equations(at)
            if np.abs(value).max() <= EXACT * size:
                break
            at[columns] -= least_squares(slopes(at), value, REDUNDANT)
        if np.abs(equations(at)).max() <= EXACT * size and not any(_same(at, other) for other in found):
            found.append(at)
    return found
