"""Kind local_folder: what of a folder is listed, under which name, and what is reported instead."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from cardpicker.models import Source
from cardpicker.sources.errors import ListingError, UnknownKindError, UnsafeIdentifierError
from cardpicker.sources.kinds import ListedCard, ListingProblem
from cardpicker.sources.registry import KINDS, kind_for


def fill(folder: Path, **files: bytes | str) -> Path:
    """Write files by relative path, where ``__`` stands for a slash and the last ``_`` for the dot."""
    for key, content in files.items():
        path = folder / ".".join(key.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def listing(folder: Path) -> tuple[dict[str, ListedCard], list[str]]:
    """Return the listed cards by identifier and the problems as text."""
    entries = list(kind_for("local_folder").list_cards(Source(kind="local_folder", location=str(folder))))
    cards = {entry.identifier: entry for entry in entries if isinstance(entry, ListedCard)}
    return cards, [str(entry) for entry in entries if isinstance(entry, ListingProblem)]


def test_images_of_all_subfolders_are_listed_with_their_checksums(tmp_path: Path) -> None:
    """The identifier is the relative path, the name the file's stem, the version the SHA-256."""
    cards, problems = listing(fill(tmp_path, Bolt_jpg=b"one", deep__er__Ice_PNG=b"two"))

    assert list(cards) == ["Bolt.jpg", "deep/er/Ice.PNG"]
    ice = cards["deep/er/Ice.PNG"]
    assert (ice.name, ice.extension, ice.size) == ("Ice", "png", 3)
    assert ice.sha256_checksum == ice.image_version == hashlib.sha256(b"two").hexdigest()
    assert ice.md5_checksum == hashlib.md5(b"two").hexdigest()
    assert problems == []


def test_hidden_files_are_passed_over_and_foreign_ones_reported(tmp_path: Path) -> None:
    """Only what looks like somebody's file is worth a word."""
    fill(tmp_path, Bolt_jpg=b"1", notes_txt=b"hello", Thumbs_db=b"x")
    fill(tmp_path / ".hidden", Card_jpg=b"1")
    (tmp_path / ".DS_Store").touch()

    cards, problems = listing(tmp_path)

    assert list(cards) == ["Bolt.jpg"]
    assert problems == ["notes.txt: not an image file by its extension"]


def test_broken_images_are_listed_and_empty_ones_reported_too(tmp_path: Path) -> None:
    """Whoever reads the image names its fault; zero bytes are seen at once."""
    cards, problems = listing(fill(tmp_path, text_jpg=b"I am text", zero_png=b""))

    assert list(cards) == ["text.jpg", "zero.png"]
    assert problems == ["zero.png: zero bytes: listed, but there is nothing to read"]


def test_links_are_followed_inside_the_folder_only(tmp_path: Path) -> None:
    """What leads out, nowhere or into a folder is reported."""
    outside = fill(tmp_path / "outside", secret_jpg=b"s")
    folder = fill(tmp_path / "cards", a_jpg=b"a", sub__b_jpg=b"b")
    (folder / "inside.jpg").symlink_to("sub/b.jpg")
    (folder / "out.jpg").symlink_to(outside / "secret.jpg")
    (folder / "out").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / "dangling.jpg").symlink_to("gone.jpg")

    cards, problems = listing(folder)

    assert list(cards) == ["a.jpg", "inside.jpg", "sub/b.jpg"]
    assert problems == [
        "dangling.jpg: a link that leads nowhere",
        "loop: a link to a folder is not followed",
        "out: a link that leads out of the folder",
        "out.jpg: a link that leads out of the folder",
    ]


def test_pipes_and_undecodable_names_are_reported(tmp_path: Path) -> None:
    """A pipe is never waited for; a name that is not UTF-8 cannot be stored."""
    os.mkfifo(tmp_path / "pipe.jpg")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg"))).write_bytes(b"1")

    cards, problems = listing(tmp_path)

    assert cards == {}
    assert "'caf\\udce9.jpg': its name is not UTF-8: rename it" in problems
    assert "pipe.jpg: cannot read (not a regular file)" in problems


def test_missing_or_foreign_folder_is_an_error(tmp_path: Path) -> None:
    """Nothing is concluded from a folder that cannot be listed."""
    fill(tmp_path, file_jpg=b"1")
    for path, reason in ((tmp_path / "nowhere", "No such file"), (tmp_path / "file.jpg", "Not a directory")):
        with pytest.raises(ListingError, match=reason):
            listing(path)


def test_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    """An operator who mistyped a path sees it."""
    assert listing(tmp_path) == ({}, [f"{tmp_path}: no image files in this folder"])


def test_unreadable_places_shield_what_is_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sub-folder or file that cannot be read is reported as something the listing cannot speak for."""
    fill(tmp_path, a_jpg=b"a", locked__b_jpg=b"b", bad_jpg=b"c")
    real_scandir, real_open = os.scandir, os.open

    def scandir(path: Any) -> Any:
        if str(path).rstrip("/").endswith("locked"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_scandir(path)

    def open_(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith("bad.jpg"):
            raise OSError(errno.EIO, "Input/output error")
        return real_open(path, *arguments, **options)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "open", open_)

    entries = list(kind_for("local_folder").list_cards(Source(location=str(tmp_path))))

    shields = {entry.shields for entry in entries if isinstance(entry, ListingProblem)}
    assert shields == {"locked/", "bad.jpg"}
    assert [entry.identifier for entry in entries if isinstance(entry, ListedCard)] == ["a.jpg"]


def test_cards_csv_gives_names(tmp_path: Path) -> None:
    """A byte-order mark, extra columns, sub-folders and decomposed accents are all fine."""
    fill(tmp_path, a_jpg=b"a", sub__b_jpg=b"b", u_jpg=b"u", plain_jpg=b"p")
    (tmp_path / "u.jpg").rename(tmp_path / "u\u0308.jpg")
    table = '\ufefffile,artist,name\na.jpg,X,"Teferi, Hero"\n./sub/b.jpg,,Fire // Ice\n\nü.jpg,Z,Über\n'

    cards, problems = listing(fill(tmp_path, cards_csv=table))

    assert {card.identifier: card.name for card in cards.values()} == {
        "a.jpg": "Teferi, Hero",
        "plain.jpg": "plain",
        "sub/b.jpg": "Fire // Ice",
        "u\u0308.jpg": "Über",
    }
    assert problems == []


def test_bad_rows_of_cards_csv_are_named_by_line(tmp_path: Path) -> None:
    """Their files keep their own names, and the other rows count."""
    table = (
        'file,name\na.jpg,First\na.jpg,Second\nonly-one\n,empty\ngone.jpg,Gone\n../x.jpg,Out\nb.jpg,"open\nc.jpg,C\n'
    )

    cards, problems = listing(fill(tmp_path, a_jpg=b"a", b_jpg=b"b", c_jpg=b"c", cards_csv=table))

    assert [card.name for card in cards.values()] == ["First", "b", "c"]
    assert problems == [
        "cards.csv line 3: 'a.jpg' again: line 2 counts",
        "cards.csv line 4: file or name is missing",
        "cards.csv line 5: file or name is empty",
        "cards.csv line 8: the name runs over several lines: is a quotation mark not closed?",
        "cards.csv line 6: no image file 'gone.jpg' in the folder",
        "cards.csv line 7: no image file '../x.jpg' in the folder",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"a.jpg,Bolt\n", "must name the columns"),
        (b"file;name\n", "must name the columns"),
        (b"", "must name the columns"),
        (b"file,name\nb.jpg,\xff\n", "not UTF-8"),
    ],
)
def test_unusable_cards_csv_is_an_error(tmp_path: Path, table: bytes, message: str) -> None:
    """Going on without it would rename every card of the folder."""
    with pytest.raises(ListingError, match=message):
        listing(fill(tmp_path, a_jpg=b"a", cards_csv=table))


def test_image_location_is_a_file_url(tmp_path: Path) -> None:
    """Spaces, percent signs and other alphabets survive the way through a URL."""
    location = kind_for("local_folder").image_location(str(tmp_path), "a b/100% ü.jpg")

    assert location == f"file://{tmp_path}/a%20b/100%25%20%C3%BC.jpg"


@pytest.mark.parametrize("identifier", ["", ".", "../x.jpg", "a/../../x.jpg", "/etc/passwd", "a\0.jpg", "link/x.jpg"])
def test_image_location_does_not_leave_the_folder(tmp_path: Path, identifier: str) -> None:
    """Neither ``..`` nor an absolute path nor a link made since the sync leads out."""
    folder = tmp_path / "cards"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)

    with pytest.raises(UnsafeIdentifierError):
        kind_for("local_folder").image_location(str(folder), identifier)


def test_unknown_kind_is_named_with_those_there_are() -> None:
    """Keys are unique, and a wrong one is answered with the right ones."""
    assert len({kind.key for kind in KINDS}) == len(KINDS)
    with pytest.raises(UnknownKindError, match=r"'floppy'; there are: local_folder"):
        kind_for("floppy")
