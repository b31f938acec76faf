"""A file as Google Drive describes it, into a listed card. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from cardpicker.sources.drive_address import DRIVE_ID, RESOURCE_KEY
from cardpicker.sources.kinds import ListedCard, ListingProblem
from cardpicker.sources.local_folder import IMAGE_EXTENSIONS

FOLDER = "application/vnd.google-apps.folder"
SHORTCUT = "application/vnd.google-apps.shortcut"

#: Pixels of height at 300 dpi of a card with its bleed, by which the image CDN too turns one into the other.
HEIGHT_PX_AT_300_DPI = 1_110
#: Short side over long side, from a card trimmed tight to one with a wide bleed.
_CARD_SHAPE = (0.68, 0.78)
_MD5, _SHA256 = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")
#: What uploaders that know no better declare.
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})

JsonObject = Mapping[str, Any]


def card_of(file: JsonObject, where: str, name: str) -> ListedCard | ListingProblem:
    """Return the card that a file is, or why it is none.

    Args:
        where: the file's path, for the operator.
        name: the file's name as its folder, or a shortcut, shows it.
    """
    identifier, path = str(file.get("id") or ""), PurePosixPath(name)
    extension = path.suffix.removeprefix(".").lower()
    has_extension = extension in IMAGE_EXTENSIONS
    kind = str(file.get("mimeType") or "")
    if not DRIVE_ID.fullmatch(identifier):
        return ListingProblem(where=where, detail="listed without a usable id")
    if not kind.startswith("image/") and not (kind in _UNKNOWN_TYPES and has_extension):
        return ListingProblem(where=where, detail=f"not an image file ({kind[:80] or 'no type'})")
    md5, sha256 = _digest(file, "md5Checksum", _MD5), _digest(file, "sha256Checksum", _SHA256)
    size = _whole_number(file.get("size"))
    return ListedCard(
        identifier=identifier,
        name=path.stem if has_extension else name,
        # The MD5 before the SHA-256: Drive has it of every file, and a version that changes its kind looks like a new image.
        image_version=md5 or sha256 or f"{str(file.get('modifiedTime') or 'unknown')[:40]} {size}",
        extension=extension if has_extension else kind.removeprefix("image/")[:10],
        size=size,
        md5_checksum=md5,
        sha256_checksum=sha256,
        dpi=dpi_of(file.get("imageMediaMetadata")),
        resource_key=resource_key_of(file.get("resourceKey")),
    )


def dpi_of(metadata: object) -> int | None:
    """Return the resolution of an image that has the shape of a card, as a multiple of 10; None of any other."""
    if not isinstance(metadata, Mapping):
        return None
    short, long = sorted((_whole_number(metadata.get("width")), _whole_number(metadata.get("height"))))
    if short < 1 or not _CARD_SHAPE[0] <= short / long <= _CARD_SHAPE[1]:
        return None
    return round(long * 300 / HEIGHT_PX_AT_300_DPI / 10) * 10 or None


def resource_key_of(value: object) -> str:
    """Return a resource key that may go into a header and a URL, else nothing."""
    return value if isinstance(value, str) and RESOURCE_KEY.fullmatch(value) else ""


def _digest(file: JsonObject, key: str, form: re.Pattern[str]) -> str | None:
    value = str(file.get(key) or "").lower()
    return value if form.fullmatch(value) else None


def _whole_number(value: object) -> int:
    """Return a number that may come as text; 0 for what is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
