"""A batch of Stage C in which something goes wrong: the rest is unharmed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cardpicker.models import Card, Source
from cardpicker.stage_c.conveyor import WorkerInitError
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_c.outcomes import CardGone, CardOutcome, Crashed, Deferred, LeaseLostError
from cardpicker.tests.stage_c_jobs import image, obey, refuse_to_start
from cardpicker.tests.stage_c_rig import Recorder, add_cards, stored_ids

pytestmark = pytest.mark.django_db


def numbered(count: int) -> list[bytes]:
    return [image(text=str(number)) for number in range(count)]


def void(result: object) -> None:
    """Make a statement of an expression."""


@pytest.mark.parametrize("spoiled", [[0], [4], [9], list(range(10))], ids=["first", "middle", "last", "all"])
@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (image(do="unusable"), "Unusable"),
        (image(do="raise"), "Crashed"),
        (b"", "Unusable"),
        (b"text", "Unusable"),
        (None, "Gone"),
    ],
    ids=["unusable", "raises", "empty", "text", "missing"],
)
def test_one_bad_image_spoils_no_other(
    tmp_path: Path, spoiled: Sequence[int], body: bytes | None, outcome: str
) -> None:
    """Wherever the bad ones are, the others are read, and each bad one has its name."""
    bodies = [(body or b"") if number in spoiled else good for number, good in enumerate(numbered(10))]
    cards = add_cards(tmp_path / "cards", bodies, checksums=False)
    for number in spoiled if body is None else []:
        (tmp_path / "cards" / cards[number].identifier).unlink()
    recorder = Recorder()

    recorder.run(cards)

    assert recorder.names() == {
        card.pk: outcome if number in spoiled else "Stored" for number, card in enumerate(cards)
    }


def test_an_image_that_kills_its_process_costs_itself_only(tmp_path: Path) -> None:
    """The process is replaced, and the other images are read."""
    cards = add_cards(tmp_path / "cards", [*numbered(3), image(do="crash"), image(text="9")])
    recorder = Recorder()

    report = recorder.run(cards)

    assert report.counts == {"Stored": 4, "Crashed": 1}
    assert isinstance(dict(recorder.settled)[cards[3].pk], Crashed)


def test_a_card_deleted_in_flight_is_gone_and_the_rest_unharmed(tmp_path: Path) -> None:
    """Nothing is stored for it, and it raises nothing."""
    cards = add_cards(tmp_path / "cards", numbered(4))
    recorder = Recorder(on_fetch=lambda outcome: void(Card.objects.filter(pk=cards[2].pk).delete()))

    report = recorder.run(cards)

    assert report.counts == {"Stored": 3, "CardGone": 1}
    assert stored_ids() == {card.pk for card in cards} - {cards[2].pk}


def test_an_image_replaced_in_flight_keeps_its_old_bytes_out(tmp_path: Path) -> None:
    """Evidence of bytes that the card no longer has is not stored as current."""
    cards = add_cards(tmp_path / "cards", numbered(2))
    recorder = Recorder(on_fetch=lambda outcome: void(Card.objects.filter(pk=cards[1].pk).update(image_version="new")))

    recorder.run(cards)

    assert dict(recorder.settled)[cards[1].pk] == CardGone(detail="image replaced in flight")
    assert stored_ids() == {cards[0].pk}


def test_a_lost_lease_takes_back_its_evidence_only(tmp_path: Path) -> None:
    """What a rival holds now is not overwritten; the card is reported as deferred."""
    cards = add_cards(tmp_path / "cards", numbered(3))

    def refuse(card_id: int, outcome: CardOutcome) -> None:
        if card_id == cards[1].pk:
            raise LeaseLostError("claimed by another")

    report = Recorder(on_settle=refuse).run(cards)

    assert report.counts == {"Stored": 2, "Deferred": 1}
    assert stored_ids() == {cards[0].pk, cards[2].pk}
    assert cards[1].pk not in report.evidence_card_ids


def test_a_lost_slot_ends_the_batch_with_nothing_more_written(tmp_path: Path) -> None:
    """After the first no, neither evidence nor work is written."""
    cards = add_cards(tmp_path / "cards", numbered(8))
    recorder = Recorder()
    recorder.may_write = lambda: len(recorder.settled) < 2

    report = recorder.run(cards)

    assert report.counts == {"Stored": 2, "Deferred": 6}
    assert len(recorder.settled) == 2
    assert stored_ids() == {cards[0].pk, cards[1].pk}


def test_without_a_working_engine_the_run_says_so_and_settles_nothing(tmp_path: Path) -> None:
    """No card is blamed for a host without OCR."""
    cards = add_cards(tmp_path / "cards", numbered(2))
    recorder = Recorder()

    with pytest.raises(WorkerInitError, match="no engine here"):
        recorder.run(cards, parts=ComputeParts(compute=obey, initializer=refuse_to_start))

    assert recorder.settled == []


def test_an_unknown_source_kind_and_an_escaping_identifier_are_named(tmp_path: Path) -> None:
    """The first is the installation's fault and transient, the second the card's for good."""
    cards = add_cards(tmp_path / "cards", numbered(2))
    strange = Source.objects.create(key="strange", kind="carrier_pigeon", location="x")
    Card.objects.filter(pk=cards[0].pk).update(source=strange)
    Card.objects.filter(pk=cards[1].pk).update(identifier="../../etc/passwd")
    recorder = Recorder()

    recorder.run(cards)

    assert recorder.names() == {cards[0].pk: "Failed", cards[1].pk: "Unusable"}


def test_an_engine_that_goes_away_blames_no_card(tmp_path: Path) -> None:
    """The card that met it first is deferred with all that follow, and the reason is said."""
    cards = add_cards(tmp_path / "cards", [image(text="0"), image(do="lose-engine"), *numbered(10)], checksums=False)
    recorder = Recorder()

    report = recorder.run(cards)

    assert isinstance(dict(recorder.settled)[cards[1].pk], Deferred)
    assert set(report.counts) == {"Stored", "Deferred"}
    last = dict(recorder.settled)[cards[11].pk]
    assert isinstance(last, Deferred)
    assert "OcrUnavailableError" in last.detail
