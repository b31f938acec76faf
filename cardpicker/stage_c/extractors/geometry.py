"""The card's place in the image, with the way up that the bottom text settled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import CardFit, fit_card


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the map from card millimeters to pixels of the normalized image."""
    text = so_far.get("bottom_text") or {}
    fit = settled_fit(image, so_far)
    confidence = fit.confidence if text.get("legible") else min(fit.confidence, 0.5)
    return {
        "width_px": image.width_px,
        "height_px": image.height_px,
        "source_width_px": image.source_width_px,
        "source_height_px": image.source_height_px,
        "has_bleed": fit.has_bleed,
        "bleed_mm": round(fit.bleed_mm, 3),
        "rotation_deg": fit.rotation_deg,
        "tilt_deg": fit.tilt_deg,
        "matrix": [round(value, 6) for value in fit.matrix],
        "confidence": confidence,
    }


@lru_cache(maxsize=1)
def fitted(image: NormalizedImage) -> CardFit:
    """Return the card's fit before its text is read; every extractor of one image asks for it in turn."""
    return fit_card(image.gray)


def settled_fit(image: NormalizedImage, so_far: Mapping[str, Reading]) -> CardFit:
    """Return the card's fit, turned the way that made its text legible."""
    fit = fitted(image)
    rotation = (so_far.get("bottom_text") or {}).get("rotation_deg")
    return fit.turned() if rotation == fit.turned().rotation_deg else fit
