"""Figures of studies: lines of runs, yields, margins, maps of mode sequences, Z-width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.graph_layout import sequence_labels
from fsm_dyn.plot import style

# -- Figure of a parameter study -----------------------------------------------------------------------------
#
# Figure of a parameter study: quantities over time, a line per run, and extremes over the varied parameters.

_MOST = 4  # quantities drawn
_SAME = 1e-6  # values with a smaller relative difference are one


def study(
    title: str,
    varied: tuple[str, Sequence[float | str]],
    times: Floats,
    curves: Mapping[str, Sequence[Floats]],
    units: Mapping[str, str],
    extremes: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> Figure:
    """Draw a study.

    Parameters
    ----------
    title : str
    varied : (str, sequence of float or str)
        The parameter for the colours of runs, and its value in each; texts are placed in their order.
    times : ndarray, shape (n,)
        s.
    curves : mapping
        For each quantity one array, shape (n,), per run, NaN after its end.
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


def _extremes(curve: Floats) -> tuple[float, float]:
    if not np.isfinite(curve).any():
        return np.nan, np.nan
    return float(np.nanmin(curve)), float(np.nanmax(curve))


# -- Figures of runs with sampled parameters -----------------------------------------------------------------
#
# Figures of runs with sampled parameters: yields, sensitivities, margins, and maps of mode sequences.

MOST_SEQUENCES = len(palette.AREAS) - 1  # each with a colour; the last colour is for all others
_BINS = 40
_WIDE = 110  # characters of a sequence
_GRID = 240  # points of a map to each side
_MARKERS = {"met": ("o", palette.INK), "violated": ("x", palette.INK), "undecided": (".", palette.SOFT)}


def requirements(
    title: str,
    estimates: Mapping[str, tuple[float, float, float]],
    sensitivities: Mapping[str, Mapping[str, float]],
    margins: Mapping[str, Floats],
    units: Mapping[str, str],
) -> Figure:
    """Draw yields with their intervals, and for each requirement which parameters decide, and its margins.

    Parameters
    ----------
    estimates : mapping
        Yield and both ends of its interval, by requirement.
    sensitivities : mapping
        By requirement: the rank correlation of its margin with each parameter, the strongest first.
    margins : mapping of str to ndarray, shape (n,)
        By requirement; negative if violated, not finite without a margin.
    units : mapping of str to str
        Of the margins.
    """
    with style.settings():
        rows = len(sensitivities)
        picture = style.new_figure(9.6, 1.2 + 0.3 * len(estimates) + 2.0 * rows)
        heights = [0.5 + 0.3 * len(estimates), *[2.0] * rows]
        grid = picture.add_gridspec(1 + rows, 2, height_ratios=heights)
        _yields(picture.add_subplot(grid[0, :]), estimates)
        for row, (name, found) in enumerate(sensitivities.items(), start=1):
            _tornado(picture.add_subplot(grid[row, 0]), name, found)
            _margins(picture.add_subplot(grid[row, 1]), name, margins[name], units.get(name, ""))
        picture.suptitle(title, x=0.02, ha="left", fontweight="bold")
        picture.tight_layout()
    return picture


def sequence_map(
    title: str,
    across: tuple[str, Floats],
    up: tuple[str, Floats],
    sequences: Sequence[tuple[str, ...]],
    verdicts: Sequence[str] | None,
    units: Mapping[str, str],
    *,
    filled: bool = True,
) -> Figure:
    """Draw which modes runs visit over two parameters.

    Parameters
    ----------
    across, up : (str, ndarray of shape (n,))
        Names and values of the parameters.
    sequences : sequence of tuple of str
        The modes of each run, in order.
    verdicts : sequence of str, optional
        ``"met"``, ``"violated"`` or ``"undecided"``, of each run.
    units : mapping of str to str
    filled : bool
        Whether the plane has the colour of the nearest run; useful if only these two parameters vary.
    """
    frequent = [modes for modes, _ in Counter(sequences).most_common(MOST_SEQUENCES)]
    index = {modes: number for number, modes in enumerate(frequent)}
    numbers = np.array([index.get(modes, len(frequent)) for modes in sequences])
    colours = [*palette.AREAS[: len(frequent)], palette.AREAS[-1]]
    with style.settings():
        picture = style.new_figure(9.6, 4.8 + 0.2 * len(frequent))
        axes = picture.add_subplot()
        (name_x, x), (name_y, y) = across, up
        (x, unit_x), (y, unit_y) = _scaled(x, units.get(name_x, "")), _scaled(y, units.get(name_y, ""))
        if filled and np.ptp(x) and np.ptp(y):
            _fill(axes, x, y, numbers, colours)
        if verdicts is None:
            axes.scatter(x, y, s=9, marker="o", color=palette.INK, linewidths=0.7, clip_on=False)
        for verdict, (marker, colour) in _MARKERS.items() if verdicts is not None else ():
            chosen = np.array(verdicts) == verdict
            axes.scatter(x[chosen], y[chosen], s=12, marker=marker, color=colour, linewidths=0.7, clip_on=False)
        axes.set_xlabel(style.labelled(name_x, unit_x))
        axes.set_ylabel(style.labelled(name_y, unit_y))
        present = [verdict for verdict in _MARKERS if verdict in (verdicts or ())]
        entries = [axes.scatter([], [], s=16, marker=_MARKERS[v][0], color=_MARKERS[v][1], label=v) for v in present]
        labels = [*sequence_labels(frequent, _WIDE), "other sequences"]
        for number, text in enumerate(labels[: int(numbers.max()) + 1]):
            label = f"{int(np.sum(numbers == number))}×  {text}"
            entries.append(axes.scatter([], [], s=40, marker="s", color=colours[number], label=label))
        axes.legend(handles=entries, loc="upper left", bbox_to_anchor=(0.0, -0.14), fontsize=7.5)
        picture.suptitle(title, x=0.02, ha="left", fontweight="bold")
        picture.tight_layout()
    return picture


def _fill(axes: Axes, x: Floats, y: Floats, numbers: Integers, colours: Sequence[str]) -> None:
    """Colour the plane by the nearest run, distances measured in the ranges of the parameters."""
    from scipy.interpolate import NearestNDInterpolator  # other pictures do not wait for it

    nearest = NearestNDInterpolator(np.column_stack([x, y]), numbers, rescale=True)
    columns, rows = (np.linspace(values.min(), values.max(), _GRID) for values in (x, y))
    areas = nearest(*np.meshgrid(columns, rows))
    axes.pcolormesh(
        columns, rows, areas, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5, alpha=0.75,
        rasterized=True,
    )  # fmt: skip


def _scaled(values: Floats, unit: str) -> tuple[Floats, str]:
    """Return values in a unit with which they are numbers near one, and this unit; none without a unit."""
    factor, prefixed = style.prefixed("" if unit == "1" else unit, float(np.abs(values).max(initial=0.0)))
    return factor * values, prefixed


def _yields(axes: Axes, estimates: Mapping[str, tuple[float, float, float]]) -> None:
    for i, (value, lower, upper) in enumerate(estimates.values()):
        if np.isfinite(value):
            axes.barh(i, 100.0 * value, height=0.6, color=palette.AREAS[0])
        axes.plot([100.0 * lower, 100.0 * upper], [i, i], color=palette.INK, lw=1.2, marker="|", ms=7)
        text = f"{100.0 * value:.4g} %" if np.isfinite(value) else "undecided"
        axes.annotate(text, (1.01, i), xycoords=axes.get_yaxis_transform(), va="center", fontsize=8.5)
    axes.set_yticks(range(len(estimates)), [style.fitted(name, 1.6, 9.0) for name in estimates])
    axes.set_ylim(len(estimates) - 0.5, -0.5)
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("yield and 95 % interval, %")


def _tornado(axes: Axes, name: str, found: Mapping[str, float]) -> None:
    for i, value in enumerate(found.values()):
        shown = float(np.nan_to_num(value))
        axes.barh(i, shown, height=0.6, color=palette.LINES[0] if shown >= 0.0 else palette.LINES[1])
    axes.axvline(0.0, color=palette.INK, lw=0.7)
    axes.set_yticks(range(len(found)), [style.fitted(parameter, 1.2, 9.0) for parameter in found])
    axes.set_ylim(max(len(found), 1) - 0.5, -0.5)
    axes.set_xlim(-1.0, 1.0)
    axes.set_xlabel("rank correlation with the margin")
    axes.set_title(name, fontsize=9.0, loc="left")


def _margins(axes: Axes, name: str, margins: Floats, unit: str) -> None:
    finite, unit = _scaled(margins[np.isfinite(margins)], unit)
    axes.set_title(name, fontsize=9.0, loc="left")
    axes.set_xlabel(style.labelled("margin", unit))
    axes.set_ylabel("runs")
    if not finite.size:
        axes.annotate("no run has a margin", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    width = max(np.ptp(finite), _SAME * np.abs(finite).max(), np.finfo(np.float64).tiny) / _BINS
    edges = width * np.arange(np.floor(finite.min() / width), np.floor(finite.max() / width) + 2.0)  # 0 is among them
    edges[0], edges[-1] = min(edges[0], finite.min()), max(edges[-1], finite.max())
    for part, colour in ((finite[finite >= 0.0], palette.LINES[0]), (finite[finite < 0.0], palette.LINES[1])):
        axes.hist(part, bins=edges.tolist(), color=colour)
    axes.axvline(0.0, color=palette.INK, lw=0.7)
    axes.locator_params(axis="x", nbins=5)


# -- Z-width: largest passive stiffness over the rate of a loop (docs/theory.md, "Passivity") ----------------


def z_width(
    title: str,
    rate: Floats,
    curves: Mapping[str, Floats],
    quantised: float | None = None,
    chosen: tuple[float, float] | None = None,
) -> Figure:
    """Draw passive stiffnesses of a device over the rate of the loop.

    Parameters
    ----------
    rate : ndarray, shape (k,)
        Hz.
    curves : mapping of str to ndarray, shape (k,)
        N/m, by the kind of bound.
    quantised : float, optional
        Limit by friction and resolution at any rate, N/m.
    chosen : (float, float), optional
        Chosen rate (Hz) and stiffness (N/m).

    Returns
    -------
    matplotlib.figure.Figure
    """
    dashes = ("-", "-", "--", ":")
    with style.settings():
        picture = style.new_figure(6.4, 4.2)
        axes = picture.add_axes((0.12, 0.13, 0.83, 0.76))
        for i, (name, values) in enumerate(curves.items()):
            shown = np.where(values > 0.0, values, np.nan)
            axes.loglog(rate, shown, dashes[i % len(dashes)], color=palette.LINES[i], label=name)
        if quantised is not None and np.isfinite(quantised) and quantised > 0.0:
            axes.axhline(quantised, color=palette.FAINT, ls="-.", label="resolution and friction")
        if chosen is not None and chosen[1] > 0.0:
            axes.plot(*chosen, "o", color=palette.INK, ms=6, label="chosen", zorder=5)
        for line in (axes.xaxis, axes.yaxis):
            line.set_major_formatter(StrMethodFormatter("{x:g}"))
            line.set_minor_formatter(NullFormatter())
        axes.set_xlabel("rate of the loop, Hz")
        axes.set_ylabel("largest stiffness felt, N/m")
        axes.grid(color="#EEEEEE", lw=0.8, which="both")
        axes.legend(loc="lower right")
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return picture
