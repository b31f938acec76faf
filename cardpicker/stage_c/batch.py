"""Stage C of one batch: what need not be fetched is copied, the rest is fetched, read and stored, card by card.

Results are stored in the cards' order, each in a transaction of its own. One representative of byte-identical cards is
read; the others follow it. Only ``should_stop``, a lockout, throttled fetches or a lost slot end a batch early.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from cardpicker.stage_c import conveyor
from cardpicker.stage_c.canaries import next_canary
from cardpicker.stage_c.departures import Departures, Flight, conveyor_settings
from cardpicker.stage_c.doubt import Doubt, Held
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.fetch.refusals import RefusalStreak
from cardpicker.stage_c.hooks import ComputeParts, StageCHooks, StageCReport, carries_something
from cardpicker.stage_c.outcomes import (
    AlreadyCurrent,
    CardGone,
    CardOutcome,
    Crashed,
    Deferred,
    Fetched,
    FetchOutcome,
    LockedOut,
    Stored,
    Throttled,
    Transferred,
    Unusable,
)
from cardpicker.stage_c.persist import settle_alone
from cardpicker.stage_c.plan import CardPlan
from cardpicker.stage_c.renditions import larger_dpi
from cardpicker.stage_c.results import Arrived, EngineGone, Missed, read_result
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_c.transfer import find_donors

THROTTLED_IN_A_ROW = 3  #: Ends a batch: the destination means it.
_ARRIVED = Fetched(body=b"", sha256="")


class StageCBatch:
    """A batch at work: which cards are open still, and what the others came to."""

    def __init__(self, run_id: str, settings: StageCSettings, hooks: StageCHooks, departures: Departures) -> None:
        self._run_id = run_id
        self._settings = settings
        self._hooks = hooks
        self._departures = departures
        self._open: dict[int, None] = {}
        self._card_ids: frozenset[int] = frozenset()
        self._followers: dict[int, list[CardPlan]] = defaultdict(list)
        self._refusals: RefusalStreak[Flight] = RefusalStreak()
        self._doubt: Doubt[Flight] = Doubt()
        self._throttled_in_a_row = 0
        self._slot_lost = False
        self._over = ""
        self._locked_out: LockedOut | None = None
        self._counts: Counter[str] = Counter()
        self._yield: Counter[str] = Counter()
        self._evidence: list[int] = []
        self._fetched = 0

    def is_over(self) -> bool:
        """Whether nothing new may begin."""
        if not self._over and self._hooks.should_stop():
            self._over = "the batch was stopped"
        return bool(self._over) or self._departures.is_stopped

    def settle_without_fetch(self, card_ids: Iterable[int], plans: Sequence[CardPlan]) -> None:
        """Settle what is gone, current, or to be copied; line up the rest, one representative for equal bytes."""
        self._open = dict.fromkeys(card_ids)
        self._card_ids = frozenset(self._open)
        found = {plan.card_id for plan in plans}
        for card_id in [card_id for card_id in self._open if card_id not in found]:
            self._settle(card_id, CardGone(detail="deleted, or removed from its source"))
        unread = [] if self._hooks.rereads else [plan for plan in plans if not plan.is_current]
        donors = find_donors(plan.checksums for plan in unread if plan.checksums.key)
        leaders: dict[str, CardPlan] = {}
        for plan in plans:
            if self.is_over():
                return
            self._hooks.on_tick()
            key = plan.checksums.key
            if plan.is_current:
                self._settle(plan.card_id, AlreadyCurrent())
            elif plan.checksums in donors and self._transfer(plan, donors[plan.checksums]):
                continue
            elif key in leaders:
                self._followers[leaders[key].card_id].append(plan)
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
                self._resolve_doubt()
                if self._slot_lost:
                    break
        if not self._slot_lost:
            for flight, outcome in self._refusals.release():
                self._weigh(flight, outcome)
            self._resolve_doubt()
            self._let_go([] if self._doubt.is_waiting else self._doubt.release())

    def close(self) -> StageCReport:
        """Defer what is still open, and report."""
        reason = Deferred(detail=self._over or self._departures.stopped_because or "not reached")
        for card_id in list(self._open):
            if self._slot_lost or not self._settle(card_id, reason):
                self._record(card_id, reason)
        return StageCReport(
            counts=dict(self._counts),
            evidence_card_ids=tuple(self._evidence),
            locked_out=self._locked_out,
            extractor_yield=dict(self._yield),
            fetched=self._fetched,
        )

    def _take(self, result: conveyor.Conveyed[Flight]) -> None:
        flight = result.item
        if self._doubt.is_canary(flight.plan.card_id):
            self._hear_canary(flight, result.outcome)
            return
        match read_result(result):
            case Missed(outcome=missed):
                self._judge(flight, missed)
            case Arrived(outcome=CardEvidence() as evidence):
                self._arrived(flight)
                if not self._is_doubted(flight, evidence):
                    self._store(flight, evidence)
            case Arrived(outcome=Unusable() | Crashed() as outcome):
                self._arrived(flight)
                self._settle_alike(flight.plan, outcome)
            case EngineGone(detail=detail):
                self._arrived(flight)
                self._end(detail)  # Nothing is known of this image: it stays open, and is deferred with the rest.
            case None:
                pass  # It stays open, and is deferred with the rest.

    def _arrived(self, flight: Flight) -> None:
        self._fetched += 1
        self._judge(flight, _ARRIVED)

    def _judge(self, flight: Flight, outcome: FetchOutcome) -> None:
        """Count a fetch as what it is, once that is known: a refused file only after the files that follow it."""
        judged = self._refusals.judge(flight, outcome) if flight.is_remote else [(flight, outcome)]
        for each, what in judged:
            self._weigh(each, what)

    def _weigh(self, flight: Flight, outcome: FetchOutcome) -> None:
        """Hold back what may be the fault of the way in which images are asked for."""
        self._let_go(
            self._doubt.missed(flight, outcome) if flight.asked_dpi else [Held(flight=flight, outcome=outcome)]
        )

    def _is_doubted(self, flight: Flight, evidence: CardEvidence) -> bool:
        plan = flight.plan
        return flight.asked_dpi > 0 and self._doubt.arrived(flight, evidence, plan.card_id, plan.checksums.key)

    def _let_go(self, results: Sequence[Held[Flight]], instead: LockedOut | None = None) -> None:
        for held in results:
            if instead is None and isinstance(held.outcome, CardEvidence):
                self._store(held.flight, held.outcome)
            else:
                self._missed(held.flight, instead or cast(FetchOutcome, held.outcome))

    def _resolve_doubt(self) -> None:
        """Ask for a known image where there is doubt, and judge what was held back once they have told."""
        self._departures.waiting.extendleft(next_canary(self._doubt, besides=self._card_ids))
        if self._doubt.is_settled:
            verdict = self._doubt.verdict()
            self._let_go(self._doubt.release(), verdict)
            for card_id, sha256 in self._doubt.suspects() if verdict is not None else ():
                if card_id in self._evidence and self._may_write():
                    self._hooks.store.take_back(card_id, sha256)
                    self._evidence.remove(card_id)

    def _hear_canary(self, flight: Flight, outcome: conveyor.ConveyorOutcome) -> None:
        """Take what came of a known image: nothing is stored, and a miss is no failure of anything."""
        said = getattr(outcome, "value", None)
        self._fetched += isinstance(outcome, conveyor.Computed)
        self._doubt.canary_said(flight.plan.card_id, said)
        self._resolve_doubt()
        # Counted behind the misses that it explains, so that they are seen not to be the image host's.
        if isinstance(said, Throttled | LockedOut):
            self._note(flight, said)
        elif isinstance(outcome, conveyor.Computed):
            self._note(flight, _ARRIVED)

    def _missed(self, flight: Flight, outcome: FetchOutcome) -> None:
        self._note(flight, outcome)
        if not isinstance(outcome, Fetched):
            self._settle(flight.plan.card_id, outcome)
            self._follow_another(flight.plan)

    def _note(self, flight: Flight, outcome: FetchOutcome) -> None:
        self._hooks.on_fetch(outcome, flight.origin)
        self._departures.heed(flight, outcome)
        if isinstance(outcome, LockedOut):
            self._locked_out = self._locked_out or outcome
            self._end("the destination locked us out")
        if isinstance(outcome, Throttled):
            self._throttled_in_a_row += 1
            if self._throttled_in_a_row >= THROTTLED_IN_A_ROW:
                self._end(f"{THROTTLED_IN_A_ROW} fetches in a row were throttled")
        else:
            self._throttled_in_a_row = 0

    def _store(self, flight: Flight, evidence: CardEvidence) -> None:
        plan = flight.plan
        dpi = larger_dpi(flight.asked_dpi, evidence.width_px, evidence.height_px, plan.listed_dpi)
        if dpi is not None and flight.asked_dpi:
            self._departures.waiting.appendleft(replace(plan, asked_dpi=dpi))
            return
        if not self._may_write():
            return
        outcome = self._hooks.store.persist(
            plan.card_id,
            plan.image_version,
            replace(evidence, rendition=flight.rendition),
            run_id=self._run_id,
            elapsed_ms=round((time.monotonic() - flight.starts_at) * 1000),
            settle=self._hooks.settle,
        )
        self._record(plan.card_id, outcome)
        if not isinstance(outcome, Stored):
            self._follow_another(plan)
            return
        self._yield.update(name for name, reading in evidence.readings.items() if carries_something(reading))
        for follower in self._followers.pop(plan.card_id, []):
            if not self._transfer(follower, plan.card_id):
                self._departures.waiting.append(follower)

    def _settle_alike(self, plan: CardPlan, outcome: CardOutcome) -> None:
        """Settle a card and those of equal bytes: what the bytes are, they are for all of them."""
        for each in (plan, *self._followers.pop(plan.card_id, [])):
            self._settle(each.card_id, outcome)

    def _follow_another(self, plan: CardPlan) -> None:
        """Let the next card of equal bytes be fetched itself, and the others follow it."""
        followers = self._followers.pop(plan.card_id, [])
        if followers:
            self._departures.waiting.append(followers[0])
            self._followers[followers[0].card_id] = followers[1:]

    def _transfer(self, plan: CardPlan, from_card_id: int) -> bool:
        """Copy evidence to a card; False when it has to be fetched after all."""
        if not self._may_write():
            return True
        outcome = self._hooks.store.transfer(
            plan.card_id,
            plan.image_version,
            plan.checksums,
            from_card_id,
            run_id=self._run_id,
            settle=self._hooks.settle,
        )
        if outcome is not None:
            self._record(plan.card_id, outcome)
        return outcome is not None

    def _settle(self, card_id: int, outcome: CardOutcome) -> bool:
        if not self._may_write():
            return False
        self._record(card_id, settle_alone(card_id, outcome, self._hooks.settle))
        return True

    def _may_write(self) -> bool:
        if not self._slot_lost and not self._hooks.may_write():
            self._slot_lost = True
            self._end("the slot was lost")
        return not self._slot_lost

    def _record(self, card_id: int, outcome: CardOutcome) -> None:
        self._open.pop(card_id, None)
        self._counts[type(outcome).__name__] += 1
        if isinstance(outcome, Stored | Transferred | AlreadyCurrent):
            self._evidence.append(card_id)

    def _end(self, reason: str) -> None:
        self._over = self._over or reason
        self._departures.stop()
