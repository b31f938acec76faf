"""The record of runs: one row a batch, believed only while its owner lives, closed by whoever finds the owner dead."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from cardpicker.catalogue.text import clean_text
from cardpicker.models import PilotRunLedger, RunStatus
from cardpicker.stage_e.vitals import host_name

#: A run whose heart has not beaten for so long is dead, wherever it ran.
SILENT_S = 90.0
#: Two readings of one process's start may differ by the clock's granularity.
_SAME_START_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that nothing else can be mistaken for: a pid alone is reused."""

    host: str
    pid: int
    process_started_at: datetime


def this_process() -> Owner:
    """Return the owner that this process is."""
    started = datetime.fromtimestamp(psutil.Process().create_time(), tz=UTC)
    return Owner(host=host_name(), pid=os.getpid(), process_started_at=started)


def open_run(batch_id: uuid.UUID, *, run_id: str, trigger_reason: str, slot: int, batch_size: int) -> PilotRunLedger:
    """Write the row of a batch that starts now."""
    owner = this_process()
    return PilotRunLedger.objects.create(
        batch_id=batch_id,
        run_id=run_id[:64],
        trigger_reason=trigger_reason[:50],
        slot=slot,
        batch_size=batch_size,
        host=owner.host,
        pid=owner.pid,
        process_started_at=owner.process_started_at,
    )


def beat(batch_id: uuid.UUID) -> bool:
    """Say that the batch's owner lives; False when somebody has closed its row."""
    running = PilotRunLedger.objects.filter(batch_id=batch_id, status=RunStatus.RUNNING)
    return bool(running.update(heartbeat_at=Now()))


def close_run(batch_id: uuid.UUID, status: RunStatus, reason: str, counts: Mapping[str, Any]) -> bool:
    """Give a running batch its terminal row; False when it has one already."""
    running = PilotRunLedger.objects.filter(batch_id=batch_id, status=RunStatus.RUNNING)
    return bool(
        running.update(status=status, reason=clean_text(reason, 500), finished_at=Now(), heartbeat_at=Now(), **counts)
    )


def close_dead_runs() -> list[uuid.UUID]:
    """Close every running row whose owner is dead as INTERRUPTED; return the ids of their batches."""
    silent = Q(heartbeat_at__lt=Now() - timedelta(seconds=SILENT_S))
    running = PilotRunLedger.objects.filter(status=RunStatus.RUNNING).annotate(silent=silent)
    dead = [run.batch_id for run in running if run.silent or not lives(_owner_of(run))]
    return [batch for batch in dead if close_run(batch, RunStatus.INTERRUPTED, "its process is gone", {})]


def lives(owner: Owner) -> bool:
    """Whether a process lives as far as this host can tell: of another host's only the heart tells."""
    if owner.host != host_name():
        return True
    try:
        process = psutil.Process(owner.pid)
        started = datetime.fromtimestamp(process.create_time(), tz=UTC)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        # It is there but may not be looked at: its heartbeat alone is believed.
        return True
    return abs((started - owner.process_started_at).total_seconds()) < _SAME_START_S


def _owner_of(run: PilotRunLedger) -> Owner:
    return Owner(host=run.host, pid=run.pid, process_started_at=run.process_started_at)


def prune(older_than_days: int, *, batch_size: int, dry_run: bool = False) -> int:
    """Remove runs that ended more than ``older_than_days`` ago, ``batch_size`` rows a statement; return how many."""
    ended = PilotRunLedger.objects.exclude(status=RunStatus.RUNNING).filter(
        finished_at__lt=timezone.now() - timedelta(days=older_than_days)
    )
    if dry_run:
        return ended.count()
    removed = 0
    while chunk := list(ended.order_by("pk").values_list("pk", flat=True)[:batch_size]):
        removed += PilotRunLedger.objects.filter(pk__in=chunk).delete()[0]
    return removed
