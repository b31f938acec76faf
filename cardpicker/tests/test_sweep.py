"""The sweep: what it puts right, how it stops, and that it changes nothing when nothing is wrong."""

from __future__ import annotations

import importlib
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule

from cardpicker.models import (
    Card,
    CardPrintingTag,
    CardWork,
    FetchClass,
    FetchOutcome,
    ImageEvidence,
    PilotRunLedger,
    RunStatus,
    Source,
)
from cardpicker.stage_e import envelope, work
from cardpicker.stage_e.dispatch import DispatchOptions
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.stage_e.sweep import ALREADY_RUNNING, SweepReport, reconcile, scheduled_sweep, sweep
from cardpicker.stage_e.vitals import host_name
from cardpicker.tests.cluster import manage
from cardpicker.tests.stage_e_support import make_cards, make_printing, make_source, options

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder that cards come from."""
    return make_source(tmp_path / "cards")


def swept(options: DispatchOptions, max_batches: int | None = None) -> SweepReport:
    """Sweep, with no other sweep at work."""
    report = sweep(options, max_batches=max_batches)
    assert report is not None
    return report


def forget_work() -> None:
    """Lose every mark of due work, as a truncated queue or a lost signal would."""
    CardWork.objects.update(due_at=None)


def test_it_finds_what_no_signal_told(source: Source) -> None:
    """Cards without evidence are found from the data, and drained to the last."""
    make_printing("Opt", "xln", "65")
    cards = make_cards(source, 30, set_code="xln", number="65")
    forget_work()

    report = swept(options())

    assert (report.status, report.batches, report.cards) == (DispatchStatus.EMPTY, 2, 30)
    assert CardPrintingTag.objects.count() == len(cards) == ImageEvidence.objects.count()


def test_a_second_sweep_does_nothing(source: Source) -> None:
    """What is done stays done."""
    make_cards(source, 3)
    sweep(options())

    again = swept(options())

    assert (again.batches, again.reconciled.made_due, PilotRunLedger.objects.count()) == (0, 0, 1)


@pytest.mark.parametrize("change", [{"manifest": "older"}, {"judged_by": "older"}, {"image_version": "older"}])
def test_evidence_that_no_longer_holds_is_made_due(source: Source, change: dict[str, str]) -> None:
    """A raised extractor, a raised calculator and a changed image each make a card due."""
    make_cards(source, 1)
    sweep(options())
    ImageEvidence.objects.update(**change)

    assert reconcile(5).made_due == 1


def test_readings_that_somebody_changed_are_judged_again(source: Source) -> None:
    """However they were written, changed readings are not judged readings."""
    make_cards(source, 1)
    swept(options())
    ImageEvidence.objects.update(readings={"collector_line": {"number": "9"}})

    assert reconcile(5).made_due == 1


def test_quarantined_and_removed_cards_are_left_alone(source: Source) -> None:
    """Quarantine ends when the image changes or somebody asks, not by a sweep."""
    quarantined, removed = make_cards(source, 2)
    forget_work()
    CardWork.objects.filter(card=quarantined).update(quarantined_at=timezone.now())
    Card.objects.filter(pk=removed.pk).update(removed_at=timezone.now())

    assert reconcile(5).made_due == 0


def test_quarantined_cards_hide_nobody(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, the cards behind them are found."""
    quarantined, *others = make_cards(source, 3)
    forget_work()
    CardWork.objects.filter(card=quarantined).update(quarantined_at=timezone.now())
    monkeypatch.setattr("cardpicker.stage_e.sweep.RECONCILED_AT_ONCE", 1)

    assert reconcile(5).made_due == len(others)


def test_it_buries_dead_runs_and_ends_their_leases(source: Source) -> None:
    """A lease ends with its owner, long before its time."""
    (card,) = make_cards(source, 1)
    batch_id = uuid.uuid4()
    work.claim(work.Lease(owner=batch_id, lease_s=3600, max_attempts=5), limit=1)
    PilotRunLedger.objects.create(
        batch_id=batch_id,
        run_id="r",
        trigger_reason="test",
        host=host_name(),
        pid=2**22 - 1,
        process_started_at=timezone.now(),
    )

    done = reconcile(5)

    assert (done.runs_closed, done.leases_ended) == (1, 1)
    assert CardWork.objects.get(card=card).state == "due"
    assert PilotRunLedger.objects.get().status == RunStatus.INTERRUPTED


def test_it_trims_the_window_and_drops_stranded_requests() -> None:
    """Old fetches go, and so do requests whose worker cannot be running any more; younger ones stay."""
    FetchOutcome.objects.create(outcome=FetchClass.FETCHED)
    FetchOutcome.objects.create(outcome=FetchClass.FETCHED)
    FetchOutcome.objects.filter(pk=FetchOutcome.objects.earliest("pk").pk).update(at=timezone.now() - timedelta(days=3))
    handed_out_long_ago = timezone.now() + timedelta(seconds=Conf.RETRY - Conf.TIMEOUT - 60)
    handed_out_just_now = timezone.now() + timedelta(seconds=Conf.RETRY - 5)
    for lock in (timezone.now(), handed_out_just_now, handed_out_long_ago):
        OrmQ.objects.create(key=Conf.CLUSTER_NAME, payload="-", lock=lock)

    done = reconcile(5)

    assert (done.window_trimmed, done.requests_dropped) == (1, 1)
    assert not OrmQ.objects.filter(lock=handed_out_long_ago).exists()


def test_it_stops_at_its_bound(source: Source) -> None:
    """A bounded sweep says that more is due."""
    make_cards(source, 30)

    report = swept(options(), max_batches=1)

    assert (report.batches, report.limit_reached) == (1, True)


def test_it_stops_at_a_trip(source: Source) -> None:
    """Halted is halted for a sweep too."""
    make_cards(source, 1)
    envelope.pause("me", "looking")

    report = swept(options())

    assert (report.status, report.batches) == (DispatchStatus.HALTED_OPEN_TRIP, 0)


@pytest.mark.parametrize(
    ("prepare", "extra", "code", "says"),
    [
        (lambda: None, {}, 0, "sweep: empty"),
        (lambda: envelope.pause("me", "x"), {}, 3, "sweep: halted-open-trip"),
        (lambda: None, {"STAGE_E_STREAMING_ENABLED": "0"}, 6, "sweep: disabled"),
    ],
)
def test_the_commands_exit_code_says_why_it_stopped(prepare: Any, extra: dict[str, str], code: int, says: str) -> None:
    """The last line and the exit code agree."""
    prepare()

    done = manage("stream_backstop_sweep", **extra)

    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-1].startswith(says) and "Traceback" not in done.stderr


def test_the_commands_bound_has_an_exit_code_of_its_own(source: Source) -> None:
    """A cron job that stops at its bound does not look like one that finished."""
    make_cards(source, 1)

    with pytest.raises(SystemExit) as left:
        call_command("stream_backstop_sweep", "--max-batches", "0")

    assert left.value.code == 5


def test_an_unreachable_lock_server_is_one_plain_line() -> None:
    """Wrong use is told, not traced."""
    done = manage("stream_backstop_sweep", STAGE_E_LOCK_DSN="host=127.0.0.1 port=1 connect_timeout=2")

    assert done.returncode == 1 and "cannot be opened" in done.stderr and "Traceback" not in done.stderr


def test_two_sweeps_never_overlap(source: Source, settings: Any) -> None:
    """One at work makes the other leave at once, whether by cron or by schedule."""
    make_cards(source, 1)
    settings.STAGE_E = options().settings
    seen: list[object] = []

    def meanwhile(_: object) -> None:
        seen.extend([sweep(options()), scheduled_sweep()])

    assert sweep(options(), on_reconciled=meanwhile) is not None
    assert seen == [None, ALREADY_RUNNING]


def test_the_scheduled_sweep_asks_for_dispatches(source: Source, settings: Any) -> None:
    """It finds what is due and leaves the work to the queue."""
    make_cards(source, 3)
    forget_work()
    settings.STAGE_E = options().settings

    assert scheduled_sweep() == "0 runs closed, 0 leases ended, 3 made due"
    assert OrmQ.objects.count() == 1


def test_migrations_schedule_the_sweep(transactional_db: None) -> None:
    """Five minutes are the longest that anything can be missed."""
    module = importlib.import_module("cardpicker.migrations.0003_schedule_sweep")
    module.schedule(apps, None)
    module.schedule(apps, None)

    planned = Schedule.objects.get(name=module.NAME)
    assert (planned.minutes, import_string(planned.func)) == (5, scheduled_sweep)
