"""The legal line: the copyright year, and marks that say the image is a proxy. Neither is ever a veto here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow, passes_of
from cardpicker.stage_c.imaging.decode import NormalizedImage

MIN_CONFIDENCE = 0.6
FIRST_YEAR, LAST_YEAR = 1993, 2035
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
    """Return the latest year of the legal rows, or None when none is clear or the passes differ."""
    years = {
        year for read in passes for row in read.rows if _LEGAL.search(row.text) and (year := _latest(row)) is not None
    }
    return years.pop() if len(years) == 1 else None


def _latest(row: ReadRow) -> int | None:
    found = [
        int(match[1])
        for match in _YEAR.finditer(row.text)
        if FIRST_YEAR <= int(match[1]) <= LAST_YEAR and row.confidence_at(*match.span()) >= MIN_CONFIDENCE
    ]
    return max(found, default=None)
