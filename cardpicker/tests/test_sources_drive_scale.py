"""Kind google_drive at size, and when only changes are asked for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import datetime

import pytest
from django.db import connection

from cardpicker.models import Card
from cardpicker.sources import registry
from cardpicker.sources.kinds import ListedCard, ListingProgress
from cardpicker.sources.sync import sync_source
from cardpicker.tests.drive_rig import DriveRig
from cardpicker.tests.fake_google import ROOT, Asked, fake_google, refusal

FILES = 50_000

pytestmark = pytest.mark.django_db


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Iterator[DriveRig]:
    with fake_google() as google:
        rig = DriveRig(google)
        monkeypatch.setattr(registry, "KINDS", (rig.kind,))
        yield rig


def test_a_listing_of_fifty_thousand_files_is_never_held_in_memory(drive: DriveRig) -> None:
    """The cards lie on disk until the last page has come, and are then taken one by one."""
    drive.google.many[ROOT] = FILES
    listed, most = 0, 0
    for entry in drive.kind.list_cards(drive.source()):
        listed += isinstance(entry, ListedCard)
        if (isinstance(entry, ListingProgress) and entry.done % 10_000 == 0) or listed in (1, FILES // 2):
            most = max(most, sum(isinstance(held, ListedCard) for held in gc.get_objects()))

    assert listed == FILES
    assert most <= 3
    assert drive.pages() == FILES // 1_000


def test_a_failed_last_page_changes_nothing(drive: DriveRig) -> None:
    """Of three thousand files, 2,000 were listed when Google began to refuse; none of them was stored."""
    drive.google.many[ROOT] = 3_000
    drive.google.before = lambda asked: refusal(500, "backendError") if asked.query.get("pageToken") == "2000" else None
    source = drive.source()

    with pytest.raises(Exception, match="nothing was changed"):
        sync_source(source)

    assert not Card.objects.exists()


def test_a_second_sync_writes_nothing(drive: DriveRig) -> None:
    """Not one row of a card moves."""
    drive.google.many[ROOT] = 2_500
    drive.sync()
    before = rows()

    assert drive.sync().unchanged == 2_500
    assert rows() == before


def rows() -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, ctid::text FROM cardpicker_card ORDER BY id")
        return list(cursor.fetchall())


def later(asked: Asked) -> None:
    """Say nothing in place of the fake."""


def test_changes_only_asks_for_what_is_new_or_modified(drive: DriveRig) -> None:
    """One old file is not even listed; a new one and a changed one are, and nothing is taken for removed."""
    for number in range(3):
        drive.google.picture(number)
    assert drive.sync().new == 3
    drive.google.picture(3, modifiedTime="2000-01-01T00:00:00.000Z", createdTime="2999-01-01T00:00:00.000Z")
    drive.google.files["picture-0000000000000001"] |= {"md5Checksum": "0" * 32, "modifiedTime": "2999-01-01T00:00:00Z"}
    drive.google.remove("picture-0000000000000002")

    report = drive.sync(changes_only=True)

    assert (report.new, report.changed, report.unchanged, report.removed, report.held) == (1, 1, 0, 0, 0)
    assert len(report.notes) == 1
    assert drive.sync(confirm_removals=True).removed == 1


def test_changes_only_lists_a_new_folder_whole(drive: DriveRig) -> None:
    """Files that were moved along with their folder are older than the last listing."""
    drive.google.picture(1)
    drive.sync()
    drive.google.folder("moved-folder-0001")
    drive.google.picture(2, "moved-folder-0001")

    assert drive.sync(changes_only=True).new == 1
    drive.google.asked.clear()
    drive.sync(changes_only=True)
    assert all("modifiedTime >" in asked.query["q"] for asked in drive.google.asked if "q" in asked.query)


def test_changes_only_overlaps_by_googles_own_clock(drive: DriveRig) -> None:
    """What changed while the last listing ran is asked for again."""
    drive.google.picture(1)
    drive.sync()
    since = datetime.fromisoformat(drive.source().listing_state["since"])
    stored_at = drive.source().last_synced_at

    assert stored_at is not None
    assert 3_500 < (stored_at - since).total_seconds() < 3_700


def test_a_folder_that_was_not_seen_is_listed_whole_the_next_time(drive: DriveRig) -> None:
    """What happened in it meanwhile may be older than the last listing."""
    drive.google.folder("sub-folder-a-0001")
    drive.sync()
    hidden = refusal(403, "insufficientFilePermissions")
    drive.google.before = lambda asked: hidden if "sub-folder" in asked.query.get("q", "") else None
    drive.sync(changes_only=True)
    drive.google.before = later
    drive.google.picture(1, "sub-folder-a-0001")

    assert drive.sync(changes_only=True).new == 1


def test_another_address_is_listed_whole(drive: DriveRig) -> None:
    """What is remembered belongs to the address, also where its folders are the same."""
    drive.google.folder("sub-folder-a-0001")
    drive.google.picture(1, "sub-folder-a-0001")
    drive.sync()
    source = drive.source()
    source.location = "sub-folder-a-0001"
    source.save()

    assert drive.sync(changes_only=True).unchanged == 1
