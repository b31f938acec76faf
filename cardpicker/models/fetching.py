"""What all processes and hosts share about fetching: how it went lately, and how fast each destination may be asked."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class FetchClass(models.TextChoices):
    """How a fetch ended, for the failure rate."""

    FETCHED = "FETCHED", "Fetched"
    FAILED = "FAILED", "Failed"
    GONE = "GONE", "Gone"
    UNUSABLE = "UNUSABLE", "Not an image"


class FetchOutcome(models.Model):
    """One fetch in the window that all processes and hosts share. Pressure is not recorded: it is no failure."""

    outcome = models.CharField(max_length=10, choices=FetchClass)
    source = models.ForeignKey(
        "cardpicker.Source",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,  # A source may go while its images are fetched.
        db_index=False,
    )
    host = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [models.Index(fields=["at"], name="fetch_outcome_at")]

    def __str__(self) -> str:
        return f"{self.outcome} at {self.at}"


class FetchBudget(models.Model):
    """The shared rate of one destination: when its next permit falls due, and how far it has been slowed down."""

    destination = models.CharField(max_length=50, unique=True)
    next_permit_at = models.DateTimeField(db_default=Now())
    widening = models.FloatField(
        default=1.0, db_default=1.0, help_text="Factor on the interval between permits at the moment beside it."
    )
    widened_at = models.DateTimeField(db_default=Now(), help_text="Since then the factor falls back to 1.")
    is_probing = models.BooleanField(
        default=False, db_default=False, help_text="Locked out: one fetch at a time, until one succeeds."
    )
    pressed_at = models.DateTimeField(
        null=True, blank=True, help_text="When the destination last asked for patience or refused us."
    )
    last_retry_after_s = models.FloatField(
        null=True, blank=True, help_text="The seconds it asked for then; empty: it did not say."
    )

    def __str__(self) -> str:
        return self.destination
