"""Rows of a manifest, CSV or JSON lines, into listed cards. Pure but for reading the stream it is given.

CSV has a header with the columns ``name`` and ``url`` and perhaps ``checksum``; a line of JSON has the same as keys.
A bad row is named by its line and leaves the others unharmed.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

from cardpicker.sources.errors import ListingError, UnsafeIdentifierError
from cardpicker.sources.kinds import ListedCard, ListingProblem

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

MAX_LINE_LENGTH = 65_536
MAX_URL_LENGTH = 1_000
_CHECKSUM = re.compile(r"(?:(md5|sha256)[:=])?([0-9a-f]{32}|[0-9a-f]{64})", re.IGNORECASE)

Row = tuple[int, Mapping[str, object] | ListingProblem]


def check_text(stream: IO[str]) -> str:
    """Read the manifest to its end, rewind it, and return its first character that is no space.

    Raises:
        ListingError: it is not UTF-8, has a line that nobody means, or is a page or a single JSON document.
    """
    first = ""
    try:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_LENGTH + 1), ""), start=1):
            if len(line) > MAX_LINE_LENGTH:
                raise ListingError(f"line {number} is longer than {MAX_LINE_LENGTH:,} characters.")
            first = first or line.strip()[:1]
    except UnicodeDecodeError as error:
        raise ListingError(f"not UTF-8 ({error.reason}): save it as UTF-8.") from error
    if first == "<":
        raise ListingError("a web page, not a manifest.")
    if first == "[":
        raise ListingError("one JSON document: write one object a line instead.")
    stream.seek(0)
    return first


def read_rows(stream: IO[str], base: str) -> Iterator[ListedCard | ListingProblem]:
    """Yield what each row lists.

    Args:
        base: the manifest's own URL, which relative URLs start from; empty: there is none.

    Raises:
        ListingError: before the first row, when the manifest as a whole cannot be read.
    """
    rows = _json_rows(stream) if check_text(stream) == "{" else _csv_rows(stream)
    return (row if isinstance(row, ListingProblem) else _listed(line, row, base) for line, row in rows)


def checked_url(url: str, base: str = "") -> str:
    """Return the full URL of an image.

    Raises:
        UnsafeIdentifierError: it is not one that may be asked for; the message says why.
    """
    try:
        full, _ = urllib.parse.urldefrag(urllib.parse.urljoin(base, url) if base else url)
        parts = urllib.parse.urlsplit(full)
        _ = parts.port
    except ValueError:
        raise UnsafeIdentifierError(f"{url[:200]!r} is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UnsafeIdentifierError(f"{url[:200]!r} is no http or https URL")
    if "@" in parts.netloc:
        raise UnsafeIdentifierError("a URL with a user or password is not listed")
    if len(full) > MAX_URL_LENGTH or not full.isprintable() or " " in full:
        raise UnsafeIdentifierError(f"{full[:60]!r}… is longer than {MAX_URL_LENGTH} characters or holds spaces")
    return full


def _csv_rows(stream: IO[str]) -> Iterator[Row]:
    reader = csv.reader(stream)
    try:
        header = [cell.strip().lower() for cell in next(reader, [])]
    except csv.Error:
        header = []
    if "name" not in header or "url" not in header:
        raise ListingError("the first line must name the columns name and url, separated by a comma.")
    return _csv_body(reader, header)


def _csv_body(reader: CsvReader, header: list[str]) -> Iterator[Row]:
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, _problem(line, str(error))
            continue
        if any(cell.strip() for cell in row):
            yield line, dict(zip(header, row, strict=False))


def _json_rows(stream: IO[str]) -> Iterator[Row]:
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            yield line, _problem(line, "not a JSON object")
            continue
        yield line, row if isinstance(row, dict) else _problem(line, "not a JSON object")


def _listed(line: int, row: Mapping[str, object], base: str) -> ListedCard | ListingProblem:
    name, url, checksum, version = (_text(row.get(key)) for key in ("name", "url", "checksum", "version"))
    if not url:
        return _problem(line, "it has no url")
    try:
        identifier = checked_url(url, base)
    except UnsafeIdentifierError as error:
        return _problem(line, str(error))
    if "\n" in name:
        return _problem(line, "the name runs over several lines: is a quotation mark not closed?", identifier)
    digest = _CHECKSUM.fullmatch(checksum) if checksum else None
    if checksum and digest is None:
        return _problem(line, f"{checksum[:80]!r} is no MD5 or SHA-256 in hexadecimal", identifier)
    hexadecimal = digest[2].lower() if digest else ""
    if digest and digest[1] and (digest[1].lower() == "md5") != (len(hexadecimal) == 32):
        return _problem(line, f"{checksum[:80]!r} has not the length of its kind", identifier)
    path = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(identifier).path))
    return ListedCard(
        identifier=identifier,
        name=name or path.stem or identifier,
        image_version=hexadecimal or _version_without_checksum(identifier, version),
        extension=path.suffix.removeprefix(".").lower(),
        md5_checksum=hexadecimal if len(hexadecimal) == 32 else None,
        sha256_checksum=hexadecimal if len(hexadecimal) == 64 else None,
    )


def _version_without_checksum(identifier: str, version: str) -> str:
    """All that is known is what the row says: an image replaced behind its URL goes unnoticed without a version."""
    return f"row-{hashlib.sha256(f'{version} {identifier}'.encode()).hexdigest()}"


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _problem(line: int, detail: str, shields: str | None = None) -> ListingProblem:
    return ListingProblem(where=f"line {line}", detail=detail, shields=shields)
