"""Two hosts share one catalog: each has a cap of its own, both work, no card is done twice, and either may vanish."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models import QuerySet, Sum

from cardpicker.models import Card, CardPrintingTag, CardWork, ImageEvidence, PilotRunLedger, RunStatus, Source
from cardpicker.stage_e.requests import request_dispatch
from cardpicker.tests.cluster import eventually, manage, running_cluster
from cardpicker.tests.evidence_lock import evidence_locked, waits_to_store
from cardpicker.tests.network_lab import LabHost, network_lab
from cardpicker.tests.own_server import catalog_on, own_server
from cardpicker.tests.plain_cards import save_plain_cards
from cardpicker.tests.slot_watch import moment_slot_is_free, watched_slots
from cardpicker.tests.stage_e_support import make_printing, make_source
from scripts.ops.embedded.binaries import find_server

pytestmark = pytest.mark.django_db(transaction=True)

HOSTS = ("north", "south")
CARDS_EACH, UPLOADS_AT_ONCE = 10, 6
MOST_UPLOADS = 10
ONE_SLOT = {
    "STAGE_E_MAX_CONCURRENT_DISPATCHES": "1",
    "STAGE_E_MICRO_BATCH_SIZE": "10",
    "STAGE_C_COMPUTE_WORKERS": "1",
}


@pytest.fixture(autouse=True)
def more_requests_than_slots(settings: Any) -> None:
    """Each host is asked for more than it may do."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, streaming_enabled=True, max_concurrent_dispatches=8)


def test_two_hosts_share_a_catalog_and_nothing_is_done_twice(tmp_path: Path) -> None:
    """One slot a host: both slots are in use at once, each card is read once and judged once."""
    source = make_source(tmp_path / "cards")
    make_printing("Opt", "xln", "65")
    with (
        watched_slots(*HOSTS) as seen,
        running_cluster(tmp_path / "north", STAGE_E_HOST_ID="north", **ONE_SLOT),
        running_cluster(tmp_path / "south", STAGE_E_HOST_ID="south", **ONE_SLOT),
    ):
        cards = _save_until_both_worked(source)

    assert {host: watch.most for host, watch in seen.items()} == {"north": 1, "south": 1}
    _assert_each_was_done_once(cards)
    assert {run.status for run in PilotRunLedger.objects.all()} == {RunStatus.COMPLETED}


@pytest.mark.timeout(180)
def test_a_host_that_is_cut_off_is_replaced_and_comes_back(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """In mid-batch one host's link goes: the other does all that is due, and the first works again on its return."""
    with network_lab(2) as lab, own_server(find_server(None), lab.address) as server, catalog_on(server):
        source = make_source(tmp_path / "cards")
        make_printing("Opt", "xln", "65")
        north, south = lab.hosts
        with (
            watched_slots(*HOSTS) as seen,
            running_cluster(tmp_path / "north", inside=north.inside, STAGE_E_HOST_ID="north", **ONE_SLOT) as cluster,
            running_cluster(tmp_path / "south", inside=south.inside, STAGE_E_HOST_ID="south", **ONE_SLOT),
        ):
            cards = _save_until_both_worked(source)
            with evidence_locked():
                cards += _save(source, 14)
                eventually(lambda: _is_asked_to_store(north), "the host to store")
                lost = PilotRunLedger.objects.get(status=RunStatus.RUNNING, host="north")
                north.link_down()
                cut = time.monotonic()
            took = {"slot of the cut host free": moment_slot_is_free("north") - cut}
            manage("stream_backstop_sweep", inside=south.inside, STAGE_E_HOST_ID="south", **ONE_SLOT)
            eventually(_all_is_settled, "the other host to do what is due")
            took["all cards settled by the other host"] = time.monotonic() - cut
            _assert_each_was_done_once(cards)
            lost.refresh_from_db()
            assert (lost.status, lost.reason) == (RunStatus.INTERRUPTED, "its slot was lost")

            north.link_up()
            back = time.monotonic()
            last = PilotRunLedger.objects.latest("pk").pk
            while not _runs_that_stored(after=last).filter(host="north").exists():
                assert time.monotonic() - back < 60, (tmp_path / "north").read_text()[-3000:]
                cards += _save(source, 1)
                eventually(_all_is_settled, "the cards to be settled")
            took["the cut host works again, after the return of its link"] = time.monotonic() - back
            assert cluster.poll() is None, "the cluster of the cut host has ended"
        _assert_each_was_done_once(cards)
        each = Counter(dict(_runs_that_stored().values_list("host").annotate(Sum("stage_c_stored"))))
        assert {host: watch.most for host, watch in seen.items()} == {"north": 1, "south": 1}

    print()
    for what, seconds in took.items():
        record_property(what, round(seconds, 1))
        print(f"{seconds:5.1f} s  {what}")
    record_property("cards by host", dict(each))
    print(f"cards by host: {dict(each)}")


def _save(source: Source, uploads: int) -> list[Card]:
    return [card for _ in range(uploads) for card in save_plain_cards(source, CARDS_EACH)]


def _save_until_both_worked(source: Source) -> list[Card]:
    """Save cards and have them settled; which of two takes a request is chance, so until both have had some."""
    cards = []
    for _ in range(MOST_UPLOADS):
        cards += _save(source, UPLOADS_AT_ONCE)
        eventually(_all_is_settled, "the cards to be settled")
        if set(_runs_that_stored().values_list("host", flat=True)) == set(HOSTS):
            return cards
    pytest.fail(f"one of the hosts did nothing for {len(cards)} cards")


def _assert_each_was_done_once(cards: list[Card]) -> None:
    assert {row.state for row in CardWork.objects.filter(card__in=cards)} == {"done"}
    runs = list(PilotRunLedger.objects.all())
    assert sum(run.stage_c_stored for run in runs) == len(cards) == ImageEvidence.objects.count()
    assert sum(run.stage_c_current + run.already_voted for run in runs) == 0
    assert sum(run.stage_d_votes for run in runs) == CardPrintingTag.objects.count()
    ended = [run for run in runs if run.status == RunStatus.COMPLETED]
    assert sum(run.batch_size for run in ended) == len(cards)


def _is_asked_to_store(host: LabHost) -> bool:
    # The other host may have taken every request, and asks for no more while it waits as well.
    request_dispatch("event")
    return waits_to_store(host.address)


def _all_is_settled() -> bool:
    if CardWork.objects.exclude(due_at__isnull=True, lease_owner__isnull=True).exists():
        return False
    return not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists()


def _runs_that_stored(after: int = 0) -> QuerySet[PilotRunLedger]:
    return PilotRunLedger.objects.filter(stage_c_stored__gt=0, pk__gt=after)
