"""The true instant at which two shapes on known motions first touch, from their distance and a bound of its rate.

A distance whose rate is bounded by V cannot reach zero in an interval of length w while the sum of its values at both
ends exceeds V w.  Intervals that this does not clear are divided until they are short, against the smallest size of a
shape and against the run; minima between the last instants are then refined, so that grazing is decided as well.
"""

import numpy as np

SHORTEST = 1e-5  # of the run: the last intervals are no longer
FINEST = 0.02  # of the smallest size of a shape, moved in one of the last intervals
LEVEL = 1e-9  # m: what comes no deeper may be called a touch or none
BEGIN = 64  # intervals at first
GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


def _divided(distance, t0, t1, rate, shortest):
    """Instants between t0 and t1, dense wherever the distance may be near zero, with the distances there."""
    t = np.linspace(t0, t1, BEGIN + 1)
    d = distance(t)
    while True:
        w = np.diff(t)
        near = (d[:-1] + d[1:] <= rate * w) & (w > shortest)
        ended = np.flatnonzero(d < -LEVEL)
        if ended.size:  # what follows the first instant within does not matter
            near[ended[0] :] = False
        if not near.any():
            return t, d
        middle = 0.5 * (t[:-1] + t[1:])[near]
        at = np.flatnonzero(near) + 1
        t, d = np.insert(t, at, middle), np.insert(d, at, distance(middle))


def _refined(distance, t, d, rate, most):
    """The minima between instants that are shorter apart than ``most`` and near enough to matter: times, distances."""
    least = (d[1:-1] <= d[:-2]) & (d[1:-1] < d[2:]) & (t[2:] - t[:-2] <= 2.0 * most) & (d[1:-1] <= rate * most)
    k = np.flatnonzero(least & (d[1:-1] > -LEVEL)) + 1
    low, high = t[k - 1], t[k + 1]
    for _ in range(45 if k.size else 0):
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left = distance(a) < distance(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    best = 0.5 * (low + high)
    return best, distance(best) if k.size else best


def _root(distance, low, high):
    """Where a distance that is positive at ``low`` and negative at ``high`` is zero, by the Illinois method."""
    a, b = (float(distance(np.array([t]))[0]) for t in (low, high))
    side = 0
    for _ in range(100):
        if high - low <= 1e-13 * max(1.0, abs(high)) or a <= 0.0:
            break
        t = (low * b - high * a) / (b - a)
        value = float(distance(np.array([t]))[0])
        if value < 0.0:
            high, b, a, side = t, value, 0.5 * a if side < 0 else a, -1
        else:
            low, a, b, side = t, value, 0.5 * b if side > 0 else b, 1
        if abs(value) < 1e-14:
            return t
    return high


def first_touch(distance, t0, t1, rate, size):
    """The first instant at which a distance falls below zero, and its least value up to there.

    Parameters
    ----------
    distance : callable
        Of instants, shape (n,), s; m, positive while apart.
    t0, t1 : float
        s.
    rate : float
        Bound of the rate of the distance, m/s.
    size : float
        The smallest size of a shape, m.

    Returns
    -------
    time : float
        s; ``inf`` where it stays above ``-LEVEL``.
    least : float
        The least distance up to the first instant below, m: within ``LEVEL`` of zero both answers are right.
    """
    shortest = min(SHORTEST * (t1 - t0), FINEST * size / rate) if rate > 0.0 else t1 - t0
    t, d = _divided(distance, t0, t1, rate, shortest)
    more, depth = _refined(distance, t, d, rate, 2.0 * shortest)
    t, d = np.concatenate([t, more]), np.concatenate([d, depth])
    order = np.argsort(t, kind="stable")
    t, d = t[order], d[order]
    inside = np.flatnonzero(d < -LEVEL)
    if not inside.size:
        return np.inf, float(d.min())
    k = inside[0]
    before = np.flatnonzero(d[:k] > 0.0)
    return (float(_root(distance, t[before[-1]], t[k])) if before.size else t0), float(d[k])
