"""Bulk commands: the dry run says what the real run does, a killed run goes on, and nothing is written unasked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cardpicker.models import (
    BulkRun,
    CanonicalCard,
    Card,
    CardPrintingTag,
    ImageEvidence,
    ReviewItem,
    SupersededVote,
    VoteChange,
)
from cardpicker.operations.bulk.jobs import BulkError, Scope
from cardpicker.operations.bulk.judging import CalculateVerdicts, RecomputeConsensus
from cardpicker.operations.bulk.run import run_bulk
from cardpicker.operations.bulk.runs import BulkOptions
from cardpicker.operations.bulk.walk import cards_in_scope, chunks
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.votes import cast_human_vote
from cardpicker.tests.stage_d_cases import make_card, make_printing, make_user, read_card

pytestmark = pytest.mark.django_db

LINE = {"number": "65", "set_code": "xln"}
JOB = CalculateVerdicts(scope=Scope())
WRITING = BulkOptions(writes=True, override_note="a test", chunk_size=2)


@pytest.fixture
def cards() -> list[Card]:
    """Cards that are voted on and cards that are asked about, two of them twins far apart."""
    make_printing("Opt", "xln", "65")
    twin = {"sha256_checksum": "a" * 64}
    return [
        read_card("Opt", line=LINE, **twin),
        read_card("Opt", line=LINE),
        read_card("Opt"),
        read_card("Nonesuch"),
        read_card("Opt", line=LINE),
        read_card("Opt", line=LINE, **twin),
    ]


def run(command: str, *arguments: str) -> str:
    """Run a command and return what it printed."""
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def state() -> list[Any]:
    """Return everything that a bulk command may change, but for times and runs."""
    return [
        list(CardPrintingTag.objects.order_by("card_id", "anonymous_id").values_list("card_id", "printing_id")),
        list(ReviewItem.objects.order_by("card_id").values_list("card_id", "reason", "survivors")),
        list(Card.objects.order_by("pk").values_list("printing_tag_status", "inferred_canonical_card_id")),
        list(ImageEvidence.objects.order_by("pk").values_list("judged_by", "readings")),
    ]


def test_a_dry_run_counts_and_reports_what_the_real_run_does_and_keeps_nothing(
    cards: list[Card], tmp_path: Path
) -> None:
    """Also where a person's vote and a machine's on a twin in another chunk settle a card together."""
    printing = CanonicalCard.objects.get()
    cast_human_vote(cards[0], printing, make_user("ann"))
    CardPrintingTag.objects.create(
        card=cards[5], printing=printing, anonymous_id="another", source="DEDUCTION", confidence=0.6
    )
    before = state()
    dry, wet = tmp_path / "dry.jsonl", tmp_path / "wet.jsonl"
    options = ("--chunk-size", "2")

    shown = run("local_calculate_verdicts", *options, "--diff-report", str(dry))
    assert state() == before
    done = run("local_calculate_verdicts", *options, "--diff-report", str(wet), "--write")

    assert state() != before
    assert shown.splitlines()[:-1] == done.splitlines()[:-1]
    assert "2  settled" in done
    assert dry.read_text() == wet.read_text() != ""
    changes = [json.loads(line) for line in wet.read_text().splitlines()]
    answers = [(each["card"], each["after"]["printing"]) for each in changes if each["what"] == "answer"]
    assert answers == [(cards[0].pk, "xln 65 en"), (cards[5].pk, "xln 65 en")]


def test_a_chunk_never_parts_twins_and_takes_no_card_twice(cards: list[Card]) -> None:
    """A twin comes with the first of its pool that is in scope."""
    ids = [card.pk for card in cards]

    assert [chunk.card_ids for chunk in chunks(cards_in_scope(JOB), after=0, size=2)] == [
        (ids[0], ids[1], ids[5]),
        (ids[2], ids[3]),
        (ids[4],),
    ]
    only = CalculateVerdicts(scope=Scope(card_ids=(ids[4], ids[5])))
    assert [chunk.card_ids for chunk in chunks(cards_in_scope(only), after=0, size=9)] == [(ids[4], ids[5])]


@pytest.mark.usefixtures("cards")
def test_writing_takes_a_dry_run_of_the_same_scope_or_a_note() -> None:
    """Both are on record."""
    with pytest.raises(CommandError, match="No dry run of 'all cards; calculators"):
        run("local_calculate_verdicts", "--write")
    run("local_calculate_verdicts", "--source", "cases")
    with pytest.raises(CommandError, match="No dry run"):
        run("local_calculate_verdicts", "--write")
    run("local_calculate_verdicts", "--source", "cases", "--write")

    run("local_calculate_verdicts", "--write", "--override", "restoring a backup")
    assert BulkRun.objects.get(override_note="restoring a backup").writes


@pytest.mark.usefixtures("cards")
@pytest.mark.parametrize("days", [1, 3])
def test_a_dry_run_vouches_for_two_days(days: int) -> None:
    """What it showed is stale after that."""
    run("purge_machine_votes")
    BulkRun.objects.update(started_at=BulkRun.objects.get().started_at - timedelta(days=days))
    if days == 1:
        run("purge_machine_votes", "--write")
        return
    with pytest.raises(CommandError, match="No dry run"):
        run("purge_machine_votes", "--write")


@pytest.mark.parametrize("writes", [True, False])
def test_a_run_killed_at_any_chunk_goes_on_and_comes_to_the_same_end(cards: list[Card], writes: bool) -> None:
    """Killed before or after each chunk is on record, dry or not."""
    options = BulkOptions(writes=writes, override_note="a test", chunk_size=2)

    class Killed(BaseException):
        pass

    def kill(*args: object) -> None:
        raise Killed

    ids: set[str] = set()
    for kills_before in (True, False, True, False):
        hook: dict[str, Any] = {"on_changes": kill} if kills_before else {"on_progress": kill}
        with pytest.raises(Killed):
            run_bulk(JOB, options, **hook)
        ids.add(BulkRun.objects.get().run_id)
    report = run_bulk(JOB, options)

    assert report.finished and report.cards == len(cards) and ids == {report.run_id}
    assert CardPrintingTag.objects.count() == (4 if writes else 0)
    ended = state()
    run_stage_d(None, run_id="stream")
    assert (state() == ended) is writes


@pytest.mark.usefixtures("cards")
def test_a_limit_stops_with_its_code_and_the_next_run_goes_on() -> None:
    """Unless it is told to begin anew."""
    with pytest.raises(SystemExit) as stopped:
        run("local_calculate_verdicts", "--chunk-size", "2", "--max-chunks", "1")
    assert stopped.value.code == 5
    assert "6 cards, dry run" in run("local_calculate_verdicts", "--chunk-size", "2")
    assert BulkRun.objects.count() == 1

    run("local_calculate_verdicts", "--restart")
    assert BulkRun.objects.count() == 2


@pytest.mark.usefixtures("cards")
def test_two_processes_do_not_take_one_run_further() -> None:
    """The second finds that the record has moved."""

    def interfere(changes: Sequence[object]) -> None:
        BulkRun.objects.update(last_card_id=10**9)

    with pytest.raises(BulkError, match="Another process goes on with"):
        run_bulk(JOB, WRITING, on_changes=interfere)


def test_consensus_is_recomputed_from_the_votes_that_are_there(cards: list[Card]) -> None:
    """Rows that were changed by hand are put right."""
    printing = make_printing("Shock", "m19", "156")
    CardPrintingTag.objects.create(card=cards[1], printing=printing, anonymous_id="user:1", source="ADMIN")
    Card.objects.filter(pk=cards[2].pk).update(printing_tag_status="NO_MATCH")

    report = run_bulk(RecomputeConsensus(scope=Scope()), BulkOptions(writes=True))

    assert report.counts == {"now resolved": 1, "now unresolved": 1}
    assert [card.printing_tag_status for card in Card.objects.order_by("pk")[1:3]] == ["RESOLVED", "UNRESOLVED"]


def test_a_run_is_retracted_with_its_questions_and_people_s_votes_stay(cards: list[Card]) -> None:
    """What it settled comes open; the trail says which command took it back."""
    printing = CanonicalCard.objects.get()
    run_stage_d([cards[0].pk, cards[2].pk], run_id="bad")
    run_stage_d([cards[1].pk], run_id="good")
    cast_human_vote(cards[0], printing, make_user("ann"), run_id="bad")

    run("retract_stage_d_by_run_id", "bad")
    assert CardPrintingTag.objects.count() == 3
    printed = run("retract_stage_d_by_run_id", "bad", "--write", "--rejudge")

    assert sorted(CardPrintingTag.objects.values_list("anonymous_id", flat=True)) == ["stage-d-join-key-v1"] + [
        tag.anonymous_id for tag in CardPrintingTag.objects.filter(source="USER")
    ]
    assert not ReviewItem.objects.exists()
    assert "1  votes_removed" in printed and "1  questions_removed" in printed
    trail = SupersededVote.objects.get()
    assert (trail.run_id, trail.change) == ("bad", VoteChange.RUN_RETRACTED)
    assert trail.changed_by_run_id == BulkRun.objects.get(writes=True).run_id
    assert ImageEvidence.objects.get(card=cards[0]).judged_by == ""


def test_machine_votes_are_purged_by_calculator(cards: list[Card]) -> None:
    """Another's stay; the dry run comes first."""
    run_stage_d(None, run_id="r1")
    CardPrintingTag.objects.create(card=cards[2], is_no_match=True, anonymous_id="another", source="OCR")
    with pytest.raises(CommandError, match="No dry run"):
        run("purge_machine_votes", "--voter", "stage-d-join-key-v1", "--write")

    run("purge_machine_votes", "--voter", "stage-d-join-key-v1")
    run("purge_machine_votes", "--voter", "stage-d-join-key-v1", "--write")

    assert list(CardPrintingTag.objects.values_list("anonymous_id", flat=True)) == ["another"]
    assert set(SupersededVote.objects.values_list("change", flat=True)) == {VoteChange.PURGED}


def test_wrong_use_is_one_clear_line(tmp_path: Path) -> None:
    """A source that is not there, a report that cannot be written."""
    make_card("Opt")
    with pytest.raises(CommandError, match="No source has the key 'elsewhere'"):
        run("consensus_recompute", "--source", "elsewhere")
    with pytest.raises(CommandError, match="cannot be written"):
        run("consensus_recompute", "--diff-report", str(tmp_path / "no" / "report.jsonl"))
