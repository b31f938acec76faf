"""Stored text parsed anew: what today's parsers make of the rows that were read, without the image.

Only extractors that look at text alone take part. What the image itself said stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import EXTRACTORS

if TYPE_CHECKING:
    from cardpicker.stage_c.imaging.decode import NormalizedImage

#: What holds the rows, and the extractors that read nothing else.
TEXT: Final = "bottom_text"
FROM_TEXT: Final = ("collector_line", "legal_line", "artist")


def reparse(readings: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon) -> dict[str, Reading]:
    """Return the readings that today's parsers make of the stored rows; empty where no rows are stored.

    Rows of an older reader are parsed too: they are what was read, and the image is due to be read again anyway.
    """
    today = {extractor.name: extractor for extractor in EXTRACTORS}
    rows = readings.get(TEXT)
    if rows is None or "error" in rows:
        return {}
    so_far = dict(readings)
    no_image = cast("NormalizedImage", None)
    for name in FROM_TEXT:
        try:
            so_far[name] = today[name].extract(no_image, so_far, context, lexicon)
        except Exception as error:  # one extractor's fault is its own reading, as when the image is there
            so_far[name] = {"error": f"{type(error).__name__}: {error}"[:500]}
    return {name: so_far[name] for name in FROM_TEXT}
