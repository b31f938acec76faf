"""Stage D as a whole: evidence in, votes, questions and marks out, in a fixed number of queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cardpicker.models import (
    Card,
    CardPrintingTag,
    CardType,
    CardWork,
    ImageEvidence,
    PrintingTagStatus,
    ReviewItem,
    VoteSource,
)
from cardpicker.stage_d.registry import CALCULATORS, stage_d_manifest
from cardpicker.stage_d.run import (
    run_fallback_calculator,
    run_join_key_calculator,
    run_slow_path_calculator,
    run_stage_d,
)
from cardpicker.stage_d.verdicts import CalculatorReport
from cardpicker.stage_d.votes import cast_human_vote
from cardpicker.tests.stage_d_cases import make_printing, make_user, read_card

pytestmark = pytest.mark.django_db

LINE = {"number": "65", "set_code": "xln"}


def test_evidence_becomes_a_vote_a_question_and_a_mark() -> None:
    """One card is voted on, one is asked about, both count as judged."""
    opt = make_printing("Opt", "xln", "65")
    clear, blank = read_card("Opt", line=LINE), read_card("Opt")

    report = run_stage_d([clear.pk, blank.pk], run_id="r1")

    vote = CardPrintingTag.objects.get()
    assert (vote.card, vote.printing, vote.anonymous_id) == (clear, opt, "stage-d-join-key-v1")
    assert (vote.source, vote.confidence, vote.run_id) == (VoteSource.OCR, 0.85, "r1")
    assert ReviewItem.objects.get().card == blank
    assert list(report.calculators) == [calculator.name for calculator in CALCULATORS]
    assert report.calculators["stage-d-join-key-v1"] == CalculatorReport(votes_written=1, abstained={"no-text": 1})
    assert (report.judged, report.routed_to_review, report.resolved) == (2, 1, 0)
    assert set(ImageEvidence.objects.values_list("judged_by", flat=True)) == {stage_d_manifest()}


def test_the_fallback_deduces_what_the_line_leaves_open() -> None:
    """Its vote is a deduction, and goes when join-key can vote itself."""
    eve = make_printing("Flickerwisp", "eve", "6", artist="Jeremy Enecio", released_at="2008-07-25")
    make_printing("Flickerwisp", "mm3", "6", artist="Jeremy Enecio", released_at="2017-03-17")
    card = read_card(
        "Flickerwisp",
        readings={"collector_line": {"number": "6", "confidence": 0.9}, "legal_line": {"copyright_year": 2008}},
    )

    run_stage_d([card.pk], run_id="r1")
    vote = CardPrintingTag.objects.get()
    assert (vote.printing, vote.source, vote.anonymous_id) == (eve, VoteSource.DEDUCTION, "stage-d-fallback-v1")

    ImageEvidence.objects.update(readings={"collector_line": {"number": "6", "set_code": "eve", "confidence": 0.9}})
    report = run_stage_d([card.pk], run_id="r2")
    assert [vote.anonymous_id for vote in CardPrintingTag.objects.all()] == ["stage-d-join-key-v1"]
    assert report.calculators["stage-d-fallback-v1"].withdrawn == 1


def test_a_vote_that_completes_a_person_s_settles_the_card() -> None:
    """One user with two agreeing machines is not reached by one machine; two users are, whatever machines say."""
    opt = make_printing("Opt", "xln", "65")
    card = read_card("Opt", line=LINE)
    cast_human_vote(card, opt, make_user("ann"))
    assert run_stage_d([card.pk], run_id="r1").resolved == 0

    CardPrintingTag.objects.create(
        card=card, printing=opt, anonymous_id="another-machine", source=VoteSource.DEDUCTION, confidence=0.6
    )
    assert run_stage_d([card.pk], run_id="r2").resolved == 1
    card.refresh_from_db()
    assert (card.printing_tag_status, card.inferred_canonical_card) == (PrintingTagStatus.RESOLVED, opt)


def test_running_again_changes_nothing_and_makes_no_work() -> None:
    """The second run finds its own votes; the pipeline hears no echo."""
    make_printing("Opt", "xln", "65")
    card = read_card("Opt", line=LINE)
    CardWork.objects.update(due_at=None)
    run_stage_d([card.pk], run_id="r1")

    report = run_stage_d([card.pk, card.pk, card.pk + 1000], run_id="r2")

    assert report.calculators["stage-d-join-key-v1"] == CalculatorReport(already_voted=1)
    assert CardPrintingTag.objects.get().run_id == "r1"
    assert CardWork.objects.get().due_at is None


@pytest.mark.parametrize(
    "fields",
    [
        {"card_type": CardType.TOKEN},
        {"dpi": 199},
        {"removed_at": timezone.now()},
        {"printing_tag_status": PrintingTagStatus.NO_MATCH},
        {"image_version": "another"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_cards_that_may_not_be_judged_are_left_alone(fields: dict[str, Any]) -> None:
    """Another type, a low resolution, gone, settled, or evidence of another image."""
    make_printing("Opt", "xln", "65")
    card = read_card("Opt", line=LINE)
    Card.objects.filter(pk=card.pk).update(**fields)
    if "printing_tag_status" in fields:
        cast_human_vote(card, None, make_user("root", is_superuser=True))

    assert run_stage_d(None, run_id="r1").judged == 0
    assert run_stage_d([card.pk], run_id="r1").judged == 0
    assert not CardPrintingTag.objects.exclude(source=VoteSource.ADMIN).exists()


def test_evidence_of_another_image_is_not_marked_as_judged() -> None:
    """An ineligible card with fresh evidence is; it would be due for ever otherwise."""
    token = read_card("Opt", card_type=CardType.TOKEN)
    stale = read_card("Opt")
    Card.objects.filter(pk=stale.pk).update(image_version="another")

    run_stage_d([token.pk, stale.pk], run_id="r1")

    assert ImageEvidence.objects.get(card=token).judged_by == stage_d_manifest()
    assert ImageEvidence.objects.get(card=stale).judged_by == ""


def test_each_calculator_runs_alone_over_the_whole_catalogue() -> None:
    """Only its own votes or items are written; what the others would say is still respected."""
    make_printing("Opt", "xln", "65")
    make_printing("Shock", "m19", "156", artist="Jason Rainville")
    read_card("Opt", line=LINE)
    read_card("Shock", line={"artist_in_row": "Jason Rainville", "set_code": "m19"})
    read_card("Shock")

    fallback = run_fallback_calculator(run_id="r1")
    assert (fallback.votes_written, fallback.abstained["settled-earlier"]) == (1, 1)
    assert run_join_key_calculator(run_id="r1").votes_written == 1
    assert run_slow_path_calculator(run_id="r1").routed == 1
    assert sorted(CardPrintingTag.objects.values_list("anonymous_id", flat=True)) == [
        "stage-d-fallback-v1",
        "stage-d-join-key-v1",
    ]


@pytest.mark.parametrize(
    ("card_name", "number", "expected"),
    [
        ("Delver of Secrets // Insectile Aberration", "51", True),
        ("Delver of Secrets", "51", True),
        ("Insectile Aberration", "51", True),
        ("insectile aberration (2)", "51", True),
        ("Delver", "51", False),
    ],
)
def test_a_printing_is_found_by_either_face(card_name: str, number: str, expected: bool) -> None:
    """Front, back and both name one printing."""
    make_printing("Delver of Secrets // Insectile Aberration", "isd", "51")
    card = read_card(card_name, line={"number": number, "set_code": "isd"})

    run_stage_d([card.pk], run_id="r1")

    assert CardPrintingTag.objects.exists() is expected


def test_the_number_of_queries_does_not_grow_with_the_batch() -> None:
    """Two dozen cards of every fate cost as many queries as three."""
    make_printing("Opt", "xln", "65")
    make_printing("Heraldic Banner", "fdn", "254")

    def batch(size: int) -> list[int]:
        kinds: list[dict[str, Any]] = [
            {"name": "Opt", "line": LINE},
            {"name": "Opt"},
            {"name": "Wappenbanner", "line": {"number": "254", "set_code": "fdn"}},
        ]
        return [read_card(**kind).pk for kind in kinds for _ in range(size)]

    run_stage_d(batch(1), run_id="r0")  # The names of the catalog are loaded once a process.
    small, large = batch(1), batch(8)
    with CaptureQueriesContext(connection) as few:
        run_stage_d(small, run_id="r1")
    with CaptureQueriesContext(connection) as many:
        run_stage_d(large, run_id="r2")

    assert len(few) == len(many)
