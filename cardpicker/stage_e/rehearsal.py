"""A rehearsal of a pass: everything runs, through the same gates and over the same images, and nothing of it is stored.

Images are read first, with no transaction open; then evidence, votes and consensus of the batch are written and rolled
back. Only a trip is kept, because it is a fact about the host or the destination and not about the rehearsal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, assert_never

from django.db import transaction

from cardpicker.models import CatalogPass, EnvelopeTrip
from cardpicker.stage_c.hooks import FetchOrigin, StageCHooks, Store
from cardpicker.stage_c.outcomes import CardOutcome, FetchOutcome, LockedOut, Stored, Transferred
from cardpicker.stage_c.persist import persist_evidence
from cardpicker.stage_c.run import run_stage_c
from cardpicker.stage_c.transfer import transfer_evidence
from cardpicker.stage_d.run import StageDReport, run_stage_d
from cardpicker.stage_e import envelope
from cardpicker.stage_e.batch import HEARTBEAT_S
from cardpicker.stage_e.concurrency import HeldSlot, SlotConnectionError, try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import DispatchOptions, slot_settings
from cardpicker.stage_e.fetch_window import read_fetch_window
from cardpicker.stage_e.outcomes import DispatchOutcome, DispatchStatus
from cardpicker.stage_e.passes import PassLimits, PassProgress, PassReason, PassReport, cards_of
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals

RUN_ID = "rehearsal"


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Whether dispatch has been halted since the batch began: asked as often as a run asks, and heeded like there."""

    settings: StageESettings
    sample: Callable[[], Vitals]
    slot: HeldSlot
    trip: EnvelopeTrip | None = None
    slot_lost: bool = False
    asked_at: float = field(default_factory=time.monotonic)

    def on_tick(self) -> None:
        """Ask whether somebody halted dispatch, or a process of this batch has grown past its bar."""
        if self.trip is not None or time.monotonic() - self.asked_at < HEARTBEAT_S:
            return
        self.asked_at = time.monotonic()
        breach = envelope.judge_memory(self.sample(), self.settings)
        self.trip = envelope.open_trip() if breach is None else envelope.store_trip(breach, run_id=RUN_ID)

    def on_fetch(self, outcome: FetchOutcome, origin: FetchOrigin) -> None:
        """Keep a lockout, which is a fact about the destination."""
        if origin.is_remote and isinstance(outcome, LockedOut):
            self.trip = envelope.trip_lockout(outcome.detail, run_id=RUN_ID)

    def may_write(self) -> bool:
        """Whether the slot is held still."""
        self.slot_lost = self.slot_lost or not self.slot.still_held()
        return not self.slot_lost

    def should_stop(self) -> bool:
        """Whether nothing new may be started."""
        return self.trip is not None

    @property
    def status(self) -> DispatchStatus:
        """How the batch ended, as of a run."""
        if self.slot_lost:
            return DispatchStatus.INTERRUPTED
        return DispatchStatus.COMPLETED if self.trip is None else DispatchStatus.COMPLETED_WITH_TRIP


@dataclass(slots=True)
class _Held:
    """What would have been stored, as calls to be made in a transaction that is rolled back."""

    calls: list[Callable[[], Any]] = field(default_factory=list)

    def persist(self, card_id: int, *arguments: Any, settle: Any, **named: Any) -> CardOutcome:
        self.calls.append(partial(persist_evidence, card_id, *arguments, settle=_leave, **named))
        return Stored()

    def transfer(
        self, card_id: int, image_version: str, checksums: Any, from_card_id: int, *, settle: Any, **named: Any
    ) -> CardOutcome:
        self.calls.append(
            partial(transfer_evidence, card_id, image_version, checksums, from_card_id, settle=_leave, **named)
        )
        return Transferred(from_card_id=from_card_id)


def rehearse_pass(
    walk: CatalogPass,
    options: DispatchOptions,
    limits: PassLimits,
    on_batch: Callable[[PassProgress], None] = lambda _: None,
) -> PassReport:
    """Walk over the scope of ``walk``, which need not be stored, from its start, and store nothing."""
    started, done, batches, last = time.monotonic(), 0, 0, 0
    left = cards_of(walk).count()
    while True:
        ahead = cards_of(walk).filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)
        chunk = list(ahead[: options.settings.micro_batch_size])
        if not chunk:
            return _report(walk, PassReason.COMPLETE, "", done, batches)
        if limits.max_batches is not None and batches >= limits.max_batches:
            return _report(walk, PassReason.BATCH_LIMIT, "", done, batches)
        outcome = rehearse_batch(chunk, options, rereads=walk.reextract)
        stopped = _stops(outcome.status)
        if stopped is not None:
            return _report(walk, stopped, outcome.detail, done, batches)
        batches, done, left, last = batches + 1, done + len(chunk), max(0, left - len(chunk)), chunk[-1]
        pace = done / (time.monotonic() - started)
        on_batch(PassProgress(done=done, left=left, cards_per_s=pace, outcome=outcome))


def rehearse_batch(card_ids: Sequence[int], options: DispatchOptions, *, rereads: bool = False) -> DispatchOutcome:
    """Read and judge cards, due or not, and store nothing."""
    started = time.monotonic()
    if not options.settings.streaming_enabled:
        return DispatchOutcome(status=DispatchStatus.DISABLED, run_id="", detail="STAGE_E_STREAMING_ENABLED is off")
    standing = envelope.open_trip()
    if standing is not None:
        return DispatchOutcome(status=DispatchStatus.HALTED_OPEN_TRIP, run_id="", detail=str(standing))
    try:
        with try_acquire_dispatch_slot(slot_settings(options.settings)) as slot:
            if slot is None:
                return DispatchOutcome(status=DispatchStatus.THROTTLED, run_id="", detail="all slots are taken")
            window = read_fetch_window(options.settings.fetch_failure_window)
            breach = envelope.judge(options.sample(), window, options.settings)
            if breach is not None:
                trip = envelope.store_trip(breach, run_id=RUN_ID)
                return DispatchOutcome(
                    status=DispatchStatus.HALTED_NEW_TRIP, run_id="", trip_id=trip.pk, detail=breach.detail
                )
            watch = _Watch(settings=options.settings, sample=options.sample, slot=slot)
            counts = _rehearse(card_ids, options, watch, rereads)
    except SlotConnectionError as error:
        return DispatchOutcome(status=DispatchStatus.THROTTLED, run_id="", detail=str(error))
    return DispatchOutcome(
        status=watch.status,
        run_id="",
        batch_size=len(card_ids),
        elapsed_s=time.monotonic() - started,
        trip_id=watch.trip.pk if watch.trip is not None else None,
        detail="the dispatch slot was lost" if watch.slot_lost else str(watch.trip or ""),
        counts=counts,
    )


def _rehearse(card_ids: Sequence[int], options: DispatchOptions, watch: _Watch, rereads: bool) -> dict[str, int]:
    held = _Held()
    hooks = StageCHooks(
        settle=_leave,
        may_write=watch.may_write,
        should_stop=watch.should_stop,
        on_tick=watch.on_tick,
        on_fetch=watch.on_fetch,
        store=Store(persist=held.persist, transfer=held.transfer, take_back=lambda card_id, sha256: None),
        rereads=rereads,
        standing=options.standing,
    )
    read = run_stage_c(card_ids, run_id=RUN_ID, settings=options.stage_c, hooks=hooks, parts=options.parts)
    with transaction.atomic():
        for call in held.calls:
            call()
        judged = run_stage_d(read.evidence_card_ids, run_id=RUN_ID)
        transaction.set_rollback(True)
    return _counts(read.counts, judged)


def _counts(read: Any, judged: StageDReport) -> dict[str, int]:
    return {
        "stage_c_stored": read.get("Stored", 0),
        "stage_c_unusable": read.get("Unusable", 0),
        "stage_d_votes": sum(each.votes_written for each in judged.calculators.values()),
        "already_voted": sum(each.already_voted for each in judged.calculators.values()),
        "stage_d_review": judged.routed_to_review,
    }


def _leave(card_id: int, outcome: CardOutcome, /) -> None:
    """Settle nothing: a rehearsal has claimed nothing."""


def _stops(status: DispatchStatus) -> PassReason | None:
    """Return why a rehearsal must end after a batch of this status, or None."""
    match status:
        case DispatchStatus.COMPLETED | DispatchStatus.EMPTY:
            return None
        case DispatchStatus.HALTED_OPEN_TRIP | DispatchStatus.HALTED_NEW_TRIP | DispatchStatus.COMPLETED_WITH_TRIP:
            return PassReason.HALTED
        case DispatchStatus.THROTTLED:
            return PassReason.THROTTLED_OUT
        case DispatchStatus.INTERRUPTED:
            return PassReason.INTERRUPTED
        case DispatchStatus.DISABLED:
            return PassReason.DISABLED
        case _:
            assert_never(status)


def _report(walk: CatalogPass, reason: PassReason, detail: str, done: int, batches: int) -> PassReport:
    left = max(0, cards_of(walk).count() - done)
    return PassReport(name=walk.name, reason=reason, detail=detail, done=done, left=left, batches=batches)
