"""What operators' bulk commands keep about themselves."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class BulkRun(models.Model):
    """One walk of a bulk command over its scope: what it has done, and where it goes on when it is started again."""

    run_id = models.CharField(max_length=64, unique=True)
    command = models.CharField(max_length=50)
    scope = models.CharField(
        max_length=500, help_text="Which cards, in words; a dry run vouches for its own scope only."
    )
    writes = models.BooleanField(help_text="Whether what it did was kept.")
    override_note = models.CharField(max_length=500, blank=True, help_text="Why it wrote without a dry run.")
    last_card_id = models.BigIntegerField(default=0, help_text="Every card up to this one has been taken.")
    cards_done = models.PositiveBigIntegerField(default=0)
    counts = models.JSONField(default=dict)
    started_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-started_at"]
        indexes = [models.Index(fields=["command", "scope", "-finished_at"], name="bulk_run_scope")]

    def __str__(self) -> str:
        return self.run_id
