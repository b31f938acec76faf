"""Running a bulk command: chunk by chunk, each one transaction, here or in processes; the record advances in order.

A dry run does everything that a real one does and takes each chunk back. A run that is killed goes on with the first
chunk that is not on record: doing a chunk twice changes nothing.
"""

from __future__ import annotations

import itertools
import pickle
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cardpicker.operations.bulk import lane, runs
from cardpicker.operations.bulk.chunk import Order, do_chunk
from cardpicker.operations.bulk.jobs import BulkError, BulkJob, ChunkResult
from cardpicker.operations.bulk.runs import BulkOptions
from cardpicker.operations.bulk.walk import Chunk, cards_in_scope, chunks
from cardpicker.stage_c import conveyor

CHUNK_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReport:
    """What a run did so far, all its parts together."""

    run_id: str
    writes: bool
    cards: int
    counts: Mapping[str, int]
    finished: bool
    cards_per_s: float  #: Of this part.


def run_bulk(
    job: BulkJob,
    options: BulkOptions,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_changes: Callable[[Sequence[Mapping[str, Any]]], None] = lambda changes: None,
) -> BulkReport:
    """Walk on from where the last run of the same kind stopped, to the end or a limit.

    Args:
        on_progress: told the cards done and the cards in all after each chunk.
        on_changes: given each chunk's changes, if ``options.diff`` asks for them or the job itself reports them.

    Raises:
        BulkError: it may not write yet, or somebody else goes on with the same run.
    """
    run = runs.open_run(job, options)
    started, done_before = time.monotonic(), run.cards_done
    in_scope = cards_in_scope(job)
    total = run.cards_done + len(in_scope) - bisect_right(in_scope, run.last_card_id)
    order = Order(job=job, run_id=run.run_id, writes=options.writes, diff=options.diff)
    ahead = itertools.islice(chunks(in_scope, after=run.last_card_id, size=options.chunk_size), options.max_chunks)
    for chunk, result in _here(order, ahead) if options.workers == 1 else _in_processes(order, ahead, options.workers):
        on_changes(result.changes)
        runs.advance(run, chunk.last_card_id, len(chunk.card_ids), result.counts)
        on_progress(run.cards_done, total)
    if not in_scope or in_scope[-1] <= run.last_card_id:
        runs.finish(run)
    elapsed = time.monotonic() - started
    return BulkReport(
        run_id=run.run_id,
        writes=run.writes,
        cards=run.cards_done,
        counts=run.counts,
        finished=run.finished_at is not None,
        cards_per_s=(run.cards_done - done_before) / elapsed if elapsed else 0.0,
    )


def _here(order: Order, ahead: Iterable[Chunk]) -> Iterator[tuple[Chunk, ChunkResult]]:
    for chunk in ahead:
        yield chunk, do_chunk(order, chunk.card_ids)


def _in_processes(order: Order, ahead: Iterable[Chunk], workers: int) -> Iterator[tuple[Chunk, ChunkResult]]:
    """Do chunks in processes that each have a database session of their own and die with this one."""
    settings = conveyor.ConveyorSettings(
        fetch_threads=1,
        compute_workers=workers,
        queue_depth=workers + 1,
        compute_timeout_s=CHUNK_TIMEOUT_S,
        tasks_per_worker=1_000_000,
        worker_rss_mb=2_000,
    )
    line = conveyor.run(
        ahead,
        lambda chunk: conveyor.Payload(body=pickle.dumps(chunk.card_ids), context=order),
        lane.work,
        settings=settings,
        initializer=lane.start,
        initargs=(str(connection.settings_dict["NAME"]),),
    )
    for conveyed in line:
        if not isinstance(conveyed.outcome, conveyor.Computed):
            detail = getattr(conveyed.outcome, "detail", conveyed.outcome)
            raise BulkError(f"The chunk up to card {conveyed.item.last_card_id} failed; run again to go on: {detail}")
        yield conveyed.item, conveyed.outcome.value
