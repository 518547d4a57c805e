"""Fills of phases: eight colours, each plain, with lines and with dots, the same in all pictures and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# CIEDE2000 between any two is 12 or more in normal, protan, deutan and tritan vision (Machado et al. 2009).
FILLS: Final[Mapping[str, str]] = {
    "grey": "#C2D0B7",
    "blue": "#5FB0D6",
    "orange": "#E89C4C",
    "yellow": "#FFEC84",
    "red": "#EE536B",
    "green": "#84A190",
    "cyan": "#AEE4FE",
    "purple": "#9373FF",
}
TEXTURES: Final = ("", "lines", "dots")
_USUAL: Final = ("blue", "orange", "yellow", "green", "red", "cyan", "purple")


@dataclass(frozen=True)
class PhaseFill:
    """The fill of a phase: colour as ``#RRGGBB``, texture (empty: plain), and a mark of reused fills."""

    colour: str
    texture: str = ""
    mark: str = ""


def phase_fills(colours: Mapping[str, str]) -> dict[str, PhaseFill]:
    """Return the fill of every phase by its name.

    Parameters
    ----------
    colours : mapping of str to str
        In the order of the phases their colours, keys of :data:`FILLS`; empty: one not chosen by any phase.

    Returns
    -------
    dict of str to PhaseFill
        A reused colour comes with another texture, a reused texture with a number.
    """
    chosen = {colour for colour in colours.values() if colour}
    free = [name for name in _USUAL if name not in chosen] or list(_USUAL)
    taken: dict[str, int] = {}
    found, number = {}, 0
    for name, given in colours.items():
        colour = given
        if not colour:
            colour = free[number % len(free)]
            number += 1
        used = taken.get(colour, 0)
        taken[colour] = used + 1
        again = used // len(TEXTURES)
        found[name] = PhaseFill(FILLS[colour], TEXTURES[used % len(TEXTURES)], f"{again + 1}" if again else "")
    return found
