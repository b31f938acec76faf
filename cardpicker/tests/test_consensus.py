"""Consensus: the table of votes and results, and that the cards follow it."""

from __future__ import annotations

import itertools

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cardpicker.models import CardPrintingTag, CardWork, ImageEvidence, PrintingTagStatus, ReviewItem, VoteSource
from cardpicker.stage_d.consensus import Ballot, Decision, decide, recompute_consensus
from cardpicker.tests.stage_d_cases import make_card, make_printing, read_card

A, B, C = 1, 2, 3
USER, ADMIN, OCR, DEDUCTION = VoteSource.USER, VoteSource.ADMIN, VoteSource.OCR, VoteSource.DEDUCTION


def votes(*groups: tuple[int, VoteSource, int | None]) -> list[Ballot]:
    """Return ballots from (how many, whose, for what)."""
    return [Ballot(outcome, source) for count, source, outcome in groups for _ in range(count)]


TABLE = [
    ("no vote", votes(), None),
    ("1 user", votes((1, USER, A)), None),
    ("2 users agree", votes((2, USER, A)), A),
    ("3 users agree", votes((3, USER, A)), A),
    ("1 admin", votes((1, ADMIN, A)), A),
    ("1 admin v 1 user", votes((1, ADMIN, A), (1, USER, B)), A),
    ("1 admin v 3 users", votes((1, ADMIN, A), (3, USER, B)), A),
    ("1 admin v 4 users", votes((1, ADMIN, A), (4, USER, B)), None),
    ("1 user v 1 user", votes((1, USER, A), (1, USER, B)), None),
    ("2 v 2", votes((2, USER, A), (2, USER, B)), None),
    ("2 v 1", votes((2, USER, A), (1, USER, B)), A),
    ("3 v 2, exactly 0.60", votes((3, USER, A), (2, USER, B)), A),
    ("2 v 1 v 1", votes((2, USER, A), (1, USER, B), (1, USER, C)), None),
    ("2 machines", votes((2, OCR, A)), None),
    ("100 machines", votes((50, OCR, A), (50, DEDUCTION, A)), None),
    ("1 user + 4 agreeing machines", votes((1, USER, A), (4, OCR, A)), A),
    ("1 user + 2 agreeing machines", votes((1, USER, A), (1, OCR, A), (1, DEDUCTION, A)), A),
    ("1 user + 1 machine", votes((1, USER, A), (1, OCR, A)), None),
    ("1 user v 4 machines", votes((1, USER, A), (4, OCR, B)), None),
    ("1 user + 4 machines v 1 user", votes((1, USER, A), (4, OCR, A), (1, USER, B)), None),
    ("2 users v 100 machines", votes((2, USER, A), (100, OCR, B)), A),
]


@pytest.mark.parametrize(("ballots", "winner"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_votes_come_to_the_table_s_result_in_any_order(ballots: list[Ballot], winner: int | None) -> None:
    """Every row of the table, forwards and backwards."""
    expected = Decision(PrintingTagStatus.RESOLVED, winner) if winner else Decision(PrintingTagStatus.UNRESOLVED)

    assert decide(ballots) == expected
    assert decide(reversed(ballots)) == expected


def test_no_such_printing_is_an_ordinary_outcome() -> None:
    """It wins, loses and ties as a printing does."""
    assert decide(votes((2, USER, None))) == Decision(PrintingTagStatus.NO_MATCH)
    assert decide(votes((2, USER, None), (2, USER, A))).status == PrintingTagStatus.UNRESOLVED
    assert decide(votes((1, ADMIN, A), (3, USER, None))) == Decision(PrintingTagStatus.RESOLVED, A)


def test_machines_alone_never_resolve() -> None:
    """However many machines of however many kinds agree."""
    for ocr, deduction, rival in itertools.product((0, 1, 5), (0, 1, 5), (0, 1)):
        ballots = votes((ocr, OCR, A), (deduction, DEDUCTION, A), (rival, OCR, None))
        assert decide(ballots).status == PrintingTagStatus.UNRESOLVED


def test_machine_weight_is_capped_per_outcome() -> None:
    """A hundred machines against a person and two machines weigh as much as two."""
    assert decide(votes((1, USER, A), (2, OCR, A), (100, OCR, B))) == Decision(PrintingTagStatus.RESOLVED, A)
    assert decide(votes((1, USER, A), (2, OCR, A), (2, OCR, B), (2, OCR, C))).status == PrintingTagStatus.UNRESOLVED


def test_machines_are_not_heard_where_people_settle_the_card_alone() -> None:
    """Their weight on other outcomes does not dilute the people's share."""
    assert decide(votes((2, USER, A), (9, OCR, B), (9, DEDUCTION, C))) == Decision(PrintingTagStatus.RESOLVED, A)


@pytest.mark.django_db
def test_cards_follow_their_votes_in_few_queries() -> None:
    """Each card gets its own result; the number of queries does not grow with the cards."""
    printing = make_printing("Opt", "xln", "65")

    def vote(count: int, printing_or_none: object) -> int:
        card = make_card("Opt")
        CardPrintingTag.objects.bulk_create(
            CardPrintingTag(
                card=card,
                printing=printing if printing_or_none else None,
                is_no_match=not printing_or_none,
                anonymous_id=f"user:{number}",
                source=USER,
            )
            for number in range(count)
        )
        return card.pk

    batches = [[vote(2, printing), vote(2, None), vote(1, printing)] for _ in range(2)]
    with CaptureQueriesContext(
        connection,
    ) as few:
        small = recompute_consensus(batches[0])
    more = [vote(2, printing) for _ in range(10)]
    with CaptureQueriesContext(connection) as many:
        recompute_consensus([*batches[1], *more])

    assert [small[pk] for pk in batches[0][:2]] == [
        Decision(PrintingTagStatus.RESOLVED, printing.pk),
        Decision(PrintingTagStatus.NO_MATCH),
    ]
    assert batches[0][2] not in small
    assert len(few) == len(many)


@pytest.mark.django_db
def test_a_settled_card_asks_nobody_and_a_reopened_one_is_due_for_judgement() -> None:
    """Its review item goes when it is settled; when the votes go, its evidence counts as unjudged."""
    printing = make_printing("Opt", "xln", "65")
    card = read_card("Opt")
    ReviewItem.objects.create(card=card, reason="NO_TEXT")
    ImageEvidence.objects.update(judged_by="rules")
    CardPrintingTag.objects.create(card=card, printing=printing, anonymous_id="user:1", source=ADMIN)

    recompute_consensus([card.pk])
    card.refresh_from_db()
    assert (card.printing_tag_status, card.inferred_canonical_card) == (PrintingTagStatus.RESOLVED, printing)
    assert not ReviewItem.objects.exists()
    assert ImageEvidence.objects.get().judged_by == "rules"

    CardPrintingTag.objects.all().delete()
    recompute_consensus([card.pk])
    card.refresh_from_db()
    assert (card.printing_tag_status, card.inferred_canonical_card) == (PrintingTagStatus.UNRESOLVED, None)
    assert ImageEvidence.objects.get().judged_by == ""


@pytest.mark.django_db
def test_settling_a_card_makes_no_work() -> None:
    """The pipeline does not hear its own echo."""
    printing = make_printing("Opt", "xln", "65")
    card = make_card("Opt")
    CardWork.objects.update(due_at=None)
    CardPrintingTag.objects.create(card=card, printing=printing, anonymous_id="user:1", source=ADMIN)

    assert recompute_consensus([card.pk])
    assert CardWork.objects.get().due_at is None
    assert recompute_consensus([card.pk]) == {}
