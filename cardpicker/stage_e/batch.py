"""One batch at work: its heartbeat, what it saw, and when it must stop. It knows the database but no gate."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from cardpicker.models import EnvelopeTrip, FetchClass
from cardpicker.stage_c import outcomes as stage_c
from cardpicker.stage_c.hooks import FetchOrigin, StageCReport
from cardpicker.stage_d.run import StageDReport
from cardpicker.stage_e import envelope, ledger, work
from cardpicker.stage_e.concurrency import HeldSlot
from cardpicker.stage_e.fetch_window import record_fetch
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals, host_name

#: Between two heartbeats, each of which also asks whether dispatch has been halted.
HEARTBEAT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """What a batch is given by its dispatch."""

    batch_id: uuid.UUID
    run_id: str
    slot: HeldSlot
    settings: StageESettings
    sample: Callable[[], Vitals]

    @property
    def lease(self) -> work.Lease:
        """The batch's claim on its cards."""
        return work.Lease(owner=self.batch_id, lease_s=self.settings.lease_s, max_attempts=self.settings.max_attempts)


@dataclass(slots=True)
class Batch:
    """The hooks that Stage C calls, and the state that they share."""

    context: BatchContext
    started: float = field(default_factory=time.monotonic)
    trip: EnvelopeTrip | None = None
    stop_reason: str = ""
    slot_lost: bool = False
    peak_rss_mb: float = 0.0
    peak_tree_rss_mb: float = 0.0
    _beaten_at: float = field(default_factory=time.monotonic)

    def settle(self, card_id: int, outcome: stage_c.CardOutcome) -> None:
        """Write how a card's attempt ended.

        Raises:
            LeaseLostError: the batch no longer holds the card; what was to be stored with it must not be.
        """
        if not work.settle(self.context.lease, card_id, outcome):
            if not work.extend(self.context.lease):
                self.stop_reason = self.stop_reason or "its cards were claimed by another batch"
            raise stage_c.LeaseLostError(f"card {card_id} is no longer claimed by this batch")

    def may_write(self) -> bool:
        """Whether the slot is held still; once lost, nothing more is written."""
        if not self.slot_lost and not self.context.slot.still_held():
            self.slot_lost = True
            self.stop_reason = "the dispatch slot was lost"
        return not self.slot_lost

    def should_stop(self) -> bool:
        """Whether anything new may be started."""
        if not self.stop_reason and time.monotonic() - self.started > self.context.settings.batch_deadline_s:
            self.stop_reason = f"the batch ran for {self.context.settings.batch_deadline_s:g} s"
        return bool(self.stop_reason)

    def on_tick(self) -> None:
        """Beat, measure, and see whether the slot is held still and whether dispatch was halted elsewhere."""
        if time.monotonic() - self._beaten_at < HEARTBEAT_S:
            return
        self._beaten_at = time.monotonic()
        self.measure()
        work.extend(self.context.lease)
        if not ledger.beat(self.context.batch_id):
            self.stop_reason = self.stop_reason or "the run was closed by another process"
            return
        self._halt(envelope.open_trip())
        self.may_write()

    def measure(self) -> None:
        """Take a sample of the process tree, and halt when a process has grown past its bar."""
        vitals = self.context.sample()
        self.peak_rss_mb = max(self.peak_rss_mb, vitals.largest_rss_mb)
        self.peak_tree_rss_mb = max(self.peak_tree_rss_mb, vitals.tree_rss_mb)
        breach = envelope.judge_memory(vitals, self.context.settings)
        if breach is not None and self.trip is None:
            self._halt(envelope.store_trip(breach, run_id=self.context.run_id))

    def on_fetch(self, outcome: stage_c.FetchOutcome, origin: FetchOrigin) -> None:
        """Record a fetch in the window that all hosts share; a lockout trips every one of them at once.

        A broken local file says nothing of any destination, and is left out. A file that is gone counts once, not at
        each attempt.
        """
        if not origin.is_remote or (origin.was_gone and isinstance(outcome, stage_c.Gone)):
            return
        match outcome:
            case stage_c.Fetched():
                kind = FetchClass.FETCHED
            case stage_c.Failed():
                kind = FetchClass.FAILED
            case stage_c.Gone():
                kind = FetchClass.GONE
            case stage_c.Unusable():
                kind = FetchClass.UNUSABLE
            case stage_c.Throttled():
                return
            case stage_c.LockedOut(detail=detail):
                self._halt(envelope.trip_lockout(detail, run_id=self.context.run_id))
                return
            case _:
                assert_never(outcome)
        record_fetch(kind, origin.source_id, host_name())

    def _halt(self, trip: EnvelopeTrip | None) -> None:
        if trip is not None and self.trip is None:
            self.trip = trip
            self.stop_reason = self.stop_reason or f"halted: {trip.get_bar_display()}"


def ledger_counts(batch: Batch, read: StageCReport | None, judged: StageDReport | None) -> dict[str, Any]:
    """Return the ledger's counters for what was done so far."""
    c: Mapping[str, int] = read.counts if read is not None else {}
    counts: dict[str, Any] = {
        "elapsed_s": round(time.monotonic() - batch.started, 3),
        "stage_c_stored": c.get("Stored", 0),
        "stage_c_transferred": c.get("Transferred", 0),
        "stage_c_current": c.get("AlreadyCurrent", 0),
        "stage_c_unusable": c.get("Unusable", 0),
        "stage_c_crashed": c.get("Crashed", 0),
        "stage_c_deferred": c.get("Deferred", 0) + c.get("CardGone", 0),
        "fetch_throttled": c.get("Throttled", 0) + c.get("LockedOut", 0),
        "fetch_failed": c.get("Failed", 0) + c.get("Gone", 0),
        "peak_rss_mb": round(batch.peak_rss_mb, 1),
        "peak_tree_rss_mb": round(batch.peak_tree_rss_mb, 1),
        "lockout_trip": batch.trip,
    }
    yields: dict[str, Any] = {"extractors": dict(read.extractor_yield)} if read is not None else {}
    if judged is not None:
        calculators = {name: counter.votes_written for name, counter in judged.calculators.items()}
        counts["stage_d_votes"] = sum(calculators.values())
        counts["already_voted"] = sum(counter.already_voted for counter in judged.calculators.values())
        counts["stage_d_review"] = judged.routed_to_review
        counts["stage_d_resolved"] = judged.resolved
        yields["calculators"] = calculators
    counts["yields"] = yields
    return counts
