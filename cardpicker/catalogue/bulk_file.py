"""Scryfall's bulk file as a stream of JSON values: from a path or URL, gzip or not, array or lines.

Nothing is held but the record at hand. The shapes are told apart by content, never by name. Arrays with one record a
line, which is how Scryfall writes them, are read by line: faster, and one broken record costs only itself.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import ijson
import requests
import urllib3

from cardpicker.catalogue.errors import BulkFileError, ServerRefusedError

_BUFFER_BYTES = 1 << 18
_MAX_LINE_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_BOM = b"\xef\xbb\xbf"
_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 10, 60
_HEADERS = {"User-Agent": "cardpicker/1.0", "Accept": "application/json;q=0.9,*/*;q=0.8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the file a record stands: the number of its line, or of itself where lines mean nothing."""

    number: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.unit} {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that was skipped, and why."""

    place: Place
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One JSON value of the file."""

    place: Place
    value: object


def read_bulk(location: str) -> Iterator[Record | BadRecord]:
    """Yield the records of the file at ``location``, a path or an http(s) URL.

    Raises:
        BulkFileError: it is missing, cut short, damaged, or neither a JSON array nor JSON lines.
    """
    label = _label(location)
    try:
        with _open(location) as raw:
            yield from _records(_decompressed(raw), label)
    except BulkFileError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BulkFileError(f"{label}: the gzip data is damaged or cut short ({error}): get the file again.") from error
    except ijson.JSONError as error:
        raise BulkFileError(f"{label}: the JSON is malformed or cut short ({_one_line(error)}).") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise BulkFileError(f"{label}: the download failed ({_one_line(error)}): try again.") from error
    except OSError as error:
        raise BulkFileError(f"{label}: {error.strerror or error}.") from error


def _label(location: str) -> str:
    """Return the location as it may be shown: without a URL's user and password, query or fragment."""
    if not _is_url(location):
        return location
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _is_url(location: str) -> bool:
    return location.lower().startswith(("http://", "https://"))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


@contextmanager
def _open(location: str) -> Generator[BinaryIO, None, None]:
    if not _is_url(location):
        if "\0" in location:
            raise BulkFileError(f"{location!r}: no path holds a NUL.")
        with open(location, "rb") as file:
            yield file
        return
    timeout = (_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S)
    with requests.get(location, stream=True, timeout=timeout, headers=_HEADERS) as response:
        if response.status_code != requests.codes.ok:
            raise ServerRefusedError(
                f"{_label(location)}: the server answered {response.status_code} {response.reason}.",
                status=response.status_code,
                retry_after=response.headers.get("Retry-After", ""),
            )
        response.raw.decode_content = True
        response.raw.auto_close = False  # or readers on top of it fail at the end instead of ending
        yield cast(BinaryIO, response.raw)


def _decompressed(raw: BinaryIO) -> io.BufferedReader[io.RawIOBase]:
    stream = io.BufferedReader(cast(io.RawIOBase, raw), _BUFFER_BYTES)
    if stream.peek(2)[:2] == _GZIP_MAGIC:
        stream = io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=stream)), _BUFFER_BYTES)
    return stream


def _records(stream: io.BufferedReader[io.RawIOBase], label: str) -> Iterator[Record | BadRecord]:
    lines = _numbered_lines(stream)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, b""))
    opening = first.removeprefix(_UTF8_BOM).lstrip()[:1]
    if not number:
        raise BulkFileError(f"{label}: the file is empty.")
    if opening == b"{":
        return _by_line(chain([(number, first.removeprefix(_UTF8_BOM))], lines))
    if opening != b"[":
        raise BulkFileError(f"{label}: neither a JSON array nor JSON lines: is it Scryfall's bulk file?")
    if first.removeprefix(_UTF8_BOM).strip() != b"[":
        return _by_parser(_Rejoined(first.removeprefix(_UTF8_BOM), stream))
    second_number, second = next(lines, (number + 1, b""))
    if _is_whole_record(second):
        return _by_array_line(chain([(second_number, second)], lines), label)
    return _by_parser(_Rejoined(b"[" + second, stream))


def _numbered_lines(stream: io.BufferedReader[io.RawIOBase]) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number; of a line longer than the limit only its beginning."""
    number = 0
    while line := stream.readline(_MAX_LINE_BYTES):
        number += 1
        yield number, line
        while len(line) == _MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = stream.readline(_MAX_LINE_BYTES)


def _is_whole_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.strip().removesuffix(b",")), dict)
    except (ValueError, RecursionError):
        return False


def _by_line(lines: Iterable[tuple[int, bytes]]) -> Iterator[Record | BadRecord]:
    for number, line in lines:
        if text := line.strip():
            yield _parsed(text, Place(number=number))


def _by_array_line(lines: Iterable[tuple[int, bytes]], label: str) -> Iterator[Record | BadRecord]:
    closed = False
    for number, line in lines:
        text = line.strip()
        closed = closed or text.endswith(b"]")
        if text := text.removesuffix(b"]").strip().removesuffix(b","):
            yield _parsed(text, Place(number=number))
    if not closed:
        raise BulkFileError(f"{label}: the file ends before its array does: get the file again.")


def _parsed(text: bytes, place: Place) -> Record | BadRecord:
    if len(text) >= _MAX_LINE_BYTES - 1:
        return BadRecord(place=place, reason=f"longer than {_MAX_LINE_BYTES} bytes")
    try:
        return Record(place=place, value=json.loads(text))
    except (ValueError, RecursionError) as error:
        return BadRecord(place=place, reason=f"not JSON ({error})")


def _by_parser(stream: _Rejoined) -> Iterator[Record | BadRecord]:
    for number, value in enumerate(ijson.items(stream, "item", use_float=True), start=1):
        yield Record(place=Place(number=number, unit="record"), value=value)


class _Rejoined:
    """A stream with what was read ahead put back in front."""

    def __init__(self, head: bytes, rest: io.BufferedReader[io.RawIOBase]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> Any:
        """Return up to ``size`` bytes; empty only at the end."""
        if not self._head or size == 0:
            return self._rest.read(size)
        head = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(head) :]
        return head + self._rest.read() if size < 0 else head
