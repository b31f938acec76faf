"""Two hosts share one catalog: each has a cap of its own, both work, and no card is done twice."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from cardpicker.models import CardPrintingTag, CardWork, ImageEvidence, PilotRunLedger, RunStatus
from cardpicker.tests.cluster import eventually, running_cluster
from cardpicker.tests.plain_cards import save_plain_cards
from cardpicker.tests.slot_watch import watched_slots
from cardpicker.tests.stage_e_support import make_printing, make_source

pytestmark = pytest.mark.django_db(transaction=True)

HOSTS = ("north", "south")
CARDS_EACH, UPLOADS_AT_ONCE = 10, 6
MOST_UPLOADS = 10


def test_two_hosts_share_a_catalog_and_nothing_is_done_twice(tmp_path: Path, settings: Any) -> None:
    """One slot a host: both slots are in use at once, each card is read once and judged once."""
    # More requests than slots, so that each host is asked for more than it may do.
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, streaming_enabled=True, max_concurrent_dispatches=8)
    source = make_source(tmp_path / "cards")
    make_printing("Opt", "xln", "65")
    extra = {
        "STAGE_E_MAX_CONCURRENT_DISPATCHES": "1",
        "STAGE_E_MICRO_BATCH_SIZE": "10",
        "STAGE_C_COMPUTE_WORKERS": "1",
    }
    cards = []
    with (
        watched_slots(*HOSTS) as seen,
        running_cluster(tmp_path / "north", STAGE_E_HOST_ID="north", **extra),
        running_cluster(tmp_path / "south", STAGE_E_HOST_ID="south", **extra),
    ):
        # Which of two takes a request is chance, so there is work until both have had some.
        for _ in range(MOST_UPLOADS):
            cards += [card.pk for _ in range(UPLOADS_AT_ONCE) for card in save_plain_cards(source, CARDS_EACH)]
            eventually(_all_is_settled, "the cards to be settled")
            if _hosts_that_worked() == set(HOSTS):
                break

    assert _hosts_that_worked() == set(HOSTS)
    assert {host: watch.most for host, watch in seen.items()} == {"north": 1, "south": 1}
    assert {row.state for row in CardWork.objects.filter(card__in=cards)} == {"done"}
    runs = PilotRunLedger.objects.all()
    assert {run.status for run in runs} == {RunStatus.COMPLETED}
    assert sum(run.stage_c_stored for run in runs) == len(cards) == ImageEvidence.objects.count()
    assert sum(run.stage_c_current + run.already_voted for run in runs) == 0
    assert sum(run.stage_d_votes for run in runs) == CardPrintingTag.objects.count()
    assert sum(run.batch_size for run in runs) == len(cards)


def _all_is_settled() -> bool:
    if CardWork.objects.exclude(due_at__isnull=True, lease_owner__isnull=True).exists():
        return False
    return not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists()


def _hosts_that_worked() -> set[str]:
    return set(PilotRunLedger.objects.filter(stage_c_stored__gt=0).values_list("host", flat=True))
