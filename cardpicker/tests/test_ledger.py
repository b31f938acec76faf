"""The ledger: a run is believed while its owner lives, ends exactly once, and never runs again."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest
from django.db.models.functions import Now

from cardpicker.models import PilotRunLedger, RunStatus
from cardpicker.stage_e import ledger
from cardpicker.stage_e.ledger import Owner, lives, this_process
from cardpicker.tests.work_support import at_once, eventually


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until it is told to end."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def owner_of(process: subprocess.Popen[bytes]) -> Owner:
    """Return the owner that a process is."""
    started = datetime.fromtimestamp(psutil.Process(process.pid).create_time(), tz=UTC)
    return dataclasses.replace(this_process(), pid=process.pid, process_started_at=started)


def run_of(owner: Owner, **fields: Any) -> PilotRunLedger:
    """Store a running row of ``owner``."""
    return PilotRunLedger.objects.create(
        run_id="r",
        trigger_reason="test",
        host=owner.host,
        pid=owner.pid,
        process_started_at=owner.process_started_at,
        **fields,
    )


def opened() -> uuid.UUID:
    """Open a run of this process and return its batch."""
    batch = uuid.uuid4()
    ledger.open_run(batch, run_id="r" * 100, trigger_reason="t" * 100, slot=1, batch_size=25)
    return batch


def row(batch: uuid.UUID) -> PilotRunLedger:
    """Return a batch's row as it is stored now."""
    return PilotRunLedger.objects.get(batch_id=batch)


def test_this_process_lives_and_is_itself() -> None:
    """The owner is known by host, pid and start, the same whenever it is asked."""
    me = this_process()

    assert (me, me.pid) == (this_process(), os.getpid())
    assert lives(me)


def test_process_that_ended_is_dead(child: subprocess.Popen[bytes]) -> None:
    """A killed process is dead as a zombie and when nobody remembers it."""
    owner = owner_of(child)
    assert lives(owner)

    child.kill()

    assert eventually(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert not lives(owner)
    child.wait()
    assert not lives(owner)


@pytest.mark.parametrize("hours", [-1, 1])
def test_process_that_was_given_the_pid_later_is_not_the_owner(hours: int) -> None:
    """In a container every worker may have the same pid; its start tells them apart."""
    me = this_process()

    assert not lives(dataclasses.replace(me, process_started_at=me.process_started_at + timedelta(hours=hours)))


def test_process_of_another_host_is_not_judged_by_its_pid(child: subprocess.Popen[bytes]) -> None:
    """Only its heartbeat says anything about it."""
    elsewhere = dataclasses.replace(owner_of(child), host="elsewhere")
    child.kill()
    child.wait()

    assert lives(elsewhere)


def test_process_that_may_not_be_looked_at_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another account's process is there, and that is all that can be known of it."""

    def refuse(process: psutil.Process) -> float:
        raise psutil.AccessDenied(process.pid)

    me = this_process()
    monkeypatch.setattr(psutil.Process, "create_time", refuse)

    assert lives(me)


@pytest.mark.django_db
def test_dead_runs_are_closed_and_living_ones_left(child: subprocess.Popen[bytes]) -> None:
    """A dead process's run and a silent host's are INTERRUPTED; a living process's and a beating host's go on."""
    dying, me = owner_of(child), this_process()
    elsewhere = dataclasses.replace(me, host="elsewhere")
    silence = Now() - timedelta(seconds=ledger.SILENT_S + 5)
    dead, silent, hung = run_of(dying), run_of(elsewhere, heartbeat_at=silence), run_of(me, heartbeat_at=silence)
    alive, beating = run_of(me), run_of(elsewhere)
    child.kill()
    child.wait()

    assert set(ledger.close_dead_runs()) == {dead.batch_id, silent.batch_id, hung.batch_id}

    for closed in (dead, silent, hung):
        closed.refresh_from_db()
        assert closed.status == RunStatus.INTERRUPTED
        assert closed.finished_at is not None
    assert set(PilotRunLedger.objects.filter(status=RunStatus.RUNNING)) == {alive, beating}
    assert ledger.close_dead_runs() == []


@pytest.mark.django_db
def test_silence_is_measured_by_the_databases_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose own clock is ahead closes nobody's run."""
    run_of(dataclasses.replace(this_process(), host="elsewhere"))
    tomorrow = datetime.now(tz=UTC) + timedelta(days=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: tomorrow)

    assert ledger.close_dead_runs() == []


@pytest.mark.django_db
def test_run_is_opened_with_its_owner() -> None:
    """Who, where, why and how much, cut to what the columns hold."""
    run = row(opened())

    assert Owner(host=run.host, pid=run.pid, process_started_at=run.process_started_at) == this_process()
    assert (run.status, run.slot, run.batch_size, run.finished_at) == (RunStatus.RUNNING, 1, 25, None)
    assert (run.run_id, run.trigger_reason) == ("r" * 64, "t" * 50)


@pytest.mark.django_db
def test_heart_beats_only_while_the_run_does() -> None:
    """A batch learns from its own heartbeat that somebody has closed it."""
    batch = opened()
    PilotRunLedger.objects.update(heartbeat_at=Now() - timedelta(seconds=60))
    before = row(batch).heartbeat_at

    assert ledger.beat(batch)
    assert row(batch).heartbeat_at > before + timedelta(seconds=50)
    ledger.close_run(batch, RunStatus.COMPLETED, "", {})
    ended = row(batch).heartbeat_at

    assert not ledger.beat(batch)
    assert row(batch).heartbeat_at == ended
    assert not ledger.beat(uuid.uuid4())


@pytest.mark.django_db
@pytest.mark.parametrize("first", [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.INTERRUPTED])
def test_terminal_row_is_never_opened_again(first: RunStatus) -> None:
    """The first ending stands, with its reason and counts."""
    batch = opened()
    assert ledger.close_run(batch, first, "the first", {"stage_c_stored": 3})
    before = PilotRunLedger.objects.values().get(batch_id=batch)

    assert not ledger.close_run(batch, RunStatus.COMPLETED, "the second", {"stage_c_stored": 9})
    assert not ledger.close_run(batch, RunStatus.FAILED, "the third", {})
    assert ledger.close_dead_runs() == []

    assert PilotRunLedger.objects.values().get(batch_id=batch) == before
    assert (before["status"], before["reason"], before["stage_c_stored"]) == (first, "the first", 3)


@pytest.mark.django_db
@pytest.mark.parametrize("reason", ["a\0b", "a\udcffb", "a\nb"])
def test_reason_that_no_column_holds_still_ends_the_row(reason: str) -> None:
    """Whatever an error's text holds, the run ends with what can be stored of it."""
    batch = opened()

    assert ledger.close_run(batch, RunStatus.FAILED, reason + "x" * 1000, {})
    assert row(batch).reason.startswith("a b")


@pytest.mark.django_db(transaction=True)
def test_one_rival_closes_a_dead_run(child: subprocess.Popen[bytes]) -> None:
    """Of many that find a run dead at once, exactly one may end its leases as its own find."""
    run = run_of(owner_of(child))
    child.kill()
    child.wait()

    found = at_once(6, lambda _: ledger.close_dead_runs())

    assert [batch for batches in found for batch in batches] == [run.batch_id]
