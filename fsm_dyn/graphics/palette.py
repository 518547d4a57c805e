"""Palette of all figures (Paul Tol), distinct for colour-blind readers."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Final

# Paul Tol, "Colour schemes", SRON technical note 2021: "bright" for lines, "light" for areas behind them.
LINES = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#CCBB44", "#66CCEE", "#777777")
AREAS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#44BB99", "#99DDFF", "#BBCC33", "#AAAA00", "#DDDDDD")
# of further modes: steps of hue and of lightness
_TURN: Final = 0.0618
_DARKER: Final = 0.12
_LEVELS: Final = 4
_LEAST_SATURATION: Final = 0.25
INK = "#222222"
SOFT = "#5A5A5A"
FAINT = "#8A8A8A"
FORCE = "#C2342B"  # contact forces, as on the page
GROUND = "#ECEAE4"  # planes in space
FONT = "DejaVu Sans"  # comes with Matplotlib, so a picture looks the same everywhere


def mode_colours(names: Sequence[str]) -> dict[str, str]:
    """Give every mode a separate colour, of its band and of its node, the same in all pictures of one model.

    Parameters
    ----------
    names : Sequence[str]
        Of the modes, in the order of the graph.

    Returns
    -------
    dict of str to str
        Colours as ``#RRGGBB``.
    """
    colours: dict[str, str] = {}
    taken: set[str] = set()
    for i, name in enumerate(dict.fromkeys(names)):
        colours[name] = _variant(AREAS[i % len(AREAS)], i // len(AREAS), taken)
        taken.add(colours[name])
    return colours


def _variant(colour: str, number: int, taken: set[str]) -> str:
    """Return a colour that is not taken: variant 0 is the colour, others have another hue and are darker."""
    if number == 0:
        return colour
    red, green, blue = (int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    hue, saturation = (hue + _TURN * number) % 1.0, max(saturation, _LEAST_SATURATION)
    darker = number
    while True:
        level = lightness * (1.0 - _DARKER * (darker % _LEVELS))
        parts = colorsys.hls_to_rgb((hue + _TURN * (darker // _LEVELS)) % 1.0, level, saturation)
        found = "#" + "".join(f"{round(255.0 * part):02X}" for part in parts)
        if found not in taken:
            return found
        darker += 1
