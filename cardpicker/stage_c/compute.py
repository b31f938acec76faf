"""Image bytes to evidence: one decode, every registered extractor over it, each failing alone.

Pure but for the process's OCR engine and lexicon, which ``warm_up`` sets once per worker. No Django, no database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import EXTRACTORS, Extractor, extractor_versions, manifest, unchanged
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.imaging.hashing import signed64
from cardpicker.stage_c.imaging.ocr import ACTIVE, OcrUnavailableError
from cardpicker.stage_c.outcomes import Unusable
from cardpicker.stage_c.renditions import is_legible
from cardpicker.stage_c.reparse import TEXT

#: The small print of a picture that is too small for it: no row, so that nothing is read into specks.
NOT_LEGIBLE: Reading = {"passes": [], "legible": False, "ocr_calls": 0, "detail": "too small for its small print"}

__all__ = ["OcrUnavailableError", "compute_card_evidence", "extract_all", "warm_up"]


class _Process:
    """What one compute process knows besides the image."""

    def __init__(self) -> None:
        self.lexicon = Lexicon()


_PROCESS = _Process()  # A worker is handed its lexicon once, not with each of a thousand images.


def warm_up(lexicon: Lexicon, engine_name: str) -> None:
    """Make this process ready: test the engine on its built-in sample and keep the lexicon.

    Raises:
        OcrUnavailableError: the engine is missing or does not read its sample.
    """
    ACTIVE.use(engine_name)
    _PROCESS.lexicon = lexicon


def compute_card_evidence(image: bytes, context: ComputeContext) -> CardEvidence | Unusable:
    """Return what the image says, or why it cannot be read.

    Raises:
        OcrUnavailableError: the engine went away or ``warm_up`` was not called; nothing is known of this image.
    """
    ACTIVE.get()
    normalized = decode(image)
    if isinstance(normalized, Unusable):
        return normalized
    digest = hashlib.sha256(image).hexdigest()
    legible = is_legible(normalized.source_width_px, normalized.source_height_px)
    kept = kept_readings(context, digest) | ({} if legible else {TEXT: dict(NOT_LEGIBLE)})
    readings = extract_all(normalized, context, _PROCESS.lexicon, EXTRACTORS, kept=kept)
    line = readings.get("collector_line", {})
    art = readings.get("art_hash", {}).get("hash")
    return CardEvidence(
        image_sha256=digest,
        manifest=manifest(),
        extractor_versions=extractor_versions(),
        readings=readings,
        width_px=normalized.source_width_px,
        height_px=normalized.source_height_px,
        set_code=str(line.get("set_code") or ""),
        collector_number=str(line.get("number") or ""),
        art_hash=signed64(int(art, 16)) if isinstance(art, str) and art else None,
    )


def kept_readings(context: ComputeContext, image_sha256: str) -> dict[str, Reading]:
    """Return the known readings that still hold: of the same bytes, by extractors that would read the same again."""
    known = context.known
    if known is None or known.image_sha256 != image_sha256:
        return {}
    sound = {name: reading for name, reading in known.readings.items() if "error" not in reading}
    held = unchanged({name: version for name, version in known.versions.items() if name in sound})
    return {name: sound[name] for name in held}


def extract_all(
    image: NormalizedImage,
    context: ComputeContext,
    lexicon: Lexicon,
    extractors: Sequence[Extractor],
    *,
    kept: Mapping[str, Reading] = MappingProxyType({}),
) -> dict[str, Reading]:
    """Run ``extractors`` in order; one that fails leaves its error as its reading, and the others go on.

    Args:
        kept: readings that still hold; their extractors do not run.
    """
    readings: dict[str, Reading] = {}
    for extractor in extractors:
        if extractor.name in kept:
            readings[extractor.name] = kept[extractor.name]
            continue
        try:
            readings[extractor.name] = extractor.extract(image, readings, context, lexicon)
        except OcrUnavailableError:
            raise  # Unmeasured is not "nothing read": the card must be tried again.
        except Exception as error:  # one extractor's fault is its own reading
            readings[extractor.name] = {"error": f"{type(error).__name__}: {error}"[:500]}
    return readings
