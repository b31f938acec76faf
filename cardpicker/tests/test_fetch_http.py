"""Fetching over HTTP from a server that misbehaves."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cardpicker.stage_c.fetch.fetcher import ImageFetcher, Trust, fetch_image
from cardpicker.stage_c.outcomes import Failed, Fetched, FetchOutcome, Gone, LockedOut, Unusable, UnusableKind
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server

IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
SETTINGS = StageCSettings(fetch_deadline_s=20.0, fetch_max_bytes=100_000)
HASTY = dataclasses.replace(SETTINGS, fetch_deadline_s=0.3)
LOOPBACK = Trust(private_hosts=frozenset({"127.0.0.1"}))


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def fetch(server: MisbehavingServer, path: str, settings: StageCSettings = SETTINGS) -> FetchOutcome:
    return fetch_image(server.url(path), settings=settings, trust=LOOPBACK)


@pytest.mark.parametrize("send", [on.answer(200, IMAGE), on.chunked(IMAGE), on.until_close(IMAGE)])
def test_an_image_arrives_however_its_length_is_told(server: MisbehavingServer, send: on.Behavior) -> None:
    """A declared length, chunks, and the end of the connection all end a body."""
    server.routes["/card.png"] = send

    assert fetch(server, "/card.png") == Fetched(body=IMAGE, sha256=hashlib.sha256(IMAGE).hexdigest())


@pytest.mark.parametrize("send", [on.promise_more(IMAGE, len(IMAGE) + 40_000), on.cut_chunks(IMAGE)])
def test_a_body_that_breaks_off_is_a_failure_to_retry(server: MisbehavingServer, send: on.Behavior) -> None:
    """A short body is never taken for the whole image."""
    server.routes["/card.png"] = send

    assert isinstance(fetch(server, "/card.png"), Failed)


@pytest.mark.parametrize(
    "behavior",
    [
        on.stall(),
        on.stall(on.head(200, {"Content-Length": 50_000})),
        on.stall(on.head(200, {"Content-Length": 50_000}) + IMAGE),
        on.trickle(b"HTTP/1.1 200 OK\r\nX-Slow: "),
        on.trickle(on.head(200, {"Content-Length": 90_000})),
        on.trickle(on.head(403, {"Content-Length": 4_000})),
        on.trickle(on.head(200, {"Transfer-Encoding": "chunked"}), b"1\r\nx\r\n"),
    ],
    ids=["silent", "after-headers", "mid-body", "slow-headers", "slow-body", "slow-error", "slow-chunks"],
)
def test_the_deadline_is_of_the_whole_image(server: MisbehavingServer, behavior: on.Behavior) -> None:
    """No way of being slow holds a thread beyond the deadline."""
    server.routes["/card.png"] = behavior
    started = time.monotonic()

    outcome = fetch(server, "/card.png", HASTY)

    assert not isinstance(outcome, Fetched)
    assert time.monotonic() - started < 5


def test_a_handshake_that_never_ends_fails_at_the_deadline() -> None:
    """A server that accepts and says nothing is given up also under TLS, sixteen times at once."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent, ThreadPoolExecutor(16) as threads:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/card.png"
        outcomes = list(threads.map(lambda _: fetch_image(url, settings=HASTY, trust=LOOPBACK), range(16)))

    assert all(isinstance(outcome, Failed) and "in time" in outcome.detail for outcome in outcomes)


@pytest.mark.parametrize(
    "behavior", [on.answer(200, bytes(100_001)), on.endless(bytes(4_096))], ids=["declared", "endless"]
)
def test_a_body_beyond_the_limit_is_refused_while_it_arrives(server: MisbehavingServer, behavior: on.Behavior) -> None:
    """Neither an honest nor a hidden size fills the memory."""
    server.routes["/card.png"] = behavior

    outcome = fetch(server, "/card.png")

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.TOO_MANY_BYTES
    assert "STAGE_C_FETCH_MAX_BYTES" in outcome.detail


def test_a_huge_declared_length_is_not_waited_for(server: MisbehavingServer) -> None:
    """Two announced gigabytes are refused before the first byte of them."""
    server.routes["/card.png"] = on.stall(on.head(200, {"Content-Length": 2_000_000_000}))

    outcome = fetch(server, "/card.png")

    assert isinstance(outcome, Unusable)
    assert "2,000,000,000" in outcome.detail


def test_redirects_are_followed_to_the_image(server: MisbehavingServer) -> None:
    """Absolute and relative redirects both lead on, five at most."""
    server.routes |= {f"/{n}": on.redirect(f"/{n + 1}") for n in range(4)}
    server.routes["/4"] = on.redirect(server.url("/card.png"), 308)
    server.routes["/card.png"] = on.answer(200, IMAGE)

    assert isinstance(fetch(server, "/0"), Fetched)


def test_redirects_in_a_circle_end(server: MisbehavingServer) -> None:
    """After five redirects the identifier is at fault."""
    server.routes["/card.png"] = on.redirect("/card.png")

    outcome = fetch(server, "/card.png")

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.BAD_IDENTIFIER
    assert len(server.paths) == 6


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://127.0.0.1/",
        "http://a@127.0.0.1/",
        "http://169.254.169.254/",
    ],
)
def test_a_redirect_to_another_scheme_or_inside_is_refused(server: MisbehavingServer, target: str) -> None:
    """What a stranger's redirect names is held to the rules that any location is."""
    server.routes["/card.png"] = on.redirect(target)

    outcome = fetch(server, "/card.png")

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.BAD_IDENTIFIER


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "[::ffff:127.0.0.1]", "2130706433"])
def test_private_addresses_are_reached_only_by_their_own_source(server: MisbehavingServer, host: str) -> None:
    """However loopback is spelled, a location that no source vouches for does not get there."""
    server.routes["/card.png"] = on.answer(200, IMAGE)

    outcome = fetch_image(server.url("/card.png", host), settings=SETTINGS)

    assert isinstance(outcome, Unusable | Failed)
    assert server.connections == 0


@pytest.mark.parametrize(
    "url",
    ["http://", "http:///card.png", "http://[::1/", "http://h:99999/", "http://h/" + "x" * 3_000, "http://h/a\nb", "x"],
)
def test_a_url_that_is_none_is_the_identifiers_fault(url: str) -> None:
    """Nonsense from a catalog ends as an outcome, not as an exception."""
    outcome = fetch_image(url, settings=SETTINGS)

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.BAD_IDENTIFIER


@pytest.mark.parametrize(
    "target",
    ["https://accounts.google.com/ServiceLogin?continue=x", "/signin/v2", "https://www.google.com/sorry/index"],
)
def test_being_sent_to_a_sign_in_page_is_a_lockout(server: MisbehavingServer, target: str) -> None:
    """The page is not even asked for."""
    server.routes["/card.png"] = on.redirect(target)

    assert isinstance(fetch(server, "/card.png"), LockedOut)
    assert len(server.paths) == 1


def test_a_refused_connection_is_a_failure_that_names_the_host() -> None:
    """Nobody listening is transient."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    outcome = fetch_image(f"http://127.0.0.1:{port}/card.png?key=secret", settings=SETTINGS, trust=LOOPBACK)

    assert isinstance(outcome, Failed)
    assert f"127.0.0.1:{port}" in outcome.detail
    assert "secret" not in outcome.detail


def test_changed_bytes_are_a_failure_that_says_what_to_do(server: MisbehavingServer) -> None:
    """Bytes other than the listing's never become evidence of the listed image."""
    server.routes["/card.png"] = on.answer(200, IMAGE)
    digests: list[dict[str, str]] = [{"expected_sha256": "0" * 64}, {"expected_md5": "0" * 32}]

    for digest in digests:
        outcome = fetch_image(server.url("/card.png"), settings=SETTINGS, trust=LOOPBACK, **digest)
        assert outcome == Failed(detail="the file changed since its source was synced: run update_database")


def test_an_idle_connection_is_used_again_and_replaced_when_it_died(server: MisbehavingServer) -> None:
    """Three images over one connection; then the server hangs up between two, and nobody notices."""
    server.routes["/card.png"] = on.answer(200, IMAGE)
    server.routes["/last.png"] = lambda visit: on.answer(200, IMAGE)(visit) and False
    fetcher = ImageFetcher(SETTINGS)

    outcomes = [fetcher.fetch(server.url(path), trust=LOOPBACK) for path in ["/card.png"] * 2 + ["/last.png"] * 2]
    fetcher.close()

    assert all(isinstance(outcome, Fetched) for outcome in outcomes)
    assert server.connections == 2


def test_threads_share_neither_cookies_nor_answers(server: MisbehavingServer) -> None:
    """Sixteen threads, a cookie with each answer, redirects: everyone gets the bytes that were asked for."""

    def body(path: str) -> bytes:
        return b"\x89PNG\r\n\x1a\n\x00" + path.encode()

    def serve(visit: on.Visit) -> bool:
        cookie = {"Set-Cookie": f"id={visit.path}"}
        return on.answer(200, body(visit.path), cookie)(visit)

    server.routes |= {f"/go/{n}": on.redirect(f"/{n}") for n in range(400)}
    server.default = serve
    fetcher = ImageFetcher(SETTINGS)
    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda n: fetcher.fetch(server.url(f"/go/{n}"), trust=LOOPBACK), range(400)))
    fetcher.close()

    assert [outcome.body for outcome in outcomes if isinstance(outcome, Fetched)] == [body(f"/{n}") for n in range(400)]
    assert not any("cookie" in headers for headers in server.headers)
    assert server.connections <= 16


def test_no_timer_is_left_behind(server: MisbehavingServer) -> None:
    """Deadlines of finished fetches end with them."""
    server.routes["/card.png"] = on.answer(200, IMAGE)
    before = {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)}

    for _ in range(5):
        fetch(server, "/card.png")

    left = {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)} - before
    for timer in left:
        timer.join(2)
    assert not any(timer.is_alive() for timer in left)


def test_one_missing_file_is_gone_and_no_refusal(server: MisbehavingServer) -> None:
    """A 404 says nothing about us."""
    outcome = fetch(server, "/none.png")

    assert isinstance(outcome, Gone)
    assert not outcome.refused
