"""The perceptual hash of the art box: narrows candidates, never decides a printing."""

from __future__ import annotations

from collections.abc import Mapping

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.geometry import settled_fit
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import BoxMm
from cardpicker.stage_c.imaging.hashing import detail, sample, usable_hash

#: Within the art's own window in every frame since 1993, so that what stands around the art tells nothing.
ART_BOX_MM: BoxMm = (5.8, 9.6, 57.2, 48.0)
ART_SIZE_PX = (256, 192)


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the hash as 16 hex digits, or null where the art is too flat to tell pictures apart."""
    samples = sample(settled_fit(image, so_far).crop(image.gray, ART_BOX_MM, ART_SIZE_PX))
    value = usable_hash(samples)
    return {
        "kind": ART_HASH_KIND,
        "hash": None if value is None else f"{value:016x}",
        "detail": round(detail(samples), 2),
    }
