"""Which sources are synced, each on its own: one that fails does not keep the others from their turn."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError
from django.utils import timezone

from cardpicker.catalogue.text import clean_text
from cardpicker.models import Source
from cardpicker.sources.errors import SourceError, UnknownSourceError
from cardpicker.sources.kinds import Progress
from cardpicker.sources.report import SyncReport
from cardpicker.sources.sync import sync_source

logger = logging.getLogger(__name__)

_REASON_MAX_LENGTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """A source that was synced."""

    source: Source
    report: SyncReport


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSynced:
    """A source that failed, and why, in one line."""

    source: Source
    reason: str


def choose_sources(keys: Collection[str]) -> list[Source]:
    """Return the sources of ``keys``, or every enabled one when none are named.

    Raises:
        UnknownSourceError: a key is unknown or its source disabled, or there is nothing to sync.
    """
    sources = {source.key: source for source in Source.objects.order_by("pk")}
    if not keys:
        enabled = [source for source in sources.values() if source.enabled]
        if not enabled:
            raise UnknownSourceError(
                "There is no enabled source: add one with --add-folder PATH, --add-manifest PATH|URL or --add-drive ID."
            )
        return enabled
    if unknown := [key for key in keys if key not in sources]:
        there_are = ", ".join(sources) or "none; add a folder with --add-folder PATH"
        raise UnknownSourceError(f"No source is called {', '.join(unknown)}. Sources: {there_are}.")
    if disabled := [key for key in keys if not sources[key].enabled]:
        raise UnknownSourceError(f"Disabled: {', '.join(disabled)}. Enable the source in the admin first.")
    return [sources[key] for key in dict.fromkeys(keys)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """How sources are synced; see ``sync_source``."""

    confirm_removals: bool = False
    changes_only: bool = False
    dry_run: bool = False


def sync_sources(
    sources: Collection[Source], options: SyncOptions, *, progress_of: Callable[[Source], Progress]
) -> Iterator[Synced | NotSynced]:
    """Sync each source and yield what became of it."""
    for source in sources:
        try:
            report = sync_source(
                source,
                confirm_removals=options.confirm_removals,
                changes_only=options.changes_only,
                dry_run=options.dry_run,
                progress=progress_of(source),
            )
        except (SourceError, DatabaseError, OSError) as error:
            yield _not_synced(source, " ".join(str(error).split()), options)
        except Exception as error:
            logger.exception("Sync of source %s failed", source.key)
            reason = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
            yield _not_synced(source, reason, options)
        else:
            yield Synced(source=source, report=report)


def _not_synced(source: Source, reason: str, options: SyncOptions) -> NotSynced:
    """Also keep the reason with the source, for whoever looks at it when nobody has seen the command's output."""
    if not options.dry_run:
        failed = {
            "failed": clean_text(reason, _REASON_MAX_LENGTH),
            "failed_at": timezone.now().isoformat(timespec="seconds"),
        }
        with contextlib.suppress(DatabaseError):
            # The report of the last good sync stays beside it; the next good one drops it.
            Source.objects.filter(pk=source.pk).update(last_sync_report={**failed, **_without(source, failed)})
    return NotSynced(source=source, reason=reason)


def _without(source: Source, keys: Collection[str]) -> dict[str, Any]:
    report = source.last_sync_report if isinstance(source.last_sync_report, dict) else {}
    return {key: value for key, value in report.items() if key not in keys}
