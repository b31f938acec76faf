"""The legal line: the copyright year, and marks that say the image is a proxy. Neither is ever a veto here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow, passes_of
from cardpicker.stage_c.imaging.decode import NormalizedImage

MIN_CONFIDENCE = 0.6
FAIR = 0.4  #: Enough where another pass reads the same.
#: No card bears 1993 but as the first year of a range, of which the last one was not read then.
FIRST_YEAR, LAST_YEAR = 1994, 2035
_LEGAL = re.compile(r"wizard|\bcoast\b|©|™|&\s*[©c(]", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\d/])((?:19|20)\d\d)(?![\d/])")
_MARKS = {
    "not for sale": re.compile(r"not\s*for\s*sale", re.IGNORECASE),
    "proxy": re.compile(r"\bproxy\b", re.IGNORECASE),
    "playtest": re.compile(r"play\s?test", re.IGNORECASE),
    "mtg.design": re.compile(r"mtg\.?\s?design", re.IGNORECASE),
}


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the legal rows, the latest copyright year that the passes agree on, and proxy marks."""
    passes = passes_of(so_far.get("bottom_text"))
    rows = [row for read in passes for row in read.rows if _LEGAL.search(row.text)]
    marks = sorted(
        name for name, mark in _MARKS.items() if any(mark.search(row.text) for read in passes for row in read.rows)
    )
    return {"raw": rows[0].text if rows else "", "copyright_year": copyright_year(passes), "proxy_marks": [*marks]}


def copyright_year(passes: Sequence[ReadPass]) -> int | None:
    """Return the latest year of the legal rows: read clearly and nowhere otherwise, or fairly and twice the same."""
    found = [
        (year, confidence)
        for read in passes
        for row in read.rows
        if _LEGAL.search(row.text) and (year_read := _latest(row)) is not None
        for year, confidence in [year_read]
    ]
    clear = {year for year, confidence in found if confidence >= MIN_CONFIDENCE}
    if clear:
        return clear.pop() if len(clear) == 1 else None
    (top, count), *others = [*Counter(year for year, _ in found).most_common(), (None, 0)]
    return top if count >= 2 and others[0][1] < count else None


def _latest(row: ReadRow) -> tuple[int, float] | None:
    found = [
        (int(match[1]), confidence)
        for match in _YEAR.finditer(row.text)
        if FIRST_YEAR <= int(match[1]) <= LAST_YEAR and (confidence := row.confidence_at(*match.span())) >= FAIR
    ]
    return max(found, default=None)
