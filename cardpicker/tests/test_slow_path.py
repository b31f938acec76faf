"""Slow path: what is left becomes a question to a person, and the question goes when it is answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from cardpicker.models import ImageEvidence, ReviewItem, ReviewReason
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.run import run_slow_path_calculator, run_stage_d
from cardpicker.stage_d.slow_path import MAX_SURVIVORS, REVIEW_REASONS, judge_slow_path
from cardpicker.stage_d.suggestions import SuggestedBy, Suggestion
from cardpicker.stage_d.verdicts import Abstained, Routed, SkipReason, Vote
from cardpicker.tests.stage_d_cases import candidate, make_printing, read_card, subject

pytestmark = pytest.mark.django_db


def test_every_skip_reason_has_a_question() -> None:
    """A new reason to abstain cannot be forgotten."""
    assert set(REVIEW_REASONS) == set(SkipReason)


def test_the_first_reason_is_asked_and_the_best_survivors_come_first() -> None:
    """Whom both calculators left is likelier than whom one left."""
    earlier = (
        Abstained(reason=SkipReason.AMBIGUOUS, survivors=(1, 2, 3)),
        Abstained(reason=SkipReason.TOO_LITTLE, survivors=(2,)),
    )

    routed = judge_slow_path(subject(candidate(1, "eve", "6"), number="6", artist="Jeremy Enecio"), earlier)

    assert isinstance(routed, Routed)
    assert routed.reason is ReviewReason.AMBIGUOUS
    assert routed.survivors == (2, 1, 3)
    assert routed.detail == "ambiguous, too-little-evidence; read: number 6, artist Jeremy Enecio"


def test_only_printings_of_one_line_are_asked_about_where_they_are_known() -> None:
    """The line has excluded everything else."""
    earlier = (
        Abstained(reason=SkipReason.SAME_LINE, survivors=(1, 2)),
        Abstained(reason=SkipReason.AMBIGUOUS, survivors=(3, 1, 2)),
    )

    routed = judge_slow_path(subject(), earlier)

    assert isinstance(routed, Routed)
    assert routed.survivors == (1, 2)


def test_survivors_are_bounded_and_fall_back_on_the_name() -> None:
    """A basic land has hundreds of printings; a card without any reading still has its name."""
    lands = tuple(candidate(pk, "lea", str(pk)) for pk in range(1, 500))

    routed = judge_slow_path(subject(*lands), (Abstained(reason=SkipReason.NO_TEXT),))

    assert isinstance(routed, Routed)
    assert routed.survivors == tuple(range(1, MAX_SURVIVORS + 1))


def test_art_removes_only_what_is_clearly_other_art() -> None:
    """Of printings whose line was not read those of the art that is shown are asked about, and those of unknown art."""
    art = 0x0F0F_0F0F_0F0F_0F0F
    printings = (
        candidate(1, "lea", "1", art_hash=~art),
        candidate(2, "leb", "1", art_hash=art),
        candidate(3, "m10", "1"),
        candidate(4, "2ed", "1", art_hash=art ^ 0b111),
    )
    nothing_read = (Abstained(reason=SkipReason.NO_TEXT),)

    def asked(art_hash: int | None) -> tuple[int, ...]:
        routed = judge_slow_path(subject(*printings, art_hash=art_hash), nothing_read)
        assert isinstance(routed, Routed)
        return routed.survivors

    assert asked(art) == (2, 3, 4)
    assert asked(None) == (1, 2, 3, 4)
    assert asked(0x1234_5678_9ABC_DEF1) == (1, 2, 3, 4)


def test_the_most_answerable_question_comes_first() -> None:
    """Fewer printings, then more that was read, then printings that look different; a lost name comes last."""

    def order(*candidates: Candidate, suggestions: tuple[Suggestion, ...] = (), **readings: Any) -> int:
        asked = replace(subject(*candidates, **readings), suggestions=suggestions)
        routed = judge_slow_path(asked, (Abstained(reason=SkipReason.AMBIGUOUS),))
        assert isinstance(routed, Routed)
        return routed.answerability

    one, two, many = (tuple(candidate(pk, "lea", str(pk)) for pk in range(n)) for n in (1, 2, 40))
    unlike = tuple(candidate(pk, "lea", str(pk), art_hash=pk + 1) for pk in range(2))
    likely = (Suggestion(name="Shock", similarity=0.9, by=SuggestedBy.NAME),)
    read: dict[str, Any] = {"number": "1", "set_code": "lea", "artist": "A. Painter", "copyright_year": 1993}

    descending = [
        order(*one, **read),
        order(*one),
        order(*two, **read, truncated=True),
        order(*unlike),
        order(*two),
        order(suggestions=likely),
        order(*many),
        order(),
    ]

    assert descending == sorted(descending, reverse=True)
    assert len(set(descending)) == len(descending)
    assert order(*two, **read) > order(*two)
    assert descending[-1] > 0 and descending[0] <= 1000


def test_questions_are_paged_by_an_index() -> None:
    """The order is stored, and a page of it needs no sort of all questions."""
    for number in range(1, 4):
        make_printing("Forest", "tst", str(number))
    make_printing("Shock", "tst", "9")
    run_stage_d([read_card("Forest").pk, read_card("Shock").pk], run_id="r")

    in_order = ReviewItem.objects.order_by("-answerability", "card")

    assert [item.card.name for item in in_order] == ["Shock", "Forest"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        assert "review_order" in ReviewItem.objects.order_by("-answerability", "card")[:20].explain()


def test_a_machine_s_vote_is_no_question() -> None:
    """The card has its answer to confirm; the slow path takes only what is left."""
    judged = judge_slow_path(subject(), (Vote(printing_id=1, confidence=0.85),))

    assert judged == Abstained(reason=SkipReason.SETTLED_EARLIER)


def test_a_card_of_an_unknown_name_is_asked_about_with_the_line_s_printing() -> None:
    """Card known by nobody, line readable: the line's printing is a suggestion to a person, never a vote."""
    printing = make_printing("Heraldic Banner", "fdn", "254")
    card = read_card("Wappenbanner", line={"number": "254", "set_code": "fdn", "language": "de"})

    run_stage_d([card.pk], run_id="r1")

    item = ReviewItem.objects.get()
    assert (item.card, item.reason, item.survivors, item.run_id) == (
        card,
        ReviewReason.UNKNOWN_NAME,
        [printing.pk],
        "r1",
    )
    assert not card.printing_tags.exists()


def test_an_item_is_rewritten_only_when_it_changes_and_goes_when_a_vote_comes() -> None:
    """Running again is silent; better evidence takes the question away."""
    make_printing("Opt", "xln", "65")
    card = read_card("Opt")
    run_slow_path_calculator([card.pk], "r1")
    first = ReviewItem.objects.get()

    assert run_slow_path_calculator([card.pk], "r2").routed == 1
    again = ReviewItem.objects.get()
    assert (again.run_id, again.updated_at) == ("r1", first.updated_at)

    ImageEvidence.objects.update(readings={"legal_line": {"copyright_year": 2017}})
    run_slow_path_calculator([card.pk], "r3")
    changed = ReviewItem.objects.get()
    assert (changed.pk, changed.run_id) == (first.pk, "r3")
    assert changed.updated_at > first.updated_at

    ImageEvidence.objects.update(readings={"collector_line": {"number": "65", "set_code": "xln", "confidence": 0.9}})
    assert run_slow_path_calculator([card.pk], "r4").routed == 0
    assert not ReviewItem.objects.exists()
