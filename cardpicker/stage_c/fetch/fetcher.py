"""One location to bytes: a file, or HTTP with its redirects. No retries: another try is the caller's to plan."""

from __future__ import annotations

import contextlib
import threading
import urllib.parse
from dataclasses import dataclass

from cardpicker.stage_c.fetch.cdn_errors import judge_cdn
from cardpicker.stage_c.fetch.classify import check_digests, classify, is_sign_in
from cardpicker.stage_c.fetch.client import Answer, HttpClient
from cardpicker.stage_c.fetch.files import read_file
from cardpicker.stage_c.fetch.urls import is_host_of
from cardpicker.stage_c.outcomes import Failed, Fetched, FetchOutcome, LockedOut, Unusable, UnusableKind
from cardpicker.stage_c.settings import StageCSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What a location may reach beyond the public internet, as its source was set up."""

    folder: str = ""  #: Files must lie inside; empty: anywhere.
    private_hosts: frozenset[str] = frozenset()  #: Hosts that may have private addresses, lower case.
    #: Where a redirect may lead beside the location's own host: hosts, or ``.domain`` for all below it.
    redirect_hosts: frozenset[str] = frozenset()
    is_cdn: bool = False  #: Whether the host is the image CDN, which says of each error whose it is.


NO_TRUST = Trust()


class ImageFetcher:
    """Fetches for the threads of one run, each with a client of its own."""

    def __init__(self, settings: StageCSettings) -> None:
        self._settings = settings
        self._local = threading.local()
        self._lock = threading.Lock()
        self._clients: list[HttpClient] = []

    def close(self) -> None:
        """Close the connections of all threads; to be called when none of them fetches any more."""
        with self._lock:
            for client in self._clients:
                client.close()
            self._clients.clear()

    def fetch(
        self,
        location: str,
        *,
        expected_sha256: str | None = None,
        expected_md5: str | None = None,
        trust: Trust = NO_TRUST,
    ) -> FetchOutcome:
        """Return what became of fetching ``location``, a ``file:``, ``http:`` or ``https:`` URL."""
        scheme = location.partition(":")[0].lower()
        outcome: FetchOutcome
        if scheme == "file":
            outcome = read_file(
                location,
                folder=trust.folder,
                max_bytes=self._settings.fetch_max_bytes,
                deadline_s=self._settings.fetch_deadline_s,
            )
        elif scheme in ("http", "https"):
            outcome = self._get(location, trust)
        else:
            detail = f"cannot fetch {scheme[:20]!r}: only file, http and https"
            return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=detail)
        return check_digests(outcome, expected_sha256, expected_md5) if isinstance(outcome, Fetched) else outcome

    def _get(self, url: str, trust: Trust) -> FetchOutcome:
        own_host = ""
        with contextlib.closing(self._client().get(url, trust.private_hosts)) as hops:
            for hop in hops:
                if not isinstance(hop, Answer):
                    return hop
                if hop.next_url is None:
                    return judge_cdn(hop, classify) if trust.is_cdn else classify(hop)
                own_host = own_host or hop.target.host
                if refused := _judge_redirect(hop, hop.next_url, trust.redirect_hosts | {own_host}):
                    return refused
        return Failed(detail="no answer")

    def _client(self) -> HttpClient:
        client: HttpClient | None = getattr(self._local, "client", None)
        if client is None:
            client = HttpClient(deadline_s=self._settings.fetch_deadline_s, max_bytes=self._settings.fetch_max_bytes)
            self._local.client = client
            with self._lock:
                self._clients.append(client)
        return client


def _judge_redirect(hop: Answer, next_url: str, allowed: frozenset[str]) -> LockedOut | Unusable | None:
    """Return what a redirect ends a fetch with, None when it is followed."""
    try:
        full = urllib.parse.urljoin(hop.target.url, next_url)
        host = (urllib.parse.urlsplit(full).hostname or "").lower()
    except ValueError:
        return None  # The client says what is wrong with it.
    if is_sign_in(full):
        return LockedOut(detail=f"sent to a sign-in page by {hop.target.shown}")
    if host and not any(is_host_of(host, pattern) for pattern in allowed):
        detail = f"{hop.target.shown} leads to {host[:100]}, which is not allowed (STAGE_C_REDIRECT_HOSTS)"
        return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=detail)
    return None


def fetch_image(
    location: str,
    *,
    settings: StageCSettings,
    expected_sha256: str | None = None,
    expected_md5: str | None = None,
    trust: Trust = NO_TRUST,
) -> FetchOutcome:
    """Fetch one image with connections of its own; a batch uses one ``ImageFetcher`` instead."""
    fetcher = ImageFetcher(settings)
    try:
        return fetcher.fetch(location, expected_sha256=expected_sha256, expected_md5=expected_md5, trust=trust)
    finally:
        fetcher.close()
