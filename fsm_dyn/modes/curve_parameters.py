"""Curve parameters: position of a contact on its curve as a function of the other coordinates.

They are coordinates that nobody gives: at a start they are found by a look around the whole curve, in a run they
follow (docs/theory.md, "Contact geometry").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsm_dyn.modes.elimination import Array
from fsm_dyn.programs import Layout, Program

SUFFIX = ".xi"
LOOKS = 256  # places of the curve that are looked at
STEPS = 60
TURN = 2.0 * np.pi

Follow = Callable[[Array], Array]


def followers(layout: Layout) -> list[int]:
    """Return the indices in q of the parameters of contacts on curves."""
    return [i for i, name in enumerate(layout.q) if name.endswith(SUFFIX)]


def curve_parameter_solver(geometry: Program, t: float, context: Array) -> Follow:
    """Return the function that puts these parameters of a configuration ``q`` where they belong.

    Parameters
    ----------
    geometry : Program
        Gives ``measure``, which is least at the place of contact, and its derivatives ``slope`` and ``bend``.
    t : float
        Time (s).
    context : ndarray, shape (n_c,)
    """
    layout = geometry.layout
    places = followers(layout)
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
        return found

    return solved
