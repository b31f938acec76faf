"""The record of bulk commands: taking one up where it stopped, and writing only what a dry run has shown."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F
from django.db.models.functions import Now

from cardpicker.catalogue.text import clean_text
from cardpicker.models import BulkRun
from cardpicker.operations.bulk.jobs import BulkError, BulkJob

#: A dry run older than this says little of what a write would do now.
DRY_RUN_HOLDS = timedelta(hours=48)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOptions:
    """How a bulk command is run."""

    writes: bool = False
    override_note: str = ""  #: Why it may write without a dry run.
    restart: bool = False  #: From the first card, whatever an interrupted run has done.
    chunk_size: int = 500
    workers: int = 1
    max_chunks: int | None = None
    diff: bool = False  #: Whether changes of votes and answers are collected.


def open_run(job: BulkJob, options: BulkOptions) -> BulkRun:
    """Return the run to go on with: an interrupted one of the same scope and kind, else a new one.

    Raises:
        BulkError: the job writes only after a dry run, and there is none of this scope.
    """
    words = clean_text(job.words, 500)
    same = BulkRun.objects.filter(command=job.command, scope=words)
    note = clean_text(options.override_note, 500)
    if options.writes and job.needs_dry_run and not note:
        shown = same.filter(writes=False, finished_at__isnull=False, started_at__gte=Now() - DRY_RUN_HOLDS)
        if not shown.exists():
            raise BulkError(
                f"No dry run of {words!r} was finished in the last 48 h: run the command without --write first,"
                " or say why not with --override NOTE."
            )
    interrupted = same.filter(writes=options.writes, finished_at__isnull=True, started_at__gte=Now() - DRY_RUN_HOLDS)
    found = None if options.restart else interrupted.order_by("-pk").first()
    if found is not None:
        if note:
            BulkRun.objects.filter(pk=found.pk).update(override_note=note)
        return found
    return BulkRun.objects.create(
        run_id=f"{job.command}-{uuid.uuid4().hex[:12]}"[-64:],
        command=job.command,
        scope=words,
        writes=options.writes,
        override_note=note,
    )


def advance(run: BulkRun, last_card_id: int, cards: int, counts: Mapping[str, int]) -> None:
    """Record a finished chunk.

    Raises:
        BulkError: another process has taken the run further.
    """
    total = {name: run.counts.get(name, 0) + counts.get(name, 0) for name in {*run.counts, *counts}}
    mine = BulkRun.objects.filter(pk=run.pk, last_card_id=run.last_card_id, finished_at__isnull=True)
    if not mine.update(last_card_id=last_card_id, cards_done=F("cards_done") + cards, counts=total):
        raise BulkError(f"Another process goes on with {run.run_id}: let it, or start anew with --restart.")
    run.refresh_from_db()


def finish(run: BulkRun) -> None:
    """Record that the run has come to its end."""
    BulkRun.objects.filter(pk=run.pk, finished_at__isnull=True).update(finished_at=Now())
    run.refresh_from_db()
