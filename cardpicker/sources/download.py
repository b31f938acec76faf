"""A listing from the web into a file: bounded in time and bytes, and whole or not at all.

Proxies of the environment are used. Errors name the address without its query, which may hold a key.
"""

from __future__ import annotations

import time
import urllib.parse
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

import requests
import urllib3

from cardpicker.bounded import call_within
from cardpicker.sources.errors import ListingError

USER_AGENT = "cardpicker/1 (image identification)"
MAX_REDIRECTS = 5

_CONNECT_S, _SILENCE_S = 10.0, 30.0
_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadLimits:
    """How much of a listing is waited for."""

    deadline_s: float = 300.0
    max_bytes: int = 200_000_000


def download(
    url: str, into: IO[bytes], headers: Mapping[str, str], limits: DownloadLimits
) -> tuple[int, Mapping[str, str]]:
    """Write the body of a 200 to ``into``, and return status and headers of a 200 or a 304.

    Raises:
        ListingError: anything else came of it.
    """
    ends_at = time.monotonic() + limits.deadline_s
    where = shown_url(url)
    try:
        with requests.Session() as session:
            session.max_redirects = MAX_REDIRECTS
            sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **headers}
            response = call_within(
                limits.deadline_s,
                lambda: session.get(url, headers=sent, stream=True, timeout=(_CONNECT_S, _SILENCE_S)),
            )
            with response:
                if response.status_code not in (requests.codes.ok, requests.codes.not_modified):
                    raise ListingError(f"{where}: the server answered {response.status_code}; nothing was changed.")
                if response.status_code == requests.codes.ok:
                    _receive(response, into, limits.max_bytes, ends_at)
                return response.status_code, response.headers
    except (OSError, ValueError, zlib.error, urllib3.exceptions.HTTPError) as error:
        raise ListingError(f"{where}: {reason_of(error)}; nothing was changed.") from error


def shown_url(url: str) -> str:
    """Return a URL fit for a log: no query, no user."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"[:200]
    except ValueError:
        return "a URL that is none"


def reason_of(error: Exception) -> str:
    """Say in words why an exchange failed; the exceptions' own texts repeat the whole URL."""
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (_TooLargeError, str(error)),
        (_ShortBodyError, str(error)),
        (requests.exceptions.ProxyError, "the proxy of the environment does not let it through"),
        (requests.exceptions.SSLError, "its certificate is not valid"),
        (requests.exceptions.TooManyRedirects, f"more than {MAX_REDIRECTS} redirects"),
        (requests.exceptions.Timeout, "no answer in time"),
        (urllib3.exceptions.TimeoutError, "no answer in time"),
        (TimeoutError, "no answer in time"),
        (urllib3.exceptions.ProtocolError, "the answer broke off"),
        (urllib3.exceptions.DecodeError, f"compressed by {error}, which was not asked for"),
        (zlib.error, "the answer's compression is damaged"),
        (requests.exceptions.ConnectionError, "no connection"),
        (ValueError, "not an address to ask"),
    )
    return next((text for kind, text in kinds if isinstance(error, kind)), type(error).__name__)


class _TooLargeError(OSError):
    """The body is larger than a listing may be."""


class _ShortBodyError(OSError):
    """Less arrived than was announced."""


def _receive(response: requests.Response, into: IO[bytes], max_bytes: int, ends_at: float) -> None:
    """Read as bytes come: a read that waits for a full chunk would let a trickle pass every time-out."""
    raw: urllib3.HTTPResponse = response.raw
    unpack = _unpacker(response.headers.get("Content-Encoding", ""))
    received = 0
    while chunk := raw.read1(_CHUNK_BYTES, decode_content=False):
        plain = unpack.decompress(chunk, max_bytes + 1) if unpack else chunk
        received += len(plain)
        if received > max_bytes:
            raise _TooLargeError(f"more than {max_bytes:,} bytes")
        if time.monotonic() > ends_at:
            raise TimeoutError
        into.write(plain)
    if unpack and (not unpack.eof or unpack.unused_data):
        raise _ShortBodyError("the answer broke off inside its compression")


def _unpacker(encoding: str) -> zlib._Decompress | None:
    """Return what undoes gzip: libraries take a compressed body that was cut for a whole one."""
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip":
            return zlib.decompressobj(wbits=31)
        case other:
            raise urllib3.exceptions.DecodeError(other)
