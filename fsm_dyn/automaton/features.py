"""Contacts of corners and faces that are active in the initial state (docs/theory.md, "Contact geometry").

The rules of :mod:`fsm_dyn.simulation.features`, for the one state in which a run starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.runtime.abi import SAME_ROW


def active_features(
    contacts: Sequence[ContactInfo],
    terms: Mapping[str, Array],
    speeds: Array,
    closed: Sequence[int],
    touching: float,
) -> set[int]:
    """Return which of the contacts ``closed`` are active.

    Parameters
    ----------
    terms : mapping
        The terms at the state, of the shapes stated in
        :class:`fsm_dyn.modes.unconstrained_system.UnconstrainedSystem`.
    speeds : ndarray, shape (n_rows,)
        ``A u + b`` of all rows, times the mechanism's own unit of time (m).
    closed : sequence of int
        Numbers of the contacts that touch, corners on faces among them.
    touching : float
        A gap or speed below this is zero (m).
    """
    rates = {k: float(speeds[contacts[k].normal_row]) for k in closed}
    ends = [k for k in closed if terms["margin_slope"][k] and abs(terms["reach"][k]) <= touching]
    corners = {k: _corners(contacts, terms, k, touching) for k in ends}
    active = [
        k for k in closed
        if k not in ends or all(rates[j] <= rates[k] + touching for j in ends if corners[j] == corners[k])
    ]  # fmt: skip
    rivals = {
        k: [j for j in ends if corners[j] == corners[k] and not _same_place(contacts, terms, j, k, touching)]
        for k in ends
    }
    chosen: list[int] = []
    for k in sorted(active, key=lambda k: bool(rivals.get(k))):  # what has no choice stands for its place
        if not any(_same_place(contacts, terms, k, j, touching) for j in chosen):
            chosen.append(k)
    for k in [k for k in chosen if k in ends]:
        others = [m for m in chosen if m != k and not (m in ends and corners[m] == corners[k])]
        if any(_same_place(contacts, terms, m, j, touching) for j in rivals[k] for m in others):
            chosen.remove(k)  # another contact keeps one of the corners' pairs: that is enough
    kept = list(chosen)
    for i in chosen:
        others = [j for j in kept if j != i and _exchangeable(contacts, i, j)]
        if any(0.0 < _between(contacts, terms, i, j, k) < 1.0 for j in others for k in others if j < k):
            kept.remove(i)
    return set(kept)


def _exchangeable(contacts: Sequence[ContactInfo], j: int, k: int) -> bool:
    """Whether of two contacts one may keep the gap of the other; their friction may differ."""
    one, other = contacts[j], contacts[k]
    flags = [(c.kind, c.gated, c.poisson, c.bounded_face, c.bilateral, c.in_space) for c in (one, other)]
    return one.ends[0] >= 0 <= other.ends[0] and flags[0] == flags[1]


def _same_place(contacts: Sequence[ContactInfo], terms: Mapping[str, Array], j: int, k: int, touching: float) -> bool:
    """Whether two contacts keep the same gap at the same place: of one corner, or of corners that coincide."""
    meets = _corners(contacts, terms, j, touching) & _corners(contacts, terms, k, touching)
    return bool(meets) and _exchangeable(contacts, j, k) and _between(contacts, terms, j, k, k) == 0.0


def _corners(contacts: Sequence[ContactInfo], terms: Mapping[str, Array], k: int, touching: float) -> frozenset[int]:
    """The corner of a contact, and at an end of its face the one in which it ends."""
    corner, ahead, behind = contacts[k].ends
    if not terms["margin_slope"][k] or abs(terms["reach"][k]) > touching:
        return frozenset((corner,))
    return frozenset((corner, ahead if terms["margin_slope"][k] > 0.0 else behind))


def _between(contacts: Sequence[ContactInfo], terms: Mapping[str, Array], i: int, j: int, k: int) -> float:
    """Return where contact ``i`` lies between ``j`` (0) and ``k`` (1) on one line, NaN where it lies on none."""
    n_u = terms["M"].shape[-1]
    mass = np.diagonal(terms["M"])
    scale = np.where(mass > 0.0, 1.0 / np.sqrt(np.where(mass > 0.0, mass, 1.0)), 1.0)
    a, b, c = (terms["A"][contacts[m].normal_row, :n_u] * scale for m in (i, j, k))
    step = c - b
    apart, size = float((step * step).sum()), float((a * a).sum())
    s = float((step * (a - b)).sum()) / apart if apart > SAME_ROW**2 * size else 0.0
    off = a - (1.0 - s) * b - s * c
    return s if float((off * off).sum()) <= SAME_ROW**2 * size else float("nan")
