"""Stage D among rivals: what it locks, in which order, and that it reads only what it has locked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from cardpicker.models import CanonicalCard, Card, CardPrintingTag, ImageEvidence, PrintingTagStatus, VoteSource
from cardpicker.stage_d.consensus import recompute_consensus
from cardpicker.stage_d.locking import ATTEMPTS, lock_cards, retrying_deadlocks
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.verdicts import Vote
from cardpicker.stage_d.votes import cast_human_vote, write_machine_votes
from cardpicker.tests.stage_d_cases import make_card, make_printing, make_user, read_card

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_S = 30.0


@pytest.fixture
def printing() -> CanonicalCard:
    """A printing to vote for."""
    return make_printing("Opt", "xln", "65")


@pytest.fixture
def rival() -> Iterator[ThreadPoolExecutor]:
    """A thread with a database session of its own."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(_close_session).result()


def _close_session() -> None:
    connection.close()  # Looked up in the calling thread: each has its own.


@contextmanager
def rival_waiting(rival: ThreadPoolExecutor, work: Callable[[], object]) -> Iterator[Future[object]]:
    """Start ``work`` in another session while this one holds its locks, and go on once it waits for them."""
    started = rival.submit(work)
    deadline = time.monotonic() + PATIENCE_S
    while not _somebody_waits():
        assert not started.done(), "the rival did not wait"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield started


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


def test_consensus_counts_the_votes_of_whoever_had_the_card_before(
    printing: CanonicalCard, rival: ThreadPoolExecutor
) -> None:
    """It waits for the card, then reads the votes: none is missed."""
    card = make_card("Opt")
    CardPrintingTag.objects.create(card=card, printing=printing, anonymous_id="user:1", source=VoteSource.USER)
    with transaction.atomic():
        lock_cards([card.pk])
        CardPrintingTag.objects.create(card=card, printing=printing, anonymous_id="user:2", source=VoteSource.USER)
        with rival_waiting(rival, lambda: recompute_consensus([card.pk])) as recomputed:
            pass

    recomputed.result(PATIENCE_S)
    card.refresh_from_db()
    assert card.printing_tag_status == PrintingTagStatus.RESOLVED


def test_a_run_judges_the_evidence_that_a_rival_was_writing(printing: CanonicalCard, rival: ThreadPoolExecutor) -> None:
    """It waits for the card, then reads the evidence: no vote rests on readings that were replaced."""
    card = read_card("Opt")
    with transaction.atomic():
        lock_cards([card.pk])
        line = {"number": "65", "set_code": "xln", "confidence": 0.9}
        ImageEvidence.objects.update(readings={"collector_line": line})
        with rival_waiting(rival, lambda: run_stage_d([card.pk], run_id="r1")) as ran:
            pass

    ran.result(PATIENCE_S)
    assert CardPrintingTag.objects.get().printing == printing


def test_one_person_in_two_windows_ends_with_the_last_vote(printing: CanonicalCard, rival: ThreadPoolExecutor) -> None:
    """A vote locks the card before it touches the vote, so the two never wait for each other."""
    other = make_printing("Opt", "dom", "60")
    card, ann = make_card("Opt"), make_user("ann", is_superuser=True)
    with transaction.atomic():
        lock_cards([card.pk])
        with rival_waiting(rival, lambda: cast_human_vote(card, printing, ann)) as voted:
            with connection.cursor() as cursor:
                # Any wait is a fault here; this one ends before the server would look for a deadlock.
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
            assert cast_human_vote(card, other, ann).printing_id == other.pk

    voted.result(PATIENCE_S)
    card.refresh_from_db()
    assert card.inferred_canonical_card == printing
    assert CardPrintingTag.objects.count() == 1


def test_cards_are_locked_in_primary_key_order(printing: CanonicalCard, rival: ThreadPoolExecutor) -> None:
    """Who waits for the first card holds none of the others, so no two can wait for each other."""
    pks = [make_card("Opt").pk for _ in range(12)]
    verdicts = {pk: Vote(printing_id=printing.pk, confidence=0.85) for pk in reversed(pks)}
    with transaction.atomic():
        lock_cards(pks[:1])
        with rival_waiting(rival, lambda: write_machine_votes("machine", VoteSource.OCR, verdicts, "r1")) as written:
            others = Card.objects.select_for_update(nowait=True).filter(pk__in=pks[1:])
            assert len(others) == len(pks) - 1

    written.result(PATIENCE_S)
    assert CardPrintingTag.objects.count() == len(pks)


def test_a_deadlock_is_repeated_as_a_whole_a_bounded_number_of_times(caplog: pytest.LogCaptureFixture) -> None:
    """The unit starts again from its beginning, says so each time, and gives up with the database's own error."""
    attempts: list[int] = []

    def deadlock() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            attempts.append(1)
            cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = '40P01'; END $$")

    def deadlock_once() -> str:
        if not attempts:
            deadlock()
        return "done"

    assert retrying_deadlocks(deadlock_once) == "done"
    attempts.clear()
    with pytest.raises(OperationalError):
        retrying_deadlocks(deadlock)
    assert len(attempts) == ATTEMPTS
    assert sum("broke a deadlock" in message for message in caplog.messages) == 1 + ATTEMPTS - 1
