"""A cluster of real processes, any of which may be killed: it works on by itself, and leaves no orphan."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django_q.models import Schedule

from cardpicker.models import CardWork, ImageEvidence, PilotRunLedger, RunStatus, Source
from cardpicker.tests.cluster import eventually, members, running_cluster
from cardpicker.tests.plain_cards import save_plain_cards
from cardpicker.tests.stage_e_support import make_source

pytestmark = pytest.mark.django_db(transaction=True)

GONE_WITHIN_S = 10.0


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> Source:
    """A folder that cards come from, with streaming on in this process too."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, streaming_enabled=True)
    return make_source(tmp_path / "cards")


@pytest.fixture
def cluster(source: Source, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A cluster that has done a card, and now waits."""
    with running_cluster(tmp_path / "log", STAGE_C_COMPUTE_WORKERS="1") as process:
        does_a_card(source)
        yield process


def does_a_card(source: Source) -> None:
    """Save a card, and wait until the cluster has done it."""
    (card,) = save_plain_cards(source, 1)
    eventually(lambda: CardWork.objects.get(card=card).state == "done", "the cluster to do a card", within_s=60)


def sentinel_of(cluster: subprocess.Popen[bytes]) -> psutil.Process:
    """Return the main process's one child."""
    (sentinel,) = psutil.Process(cluster.pid).children()
    return sentinel


def guarded(cluster: subprocess.Popen[bytes]) -> list[int]:
    """Return workers, monitor and pusher, in the order in which they were started."""
    return [child.pid for child in sorted(sentinel_of(cluster).children(), key=lambda child: child.pid)]


def kill(*pids: int) -> None:
    """Kill processes at once; some may die with another."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_idle_workers_that_are_killed_do_not_take_the_queue_with_them(
    cluster: subprocess.Popen[bytes], source: Source
) -> None:
    """One of them held the lock of the queue that all of them read."""
    workers = guarded(cluster)[:2]
    kill(*workers)
    eventually(lambda: not set(workers) & set(guarded(cluster)), "the workers to be replaced")

    does_a_card(source)


def test_a_killed_workers_cards_are_taken_up_without_a_sweep(cluster: subprocess.Popen[bytes], source: Source) -> None:
    """Its request went with it, so the worker in its place closes its run and asks for its cards."""
    Schedule.objects.all().delete()
    cards = save_plain_cards(source, 25)
    run = eventually(lambda: PilotRunLedger.objects.filter(status=RunStatus.RUNNING).first(), "a run")
    kill(run.pid)

    eventually(lambda: not CardWork.objects.exclude(due_at=None, lease_owner=None).exists(), "all cards to be done")
    run.refresh_from_db()
    assert run.status == RunStatus.INTERRUPTED
    assert ImageEvidence.objects.filter(card__in=cards).count() == 25


def test_workers_stand_back_and_their_processes_further(cluster: subprocess.Popen[bytes], settings: Any) -> None:
    """The site and the database go first, and what is waited for before what is computed."""
    least, wanted = os.nice(0), settings.STAGE_C.niceness
    workers = [psutil.Process(pid) for pid in guarded(cluster)[:2]]
    computing = [process for worker in workers for process in worker.children(recursive=True)]

    assert {process.nice() for process in workers} == {max(least, wanted // 2)}
    assert max(process.nice() for process in computing) == max(least, wanted)
    assert psutil.Process(cluster.pid).nice() == least


def test_a_killed_monitor_is_replaced_by_one_that_reads_results(
    cluster: subprocess.Popen[bytes], source: Source, tmp_path: Path
) -> None:
    """Results that nobody saves are never acknowledged, and a stop waits minutes for them."""
    monitor = guarded(cluster)[2]
    kill(monitor)
    eventually(lambda: monitor not in guarded(cluster), "the monitor to be replaced")
    saved_before = (tmp_path / "log").read_text().count("Processed")

    does_a_card(source)

    eventually(lambda: (tmp_path / "log").read_text().count("Processed") > saved_before, "the result to be saved")


@pytest.mark.parametrize("victim", ["main", "sentinel"])
def test_nothing_outlives_who_started_it(cluster: subprocess.Popen[bytes], victim: str) -> None:
    """Workers without a sentinel would go on taking tasks beside the next cluster."""
    kill(cluster.pid if victim == "main" else sentinel_of(cluster).pid)
    cluster.wait(GONE_WITHIN_S)

    eventually(lambda: not members(cluster.pid), "every process of the cluster to end", within_s=GONE_WITHIN_S)
