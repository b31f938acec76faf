"""stage_e_status: numbers computed from rows, in words and in JSON, with an exit code for supervisors."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from cardpicker.models import CardWork, PilotRunLedger, RunStatus, Source
from cardpicker.stage_e import envelope, ledger, work
from cardpicker.stage_e.concurrency import try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import dispatch_micro_batch, slot_settings
from cardpicker.stage_e.vitals import host_name
from cardpicker.tests.stage_e_support import make_cards, make_source, options

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder that cards come from."""
    return make_source(tmp_path / "cards")


def status(*arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and its output."""
    output = StringIO()
    try:
        call_command("stage_e_status", *arguments, stdout=output, stderr=output)
    except SystemExit as left:
        return int(str(left.code)), output.getvalue()
    return 0, output.getvalue()


def as_json() -> dict[str, Any]:
    """Return the JSON answer."""
    answer: dict[str, Any] = json.loads(status("--json")[1])
    return answer


def test_the_four_states_add_up(source: Source) -> None:
    """Due, leased, done and quarantined are all cards, each once."""
    done, leased, quarantined, *due = make_cards(source, 6)
    dispatch_micro_batch([done.pk], batch_size=1, options=options())
    CardWork.objects.filter(card=quarantined).update(due_at=None, quarantined_at=timezone.now(), last_outcome="crashed")
    work.claim(work.Lease(owner=uuid.uuid4(), lease_s=60, max_attempts=5), limit=1, seeds=[leased.pk])

    answer = as_json()

    assert answer["work"] == {"due": 3, "leased": 1, "done": 1, "quarantined": 1}
    assert answer["quarantined_by_cause"] == {"crashed": 1}
    assert answer["due_by_reason"] == {"created": len(due)}
    assert answer["cards_per_minute"]["1 min"] == 1.0


def test_a_holder_is_named_while_it_holds(source: Source) -> None:
    """Slot, run, process and session of whoever dispatches now."""
    ledger.open_run(uuid.uuid4(), run_id="night", trigger_reason="test", slot=0, batch_size=3)
    with try_acquire_dispatch_slot(slot_settings(options().settings)):
        (held,) = as_json()["slots"]
        text = status()[1]

    assert (held["index"], held["this_host"], held["run_id"], held["host"]) == (0, True, "night", host_name())
    assert held["pid"] and held["backend_pid"] and "night" in text
    assert as_json()["slots"] == []


def test_halted_says_why_and_exits_with_3(source: Source) -> None:
    """An open trip is the first thing to read, with how to close it."""
    trip = envelope.pause("me", "moving house")

    code, text = status()

    assert code == 3 and text.startswith("HALTED")
    assert f"trip {trip.pk}: OPERATOR_PAUSE on every host" in text and "moving house" in text
    assert as_json()["halted"] is True


def test_another_hosts_trip_is_shown_but_does_not_halt_this_one(source: Source) -> None:
    """Load is a matter of the host it was measured on."""
    type(envelope.pause("me", "x")).objects.create(bar="HOST_LOAD", host="elsewhere", detail="load")
    envelope.acknowledge_trip(as_json()["trips"][0]["id"], "seen", "me")

    answer = as_json()

    assert [trip["host"] for trip in answer["trips"]] == ["elsewhere"] and answer["halted"] is False


def test_check_fails_only_when_work_waits_and_nothing_moves(source: Source) -> None:
    """Due for long is stalled; due just now, halted, or at work is not."""
    make_cards(source, 2)
    fresh, _ = status("--check", "5")
    CardWork.objects.update(due_at=timezone.now() - timedelta(minutes=20))
    stalled, text = status("--check", "5")
    work.claim(work.Lease(owner=uuid.uuid4(), lease_s=60, max_attempts=5), limit=1)
    at_work, _ = status("--check", "5")

    assert (fresh, stalled, at_work) == (0, 7, 0)
    assert "nothing has progressed for 20 min" in text


def test_an_empty_catalog_is_told_in_words() -> None:
    """The first look of a newcomer."""
    code, text = status()

    assert code == 0 and "no runs yet" in text and "none held of 2 on this host" in text


def test_old_runs_are_pruned_and_running_ones_kept() -> None:
    """Retention counts from a run's end, a bounded number at a time; a dry run removes nothing."""
    for age, state in (
        (40, RunStatus.COMPLETED),
        (40, RunStatus.FAILED),
        (1, RunStatus.COMPLETED),
        (40, RunStatus.RUNNING),
    ):
        run = ledger.open_run(uuid.uuid4(), run_id=f"{age}", trigger_reason="test", slot=0, batch_size=1)
        then = timezone.now() - timedelta(days=age)
        ended = None if state is RunStatus.RUNNING else then
        PilotRunLedger.objects.filter(pk=run.pk).update(status=state, started_at=then, finished_at=ended)
    output = StringIO()

    call_command("prune_run_ledger", "--older-than", "30", "--dry-run", stdout=output)
    call_command("prune_run_ledger", "--older-than", "30", "--batch-size", "1", stdout=output)

    assert output.getvalue().splitlines() == ["2 runs would be removed", "2 runs removed"]
    assert set(PilotRunLedger.objects.values_list("status", flat=True)) == {RunStatus.COMPLETED, RunStatus.RUNNING}


def test_pause_by_command_halts_and_tells_how_to_resume() -> None:
    """The command and the admin open the same trip."""
    output = StringIO()

    call_command("pause_dispatch", "--note", "moving house", "--who", "me", stdout=output)

    trip = envelope.open_trip()
    assert trip is not None and (trip.bar, trip.opened_by, trip.detail) == ("OPERATOR_PAUSE", "me", "moving house")
    assert f"--acknowledge-trip {trip.pk}" in output.getvalue()
