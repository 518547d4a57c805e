"""Tables as text."""

from __future__ import annotations

from collections.abc import Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, columns padded; the last column is left ragged.

    Parameters
    ----------
    headings : Sequence[str]
        One for each column.
    rows : Sequence[Sequence[str]]
        One text for each column.
    """
    lines = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    rule = "  ".join("─" * width for width in widths)
    return "\n".join([padded[0], rule, *padded[1:]])
