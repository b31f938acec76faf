"""What answers mean, as a table."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Iterator

import pytest

from cardpicker.stage_c.fetch.classify import MAX_RETRY_AFTER_S, retry_after_s
from cardpicker.stage_c.fetch.fetcher import Trust, fetch_image
from cardpicker.stage_c.fetch.refusals import REFUSALS_IN_A_ROW, RefusalStreak
from cardpicker.stage_c.outcomes import (
    Failed,
    Fetched,
    FetchOutcome,
    Gone,
    LockedOut,
    Throttled,
    Unusable,
    UnusableKind,
)
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server

LOOPBACK = Trust(private_hosts=frozenset({"127.0.0.1"}))
HTML = b"<!DOCTYPE html><html><title>Google Drive - Virus scan warning</title></html>"
JPEG_HEADER = {"Content-Type": "image/jpeg"}


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def fetch(server: MisbehavingServer, behavior: on.Behavior) -> FetchOutcome:
    server.routes["/f"] = behavior
    return fetch_image(server.url("/f?key=secret"), settings=StageCSettings(), trust=LOOPBACK)


def google_error(reason: str) -> bytes:
    return json.dumps({"error": {"code": 403, "errors": [{"domain": "x", "reason": reason}]}}).encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (204, Failed),
        (206, Failed),
        (300, Failed),
        (304, Failed),
        (400, Unusable),
        (401, Gone),
        (403, Gone),
        (404, Gone),
        (410, Gone),
        (416, Failed),
        (418, Failed),
        (429, Throttled),
        (451, Gone),
        (500, Failed),
        (502, Failed),
        (503, Throttled),
        (504, Failed),
        (509, Throttled),
    ],
)
@pytest.mark.parametrize("body", [b"", b'{"error": "no"}', HTML, b"\xff\xd8\xff\xe0\x00\x10JFIF"])
def test_only_status_200_can_be_an_image(
    server: MisbehavingServer, status: int, kind: type[FetchOutcome], body: bytes
) -> None:
    """An error's body is never an image, whatever it looks like."""
    body = b"" if status in (204, 304) else body

    assert type(fetch(server, on.answer(status, body, JPEG_HEADER))) is kind


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("userRateLimitExceeded", Throttled),
        ("rateLimitExceeded", Throttled),
        ("dailyLimitExceeded", Throttled),
        ("downloadQuotaExceeded", Failed),
        ("insufficientFilePermissions", Gone),
        ("cannotDownloadAbusiveFile", Gone),
        ("somethingNew", Gone),
    ],
)
def test_the_reason_of_a_403_decides(server: MisbehavingServer, reason: str, expected: type[FetchOutcome]) -> None:
    """Rate is pressure, quota is for later, permission is this file's."""
    outcome = fetch(server, on.answer(403, google_error(reason)))

    assert type(outcome) is expected
    assert reason in str(outcome)


def test_only_a_403_without_a_reason_of_the_file_may_be_a_lockout(server: MisbehavingServer) -> None:
    """A permission is no refusal of us; an unknown reason or none may be."""
    bodies = [google_error("insufficientFilePermissions"), google_error("somethingNew"), b"", b"[1]", b'{"error": 3}']

    outcomes = [fetch(server, on.answer(403, body)) for body in bodies]

    assert [isinstance(outcome, Gone) and outcome.refused for outcome in outcomes] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (HTML, UnusableKind.NOT_AN_IMAGE, "not an image: html"),
        (b"  \n<!-- x --><HTML>\x00", UnusableKind.NOT_AN_IMAGE, "not an image: html"),
        (b"\xef\xbb\xbf" + HTML, UnusableKind.NOT_AN_IMAGE, "not an image: html"),
        (b'{"error": 1}', UnusableKind.NOT_AN_IMAGE, "not an image: json"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", UnusableKind.NOT_AN_IMAGE, "not an image: xml"),
        (b"I am a text", UnusableKind.NOT_AN_IMAGE, "not an image: text"),
        (b"", UnusableKind.EMPTY, "no bytes"),
    ],
)
def test_bytes_decide_not_the_declared_type(
    server: MisbehavingServer, body: bytes, kind: UnusableKind, said: str
) -> None:
    """Status 200 and image/jpeg in front of text do not make an image; what came and from where is kept."""
    outcome = fetch(server, on.answer(200, body, JPEG_HEADER))

    assert isinstance(outcome, Unusable)
    assert outcome.kind is kind
    assert said in outcome.detail
    assert server.url("/f") in outcome.detail
    assert "secret" not in outcome.detail
    assert outcome.detail.isprintable()


@pytest.mark.parametrize("body", [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"\x00\x01\x02", b"GIF89a"])
def test_what_may_be_an_image_is_left_to_the_decoder(server: MisbehavingServer, body: bytes) -> None:
    """Only plain text is refused here."""
    assert isinstance(fetch(server, on.answer(200, body, {"Content-Type": "text/html"})), Fetched)


@pytest.mark.parametrize("status", [200, 403, 429, 503])
def test_the_unusual_traffic_page_is_a_lockout(server: MisbehavingServer, status: int) -> None:
    """Google says it in words, under several statuses."""
    page = b"<html>Our systems have detected unusual traffic from your computer network.</html>"

    assert isinstance(fetch(server, on.answer(status, page)), LockedOut)


def test_a_spent_quota_page_is_for_later(server: MisbehavingServer) -> None:
    """The file's quota comes back, so its page must not mark the file as no image."""
    page = b"<html><title>Google Drive - Quota exceeded</title></html>"

    assert isinstance(fetch(server, on.answer(200, page)), Failed)


def test_a_compressed_transfer_is_not_read_as_an_image(server: MisbehavingServer) -> None:
    """No compression was asked for, and none is undone without bounds."""
    assert isinstance(fetch(server, on.answer(200, b"\x1f\x8b\x08\x00", {"Content-Encoding": "gzip"})), Failed)


def test_retry_after_reaches_the_outcome(server: MisbehavingServer) -> None:
    """The server's wish is kept in seconds."""
    outcome = fetch(server, on.answer(429, b"", {"Retry-After": "17"}))

    assert isinstance(outcome, Throttled)
    assert outcome.retry_after_s == 17.0


@pytest.mark.parametrize(
    ("header", "expected"),
    [("0", 0), ("-5", 0), ("99999999", MAX_RETRY_AFTER_S), ("nan", None), ("inf", None), ("soon", None), ("", None)],
)
def test_retry_after_is_bounded_and_nonsense_ignored(header: str, expected: float | None) -> None:
    """A hostile header neither blocks for a year nor raises."""
    assert retry_after_s(header) == expected


def test_retry_after_may_be_a_date() -> None:
    """A date in a minute is about a minute."""
    seconds = retry_after_s(email.utils.formatdate(time.time() + 60, usegmt=True))

    assert seconds is not None
    assert 50 < seconds <= 60


def test_refusals_in_a_row_are_a_lockout_of_all_of_them() -> None:
    """Files that were refused first are held until it is known that it was not about them."""
    streak: RefusalStreak[int] = RefusalStreak()
    refused = Gone(detail="403", refused=True)

    judged = [pair for n in range(REFUSALS_IN_A_ROW) for pair in streak.judge(n, refused)]

    assert [key for key, _ in judged] == list(range(REFUSALS_IN_A_ROW))
    assert all(isinstance(outcome, LockedOut) for _, outcome in judged)


def test_refusals_with_a_success_between_are_their_files_own() -> None:
    """One answer proves that we are not locked out."""
    streak: RefusalStreak[int] = RefusalStreak()
    refused, fetched = Gone(detail="403", refused=True), Fetched(body=b"", sha256="")
    outcomes: list[FetchOutcome] = [refused, refused, fetched, refused]

    judged = [pair for n, outcome in enumerate(outcomes) for pair in streak.judge(n, outcome)]

    assert judged == [(0, refused), (1, refused), (2, fetched)]
    assert streak.release() == [(3, refused)]


def test_a_lockout_seen_otherwise_covers_the_refusals_around_it() -> None:
    """Refusals before and after the page that says it are the same refusal."""
    streak: RefusalStreak[int] = RefusalStreak()
    refused, locked_out = Gone(detail="403", refused=True), LockedOut(detail="unusual traffic page")
    outcomes: list[FetchOutcome] = [refused, locked_out, refused]

    judged = [pair for n, outcome in enumerate(outcomes) for pair in streak.judge(n, outcome)]

    assert judged == [(0, locked_out), (1, locked_out), (2, locked_out)]


def test_a_success_ends_a_lockouts_hold_on_the_refusals_after_it() -> None:
    """Whoever answers again is asked about each file anew."""
    streak: RefusalStreak[int] = RefusalStreak()
    refused = Gone(detail="403", refused=True)
    outcomes: list[FetchOutcome] = [LockedOut(detail="page"), Fetched(body=b"", sha256=""), refused]

    judged = [pair for n, outcome in enumerate(outcomes) for pair in streak.judge(n, outcome)]

    assert [key for key, _ in judged] == [0, 1]
    assert streak.release() == [(2, refused)]
