"""Kind ``google_drive``: the images of a folder of Google Drive and of all folders below it.

The listing is had as a whole before its first card counts: of half a drive, nothing can be said. Images themselves do
not come from Drive but through the image CDN, so there is no location here to fetch one from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings

from cardpicker.models import Source
from cardpicker.sources.drive_address import DriveFolder, parse_folder
from cardpicker.sources.drive_api import DriveApi
from cardpicker.sources.drive_auth import credential_of
from cardpicker.sources.drive_walk import DriveWalk
from cardpicker.sources.errors import UnsafeIdentifierError
from cardpicker.sources.kinds import ListedCard, ListingNote, ListingProblem, ListingProgress
from cardpicker.sources.spool import Spool

#: What changes while a listing runs, and what Google takes to show it, is asked for again the next time.
_OVERLAP = timedelta(hours=1)
_PROGRESS_FILES = 200

Listing = Iterator[ListedCard | ListingProblem | ListingNote | ListingProgress]


def _open_api() -> DriveApi:
    return DriveApi(credential=credential_of(settings.SOURCES))


class GoogleDrive:
    """Lists a folder; a card's identifier is its file's id."""

    key = "google_drive"

    def __init__(self, open_api: Callable[[], DriveApi] = _open_api) -> None:
        self._open_api = open_api

    def list_cards(self, source: Source) -> Listing:
        """List the whole folder.

        Raises:
            ListingError: no key is set, the folder is not to be seen, or any page of it could not be had.
        """
        yield from self._list(source, {})

    def list_changes(self, source: Source) -> Listing:
        """List what was created or modified since the last listing, and new folders whole.

        A file that was moved here from elsewhere, or taken away, shows only in a whole listing.

        Raises:
            ListingError: as for ``list_cards``.
        """
        state = source.listing_state
        yield from self._list(source, state if state.get("location") == source.location else {})

    def image_location(self, source_location: str, identifier: str) -> str:
        """Never return: Drive's images come through the image CDN.

        Raises:
            UnsafeIdentifierError: always.
        """
        raise UnsafeIdentifierError("Google Drive images come through the image CDN only")

    def _list(self, source: Source, state: dict[str, Any]) -> Listing:
        root = parse_folder(source.location)
        since, known = str(state.get("since") or ""), frozenset(map(str, state.get("folders") or ()))
        api = self._open_api()
        walk = DriveWalk(api=api, since=since, known=known)
        with contextlib.closing(api.session), Spool() as spool:
            yield from _gather(walk, root, spool)
            yield _note(walk, source.location, since, known)
            yield from spool.entries()


def _gather(walk: DriveWalk, root: DriveFolder, spool: Spool) -> Iterator[ListingProgress]:
    told = 0
    for entry in walk.entries(root):
        spool.add(entry)
        if walk.files - told >= _PROGRESS_FILES:
            told = walk.files
            yield ListingProgress(done=told)


def _note(walk: DriveWalk, location: str, since: str, known: frozenset[str]) -> ListingNote:
    started = (walk.api.server_time or datetime.now(UTC)) - _OVERLAP
    state = {
        "location": location,
        "since": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "folders": sorted((known | walk.folders if since else walk.folders) - walk.unseen),
    }
    details = [f"only what changed since {since} was asked for"] if since else []
    if walk.unseen:
        details.append("a part of the drive is not to be seen: nothing is taken for removed")
    return ListingNote(detail="; ".join(details), is_partial=bool(since or walk.unseen), state=state)
