"""Byte-identical cards are one image: one pool of votes, one result."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cardpicker.models import CanonicalCard, Card, CardPrintingTag, ImageEvidence, PrintingTagStatus, VoteSource
from cardpicker.stage_d.consensus import recompute_consensus
from cardpicker.stage_d.registry import stage_d_manifest
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.twins import find_twins, lock_pools
from cardpicker.stage_d.votes import VoteOutcome, cast_human_vote, retract_vote
from cardpicker.tests.stage_d_cases import make_card, make_printing, make_user, read_card

pytestmark = pytest.mark.django_db

SHA, OTHER_SHA, MD5, OTHER_MD5 = "a" * 64, "b" * 64, "c" * 32, "d" * 32


@pytest.fixture
def printing() -> CanonicalCard:
    """A printing to vote for."""
    return make_printing("Opt", "xln", "65")


def twin(sha256: str | None = SHA, md5: str | None = MD5, **fields: Any) -> Card:
    """Store a card with these checksums."""
    return make_card("Opt", sha256_checksum=sha256, md5_checksum=md5, **fields)


def pools_of(*cards: Card) -> list[list[int]]:
    """Return the pools of cards, as keys."""
    with transaction.atomic():
        return [[card.id for card in pool.cards] for pool in lock_pools([card.pk for card in cards])]


def status(card: Card) -> tuple[str, int | None]:
    """Return what the card says now."""
    card.refresh_from_db()
    return card.printing_tag_status, card.inferred_canonical_card_id


def test_equal_sha256_makes_twins_and_md5_only_where_one_has_no_other() -> None:
    """An equal MD5 between two different SHA-256 is no equality."""
    both, same = twin(), twin()
    md5_only, sha_only = twin(sha256=None), twin(md5=None)
    other, none, empty = twin(OTHER_SHA, OTHER_MD5), twin(None, None), twin("", "")

    expected = [both.pk, same.pk, md5_only.pk, sha_only.pk]
    for card in (both, same, md5_only, sha_only):
        assert pools_of(card) == [expected]
    assert pools_of(other, none, empty) == [[other.pk], [none.pk], [empty.pk]]


def test_a_forged_md5_joins_one_pool_at_most() -> None:
    """Of two files with one MD5 and different SHA-256, a third without SHA-256 is one, always the same."""
    first, second, md5_only = twin(SHA), twin(OTHER_SHA), twin(None)

    assert pools_of(md5_only) == pools_of(first) == [[first.pk, md5_only.pk]]
    assert pools_of(second) == [[second.pk]]


def test_equal_art_is_no_equality(printing: CanonicalCard) -> None:
    """The same art is printed many times; only bytes tell."""
    left, right = read_card("Opt"), read_card("Opt")
    ImageEvidence.objects.update(art_hash=7, image_sha256="e" * 64)
    cast_human_vote(left, printing, make_user("root", is_superuser=True))

    assert status(left)[0] == PrintingTagStatus.RESOLVED
    assert status(right)[0] == PrintingTagStatus.UNRESOLVED


def test_two_people_on_two_twins_settle_both(printing: CanonicalCard) -> None:
    """A third twin that nobody has looked at, even one that left its source, gets the answer too."""
    left, right, unseen = twin(), twin(), twin(removed_at=timezone.now())
    cast_human_vote(left, printing, make_user("ann"))
    result = cast_human_vote(right, printing, make_user("bob"))

    assert (result.outcome, result.status) == (VoteOutcome.WRITTEN, PrintingTagStatus.RESOLVED)
    assert {status(card) for card in (left, right, unseen)} == {(PrintingTagStatus.RESOLVED, printing.pk)}


def test_one_voter_counts_once_with_the_latest_vote(printing: CanonicalCard) -> None:
    """Voting on each twin makes nobody heavier, and changing one's mind on one twin changes it for the image."""
    other = make_printing("Opt", "dom", "60")
    left, right = twin(), twin()
    ann, bob = make_user("ann"), make_user("bob")
    cast_human_vote(left, printing, ann)
    assert cast_human_vote(right, printing, ann).status == PrintingTagStatus.UNRESOLVED

    cast_human_vote(left, other, bob)
    assert cast_human_vote(right, other, ann).status == PrintingTagStatus.RESOLVED
    assert status(left) == (PrintingTagStatus.RESOLVED, other.pk)


def test_a_retraction_takes_a_person_s_votes_from_the_whole_image(printing: CanonicalCard) -> None:
    """Otherwise the vote on a twin would go on counting unseen."""
    left, right = twin(), twin()
    root = make_user("root", is_superuser=True)
    cast_human_vote(left, printing, root)
    cast_human_vote(right, printing, root)

    assert retract_vote(right, root).outcome is VoteOutcome.RETRACTED
    assert not CardPrintingTag.objects.exists()
    assert status(left)[0] == PrintingTagStatus.UNRESOLVED


def test_a_vote_on_an_image_that_was_replaced_is_not_heard(printing: CanonicalCard) -> None:
    """The card comes open again; the vote is heard again when the image comes back."""
    card = make_card("Opt", image_version="first")
    cast_human_vote(card, printing, make_user("root", is_superuser=True))
    Card.objects.filter(pk=card.pk).update(image_version="second")
    recompute_consensus([card.pk])
    assert status(card)[0] == PrintingTagStatus.UNRESOLVED

    Card.objects.filter(pk=card.pk).update(image_version="first")
    recompute_consensus([card.pk])
    assert status(card) == (PrintingTagStatus.RESOLVED, printing.pk)


def test_a_card_whose_image_was_replaced_is_judged_anew_in_the_same_run(printing: CanonicalCard) -> None:
    """It does not wait until somebody notices that it is open."""
    card = read_card("Opt", line={"number": "65", "set_code": "xln"})
    cast_human_vote(card, None, make_user("root", is_superuser=True))
    Card.objects.filter(pk=card.pk).update(image_version="second")
    ImageEvidence.objects.update(image_version="second")

    report = run_stage_d([card.pk], run_id="r1")

    assert (report.judged, status(card)[0]) == (1, PrintingTagStatus.UNRESOLVED)
    assert CardPrintingTag.objects.get(source=VoteSource.OCR).printing == printing
    assert ImageEvidence.objects.get().judged_by == stage_d_manifest()


def test_a_new_twin_gets_the_answer_when_it_is_judged(printing: CanonicalCard) -> None:
    """A file that comes in again under another name asks nobody."""
    cast_human_vote(twin(), printing, make_user("root", is_superuser=True))
    late = read_card("Opt", sha256_checksum=SHA)

    assert run_stage_d([late.pk], run_id="r1").resolved == 1
    assert status(late) == (PrintingTagStatus.RESOLVED, printing.pk)


def test_a_person_and_machines_on_different_twins_add_up(printing: CanonicalCard) -> None:
    """Each machine counts once, however many twins it has judged."""
    line = {"number": "65", "set_code": "xln"}
    cards = [read_card("Opt", line=line, sha256_checksum=SHA) for _ in range(4)]
    run_stage_d([card.pk for card in cards], run_id="r1")
    assert cast_human_vote(cards[0], printing, make_user("ann")).status == PrintingTagStatus.UNRESOLVED

    CardPrintingTag.objects.create(
        card=cards[3], printing=printing, anonymous_id="another-machine", source=VoteSource.DEDUCTION, confidence=0.6
    )
    recompute_consensus([cards[1].pk])
    assert {status(card)[0] for card in cards} == {PrintingTagStatus.RESOLVED}


def test_finding_twins_takes_one_query_where_checksums_are_whole() -> None:
    """Two at most, whatever the number of cards."""
    cards = [twin() for _ in range(3)]
    with CaptureQueriesContext(connection) as whole:
        assert find_twins([cards[0].pk]) == {card.pk for card in cards}
    twin(sha256=None)
    with CaptureQueriesContext(connection) as partial:
        assert len(find_twins([card.pk for card in cards])) == 4

    assert (len(whole), len(partial)) == (1, 2)
