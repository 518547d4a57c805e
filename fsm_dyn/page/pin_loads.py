"""Forces in the connections of a run for the page: of a finished one over its time, of a live one as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fsm_dyn.core.arrays import BoolArray, FloatArray, IntArray
from fsm_dyn.live.mode_pool import PooledExecutable
from fsm_dyn.page.scene_drawing import RowEvaluator
from fsm_dyn.run.pin_peaks import words_of
from fsm_dyn.run.pins import Pin, Pins
from fsm_dyn.run.record import RunModel, run_model
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.words import Words

MOST_VALUES: Final = 24_000  # instants times connections
LEAST_INSTANTS: Final = 400
MOST_IMPULSES: Final = 60  # of a connection, the largest
_SMALL: Final = 1e-9  # part of the largest force of the run below which one is rounding


@dataclass(frozen=True)
class Impact:
    """Impulses of a transition: its time on the page (s), and the impulse of each connection, shape (6,), SI."""

    time: float
    impulse: Mapping[str, FloatArray]


def placed_pins(pins: Pins) -> list[Pin]:
    """Return the connections that have a place, without contacts."""
    return [pin for pin in pins.values() if pin.info.kind != "contact" and np.isfinite(pin.at).all()]


def loads_payload(
    samples: Samples,
    clock: FloatArray,
    impacts: Sequence[Impact],
    words: Words,
    flat: FloatArray | None,
    packed: Callable[[FloatArray, str], str],
) -> Any:
    """Return the payload of the connections of a finished run that have a place, without its contacts.

    Parameters
    ----------
    samples : Samples
        In order.
    clock : ndarray, shape (n,)
        Their times on the page, s.
    impacts : sequence of Impact
    words : Words
    flat : ndarray, shape (2, 3), or None
        Projection from N to the page; None: vectors in N, which the page projects itself.
    packed : callable
        Returns an array of any shape as base 64.

    Returns
    -------
    dict
        ``times`` (s) of the instants; of each connection ``place`` (m) and ``force`` (N, of the parent on the child)
        with ``axes`` numbers an instant, ``size`` (N); ``peak``, with its time: the largest of all samples;
        ``impulses``: times and sizes (N·s) of rigid impacts.
    """
    pins = placed_pins(samples.pins)
    largest = max((float(pin.magnitude.max(initial=0.0)) for pin in pins), default=0.0)
    chosen = _chosen(len(clock), len(pins))

    def seen(vectors: FloatArray) -> str:
        return packed((vectors if flat is None else vectors @ flat.T)[chosen], "<f4")

    def payload(pin: Pin) -> dict[str, Any]:
        top = int(np.argmax(pin.magnitude))
        sizes = np.array([np.linalg.norm(item.impulse[pin.info.name][:3]) for item in impacts])
        hits = np.sort(np.argsort(-sizes, kind="stable")[:MOST_IMPULSES])
        least = _SMALL * float(sizes.max(initial=0.0))
        return {
            "name": pin.info.name,
            "words": words_of(words, pin.info),
            "place": seen(pin.at),
            "force": seen(pin.force),
            "size": packed(pin.magnitude[chosen], "<f4"),
            "peak": [float(pin.magnitude[top]), float(clock[top])],
            "impulses": [[impacts[k].time, float(sizes[k])] for k in hits.tolist() if sizes[k] > least],
            "determined": bool(pin.determined.all()),
        }

    return {
        "axes": 3 if flat is None else 2,
        "least": _SMALL * largest,
        "times": packed(clock[chosen], "<f8"),
        "pins": [payload(pin) for pin in pins],
    }


def live_loads(samples: Samples, words: Words, flat: FloatArray | None) -> dict[str, Any]:
    """Return names and words of the connections of a live run that have a place; see :func:`live_forces`."""
    pins = placed_pins(samples.pins)
    return {
        "axes": 3 if flat is None else 2,
        "pins": [{"name": pin.info.name, "words": words_of(words, pin.info)} for pin in pins],
    }


def live_forces(sample: Samples, names: Sequence[str], flat: FloatArray | None) -> FloatArray:
    """Return the forces in connections at one row, as numbers for the page.

    Parameters
    ----------
    sample : Samples
        One row.
    names : sequence of str
        Of the connections.
    flat : ndarray, shape (2, 3), or None
        As for :func:`loads_payload`.

    Returns
    -------
    ndarray
        Of each connection ``axes`` numbers of its place (m) and of its force (N), the size of the force, and 1 if
        redundant supports share it.
    """
    pins = sample.pins
    numbers = [list(pins).index(name) for name in names]
    place, force = pins.table["place"][0, numbers], pins.table["wrench"][0, numbers, :3]
    shared: BoolArray = np.asarray(pins.undetermined[0, numbers].any(axis=1))
    seen = [vectors if flat is None else vectors @ flat.T for vectors in (place, force)]
    return np.hstack([*seen, np.linalg.norm(force, axis=1)[:, None], shared[:, None]]).ravel()


def _chosen(instants_count: int, pins_count: int) -> IntArray:
    """Return the numbers of the instants sent: all, or of too many evenly some, with the ends."""
    most = max(LEAST_INSTANTS, MOST_VALUES // max(pins_count, 1))
    return np.unique(np.linspace(0, instants_count - 1, min(instants_count, most)).round().astype(np.int64))


class RowSamples:
    """Rows of a live run as samples.

    Parameters
    ----------
    evaluator : RowEvaluator
        Of the run; these samples have separate kernels, so that another thread may ask for them.
    """

    def __init__(self, evaluator: RowEvaluator) -> None:
        self._evaluator = evaluator
        self._executable = PooledExecutable(evaluator.automaton, evaluator.start)
        self._models: dict[tuple[tuple[int, ...], ...], RunModel] = {}

    def start(self) -> Samples:
        """Return the row of the start, in the first mode."""
        x, c = self._evaluator.start
        return self.at([self._executable.automaton.modes[0].states], [0], np.zeros(1), x[None], c[None])

    def at(
        self,
        states: Sequence[tuple[int, ...]],
        mode: Sequence[int] | IntArray,
        t: FloatArray,
        x: FloatArray,
        c: FloatArray,
    ) -> Samples:
        """Return samples of rows.

        Parameters
        ----------
        states : sequence of tuple of int
            Contact states of the modes.
        mode : sequence of int
            Of each row, an index into ``states``.
        t, x, c : ndarrays, shapes (n,), (n, n_x) and (n, n_c)
            Times (s), states and contexts.
        """
        key = tuple(states)
        if key not in self._models:
            automaton = self._executable.automaton
            programs = [self._executable.mode_of(codes) for codes in key]
            names = [automaton.name_of(codes).name for codes in key]
            self._models[key] = run_model(
                automaton, names, programs, self._evaluator.parameters, self._evaluator.values
            )
        return Samples(self._models[key], t, x, np.asarray(mode, dtype=np.int64), c)
