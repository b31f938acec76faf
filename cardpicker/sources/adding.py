"""New sources: an address checked and written in its one form, so that it is one source however it is spelled."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from django.db import transaction
from django.utils.text import slugify

from cardpicker.catalogue.text import clean_text
from cardpicker.models import Source
from cardpicker.models.catalogue import IDENTIFIER_MAX_LENGTH
from cardpicker.sources.drive_address import parse_folder
from cardpicker.sources.errors import ListingError, UnsafeIdentifierError
from cardpicker.sources.google_drive import GoogleDrive
from cardpicker.sources.http_manifest import HttpManifest, is_web
from cardpicker.sources.local_folder import LocalFolder
from cardpicker.sources.manifest_rows import checked_url

_KEY_MAX_LENGTH = 90  # leaves room for a number
_NAME_MAX_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a source is, and what it is called unless somebody gives it a name."""

    kind: str
    location: str
    title: str


def folder_address(path: str) -> Address:
    """Return the address of a folder of images.

    Raises:
        ListingError: the folder is missing or unreadable, or its path cannot be stored.
    """
    if not path or "\0" in path:
        raise ListingError(f"{path!r} names no folder.")
    location = os.path.realpath(path)
    try:
        os.scandir(location).close()
    except OSError as error:
        raise ListingError(f"{path}: cannot list the folder ({error.strerror or error}).") from error
    return Address(kind=LocalFolder.key, location=location, title=Path(location).name or "folder")


def manifest_address(place: str) -> Address:
    """Return the address of a manifest, a file or a URL.

    Raises:
        ListingError: there is no such file, or the URL is none that is asked for.
    """
    if is_web(place):
        try:
            location = checked_url(place)
        except UnsafeIdentifierError as error:
            raise ListingError(f"{error}.") from error
        parts = urllib.parse.urlsplit(location)
        title = PurePosixPath(parts.path).stem or parts.hostname
        return Address(kind=HttpManifest.key, location=location, title=title or "manifest")
    if not place or "\0" in place or not Path(place).is_file():
        raise ListingError(f"{place!r} is neither a manifest's file nor its URL.")
    return Address(kind=HttpManifest.key, location=os.path.realpath(place), title=Path(place).stem or "manifest")


def drive_address(folder: str) -> Address:
    """Return the address of a folder of Google Drive, by its id or link.

    Raises:
        ListingError: it names none.
    """
    found = parse_folder(folder)
    return Address(kind=GoogleDrive.key, location=str(found), title=f"drive {found.identifier}")


#: By the option that adds such a source.
ADDRESSES: Mapping[str, Callable[[str], Address]] = {
    "add_folder": folder_address,
    "add_manifest": manifest_address,
    "add_drive": drive_address,
}


def add_source(address: Address, *, name: str = "", dry_run: bool = False) -> Source:
    """Return the source at ``address``, creating it unless it is known.

    Args:
        name: shown instead of the address's own title; renames a known source.
        dry_run: store nothing; a new source is returned without a primary key.

    Raises:
        ListingError: the address cannot be stored.
    """
    _check_storable(address.location)
    shown, title = (clean_text(text, _NAME_MAX_LENGTH) for text in (name, address.title))
    with transaction.atomic():
        known = Source.objects.select_for_update().filter(kind=address.kind, location=address.location).first()
        if known is None:
            key = _free_key(slugify(title)[:_KEY_MAX_LENGTH] or address.kind.rpartition("_")[2])
            known = Source(key=key, name=shown or title or key, kind=address.kind, location=address.location)
            if not dry_run:
                known.save()
        elif shown and known.name != shown and not dry_run:
            known.name = shown
            known.save(update_fields=["name"])
    return known


def add_folder(path: str, *, name: str = "") -> Source:
    """Return the source of the folder at ``path``, creating it unless it is known.

    Raises:
        ListingError: the folder is missing or unreadable, or its path cannot be stored.
    """
    return add_source(folder_address(path), name=name)


def _check_storable(location: str) -> None:
    try:
        location.encode()
    except UnicodeEncodeError as error:
        raise ListingError(f"{location!a}: the path is not UTF-8: rename the folder.") from error
    if len(location) > IDENTIFIER_MAX_LENGTH:
        raise ListingError(f"{location[:100]}…: the path is longer than {IDENTIFIER_MAX_LENGTH} characters.")


def _free_key(wanted: str) -> str:
    taken = set(Source.objects.filter(key__startswith=wanted).values_list("key", flat=True))
    return next(key for number in range(1, len(taken) + 2) if (key := _numbered(wanted, number)) not in taken)


def _numbered(wanted: str, number: int) -> str:
    return wanted if number == 1 else f"{wanted}-{number}"
