"""A batch that ends through nobody's fault costs no card an attempt, and its row ends with it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from django.db import Error, OperationalError, connection
from psycopg2.errors import AdminShutdown, DiskFull, IoError, QueryCanceled

from cardpicker.models import CardPrintingTag, CardWork, ImageEvidence, PilotRunLedger, RunStatus, Source
from cardpicker.stage_c.conveyor import WorkerInitError
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_c.outcomes import LeaseLostError, Stored
from cardpicker.stage_d.run import StageDReport
from cardpicker.stage_e import work
from cardpicker.stage_e.batch import Batch, BatchContext
from cardpicker.stage_e.blame import is_cards_fault, lost_database, status_of
from cardpicker.stage_e.concurrency import try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import dispatch_micro_batch
from cardpicker.tests.slot_watch import slots_of
from cardpicker.tests.stage_e_jobs import read_instructions
from cardpicker.tests.stage_e_support import calm, make_cards, make_source, options, states
from cardpicker.tests.work_support import new_lease

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder that cards come from."""
    return make_source(tmp_path / "cards")


def refuse_to_start() -> None:
    """Be an initializer that fails, as one without an OCR engine does."""
    raise RuntimeError("no engine")


def attempts() -> set[int]:
    """Return the attempts that cards have lost."""
    return set(CardWork.objects.values_list("attempts", flat=True))


def test_a_database_that_goes_away_interrupts_the_batch(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is lost, the server is there: the row is closed over a new session, the evidence is kept."""
    cards = make_cards(source, 3)

    def cut_off(*args: object, **kwargs: object) -> StageDReport:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        raise AssertionError("the session lives on")

    monkeypatch.setattr("cardpicker.stage_e.dispatch.run_stage_d", cut_off)
    with pytest.raises(Error):
        dispatch_micro_batch(options=options())

    assert PilotRunLedger.objects.get().status == RunStatus.INTERRUPTED
    assert (states(cards), attempts()) == (["due"] * 3, {0})
    assert ImageEvidence.objects.count() == 3


def test_processes_that_are_never_ready_quarantine_no_card(source: Source) -> None:
    """Without an engine no image can be read, however often it is tried."""
    cards = make_cards(source, 2)
    broken = options(parts=ComputeParts(compute=read_instructions, initializer=refuse_to_start), max_attempts=1)

    for _ in range(2):
        with pytest.raises(WorkerInitError):
            dispatch_micro_batch(options=broken)

    assert set(PilotRunLedger.objects.values_list("status", flat=True)) == {RunStatus.FAILED}
    assert (states(cards), attempts()) == (["due"] * 2, {0})


def test_leaving_on_request_costs_no_attempt(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a service is restarted, its cards are not to blame."""
    make_cards(source, 1)

    def leave(*args: object, **kwargs: object) -> None:
        raise SystemExit(143)

    monkeypatch.setattr("cardpicker.stage_e.dispatch.run_stage_d", leave)
    with pytest.raises(SystemExit):
        dispatch_micro_batch(options=options())

    assert attempts() == {0}


def test_cards_that_were_taken_over_are_not_judged_here(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was stopped past its lease stores no vote for what another batch has claimed since."""
    kept, lost = make_cards(source, 2, set_code="xln", number="65")
    judged: list[object] = []
    rival = new_lease()
    whole = work.extend

    def taken_over(lease: work.Lease) -> int:
        CardWork.objects.filter(card=lost).update(lease_owner=rival.owner)
        return whole(lease)

    def judge(card_ids: list[int], *, run_id: str) -> StageDReport:
        judged.extend(card_ids)
        return StageDReport()

    monkeypatch.setattr("cardpicker.stage_e.work.extend", taken_over)
    monkeypatch.setattr("cardpicker.stage_e.dispatch.run_stage_d", judge)
    dispatch_micro_batch(options=options())

    assert judged == [kept.pk]
    assert states([kept, lost]) == ["done", "leased"]
    assert not CardPrintingTag.objects.filter(card=lost).exists()


def test_a_batch_that_has_lost_every_card_starts_nothing_more(source: Source) -> None:
    """A worker that was stopped past its lease would else read all that another batch reads; one lost card is no reason."""
    first, second = make_cards(source, 2)
    with try_acquire_dispatch_slot(slots_of("here")) as slot:
        assert slot is not None
        lost = Batch(
            BatchContext(batch_id=uuid.uuid4(), run_id="r", slot=slot, settings=options().settings, sample=calm)
        )
        work.claim(lost.context.lease, limit=2)

        CardWork.objects.filter(card=first).update(lease_owner=uuid.uuid4())
        with pytest.raises(LeaseLostError):
            lost.settle(first.pk, Stored())
        assert not lost.should_stop()

        CardWork.objects.filter(card=second).update(lease_owner=uuid.uuid4())
        with pytest.raises(LeaseLostError):
            lost.settle(second.pk, Stored())
        assert lost.should_stop()


def test_a_statement_that_took_too_long_may_be_a_cards_fault() -> None:
    """A card whose judgment never ends is quarantined some day; a server that was shut down is nobody's fault."""
    slow, shut_down = OperationalError("slow"), OperationalError("shut down")
    slow.__cause__, shut_down.__cause__ = _coded(QueryCanceled, "57014"), _coded(AdminShutdown, "57P01")

    assert is_cards_fault(slow) and not lost_database(slow)
    assert lost_database(shut_down) and not is_cards_fault(shut_down)


def test_a_server_without_room_is_nobodys_fault() -> None:
    """A full disk fails every batch alike, and must quarantine no card."""
    full, broken = OperationalError("full"), OperationalError("broken")
    full.__cause__, broken.__cause__ = _coded(DiskFull, "53100"), _coded(IoError, "58030")

    for error in (full, broken):
        assert not is_cards_fault(error)
        assert status_of(error) is RunStatus.INTERRUPTED


def _coded(kind: type[Exception], code: str) -> Exception:
    """Return a driver's error that bears a code, which only the server can give it."""
    error: Exception = type(kind.__name__, (kind,), {"pgcode": code})()
    return error
