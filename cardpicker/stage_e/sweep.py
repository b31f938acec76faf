"""The reconciler: finds from the data itself what is due, buries dead runs, ends old leases, and drains.

Safe beside everything and at any moment: each step is idempotent, and the draining takes a slot like any dispatch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from cardpicker.models import Card, FetchOutcome
from cardpicker.stage_c.currency import current_evidence
from cardpicker.stage_d.registry import stage_d_manifest
from cardpicker.stage_e import requests, work
from cardpicker.stage_e.burial import bury_runs
from cardpicker.stage_e.concurrency import SlotSettings, try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import (
    DispatchOptions,
    default_options,
    dispatch_micro_batch,
    new_run_id,
    slot_settings,
)
from cardpicker.stage_e.outcomes import DispatchOutcome, DispatchStatus

ALREADY_RUNNING = "skipped: another sweep is at work"
RECONCILED_AT_ONCE = 5_000
WINDOW_KEPT = timedelta(days=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What a sweep put right before it drained."""

    runs_closed: int
    leases_ended: int
    requests_dropped: int
    made_due: int
    window_trimmed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """A whole sweep: what was put right, how many batches ran, and on which status it stopped."""

    reconciled: Reconciled
    batches: int
    cards: int
    status: DispatchStatus
    detail: str
    limit_reached: bool


def reconcile(max_attempts: int) -> Reconciled:
    """Close dead runs, end leases that have run out, mark due what the data says is due, trim the fetch window."""
    dead = bury_runs()
    return Reconciled(
        runs_closed=len(dead),
        leases_ended=work.expire(max_attempts, owners=dead),
        requests_dropped=requests.drop_stranded_requests(),
        made_due=_mark_unfinished_due(),
        window_trimmed=FetchOutcome.objects.filter(at__lt=Now() - WINDOW_KEPT).delete()[0],
    )


def sweep(
    options: DispatchOptions,
    *,
    max_batches: int | None = None,
    on_reconciled: Callable[[Reconciled], None] = lambda _: None,
    on_batch: Callable[[DispatchOutcome], None] = lambda _: None,
) -> SweepReport | None:
    """Reconcile, then dispatch batch after batch until nothing is due, no slot is free, or dispatch is halted.

    Returns:
        None: another sweep is at work.

    Raises:
        SlotConnectionError: the connection that keeps sweeps apart cannot be opened.
    """
    with try_acquire_dispatch_slot(_sole_sweep(options)) as alone:
        if alone is None:
            return None
        return _sweep(options, max_batches, on_reconciled, on_batch)


def scheduled_sweep() -> str:
    """Reconcile and ask for dispatches: what django-q2's schedule runs. It drains nothing itself, so it is short."""
    options = default_options()
    if not options.settings.streaming_enabled:
        return str(DispatchStatus.DISABLED)
    with try_acquire_dispatch_slot(_sole_sweep(options)) as alone:
        if alone is None:
            return ALREADY_RUNNING
        done = reconcile(options.settings.max_attempts)
        if work.is_due():
            requests.request_dispatch("sweep")
    return f"{done.runs_closed} runs closed, {done.leases_ended} leases ended, {done.made_due} made due"


def _sole_sweep(options: DispatchOptions) -> SlotSettings:
    """One sweep at a time on all hosts, kept apart by the same primitive that counts dispatches."""
    slot = slot_settings(options.settings)
    return dataclasses.replace(slot, slots=1, scope="sweep of every host", application_name="cardpicker-sweep")


def _sweep(
    options: DispatchOptions,
    max_batches: int | None,
    on_reconciled: Callable[[Reconciled], None],
    on_batch: Callable[[DispatchOutcome], None],
) -> SweepReport:
    reconciled = reconcile(options.settings.max_attempts)
    on_reconciled(reconciled)
    run_id = new_run_id("sweep")
    batches = cards = 0
    while True:
        if max_batches is not None and batches >= max_batches:
            return _report(reconciled, batches, cards, DispatchStatus.COMPLETED, "", limit_reached=work.is_due())
        outcome = dispatch_micro_batch(trigger_reason="sweep", run_id=run_id, options=options)
        if outcome.status is not DispatchStatus.COMPLETED:
            if outcome.batch_size:
                on_batch(outcome)
                batches, cards = batches + 1, cards + outcome.batch_size
            return _report(reconciled, batches, cards, outcome.status, outcome.detail, limit_reached=False)
        batches, cards = batches + 1, cards + outcome.batch_size
        on_batch(outcome)


def _report(
    reconciled: Reconciled, batches: int, cards: int, status: DispatchStatus, detail: str, *, limit_reached: bool
) -> SweepReport:
    return SweepReport(
        reconciled=reconciled,
        batches=batches,
        cards=cards,
        status=status,
        detail=detail,
        limit_reached=limit_reached,
    )


def _mark_unfinished_due() -> int:
    """Mark due, a bounded number at a time, listed cards that are idle and lack current, judged evidence."""
    judged = current_evidence().filter(judged_by=stage_d_manifest())
    unfinished = Card.objects.present().filter(
        ~Exists(judged.filter(card=OuterRef("pk"))),
        work__due_at__isnull=True,
        work__lease_owner__isnull=True,
        work__quarantined_at__isnull=True,
    )
    marked = 0
    while card_ids := list(unfinished.order_by("pk").values_list("pk", flat=True)[:RECONCILED_AT_ONCE]):
        changed = work.mark_due(card_ids, "reconciled")
        marked += changed
        if not changed:
            break
    return marked
