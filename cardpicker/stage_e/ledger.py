"""The record of runs: one row a batch, believed only while its owner lives, closed by whoever finds the owner dead."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
from django.db.models.functions import Now
from django.utils import timezone

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
        running.update(
            status=status, reason=reason[:500].replace("\0", ""), finished_at=Now(), heartbeat_at=Now(), **counts
        )
    )


def close_dead_runs() -> list[uuid.UUID]:
    """Close every running row whose owner is dead as INTERRUPTED; return the ids of their batches."""
    dead = [run.batch_id for run in PilotRunLedger.objects.filter(status=RunStatus.RUNNING) if not is_alive(run)]
    return [batch for batch in dead if close_run(batch, RunStatus.INTERRUPTED, "its process is gone", {})]


def is_alive(run: PilotRunLedger) -> bool:
    """Whether the owner of a running row lives: its process on this host, its heartbeat elsewhere."""
    if timezone.now() - run.heartbeat_at > timedelta(seconds=SILENT_S):
        return False
    if run.host != host_name():
        return True
    try:
        process = psutil.Process(run.pid)
        started = datetime.fromtimestamp(process.create_time(), tz=UTC)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
    except psutil.Error:
        return False
    return abs((started - run.process_started_at).total_seconds()) < _SAME_START_S
