"""Figure of a parameter study: quantities over time, a line per run, and extremes over the varied parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from fsm_dyn.graphics import palette
from fsm_dyn.plot import style

FloatArray = npt.NDArray[np.float64]
_MOST = 4  # quantities drawn
_SAME = 1e-6  # values that differ by less, relative, are one


def study(
    title: str,
    varied: tuple[str, Sequence[float]],
    times: FloatArray,
    curves: Mapping[str, Sequence[FloatArray]],
    units: Mapping[str, str],
) -> Figure:
    """Draw a study.

    Parameters
    ----------
    title : str
    varied : (str, sequence of float)
        The parameter by which the runs are coloured, and its value in each.
    times : ndarray, shape (n,)
        s.
    curves : mapping
        For each quantity one array, shape (n,), per run, NaN where it had ended.
    units : mapping of str to str

    Returns
    -------
    matplotlib.figure.Figure
    """
    name, values = varied
    low, high = min(values), max(values)
    largest = max(abs(low), abs(high))
    factor, unit = style.prefixed(units.get(name, ""), largest)
    points = [factor * value for value in values]
    colour = matplotlib.colormaps["viridis"]
    shown = list(curves)[:_MOST]
    with style.settings():
        picture = style.new_figure(9.6, 0.8 + 2.0 * len(shown))
        panels = picture.subplots(len(shown), 3, squeeze=False, width_ratios=(2, 1, 1), sharex="col")
        for row, quantity in zip(panels, shown, strict=True):
            peak = max((float(np.nanmax(np.abs(c))) for c in curves[quantity] if np.isfinite(c).any()), default=0.0)
            scale, scaled_unit = style.prefixed(units.get(quantity, ""), peak)
            drawn = [scale * curve for curve in curves[quantity]]
            for value, curve in zip(values, drawn, strict=True):
                share = (value - low) / (high - low) if high > low else 0.0
                row[0].plot(times, curve, color=colour(0.9 * share), lw=1.1)
            row[0].set_ylabel(style.labelled(quantity, scaled_unit))
            style.plain_ticks(row[0].yaxis, scale * peak)
            whole = float(np.nanmax(drawn) - np.nanmin(drawn))
            for extreme, axes in ((np.nanmin, row[1]), (np.nanmax, row[2])):
                ends = [extreme(curve) if np.isfinite(curve).any() else np.nan for curve in drawn]
                axes.plot(points, ends, "o", color=palette.LINES[0], ms=4)
                axes.locator_params(nbins=4)
                middle, spread = float(np.nanmean(ends)), float(np.nanmax(ends) - np.nanmin(ends))
                if spread <= _SAME * max(abs(middle), whole):  # rounding is no dependence
                    room = 0.1 * (max(abs(middle), whole) or 1.0)
                    axes.set_ylim(middle - room, middle + room)
                style.plain_ticks(axes.yaxis, max(np.abs(axes.get_ylim())))
                style.plain_ticks(axes.xaxis, factor * largest)
            for axes in row:
                axes.grid(color="#EEEEEE", lw=0.8)
        panels[-1, 0].set_xlabel("time, s")
        for column, words in ((1, "least"), (2, "greatest")):
            panels[-1, column].set_xlabel(style.labelled(name, unit))
            panels[0, column].set_title(words, fontsize=8.5, color=palette.SOFT)
        panels[0, 0].set_title(
            f"{name} from {factor * low:.4g} (dark) to {factor * high:.4g} {unit} (light)",
            fontsize=8.5,
            color=palette.SOFT,
        )
        picture.suptitle(title, x=0.02, ha="left", fontweight="bold")
        picture.tight_layout()
    return picture
