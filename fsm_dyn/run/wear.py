"""Wear of connections over a run, by Archard's law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsm_dyn.core.arrays import BoolArray, FloatArray, IntArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.run.energy import POINTS, gauss_points

if TYPE_CHECKING:
    from fsm_dyn.language.pins import PinEntry
    from fsm_dyn.run.samples import SampleBetween, Samples


@dataclass(frozen=True)
class PinWear:
    """Wear of a connection up to every row of a run, arrays of shape (n,).

    Attributes
    ----------
    sliding : ndarray
        Distance slid, m.
    work : ndarray
        Integral of the force across the sliding over that distance, N m.
    depth : ndarray
        Depth worn off, m.
    """

    sliding: FloatArray
    work: FloatArray
    depth: FloatArray


def wear_of(rows: Samples, starts: BoolArray, between: SampleBetween) -> Mapping[str, PinWear]:
    """Return the wear of the connections with the key ``wear``, by name.

    Archard (1953): the volume worn off is proportional to force and distance, ``depth = rate * work / area``. Forces
    are integrated by Gauss and Legendre within the steps; rigid impacts do not slide.

    Parameters
    ----------
    rows : Samples
        The recorded rows.
    starts : ndarray of bool, shape (n,)
        Which rows begin an interval of the run; no step leads to them.
    between : SampleBetween

    Raises
    ------
    InputError
        The run was read from a file without its model.
    """
    automaton = rows.model.automaton
    if automaton is None:
        raise InputError("wear needs the model of the run", found="a run without its model")
    entries = [entry for entry in automaton.mechanism.pins.values() if entry.wear is not None]
    if not entries:
        return {}
    ends = np.flatnonzero(~starts)
    h = rows.t[ends] - rows.t[ends - 1]
    places, parts = gauss_points(POINTS)
    times = rows.t[ends - 1, None] + h[:, None] * (0.5 * (places + 1.0))
    inner = between(times.ravel(), np.repeat(ends - 1, POINTS))
    return {str(entry.name): _wear(entry, rows, inner, ends, h[:, None] * (0.5 * parts)) for entry in entries}


def _wear(entry: PinEntry, rows: Samples, inner: Samples, ends: IntArray, weights: FloatArray) -> PinWear:
    assert entry.wear is not None
    rate, area, radius = (
        0.0 if text is None else float(evaluate_expression(text, rows.model.values))
        for text in (entry.wear.rate, entry.wear.area, entry.wear.radius)
    )

    def integral(rates: FloatArray) -> FloatArray:
        added = np.zeros(len(rows))
        added[ends] = np.einsum("sk,sk->s", weights, rates.reshape(weights.shape))
        return np.cumsum(added)

    sliding, work = map(integral, inner.pins[entry.name].rubbing(radius))
    return PinWear(sliding, work, rate / area * work)
