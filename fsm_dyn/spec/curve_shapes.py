"""Curves as numbers: places by a formula, and the periodic spline through points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fsm_dyn.expressions import Text
from fsm_dyn.spec.evaluate import ParameterValue, evaluate
from fsm_dyn.spec.model import PARAMETER, POLAR

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

TURN = 2.0 * math.pi


def formula_at(formula: tuple[Text, ...], angle: float, values: Mapping[str, ParameterValue]) -> tuple[float, float]:
    """Return the place of a curve at a value of its parameter (rad), in its frame, m."""
    if len(formula) == 1:
        r = evaluate(formula[0], {**values, POLAR: angle})
        return r * math.cos(angle), r * math.sin(angle)
    x, y = (evaluate(text, {**values, PARAMETER: angle}) for text in formula)
    return x, y


def periodic_spline(places: Sequence[Sequence[float]] | npt.NDArray[np.float64]) -> CubicSpline:
    """Return the periodic cubic spline through places (m), its parameter in proportion to the chords, over a turn."""
    from scipy.interpolate import CubicSpline  # only models with splines wait for it

    closed = np.array([*places, places[0]], dtype=np.float64)
    chords = np.hypot(*np.diff(closed, axis=0).T)
    knots = np.concatenate([[0.0], np.cumsum(chords)]) * TURN / chords.sum()
    knots[-1] = TURN
    return CubicSpline(knots, closed, bc_type="periodic")
