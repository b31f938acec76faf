"""Which rows of the small print are worth another look: those that hold, or may hold, what is in doubt.

It judges by what was read and where it stands, and sees no pixel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cardpicker.stage_c.extractors.collector_parse import LineRead, is_beside
from cardpicker.stage_c.extractors.consensus import Doubts
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow
from cardpicker.stage_c.extractors.set_codes import LANGUAGES
from cardpicker.stage_c.imaging.textrows import TextRow

MIN_GLYPHS = 5  #: A row of fewer, of which nothing was read, is no line of text.
UNBELIEVED = 0.5  #: Mean belief below which a row may be text of the other polarity.
COMMON_WORD = re.compile(r"wizard|coast|illus|proxy", re.IGNORECASE)
_CODE = re.compile(rf"[A-Z0-9]{{3}}.{{0,3}}({'|'.join(LANGUAGES)})\b")


def rows_in_doubt(
    rows: Sequence[TextRow],
    passes: Sequence[ReadPass],
    lines: Sequence[LineRead],
    left: Doubts,
    names_artist: Callable[[ReadRow], bool],
) -> list[TextRow]:
    """Return those of ``rows``, or of their rivals, that may hold what is left in doubt.

    Args:
        lines: the collector line of each of ``passes``.
        names_artist: whether a row names an artist whom the card can have; a name is in doubt until one does.
    """
    boxes = {
        (read.rows[place].left_mm, read.rows[place].top_mm)
        for read, line in zip(passes, lines, strict=True)
        for place in _doubted(read.rows, line, left, names_artist)
    }
    shown = [*rows, *(row.rival for row in rows if row.rival is not None)]
    weak = [row for row in shown if row.box_mm[:2] in boxes]
    if any(line.number is not None for line in lines) or (weak and not left.set):
        return weak
    belief = {(row.left_mm, row.top_mm): row.confidence for read in passes for row in read.rows}
    for row in rows:
        if row not in weak and row.glyphs >= MIN_GLYPHS and belief.get(row.box_mm[:2], 0.0) < UNBELIEVED:
            weak.append(row.rival or row)
    return weak


def _doubted(
    rows: Sequence[ReadRow], line: LineRead, left: Doubts, names_artist: Callable[[ReadRow], bool]
) -> set[int]:
    """Return the places of one pass's rows that hold, or may hold, what is in doubt."""
    found: set[int] = set()
    code = line.set.row if line.set is not None else None
    if code is not None and (left.set or not names_artist(rows[code])):
        found.add(code)
    elif left.set:
        found |= {at for at, row in enumerate(rows) if _CODE.search(row.text)}
    if left.number and line.number is not None:
        found.add(line.number.row)
    elif left.number:
        found |= {at for at, row in enumerate(rows) if at != code and _may_be_number(row, rows, code)}
    return found


def _may_be_number(row: ReadRow, rows: Sequence[ReadRow], code: int | None) -> bool:
    if code is not None and is_beside(row, rows[code]):
        return True
    if code is not None and COMMON_WORD.search(row.text):
        return False  # A card with a set code has its number beside it, not in the legal line.
    return sum(c.isdigit() for c in row.text) >= 2
