"""Evidence from one card to another of equal bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cardpicker.models import Card, ImageEvidence, Source
from cardpicker.stage_c.outcomes import CardGone, CardOutcome, Deferred, LeaseLostError, Transferred
from cardpicker.stage_c.transfer import Checksums, checksums_of, find_donors, transfer_evidence
from cardpicker.tests.stage_c_jobs import image
from cardpicker.tests.stage_c_rig import Recorder, add_cards

pytestmark = pytest.mark.django_db


def nothing(card_id: int, outcome: CardOutcome) -> None:
    """Settle nothing."""


def transfer(card: Card, donor: Card) -> CardOutcome | None:
    return transfer_evidence(
        card.pk, card.image_version, checksums_of(card), donor.pk, run_id="second-run", settle=nothing
    )


@pytest.fixture
def twins(tmp_path: Path) -> list[Card]:
    """Two cards of equal bytes in different sources, the first of them read."""
    [first] = add_cards(tmp_path / "a", [image(text="mkm")], key="a")
    [second] = add_cards(tmp_path / "b", [image(text="mkm")], key="b")
    Recorder().run([first])
    return [first, second]


def test_a_twin_of_a_read_card_is_copied_without_a_fetch(twins: list[Card]) -> None:
    """Sources do not matter; the copy names the card it is from and is to be judged anew."""
    ImageEvidence.objects.update(judged_by="calculators")
    recorder = Recorder()

    report = recorder.run([twins[1]])

    copy = ImageEvidence.objects.get(card=twins[1])
    assert report.counts == {"Transferred": 1}
    assert recorder.settled == [(twins[1].pk, Transferred(from_card_id=twins[0].pk))]
    assert recorder.fetches == []
    assert (copy.set_code, copy.transferred_from, copy.judged_by) == ("mkm", twins[0], "")
    assert copy.image_version == twins[1].image_version


@pytest.mark.parametrize("stale", [{"manifest": "older"}, {"image_version": "older"}])
def test_stale_evidence_is_never_copied(twins: list[Card], stale: dict[str, str]) -> None:
    """A twin of a stale card is read itself."""
    ImageEvidence.objects.update(**stale)

    assert find_donors([checksums_of(twins[1])]) == {}
    assert transfer(twins[1], twins[0]) is None
    assert Recorder().run([twins[1]]).counts == {"Stored": 1}


def test_evidence_that_went_stale_since_it_was_found_is_not_copied(twins: list[Card]) -> None:
    """Currency and equality are asked again where the copy is made."""
    Card.objects.filter(pk=twins[0].pk).update(sha256_checksum="0" * 64)

    assert transfer(twins[1], twins[0]) is None
    assert not ImageEvidence.objects.filter(card=twins[1]).exists()


def test_md5_makes_twins_only_where_sha256_is_unknown(twins: list[Card]) -> None:
    """Equal MD5 with different SHA-256 is two files."""
    wanted = checksums_of(twins[1])

    assert find_donors([Checksums(md5=wanted.md5)]) == {Checksums(md5=wanted.md5): twins[0].pk}
    assert find_donors([Checksums(sha256="1" * 64, md5=wanted.md5)]) == {}
    assert find_donors([Checksums()]) == {}


def test_a_removed_card_still_lends_its_evidence(twins: list[Card]) -> None:
    """Equal bytes are equal, whoever lists them."""
    Card.objects.filter(pk=twins[0].pk).update(removed_at="2020-01-01T00:00:00Z")

    assert transfer(twins[1], twins[0]) == Transferred(from_card_id=twins[0].pk)


def test_a_transfer_obeys_the_card_and_the_lease(twins: list[Card]) -> None:
    """A replaced image is gone, a lost lease takes the copy back."""

    def lose(card_id: int, outcome: CardOutcome) -> None:
        raise LeaseLostError("claimed by another")

    wanted = checksums_of(twins[1])
    lost = transfer_evidence(twins[1].pk, twins[1].image_version, wanted, twins[0].pk, run_id="r", settle=lose)
    gone = transfer_evidence(twins[1].pk, "older", wanted, twins[0].pk, run_id="r", settle=nothing)

    assert isinstance(lost, Deferred)
    assert isinstance(gone, CardGone)
    assert not ImageEvidence.objects.filter(card=twins[1]).exists()


def test_equal_files_of_a_batch_are_read_once(tmp_path: Path) -> None:
    """One representative is fetched, and its twins follow it, each settled after it."""
    bodies = [image(text="a"), image(text="b"), image(text="a"), image(text="a")]
    cards = add_cards(tmp_path / "cards", bodies)
    recorder = Recorder()

    report = recorder.run(cards)

    assert report.counts == {"Stored": 2, "Transferred": 2}
    assert report.fetched == 2
    order = [card_id for card_id, _ in recorder.settled]
    assert order == [cards[0].pk, cards[2].pk, cards[3].pk, cards[1].pk]


def test_equal_bad_bytes_are_tried_once(tmp_path: Path) -> None:
    """What cannot be read in one copy cannot be read in the others."""
    cards = add_cards(tmp_path / "cards", [image(do="unusable")] * 3 + [image(do="crash")] * 3 + [image(text="good")])
    recorder = Recorder()

    report = recorder.run(cards)

    assert report.counts == {"Unusable": 3, "Crashed": 3, "Stored": 1}
    assert report.fetched == 3


def test_a_representative_that_vanished_hands_over(tmp_path: Path) -> None:
    """The next copy is fetched itself, the rest follow that one."""
    cards = add_cards(tmp_path / "cards", [image(text="a")] * 4)
    (tmp_path / "cards" / cards[0].identifier).unlink()
    recorder = Recorder()

    report = recorder.run(cards)

    assert report.counts == {"Gone": 1, "Stored": 1, "Transferred": 2}


def test_donors_cost_two_queries_however_many_are_asked_for(tmp_path: Path) -> None:
    """A batch is looked up at once, also among many copies."""
    bodies = [image(text=str(number % 7)) for number in range(40)]
    cards = add_cards(tmp_path / "cards", bodies)
    Recorder().run(cards)

    with CaptureQueriesContext(connection) as captured:
        donors = find_donors(checksums_of(card) for card in cards)

    assert len(captured) == 2
    assert len(donors) == 7
    assert Source.objects.count() == 1
