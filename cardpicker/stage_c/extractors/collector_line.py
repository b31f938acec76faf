"""Number, set code, rarity and language of the collector line, from the text of the bottom band."""

from __future__ import annotations

from collections.abc import Mapping

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.artist_names import artist_in_row
from cardpicker.stage_c.extractors.collector_parse import parse_passes
from cardpicker.stage_c.extractors.consensus import agree
from cardpicker.stage_c.extractors.rows import passes_of
from cardpicker.stage_c.imaging.decode import NormalizedImage


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the collector line that the passes agree on; nulls where they are silent or contradict each other."""
    text = so_far.get("bottom_text")
    passes = passes_of(text)
    lines = parse_passes(passes, lexicon.set_codes)
    agreed = agree(lines)
    number, set_read = agreed.number, agreed.set
    rows: list[str] = []
    for read, line in zip(passes, lines, strict=True):
        places = {part.row for part in (line.number, line.set) if part is not None}
        rows += [read.rows[place].text for place in sorted(places)]
    variants = [read.variant for read, line in zip(passes, lines, strict=True) if line.number is not None]
    return {
        "raw": " | ".join(rows[:2]),
        "rows": [*rows],
        "number": number.number if number else None,
        "set_size": number.set_size if number else None,
        "rarity": number.rarity if number else None,
        "rarity_confidence": round(number.rarity_confidence, 3) if number else 0.0,
        "layout": number.layout if number else None,
        "set_code": set_read.code.code if set_read else None,
        "set_code_known": set_read.code.known if set_read else False,
        "set_code_distance": set_read.code.distance if set_read else None,
        "set_code_confidence": round(set_read.confidence, 3) if set_read else 0.0,
        "language": set_read.language if set_read else None,
        "artist_in_row": artist_in_row(passes, lines, context.artists),
        "confidence": agreed.confidence,
        "supporters": agreed.supporters,
        "numbers_read": [*agreed.readings],
        "variant": "+".join(variants),
        "engine": (text or {}).get("engine") or "",
    }
