"""What leaves for the conveyor, and the fetch that its threads run.

Locations and permits are settled in the coordinating thread as a card is pulled; the threads see plain values only,
never the ORM, and wait for nothing but their permit's moment and the network.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cardpicker.stage_c.conveyor import ConveyorSettings, Payload
from cardpicker.stage_c.evidence import ComputeContext
from cardpicker.stage_c.fetch.fetcher import ImageFetcher
from cardpicker.stage_c.fetch.limiter import take_permits
from cardpicker.stage_c.fetch.location import ImagePlace, image_place
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_c.outcomes import Deferred, Failed, Fetched, FetchOutcome, LockedOut, Throttled, Unusable
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

    @property
    def destination(self) -> str:
        """The shared budget that the fetch draws on, empty when none."""
        return self.place.destination if isinstance(self.place, ImagePlace) else ""

    @property
    def is_remote(self) -> bool:
        """Whether the image comes over the network."""
        return isinstance(self.place, ImagePlace) and not self.place.location.startswith("file:")

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
        self._permits: dict[str, deque[float]] = {}
        self._stopped = threading.Event()

    def close(self) -> None:
        """Close every connection."""
        self._fetcher.close()

    def stop(self) -> None:
        """Let no fetch begin that has not begun."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing may begin any more."""
        return self._stopped.is_set()

    def flights(self) -> Iterator[Flight]:
        """Yield the waiting cards, also those that are added meanwhile."""
        while self.waiting:
            plan = self.waiting.popleft()
            place = image_place(plan.source_kind, plan.source_location, plan.identifier, self._settings)
            destination = place.destination if isinstance(place, ImagePlace) else ""
            yield Flight(
                plan=plan,
                place=place,
                context=self._contexts.get(plan.name_key, ComputeContext()),
                starts_at=max(time.monotonic(), self._permit(destination) if destination else 0.0),
            )

    def fetch(self, flight: Flight) -> Payload | FetchOutcome | Deferred:
        """Fetch one image; runs in a thread."""
        place = flight.place
        if not isinstance(place, ImagePlace):
            return place
        wait_s = max(0.0, flight.starts_at - time.monotonic())
        if wait_s > MAX_PERMIT_WAIT_S:
            return Throttled(detail=f"the shared rate of {place.destination} is spent", retry_after_s=wait_s)
        if self._stopped.wait(wait_s):
            return Deferred(detail="stopped before its fetch")
        checksums = flight.plan.checksums
        outcome = self._fetcher.fetch(
            place.location,
            expected_sha256=checksums.sha256 if place.is_original else None,
            expected_md5=checksums.md5 if place.is_original else None,
            trust=place.trust,
        )
        if isinstance(outcome, LockedOut):
            self.stop()
        if isinstance(outcome, Fetched):
            return Payload(body=outcome.body, context=flight.context)
        return outcome

    def _permit(self, destination: str) -> float:
        """Return the moment of the next permit; they are taken several at a time, so that few statements are needed."""
        kept = self._permits.setdefault(destination, deque())
        if not kept:
            count = min(1 + len(self.waiting), self._settings.queue_depth)
            now = time.monotonic()
            kept.extend(now + wait_s for wait_s in take_permits(destination, count, self._settings.google_image_rate))
        return kept.popleft()


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
    )
