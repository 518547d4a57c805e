"""Pairs of shapes in a run: when they first came near, when they touched, how near they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fsm_dyn.laws import FREE
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.contact_events import event_times
from fsm_dyn.results.record import RunModel
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.transitions import Transition
from fsm_dyn.simulation.tolerances import Tolerances

BoolArray = npt.NDArray[np.bool_]

_AT_ONCE = 2**20  # gaps evaluated together
_BEHIND = 10.0 * (Tolerances().scaled().gap or 0.0)  # a gap below this is no longer one (m)
_CLOSES = "closes"  # the event of model files


@dataclass(frozen=True)
class Encounter:
    """Two shapes of a contact in a run.

    Attributes
    ----------
    pair : str
        Entry of the model, ``a_b`` for one that ``between: all`` stands for.
    near : float or None
        Time of the first row in which the shapes were within the distance asked for, s; None if they never were.
    touched : float or None
        Time at which they first came to touch, s: 0 or later; None if they never did.
    count : int
        How often they came to touch.
    least : float
        Smallest gap over the rows of the run, m.  Of polygons it is the largest gap of a corner to all faces, which
        near another corner is less than the distance.
    least_at : float
        Its time, s.
    """

    pair: str
    near: float | None
    touched: float | None
    count: int
    least: float
    least_at: float


def encounters(
    model: RunModel, rows: Samples, transitions: Sequence[Transition], near: float = 0.0
) -> tuple[Encounter, ...]:
    """Return what became of all pairs of shapes of a run, those that touched first, in this order, then the nearest.

    Parameters
    ----------
    model : RunModel
    rows : Samples
        Of the run.
    transitions : sequence of Transition
        Of the run, in order.
    near : float
        Gap up to which two shapes are near, m.
    """
    names = [name for name, members in model.contact_entries.items() if members]
    gaps = _gaps(model, rows, names)
    found = []
    for name, gap in zip(names, gaps.T, strict=True):
        times = _touches(model, rows, transitions, name)
        within = np.flatnonzero(gap <= near)
        least = int(np.argmin(gap))
        found.append(
            Encounter(
                name,
                float(rows.t[within[0]]) if len(within) else None,
                float(times[0]) if len(times) else None,
                len(times),
                float(gap[least]),
                float(rows.t[least]),
            )
        )
    return tuple(sorted(found, key=lambda item: (np.inf if item.touched is None else item.touched, item.least)))


def touched_pairs(model: RunModel, transitions: Sequence[Transition]) -> dict[str, FloatArray]:
    """Return when the pairs of shapes came to touch that did, s, in the order in which they first did."""
    states = {name: np.array(chart.states) for name, chart in zip(model.modes, model.charts, strict=True)}
    names = {name: None for item in transitions for name in item.impulse}
    for source, target in dict.fromkeys((item.source, item.target) for item in transitions):
        names |= dict.fromkeys(model.contacts[k].name for k in np.flatnonzero(states[source] != states[target]))
    owner = {member: pair for pair, members in model.contact_entries.items() for member in members}
    pairs = dict.fromkeys(owner[name] for name in names if name in owner)
    times = {pair: event_times(model, transitions, model.contact_entries[pair], _CLOSES) for pair in pairs}
    return dict(sorted(((pair, at) for pair, at in times.items() if len(at)), key=lambda item: (item[1][0], item[0])))


def _touches(model: RunModel, rows: Samples, transitions: Sequence[Transition], name: str) -> list[float]:
    """Return when a pair came to touch, its start included, s."""
    members = model.contact_entries[name]
    numbers = [k for k, contact in enumerate(model.contacts) if contact.name in members]
    start = any(model.charts[int(rows.mode[0])].states[k] for k in numbers)
    return [*([float(rows.t[0])] if start else []), *event_times(model, transitions, members, _CLOSES).tolist()]


def _gaps(model: RunModel, rows: Samples, names: Sequence[str]) -> FloatArray:
    """Return the gap of each pair in each row, shape (n_rows, n_pairs), m; infinite where no feature faces another."""
    numbers = {contact.name: k for k, contact in enumerate(model.contacts)}
    members = [[numbers[name] for name in model.contact_entries[pair]] for pair in names]
    states = np.array([chart.states for chart in model.charts])
    gaps = np.full((len(rows.t), len(names)), np.inf)
    step = max(1, _AT_ONCE // max(1, len(model.rows)))
    for first in range(0, len(rows.t), step):
        part = slice(first, first + step)
        terms = model.terms.evaluate(
            rows.t[part], rows.x[part], rows.context[part], only={"residual": None, "reach": None}
        )
        for column, own in enumerate(members):
            closed = states[rows.mode[part]][:, own] != FREE
            gaps[part, column] = _gap_of_pair(model.contacts, own, terms["residual"], terms["reach"], closed)
    return gaps


def _gap_of_pair(
    contacts: Sequence[ContactInfo], own: Sequence[int], residual: FloatArray, reach: FloatArray, closed: BoolArray
) -> FloatArray:
    """Return the smallest gap of features that face each other; ``closed`` (n, len(own)): the contact is not open."""
    corners: dict[int, FloatArray] = {}
    for column, k in enumerate(own):
        gap = residual[:, contacts[k].normal_row]
        if contacts[k].outlined:  # the distance of a corner from a convex polygon is at least the largest of these
            first = contacts[k].outline
            corners[first] = np.maximum(corners.get(first, gap), gap)
        else:
            # behind a face whose contact is open there is another face, or nothing
            faces = (reach[:, k] >= 0.0) & ((gap >= -_BEHIND) | closed[:, column])
            corners[-1 - k] = np.where(faces, gap, np.inf)
    smallest: FloatArray = np.min(list(corners.values()), axis=0)
    return smallest
