"""Syncs of sources that never overlap, and the one that runs by itself.

Two syncs of one source would end in the same cards, but ask its host twice; so each holds a lock of its source, kept
apart by the same primitive that counts dispatches.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta

from django.conf import settings
from django.db import close_old_connections
from django.db.models import Q
from django.utils import timezone

from cardpicker.models import Source
from cardpicker.sources.kinds import Progress
from cardpicker.sources.update import NotSynced, Synced, SyncOptions, sync_sources
from cardpicker.stage_e import work
from cardpicker.stage_e.concurrency import (
    SlotConnectionError,
    SlotSettings,
    TransactionPoolerError,
    try_acquire_dispatch_slot,
)
from cardpicker.stage_e.dispatch import slot_settings
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.stage_e.requests import request_dispatch

logger = logging.getLogger(__name__)

ALREADY_RUNNING = "another sync of it is at work: nothing was done twice"
OFF = "off: SOURCES_SYNC_HOURS is 0"
#: The schedule comes by every hour; without a margin it would find a daily source due an hour later each day.
_MARGIN = timedelta(minutes=30)


def sync_each(
    sources: Collection[Source], options: SyncOptions, *, progress_of: Callable[[Source], Progress]
) -> Iterator[Synced | NotSynced]:
    """Sync each source that nobody else syncs now, and yield what became of it."""
    for source in sources:
        if options.dry_run:
            yield from sync_sources([source], options, progress_of=progress_of)
            continue
        try:
            with try_acquire_dispatch_slot(_sole_sync(source)) as alone:
                if alone is None:
                    yield NotSynced(source=source, reason=ALREADY_RUNNING)
                    continue
                yield from sync_sources([source], options, progress_of=progress_of)
        except (SlotConnectionError, TransactionPoolerError) as error:
            yield NotSynced(source=source, reason=str(error))


def scheduled_sync() -> str:
    """Sync the enabled sources whose last sync is old enough: what django-q2's schedule runs, every hour.

    A source that failed is tried again the next hour; its report says why.
    """
    if not settings.STAGE_E.streaming_enabled:
        return str(DispatchStatus.DISABLED)
    if not settings.SOURCES.sync_hours:
        return OFF
    close_old_connections()
    latest = timezone.now() - timedelta(hours=settings.SOURCES.sync_hours) + _MARGIN
    due = Source.objects.filter(Q(last_synced_at__isnull=True) | Q(last_synced_at__lte=latest), enabled=True)
    synced = failed = 0
    for outcome in sync_each(list(due.order_by("pk")), SyncOptions(), progress_of=_silent):
        if isinstance(outcome, NotSynced):
            failed += 1
            logger.warning("source %s was not synced: %s", outcome.source.key, outcome.reason)
            continue
        synced += 1
        counts = ", ".join(f"{count} {name}" for name, count in outcome.report.counts() if count)
        logger.info("source %s was synced: %s", outcome.source.key, counts or "nothing listed")
    if work.is_due():
        request_dispatch("sync")
    return f"{synced} synced, {failed} failed"


def _sole_sync(source: Source) -> SlotSettings:
    slot = slot_settings(settings.STAGE_E)
    return dataclasses.replace(slot, slots=1, scope=f"sync of source {source.pk}", application_name="cardpicker-sync")


def _silent(source: Source) -> Progress:
    return lambda verb, done, total: None
