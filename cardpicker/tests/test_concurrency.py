"""Many workers, few slots: the cap binds, nobody waits for it, and every card gets there."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from django_q.models import Failure, Success

from cardpicker.models import CardWork, PilotRunLedger, RunStatus, StageEThrottleCounter
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.tests.cluster import eventually, running_cluster
from cardpicker.tests.plain_cards import save_plain_cards
from cardpicker.tests.slot_watch import watched_slots
from cardpicker.tests.stage_e_support import make_printing, make_source

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "crowded"
SLOTS, WORKERS = 2, 8
UPLOADS, CARDS_EACH = 10, 10


def test_eight_workers_never_hold_more_than_two_slots(tmp_path: Path, settings: Any) -> None:
    """Of many requests at once two dispatch, the others count themselves and end; all cards are done."""
    # As many requests as a busy site would have waiting, so that the workers outnumber the slots.
    settings.STAGE_E = dataclasses.replace(
        settings.STAGE_E, streaming_enabled=True, max_concurrent_dispatches=WORKERS, host_id=HOST
    )
    source = make_source(tmp_path / "cards")
    make_printing("Opt", "xln", "65")
    extra = {
        "STAGE_E_HOST_ID": HOST,
        "STAGE_E_MAX_CONCURRENT_DISPATCHES": str(SLOTS),
        "STAGE_E_MICRO_BATCH_SIZE": str(CARDS_EACH),
        "STAGE_C_COMPUTE_WORKERS": "1",
        "Q_WORKERS": str(WORKERS),
    }
    with watched_slots(HOST) as seen, running_cluster(tmp_path / "log", **extra):
        cards = [card.pk for _ in range(UPLOADS) for card in save_plain_cards(source, CARDS_EACH)]
        eventually(_all_is_settled, "all cards to be settled", within_s=150)

    assert seen[HOST].looks > UPLOADS
    assert seen[HOST].most == SLOTS
    assert seen[HOST].waited == 0
    assert StageEThrottleCounter.objects.get().count >= 1
    assert not Failure.objects.exists()
    assert {row.state for row in CardWork.objects.filter(card__in=cards)} == {"done"}
    runs = PilotRunLedger.objects.all()
    assert {run.status for run in runs} == {RunStatus.COMPLETED}
    assert sum(run.stage_c_stored for run in runs) == len(cards)
    assert sum(run.stage_c_current + run.stage_c_deferred for run in runs) == 0
    assert _most_at_once() <= SLOTS
    # A task that was refused did no work: whatever it took, it took no batch's time.
    refused = Success.objects.filter(attempt_count__gte=0)
    assert str(DispatchStatus.THROTTLED) in {task.result for task in refused}


def _all_is_settled() -> bool:
    if CardWork.objects.exclude(due_at__isnull=True, lease_owner__isnull=True).exists():
        return False
    return not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists()


def _most_at_once() -> int:
    """Return how many runs overlapped at most, by the ledger's own clock."""
    moments = sorted(
        moment
        for started, finished in PilotRunLedger.objects.values_list("started_at", "finished_at")
        for moment in ((started, 1), (finished, -1))
    )
    most = now = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most
