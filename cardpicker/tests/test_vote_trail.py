"""The trail of votes: whatever ends a vote, what it was is kept, in the same transaction."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.urls import reverse

from cardpicker.models import CardPrintingTag, SupersededVote, VoteChange, VoteSource
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Vote
from cardpicker.stage_d.votes import cast_human_vote, retract_vote, write_machine_votes
from cardpicker.tests.admin_rows import superuser_client
from cardpicker.tests.stage_d_cases import make_card, make_printing, make_user

pytestmark = pytest.mark.django_db


def trail() -> list[tuple[object, ...]]:
    """Return the trail's rows in the order in which they were written."""
    columns = ("card_id", "printing_id", "anonymous_id", "run_id", "change", "changed_by_run_id")
    return list(SupersededVote.objects.order_by("pk").values_list(*columns))


def test_a_calculator_s_replaced_and_withdrawn_votes_are_kept_with_both_runs() -> None:
    """Only what changes leaves a row; an equal re-vote leaves none."""
    opt, other = make_printing("Opt", "xln", "65"), make_printing("Opt", "dom", "60")
    card, same = make_card("Opt"), make_card("Opt")
    vote = Vote(printing_id=opt.pk, confidence=0.85, evidence={"basis": "number"})
    write_machine_votes("machine", VoteSource.OCR, {card.pk: vote, same.pk: vote}, "r1")

    moved = Vote(printing_id=other.pk, confidence=0.75)
    write_machine_votes("machine", VoteSource.OCR, {card.pk: moved, same.pk: vote}, "r2")
    write_machine_votes("machine", VoteSource.OCR, {card.pk: Abstained(reason=SkipReason.NO_TEXT)}, "r3")

    assert trail() == [
        (card.pk, opt.pk, "machine", "r1", VoteChange.REPLACED, "r2"),
        (card.pk, other.pk, "machine", "r2", VoteChange.WITHDRAWN, "r3"),
    ]
    kept = SupersededVote.objects.order_by("pk")[0]
    assert (kept.confidence, kept.evidence, kept.source) == (0.85, {"basis": "number"}, VoteSource.OCR)
    assert kept.image_version == card.image_version


def test_a_person_s_change_of_mind_and_retraction_are_kept() -> None:
    """Also that it was a person who took it back."""
    opt = make_printing("Opt", "xln", "65")
    card, ann = make_card("Opt"), make_user("ann")
    cast_human_vote(card, opt, ann)
    cast_human_vote(card, None, ann)
    retract_vote(card, ann)

    voter = f"user:{ann.pk}"
    assert trail() == [
        (card.pk, opt.pk, voter, "", VoteChange.REPLACED, ""),
        (card.pk, None, voter, "", VoteChange.RETRACTED, ""),
    ]
    assert SupersededVote.objects.order_by("pk")[1].is_no_match


def test_votes_deleted_by_other_means_are_kept_and_outlive_their_card() -> None:
    """A deletion in a shell or by a cascade is no way around the trail."""
    opt = make_printing("Opt", "xln", "65")
    card = make_card("Opt")
    card_id = card.pk
    CardPrintingTag.objects.create(card=card, printing=opt, anonymous_id="a", source=VoteSource.OCR)
    CardPrintingTag.objects.create(card=card, printing=opt, anonymous_id="b", source=VoteSource.OCR)
    CardPrintingTag.objects.filter(anonymous_id="a").delete()
    card.delete()

    assert trail() == [
        (card_id, opt.pk, "a", "", VoteChange.DELETED, ""),
        (card_id, opt.pk, "b", "", VoteChange.DELETED, ""),
    ]


def test_a_change_that_is_rolled_back_leaves_no_trail() -> None:
    """Vote and trail are one transaction."""
    opt = make_printing("Opt", "xln", "65")
    card = make_card("Opt")
    CardPrintingTag.objects.create(card=card, printing=opt, anonymous_id="a", source=VoteSource.OCR)
    with transaction.atomic():
        CardPrintingTag.objects.all().delete()
        assert SupersededVote.objects.count() == 1
        transaction.set_rollback(True)

    assert trail() == []
    assert CardPrintingTag.objects.count() == 1


def test_only_a_changed_opinion_counts_as_a_change() -> None:
    """A vote that only gets a new time stamp is still the same vote."""
    opt = make_printing("Opt", "xln", "65")
    vote = CardPrintingTag.objects.create(
        card=make_card("Opt"), printing=opt, anonymous_id="a", source=VoteSource.OCR, confidence=0.5
    )
    vote.save()
    assert trail() == []

    vote.confidence = 0.6
    vote.save()
    assert [row[4] for row in trail()] == [VoteChange.REPLACED]


def test_the_trail_is_searched_by_card_voter_and_run() -> None:
    """As its links do; a word that is no number finds no card and breaks nothing."""
    opt = make_printing("Opt", "xln", "65")
    card = make_card("Opt")
    vote = Vote(printing_id=opt.pk, confidence=0.85)
    write_machine_votes("machine", VoteSource.OCR, {card.pk: vote}, "r1")
    write_machine_votes("machine", VoteSource.OCR, {card.pk: Abstained(reason=SkipReason.NO_TEXT)}, "r2")
    browser, address = superuser_client(), reverse("admin:cardpicker_supersededvote_changelist")

    def found(text: str) -> int:
        return int(browser.get(address, {"q": text}).context["cl"].result_count)

    assert [found(text) for text in (str(card.pk), "machine", "r1", "r2", "elsewhere")] == [1, 1, 1, 1, 0]
