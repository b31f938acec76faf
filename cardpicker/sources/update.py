"""Which sources are synced, each on its own: one that fails does not keep the others from their turn."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.db import DatabaseError, transaction
from django.utils.text import slugify

from cardpicker.catalogue.text import clean_text
from cardpicker.models import Source
from cardpicker.models.catalogue import IDENTIFIER_MAX_LENGTH
from cardpicker.sources.errors import ListingError, SourceError, UnknownSourceError
from cardpicker.sources.kinds import Progress
from cardpicker.sources.local_folder import LocalFolder
from cardpicker.sources.report import SyncReport
from cardpicker.sources.sync import sync_source

logger = logging.getLogger(__name__)

_KEY_MAX_LENGTH = 90  # leaves room for a number
_NAME_MAX_LENGTH = 200


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


def add_folder(path: str, *, name: str = "") -> Source:
    """Return the source of the folder at ``path``, creating it unless it is known.

    Args:
        name: shown instead of the folder's own name; renames a known source.

    Raises:
        ListingError: the folder is missing or unreadable, or its path cannot be stored.
    """
    if not path or "\0" in path:
        raise ListingError(f"{path!r} names no folder.")
    location = os.path.realpath(path)
    try:
        os.scandir(location).close()
        location.encode()
    except OSError as error:
        raise ListingError(f"{path}: cannot list the folder ({error.strerror or error}).") from error
    except UnicodeEncodeError as error:
        raise ListingError(f"{path!a}: the path is not UTF-8: rename the folder.") from error
    if len(location) > IDENTIFIER_MAX_LENGTH:
        raise ListingError(f"{path[:100]}…: the path is longer than {IDENTIFIER_MAX_LENGTH} characters.")
    shown = clean_text(name, _NAME_MAX_LENGTH)
    with transaction.atomic():
        known = Source.objects.select_for_update().filter(kind=LocalFolder.key, location=location).first()
        if known is None:
            folder = clean_text(Path(location).name, _NAME_MAX_LENGTH) or "folder"
            key = _free_key(slugify(folder)[:_KEY_MAX_LENGTH] or "folder")
            return Source.objects.create(key=key, name=shown or folder, kind=LocalFolder.key, location=location)
        if shown and known.name != shown:
            known.name = shown
            known.save(update_fields=["name"])
    return known


def _free_key(wanted: str) -> str:
    taken = set(Source.objects.filter(key__startswith=wanted).values_list("key", flat=True))
    return next(key for number in range(1, len(taken) + 2) if (key := _numbered(wanted, number)) not in taken)


def _numbered(wanted: str, number: int) -> str:
    return wanted if number == 1 else f"{wanted}-{number}"


def choose_sources(keys: Collection[str]) -> list[Source]:
    """Return the sources of ``keys``, or every enabled one when none are named.

    Raises:
        UnknownSourceError: a key is unknown or its source disabled, or there is nothing to sync.
    """
    sources = {source.key: source for source in Source.objects.order_by("pk")}
    if not keys:
        enabled = [source for source in sources.values() if source.enabled]
        if not enabled:
            raise UnknownSourceError("There is no enabled source: add a folder of images with --add-folder PATH.")
        return enabled
    if unknown := [key for key in keys if key not in sources]:
        there_are = ", ".join(sources) or "none; add a folder with --add-folder PATH"
        raise UnknownSourceError(f"No source is called {', '.join(unknown)}. Sources: {there_are}.")
    if disabled := [key for key in keys if not sources[key].enabled]:
        raise UnknownSourceError(f"Disabled: {', '.join(disabled)}. Enable the source in the admin first.")
    return [sources[key] for key in dict.fromkeys(keys)]


def sync_sources(
    sources: Collection[Source], *, confirm_removals: bool, progress_of: Callable[[Source], Progress]
) -> Iterator[Synced | NotSynced]:
    """Sync each source and yield what became of it."""
    for source in sources:
        try:
            report = sync_source(source, confirm_removals=confirm_removals, progress=progress_of(source))
        except (SourceError, DatabaseError, OSError) as error:
            yield NotSynced(source=source, reason=" ".join(str(error).split()))
        except Exception as error:
            logger.exception("Sync of source %s failed", source.key)
            yield NotSynced(source=source, reason=f"unexpected {type(error).__name__}: {' '.join(str(error).split())}")
        else:
            yield Synced(source=source, report=report)
