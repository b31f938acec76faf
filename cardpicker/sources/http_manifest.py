"""Kind ``http_manifest``: a list of names and image URLs, itself a file of this host or on the web.

The whole manifest is had and checked before its first row counts. On the web, its ETag and Last-Modified are kept with
the source, and an answer of "not modified" changes nothing.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import requests

from cardpicker.models import Source
from cardpicker.sources.download import DownloadLimits, download, shown_url
from cardpicker.sources.errors import ListingError
from cardpicker.sources.kinds import ListedCard, ListingNote, ListingProblem
from cardpicker.sources.manifest_rows import checked_url, read_rows

#: Raised when rows are read differently, so that an unmodified manifest is read again.
_READING = 1


class HttpManifest:
    """Lists a manifest; a card's identifier is its image's URL."""

    key = "http_manifest"

    def __init__(self, limits: DownloadLimits | None = None) -> None:
        self._limits = limits or DownloadLimits()

    def list_cards(self, source: Source) -> Iterator[ListedCard | ListingProblem | ListingNote]:
        """List the manifest's rows in order.

        Raises:
            ListingError: the manifest could not be had whole, or is none.
        """
        location = source.location
        base = location if is_web(location) else ""
        with tempfile.TemporaryFile(prefix="cardpicker-manifest-") as spool:
            note = self._download(location, source.listing_state, spool) if base else _copy(location, spool)
            yield note
            if note.is_partial:
                return
            spool.seek(0)
            try:
                rows = read_rows(io.TextIOWrapper(spool, "utf-8-sig", newline=""), base)
            except ListingError as error:
                raise ListingError(f"{shown_location(location)}: {error}") from error
            yield from rows

    def image_location(self, source_location: str, identifier: str) -> str:
        """Return the URL of an image, which is its identifier.

        Raises:
            UnsafeIdentifierError: it is no http or https URL, or has a user in it.
        """
        return checked_url(identifier)

    def _download(self, location: str, state: Mapping[str, Any], spool: IO[bytes]) -> ListingNote:
        kept = state if state.get("location") == location and state.get("reading") == _READING else {}
        asked = {"If-None-Match": kept.get("etag"), "If-Modified-Since": kept.get("last_modified")}
        conditions = {name: str(value) for name, value in asked.items() if value}
        status, headers = download(
            location, spool, {"Accept": "text/csv, application/x-ndjson, */*;q=0.5", **conditions}, self._limits
        )
        if status == requests.codes.not_modified:
            if not conditions:
                raise ListingError(f"{shown_url(location)}: answered 304 to a question that had no condition.")
            return ListingNote(detail="not modified since the last sync: nothing was changed", is_partial=True)
        validators = {"etag": headers.get("ETag"), "last_modified": headers.get("Last-Modified")}
        return ListingNote(state={"location": location, "reading": _READING, **validators})


def is_web(location: str) -> bool:
    """Whether a manifest's location is a URL rather than a path."""
    return location.lower().startswith(("http://", "https://"))


def shown_location(location: str) -> str:
    """Return a manifest's location fit for a log."""
    return shown_url(location) if is_web(location) else location


def _copy(path: str, spool: IO[bytes]) -> ListingNote:
    """Copy the file, so that what is checked is what is read."""
    try:
        if not Path(path).is_file():
            raise ListingError(f"{path}: not a file.")
        with open(path, "rb") as file:
            shutil.copyfileobj(file, spool)
    except OSError as error:
        raise ListingError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return ListingNote()
