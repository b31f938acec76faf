"""What becomes of a batch's cards: each is stored, copied to or settled once, and counted; byte-identical ones follow one."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from cardpicker.stage_c.departures import Departures, Flight
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.hooks import StageCHooks, carries_something
from cardpicker.stage_c.outcomes import AlreadyCurrent, CardOutcome, Stored, Transferred
from cardpicker.stage_c.persist import settle_alone
from cardpicker.stage_c.plan import CardPlan
from cardpicker.stage_c.renditions import larger_dpi


class Settlement:
    """Which cards are open still, which wait for another of equal bytes, and what the others came to."""

    def __init__(self, run_id: str, card_ids: Iterable[int], hooks: StageCHooks, departures: Departures) -> None:
        self.open: dict[int, None] = dict.fromkeys(card_ids)
        self.card_ids = frozenset(self.open)
        self.over = ""  #: Why nothing new may begin; empty: it may.
        self.slot_lost = False
        self.counts: Counter[str] = Counter()
        self.extractor_yield: Counter[str] = Counter()
        self.evidence: list[int] = []
        self._run_id = run_id
        self._hooks = hooks
        self._departures = departures
        self._followers: dict[int, list[CardPlan]] = defaultdict(list)

    def end(self, reason: str) -> None:
        """Let nothing new begin."""
        self.over = self.over or reason
        self._departures.stop()

    def follow(self, leader: CardPlan, plan: CardPlan) -> None:
        """Have a card wait for what becomes of another of equal bytes."""
        self._followers[leader.card_id].append(plan)

    def settle(self, card_id: int, outcome: CardOutcome) -> bool:
        """Settle a card that stores no evidence; False when nothing may be written."""
        if not self._may_write():
            return False
        self.record(card_id, settle_alone(card_id, outcome, self._hooks.settle))
        return True

    def settle_alike(self, plan: CardPlan, outcome: CardOutcome) -> None:
        """Settle a card and those of equal bytes: what the bytes are, they are for all of them."""
        for each in (plan, *self._followers.pop(plan.card_id, [])):
            self.settle(each.card_id, outcome)

    def settle_missed(self, plan: CardPlan, outcome: CardOutcome) -> None:
        """Settle a card whose image did not come, and have another of equal bytes fetched."""
        self.settle(plan.card_id, outcome)
        self._follow_another(plan)

    def store(self, flight: Flight, evidence: CardEvidence) -> None:
        """Store what was read, and copy it to the cards that waited for it; a picture too small is asked for again."""
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
        self.record(plan.card_id, outcome)
        if not isinstance(outcome, Stored):
            self._follow_another(plan)
            return
        self.extractor_yield.update(name for name, reading in evidence.readings.items() if carries_something(reading))
        for follower in self._followers.pop(plan.card_id, []):
            if not self.transfer(follower, plan.card_id):
                self._departures.waiting.append(follower)

    def transfer(self, plan: CardPlan, from_card_id: int) -> bool:
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
            self.record(plan.card_id, outcome)
        return outcome is not None

    def take_back(self, card_id: int, image_sha256: str) -> None:
        """Take back what this batch stored, if it was read off those bytes."""
        if card_id in self.evidence and self._may_write():
            self._hooks.store.take_back(card_id, image_sha256)
            self.evidence.remove(card_id)

    def record(self, card_id: int, outcome: CardOutcome) -> None:
        """Count what became of a card."""
        self.open.pop(card_id, None)
        self.counts[type(outcome).__name__] += 1
        if isinstance(outcome, Stored | Transferred | AlreadyCurrent):
            self.evidence.append(card_id)

    def _follow_another(self, plan: CardPlan) -> None:
        """Let the next card of equal bytes be fetched itself, and the others follow it."""
        followers = self._followers.pop(plan.card_id, [])
        if followers:
            self._departures.waiting.append(followers[0])
            self._followers[followers[0].card_id] = followers[1:]

    def _may_write(self) -> bool:
        if not self.slot_lost and not self._hooks.may_write():
            self.slot_lost = True
            self.end("the slot was lost")
        return not self.slot_lost
