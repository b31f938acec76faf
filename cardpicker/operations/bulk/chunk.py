"""One chunk of a bulk command: a transaction that is taken back unless the run writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from cardpicker.operations.bulk import changes
from cardpicker.operations.bulk.jobs import BulkJob, ChunkResult
from cardpicker.stage_d.locking import retrying_deadlocks
from cardpicker.stage_d.twins import find_twins


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """All that a process needs to do chunks of a job."""

    job: BulkJob
    run_id: str
    writes: bool
    diff: bool


def do_chunk(order: Order, card_ids: Sequence[int]) -> ChunkResult:
    """Do the job to these cards; in a dry run everything happens, and nothing stays."""

    def unit() -> ChunkResult:
        with transaction.atomic():
            reach = find_twins(card_ids) if order.diff else set()
            before = changes.snapshot(reach)
            result = order.job.apply(card_ids, order.run_id)
            told = [*result.changes, *changes.differences(before, changes.snapshot(reach))] if order.diff else ()
            if not order.writes:
                transaction.set_rollback(True)
            return ChunkResult(counts=result.counts, changes=told)

    return retrying_deadlocks(unit) if card_ids else ChunkResult()
