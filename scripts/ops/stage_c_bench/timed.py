"""The product's extraction with a clock in its compute process; imports no Django, since compute processes do not."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cardpicker.stage_c.compute import compute_card_evidence
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext
from cardpicker.stage_c.outcomes import Unusable


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A result with the CPU seconds that it took."""

    found: CardEvidence | Unusable
    cpu_s: float


def timed_compute(image: bytes, context: ComputeContext) -> Timed:
    """Read an image as the product does, and say what it cost."""
    before = time.process_time()
    found = compute_card_evidence(image, context)
    return Timed(found=found, cpu_s=time.process_time() - before)
