"""How round the card's corners are. Those of the first printing of all, Alpha, are rounder than any after it."""

from __future__ import annotations

from collections.abc import Mapping

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.imaging.corners import corner_radius_mm
from cardpicker.stage_c.imaging.decode import NormalizedImage


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the radius in millimeters, or null where the picture does not show what lies outside the corners."""
    radius_mm = corner_radius_mm(image.gray)
    return {"radius_mm": None if radius_mm is None else round(radius_mm, 2)}
