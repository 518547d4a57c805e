"""Palette of all figures (Paul Tol), distinct for colour-blind readers."""

from __future__ import annotations

from collections.abc import Sequence

# Paul Tol, "Colour schemes", SRON technical note 2021: "bright" for lines, "light" for areas behind them.
LINES = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#CCBB44", "#66CCEE", "#777777")
AREAS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#44BB99", "#99DDFF", "#BBCC33", "#AAAA00", "#DDDDDD")
INK = "#222222"
SOFT = "#5A5A5A"
FAINT = "#8A8A8A"
FORCE = "#C2342B"  # contact forces, as on the page
GROUND = "#ECEAE4"  # planes in space
FONT = "DejaVu Sans"  # comes with Matplotlib, so a picture looks the same everywhere


def mode_colours(names: Sequence[str]) -> dict[str, str]:
    """Give every mode the colour of its band and of its node, the same in all pictures of one model.

    Parameters
    ----------
    names : Sequence[str]
        Of the modes, in the order of the graph.

    Returns
    -------
    dict of str to str
        Colours as ``#RRGGBB``.
    """
    return {name: AREAS[i % len(AREAS)] for i, name in enumerate(dict.fromkeys(names))}
