"""A batch at work: what it stores, what ends it early, and a ledger row that always ends."""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone

from cardpicker.models import (
    Card,
    CardPrintingTag,
    CardWork,
    EnvelopeBar,
    EnvelopeTrip,
    FetchOutcome,
    ImageEvidence,
    PilotRunLedger,
    RunStatus,
    Source,
)
from cardpicker.stage_e import envelope, work
from cardpicker.stage_e.dispatch import dispatch_micro_batch, slot_settings
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.stage_e.vitals import Vitals
from cardpicker.tests.stage_e_support import (
    HEALTHY,
    make_cards,
    make_cards_from,
    make_printing,
    make_source,
    options,
    states,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder that cards come from."""
    return make_source(tmp_path / "cards")


def test_a_batch_reads_judges_and_settles_its_cards(source: Source) -> None:
    """Evidence, votes, work and the ledger all say the same at the end."""
    printing = make_printing("Opt", "xln", "65")
    cards = make_cards(source, 3, set_code="xln", number="65")

    outcome = dispatch_micro_batch(options=options())

    assert outcome.status is DispatchStatus.COMPLETED
    assert set(CardPrintingTag.objects.values_list("card_id", "printing_id")) == {(c.pk, printing.pk) for c in cards}
    assert states(cards) == ["done"] * 3
    run = PilotRunLedger.objects.get()
    assert (run.status, run.batch_size, run.stage_c_stored, run.stage_d_votes) == (RunStatus.COMPLETED, 3, 3, 3)
    assert run.finished_at is not None and run.elapsed_s > 0


def test_asked_for_cards_come_first(source: Source) -> None:
    """The batch takes the seeds, then the oldest."""
    cards = make_cards(source, 12)

    dispatch_micro_batch([cards[-1].pk], batch_size=10, options=options())

    assert states(cards) == ["done"] * 9 + ["due"] * 2 + ["done"]


def test_each_bad_image_ends_in_an_outcome_of_its_own(source: Source) -> None:
    """A killer, a raiser and a broken image cost their neighbours nothing."""
    bad: list[dict[str, Any]] = [{"kill": True}, {"raise": "odd"}, {"unusable": "truncated"}]
    cards = make_cards_from(source, [{}, bad[0], {}, bad[1], {}, bad[2], {}])

    outcome = dispatch_micro_batch(options=options())

    assert outcome.status is DispatchStatus.COMPLETED
    assert states(cards) == ["done", "due", "done", "due", "done", "quarantined", "done"]
    names = dict(CardWork.objects.values_list("card_id", "last_outcome"))
    assert [names[cards[i].pk] for i in (1, 3, 5)] == ["crashed", "crashed", "unusable: truncated"]
    assert PilotRunLedger.objects.get().stage_c_crashed == 2


def test_a_card_that_always_kills_its_worker_is_quarantined(source: Source) -> None:
    """Attempts are counted before the work, and are bounded."""
    (card,) = make_cards(source, 1, kill=True)
    for _ in range(2):
        CardWork.objects.filter(due_at__isnull=False).update(due_at=timezone.now())
        dispatch_micro_batch(options=options(max_attempts=2))

    row = CardWork.objects.get(card=card)
    assert (row.state, row.attempts, row.last_outcome) == ("quarantined", 2, "crashed")


def test_an_error_of_ours_closes_the_row_and_gives_the_cards_back(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error goes on to the caller; the ledger keeps the counts so far; the attempt stays counted."""
    cards = make_cards(source, 2)

    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr("cardpicker.stage_e.dispatch.run_stage_d", broken)
    with pytest.raises(RuntimeError, match="disk full"):
        dispatch_micro_batch(options=options())

    run = PilotRunLedger.objects.get()
    assert (run.status, run.reason, run.stage_c_stored) == (RunStatus.FAILED, "RuntimeError: disk full", 2)
    assert states(cards) == ["due", "due"]
    assert list(CardWork.objects.values_list("attempts", flat=True)) == [1, 1]


def test_leaving_by_system_exit_closes_the_row_as_interrupted(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that became SystemExit ends the run, not only the process."""
    make_cards(source, 1)

    def leave(*args: object, **kwargs: object) -> None:
        raise SystemExit(143)

    monkeypatch.setattr("cardpicker.stage_e.dispatch.run_stage_d", leave)
    with pytest.raises(SystemExit):
        dispatch_micro_batch(options=options())

    assert PilotRunLedger.objects.get().status == RunStatus.INTERRUPTED


def test_a_lost_slot_writes_nothing_more(source: Source) -> None:
    """When the slot's session is gone, what was read is not stored, and its card is due again."""
    cards = make_cards(source, 6)

    outcome = dispatch_micro_batch(options=options(sample=_losing_the_slot()))

    assert outcome.status is DispatchStatus.INTERRUPTED
    assert not ImageEvidence.objects.exists() and not CardPrintingTag.objects.exists()
    assert states(cards) == ["due"] * 6
    run = PilotRunLedger.objects.get()
    assert (run.status, run.reason) == (RunStatus.INTERRUPTED, "the dispatch slot was lost")


def _losing_the_slot() -> Callable[[], Vitals]:
    def sample() -> Vitals:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cardpicker-slot'"
                " AND datname = current_database()"
            )
        return HEALTHY

    return sample


def test_a_pause_in_mid_batch_stops_what_has_not_begun(source: Source, tmp_path: Path) -> None:
    """In-flight images are finished and stored, the rest is given back with its attempt."""
    cards = make_cards(source, 40, seconds=0.4)
    pausing = threading.Thread(target=_pause_when, args=(tmp_path,), daemon=True)
    pausing.start()

    outcome = dispatch_micro_batch(batch_size=40, options=options())
    pausing.join()

    assert outcome.status is DispatchStatus.COMPLETED_WITH_TRIP
    reached = states(cards)
    assert set(reached) == {"done", "due"} and reached == sorted(reached, key=["done", "due"].index)
    assert set(CardWork.objects.filter(due_at__isnull=False).values_list("attempts", flat=True)) == {0}


def _pause_when(folder: Path) -> None:
    try:
        while not ImageEvidence.objects.exists():
            threading.Event().wait(0.05)
        envelope.pause("me", "enough for today")
    finally:
        connections.close_all()


def test_a_grown_process_trips_in_mid_batch(source: Source) -> None:
    """Memory is judged while the compute processes live, not only before they exist."""
    make_cards(source, 30, seconds=0.3)
    samples = iter([HEALTHY])
    grown = dataclasses.replace(HEALTHY, largest_rss_mb=900, tree_rss_mb=1500)

    outcome = dispatch_micro_batch(batch_size=30, options=options(sample=lambda: next(samples, grown)))

    assert outcome.status is DispatchStatus.COMPLETED_WITH_TRIP
    assert EnvelopeTrip.objects.get().bar == EnvelopeBar.RSS
    run = PilotRunLedger.objects.get()
    assert (run.peak_rss_mb, run.peak_tree_rss_mb) == (900, 1500)


def test_a_batch_that_overruns_its_deadline_gives_the_rest_back(source: Source) -> None:
    """At its deadline a batch starts nothing new; it ends complete, and the rest is due with its attempt."""
    cards = make_cards(source, 30, seconds=0.5)

    outcome = dispatch_micro_batch(batch_size=30, options=options(batch_deadline_s=2))

    assert outcome.status is DispatchStatus.COMPLETED
    assert {"done", "due"} == set(states(cards))
    assert "ran for 2 s" in PilotRunLedger.objects.get().reason


def test_a_dead_owners_cards_are_taken_over(source: Source) -> None:
    """The next dispatch closes the dead run and works on its cards at once."""
    cards = make_cards(source, 2)
    batch_id = uuid.uuid4()
    work.claim(work.Lease(owner=batch_id, lease_s=3600, max_attempts=5), limit=10)
    PilotRunLedger.objects.create(
        batch_id=batch_id,
        run_id="dead",
        trigger_reason="test",
        host=slot_settings(options().settings).scope,
        pid=2**22 - 1,
        process_started_at=timezone.now(),
    )

    outcome = dispatch_micro_batch(options=options())

    assert outcome.status is DispatchStatus.COMPLETED and states(cards) == ["done", "done"]
    assert PilotRunLedger.objects.get(batch_id=batch_id).status == RunStatus.INTERRUPTED


def test_byte_identical_cards_are_read_once(source: Source) -> None:
    """A due twin outside of the batch comes along, and both are judged."""
    make_printing("Opt", "xln", "65")
    original, *_ = cards = make_cards(source, 12, set_code="xln", number="65")
    twin_name = f"twin-of-{original.identifier}"
    body = (Path(source.location) / original.identifier).read_bytes()
    (Path(source.location) / twin_name).write_bytes(body)
    twin = Card.objects.create(
        source=source,
        identifier=twin_name,
        name="Opt",
        name_key=original.name_key,
        sha256_checksum=original.sha256_checksum,
        image_version=original.image_version,
    )

    dispatch_micro_batch([original.pk], batch_size=10, options=options())

    evidence = ImageEvidence.objects.get(card=twin)
    assert evidence.transferred_from_id == original.pk
    assert CardPrintingTag.objects.filter(card=twin).exists() and states([*cards[-2:]]) == ["due", "due"]


def test_broken_local_files_never_fill_the_failure_window(source: Source) -> None:
    """They are no destination's failure, so they can halt nothing."""
    make_cards(source, 3, unusable="corrupt")

    dispatch_micro_batch(options=options())

    assert not FetchOutcome.objects.exists()
