"""Z-width: largest passive stiffness over the rate of a loop (docs/theory.md, "Passivity")."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from fsm_dyn.graphics import palette
from fsm_dyn.plot import style

FloatArray = npt.NDArray[np.float64]


def z_width(
    title: str,
    rate: FloatArray,
    curves: Mapping[str, FloatArray],
    quantised: float | None = None,
    chosen: tuple[float, float] | None = None,
) -> Figure:
    """Draw passive stiffnesses of a device over the rate of the loop.

    Parameters
    ----------
    title : str
    rate : ndarray, shape (k,)
        Hz.
    curves : mapping of str to ndarray, shape (k,)
        N/m, by what bounds them.
    quantised : float, optional
        What friction and resolution allow at any rate, N/m.
    chosen : (float, float), optional
        Rate (Hz) and stiffness (N/m) that were chosen.

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
