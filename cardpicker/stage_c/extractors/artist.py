"""The artist, from `Illus. …`, from the set code's row, or from a row that names an artist of the card."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.artist_names import artist_key, best_artist, tidy_name
from cardpicker.stage_c.extractors.rows import ReadPass, passes_of
from cardpicker.stage_c.imaging.decode import NormalizedImage

#: "Illus." also reads as Mlus, lllus or Thus.
_ILLUS = re.compile(r"(?:\b\w{0,2}l+us|\bThus)[.,:]?\s+(?:[©@(]\S*\s+)?(?P<name>\S.{2,})", re.IGNORECASE)
MIN_CONFIDENCE = 0.6
MIN_LETTERS = 4


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the artist with the ratio of the match; free text only after `Illus.`, and only when read clearly."""
    passes = passes_of(so_far.get("bottom_text"))
    best: tuple[float, str, str] = (0.0, "", "")
    for read in passes:
        for row in read.rows:
            name, ratio = best_artist(_after_language(row.text), context.artists)
            if name is not None and (ratio, name) > best[:2]:
                best = (ratio, name, row.text)
    if best[1]:
        return {"raw": best[2], "artist": best[1], "ratio": best[0], "known": True}
    in_row = (so_far.get("collector_line") or {}).get("artist_in_row")
    if isinstance(in_row, str) and in_row:
        return {"raw": in_row, "artist": in_row, "ratio": 0.0, "known": False}
    free = _free_text(passes)
    return {"raw": free, "artist": free or None, "ratio": 0.0, "known": False}


def _after_language(text: str) -> str:
    """Return what may be a name in a row: what follows a language or `Illus.`, else all of it."""
    illus = _ILLUS.search(text)
    if illus:
        return str(illus["name"])
    parts = re.split(r"\b(?:EN|DE|FR|IT|ES|SP|PT|JA|JP|KO|KR|RU)\b", text, maxsplit=1)
    return parts[-1]


def _free_text(passes: tuple[ReadPass, ...]) -> str:
    for read in passes:
        for row in read.rows:
            illus = _ILLUS.search(row.text)
            if (
                illus
                and row.confidence >= MIN_CONFIDENCE
                and len(artist_key(name := tidy_name(illus["name"]))) >= MIN_LETTERS
            ):
                return name
    return ""
