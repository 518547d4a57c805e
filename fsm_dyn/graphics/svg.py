"""SVG elements as text with escaping, and estimates of text widths."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

from fsm_dyn.graphics.palette import INK

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
