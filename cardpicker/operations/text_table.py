"""Tables for a terminal: aligned columns, and nothing in them that moves the cursor."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

GAP = "  "


def format_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = (), widest: int = 60
) -> list[str]:
    """Return a header line, a rule, and a line for each of ``rows``.

    Args:
        headings: one a column.
        right: the headings of the columns that are aligned to the right, as numbers are.
        widest: cells that are longer are cut, with an ellipsis.
    """
    cells = [[_shorten(cell, widest) for cell in row] for row in (headings, *rows)]
    widths = [max(display_width(row[column]) for row in cells) for column in range(len(headings))]
    lines = [
        GAP.join(
            _pad(cell, width, heading in right) for cell, width, heading in zip(row, widths, headings, strict=True)
        )
        for row in cells
    ]
    rule = GAP.join("─" * width for width in widths)
    return [line.rstrip() for line in (lines[0], rule, *lines[1:])]


def display_width(text: str) -> int:
    """Return how many terminal columns ``text`` takes; East Asian wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _shorten(cell: str, widest: int) -> str:
    cell = " ".join("".join(c if c.isprintable() else " " for c in cell).split())
    if display_width(cell) <= widest:
        return cell
    while display_width(cell) > widest - 1:
        cell = cell[:-1]
    return cell + "…"


def _pad(cell: str, width: int, right: bool) -> str:
    blank = " " * (width - display_width(cell))
    return blank + cell if right else cell + blank
