"""SIGKILL of a dispatching process while its compute processes work: when its slot, its run and its cards are free."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
from django.db import connection

from cardpicker.models import ImageEvidence, PilotRunLedger, RunStatus
from scripts.ops.dispatching.bench import Bench, Figure, wait_for
from scripts.ops.drill import invariants, processes

CARDS = 40
ORPHANS_AFTER_S = 5.0
FREE_S, TRUE_S = 5.0, 60.0  #: Promised: the slot is free, the ledger tells the truth.
_HOLDER = """
SELECT activity.pid FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locks.locktype = 'advisory' AND locks.objsubid = 2 AND locks.granted
  AND activity.application_name = 'cardpicker-slot' AND activity.client_port = ANY(%s)
"""
_HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND pid = ANY(%s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Death:
    free_s: float
    orphans: int
    status: str
    closed_s: float
    settled_s: float


def measure(bench: Bench, kills: int) -> Iterator[Figure]:
    """Kill ``kills`` times; yield the worst of each."""
    with bench.cluster() as cluster:
        deaths = []
        for _ in range(kills):
            bench.save(CARDS)
            deaths.append(_kill_one(cluster.pid))
            bench.settle()
    free_s = [death.free_s for death in deaths]
    orphans = sum(death.orphans for death in deaths)
    ends = {death.status for death in deaths}
    yield Figure(part="kill", name="dispatching processes killed at work", value=kills)
    yield Figure(part="kill", name="slot free after, median", value=statistics.median(free_s), unit="s")
    yield _at_most(FREE_S, "slot free after, longest", max(free_s))
    yield Figure(
        part="kill",
        name=f"its processes alive {ORPHANS_AFTER_S:g} s later",
        value=orphans,
        promise="0",
        is_kept=not orphans,
    )
    yield Figure(
        part="kill",
        name="how its runs ended",
        value=", ".join(sorted(ends)),
        promise=RunStatus.INTERRUPTED,
        is_kept=ends == {RunStatus.INTERRUPTED},
    )
    yield _at_most(TRUE_S, "run closed after, longest", max(death.closed_s for death in deaths))
    settled_s = max(death.settled_s for death in deaths)
    yield Figure(part="kill", name="all its cards settled after, longest", value=settled_s, unit="s")


def _at_most(promised_s: float, name: str, value_s: float) -> Figure:
    return Figure(
        part="kill",
        name=name,
        value=value_s,
        unit="s",
        promise=f"at most {promised_s:g}",
        is_kept=value_s <= promised_s,
    )


def _kill_one(main_pid: int) -> _Death:
    run = _run_at_work(main_pid)
    doomed = psutil.Process(run.pid)
    family = doomed.children(recursive=True)
    holders = _ask(_HOLDER, sorted(processes.local_ports(run.pid)))
    os.kill(run.pid, signal.SIGKILL)
    struck = time.monotonic()
    free_s = closed_s = settled_s = -1.0
    orphans = -1
    while min(free_s, closed_s, settled_s, orphans) < 0:
        passed = time.monotonic() - struck
        if free_s < 0 and _ask(_HELD, holders) == [0]:
            free_s = passed
        if closed_s < 0 and not PilotRunLedger.objects.filter(pk=run.pk, status=RunStatus.RUNNING).exists():
            closed_s = passed
        if orphans < 0 and passed >= ORPHANS_AFTER_S:
            orphans = sum(processes.alive(process) for process in family)
        if settled_s < 0 and invariants.is_settled():
            settled_s = passed
        time.sleep(0.01)
    run.refresh_from_db()
    return _Death(free_s=free_s, orphans=orphans, status=run.status, closed_s=closed_s, settled_s=settled_s)


def _run_at_work(main_pid: int) -> PilotRunLedger:
    """Return a run that has stored some evidence and whose compute processes are there."""
    found: list[PilotRunLedger] = []

    def look() -> bool:
        for run in PilotRunLedger.objects.filter(status=RunStatus.RUNNING):
            is_at_work = ImageEvidence.objects.filter(run_id=run.run_id).count() >= 3
            if is_at_work and processes.pool_children_of(run.pid):
                found.append(run)
        return bool(found)

    wait_for(look, "a run at work")
    return found[0]


def _ask(sql: str, values: list[int]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [values])
        return [int(row[0]) for row in cursor.fetchall()]
