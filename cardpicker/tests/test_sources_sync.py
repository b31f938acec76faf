"""Sync: what a listing does to the cards of its source, and what it must not do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
from django.db import connection

from cardpicker.models import Card, CardPrintingTag, CardWork, ImageEvidence, Source, VoteSource
from cardpicker.sources import registry
from cardpicker.sources.errors import ListingError, SourceError
from cardpicker.sources.kinds import ListedCard, ListingProblem
from cardpicker.sources.report import SyncReport
from cardpicker.sources.sync import sync_source

Entry = ListedCard | ListingProblem | Exception


class ScriptedKind:
    """A source whose listing the test writes; an exception in it is raised at its place."""

    key = "scripted"

    def __init__(self) -> None:
        self.entries: Iterable[Entry] = ()

    def list_cards(self, source: Source) -> Iterator[ListedCard | ListingProblem]:
        """Play the entries."""
        for entry in self.entries:
            if isinstance(entry, Exception):
                raise entry
            yield entry

    def image_location(self, source_location: str, identifier: str) -> str:
        """Never asked here."""
        raise NotImplementedError


def listed(number: int, *, version: str = "v1", name: str = "") -> ListedCard:
    """Return a listed card."""
    return ListedCard(identifier=f"{number}.jpg", name=name or f"Card {number}", image_version=version, size=1)


Sync = Callable[..., SyncReport]


@pytest.fixture
def source() -> Source:
    """Return a source of the scripted kind."""
    return Source.objects.create(key="src", name="Src", kind="scripted", location="x")


@pytest.fixture
def sync(source: Source, monkeypatch: pytest.MonkeyPatch) -> Sync:
    """Return a function that syncs the source with the listing it is given."""
    kind = ScriptedKind()
    monkeypatch.setattr(registry, "KINDS", (kind,))

    def run(entries: Iterable[Entry], *, confirm_removals: bool = False) -> SyncReport:
        kind.entries = entries
        return sync_source(source, confirm_removals=confirm_removals)

    return run


def counts(report: SyncReport) -> tuple[int, ...]:
    """Return new, changed, unchanged, returned, removed, held."""
    return (report.new, report.changed, report.unchanged, report.returned, report.removed, report.held)


def row_versions() -> list[tuple[int, str]]:
    """Return where each card's row lies; every write moves it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, ctid::text FROM cardpicker_card ORDER BY id")
        return list(cursor.fetchall())


@pytest.mark.django_db
def test_new_and_changed_cards_are_due_without_any_signal(sync: Sync) -> None:
    """Of 50 new cards, 50 are due; of 10 changed ones, 10."""
    assert counts(sync([listed(n) for n in range(50)])) == (50, 0, 0, 0, 0, 0)
    assert CardWork.objects.filter(due_at__isnull=False, reason="created").count() == 50
    CardWork.objects.update(due_at=None)

    report = sync([listed(n, version="v2" if n < 10 else "v1") for n in range(50)])

    assert counts(report) == (0, 10, 40, 0, 0, 0)
    due = CardWork.objects.filter(due_at__isnull=False)
    assert set(due.values_list("card__identifier", "reason")) == {(f"{n}.jpg", "image-changed") for n in range(10)}


@pytest.mark.django_db
def test_second_sync_writes_no_card(sync: Sync) -> None:
    """Nothing is due again, and no row is touched."""
    entries = [listed(n) for n in range(20)]
    sync(entries)
    CardWork.objects.update(due_at=None)
    before = row_versions()

    report = sync(entries)

    assert counts(report) == (0, 0, 20, 0, 0, 0)
    assert row_versions() == before
    assert not CardWork.objects.filter(due_at__isnull=False).exists()


@pytest.mark.django_db
def test_renamed_card_keeps_its_image_version(sync: Sync) -> None:
    """A new name changes the key and makes the card due, though the image is the same."""
    sync([listed(1)])
    sync([listed(1, name="Fire // Ice (2)")])

    assert Card.objects.values_list("name", "name_key", "image_version").get() == ("Fire // Ice (2)", "fireice", "v1")
    assert CardWork.objects.get().reason == "card-changed"


@pytest.mark.django_db
def test_removed_card_keeps_everything_and_returns_with_it(sync: Sync, source: Source) -> None:
    """Evidence and votes outlive an absence, so that nothing is read twice."""
    everything = [listed(n) for n in range(10)]
    sync(everything)
    card = Card.objects.get(identifier="3.jpg")
    ImageEvidence.objects.create(card=card, image_version="v1", image_sha256="0" * 64, manifest="m")
    CardPrintingTag.objects.create(card=card, is_no_match=True, anonymous_id="someone", source=VoteSource.USER)

    gone = sync(everything[:3] + everything[4:])
    assert counts(gone) == (0, 0, 9, 0, 1, 0)
    assert not Card.objects.present().filter(pk=card.pk).exists()
    assert not CardWork.objects.filter(card=card, due_at__isnull=False).exists()

    back = sync(everything)
    assert counts(back) == (0, 0, 9, 1, 0, 0)
    assert Card.objects.present().filter(pk=card.pk).exists()
    assert ImageEvidence.objects.current("m").filter(card=card).exists()
    assert card.printing_tags.count() == 1


@pytest.mark.django_db
def test_removals_of_more_than_a_tenth_wait_for_confirmation(sync: Sync, source: Source) -> None:
    """Exactly a tenth is believed; one more is held, again and again, until it is confirmed."""
    sync([listed(n) for n in range(40)])

    assert counts(sync([listed(n) for n in range(36)])) == (0, 0, 36, 0, 4, 0)
    for _ in range(2):
        assert counts(sync([listed(n) for n in range(32)])) == (0, 0, 32, 0, 0, 4)
        source.refresh_from_db()
        assert source.held_removals == 4
        assert Card.objects.present().count() == 36

    assert counts(sync([listed(n) for n in range(32)], confirm_removals=True)) == (0, 0, 32, 0, 4, 0)
    source.refresh_from_db()
    assert source.held_removals == 0
    assert Card.objects.present().count() == 32


@pytest.mark.django_db
def test_empty_listing_removes_nothing(sync: Sync) -> None:
    """An emptied folder looks like an unmounted disk: even a source of one card is held."""
    sync([listed(1)])

    assert counts(sync([])) == (0, 0, 0, 0, 0, 1)
    assert Card.objects.present().count() == 1


@pytest.mark.django_db
def test_failed_listing_changes_nothing(sync: Sync, source: Source) -> None:
    """No card, no work and no report is touched, not even with a confirmation."""
    sync([listed(n) for n in range(5)])
    source.refresh_from_db()
    before = source.last_synced_at

    with pytest.raises(ListingError):
        sync([ListingError("403")], confirm_removals=True)

    source.refresh_from_db()
    assert source.last_synced_at == before
    assert Card.objects.present().count() == 5


@pytest.mark.django_db
def test_unlisted_places_are_not_taken_for_removed(sync: Sync) -> None:
    """A sub-folder or file that could not be read says nothing about its cards."""
    inside = [ListedCard(identifier=f"sub/{n}.jpg", name="x", image_version="v1") for n in range(5)]
    sync([listed(1), listed(2), *inside])

    report = sync(
        [
            listed(1),
            ListingProblem(where="sub/", detail="cannot list", shields="sub/"),
            ListingProblem(where="2.jpg", detail="cannot read", shields="2.jpg"),
        ],
        confirm_removals=True,
    )

    assert (report.removed, report.held, report.problems) == (0, 0, 2)
    assert Card.objects.present().count() == 7


@pytest.mark.django_db
def test_interrupted_sync_is_finished_by_the_next(sync: Sync) -> None:
    """What was stored before the interruption stays and is not stored twice."""
    entries: list[Entry] = [listed(n) for n in range(1_200)]
    with pytest.raises(RuntimeError):
        sync([*entries[:1_100], RuntimeError("killed")])
    stored = Card.objects.count()

    report = sync(entries)

    assert 0 < stored < 1_200
    assert (report.new, report.unchanged) == (1_200 - stored, stored)
    assert CardWork.objects.filter(due_at__isnull=False).count() == 1_200


@pytest.mark.django_db
def test_first_of_two_entries_with_one_identifier_counts(sync: Sync) -> None:
    """The second is reported, also when the first is a batch away."""
    report = sync([listed(0), listed(0, version="v2"), *(listed(n) for n in range(1, 600)), listed(0, version="v3")])

    assert (report.new, report.problems) == (600, 2)
    assert report.named == ["0.jpg: listed twice: the first counts"] * 2
    assert Card.objects.get(identifier="0.jpg").image_version == "v1"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "stored"),
    [("Bolt\0\ud800", "Bolt"), ("x" * 10_000, "x" * 500), ("\0", "1.jpg"), ("", "1.jpg")],
    ids=["nul", "long", "only nul", "empty"],
)
def test_names_that_cannot_be_stored_are_made_fit(sync: Sync, name: str, stored: str) -> None:
    """The card is kept under a cleaned name, and the operator hears of it."""
    report = sync([ListedCard(identifier="1.jpg", name=name, image_version="v1"), listed(2)])

    assert report.new == 2
    assert report.problems == (1 if name else 0)
    assert Card.objects.get(identifier="1.jpg").name == stored


@pytest.mark.django_db
@pytest.mark.parametrize("identifier", ["", "x" * 1_001, "字" * 900, "a\0b", "a\ud800b"])
def test_identifiers_that_cannot_be_stored_are_reported(sync: Sync, identifier: str) -> None:
    """The card is left out; the others are not."""
    report = sync([ListedCard(identifier=identifier, name="x", image_version="v1"), listed(2)])

    assert (report.new, report.problems) == (1, 1)


@pytest.mark.django_db
def test_cards_of_other_sources_are_left_alone(sync: Sync) -> None:
    """Equal identifiers in another source are other cards."""
    other = Source.objects.create(key="other", name="Other", kind="scripted", location="y")
    Card.objects.create(source=other, identifier="1.jpg", name="Mine", name_key="mine", image_version="v1")

    report = sync([listed(1)], confirm_removals=True)

    assert (report.new, report.removed) == (1, 0)
    assert Card.objects.get(source=other).name == "Mine"


@pytest.mark.django_db
def test_deleted_source_is_named(sync: Sync) -> None:
    """A source that goes while its listing is read is no crash."""

    def entries() -> Iterator[ListedCard]:
        Source.objects.all().delete()
        yield listed(1)

    with pytest.raises(SourceError, match="deleted"):
        sync(entries())
