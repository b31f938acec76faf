"""Dispatching one micro-batch: the gates in their order, then Stage C, Stage D, and a ledger row that always ends.

Each gate returns without a trace of work. Nothing here waits: a dispatch that may not run says so and is done.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.conf import settings as django_settings
from django.db import close_old_connections, connection, transaction

from cardpicker.models import RunStatus, StageEThrottleCounter
from cardpicker.stage_c.conveyor import StandingPool
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_c.run import StageCHooks, StageCReport, run_stage_c
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_d.run import StageDReport, run_stage_d
from cardpicker.stage_e import envelope, ledger, requests, work
from cardpicker.stage_e.batch import Batch, BatchContext, ledger_counts
from cardpicker.stage_e.blame import is_cards_fault, lost_database, status_of
from cardpicker.stage_e.burial import bury_runs
from cardpicker.stage_e.concurrency import HeldSlot, SlotConnectionError, SlotSettings, try_acquire_dispatch_slot
from cardpicker.stage_e.fetch_window import read_fetch_window
from cardpicker.stage_e.outcomes import DispatchOutcome, DispatchStatus
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals, host_name, sample_vitals

logger = logging.getLogger(__name__)

#: Seconds of silence, beside those of one statement, that a batch may need for its steps.
SILENCE_GRACE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchOptions:
    """What a driver may set beside the cards: settings, how the host is measured, what reads an image."""

    settings: StageESettings
    stage_c: StageCSettings
    sample: Callable[[], Vitals] = sample_vitals
    parts: ComputeParts | None = None  #: None: the registered extractors.
    standing: StandingPool | None = None  #: Compute processes that outlive a dispatch; None: each makes its own.


def default_options() -> DispatchOptions:
    """Return the options that the environment sets."""
    return DispatchOptions(settings=django_settings.STAGE_E, stage_c=django_settings.STAGE_C, standing=_standing_pool())


@functools.cache
def _standing_pool() -> StandingPool:
    """Return this process's own: its compute processes and their OCR engines are made ready once, not per batch."""
    return StandingPool()


def new_run_id(trigger_reason: str) -> str:
    """Return an id for a run of one or more batches; it says why it started and never repeats."""
    return f"{trigger_reason[:30]}-{uuid.uuid4().hex[:12]}"


def slot_settings(settings: StageESettings) -> SlotSettings:
    """Return where this host's slots are: Django's own server, unless a direct address is set."""
    if settings.lock_dsn:
        connect: dict[str, Any] = {"dsn": settings.lock_dsn, **connection.settings_dict["OPTIONS"]}
    else:
        connect = connection.get_connection_params()
        for adapter in ("cursor_factory", "assume_role", "isolation_level", "server_side_binding"):
            connect.pop(adapter, None)
    connect |= connection.settings_dict["SLOT_OPTIONS"]
    return SlotSettings(connect=connect, slots=settings.slots, scope=host_name())


def _batch_slot(settings: StageESettings) -> SlotSettings:
    """Return this host's slots as a batch holds them: it asks for its own between any two statements and steps.

    A holder that is silent for longer was stopped, or is behind something that passes nothing on and ends no connection.
    """
    silence_s = connection.settings_dict["STATEMENT_TIMEOUT_S"] + SILENCE_GRACE_S
    return dataclasses.replace(slot_settings(settings), silence_s=silence_s)


def dispatch_for_card(card_id: int | None, reason: str) -> str:
    """Run one dispatch for a queued request; the task's result is the outcome's status.

    The card is only asked to be among the first: one that is gone, done or claimed elsewhere costs nothing.
    """
    close_old_connections()
    outcome = dispatch_micro_batch([card_id] if card_id is not None else None, trigger_reason=reason)
    logger.info(
        "dispatch %s: %s, %d cards, %.1f s", outcome.run_id, outcome.status, outcome.batch_size, outcome.elapsed_s
    )
    return str(outcome.status)


def dispatch_micro_batch(
    card_ids: Collection[int] | None = None,
    trigger_reason: str = "event",
    run_id: str | None = None,
    batch_size: int | None = None,
    options: DispatchOptions | None = None,
) -> DispatchOutcome:
    """Claim up to ``batch_size`` due cards, read their images, judge them, and record it all.

    Args:
        card_ids: cards to claim first, if they are due; the oldest due cards fill the batch.
        trigger_reason: why, for the ledger.
        run_id: the run that this batch belongs to; each batch has an id of its own beside it.

    Raises:
        TransactionPoolerError: the slot's connection goes through a pooler.
    """
    options = options or default_options()
    settings = options.settings
    run_id = run_id or new_run_id(trigger_reason)
    if not settings.streaming_enabled:
        return DispatchOutcome(status=DispatchStatus.DISABLED, run_id=run_id, detail="STAGE_E_STREAMING_ENABLED is off")
    standing = envelope.open_trip()
    if standing is not None:
        return DispatchOutcome(
            status=DispatchStatus.HALTED_OPEN_TRIP, run_id=run_id, trip_id=standing.pk, detail=str(standing)
        )
    try:
        with try_acquire_dispatch_slot(_batch_slot(settings)) as slot:
            if slot is None:
                return _throttled(run_id, f"all {settings.slots} slots of this host are taken")
            outcome = _dispatch_in_slot(slot, card_ids or (), trigger_reason, run_id, batch_size, options)
    except SlotConnectionError as error:
        logger.warning("%s", error)
        return _throttled(run_id, str(error))
    if outcome.status is DispatchStatus.COMPLETED and work.is_due():
        requests.request_dispatch("continue")
    return outcome


def _throttled(run_id: str, detail: str) -> DispatchOutcome:
    StageEThrottleCounter.increment()
    return DispatchOutcome(status=DispatchStatus.THROTTLED, run_id=run_id, detail=detail)


def _dispatch_in_slot(
    slot: HeldSlot,
    card_ids: Collection[int],
    trigger_reason: str,
    run_id: str,
    batch_size: int | None,
    options: DispatchOptions,
) -> DispatchOutcome:
    settings = options.settings
    breach = envelope.judge(options.sample(), read_fetch_window(settings.fetch_failure_window), settings)
    if breach is not None:
        trip = envelope.store_trip(breach, run_id=run_id)
        return DispatchOutcome(
            status=DispatchStatus.HALTED_NEW_TRIP, run_id=run_id, trip_id=trip.pk, detail=breach.detail
        )
    work.expire(settings.max_attempts, owners=bury_runs())
    context = BatchContext(batch_id=uuid.uuid4(), run_id=run_id, slot=slot, settings=settings, sample=options.sample)
    with transaction.atomic():
        claimed = work.claim(context.lease, limit=batch_size or settings.micro_batch_size, seeds=card_ids)
        if not claimed:
            return DispatchOutcome(status=DispatchStatus.EMPTY, run_id=run_id)
        ledger.open_run(
            context.batch_id, run_id=run_id, trigger_reason=trigger_reason, slot=slot, batch_size=len(claimed)
        )
    return _Run(context, options).complete(claimed)


class _Run:
    """A batch from its claim to its terminal row."""

    def __init__(self, context: BatchContext, options: DispatchOptions) -> None:
        self.context = context
        self.options = options
        self.batch = Batch(context)
        self.read: StageCReport | None = None
        self.judged: StageDReport | None = None

    def complete(self, claimed: list[int]) -> DispatchOutcome:
        try:
            self._work(claimed)
            status, reason = self._verdict()
            return self._close(claimed, status, reason)
        except BaseException as error:
            # Whatever ends the batch, its row ends too: the claim is given back and the error goes on.
            self._close_failed(error)
            raise

    def _work(self, claimed: list[int]) -> None:
        hooks = StageCHooks(
            settle=self.batch.settle,
            may_write=self.batch.may_write,
            should_stop=self.batch.should_stop,
            on_tick=self.batch.on_tick,
            on_fetch=self.batch.on_fetch,
            standing=self.options.standing,
        )
        self.read = run_stage_c(
            claimed, run_id=self.context.run_id, settings=self.options.stage_c, hooks=hooks, parts=self.options.parts
        )
        readable = self.read.evidence_card_ids
        if readable and self.batch.may_write():
            work.extend(self.context.lease)
            # What another batch has taken over meanwhile is judged there.
            mine = work.still_claimed(self.context.lease, readable)
            self.judged = run_stage_d(mine, run_id=self.context.run_id)
            work.close_done(self.context.lease, mine)

    def _verdict(self) -> tuple[RunStatus, str]:
        if self.batch.slot_lost:
            return RunStatus.INTERRUPTED, self.batch.stop_reason
        return RunStatus.COMPLETED, self.batch.stop_reason

    def _close(self, claimed: list[int], status: RunStatus, reason: str) -> DispatchOutcome:
        counts = ledger_counts(self.batch, self.read, self.judged)
        with transaction.atomic():
            work.release(self.context.batch_id, reason or "not reached")
            mine = ledger.close_run(self.context.batch_id, status, reason, counts)
        if not mine or status is RunStatus.INTERRUPTED:
            outcome = DispatchStatus.INTERRUPTED
        else:
            outcome = DispatchStatus.COMPLETED_WITH_TRIP if self.batch.trip else DispatchStatus.COMPLETED
        return DispatchOutcome(
            status=outcome,
            run_id=self.context.run_id,
            batch_size=len(claimed),
            elapsed_s=counts["elapsed_s"],
            trip_id=self.batch.trip.pk if self.batch.trip else None,
            detail=reason,
            counts={key: value for key, value in counts.items() if isinstance(value, int)},
        )

    def _close_failed(self, error: BaseException) -> None:
        counts = ledger_counts(self.batch, self.read, self.judged)
        reason = f"{type(error).__name__}: {error}"
        # The session may be what was lost, and the server be there.
        close_old_connections()
        try:
            with transaction.atomic():
                if is_cards_fault(error):
                    work.expire(self.context.settings.max_attempts, owners=[self.context.batch_id])
                else:
                    work.release(self.context.batch_id, reason)
                ledger.close_run(self.context.batch_id, status_of(error), reason, counts)
        except Exception as another:
            # The database may be what failed. The row is closed, and the claim ended, by whoever finds this dead.
            surprise = None if lost_database(another) else another
            logger.error("batch %s could not be closed: %s", self.context.batch_id, another, exc_info=surprise)
