"""Errors of the image CDN, told from Google's by a header."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from cardpicker.stage_c.fetch.fetcher import Trust, fetch_image
from cardpicker.stage_c.outcomes import Failed, FetchOutcome, Gone, LockedOut, Throttled, Unusable, UnusableKind
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server

LOOPBACK = frozenset({"127.0.0.1"})
WORKER = Path(settings.BASE_DIR) / "image-cdn" / "src"
PAGE = Path(settings.BASE_DIR) / "docs" / "features" / "image-cdn.md"


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def fetch(server: MisbehavingServer, status: int, code: str, *, is_cdn: bool = True, reason: str = "") -> FetchOutcome:
    body = json.dumps({"error": {"status": reason or code, "code": code, "message": "what happened"}}).encode()
    headers = {"X-Image-Cdn-Error": code, "Retry-After": "10"} if code else {}
    server.routes["/f"] = on.answer(status, body, headers)
    trust = Trust(private_hosts=LOOPBACK, is_cdn=is_cdn)
    return fetch_image(server.url("/f"), settings=StageCSettings(), trust=trust)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "rate-limited", Throttled(detail="the image CDN's own limit is used up", retry_after_s=10)),
        (403, "upstream-lockout", LockedOut(detail="the image CDN says upstream-lockout: what happened")),
        (502, "not-an-image", Failed(detail="the image CDN says not-an-image: what happened")),
        (404, "no-such-route", Failed(detail="the image CDN says no-such-route: what happened")),
        (400, "bad-dpi", Failed(detail="the image CDN says bad-dpi: what happened")),
        (400, "something-new", Failed(detail="the image CDN says something-new: what happened")),
        (500, "misconfigured", Failed(detail="the image CDN says misconfigured: what happened")),
        (
            400,
            "bad-identifier",
            Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail="the image CDN says bad-identifier: what happened"),
        ),
        (
            502,
            "too-large",
            Unusable(kind=UnusableKind.TOO_MANY_BYTES, detail="the image CDN says too-large: what happened"),
        ),
    ],
)
def test_the_cdns_own_errors_are_no_verdict_of_google(
    server: MisbehavingServer, status: int, code: str, expected: FetchOutcome
) -> None:
    """A wrong setting or an older CDN leaves no card gone or quarantined."""
    assert fetch(server, status, code) == expected


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "upstream-404", Gone),
        (410, "upstream-410", Gone),
        (403, "upstream-403", Gone),
        (429, "upstream-429", Throttled),
        (503, "upstream-503", Throttled),
        (502, "upstream-500", Failed),
        (504, "upstream-timeout", Failed),
    ],
)
def test_googles_errors_are_judged_as_its_own(
    server: MisbehavingServer, status: int, code: str, kind: type[FetchOutcome]
) -> None:
    """The CDN passes the statuses that mean something."""
    assert type(fetch(server, status, code)) is kind


def test_googles_reason_still_decides(server: MisbehavingServer) -> None:
    """It comes through the CDN as the error's status."""
    assert isinstance(fetch(server, 403, "upstream-403", reason="userRateLimitExceeded"), Throttled)


@pytest.mark.parametrize(
    ("status", "kind"), [(404, Failed), (410, Failed), (400, Failed), (429, Throttled), (503, Throttled), (403, Gone)]
)
def test_an_answer_in_the_cdns_place_says_nothing_of_the_file(
    server: MisbehavingServer, status: int, kind: type[FetchOutcome]
) -> None:
    """A 404 without the header is a wrong address of ours; refusals, three in a row, still mean us."""
    outcome = fetch(server, status, "")

    assert type(outcome) is kind
    assert "IMAGE_WORKER_URL" in str(outcome) or kind is not Failed


def test_other_hosts_cannot_speak_for_the_cdn(server: MisbehavingServer) -> None:
    """A manifest's host that sends the header locks nobody out."""
    assert type(fetch(server, 403, "upstream-lockout", is_cdn=False)) is Gone


def test_every_error_of_the_worker_is_told_in_its_page() -> None:
    """Whoever adds one says what Stage C makes of it."""
    page = PAGE.read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(WORKER.glob("*.ts")))
    codes = set(re.findall(r'refusal\(\s*\d+,\s*"([a-z-]+)"', sources))

    assert len(codes) > 15
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
