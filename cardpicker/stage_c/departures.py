"""What leaves for the conveyor, and the fetch that its threads run.

Locations and permits are settled in the coordinating thread as a card is pulled; the threads see plain values only,
never the ORM, and wait for nothing but their permit's moment and the network.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cardpicker.stage_c.conveyor import ConveyorSettings, Payload
from cardpicker.stage_c.evidence import ComputeContext
from cardpicker.stage_c.fetch.destinations import rate_per_s
from cardpicker.stage_c.fetch.fetcher import ImageFetcher
from cardpicker.stage_c.fetch.limiter import MAX_HOLD_S, reopen, shut, slow_down
from cardpicker.stage_c.fetch.location import ImagePlace, image_place
from cardpicker.stage_c.fetch.lockout_watch import LockoutWatch
from cardpicker.stage_c.fetch.purse import Permit, Purse
from cardpicker.stage_c.hooks import ComputeParts, FetchOrigin
from cardpicker.stage_c.outcomes import Deferred, Failed, Fetched, FetchOutcome, Gone, LockedOut, Throttled, Unusable
from cardpicker.stage_c.plan import CardPlan
from cardpicker.stage_c.settings import StageCSettings

MAX_PERMIT_WAIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One card on its way, with all that its fetch needs."""

    plan: CardPlan
    place: ImagePlace | Unusable | Failed
    context: ComputeContext
    starts_at: float  #: The permit's moment, on the monotonic clock.
    is_probe: bool = False  #: Whether it is to find out if a lockout is over.
    may_start: bool = True  #: No: the shared rate is spent, and the moment is when there may be a permit.

    @property
    def destination(self) -> str:
        """The shared budget that the fetch draws on, empty when none."""
        return self.place.destination if isinstance(self.place, ImagePlace) else ""

    @property
    def rendition(self) -> str:
        """What the bytes are that the fetch asks for; empty when it asks for none."""
        return self.place.rendition if isinstance(self.place, ImagePlace) else ""

    @property
    def asked_dpi(self) -> int:
        """The resolution that the image CDN is asked for, 0 when it is not asked."""
        return self.place.dpi if isinstance(self.place, ImagePlace) else 0

    @property
    def is_remote(self) -> bool:
        """Whether the image comes over the network."""
        return isinstance(self.place, ImagePlace) and not self.place.location.startswith("file:")

    @property
    def origin(self) -> FetchOrigin:
        """What a count of failures asks of it."""
        return FetchOrigin(source_id=self.plan.source_id, is_remote=self.is_remote, was_gone=self.plan.was_gone)

    @property
    def may_arrive_whole(self) -> bool:
        """Whether a cut image may be the transport's fault: nothing tells that its bytes are the listed ones."""
        return self.is_remote and not self.plan.checksums.key


class Departures:
    """The cards still to be fetched, in order, and the fetch of each; also the stop that reaches waiting fetches."""

    def __init__(self, settings: StageCSettings, contexts: Mapping[str, ComputeContext]) -> None:
        self.waiting: deque[CardPlan] = deque()
        self._settings = settings
        self._contexts = contexts
        self._fetcher = ImageFetcher(settings)
        self._purses: dict[str, Purse] = {}
        self._held_until: dict[str, float] = {}
        self._stopped = threading.Event()
        self._watch: LockoutWatch | None = None
        self.stopped_because = ""

    def close(self) -> None:
        """Close every connection."""
        self._fetcher.close()
        if self._watch is not None:
            self._watch.close()

    def stop(self, reason: str = "") -> None:
        """Let no fetch begin that has not begun."""
        self.stopped_because = self.stopped_because or reason
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing may begin any more."""
        return self._stopped.is_set()

    def flights(self) -> Iterator[Flight]:
        """Yield the waiting cards, also those that are added meanwhile."""
        while self.waiting:
            plan = self.waiting.popleft()
            settings = replace(self._settings, image_dpi=plan.asked_dpi) if plan.asked_dpi else self._settings
            place = image_place(plan.source_kind, plan.source_location, plan.identifier, settings, plan.resource_key)
            destination = place.destination if isinstance(place, ImagePlace) else ""
            permit = self._permit(destination) if destination else Permit(starts_at=0.0)
            yield Flight(
                plan=plan,
                place=place,
                context=replace(self._contexts.get(plan.name_key, ComputeContext()), known=plan.known),
                starts_at=max(time.monotonic(), permit.starts_at),
                is_probe=permit.is_probe,
                may_start=permit.is_granted,
            )

    def fetch(self, flight: Flight) -> Payload | FetchOutcome | Deferred:
        """Fetch one image; runs in a thread."""
        place = flight.place
        if not isinstance(place, ImagePlace):
            return place
        wait_s = max(flight.starts_at, self._held_until.get(place.destination, 0.0)) - time.monotonic()
        if not flight.may_start or wait_s > MAX_PERMIT_WAIT_S:
            detail = f"the shared rate of {place.destination} is spent"
            return Throttled(detail=detail, retry_after_s=max(0.0, wait_s), is_ours=True)
        if self._stopped.wait(max(0.0, wait_s)):
            return Deferred(detail="stopped before its fetch")
        checksums = flight.plan.checksums
        outcome = self._fetcher.fetch(
            place.location,
            expected_sha256=checksums.sha256 if place.is_original else None,
            expected_md5=checksums.md5 if place.is_original else None,
            trust=place.trust,
        )
        if isinstance(outcome, LockedOut):
            self._lock_out(place.destination)
        if isinstance(outcome, Throttled) and place.destination:
            # At once, for the other threads; everybody else learns of it when the result is taken.
            self._held_until[place.destination] = time.monotonic() + min(outcome.retry_after_s or 0.0, MAX_HOLD_S)
        if isinstance(outcome, Fetched):
            return Payload(body=outcome.body, context=flight.context)
        return outcome

    def heed(self, flight: Flight, outcome: FetchOutcome) -> None:
        """Let the shared budget know what a destination answered; in the coordinating thread."""
        destination = flight.destination
        if not destination:
            return
        match outcome:
            case Throttled(is_ours=False, retry_after_s=retry_after_s):
                self._purse(destination).drop()
                slow_down(destination, retry_after_s)
            case LockedOut():
                self._purse(destination).drop()
                self._lock_out(destination)
                shut(destination)
            case Fetched() | Gone(refused=False) if flight.is_probe:
                reopen(destination, rate_per_s(destination, self._settings))
            case _:
                pass

    def _lock_out(self, destination: str) -> None:
        """Stop this run and, at once, every other that asks the same destination or any: they will all be halted."""
        if not self.is_stopped and self._watch is not None and destination:
            self._watch.tell(destination)
        self.stop("the destination locked us out")

    def _permit(self, destination: str) -> Permit:
        if self._watch is None:
            self._watch = LockoutWatch(lambda where: self.stop(f"{where} locked another run out"))
        return self._purse(destination).next(1 + len(self.waiting))

    def _purse(self, destination: str) -> Purse:
        if destination not in self._purses:
            rate = rate_per_s(destination, self._settings)
            self._purses[destination] = Purse(destination, rate, MAX_PERMIT_WAIT_S)
        return self._purses[destination]


def conveyor_settings(settings: StageCSettings, parts: ComputeParts) -> ConveyorSettings:
    """Return the sizes and clocks of the two pools."""
    return ConveyorSettings(
        fetch_threads=settings.fetch_threads,
        compute_workers=settings.compute_workers,
        queue_depth=settings.queue_depth,
        start_method=settings.start_method,
        preload=parts.preload,
        compute_timeout_s=settings.compute_timeout_s,
        tasks_per_worker=settings.tasks_per_worker,
        worker_rss_mb=settings.worker_rss_mb,
        niceness=settings.niceness,
    )
