"""The planeswalker mark that tells reprints in The List from the originals whose line they bear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.collector_parse import parse_rows
from cardpicker.stage_c.extractors.geometry import settled_fit
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow, passes_of
from cardpicker.stage_c.imaging.bare_border import find_mark_in_corner
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.list_mark import find_mark


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return whether the mark stands beside a two-row line, else in the border's corner; null in doubt."""
    rows = line_rows(passes_of(so_far.get("bottom_text")), lexicon.set_codes)
    fit = settled_fit(image, so_far)
    if rows is None:
        sight = find_mark_in_corner(image.gray, fit)
    else:
        upper, lower = ((row.left_mm, row.top_mm, row.right_mm, row.bottom_mm) for row in rows)
        sight = find_mark(image.gray, fit, upper, lower)
    return {"mark": sight.mark, "confidence": sight.confidence}


def line_rows(passes: Sequence[ReadPass], known_sets: frozenset[str]) -> tuple[ReadRow, ReadRow] | None:
    """Return the number's row and the set code's row below it, as the first pass that has both reads them."""
    for read in passes:
        line = parse_rows(read.rows, known_sets)
        if line.number is None or line.set is None or line.number.row == line.set.row:
            continue
        upper, lower = read.rows[line.number.row], read.rows[line.set.row]
        if 1.0 <= lower.bottom_mm - upper.bottom_mm <= 2.8 and abs(lower.left_mm - upper.left_mm) <= 1.5:
            return upper, lower
    return None
