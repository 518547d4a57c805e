"""Forces in the connections of a finished run for the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from fsm_dyn.core.arrays import FloatArray, IntArray
from fsm_dyn.page.story import instants
from fsm_dyn.run.pin_peaks import words_of
from fsm_dyn.run.pins import Pin
from fsm_dyn.run.run_timeline import merged_samples
from fsm_dyn.run.trajectory import Trajectory

MOST_VALUES: Final = 24_000  # instants times connections
LEAST_INSTANTS: Final = 400
MOST_IMPULSES: Final = 60  # of a connection, the largest
_SMALL: Final = 1e-9  # part of the largest force of the run below which one is rounding


def loads_payload(trajectory: Trajectory, flat: FloatArray | None, packed: Callable[[FloatArray, str], str]) -> Any:
    """Return the payload of the connections of a run that have a place, without its contacts.

    Parameters
    ----------
    trajectory : Trajectory
    flat : ndarray, shape (2, 3), or None
        Projection from N to the page; None: vectors in N, which the page projects itself.
    packed : callable
        Returns an array of any shape as base 64.

    Returns
    -------
    dict
        ``times`` (s) of the instants; of each connection ``place`` (m) and ``force`` (N, of the parent on the child)
        with ``axes`` numbers an instant, ``size`` (N); ``peak``, with its time: the largest at all rows and instants;
        ``impulses``: times and sizes (N·s) of rigid impacts.
    """
    samples = merged_samples(trajectory.rows, trajectory.sample(instants(trajectory)))
    pins = [pin for pin in samples.pins.values() if pin.info.kind != "contact" and np.isfinite(pin.at).all()]
    largest = max((float(pin.magnitude.max(initial=0.0)) for pin in pins), default=0.0)
    chosen = _chosen(len(samples.t), len(pins))
    impacts = [item for item in trajectory.transitions if item.impulse]

    def seen(vectors: FloatArray) -> str:
        return packed((vectors if flat is None else vectors @ flat.T)[chosen], "<f4")

    def payload(pin: Pin) -> dict[str, Any]:
        top = int(np.argmax(pin.magnitude))
        sizes = np.array([np.linalg.norm(item.pin_impulse[pin.info.name][:3]) for item in impacts])
        hits = np.sort(np.argsort(-sizes, kind="stable")[:MOST_IMPULSES])
        least = _SMALL * float(sizes.max(initial=0.0))
        return {
            "name": pin.info.name,
            "words": words_of(trajectory.reading, pin.info),
            "place": seen(pin.at),
            "force": seen(pin.force),
            "size": packed(pin.magnitude[chosen], "<f4"),
            "peak": [float(pin.magnitude[top]), float(samples.t[top])],
            "impulses": [[impacts[k].time, float(sizes[k])] for k in hits.tolist() if sizes[k] > least],
            "determined": bool(pin.determined.all()),
        }

    return {
        "axes": 3 if flat is None else 2,
        "least": _SMALL * largest,
        "times": packed(samples.t[chosen], "<f8"),
        "pins": [payload(pin) for pin in pins],
    }


def _chosen(instants_count: int, pins_count: int) -> IntArray:
    """Return the numbers of the instants sent: all, or of too many evenly some, with the ends."""
    most = max(LEAST_INSTANTS, MOST_VALUES // max(pins_count, 1))
    return np.unique(np.linspace(0, instants_count - 1, min(instants_count, most)).round().astype(np.int64))
