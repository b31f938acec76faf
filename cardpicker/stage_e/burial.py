"""Closing the runs that cannot write any more: their process is dead, or their slot is nobody's or somebody else's.

A run holds its slot from before its row is written until after its row has ended, and writes nothing without it. So the
server's own locks tell at once what a heart that stopped tells only after a while: of a worker that lives on although its
run was cut off, and of other hosts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from django.db import connection

from cardpicker.models import PilotRunLedger, RunStatus
from cardpicker.stage_e import ledger
from cardpicker.stage_e.concurrency import SlotSettings

#: In any database of the server: the slot's address may name another one than the application's.
_HELD = """
SELECT classid::bigint, objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
"""


def bury_runs() -> list[uuid.UUID]:
    """Close every running row that is dead as INTERRUPTED; return the ids of their batches."""
    return [*ledger.close_dead_runs(), *_close(_without_slot(), "its slot was lost")]


def _close(batches: Iterator[uuid.UUID], reason: str) -> Iterator[uuid.UUID]:
    return (batch for batch in batches if ledger.close_run(batch, RunStatus.INTERRUPTED, reason, {}))


def _without_slot() -> Iterator[uuid.UUID]:
    """Yield the running batches whose slot is free, or held for a younger run."""
    # The rows first: one that is seen here had its slot when it was written, and ends before it gives the slot back.
    running = list(PilotRunLedger.objects.filter(status=RunStatus.RUNNING).order_by("-pk"))
    if not running:
        return
    with connection.cursor() as cursor:
        cursor.execute(_HELD)
        held = {(int(namespace), int(index)) for namespace, index in cursor.fetchall()}
    for run in running:
        slot = (SlotSettings(connect={}, slots=1, scope=run.host).namespace % 2**32, run.slot)
        if slot not in held:
            yield run.batch_id
        held.discard(slot)
