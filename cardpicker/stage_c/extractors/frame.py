"""The class of the frame as the pixels show it: how high the border at the bottom is, and how the small print lies.

A number that was parsed says nothing of the frame. Makers re-render frames, so this is weak evidence for a printing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.geometry import settled_fit
from cardpicker.stage_c.extractors.rows import ReadRow, passes_of
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit

SURE_FIT = 0.8  #: Below it the card is not placed well enough to measure a border.
STRIP_MM: BoxMm = (28.0, 76.0, 35.0, 87.4)  #: Between the blocks of small print at the left and at the right.
PX_PER_MM = 8
EVEN = 18  #: Gray levels that the border may vary in.
HIGH_MM, LOW_MM = (4.45, 9.5), (1.8, 4.3)  #: Border below the frame: since 2015 (less where a stamp is), and before.
EARLY_MM = (3.7, 4.4)
MIN_BELOW, MIN_CONFIDENCE, CENTERED_MM = 6, 0.6, 5.0
_LEGAL = re.compile(r"wizard|coast|©\s?(?:19|20)\d\d", re.IGNORECASE)
_ILLUS = re.compile(r"\b\w{0,2}l+us\b|\bMls\.|\bthus\. ?©", re.IGNORECASE)


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return "1993", "1997", "2003", "2015", "borderless", or null where the pixels do not tell."""
    fit = settled_fit(image, so_far)
    if fit.confidence < SURE_FIT:
        return {"frame": None, "bottom_border_mm": None}
    high = bottom_border_mm(image.gray, fit)
    frame = None
    if HIGH_MM[0] <= high <= HIGH_MM[1]:
        frame = "2015"
    elif LOW_MM[0] <= high <= LOW_MM[1]:
        passes = passes_of(so_far.get("bottom_text"))
        named, line = so_far.get("artist") or {}, so_far.get("collector_line") or {}
        frame = older_frame(
            [row for read in passes for row in read.rows],
            border_mm=high,
            artist_row=str(named.get("raw")) if named.get("known") and not line.get("set_code") else "",
        )
    elif high < 0.3 and (so_far.get("quality") or {}).get("border_color") == "borderless":
        frame = "borderless"
    return {"frame": frame, "bottom_border_mm": round(high, 1)}


def bottom_border_mm(gray: NDArray[np.uint8], fit: CardFit) -> float:
    """Return how far from the trim upward the middle of the card stays as even as a border."""
    left, top, right, bottom = fit.clip(STRIP_MM)
    size = (max(8, int((right - left) * PX_PER_MM)), max(8, int((bottom - top) * PX_PER_MM)))
    strip = np.asarray(fit.crop(gray, (left, top, right, bottom), size), dtype=np.int16)
    ground = np.median(strip[-PX_PER_MM:])
    uneven = np.percentile(np.abs(strip - ground), 60, axis=1) > EVEN
    rows = np.flatnonzero(uneven[::-1])
    return float((rows[0] if rows.size else size[1]) / PX_PER_MM + 88.0 - bottom)


def older_frame(rows: Sequence[ReadRow], *, border_mm: float | None = None, artist_row: str = "") -> str | None:
    """Return the frame before 2015 by its small print: at the left since 2003, in the middle and two rows from 1997.

    Args:
        border_mm: height of the bottom border; in 1993 it was higher than ever until 2015; None: not known.
        artist_row: the text of the row that names an artist of the card, where one was read.
    """
    legal = [row for row in rows if _LEGAL.search(row.text) and not _ILLUS.search(row.text)]
    illus = next((row for row in rows if _ILLUS.search(row.text)), None)
    early = border_mm is not None and EARLY_MM[0] <= border_mm <= EARLY_MM[1]
    if early and illus is None and not legal:
        illus = next((row for row in rows if artist_row and row.text == artist_row), None)
    if illus is None:
        return "2003" if legal and min(row.left_mm for row in legal) < 7.0 else None
    below = [row for row in rows if row.top_mm > illus.bottom_mm and len(row.text) >= MIN_BELOW]
    if below:
        return "1997" if abs((illus.left_mm + illus.right_mm) / 2 - 31.5) < CENTERED_MM else None
    return "1993" if early or (border_mm is None and illus.confidence >= MIN_CONFIDENCE) else None
