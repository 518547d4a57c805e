"""Which transition is possible: guards of a mode along its motion, if nothing else changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.run.explanation import event_text
from fsm_dyn.run.online import ModeEvaluator, OnlineFull
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.samples import Samples

STEPS: Final = 64  # of the horizon
_HALVINGS: Final = 50


@dataclass(frozen=True)
class Prospect:
    """A guard of the present mode, and the time at which it would fire if nothing else changed.

    Attributes
    ----------
    event, guard : str
        The event, and the guard as a text.
    margin : float
        Present value of the guard, SI: it fires at zero.
    slope : float
        Its present rate, 1/s of its unit.
    time : float or None
        Time of the event, s; None: not within the horizon.
    """

    event: str
    guard: str
    margin: float
    slope: float
    time: float | None


def prospects(model: RunModel, at: Samples, horizon: float) -> tuple[Prospect, ...]:
    """Return the guards of one row's mode in the order of the times at which they would fire.

    The motion of the mode continues beyond every other guard; inputs keep their present rates. Guards that are below
    zero wait until they have risen, as in a run. A gap is listed where its contact could not close, too: beyond the end
    of a face, or while its ``closes_if`` is false.

    Parameters
    ----------
    model : RunModel
        The modes of the run.
    at : Samples
        A single row.
    horizon : float
        Time looked ahead, s.

    Raises
    ------
    InputError
        The horizon is not positive.
    """
    if not 0.0 < horizon < np.inf:
        raise InputError("the horizon of a look ahead", found=f"{horizon:g} s", allowed="a time above 0 s")
    chart = model.charts[int(at.mode[0])]
    start, x, c = float(at.t[0]), at.x[0].copy(), at.context[0].copy()
    layout, h = model.layout, horizon / STEPS

    full = chart.full
    evaluate = ModeEvaluator(full) if isinstance(full, OnlineFull) else full.evaluate

    def mode(t: float, state: FloatArray) -> Mapping[str, FloatArray]:
        c[layout.w_slice] = at.context[0][layout.w_slice] + (t - start) * at.context[0][layout.w_rate_slice]
        return evaluate(t, state, c)

    found = mode(start, x)
    values, slopes = found["guards"], found["slopes"]
    margins, rising = values, slopes
    times: list[float | None] = [None] * len(values)
    for k in range(STEPS):
        t = start + k * h
        x = _step(mode, t, x, h)
        if not np.isfinite(x).all():
            break
        found = mode(t + h, x)
        later, after = found["guards"], found["slopes"]
        for i in np.flatnonzero((values > 0.0) & (later <= 0.0)):
            if times[i] is None:
                times[i] = t + h * _zero(values[i], slopes[i] * h, later[i], after[i] * h)
        values, slopes = later, after
    listed = [
        Prospect(event_text(model, guard), guard.text, float(margins[i]), float(rising[i]), times[i])
        for i, guard in enumerate(chart.guards)
    ]
    return tuple(sorted(listed, key=lambda item: np.inf if item.time is None else item.time))


def _step(
    mode: Callable[[float, FloatArray], Mapping[str, FloatArray]], t: float, x: FloatArray, h: float
) -> FloatArray:
    """Take a step of the classical Runge-Kutta method."""
    first = mode(t, x)["x_dot"]
    second = mode(t + h / 2, x + h / 2 * first)["x_dot"]
    third = mode(t + h / 2, x + h / 2 * second)["x_dot"]
    fourth = mode(t + h, x + h * third)["x_dot"]
    return x + h / 6 * (first + 2 * second + 2 * third + fourth)


def _zero(a: float, da: float, b: float, db: float) -> float:
    """Return the first zero of the cubic with values a > 0 and b <= 0 and these slopes at 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        s = 0.5 * (low + high)
        value = a * (1 + 2 * s) * (1 - s) ** 2 + da * s * (1 - s) ** 2 + b * s**2 * (3 - 2 * s) - db * s**2 * (1 - s)
        low, high = (s, high) if value > 0.0 else (low, s)
    return high
