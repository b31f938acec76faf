"""The art of printings: one row an illustration, with what became of hashing it, and the version of the whole catalog."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from cardpicker.models.catalogue import IDENTIFIER_MAX_LENGTH


class ArtOutcome(models.TextChoices):
    """What became of the last try to hash an illustration."""

    HASHED = "HASHED", "Hashed"
    FLAT = "FLAT", "Too little detail to tell pictures apart"
    NO_PICTURE = "NO_PICTURE", "The catalog has no picture of it"
    GONE = "GONE", "Its picture is missing or forbidden"
    UNUSABLE = "UNUSABLE", "What arrived is no picture"
    FAILED = "FAILED", "Transient failure"


class CanonicalArt(models.Model):
    """One illustration; its hash is copied to every printing that bears it."""

    key = models.UUIDField(
        unique=True, help_text="Scryfall's id of the illustration, or of the printing where that names none."
    )
    kind = models.CharField(max_length=40, help_text="The kind of hash that was tried.")
    outcome = models.CharField(max_length=12, choices=ArtOutcome)
    art_hash = models.BigIntegerField(
        null=True, blank=True, help_text="Signed 64-bit pHash; empty where flat or unknown."
    )
    detail = models.CharField(max_length=300, blank=True)
    attempts = models.PositiveIntegerField(default=0, help_text="Transient failures since anything else.")
    tried_uris = ArrayField(
        models.CharField(max_length=IDENTIFIER_MAX_LENGTH),
        default=list,
        blank=True,
        help_text="Addresses that failed for good: not asked again.",
    )
    tried_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "art"
        verbose_name_plural = "art"
        indexes = [models.Index(fields=["outcome", "key"], name="art_outcome")]
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="HASHED", art_hash__isnull=False)
                | (~Q(outcome="HASHED") & Q(art_hash__isnull=True)),
                name="art_hash_where_hashed",
            ),
            models.CheckConstraint(condition=Q(art_hash__isnull=True) | ~Q(art_hash=0), name="art_hash_not_0"),
        ]

    def __str__(self) -> str:
        return f"art {self.key}: {self.get_outcome_display().lower()}"


class CatalogVersion(models.Model):
    """One row that counts changes, raised with them, by which a process knows that what it holds is stale."""

    printings = models.PositiveBigIntegerField(default=0)
    art = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="catalog_version_one_row")]

    def __str__(self) -> str:
        return f"printings {self.printings}, art {self.art}"
