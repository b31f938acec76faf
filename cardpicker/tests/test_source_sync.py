"""Syncs that never overlap, and the one that runs by itself."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import OrmQ, Schedule

from cardpicker.models import Card, Source
from cardpicker.sources import registry
from cardpicker.sources.adding import add_folder
from cardpicker.sources.errors import ListingError
from cardpicker.sources.kinds import ListedCard
from cardpicker.sources.update import NotSynced, Synced, SyncOptions
from cardpicker.stage_e.source_sync import ALREADY_RUNNING, OFF, scheduled_sync, sync_each
from cardpicker.tests.test_sources_local_folder import fill

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def enabled(settings: Any) -> None:
    settings.STAGE_E = replace(settings.STAGE_E, streaming_enabled=True)


def sync_all(**options: bool) -> list[Synced | NotSynced]:
    return list(
        sync_each(Source.objects.order_by("pk"), SyncOptions(**options), progress_of=lambda _: lambda *args: None)
    )


class Nested:
    """A kind in the midst of whose listing the same source is synced again, by the command and by the schedule."""

    key = "nested"

    def __init__(self) -> None:
        self.seen: list[object] = []

    def list_cards(self, source: Source) -> Iterator[ListedCard]:
        """List one card, after the others have had their try."""
        if not self.seen:
            [outcome] = sync_all()
            assert isinstance(outcome, NotSynced)
            self.seen += [outcome.reason, scheduled_sync()]
            [dry] = sync_all(dry_run=True)
            self.seen.append(type(dry))
        yield ListedCard(identifier="a", name="A", image_version="1")

    def image_location(self, source_location: str, identifier: str) -> str:
        """Return no useful place."""
        return "file:///nowhere"


def test_two_syncs_of_a_source_never_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes second leaves at once; a dry run writes nothing and may look."""
    kind = Nested()
    monkeypatch.setattr(registry, "KINDS", (kind,))
    Source.objects.create(key="n", kind="nested", location="x")

    [outcome] = sync_all()

    assert isinstance(outcome, Synced)
    assert kind.seen == [ALREADY_RUNNING, "0 synced, 1 failed", Synced]
    assert [type(again) for again in sync_all()] == [Synced]


def test_the_schedule_syncs_what_is_old_enough_and_asks_for_a_dispatch(tmp_path: Path, settings: Any) -> None:
    """One that is fresh, and one that is disabled, rest; one that fails keeps its reason and no other from its turn."""
    settings.SOURCES = replace(settings.SOURCES, sync_hours=24.0)
    for key in ("broken", "fresh", "old", "off"):
        add_folder(str(fill(tmp_path / key, x_jpg=key.encode())))
    Source.objects.filter(key="broken").update(location=str(tmp_path / "gone"))
    Source.objects.filter(key="fresh").update(last_synced_at=timezone.now() - timedelta(hours=23))
    Source.objects.filter(key="old").update(last_synced_at=timezone.now() - timedelta(hours=23.75))
    Source.objects.filter(key="off").update(enabled=False)
    OrmQ.objects.all().delete()

    assert scheduled_sync() == "1 synced, 1 failed"

    assert set(Card.objects.values_list("source__key", flat=True)) == {"old"}
    assert "cannot list the folder" in Source.objects.get(key="broken").last_sync_report["failed"]
    assert OrmQ.objects.count() == 1
    assert scheduled_sync() == "0 synced, 1 failed"
    Source.objects.filter(key="broken").update(location=str(tmp_path / "broken"))
    assert scheduled_sync() == "1 synced, 0 failed"
    assert "failed" not in Source.objects.get(key="broken").last_sync_report


def test_a_failure_keeps_the_report_of_the_last_good_sync(tmp_path: Path) -> None:
    """What was true then is still what is known of the source; a dry run leaves no trace."""
    source = add_folder(str(fill(tmp_path / "a", x_jpg=b"1")))
    sync_all()
    Source.objects.update(location=str(tmp_path / "gone"))
    sync_all(dry_run=True)
    assert "failed" not in Source.objects.get().last_sync_report

    sync_all()

    report = Source.objects.get(pk=source.pk).last_sync_report
    assert report["new"] == 1
    assert "cannot list the folder" in report["failed"]


@pytest.mark.parametrize(
    ("streaming_enabled", "hours", "said"), [(False, 24.0, "disabled"), (True, 0.0, OFF), (True, 24.0, "1 synced")]
)
def test_the_schedule_does_nothing_where_it_is_off(
    tmp_path: Path, settings: Any, streaming_enabled: bool, hours: float, said: str
) -> None:
    """Nothing is listed by itself unless the installation streams, and an operator may do it all by cron."""
    settings.STAGE_E = replace(settings.STAGE_E, streaming_enabled=streaming_enabled)
    settings.SOURCES = replace(settings.SOURCES, sync_hours=hours)
    add_folder(str(fill(tmp_path / "a", x_jpg=b"1")))

    assert scheduled_sync().startswith(said)
    assert Card.objects.exists() is (said == "1 synced")


def test_an_unreachable_lock_server_syncs_nothing(tmp_path: Path, settings: Any) -> None:
    """Without the lock nobody knows who else is at it."""
    settings.STAGE_E = replace(settings.STAGE_E, lock_dsn="host=127.0.0.1 port=1 connect_timeout=2")
    add_folder(str(fill(tmp_path / "a", x_jpg=b"1")))
    errors = StringIO()

    with pytest.raises(CommandError, match="1 of 1 sources"):
        call_command("update_database", stdout=StringIO(), stderr=errors)

    assert "cannot be opened" in errors.getvalue()
    assert not Card.objects.exists()


def test_the_reason_of_a_listing_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it is, it can be stored."""

    class Odd(Nested):
        def list_cards(self, source: Source) -> Iterator[ListedCard]:
            raise ListingError("no\x00\n" + "x" * 900)

    monkeypatch.setattr(registry, "KINDS", (Odd(),))
    Source.objects.create(key="n", kind="nested", location="x")

    sync_all()

    assert len(Source.objects.get().last_sync_report["failed"]) <= 500


def test_migrations_schedule_the_sync() -> None:
    """Every hour, with a time-out that a large listing fits in."""
    module = importlib.import_module("cardpicker.migrations.0011_schedule_source_sync")
    module.schedule(apps, None)
    module.schedule(apps, None)

    planned = Schedule.objects.get(name=module.NAME)
    assert planned.schedule_type == Schedule.HOURLY
    assert import_string(planned.func) is scheduled_sync
    assert "'timeout': 3600" in planned.kwargs
    module.unschedule(apps, None)
    assert not Schedule.objects.filter(name=module.NAME).exists()
