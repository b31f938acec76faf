"""A small HTTP client for images: one a thread, no cookies, no credentials, bounded in time, bytes and redirects."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from cardpicker.stage_c.fetch.connection import Connection, Deadline, PrivateAddressError
from cardpicker.stage_c.fetch.proxies import Proxies, is_askable
from cardpicker.stage_c.fetch.urls import BadUrlError, Target, parse_url
from cardpicker.stage_c.outcomes import Failed, Unusable, UnusableKind

MAX_REDIRECTS = 5
ERROR_BODY_BYTES = 4_096  #: Read of an answer that is no success, to learn its reason.
KEPT_CONNECTIONS = 4
CHUNK_BYTES = 65_536
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {"User-Agent": "cardpicker/1 (image identification)", "Accept": "image/*", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server said after its redirects, or the redirect that was not followed."""

    target: Target
    status: int
    headers: Mapping[str, str]  #: Names in lower case.
    body: bytes
    next_url: str | None = None  #: Where a redirect leads.


class HttpClient:
    """Connections of one thread, kept alive between fetches of the same host."""

    def __init__(self, *, deadline_s: float, max_bytes: int) -> None:
        self._deadline_s = deadline_s
        self._max_bytes = max_bytes
        self._proxies = Proxies.from_environment()
        self._kept: dict[tuple[bool, str, int, bool], Connection] = {}

    def close(self) -> None:
        """Close every kept connection."""
        for connection in self._kept.values():
            connection.close()
        self._kept.clear()

    def get(
        self, url: str, private_hosts: frozenset[str] = frozenset()
    ) -> Generator[Answer | Failed | Unusable, None, None]:
        """Yield the answer of each hop; the next hop is taken only when the caller asks for it. To be closed.

        Args:
            private_hosts: host names that may have private addresses.
        """
        base = url
        with Deadline(self._deadline_s) as deadline:
            for _ in range(MAX_REDIRECTS + 1):
                answer = self._ask(url, base, private_hosts, deadline)
                yield answer
                if not isinstance(answer, Answer) or answer.next_url is None:
                    return
                base, url = answer.target.url, answer.next_url
            yield Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=f"more than {MAX_REDIRECTS} redirects")

    def _ask(
        self, url: str, base: str, private_hosts: frozenset[str], deadline: Deadline
    ) -> Answer | Failed | Unusable:
        try:
            target = parse_url(url, base)
            return self._exchange(target, private_hosts, deadline)
        except (BadUrlError, PrivateAddressError, http.client.InvalidURL) as error:
            return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=f"not fetched: {error}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            if deadline.passed or isinstance(error, TimeoutError):
                return Failed(detail=f"no whole answer in time ({deadline.seconds:g} s) from {target.shown}")
            return Failed(detail=f"{type(error).__name__}: {str(error)[:150]} at {target.shown}")

    def _exchange(
        self, target: Target, private_hosts: frozenset[str], deadline: Deadline
    ) -> Answer | Failed | Unusable:
        public_only = target.host not in private_hosts
        key = (target.tls, target.host, target.port, public_only)
        connection = self._kept.pop(key, None)
        if connection is not None:
            try:
                return self._converse(connection, target, key, deadline)
            except ConnectionError:
                # The server closed it while it was idle; a fresh one tells whether the server is there.
                connection.close()
        proxy = self._proxies.proxy_for(target, private_hosts)
        if proxy is not None and public_only and not is_askable(target, deadline.remaining_s):
            raise PrivateAddressError(f"{target.host} is a private address")
        connection = Connection(
            host=target.host, port=target.port, tls=target.tls, public_only=public_only, proxy=proxy
        )
        return self._converse(connection, target, key, deadline)

    def _converse(
        self, connection: Connection, target: Target, key: tuple[bool, str, int, bool], deadline: Deadline
    ) -> Answer | Failed | Unusable:
        connection.deadline = deadline
        done = False
        try:
            if connection.sock is not None:
                deadline.guard(connection.sock)
            asked, headers = _request(connection, target)
            connection.request("GET", asked, headers=headers)
            with contextlib.closing(connection.getresponse()) as response:
                wanted = self._max_bytes if response.status == 200 else ERROR_BODY_BYTES
                result, done = _receive(response, target, wanted, deadline)
                done = done and not response.will_close
        finally:
            if done and connection.sock is not None:
                self._keep(key, connection)
            else:
                connection.close()
        return result

    def _keep(self, key: tuple[bool, str, int, bool], connection: Connection) -> None:
        if len(self._kept) >= KEPT_CONNECTIONS:
            self._kept.pop(next(iter(self._kept))).close()
        self._kept[key] = connection


def _request(connection: Connection, target: Target) -> tuple[str, dict[str, str]]:
    """Return what is asked for, and the headers: a proxy is asked for the whole URL, unless it is a mere tunnel."""
    if connection.proxy is None or target.tls:
        return target.path, _HEADERS
    authorization = connection.proxy.authorization
    return target.url, {**_HEADERS, **({"Proxy-Authorization": authorization} if authorization else {})}


def _receive(
    response: http.client.HTTPResponse, target: Target, max_bytes: int, deadline: Deadline
) -> tuple[Answer | Failed | Unusable, bool]:
    """Read one answer; also say whether the connection is left clean behind it."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    declared = response.length
    success = response.status == 200
    if success and declared is not None and declared > max_bytes:
        return _too_large(f"{declared:,}", max_bytes, target), False
    if success and headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        return Failed(detail=f"compressed transfer that was not asked for from {target.shown}"), False
    body, whole = _read(response, declared, max_bytes, deadline)
    if deadline.passed and not whole:
        raise TimeoutError
    if success and len(body) > max_bytes:
        return _too_large(f"over {max_bytes:,}", max_bytes, target), False
    if success and not whole:
        return Failed(detail=f"short body: {len(body):,} of {declared or 0:,} bytes from {target.shown}"), False
    next_url = headers.get("location") if response.status in REDIRECTS else None
    answer = Answer(target=target, status=response.status, headers=headers, body=body, next_url=next_url)
    return answer, whole


def _read(
    response: http.client.HTTPResponse, declared: int | None, max_bytes: int, deadline: Deadline
) -> tuple[bytes, bool]:
    """Read up to a chunk beyond ``max_bytes``; also say whether that was the whole body.

    Raises:
        http.client.IncompleteRead: a chunked body broke off.
    """
    chunks: list[bytes] = []
    received = 0
    while received <= max_bytes and received != declared and not deadline.passed:
        ahead = CHUNK_BYTES if declared is None else min(CHUNK_BYTES, declared - received)
        chunk = response.read1(ahead)
        if not chunk:
            # Where no length was declared and nothing broke off, the end of the stream is the end of the body.
            return b"".join(chunks), declared is None and not deadline.passed
        chunks.append(chunk)
        received += len(chunk)
    return b"".join(chunks), received == declared


def _too_large(size: str, limit: int, target: Target) -> Unusable:
    detail = f"{size} bytes, more than the limit of {limit:,} (STAGE_C_FETCH_MAX_BYTES), at {target.shown}"
    return Unusable(kind=UnusableKind.TOO_MANY_BYTES, detail=detail)
