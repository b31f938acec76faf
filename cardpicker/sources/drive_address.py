"""Addresses of Google Drive folders: the id, and the resource key that some older folders ask for."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass

from cardpicker.sources.errors import ListingError

# The image CDN holds both to the same forms: image-cdn/src/parameters.ts.
DRIVE_ID = re.compile(r"[A-Za-z0-9_-]{10,128}")
RESOURCE_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
_FOLDER_PATH = re.compile(r"/(?:drive/)?(?:u/\d+/)?folders/([^/]+)/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveFolder:
    """One folder of Google Drive."""

    identifier: str
    resource_key: str = ""

    def __str__(self) -> str:
        return f"{self.identifier}?resourcekey={self.resource_key}" if self.resource_key else self.identifier


def parse_folder(text: str) -> DriveFolder:
    """Return the folder that an id or a link names.

    Raises:
        ListingError: it names none.
    """
    try:
        parts = urllib.parse.urlsplit(text.strip())
        query = {key.lower(): values[0] for key, values in urllib.parse.parse_qs(parts.query).items()}
    except ValueError:
        raise _no_folder(text) from None
    identifier = parts.path
    if parts.scheme or parts.netloc:
        path = _FOLDER_PATH.fullmatch(parts.path)
        identifier = path[1] if path else query.get("id", "")
        if parts.scheme not in ("http", "https") or parts.hostname != "drive.google.com":
            raise _no_folder(text)
    resource_key = query.get("resourcekey", "")
    if not DRIVE_ID.fullmatch(identifier) or not (resource_key == "" or RESOURCE_KEY.fullmatch(resource_key)):
        raise _no_folder(text)
    return DriveFolder(identifier=identifier, resource_key=resource_key)


def _no_folder(text: str) -> ListingError:
    return ListingError(f"{text[:200]!r} is no Google Drive folder: give its id, or the link that its sharing shows.")
