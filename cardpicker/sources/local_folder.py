"""Kind ``local_folder``: the image files of a folder and its sub-folders on this host.

A file counts by its extension; whether the image is whole is for whoever reads it to find out, so a broken one is
listed as a card like any other. Every file is hashed at every sync: a checksum is the only proof of no change.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from cardpicker.models import Source
from cardpicker.sources import cards_csv
from cardpicker.sources.errors import ListingError, UnsafeIdentifierError
from cardpicker.sources.kinds import ListedCard, ListingProblem

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff", "avif"})

_CHUNK_BYTES = 1 << 20
#: What operating systems leave in folders; as unremarkable as hidden files.
_LITTER = frozenset({"thumbs.db", "desktop.ini", "__macosx"})


class LocalFolder:
    """Lists a folder; a card's identifier is its path relative to the folder, with forward slashes."""

    key = "local_folder"

    def list_cards(self, source: Source) -> Iterator[ListedCard | ListingProblem]:
        """List the folder's images, sorted by folder and name; the whole folder is walked before the first is hashed.

        Raises:
            ListingError: the folder is missing or unreadable, or its ``cards.csv`` is unusable.
        """
        root = Path(source.location)
        given = cards_csv.read_given_names(_readable_folder(root))
        found = list(_walk(root, ""))
        images = [identifier for identifier in found if isinstance(identifier, str)]
        yield from given.problems
        yield from (problem for problem in found if isinstance(problem, ListingProblem))
        if not images:
            yield ListingProblem(where=str(root), detail="no image files in this folder")
        for identifier in images:
            yield from _list_file(root, identifier, given.take(identifier))
        yield from given.leftovers()

    def image_location(self, source_location: str, identifier: str) -> str:
        """Return the ``file:`` URL of an image.

        Raises:
            UnsafeIdentifierError: the identifier is no relative path, or leads out of the folder by ``..`` or a link.
        """
        relative = PurePosixPath(identifier)
        if not relative.parts or relative.is_absolute() or ".." in relative.parts or "\0" in identifier:
            raise UnsafeIdentifierError(f"{identifier[:200]!r} is not a path inside the source's folder")
        root = Path(source_location)
        if not _is_inside(root, root / relative):
            raise UnsafeIdentifierError(f"{identifier[:200]!r} leads out of the source's folder")
        return (root.absolute() / relative).as_uri()


def _readable_folder(root: Path) -> Path:
    """Return ``root``, or raise what is wrong with it before anything is concluded."""
    try:
        os.scandir(root).close()
    except OSError as error:
        raise ListingError(f"{root}: cannot list the folder ({error.strerror or error}).") from error
    return root


def _is_inside(root: Path, path: Path) -> bool:
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except OSError:
        return False


def _walk(root: Path, prefix: str) -> Iterator[str | ListingProblem]:
    """Yield the identifiers of the image files under ``prefix`` (empty, or ending in ``/``), and what is odd there."""
    try:
        with os.scandir(root / prefix) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise ListingError(f"{root}: cannot list the folder ({error.strerror or error}).") from error
        yield ListingProblem(where=prefix, detail=f"cannot list ({error.strerror or error})", shields=prefix)
        return
    for entry in ordered:
        identifier = prefix + entry.name
        if entry.name.startswith(".") or entry.name.lower() in _LITTER or identifier == cards_csv.FILE_NAME:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, identifier + "/")
        elif problem := _objection(root, entry, identifier):
            yield problem
        else:
            yield identifier


def _objection(root: Path, entry: os.DirEntry[str], identifier: str) -> ListingProblem | None:
    """Say why a directory entry is no image file to list; what is inside the file is not looked at."""
    detail = None
    if not _is_utf8(identifier):
        detail = "its name is not UTF-8: rename it"
    elif entry.is_symlink() and not _is_inside(root, root / identifier):
        detail = "a link that leads out of the folder"
    elif entry.is_symlink() and not entry.is_file():
        detail = "a link to a folder is not followed" if entry.is_dir() else "a link that leads nowhere"
    elif _extension(identifier) not in IMAGE_EXTENSIONS:
        detail = "not an image file by its extension"
    return ListingProblem(where=identifier, detail=detail) if detail else None


def _is_utf8(identifier: str) -> bool:
    try:
        identifier.encode()
    except UnicodeEncodeError:
        return False
    return True


def _extension(identifier: str) -> str:
    return PurePosixPath(identifier).suffix.removeprefix(".").lower()


def _list_file(root: Path, identifier: str, given_name: str | None) -> Iterator[ListedCard | ListingProblem]:
    try:
        size, md5, sha256 = _digest(root / identifier)
    except OSError as error:
        yield ListingProblem(where=identifier, detail=f"cannot read ({error.strerror or error})", shields=identifier)
        return
    if not size:
        yield ListingProblem(where=identifier, detail="zero bytes: listed, but there is nothing to read")
    yield ListedCard(
        identifier=identifier,
        name=given_name or PurePosixPath(identifier).stem,
        image_version=sha256,
        extension=_extension(identifier),
        size=size,
        md5_checksum=md5,
        sha256_checksum=sha256,
    )


def _digest(path: Path) -> tuple[int, str, str]:
    """Return size, MD5 and SHA-256 of a regular file.

    Raises:
        OSError: it cannot be read, or is a pipe, socket or device, which is never waited for.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        md5, sha256, size = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0
        while chunk := file.read(_CHUNK_BYTES):
            md5.update(chunk)
            sha256.update(chunk)
            size += len(chunk)
    return size, md5.hexdigest(), sha256.hexdigest()
