"""A compute function that reads what a test wrote into the file instead of pixels. No Django: it runs in a compute process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from pathlib import Path

from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Reading
from cardpicker.stage_c.extractors.registry import extractor_versions, manifest
from cardpicker.stage_c.outcomes import Unusable, UnusableKind

HEADER = b"\xff\xd8\xff\xe0\x00\x00"


def read_instructions(body: bytes, context: ComputeContext) -> CardEvidence | Unusable:
    """Return what the file says it shows; runs in a compute process, which it may be told to kill or hold up."""
    told = json.loads(body[len(HEADER) :])
    if told.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if told.get("raise"):
        raise ValueError(told["raise"])
    if told.get("marker"):
        Path(told["marker"]).touch()
    time.sleep(told.get("seconds", 0))
    if told.get("unusable"):
        return Unusable(kind=UnusableKind(told["unusable"]), detail="as told")
    line: Reading = {
        "raw": "",
        "number": told.get("number"),
        "set_code": told.get("set_code"),
        "set_code_known": True,
        "confidence": 0.95,
        "language": "en",
    }
    return CardEvidence(
        image_sha256=hashlib.sha256(body).hexdigest(),
        manifest=manifest(),
        extractor_versions=extractor_versions(),
        readings={"collector_line": line},
        width_px=600,
        height_px=816,
        set_code=told.get("set_code") or "",
        collector_number=told.get("number") or "",
    )
