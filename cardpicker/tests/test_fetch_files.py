"""Fetching from local folders."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest

from cardpicker.stage_c.fetch.fetcher import Trust, fetch_image
from cardpicker.stage_c.outcomes import Failed, Fetched, FetchOutcome, Gone, Unusable, UnusableKind
from cardpicker.stage_c.settings import StageCSettings

IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(5_000)
SETTINGS = StageCSettings(fetch_max_bytes=10_000)


def fetch(folder: Path, url: str) -> FetchOutcome:
    return fetch_image(url, settings=SETTINGS, trust=Trust(folder=str(folder)))


@pytest.mark.parametrize("name", ["card.png", "a b#c?d%20é.png", "日本.png"])
def test_a_file_arrives_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Names with marks that mean something in a URL are no obstacle."""
    (tmp_path / name).write_bytes(IMAGE)

    assert fetch(tmp_path, (tmp_path / name).as_uri()) == Fetched(body=IMAGE, sha256=hashlib.sha256(IMAGE).hexdigest())


def test_a_name_that_is_no_utf8_arrives(tmp_path: Path) -> None:
    """Old disks have such names."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png"))
    path.write_bytes(IMAGE)

    assert isinstance(fetch(tmp_path, path.as_uri()), Fetched)


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    """A missing file may come back."""
    assert isinstance(fetch(tmp_path, (tmp_path / "none.png").as_uri()), Gone)


def test_a_folder_that_vanished_is_a_failure_and_not_every_files_end(tmp_path: Path) -> None:
    """An unmounted disk says nothing about its files."""
    outcome = fetch(tmp_path / "unmounted", (tmp_path / "unmounted/card.png").as_uri())

    assert isinstance(outcome, Failed)
    assert "mount" in outcome.detail


@pytest.mark.parametrize(
    "escape", ["../secret.png", "sub/../../secret.png", "%2e%2e/secret.png", "link.png", "sub2/x.png"]
)
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, escape: str) -> None:
    """Neither dots, quoted dots nor links lead out."""
    folder = tmp_path / "cards"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for name in ("secret.png", "outside/x.png"):
        (tmp_path / name).write_bytes(IMAGE)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "sub2").symlink_to(tmp_path / "outside")

    outcome = fetch(folder, f"{folder.as_uri()}/{escape}")

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.BAD_IDENTIFIER


@pytest.mark.parametrize("url", ["file://elsewhere/card.png", "file:card.png", "file:///a%00b", "file://[/x"])
def test_a_url_of_no_local_file_is_refused(url: str) -> None:
    """Another machine's file, a relative path and NUL are no locations."""
    outcome = fetch_image(url, settings=SETTINGS)

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.BAD_IDENTIFIER


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    """Only regular files are read."""
    os.mkfifo(tmp_path / "card.png")

    outcome = fetch(tmp_path, (tmp_path / "card.png").as_uri())

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.BAD_IDENTIFIER


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (bytes(10_001), UnusableKind.TOO_MANY_BYTES),
        (b"", UnusableKind.EMPTY),
        (b"not a picture", UnusableKind.NOT_AN_IMAGE),
    ],
)
def test_bad_files_have_names(tmp_path: Path, body: bytes, kind: UnusableKind) -> None:
    """Too large, empty and text each end in an outcome of their own."""
    (tmp_path / "card.png").write_bytes(body)

    outcome = fetch(tmp_path, (tmp_path / "card.png").as_uri())

    assert isinstance(outcome, Unusable)
    assert outcome.kind is kind
    assert "card.png" in outcome.detail


def test_a_file_of_a_terabyte_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """Reading ends at the limit; a second would not do for the rest."""
    path = tmp_path / "card.png"
    path.touch()
    os.truncate(path, 1 << 40)

    outcome = fetch_image(path.as_uri(), settings=dataclasses.replace(SETTINGS, fetch_deadline_s=1.0))

    assert isinstance(outcome, Unusable)
    assert outcome.kind is UnusableKind.TOO_MANY_BYTES


def test_an_endless_device_is_refused() -> None:
    """A size is no promise."""
    assert isinstance(fetch_image("file:///dev/zero", settings=SETTINGS), Unusable)


def test_a_changed_file_is_a_failure_that_says_what_to_do(tmp_path: Path) -> None:
    """Evidence belongs to the listed bytes."""
    (tmp_path / "card.png").write_bytes(IMAGE)

    outcome = fetch_image((tmp_path / "card.png").as_uri(), settings=SETTINGS, expected_md5="0" * 32)

    assert isinstance(outcome, Failed)
    assert "update_database" in outcome.detail


def test_an_unknown_scheme_is_refused() -> None:
    """Only files and HTTP are fetched."""
    assert isinstance(fetch_image("ftp://host/card.png", settings=SETTINGS), Unusable)
