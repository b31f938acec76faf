"""Renditions of one image: how large one must be for its small print, and which larger one to ask for instead."""

from __future__ import annotations

#: Long side in pixels below which small print is not read, with the card filling the picture: from there down digits
#: begin to be taken for others, and nothing is better than a wrong number.
MIN_LEGIBLE_PX = 500
#: Resolution that is asked for instead of one that came out too small.
LEGIBLE_DPI = 250
#: Pixels of height at 300 dpi of a card with its bleed, by which the image CDN too turns one into the other.
HEIGHT_PX_AT_300_DPI = 1_110
#: A rendition this much smaller than it was asked for is all that there is: nobody enlarges.
_AS_ASKED = 0.95


def is_legible(width_px: int, height_px: int) -> bool:
    """Whether a picture of a card is large enough for its small print, however it lies."""
    return max(width_px, height_px) >= MIN_LEGIBLE_PX


def larger_dpi(asked_dpi: int, width_px: int, height_px: int, listed_dpi: int | None) -> int | None:
    """Return the resolution to ask for after a rendition that is too small; None when it will do, or there is no larger.

    Args:
        asked_dpi: what the rendition was asked in.
        listed_dpi: what the listing says the image has, where it says anything.
    """
    if is_legible(width_px, height_px) or asked_dpi >= LEGIBLE_DPI:
        return None
    if listed_dpi is not None:
        return LEGIBLE_DPI if listed_dpi > asked_dpi else None
    return LEGIBLE_DPI if height_px >= _AS_ASKED * asked_dpi * HEIGHT_PX_AT_300_DPI / 300 else None
