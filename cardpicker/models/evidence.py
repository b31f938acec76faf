"""What was read off images."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from cardpicker.models.catalogue import Card


class ImageEvidenceQuerySet(models.QuerySet["ImageEvidence"]):
    """Evidence by whether it still holds."""

    def current(self, manifest: str) -> ImageEvidenceQuerySet:
        """Evidence of the image its card has now, read by the extractors of ``manifest``."""
        return self.filter(manifest=manifest, image_version=F("card__image_version"))


class ImageEvidence(models.Model):
    """The readings of one card's image; one row a card, replaced when the image or the extractors change."""

    card = models.OneToOneField(Card, on_delete=models.CASCADE, related_name="evidence")
    image_version = models.CharField(max_length=100)
    image_sha256 = models.CharField(max_length=64, db_index=True)
    manifest = models.CharField(max_length=64, help_text="The set of extractor versions that read the image.")
    extractor_versions = models.JSONField(default=dict)
    readings = models.JSONField(default=dict, help_text="By extractor.")
    rendition = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        help_text="What the bytes were: 'original', or the size and quality asked of the image CDN; empty: not known.",
    )
    width_px = models.PositiveIntegerField(default=0)
    height_px = models.PositiveIntegerField(default=0)
    set_code = models.CharField(max_length=10, blank=True)
    collector_number = models.CharField(max_length=30, blank=True)
    art_hash = models.BigIntegerField(
        null=True, blank=True, help_text="Signed 64-bit pHash; empty where flat, never 0."
    )
    elapsed_ms = models.PositiveIntegerField(
        default=0, help_text="Time from the start of the fetch to stored evidence."
    )
    run_id = models.CharField(max_length=64, blank=True)
    transferred_from = models.ForeignKey(
        Card,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The byte-identical card that this evidence was copied from.",
    )
    judged_by = models.CharField(
        max_length=64, blank=True, help_text="The set of calculators that has judged these readings; empty: none has."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ImageEvidenceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "image evidence"
        indexes = [models.Index(fields=["art_hash"], name="evidence_art_hash", condition=Q(art_hash__isnull=False))]
        constraints = [
            models.CheckConstraint(condition=Q(art_hash__isnull=True) | ~Q(art_hash=0), name="evidence_art_hash_not_0"),
            models.CheckConstraint(condition=~Q(image_sha256=""), name="evidence_sha256_set"),
        ]

    def __str__(self) -> str:
        return f"evidence of card {self.card_id}"
