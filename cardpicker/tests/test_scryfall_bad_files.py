"""Import of printings from files that are missing, damaged or something else."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from cardpicker.catalogue.errors import BulkFileError
from cardpicker.catalogue.scryfall import import_bulk
from cardpicker.models import CanonicalCard, CanonicalExpansion
from cardpicker.tests.test_scryfall_import import card, lines, written


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"<html>Sign in</html>", "neither a JSON array nor JSON lines"),
        (b"\x89PNG\r\n\x1a\n", "neither a JSON array nor JSON lines"),
        (b"[]", "no printing in it"),
        (b'{"object": "list", "data": []}', "a 'list' object, not a card"),
        (b"{\nnot json\n}", "line 1: not JSON"),
        (json.dumps([card(1), card(2)]).encode()[:-9], "malformed or cut short"),
        (b"[\n" + lines(card(1)), "ends before its array does"),
        (gzip.compress(lines(*map(card, range(500))))[:-30], "damaged or cut short"),
        (gzip.compress(lines(card(1)))[:-8] + b"\0" * 8, "damaged or cut short"),
    ],
    ids=["empty", "blank", "html", "png", "no records", "list", "broken", "cut array", "open array", "cut gzip", "crc"],
)
def test_damaged_file_is_named_and_changes_nothing(tmp_path: Path, content: bytes, message: str) -> None:
    """One line says what is wrong; the catalog is as it was."""
    with pytest.raises(CommandError, match=message) as caught:
        call_command("import_canonical_card_data", "--from", written(tmp_path / "bulk.json", content))

    assert "\n" not in str(caught.value)
    assert "bulk.json" in str(caught.value)
    assert not CanonicalCard.objects.exists()
    assert not CanonicalExpansion.objects.exists()


@pytest.mark.django_db
def test_missing_file_and_folder_are_named(tmp_path: Path) -> None:
    """A path that is not there, or is a folder, is one line."""
    with pytest.raises(BulkFileError, match=r"nowhere\.json: No such file"):
        import_bulk(str(tmp_path / "nowhere.json"))
    with pytest.raises(BulkFileError, match="Is a directory"):
        import_bulk(str(tmp_path))
    with pytest.raises(BulkFileError, match="no path holds a NUL"):
        import_bulk("a\0b")


@pytest.mark.django_db
def test_bad_records_are_named_by_line_and_skipped(tmp_path: Path) -> None:
    """Good records around bad ones are imported; the bad ones are listed with the reason, up to a limit."""
    good = card(1)
    bad: list[tuple[bytes, str]] = [
        (b'{"object": "card", ', "not JSON"),
        (b"[1, 2]\n", "not a JSON object"),
        (b"\xff\xfe{}\n", "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b'{"x": "' + b"y" * (1 << 20) + b'"}\n', "longer than"),
        (lines({**good, "id": None}), "no id"),
        (lines({**good, "id": "42"}), "no UUID"),
        (lines({**good, "name": "\0"}), "name is no usable text"),
        (lines({**good, "set": "x" * 11}), "longer than 10"),
        (lines({**good, "collector_number": 7}), "collector_number is no usable text"),
        (lines({**good, "object": "set"}), "'set' object"),
    ]
    content = lines(good) + b"".join(each.rstrip(b"\n") + b"\n" for each, _ in bad) + lines(card(2))

    report = import_bulk(written(tmp_path / "bulk", content))

    assert (report.new, report.bad) == (2, len(bad))
    for number, (named, (_, reason)) in enumerate(zip(report.bad_named, bad, strict=True), start=2):
        assert str(named).startswith(f"line {number}: ")
        assert reason in str(named)


@pytest.mark.django_db
def test_one_broken_line_of_an_array_costs_only_itself(tmp_path: Path) -> None:
    """In an array with a record a line, bad records are named by line too; elsewhere by their number."""
    array = b"[\n" + lines(card(1)).strip() + b",\n{broken,\n" + lines(card(2)).strip() + b"]"

    by_line = import_bulk(written(tmp_path / "a", array))
    by_number = import_bulk(written(tmp_path / "b", json.dumps([card(1), 7, card(3)]).encode()))

    assert (by_line.new, str(by_line.bad_named[0])[:7]) == (2, "line 3:")
    assert (by_number.new, str(by_number.bad_named[0])) == (1, "record 2: not a JSON object")


@pytest.mark.django_db
def test_names_that_a_database_cannot_hold_are_made_fit(tmp_path: Path) -> None:
    """NUL, lone surrogates and 10,000 characters are cleaned or cut, not refused."""
    evil = card(1, name="Nul\0 Name\ud800", artist="A" * 10_000, printed_name="P" * 10_000, set_name="\0")

    report = import_bulk(written(tmp_path / "bulk", lines(evil)))

    found = CanonicalCard.objects.select_related("artist", "expansion").get()
    assert report.new == 1
    assert (found.name, found.name_key) == ("Nul Name", "nulname")
    assert found.artist is not None
    assert len(found.artist.name) == 200
    assert found.expansion.name == "TST"


@pytest.mark.django_db
def test_command_caps_the_list_of_bad_records(tmp_path: Path) -> None:
    """A file full of nonsense does not flood the terminal."""
    errors = StringIO()
    location = written(tmp_path / "bulk", lines(card(1)) + b"{\n" * 100)

    call_command("import_canonical_card_data", "--from", location, stdout=StringIO(), stderr=errors)

    assert len(errors.getvalue().splitlines()) == 21
    assert "and 80 more bad records" in errors.getvalue()


class _Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = gzip.compress(lines(card(1), card(2)))
        status = 200 if "bulk" in self.path else 404
        self.send_response(status)
        cut = "cut" in self.path
        self.send_header("Content-Length", str(len(body) + (100 if cut else 0)))
        if "encoded" in self.path:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a bulk file on loopback, past any proxy of the environment."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Files) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["bulk.json.gz", "bulk-encoded.json"])
def test_url_is_streamed(server: str, path: str) -> None:
    """A compressed file and a compressed transfer both arrive."""
    assert import_bulk(f"http://{server}/{path}").new == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "message"), [("nothing", "answered 404"), ("bulk-cut", "the download failed|damaged or cut short")]
)
def test_failed_download_is_named_without_its_password(server: str, path: str, message: str) -> None:
    """A refusal or a connection that breaks off is one line, and nothing is imported."""
    with pytest.raises(BulkFileError, match=message) as caught:
        import_bulk(f"http://me:secret@{server}/{path}")

    assert "secret" not in str(caught.value)
    assert not CanonicalCard.objects.exists()


@pytest.mark.django_db
def test_unreachable_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is one line."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(BulkFileError, match="the download failed"):
        import_bulk("http://127.0.0.1:9/bulk.json")
