"""How all figures look: one palette that colour-blind readers can tell apart, one set of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fsm_dyn.errors import InputError

# Paul Tol, "Colour schemes", SRON technical note 2021: "bright" for lines, "light" for areas behind them.
LINES = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#CCBB44", "#66CCEE", "#777777")
AREAS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#44BB99", "#99DDFF", "#BBCC33", "#AAAA00", "#DDDDDD")
INK = "#222222"
SOFT = "#5A5A5A"
FAINT = "#8A8A8A"

FORMATS = ("png", "svg", "pdf")

# Any: Matplotlib types the keys as a long list of literals.
_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib, so a picture looks the same everywhere
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "round",
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a user's text is a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.direction": "out",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "fsm_dyn",  # the same picture gives the same file
}


@contextmanager
def settings() -> Iterator[None]:
    """Apply the look inside the block and leave the user's own settings alone."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of the given size in inches that belongs to no window."""
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def mode_colours(names: Sequence[str]) -> dict[str, str]:
    """Give every mode the colour of its band and of its node, the same in all pictures of one model."""
    return {name: AREAS[i % len(AREAS)] for i, name in enumerate(dict.fromkeys(names))}


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure in the format of the path's suffix and return the path.

    Raises
    ------
    InputError
        If the suffix is not one of :data:`FORMATS`.
    """
    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InputError(
            f"a figure cannot be written as '{target.name}'",
            found=target.suffix or "no suffix",
            allowed=", ".join(f".{name}" for name in FORMATS),
        )
    # Without a date the same run writes the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with settings():
        figure.savefig(target, dpi=160, metadata=metadata)
    return target
