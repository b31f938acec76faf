"""Stage C of one batch: what need not be fetched is copied, the rest is fetched, read and stored, card by card.

Results are stored in the cards' order, each in a transaction of its own. One representative of byte-identical cards is
read; the others follow it. Only ``should_stop``, a lockout, throttled fetches or a lost slot end a batch early.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from cardpicker.stage_c import conveyor
from cardpicker.stage_c.departures import Departures, Flight, conveyor_settings
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.hooks import ComputeParts, StageCHooks, StageCReport
from cardpicker.stage_c.outcomes import AlreadyCurrent, CardGone, Crashed, Deferred, Unusable
from cardpicker.stage_c.plan import CardPlan
from cardpicker.stage_c.results import Arrived, EngineGone, Missed, read_result
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_c.settlement import Settlement
from cardpicker.stage_c.transfer import find_donors
from cardpicker.stage_c.weighing import Weighing


class StageCBatch:
    """A batch at work."""

    def __init__(
        self, run_id: str, card_ids: Iterable[int], settings: StageCSettings, hooks: StageCHooks, departures: Departures
    ) -> None:
        self._settings = settings
        self._hooks = hooks
        self._departures = departures
        self._settlement = Settlement(run_id, card_ids, hooks, departures)
        self._weighing = Weighing(hooks, departures, self._settlement)
        self._fetched = 0

    def is_over(self) -> bool:
        """Whether nothing new may begin."""
        if not self._settlement.over and self._hooks.should_stop():
            self._settlement.over = "the batch was stopped"
        return bool(self._settlement.over) or self._departures.is_stopped

    def settle_without_fetch(self, plans: Sequence[CardPlan]) -> None:
        """Settle what is gone, current, or to be copied; line up the rest, one representative for equal bytes."""
        found = {plan.card_id for plan in plans}
        for card_id in [card_id for card_id in self._settlement.open if card_id not in found]:
            self._settlement.settle(card_id, CardGone(detail="deleted, or removed from its source"))
        unread = [] if self._hooks.rereads else [plan for plan in plans if not plan.is_current]
        donors = find_donors(plan.checksums for plan in unread if plan.checksums.key)
        leaders: dict[str, CardPlan] = {}
        for plan in plans:
            if self.is_over():
                return
            self._hooks.on_tick()
            key = plan.checksums.key
            if plan.is_current:
                self._settlement.settle(plan.card_id, AlreadyCurrent())
            elif plan.checksums in donors and self._settlement.transfer(plan, donors[plan.checksums]):
                continue
            elif key in leaders:
                self._settlement.follow(leaders[key], plan)
            else:
                if key:
                    leaders[key] = plan
                self._departures.waiting.append(plan)

    def convey(self, parts: ComputeParts) -> None:
        """Fetch, read and store the cards that wait."""
        results = conveyor.run(
            self._departures.flights(),
            self._departures.fetch,
            parts.compute,
            settings=conveyor_settings(self._settings, parts),
            initializer=parts.initializer,
            initargs=parts.initargs,
            should_stop=self.is_over,
            on_tick=self._hooks.on_tick,
            standing=self._hooks.standing,
        )
        with contextlib.closing(results):
            for result in results:
                self._take(result)
                self._weighing.resolve()
                if self._settlement.slot_lost:
                    return
        self._weighing.finish()

    def close(self) -> StageCReport:
        """Defer what is still open, and report."""
        settlement = self._settlement
        reason = Deferred(detail=settlement.over or self._departures.stopped_because or "not reached")
        for card_id in list(settlement.open):
            if settlement.slot_lost or not settlement.settle(card_id, reason):
                settlement.record(card_id, reason)
        return StageCReport(
            counts=dict(settlement.counts),
            evidence_card_ids=tuple(settlement.evidence),
            locked_out=self._weighing.locked_out,
            extractor_yield=dict(settlement.extractor_yield),
            fetched=self._fetched,
        )

    def _take(self, result: conveyor.Conveyed[Flight]) -> None:
        flight = result.item
        if self._weighing.is_canary(flight.plan.card_id):
            self._fetched += isinstance(result.outcome, conveyor.Computed)
            self._weighing.hear_canary(flight, result.outcome)
            return
        match read_result(result):
            case Missed(outcome=missed):
                self._weighing.missed(flight, missed)
            case Arrived(outcome=CardEvidence() as evidence):
                self._arrived(flight)
                self._weighing.read(flight, evidence)
            case Arrived(outcome=Unusable() | Crashed() as outcome):
                self._arrived(flight)
                self._settlement.settle_alike(flight.plan, outcome)
            case EngineGone(detail=detail):
                self._arrived(flight)
                self._settlement.end(detail)  # Nothing is known of this image: it is deferred with the rest.
            case None:
                pass  # It stays open, and is deferred with the rest.

    def _arrived(self, flight: Flight) -> None:
        self._fetched += 1
        self._weighing.arrived(flight)
