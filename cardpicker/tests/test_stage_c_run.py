"""A batch of Stage C: every card ends in its own outcome, and none in another's."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.db import connection
from django.db.backends.signals import connection_created
from django.db.models.signals import post_save, pre_save
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cardpicker.models import CanonicalArtist, CanonicalCard, CanonicalExpansion, Card, ImageEvidence
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_c.outcomes import Deferred, Fetched
from cardpicker.tests.stage_c_jobs import image, obey, refuse_to_start
from cardpicker.tests.stage_c_rig import OBEDIENT, Recorder, add_cards

pytestmark = pytest.mark.django_db


def numbered(count: int) -> list[bytes]:
    return [image(text=str(number)) for number in range(count)]


def test_a_batch_is_stored_in_order_with_its_report(tmp_path: Path) -> None:
    """Slow first images do not change the order; every card is settled once and reported."""
    bodies = [image(text="1", seconds=0.3), image(text="2"), image(text="3"), image()]
    cards = add_cards(tmp_path / "cards", bodies)
    recorder = Recorder()

    report = recorder.run(cards)

    assert [card_id for card_id, _ in recorder.settled] == [card.pk for card in cards]
    assert report.counts == {"Stored": 4}
    assert report.evidence_card_ids == tuple(card.pk for card in cards)
    assert report.fetched == 4
    assert report.extractor_yield == {"collector_line": 3}
    stored = ImageEvidence.objects.get(card=cards[0])
    assert (stored.set_code, stored.run_id, stored.image_version) == ("1", "test-run", cards[0].image_version)
    assert stored.elapsed_ms >= 300


def test_the_cards_are_taken_in_the_order_asked_for_each_once(tmp_path: Path) -> None:
    """A caller's order is kept, and a repeated id is one card."""
    first, second, third = add_cards(tmp_path / "cards", numbered(3))
    recorder = Recorder()

    recorder.run([third, first, third, second])

    assert [card_id for card_id, _ in recorder.settled] == [third.pk, first.pk, second.pk]


def test_current_evidence_is_not_read_again(tmp_path: Path) -> None:
    """A second run fetches nothing and starts no process."""
    cards = add_cards(tmp_path / "cards", numbered(3))
    Recorder().run(cards)
    again = Recorder()

    report = again.run(cards, parts=ComputeParts(compute=obey, initializer=refuse_to_start))

    assert report.counts == {"AlreadyCurrent": 3}
    assert report.evidence_card_ids == tuple(card.pk for card in cards)
    assert again.fetches == []


@pytest.mark.parametrize("stale", [{"manifest": "older"}, {"image_version": "older"}])
def test_stale_evidence_is_read_again_and_replaced(tmp_path: Path, stale: dict[str, str]) -> None:
    """Neither yesterday's extractors nor yesterday's image count, and the judgment starts anew."""
    [card] = add_cards(tmp_path / "cards", numbered(1))
    Recorder().run([card])
    ImageEvidence.objects.update(**stale, judged_by="calculators", set_code="old")

    report = Recorder().run([card])

    evidence = ImageEvidence.objects.get()
    assert report.counts == {"Stored": 1}
    assert (evidence.set_code, evidence.judged_by) == ("0", "")


def test_cards_that_are_not_there_are_gone(tmp_path: Path) -> None:
    """A deleted and a removed card are named, the third is read."""
    cards = add_cards(tmp_path / "cards", numbered(3))
    Card.objects.filter(pk=cards[1].pk).update(removed_at=timezone.now())
    recorder = Recorder()

    report = recorder.run([10**12, cards[1], cards[2]])

    assert report.counts == {"CardGone": 2, "Stored": 1}
    assert report.fetched == 1
    assert recorder.names() == {10**12: "CardGone", cards[1].pk: "CardGone", cards[2].pk: "Stored"}


def test_a_stop_finishes_what_is_in_flight_and_defers_the_rest(tmp_path: Path) -> None:
    """A deadline loses no finished work and starts no new one."""
    cards = add_cards(tmp_path / "cards", numbered(20))
    recorder = Recorder()
    recorder.should_stop = lambda: len(recorder.settled) >= 1

    report = recorder.run(cards)

    stored = report.counts["Stored"]
    assert 1 <= stored <= 1 + 4
    assert report.counts["Deferred"] == 20 - stored
    assert list(recorder.names().values()) == ["Stored"] * stored + ["Deferred"] * (20 - stored)


def test_the_pipeline_does_not_hear_its_own_echo(tmp_path: Path) -> None:
    """Storing and copying evidence sends no signal."""
    cards = add_cards(tmp_path / "cards", [image(text="1"), image(text="1"), image(text="2")])
    heard: list[type] = []

    def hear(sender: type, **kwargs: object) -> None:
        heard.append(sender)

    for signal in (pre_save, post_save):
        signal.connect(hear)
    try:
        report = Recorder().run(cards)
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(hear)

    assert report.counts == {"Stored": 2, "Transferred": 1}
    assert heard == []


def test_fetch_threads_open_no_database_connection(tmp_path: Path) -> None:
    """All connections belong to the coordinating thread."""
    cards = add_cards(tmp_path / "cards", numbered(12))
    openers: set[int] = set()

    def note(**kwargs: object) -> None:
        openers.add(threading.get_ident())

    connection_created.connect(note)
    try:
        Recorder().run(cards, fetch_threads=8)
    finally:
        connection_created.disconnect(note)

    assert openers <= {threading.get_ident()}


def test_queries_beside_those_of_each_store_do_not_grow_with_the_batch(tmp_path: Path) -> None:
    """A card costs the statements of its own transaction, whatever the size of the batch."""

    def queries(count: int) -> int:
        cards = add_cards(tmp_path / f"cards{count}", numbered(count), key=f"folder{count}", checksums=False)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            Recorder().run(cards)
        return len(captured)

    few, many = queries(2), queries(22)

    assert (many - few) / 20 == 3  # savepoint, lock and upsert, release


def test_artists_of_the_name_reach_the_extraction(tmp_path: Path) -> None:
    """What the catalog knows of the name is context of its image."""
    [card] = add_cards(tmp_path / "cards", numbered(1))
    expansion = CanonicalExpansion.objects.create(code="tst", name="Test")
    artist = CanonicalArtist.objects.create(name="Rebecca Guay")
    CanonicalCard.objects.create(
        identifier="0" * 8 + "-0000-0000-0000-" + "0" * 12,
        name="Card 0",
        name_key="card0",
        name_keys=["card0"],
        artist=artist,
        expansion=expansion,
        collector_number="1",
        language="en",
    )

    Recorder().run([card])

    assert ImageEvidence.objects.get().readings["artist"]["known"] == ["Rebecca Guay"]


def test_ticks_and_fetches_reach_the_caller(tmp_path: Path) -> None:
    """The heart beats during slow work, and a fetch is told without its bytes."""
    cards = add_cards(tmp_path / "cards", [image(text="1", seconds=2.5)])
    recorder = Recorder()

    recorder.run(cards, parts=OBEDIENT)

    assert recorder.ticks >= 2
    assert recorder.fetches == [Fetched(body=b"", sha256="")]


def test_deferred_cards_say_why(tmp_path: Path) -> None:
    """A stop before the first image defers all with a reason."""
    cards = add_cards(tmp_path / "cards", numbered(2))
    recorder = Recorder(should_stop=lambda: True)

    recorder.run(cards)

    assert [outcome for _, outcome in recorder.settled] == [Deferred(detail="the batch was stopped")] * 2


@pytest.mark.parametrize("start_method", ["forkserver", "fork"])
def test_the_database_is_there_still_whichever_way_processes_start(tmp_path: Path, start_method: str) -> None:
    """Children that inherit the connection neither use nor end it."""
    cards = add_cards(tmp_path / "cards", numbered(6))

    report = Recorder().run(cards, start_method=start_method, tasks_per_worker=2)

    assert report.counts == {"Stored": 6}
    assert ImageEvidence.objects.count() == 6
