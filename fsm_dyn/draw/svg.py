"""SVG elements as text; the colours of all figures: of modes, bodies and phases; tables as text."""

from __future__ import annotations

import colorsys
import html
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fsm_dyn.core.records import dataclass

# -- Palette of all figures (Paul Tol), distinct for colour-blind readers ------------------------------------

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

    ``names``: of the modes, in the order of the graph. Result: colours as ``#RRGGBB``.
    """
    colours: dict[str, str] = {}
    taken: set[str] = set()
    for i, name in enumerate(dict.fromkeys(names)):
        colours[name] = _variant(AREAS[i % len(AREAS)], i // len(AREAS), taken)
        taken.add(colours[name])
    return colours


def _variant(colour: str, number: int, taken: set[str]) -> str:
    """Return a free colour: variant 0 is the colour, others have another hue and are darker."""
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


# -- SVG elements as text with escaping, and estimates of text widths ----------------------------------------

FAMILY = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
_EM = 0.58  # of the font's size: a letter of these fonts, on the average, and a little more
_BOLD = 1.14


def element(name: str, content: str | Iterable[str] = "", **attributes: object) -> str:
    """Return an element; ``content`` is markup already, attributes are escaped here.

    An underscore in an attribute's name stands for a hyphen, one at its end for nothing (``class_``).
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_plain(value))}"' for key, value in attributes.items()
    )
    inside = content if isinstance(content, str) else "".join(content)
    return f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>"


def text(words: str, x: float, y: float, size: float, anchor: str = "middle", **attributes: object) -> str:
    """Return a line of text, its middle at height ``y``, with escaping."""
    return element(
        "text",
        escaped(words),
        x=x,
        y=y + 0.35 * size,
        font_size=size,
        text_anchor=anchor,
        **{"fill": INK, **attributes},
    )


def escaped(words: str) -> str:
    """Return text escaped for markup; characters that XML does not allow become a box."""
    return html.escape("".join(c if _is_allowed(c) else "▯" for c in words), quote=False)


def picture(width: float, height: float, content: Iterable[str], label: str) -> str:
    """Return a picture on white background, scaled down to the width of its page."""
    return element(
        "svg",
        [
            element("title", escaped(label)),
            element("rect", width=width, height=height, rx=6, fill="#FFFFFF"),
            *content,
        ],
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_plain(width)} {_plain(height)}", width=width,
        font_family=FAMILY, role="img", style="max-width:100%;height:auto",
    )  # fmt: skip


def width_of(words: str, size: float, *, bold: bool = False) -> float:
    """Return the estimated width of a line of text, in the units of its size."""
    letters = sum(2.0 if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in words)
    return letters * _EM * size * (_BOLD if bold else 1.0)


def _is_allowed(c: str) -> bool:
    return c in "\n\t" or (c >= " " and not 0xD800 <= ord(c) <= 0xDFFF and c not in "\ufffe\uffff")


def _plain(value: object) -> str:
    """Return a number rounded to a tenth of a point; other values as text."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML; the text of the cells is escaped."""
    head = element("tr", (element("th", escaped(name)) for name in headings))
    return element("table", [head, *(element("tr", (element("td", escaped(cell)) for cell in row)) for row in rows)])


# -- Tables as text ------------------------------------------------------------------------------------------


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, columns padded; the last column is left ragged.

    ``headings``: one for each column; ``rows``: one text for each column.
    """
    lines = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    rule = "  ".join("─" * width for width in widths)
    return "\n".join([padded[0], rule, *padded[1:]])


# -- Colours of bodies, the same in all pictures and on the page ---------------------------------------------

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
    """Return fill and edge of every body, in the order of their declaration. Result: colours as ``#RRGGBB``."""
    return {name: BODIES[i % len(BODIES)] for i, name in enumerate(names)}


# -- Fills of phases: eight colours, each plain, with lines and with dots, the same in all pictures and on the page

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

    ``colours``: in the order of the phases their colours, keys of :data:`FILLS`; empty: one not chosen by any phase. A
    reused colour comes with another texture, a reused texture with a number.
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
