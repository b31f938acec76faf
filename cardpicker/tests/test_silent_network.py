"""A network that goes without a word: either end gives up within about a minute, and the worker is usable again."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest

from cardpicker.models import CardWork, ImageEvidence, PilotRunLedger, RunStatus
from cardpicker.stage_e.sweep import reconcile
from cardpicker.tests.cluster import database_url, eventually
from cardpicker.tests.evidence_lock import evidence_locked, waits_to_store
from cardpicker.tests.mute_relay import mute_relay
from cardpicker.tests.network_lab import network_lab
from cardpicker.tests.network_worker import NetworkWorker
from cardpicker.tests.own_server import catalog_on, own_server
from cardpicker.tests.slot_watch import moment_slot_is_free
from cardpicker.tests.stage_e_support import make_cards, make_source, states
from scripts.ops.embedded.binaries import find_server

pytestmark = pytest.mark.django_db(transaction=True)

#: By the settings of both ends it is 50 s; the rest is what else a worker tries before it gives up.
ABOUT_A_MINUTE_S = 65.0


@pytest.mark.timeout(150)
def test_a_silent_network_is_an_error_within_a_minute(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """One worker is cut off in the middle of storing, another while it holds a slot and waits for an image."""
    with network_lab(2) as lab, own_server(find_server(None), lab.address) as server, catalog_on(server):
        source = make_source(tmp_path / "cards")
        (stored,), (awaited,) = (
            make_cards(source, 1),
            make_cards(source, 1, seconds=40, marker=str(tmp_path / "computing")),
        )
        north, south = lab.hosts
        with (
            NetworkWorker(tmp_path / "north", inside=north.inside, STAGE_E_HOST_ID="north") as storing,
            NetworkWorker(tmp_path / "south", inside=south.inside, STAGE_E_HOST_ID="south") as waiting,
        ):
            pids = storing.pid, waiting.pid
            waiting.dispatch(awaited.pk)
            eventually((tmp_path / "computing").exists, "the image to be read")
            with evidence_locked():
                storing.dispatch(stored.pk)
                eventually(lambda: waits_to_store(north.address), "the evidence to be stored")
                for host in lab.hosts:
                    host.pull_cable()
                cut = time.monotonic()
            # The server finishes the statement and answers; the answer is lost.
            took = {
                "slot of north free": moment_slot_is_free("north") - cut,
                "slot of south free": moment_slot_is_free("south") - cut,
            }
            closed = reconcile(max_attempts=5).runs_closed
            took["runs closed"] = time.monotonic() - cut
            for name, worker in (("error while storing", storing), ("error while waiting", waiting)):
                ended = worker.wait(ABOUT_A_MINUTE_S)
                took[name] = ended.at - cut
                assert "could not receive data from server: " in ended.said
            print()
            for what, seconds in took.items():
                record_property(what, round(seconds, 1))
                print(f"{seconds:5.1f} s  {what}")

            assert closed == 2
            assert {run.status for run in PilotRunLedger.objects.all()} == {RunStatus.INTERRUPTED}
            assert not ImageEvidence.objects.exists()
            assert max(took.values()) <= ABOUT_A_MINUTE_S

            for host in lab.hosts:
                host.plug_cable()
            CardWork.objects.update(due_at="2020-01-01T00:00Z")
            (fresh,) = make_cards(source, 1)
            for worker, card in ((storing, stored), (waiting, fresh)):
                worker.dispatch(card.pk)
                assert worker.wait(ABOUT_A_MINUTE_S).said == "completed"
            assert (storing.pid, waiting.pid) == pids
        assert states([stored, fresh]) == ["done", "done"]


@pytest.mark.timeout(150)
def test_a_relay_that_falls_mute_is_an_error_and_holds_no_slot(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """No packet is lost and no connection ends, so only clocks on both sides help: of the answer, and of the silence."""
    source = make_source(tmp_path / "cards")
    (card,) = make_cards(source, 1, seconds=20, marker=str(tmp_path / "computing"))
    url = urllib.parse.urlsplit(database_url())
    with mute_relay(str(url.hostname), int(url.port or 5432)) as relay:
        login, _, _ = url.netloc.rpartition("@")
        through = url._replace(netloc=f"{login}@127.0.0.1:{relay.port}").geturl()
        extra = {"STAGE_E_HOST_ID": "north", "CARDPICKER_DATABASE_URL": through, "CARDPICKER_STATEMENT_TIMEOUT_S": "10"}
        with NetworkWorker(tmp_path / "north", inside=(), **extra) as worker:
            pid = worker.pid
            worker.dispatch(card.pk)
            eventually((tmp_path / "computing").exists, "the image to be read")
            relay.fall_mute()
            mute = time.monotonic()
            took = {"slot free": moment_slot_is_free("north") - mute}
            closed = reconcile(max_attempts=5).runs_closed
            took["error"] = worker.wait(ABOUT_A_MINUTE_S).at - mute
            print()
            for what, seconds in took.items():
                record_property(what, round(seconds, 1))
                print(f"{seconds:5.1f} s  {what}")
            assert closed == 1
            assert {run.status for run in PilotRunLedger.objects.all()} == {RunStatus.INTERRUPTED}
            assert max(took.values()) <= ABOUT_A_MINUTE_S

            relay.speak()
            (fresh,) = make_cards(source, 1)
            worker.dispatch(fresh.pk)
            assert worker.wait(ABOUT_A_MINUTE_S).said == "completed"
            assert worker.pid == pid
    assert states([fresh]) == ["done"]
