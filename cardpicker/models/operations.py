"""What the pipeline keeps about itself: work, runs, trips and passes."""

from __future__ import annotations

import uuid
from typing import NoReturn

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from cardpicker.models.catalogue import Card


class AppendOnlyError(TypeError):
    """Something tried to delete a record that is kept for ever."""


class AppendOnlyQuerySet(models.QuerySet["EnvelopeTrip"]):
    """A query set whose rows cannot be deleted."""

    def delete(self) -> NoReturn:
        """Refuse.

        Raises:
            AppendOnlyError: always.
        """
        raise AppendOnlyError("Envelope trips are append-only: acknowledge them instead.")


#: What ``CardWork.last_outcome`` says of a card whose image was missing or forbidden.
GONE = "gone"


class CardWork(models.Model):
    """One card's place in the pipeline: due, leased, done or quarantined, exactly one of the four.

    Quarantined when ``quarantined_at`` is set, else leased when ``lease_owner`` is set, else due when ``due_at`` is
    set, else done. ``due_at`` may be set during a lease: the card became due again while it was being worked on.
    """

    card = models.OneToOneField(Card, on_delete=models.CASCADE, related_name="work", primary_key=True)
    due_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=50, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    lease_owner = models.UUIDField(null=True, blank=True, help_text="The batch that claimed the card.")
    leased_until = models.DateTimeField(null=True, blank=True)
    last_batch = models.UUIDField(null=True, blank=True, help_text="The batch that tried the card last.")
    last_outcome = models.CharField(max_length=40, blank=True)
    last_detail = models.CharField(max_length=500, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True, help_text="When the last attempt ended.")
    quarantined_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "work"
        verbose_name_plural = "work"
        indexes = [
            models.Index(
                fields=["due_at", "card"],
                name="work_due",
                condition=Q(due_at__isnull=False, lease_owner__isnull=True, quarantined_at__isnull=True),
            ),
            models.Index(fields=["leased_until"], name="work_leased", condition=Q(lease_owner__isnull=False)),
            models.Index(fields=["lease_owner"], name="work_lease_owner", condition=Q(lease_owner__isnull=False)),
            models.Index(fields=["last_batch"], name="work_last_batch", condition=Q(last_batch__isnull=False)),
            models.Index(
                fields=["last_outcome", "card"], name="work_quarantined", condition=Q(quarantined_at__isnull=False)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(lease_owner__isnull=True, leased_until__isnull=True)
                | Q(lease_owner__isnull=False, leased_until__isnull=False),
                name="work_lease_whole",
            ),
            models.CheckConstraint(
                condition=Q(quarantined_at__isnull=True) | Q(due_at__isnull=True, lease_owner__isnull=True),
                name="work_quarantined_is_idle",
            ),
        ]

    def __str__(self) -> str:
        return f"work of card {self.card_id}: {self.state}"

    @property
    def state(self) -> str:
        """``quarantined``, ``leased``, ``due`` or ``done``."""
        if self.quarantined_at is not None:
            return "quarantined"
        if self.lease_owner is not None:
            return "leased"
        return "done" if self.due_at is None else "due"


class RunStatus(models.TextChoices):
    """Where a batch stands."""

    RUNNING = "RUNNING", "Running"
    COMPLETED = "COMPLETED", "Completed"
    FAILED = "FAILED", "Failed"
    INTERRUPTED = "INTERRUPTED", "Interrupted"


class PilotRunLedger(models.Model):
    """One batch of a run: who ran it, what it did and how it ended."""

    batch_id = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    run_id = models.CharField(max_length=64, db_index=True, help_text="The run this batch belongs to.")
    trigger_reason = models.CharField(max_length=50)
    status = models.CharField(max_length=12, choices=RunStatus, default=RunStatus.RUNNING)
    reason = models.CharField(max_length=500, blank=True, help_text="Why it ended as it did.")
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    process_started_at = models.DateTimeField(help_text="With host and pid, the owner; a pid alone is reused.")
    slot = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    heartbeat_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)
    elapsed_s = models.FloatField(default=0)
    batch_size = models.PositiveIntegerField(default=0)
    stage_c_stored = models.PositiveIntegerField(default=0)
    stage_c_transferred = models.PositiveIntegerField(default=0)
    stage_c_current = models.PositiveIntegerField(default=0)
    stage_c_unusable = models.PositiveIntegerField(default=0)
    stage_c_crashed = models.PositiveIntegerField(default=0)
    stage_c_deferred = models.PositiveIntegerField(default=0)
    fetch_throttled = models.PositiveIntegerField(default=0)
    fetch_failed = models.PositiveIntegerField(default=0)
    stage_d_votes = models.PositiveIntegerField(default=0)
    already_voted = models.PositiveIntegerField(default=0)
    stage_d_review = models.PositiveIntegerField(default=0)
    stage_d_resolved = models.PositiveIntegerField(default=0)
    yields = models.JSONField(default=dict, blank=True, help_text="Counts by extractor and calculator.")
    peak_rss_mb = models.FloatField(default=0, help_text="Of the largest process.")
    peak_tree_rss_mb = models.FloatField(default=0, help_text="Of all processes of the dispatch together.")
    lockout_trip = models.ForeignKey(
        "EnvelopeTrip", on_delete=models.PROTECT, null=True, blank=True, related_name="batches"
    )

    class Meta:
        verbose_name = "run"
        ordering = ["-started_at"]
        indexes = [
            models.Index(fields=["-started_at"], name="run_started"),
            models.Index(fields=["heartbeat_at"], name="run_running", condition=Q(status="RUNNING")),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="RUNNING", finished_at__isnull=True)
                | (~Q(status="RUNNING") & Q(finished_at__isnull=False)),
                name="run_terminal_has_end",
            )
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.status}"


class EnvelopeBar(models.TextChoices):
    """The bars of the operating envelope, in the order in which they are judged."""

    GOOGLE_LOCKOUT = "GOOGLE_LOCKOUT", "Google lockout"
    HOST_LOAD = "HOST_LOAD", "Host load"
    RSS = "RSS", "Memory of a process"
    FETCH_FAILURE_RATE = "FETCH_FAILURE_RATE", "Fetch failure rate"
    OPERATOR_PAUSE = "OPERATOR_PAUSE", "Paused by an operator"


class EnvelopeTrip(models.Model):
    """A breach of the envelope. Open until a person acknowledges it with a note; kept for ever."""

    bar = models.CharField(max_length=20, choices=EnvelopeBar)
    host = models.CharField(max_length=255, blank=True, help_text="The host it gates; empty: every host.")
    value = models.FloatField(null=True, blank=True, help_text="What was measured.")
    ceiling = models.FloatField(null=True, blank=True, help_text="What was allowed.")
    detail = models.CharField(max_length=500, blank=True)
    run_id = models.CharField(max_length=64, blank=True)
    opened_by = models.CharField(max_length=150, blank=True)
    opened_at = models.DateTimeField(db_default=Now(), editable=False)
    acknowledged_at = models.DateTimeField(null=True, blank=True, editable=False)
    acknowledged_by = models.CharField(max_length=150, blank=True, editable=False)
    note = models.TextField(blank=True, editable=False)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = "trip"
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["bar", "host"], condition=Q(acknowledged_at__isnull=True), name="trip_one_open_per_bar_and_host"
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by="", note="")
                | (Q(acknowledged_at__isnull=False) & ~Q(note="") & ~Q(acknowledged_by="")),
                name="trip_acknowledged_with_note",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_bar_display()} (trip {self.pk})"

    def delete(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse.

        Raises:
            AppendOnlyError: always.
        """
        raise AppendOnlyError("Envelope trips are append-only: acknowledge them instead.")


class StageEThrottleCounter(models.Model):
    """How often a dispatch found no slot; one row, raised atomically."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    count = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "throttle counter"
        verbose_name_plural = "throttle counter"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="throttle_counter_one_row")]

    def __str__(self) -> str:
        return f"{self.count} throttled"

    @classmethod
    def increment(cls) -> None:
        """Count one throttled dispatch."""
        cls._default_manager.get_or_create(id=1)
        cls._default_manager.filter(id=1).update(count=F("count") + 1, last_at=Now())


class CatalogPass(models.Model):
    """A named walk over the catalog, kept so that it can be taken up where it stopped."""

    name = models.CharField(max_length=64, unique=True)
    source = models.ForeignKey("Source", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    reextract = models.BooleanField(default=False, help_text="Read images again whose evidence is current.")
    sample = models.PositiveIntegerField(null=True, blank=True, help_text="Cards drawn; empty: all.")
    last_card_id = models.BigIntegerField(default=0, help_text="Every card up to this one has been taken.")
    cards_done = models.PositiveBigIntegerField(default=0)
    last_reason = models.CharField(max_length=40, blank=True)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "catalog passes"
        ordering = ["-started_at"]

    def __str__(self) -> str:
        return self.name
