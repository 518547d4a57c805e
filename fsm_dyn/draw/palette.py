"""Colours of bodies, the same in all pictures and on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# One pale hue for each body, with its edge: fills of lightness 90, edges of lightness 39 (CIELAB), for names and
# outlines legible on white and on every fill.
BODIES: Final = (
    ("#CBE6FE", "#00649E"),
    ("#FCDDC5", "#844F1C"),
    ("#D1E9CD", "#2E682E"),
    ("#EFDCF9", "#734B8C"),
    ("#FDDADC", "#9A3C4C"),
    ("#B9ECEA", "#006C6C"),
    ("#EDE2C2", "#685C10"),
    ("#DCE1FE", "#3B5A9E"),
)
STEEL: Final = "#6E7781"  # the ground
STEEL_FILL: Final = "#E4E7EB"
SPRING: Final = "#2F3B47"
INPUT: Final = "#1F6FEB"
TEXT: Final = "#16191D"  # on fills of phases


def body_colours(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return fill and edge of every body, in the order of their declaration.

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    dict of str to (str, str)
        Colours as ``#RRGGBB``.
    """
    return {name: BODIES[i % len(BODIES)] for i, name in enumerate(names)}
