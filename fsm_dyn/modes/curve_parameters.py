"""Curve parameters: position of a contact on its curve as a function of the other coordinates.

They are coordinates without given values: initially they are found by a search over the whole curve, in a run they
follow (docs/theory.md, "Contact geometry").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fsm_dyn.modes.elimination import Array
from fsm_dyn.programs import Program

LOOKS = 256  # places of the curve that are looked at
STEPS = 60
TURN = 2.0 * np.pi

Follow = Callable[[Array], Array]


def curve_parameter_solver(geometry: Program, indices: Sequence[int], t: float, context: Array) -> Follow:
    """Return the function that puts these parameters of a configuration ``q`` where they belong.

    Parameters
    ----------
    geometry : Program
        Gives ``measure``, which is least at the place of contact, and its derivatives ``slope`` and ``bend``.
    indices : sequence of int
        Of the curve parameters in q.
    t : float
        Time (s).
    context : ndarray, shape (n_c,)

    Returns
    -------
    function
        Of a configuration, shape (n_q,), in the coordinates' units; it returns another of the same shape.
    """
    layout, places = geometry.layout, list(indices)
    if not places:
        return lambda q: q

    def look(q: Array) -> dict[str, Array]:
        x = np.zeros((len(q), layout.n_x))
        x[:, : len(layout.q)] = q
        return geometry.evaluate(t, x, np.tile(context, (len(q), 1)))

    def solved(q: Array) -> Array:
        around = np.tile(q, (LOOKS, 1))
        around[:, places] = np.linspace(0.0, TURN, LOOKS, endpoint=False)[:, None]
        with np.errstate(all="ignore"):
            xi = around[np.argmin(look(around)["measure"], axis=0), places]
        found = q.copy()
        for _ in range(STEPS):
            found[places] = xi
            values = look(found[None])
            step = values["slope"][0] / np.maximum(np.abs(values["bend"][0]), 1e-300)
            step = np.clip(step, -TURN / LOOKS, TURN / LOOKS)
            xi = xi - step
            if np.abs(step).max() <= 1e-15:
                break
        found[places] = xi
        return beyond(found)

    def beyond(found: Array) -> Array:
        """Where a place is farther from all that were looked at than short steps reach: beyond the ends of a piece."""
        values = look(found[None])
        for _ in range(STEPS):
            slope = values["slope"][0]
            step = slope / np.where(values["bend"][0] == 0.0, np.inf, values["bend"][0])
            trial = found.copy()
            trial[places] -= step
            after = look(trial[None])
            better = np.abs(after["slope"][0]) < np.abs(slope)
            if not better.any():
                break
            found[np.array(places)[better]] = trial[np.array(places)[better]]
            values = look(found[None])
        return found

    return solved
