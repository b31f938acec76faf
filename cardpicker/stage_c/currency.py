"""Which evidence still holds; the one place that says so."""

from __future__ import annotations

from cardpicker.models import ImageEvidence
from cardpicker.models.evidence import ImageEvidenceQuerySet
from cardpicker.stage_c.extractors.registry import manifest


def current_evidence() -> ImageEvidenceQuerySet:
    """Return the evidence of the image its card has now, read by today's extractors."""
    return ImageEvidence.objects.all().current(manifest())
