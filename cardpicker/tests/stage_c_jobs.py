"""A cheap extraction that obeys its image. It runs in real processes, so it is importable by name and knows no Django."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace

from cardpicker.stage_c.evidence import CardEvidence, ComputeContext
from cardpicker.stage_c.extractors.registry import extractor_versions, manifest
from cardpicker.stage_c.imaging.ocr import OcrUnavailableError
from cardpicker.stage_c.outcomes import Unusable, UnusableKind


def image(*, do: str = "read", text: str = "", seconds: float = 0.0, height_px: int = 1040) -> bytes:
    """Return bytes that may be an image, with what the extraction is to do about them."""
    order = {"do": do, "text": text, "seconds": seconds, "height_px": height_px}
    return b"\x89PNG\r\n\x1a\n" + json.dumps(order).encode()


def obey(body: bytes, context: ComputeContext) -> CardEvidence | Unusable:
    """Do what the image says; the stand-in for the extraction, run in a real process."""
    order = json.loads(body[8:])
    time.sleep(order["seconds"])
    match order["do"]:
        case "unusable":
            return Unusable(kind=UnusableKind.CORRUPT, detail="as ordered")
        case "truncated":
            return Unusable(kind=UnusableKind.TRUNCATED, detail="as ordered")
        case "raise":
            raise ValueError("as ordered")
        case "lose-engine":
            raise OcrUnavailableError("obedient", "as ordered")
        case "crash":
            os._exit(9)
    return replace(
        evidence(body, text=order["text"], artists=list(context.artists)), height_px=order.get("height_px", 1040)
    )


def evidence(body: bytes = b"", *, text: str = "", artists: Sequence[str] = ()) -> CardEvidence:
    """Return evidence that holds ``text`` in every place that holds text."""
    return CardEvidence(
        image_sha256=hashlib.sha256(body).hexdigest(),
        manifest=manifest(),
        extractor_versions=extractor_versions(),
        readings={
            "collector_line": {"raw": text, "number": text or None, text: text, "confidence": 0.0},
            "artist": {"raw": "", "artist": None, "ratio": 0.0, "known": list(artists)},
            "quality": {"error": "ValueError: no"},
        },
        width_px=300,
        height_px=1040,
        set_code=text,
        collector_number=text,
    )


def refuse_to_start() -> None:
    """Fail to become ready, as a host without an OCR engine does."""
    raise RuntimeError("no engine here")
