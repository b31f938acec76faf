"""Kind http_manifest: what its rows list, and what a manifest that is none or not whole must not do."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardpicker.models import Card, ImageEvidence, Source
from cardpicker.sources import registry
from cardpicker.sources.download import DownloadLimits
from cardpicker.sources.errors import ListingError, UnsafeIdentifierError
from cardpicker.sources.http_manifest import HttpManifest
from cardpicker.sources.kinds import ListedCard, ListingProblem
from cardpicker.sources.registry import kind_for
from cardpicker.sources.sync import sync_source
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server

MD5 = hashlib.md5(b"x").hexdigest()
SHA256 = hashlib.sha256(b"x").hexdigest()
ROWS = "\n".join(["name,url", *(f"Card {n},https://images.example/{n}.jpg" for n in range(20))]).encode()


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def listing(location: str) -> tuple[dict[str, ListedCard], list[str]]:
    """Return the listed cards by identifier and the problems as text."""
    entries = list(kind_for("http_manifest").list_cards(Source(kind="http_manifest", location=location)))
    cards = {entry.identifier: entry for entry in entries if isinstance(entry, ListedCard)}
    return cards, [str(entry) for entry in entries if isinstance(entry, ListingProblem)]


def manifest(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "manifest"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def web_source(server: MisbehavingServer) -> Source:
    return Source.objects.create(key="web", kind="http_manifest", location=server.url("/list?key=secret"))


def test_csv_rows_become_cards(tmp_path: Path) -> None:
    """Columns are found by name; either kind of checksum is the image's version."""
    cards, problems = listing(
        manifest(
            tmp_path,
            "\ufeffURL,checksum,who,Name\r\n"
            f'https://a.example/1.PNG,{MD5.upper()},me,"Fire, Ice"\r\n'
            f"https://a.example/2,sha256:{SHA256},me,Bolt\r\n"
            "https://a.example/Dark%20Ritual.jpg\r\n\r\n",
        )
    )

    fire, bolt, ritual = cards.values()
    assert (fire.name, fire.extension, fire.md5_checksum, fire.image_version) == ("Fire, Ice", "png", MD5, MD5)
    assert (bolt.sha256_checksum, bolt.md5_checksum, bolt.image_version) == (SHA256, None, SHA256)
    assert ritual.name == "Dark Ritual"
    assert problems == []


def test_json_lines_become_cards(tmp_path: Path) -> None:
    """One object a line, with the same keys; blank lines are passed over."""
    cards, problems = listing(
        manifest(tmp_path, '{"name": "稲妻", "url": "https://a.example/1.jpg"}\n\n{"url": "https://a.example/2.jpg"}')
    )

    assert [card.name for card in cards.values()] == ["稲妻", "2"]
    assert problems == []


def test_the_version_changes_with_what_the_row_says(tmp_path: Path) -> None:
    """Without a checksum a column version tells of a new image; without either the URL is all there is."""

    def version(row: str) -> str:
        cards, _ = listing(manifest(tmp_path, f"name,url,version\n{row}"))
        return cards["https://a.example/1.jpg"].image_version

    same, renamed, newer = (
        version(f"{name},https://a.example/1.jpg,{number}") for name, number in (("A", 1), ("B", 1), ("A", 2))
    )
    assert same == renamed != newer


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("Bolt,", "it has no url"),
        ("Bolt,file:///etc/passwd", "no http or https URL"),
        ("Bolt,images/1.jpg", "no http or https URL"),
        ("Bolt,https://u:p@a.example/1.jpg", "user or password"),
        ("Bolt,https://[::1/1.jpg", "is no URL"),
        ("Bolt,https://a.example:x/1.jpg", "is no URL"),
        ("Bolt,https://a.example/" + "x" * 1_000, "longer than 1000"),
        ("Bolt,https://a.example/1.jpg,abc", "no MD5 or SHA-256"),
        (f"Bolt,https://a.example/1.jpg,md5:{SHA256}", "not the length of its kind"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_listed(tmp_path: Path, row: str, said: str) -> None:
    """A line number and a reason; no card is made of half a row."""
    cards, problems = listing(manifest(tmp_path, f"name,url,checksum\n{row}\nIce,https://a.example/2.jpg\n"))

    assert list(cards) == ["https://a.example/2.jpg"]
    [problem] = problems
    assert problem.startswith("line 2: ") and said in problem
    assert "u:p@" not in problem


@pytest.mark.parametrize("line", ["nonsense", "[1]", "3", '{"name": "x"', "[" * 30_000], ids=lambda line: line[:10])
def test_a_bad_line_of_json_is_named(tmp_path: Path, line: str) -> None:
    """Whatever is no object is a problem of its line."""
    cards, problems = listing(manifest(tmp_path, f'{{"url": "https://a.example/1.jpg"}}\n{line}\n'))

    assert len(cards) == 1
    assert problems == ["line 2: not a JSON object"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must name the columns name and url"),
        (b"a,b\n1,2\n", "must name the columns name and url"),
        (b"<!DOCTYPE html><html>", "a web page, not a manifest"),
        (b'[{"url": "https://a.example/1.jpg"}]', "one object a line"),
        (b"name,url\nBolt,https://a.example/1.jpg\n\xff\xfe", "not UTF-8"),
        (b"name,url\n" + b"x" * 70_000, "line 2 is longer"),
    ],
)
def test_what_is_no_manifest_lists_nothing(tmp_path: Path, content: bytes, said: str) -> None:
    """Not even the good rows before the fault."""
    with pytest.raises(ListingError, match=said):
        listing(manifest(tmp_path, content))


def test_a_missing_manifest_is_an_error(tmp_path: Path) -> None:
    """Neither is a folder a manifest, nor a pipe that nobody writes to."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ListingError, match="not a file"):
            listing(str(path))


@pytest.mark.parametrize("identifier", ["file:///etc/passwd", "../x", "https://u@h/", "", "https://h/a b"])
def test_a_location_is_a_plain_url(identifier: str) -> None:
    """Whatever is in the catalog, nothing but http and https is asked for."""
    with pytest.raises(UnsafeIdentifierError):
        kind_for("http_manifest").image_location("https://a.example/list.csv", identifier)


@pytest.mark.django_db
def test_relative_urls_start_from_the_manifest(server: MisbehavingServer) -> None:
    """As links of a page do."""
    server.routes["/list"] = on.answer(200, b"name,url\nBolt,images/1.jpg\n")

    sync_source(web_source(server))

    assert Card.objects.get().identifier == server.url("/images/1.jpg")


@pytest.mark.django_db
@pytest.mark.parametrize(("answered", "asked"), [("ETag", "if-none-match"), ("Last-Modified", "if-modified-since")])
def test_an_unmodified_manifest_changes_nothing_and_says_so(
    server: MisbehavingServer, answered: str, asked: str
) -> None:
    """What the server gave is shown to it again, and its 304 leaves every card as it is."""
    tag = 'W/"1"' if answered == "ETag" else "Mon, 30 Nov 2026 03:00:00 GMT"

    def serve(visit: on.Visit) -> bool:
        fresh = visit.headers.get(asked) != tag
        return on.answer(200 if fresh else 304, ROWS if fresh else b"", {answered: tag})(visit)

    server.routes["/list"] = serve
    source = web_source(server)
    sync_source(source)
    source.refresh_from_db()

    report = sync_source(source)

    assert (report.listed, report.removed, report.held) == (0, 0, 0)
    assert report.notes == ["not modified since the last sync: nothing was changed"]
    assert Card.objects.present().count() == 20
    source.refresh_from_db()
    assert sync_source(source).notes, "the 304 itself must not lose what was kept"


@pytest.mark.django_db
def test_a_held_removal_is_judged_by_the_whole_manifest(server: MisbehavingServer) -> None:
    """An unmodified short manifest can still be confirmed."""
    source = web_source(server)
    server.routes["/list"] = on.answer(200, ROWS, {"ETag": '"1"'})
    sync_source(source)
    short = b"\n".join(ROWS.split(b"\n")[:11])

    def serve(visit: on.Visit) -> bool:
        known = visit.headers.get("if-none-match") == '"2"'
        return on.answer(304 if known else 200, b"" if known else short, {"ETag": '"2"'})(visit)

    server.routes["/list"] = serve
    source.refresh_from_db()
    assert sync_source(source).held == 10
    source.refresh_from_db()

    assert sync_source(source, confirm_removals=True).removed == 10


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("behavior", "said"),
    [
        (on.answer(403, b"no"), "answered 403"),
        (on.answer(429), "answered 429"),
        (on.answer(500), "answered 500"),
        (on.answer(304), "no condition"),
        (on.answer(200, b"<html>sign in</html>"), "a web page"),
        (on.promise_more(ROWS[:300], len(ROWS)), "broke off"),
        (on.cut_chunks(ROWS[:300]), "broke off"),
        (on.answer(200, gzip.compress(ROWS)[:-9], {"Content-Encoding": "gzip"}), "inside its compression"),
        (on.answer(200, ROWS, {"Content-Encoding": "br"}), "compressed by br"),
        (on.answer(200, gzip.compress(bytes(10_000_000)), {"Content-Encoding": "gzip"}), "more than 100,000 bytes"),
        (on.answer(200, b"plain", {"Content-Encoding": "gzip"}), "compression"),
        (on.endless(ROWS), "more than 100,000 bytes"),
        (on.stall(), "no answer in time"),
        (on.trickle(b"HTTP/1.1 200 OK\r\nX-Slow: "), "no answer in time"),
        (on.trickle(on.head(200, {"Content-Length": 90_000})), "no answer in time"),
        (on.redirect("/list"), "redirects"),
        (lambda visit: False, "broke off|no connection"),
    ],
)
def test_a_manifest_that_does_not_come_whole_changes_nothing(
    server: MisbehavingServer, behavior: on.Behavior, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of it counts, no card is missed, and the address's key is not told."""
    hasty = HttpManifest(DownloadLimits(deadline_s=0.5, max_bytes=100_000))
    server.routes["/list"] = on.answer(200, ROWS)
    source = web_source(server)
    sync_source(source)
    monkeypatch.setattr(registry, "KINDS", (hasty,))
    server.routes["/list"] = behavior

    with pytest.raises(ListingError, match=said) as raised:
        sync_source(source, confirm_removals=True)

    assert "secret" not in str(raised.value)
    assert Card.objects.present().count() == 20


@pytest.mark.django_db
def test_a_compressed_manifest_is_read(server: MisbehavingServer) -> None:
    """Servers compress text when they are asked to."""
    server.routes["/list"] = on.answer(200, gzip.compress(ROWS), {"Content-Encoding": "gzip"})

    assert sync_source(web_source(server)).new == 20


@pytest.mark.django_db
def test_a_source_that_vanishes_for_a_day_comes_back_with_its_evidence(server: MisbehavingServer) -> None:
    """An error for a day, then an empty list, then the list again: no card is removed and nothing is read anew."""
    server.routes["/list"] = on.answer(200, ROWS)
    source = web_source(server)
    sync_source(source)
    ImageEvidence.objects.bulk_create(
        ImageEvidence(card=card, image_version=card.image_version, image_sha256="0" * 64, manifest="m")
        for card in Card.objects.all()
    )
    del server.routes["/list"]
    with pytest.raises(ListingError, match="404"):
        sync_source(source)
    server.routes["/list"] = on.answer(200, b"name,url\n")
    assert sync_source(source).held == 20
    server.routes["/list"] = on.answer(200, ROWS)

    report = sync_source(source)

    assert (report.unchanged, report.removed, report.held) == (20, 0, 0)
    assert ImageEvidence.objects.current("m").count() == 20
