"""Votes: one live vote per card and voter, whoever writes at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection

from cardpicker.models import Card, CardPrintingTag, PrintingTagStatus, VoteSource
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.verdicts import Abstained, CalculatorReport, SkipReason, Verdict, Vote
from cardpicker.stage_d.votes import VoteOutcome, cast_human_vote, retract_vote, write_machine_votes
from cardpicker.tests.stage_d_cases import make_card, make_printing, make_user, read_card

VOTER = "a-calculator"
SILENT = Abstained(reason=SkipReason.NO_TEXT)


def write(verdicts: dict[int, Verdict], run_id: str = "r1") -> CalculatorReport:
    """Write a calculator's verdicts."""
    return write_machine_votes(VOTER, VoteSource.OCR, verdicts, run_id)


@contextmanager
def own_connection() -> Iterator[None]:
    """Close what a thread opened."""
    try:
        yield
    finally:
        connection.close()


@pytest.mark.django_db
def test_a_rerun_replaces_its_own_vote_keeps_an_equal_one_and_withdraws() -> None:
    """One row throughout; only what changed is written."""
    opt, other = make_printing("Opt", "xln", "65"), make_printing("Opt", "dom", "60")
    card = make_card("Opt")
    vote = Vote(printing_id=opt.pk, confidence=0.85, evidence={"basis": "set+number"})

    assert write({card.pk: vote}) == CalculatorReport(votes_written=1)
    first = CardPrintingTag.objects.get()
    assert write({card.pk: vote}, "r2") == CalculatorReport(already_voted=1)
    assert CardPrintingTag.objects.get().run_id == "r1"

    assert write({card.pk: Vote(printing_id=other.pk, confidence=0.85)}, "r3").votes_written == 1
    replaced = CardPrintingTag.objects.get()
    assert (replaced.pk, replaced.printing, replaced.run_id) == (first.pk, other, "r3")
    assert replaced.updated_at > first.updated_at

    assert write({card.pk: Vote(printing_id=None, confidence=0.6)}, "r4").votes_written == 1
    assert CardPrintingTag.objects.get().is_no_match

    assert write({card.pk: SILENT}, "r5") == CalculatorReport(withdrawn=1, abstained={"no-text": 1})
    assert not CardPrintingTag.objects.exists()


@pytest.mark.django_db
def test_a_calculator_touches_no_other_voter_s_votes() -> None:
    """Withdrawing takes back one's own vote only."""
    opt = make_printing("Opt", "xln", "65")
    card = make_card("Opt")
    cast_human_vote(card, opt, make_user("ann"))

    write({card.pk: Vote(printing_id=opt.pk, confidence=0.85)})
    write({card.pk: SILENT})

    assert [tag.source for tag in CardPrintingTag.objects.all()] == [VoteSource.USER]


@pytest.mark.django_db
def test_people_vote_change_their_minds_and_retract() -> None:
    """The card follows each step at once."""
    opt, other = make_printing("Opt", "xln", "65"), make_printing("Opt", "dom", "60")
    card = make_card("Opt")
    ann, bob, admin = make_user("ann"), make_user("bob"), make_user("root", is_superuser=True)

    assert cast_human_vote(card, opt, ann).status == PrintingTagStatus.UNRESOLVED
    assert cast_human_vote(card, opt, ann).outcome is VoteOutcome.ALREADY_VOTED
    settled = cast_human_vote(card, opt, bob)
    assert (settled.status, settled.printing_id) == (PrintingTagStatus.RESOLVED, opt.pk)

    assert cast_human_vote(card, other, bob).status == PrintingTagStatus.UNRESOLVED
    assert CardPrintingTag.objects.count() == 2

    assert cast_human_vote(card, None, admin).status == PrintingTagStatus.NO_MATCH
    taken_back = retract_vote(card, admin)
    assert (taken_back.outcome, taken_back.status) == (VoteOutcome.RETRACTED, PrintingTagStatus.UNRESOLVED)
    assert retract_vote(card, admin).outcome is VoteOutcome.NOTHING_TO_RETRACT


@pytest.mark.django_db
def test_a_vote_on_a_card_that_is_gone_is_an_outcome() -> None:
    """Nothing is written and nothing raised."""
    opt = make_printing("Opt", "xln", "65")
    card = make_card("Opt")
    Card.objects.filter(pk=card.pk).delete()

    assert cast_human_vote(card, opt, make_user("ann")).outcome is VoteOutcome.CARD_GONE
    assert not CardPrintingTag.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_rivals_equal_votes_are_counted_and_never_raise() -> None:
    """Eight voters at once on the same cards in different orders: one vote a card, each write or repeat accounted for."""
    opt = make_printing("Opt", "xln", "65")
    pks = [make_card("Opt").pk for _ in range(20)]

    def rival(seed: int) -> CalculatorReport:
        with own_connection():
            order = random.Random(seed).sample(pks, len(pks))
            return write({pk: Vote(printing_id=opt.pk, confidence=0.85) for pk in order}, f"run-{seed}")

    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(rival, range(8)))

    assert sum(report.votes_written for report in reports) == len(pks)
    assert sum(report.already_voted for report in reports) == 7 * len(pks)
    assert CardPrintingTag.objects.count() == len(pks)


@pytest.mark.django_db(transaction=True)
def test_people_and_machines_at_once_lose_no_vote() -> None:
    """Runs and human votes on overlapping cards in opposite orders: every vote is there and every card agrees."""
    opt = make_printing("Opt", "xln", "65")
    cards = [read_card("Opt", line={"number": "65", "set_code": "xln"}) for _ in range(6)]
    people = [make_user(f"user{number}") for number in range(3)]

    def machine(reverse: bool) -> None:
        with own_connection():
            for start in range(len(cards)):
                ids = [card.pk for card in cards[start:]]
                run_stage_d(ids[::-1] if reverse else ids, run_id=f"{reverse}-{start}")

    def person(number: int) -> None:
        with own_connection():
            for card in cards[:: 1 if number % 2 else -1]:
                cast_human_vote(card, opt, people[number])

    jobs: list[Callable[[], None]] = [lambda: machine(False), lambda: machine(True)]
    jobs += [lambda number=number: person(number) for number in range(3)]  # type: ignore[misc]
    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()

    for card in cards:
        card.refresh_from_db()
        assert (card.printing_tag_status, card.inferred_canonical_card) == (PrintingTagStatus.RESOLVED, opt)
        assert card.printing_tags.filter(source=VoteSource.USER).count() == 3
