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
    varied: tuple[str, Sequence[float | str]],
    times: FloatArray,
    curves: Mapping[str, Sequence[FloatArray]],
    units: Mapping[str, str],
    extremes: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> Figure:
    """Draw a study.

    Parameters
    ----------
    title : str
    varied : (str, sequence of float or str)
        What the runs are coloured by, and its value in each; texts are placed in their order.
    times : ndarray, shape (n,)
        s.
    curves : mapping
        For each quantity one array, shape (n,), per run, NaN where it had ended.
    units : mapping of str to str
    extremes : mapping, optional
        For each quantity its least and greatest value in each run; by default those of the curves, whose times are few.

    Returns
    -------
    matplotlib.figure.Figure
    """
    name, given = varied
    words = list(dict.fromkeys(map(str, given))) if any(isinstance(value, str) for value in given) else []
    values = [float(words.index(str(value))) if words else float(value) for value in given]
    low, high = min(values), max(values)
    largest = max(abs(low), abs(high))
    factor, unit = (1.0, "") if words else style.prefixed(units.get(name, ""), largest)
    unit = "" if unit == "1" else unit
    points = [factor * value for value in values]
    ends_of_range = (words[0], words[-1]) if words else (f"{factor * low:.4g}", f"{factor * high:.4g} {unit}".strip())
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
            both = extremes[quantity] if extremes is not None else [_extremes(curve) for curve in curves[quantity]]
            for number, axes in enumerate(row[1:]):
                ends = [scale * pair[number] for pair in both]
                axes.plot(points, ends, "o", color=palette.LINES[0], ms=4)
                axes.locator_params(nbins=4)
                middle, spread = float(np.nanmean(ends)), float(np.nanmax(ends) - np.nanmin(ends))
                if spread <= _SAME * max(abs(middle), whole):  # rounding is no dependence
                    room = 0.1 * (max(abs(middle), whole) or 1.0)
                    axes.set_ylim(middle - room, middle + room)
                style.plain_ticks(axes.yaxis, max(np.abs(axes.get_ylim())))
                if words:
                    axes.set_xticks(range(len(words)), words)
                else:
                    style.plain_ticks(axes.xaxis, factor * largest)
            for axes in row:
                axes.grid(color="#EEEEEE", lw=0.8)
        panels[-1, 0].set_xlabel("time, s")
        for column, heading in ((1, "least"), (2, "greatest")):
            panels[-1, column].set_xlabel(style.labelled(name, unit))
            panels[0, column].set_title(heading, fontsize=8.5, color=palette.SOFT)
        title_of_curves = "{} from {} (dark) to {} (light)".format(name, *ends_of_range)
        panels[0, 0].set_title(title_of_curves, fontsize=8.5, color=palette.SOFT)
        picture.suptitle(title, x=0.02, ha="left", fontweight="bold")
        picture.tight_layout()
    return picture


def _extremes(curve: FloatArray) -> tuple[float, float]:
    if not np.isfinite(curve).any():
        return np.nan, np.nan
    return float(np.nanmin(curve)), float(np.nanmax(curve))
