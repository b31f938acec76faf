"""The perceptual hash of the art box: narrows candidates, never decides a printing."""

from __future__ import annotations

from collections.abc import Mapping

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.geometry import settled_fit
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import BoxMm
from cardpicker.stage_c.imaging.hashing import MIN_DETAIL, detail, phash64, sample

KIND = "phash64-artbox-v1"
#: Fractions .07 .10 .93 .58 of a picture with 3.175 mm bleed, in card millimeters.
ART_BOX_MM: BoxMm = (1.68, 6.26, 61.32, 51.55)
_SIZE_PX = (256, 192)


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the hash as 16 hex digits, or null where the art is too flat to tell pictures apart."""
    samples = sample(settled_fit(image, so_far).crop(image.gray, ART_BOX_MM, _SIZE_PX))
    amount = detail(samples)
    value = phash64(samples) if amount >= MIN_DETAIL else 0
    return {"kind": KIND, "hash": f"{value:016x}" if value else None, "detail": round(amount, 2)}
