"""Kind google_drive: what of a folder becomes cards, however it is nested, linked and paged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cardpicker.models import Card
from cardpicker.sources import registry
from cardpicker.sources.drive_address import parse_folder
from cardpicker.sources.drive_files import dpi_of
from cardpicker.sources.errors import ListingError, UnsafeIdentifierError
from cardpicker.tests.drive_rig import DriveRig
from cardpicker.tests.fake_google import ROOT, SHORTCUT, fake_google, picture

pytestmark = pytest.mark.django_db


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Iterator[DriveRig]:
    with fake_google() as google:
        rig = DriveRig(google)
        monkeypatch.setattr(registry, "KINDS", (rig.kind,))
        yield rig


def names() -> list[str]:
    return sorted(Card.objects.values_list("name", flat=True))


def test_an_image_becomes_a_card_with_what_drive_knows_of_it(drive: DriveRig) -> None:
    """Checksums, size and resolution need no download."""
    drive.google.picture(7, name="Lightning Bolt (MH2).png")

    drive.sync()

    card = Card.objects.get()
    file = picture(7)
    assert (card.identifier, card.name, card.extension) == (file["id"], "Lightning Bolt (MH2)", "png")
    assert (card.size, card.dpi, card.name_hints) == (1234, 800, {"set_code": "mh2"})
    assert (card.md5_checksum, card.sha256_checksum) == (file["md5Checksum"], file["sha256Checksum"])
    assert card.image_version == file["md5Checksum"]


def test_without_checksums_the_modified_time_is_the_version(drive: DriveRig) -> None:
    """A newer moment is another image; a checksum that appears later would be one too, so the older kind is kept."""
    drive.google.picture(1, md5Checksum=None, sha256Checksum=None)
    drive.sync()
    before = Card.objects.get().image_version
    drive.google.files["picture-0000000000000001"]["modifiedTime"] = "2026-02-02T00:00:00.000Z"

    assert drive.sync().changed == 1
    assert Card.objects.get().image_version != before


def test_nested_folders_are_walked_once_even_in_a_circle(drive: DriveRig) -> None:
    """A shortcut back up, two shortcuts to one folder, and a file met three times."""
    google = drive.google
    google.folder("sub-folder-a-0001")
    google.folder("sub-folder-b-0001", "sub-folder-a-0001")
    google.picture(1, "sub-folder-b-0001")
    google.picture(2)
    google.shortcut("shortcut-up-00001", ROOT, "sub-folder-b-0001")
    google.shortcut("shortcut-across-1", "sub-folder-b-0001")
    google.shortcut("shortcut-picture1", "picture-0000000000000001")

    report = drive.sync()

    assert (report.new, report.problems) == (2, 0)
    assert drive.pages() == 3


def test_a_shortcut_lists_its_target_under_its_own_name(drive: DriveRig) -> None:
    """Also from a folder that is not below the root, with the key that the target asks for."""
    google = drive.google
    google.children["elsewhere-folder1"] = []
    google.picture(1, "elsewhere-folder1")
    google.resource_keys["picture-0000000000000001"] = "0-key"
    google.shortcut("Counterspell.png", "picture-0000000000000001", targetResourceKey="0-key")

    drive.sync()

    assert Card.objects.values_list("identifier", "name", "resource_key").get() == (
        "picture-0000000000000001",
        "Counterspell",
        "0-key",
    )


def test_every_page_of_a_folder_is_read(drive: DriveRig) -> None:
    """A page may be short and still not be the last."""
    drive.google.page_files = 3
    for number in range(10):
        drive.google.picture(number)

    assert drive.sync().new == 10
    assert drive.pages() == 4


def test_resource_keys_are_shown_for_root_and_folders(drive: DriveRig) -> None:
    """Without its key an older folder looks empty or gone."""
    google = drive.google
    google.folder("older-folder-0001")
    google.files["older-folder-0001"]["resourceKey"] = "0-sub"
    google.picture(1, "older-folder-0001")
    google.resource_keys |= {ROOT: "0-root", "older-folder-0001": "0-sub"}
    drive.source(f"{ROOT}?resourcekey=0-root")

    assert drive.sync().new == 1


def test_shared_drives_are_asked_for(drive: DriveRig) -> None:
    """Without these parameters a shared drive's files are left out silently."""
    drive.google.picture(1)
    drive.sync()

    [page] = [asked for asked in drive.google.asked if asked.path == "/drive/v3/files"]
    assert page.query["supportsAllDrives"] == page.query["includeItemsFromAllDrives"] == "true"
    assert "trashed = false" in page.query["q"]


def test_what_is_no_image_is_named_and_the_rest_listed(drive: DriveRig) -> None:
    """Documents, files without an id, shortcuts to nowhere; an image of unknown type counts by its extension."""
    google = drive.google
    google.picture(1, mimeType="application/octet-stream")
    google.picture(2, name="readme", mimeType="text/plain")
    google.add({"id": "", "name": "ghost.png", "mimeType": "image/png"}, ROOT)
    google.add({"id": "shortcut-to-none1", "name": "none", "mimeType": SHORTCUT, "shortcutDetails": {}}, ROOT)

    report = drive.sync()

    assert names() == ["Card 1"]
    assert report.named == [
        "readme: not an image file (text/plain)",
        "ghost.png: listed without a usable id",
        "none: a shortcut that leads nowhere",
    ]


@pytest.mark.parametrize(
    ("metadata", "dpi"),
    [
        ({"width": 816, "height": 1110}, 300),
        ({"width": 1110, "height": 816}, 300),
        ({"width": 2176, "height": 2960}, 800),
        ({"width": 1000, "height": 1000}, None),
        ({"width": "x", "height": None}, None),
        ({"width": 0, "height": 0}, None),
        (None, None),
        ([], None),
    ],
)
def test_resolution_is_told_only_of_what_has_the_shape_of_a_card(metadata: object, dpi: int | None) -> None:
    """However it is turned; a square or an unknown size says nothing."""
    assert dpi_of(metadata) == dpi


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (ROOT, ROOT),
        (f" https://drive.google.com/drive/folders/{ROOT}?usp=sharing ", ROOT),
        (f"https://drive.google.com/drive/u/0/folders/{ROOT}?resourcekey=0-ab_C", f"{ROOT}?resourcekey=0-ab_C"),
        (f"https://drive.google.com/open?id={ROOT}", ROOT),
        (f"{ROOT}?resourcekey=0-ab_C", f"{ROOT}?resourcekey=0-ab_C"),
    ],
)
def test_a_folder_is_known_by_its_id_or_its_link(text: str, stored: str) -> None:
    """In the forms in which people have it; the key of an older link belongs to it."""
    assert str(parse_folder(text)) == stored


@pytest.mark.parametrize(
    "text",
    [
        *("", "short", "../../etc", "https://[::1/", "https://drive.google.com/file/d/x", f"ftp://x/{ROOT}"),
        *(f"https://evil.example/drive/folders/{ROOT}", f"{ROOT}' or '1' = '1", f"{ROOT}?resourcekey=a,b/c"),
    ],
)
def test_what_names_no_folder_is_refused(text: str) -> None:
    """Nothing that could bend a query or a header gets through."""
    with pytest.raises(ListingError, match="no Google Drive folder"):
        parse_folder(text)


def test_a_location_is_never_given() -> None:
    """Images come through the image CDN, whose address is not the source's to say."""
    with pytest.raises(UnsafeIdentifierError):
        registry.kind_for("google_drive").image_location(ROOT, "picture-0000000000000001")
