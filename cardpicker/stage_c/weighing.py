"""Which results of a batch count at once, and which are held back until files behind them or known images have told more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from cardpicker.stage_c import conveyor
from cardpicker.stage_c.canaries import next_canary
from cardpicker.stage_c.departures import Departures, Flight
from cardpicker.stage_c.doubt import Doubt, Held
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.fetch.refusals import RefusalStreak
from cardpicker.stage_c.hooks import StageCHooks
from cardpicker.stage_c.outcomes import Fetched, FetchOutcome, LockedOut, Throttled
from cardpicker.stage_c.settlement import Settlement

THROTTLED_IN_A_ROW = 3  #: Ends a batch: the destination means it.
_ARRIVED = Fetched(body=b"", sha256="")


class Weighing:
    """The fetches of a batch as they come in, in the cards' order, on their way to being settled."""

    def __init__(self, hooks: StageCHooks, departures: Departures, settlement: Settlement) -> None:
        self.locked_out: LockedOut | None = None
        self._hooks = hooks
        self._departures = departures
        self._settlement = settlement
        self._refusals: RefusalStreak[Flight] = RefusalStreak()
        self._doubt: Doubt[Flight] = Doubt()
        self._throttled_in_a_row = 0

    def missed(self, flight: Flight, outcome: FetchOutcome) -> None:
        """Take a fetch that brought no image."""
        self._judge(flight, outcome)

    def arrived(self, flight: Flight) -> None:
        """Take the news that an image came, whatever will be read off it."""
        self._judge(flight, _ARRIVED)

    def read(self, flight: Flight, evidence: CardEvidence) -> None:
        """Take what was read off an image that came: it is stored, unless it may be a stand-in."""
        plan = flight.plan
        if flight.asked_dpi and self._doubt.arrived(flight, evidence, plan.card_id, plan.checksums.key):
            return
        self._settlement.store(flight, evidence)

    def is_canary(self, card_id: int) -> bool:
        """Whether a card was asked for only to see if images come."""
        return self._doubt.is_canary(card_id)

    def hear_canary(self, flight: Flight, outcome: conveyor.ConveyorOutcome) -> None:
        """Take what came of a known image: nothing is stored, and a miss is no failure of anything."""
        said = getattr(outcome, "value", None)
        self._doubt.canary_said(flight.plan.card_id, said)
        self.resolve()
        # Counted behind the misses that it explains, so that they are seen not to be the image host's.
        if isinstance(said, Throttled | LockedOut):
            self._note(flight, said)
        elif isinstance(outcome, conveyor.Computed):
            self._note(flight, _ARRIVED)

    def resolve(self) -> None:
        """Ask for a known image where there is doubt, and judge what was held back once they have told."""
        self._departures.waiting.extendleft(next_canary(self._doubt, besides=self._settlement.card_ids))
        if self._doubt.is_settled:
            verdict = self._doubt.verdict()
            self._let_go(self._doubt.release(), verdict)
            for card_id, sha256 in self._doubt.suspects() if verdict is not None else ():
                self._settlement.take_back(card_id, sha256)

    def finish(self) -> None:
        """Judge what is held back still, now that nothing more comes; what a known image could tell is left open."""
        for flight, outcome in self._refusals.release():
            self._weigh(flight, outcome)
        self.resolve()
        self._let_go([] if self._doubt.is_waiting else self._doubt.release())

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

    def _let_go(self, results: Sequence[Held[Flight]], instead: LockedOut | None = None) -> None:
        for held in results:
            if instead is None and isinstance(held.outcome, CardEvidence):
                self._settlement.store(held.flight, held.outcome)
            else:
                self._settle(held.flight, instead or cast(FetchOutcome, held.outcome))

    def _settle(self, flight: Flight, outcome: FetchOutcome) -> None:
        self._note(flight, outcome)
        if not isinstance(outcome, Fetched):
            self._settlement.settle_missed(flight.plan, outcome)

    def _note(self, flight: Flight, outcome: FetchOutcome) -> None:
        self._hooks.on_fetch(outcome, flight.origin)
        self._departures.heed(flight, outcome)
        if isinstance(outcome, LockedOut):
            self.locked_out = self.locked_out or outcome
            self._settlement.end("the destination locked us out")
        if isinstance(outcome, Throttled):
            self._throttled_in_a_row += 1
            if self._throttled_in_a_row >= THROTTLED_IN_A_ROW:
                self._settlement.end(f"{THROTTLED_IN_A_ROW} fetches in a row were throttled")
        else:
            self._throttled_in_a_row = 0
