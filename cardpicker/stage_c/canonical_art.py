"""Hashing the catalog's own art: fetched at its host's shared rate, hashed as uploads are, stored a few at a time.

Killed anywhere it has lost at most what was not stored yet, and goes on from what the database says. Pressure makes it
slower, a lockout or a stop ends it, and nothing that ends it counts against an illustration.
"""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.parse
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, assert_never

from PIL import Image

from cardpicker.catalogue.canonical_art import DueArt, TriedArt, store_art
from cardpicker.models import ArtOutcome
from cardpicker.stage_c.extractors.art_hash import ART_SIZE_PX
from cardpicker.stage_c.fetch.destinations import destination_of, rate_per_s, redirect_hosts
from cardpicker.stage_c.fetch.fetcher import ImageFetcher, Trust
from cardpicker.stage_c.fetch.limiter import reopen, shut, slow_down
from cardpicker.stage_c.fetch.location import ImagePlace
from cardpicker.stage_c.fetch.purse import Purse
from cardpicker.stage_c.fetch.refusals import RefusalStreak
from cardpicker.stage_c.imaging.decode import decode
from cardpicker.stage_c.imaging.hashing import sample, signed64, usable_hash
from cardpicker.stage_c.outcomes import Failed, Fetched, FetchOutcome, Gone, LockedOut, Throttled, Unusable
from cardpicker.stage_c.settings import StageCSettings

#: Stored at once, and no longer apart than so many seconds: what a kill may cost.
STORE_EVERY: Final = 50
STORE_EVERY_S: Final = 5.0
#: Answers in a row after which the host means it, or is not there.
THROTTLED_IN_A_ROW: Final = 6
FAILED_IN_A_ROW: Final = 12
#: A permit further away than this is not waited for.
MAX_PERMIT_WAIT_S: Final = 120.0
_POLL_S: Final = 0.5
_SCRYFALL: Final = (".scryfall.io", ".scryfall.com")


class Ended(StrEnum):
    """Why a run ended."""

    DONE = "done"
    LIMIT = "limit-reached"
    STOPPED = "stopped"
    LOCKED_OUT = "locked-out"
    THROTTLED = "throttled-out"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtReport:
    """What a run did."""

    ended: Ended
    counts: Mapping[str, int]  #: By outcome.
    throttled: int = 0
    detail: str = ""  #: What ended it, where it did not end by itself.


def scryfall_place(due: DueArt, settings: StageCSettings) -> ImagePlace | None:
    """Return where the art alone of a printing is, None where the catalog names no picture of it on a host we know.

    The address is made of the printing's id: what the bulk file names is another size, at times at an older host.
    """
    parts = urllib.parse.urlsplit(due.image_uri)
    host = (parts.hostname or "").lower()
    if not host.endswith(_SCRYFALL):
        return None
    name, side = str(due.printing), "back" if "/back/" in parts.path else "front"
    query = f"?{parts.query}" if parts.query else ""
    location = f"https://cards.scryfall.io/art_crop/{side}/{name[0]}/{name[1]}/{name}.jpg{query}"
    own = "cards.scryfall.io"
    return ImagePlace(
        location=location, trust=Trust(redirect_hosts=redirect_hosts(own, settings)), destination=destination_of(own)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtHooks:
    """What a run is told, and whom it tells."""

    should_stop: Callable[[], str] = lambda: ""  #: Why nothing more may begin; empty: go on.
    on_progress: Callable[[int], object] = lambda done: None
    #: Given, as it is stored, the name keys of printings whose hash changes.
    on_changed: Callable[[Sequence[str]], object] = lambda name_keys: None
    place: Callable[[DueArt, StageCSettings], ImagePlace | None] = scryfall_place


def hash_art(
    wanted: Sequence[DueArt], *, settings: StageCSettings, hooks: ArtHooks, limit: int | None = None
) -> ArtReport:
    """Hash the art of ``wanted``, at most ``limit`` of them, and store what became of each."""
    with contextlib.closing(_Run(settings, hooks)) as run:
        return run.walk(deque(wanted[:limit]), len(wanted))


@dataclass(slots=True)
class _Streaks:
    """What happened in a row."""

    throttled: int = 0
    failed: int = 0
    refusals: RefusalStreak[DueArt] = field(default_factory=RefusalStreak)


class _Run:
    """One walk: permits and storing in this thread, fetching and hashing in others."""

    def __init__(self, settings: StageCSettings, hooks: ArtHooks) -> None:
        self._settings, self._hooks = settings, hooks
        self._fetcher = ImageFetcher(settings)
        self._threads = ThreadPoolExecutor(settings.fetch_threads, thread_name_prefix="art")
        self._stopped = threading.Event()
        self._purses: dict[str, Purse] = {}
        self._flying: dict[Future[tuple[FetchOutcome, TriedArt | None]], tuple[DueArt, str, bool]] = {}
        self._streaks = _Streaks()
        self._tried: list[TriedArt] = []
        self._stored_at = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._throttled = 0
        self._ended: tuple[Ended, str] | None = None

    def close(self) -> None:
        """End the threads, whose fetches are bounded in time, and store nothing more."""
        self._stopped.set()
        self._threads.shutdown(cancel_futures=True)
        self._fetcher.close()

    def walk(self, waiting: deque[DueArt], all_due: int) -> ArtReport:
        """Do all that waits, unless something ends it."""
        allowed = len(waiting)
        while (waiting and self._ended is None) or self._flying:
            self._look_around()
            while waiting and self._ended is None and len(self._flying) < 2 * self._settings.fetch_threads:
                self._begin(waiting)
            self._land(waiting)
            if len(self._tried) >= STORE_EVERY or time.monotonic() - self._stored_at >= STORE_EVERY_S:
                self._store()
        for due, outcome in self._streaks.refusals.release():
            self._judge(due, outcome)
        self._store()
        ended, detail = self._ended or (Ended.LIMIT if allowed < all_due else Ended.DONE, "")
        return ArtReport(ended=ended, counts=self._counts, throttled=self._throttled, detail=detail)

    def _look_around(self) -> None:
        if self._ended is None and (why := self._hooks.should_stop()):
            self._end(Ended.STOPPED, why)

    def _end(self, ended: Ended, detail: str) -> None:
        self._ended = self._ended or (ended, detail)
        self._stopped.set()

    def _begin(self, waiting: deque[DueArt]) -> None:
        due = waiting[0]
        place = self._hooks.place(due, self._settings)
        if place is None:
            waiting.popleft()
            self._keep(TriedArt(due=due, outcome=ArtOutcome.NO_PICTURE, detail=due.image_uri[:200]))
            return
        starts_at, is_probe = 0.0, False
        if place.destination:
            permit = self._purse(place.destination).next(1 + len(waiting))
            if not permit.is_granted or permit.starts_at - time.monotonic() > MAX_PERMIT_WAIT_S:
                self._end(Ended.THROTTLED, f"the shared rate of {place.destination} is spent")
                return
            starts_at, is_probe = permit.starts_at, permit.is_probe
        waiting.popleft()
        future = self._threads.submit(self._look_at, due, place, starts_at)
        self._flying[future] = (due, place.destination, is_probe)

    def _purse(self, destination: str) -> Purse:
        if destination not in self._purses:
            rate = rate_per_s(destination, self._settings)
            self._purses[destination] = Purse(destination, rate, MAX_PERMIT_WAIT_S)
        return self._purses[destination]

    def _look_at(self, due: DueArt, place: ImagePlace, starts_at: float) -> tuple[FetchOutcome, TriedArt | None]:
        """Fetch and hash one picture; runs in a thread."""
        if self._stopped.wait(max(0.0, starts_at - time.monotonic())):
            return Throttled(detail="stopped before its fetch", is_ours=True), None
        outcome = self._fetcher.fetch(place.location, trust=place.trust)
        return outcome, art_of(due, outcome.body) if isinstance(outcome, Fetched) else None

    def _land(self, waiting: deque[DueArt]) -> None:
        """Take what has arrived; waits a moment for the first."""
        if not self._flying:
            return
        landed, _ = wait(self._flying, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        for future in landed:
            due, destination, is_probe = self._flying.pop(future)
            outcome, tried = future.result()
            self._heed(destination, outcome, is_probe)
            if isinstance(outcome, Throttled):
                waiting.appendleft(due)
            elif tried is not None:
                self._streaks.failed = 0
                self._judge_others(due, outcome)
                self._keep(tried)
            else:
                self._judge_others(due, outcome)

    def _heed(self, destination: str, outcome: FetchOutcome, is_probe: bool) -> None:
        """Let the shared budget know what its host answered."""
        match outcome:
            case Throttled(is_ours=False, retry_after_s=retry_after_s, detail=detail):
                self._throttled += 1
                self._streaks.throttled += 1
                if destination:
                    self._purse(destination).drop()
                    slow_down(destination, retry_after_s)
                if self._streaks.throttled >= THROTTLED_IN_A_ROW:
                    self._end(Ended.THROTTLED, detail)
            case LockedOut() if destination:
                shut(destination)
            case Fetched() | Gone(refused=False):
                self._streaks.throttled = 0
                if is_probe and destination:
                    reopen(destination, rate_per_s(destination, self._settings))
            case _:
                pass

    def _judge_others(self, due: DueArt, outcome: FetchOutcome) -> None:
        """Judge what refusals were held back for this answer, and the answer unless it is held back itself."""
        for each, judged in self._streaks.refusals.judge(due, outcome):
            if not isinstance(judged, Fetched):
                self._judge(each, judged)

    def _judge(self, due: DueArt, outcome: FetchOutcome) -> None:
        match outcome:
            case LockedOut(detail=detail):
                destination = getattr(self._hooks.place(due, self._settings), "destination", "")
                if destination:
                    shut(destination)
                self._end(Ended.LOCKED_OUT, detail)
            case Gone(detail=detail):
                self._keep(TriedArt(due=due, outcome=ArtOutcome.GONE, detail=detail))
            case Unusable(kind=kind, detail=detail):
                self._keep(TriedArt(due=due, outcome=ArtOutcome.UNUSABLE, detail=f"{kind}: {detail}"))
            case Failed(detail=detail):
                self._streaks.failed += 1
                self._keep(TriedArt(due=due, outcome=ArtOutcome.FAILED, detail=detail))
                if self._streaks.failed >= FAILED_IN_A_ROW:
                    self._end(Ended.UNREACHABLE, detail)
            case Fetched() | Throttled():
                pass  # Kept where they arrived, or waiting again.
            case _:
                assert_never(outcome)

    def _keep(self, tried: TriedArt) -> None:
        self._tried.append(tried)
        self._counts[tried.outcome] += 1
        self._hooks.on_progress(self._counts.total())

    def _store(self) -> None:
        store_art(self._tried, self._hooks.on_changed)
        self._tried.clear()
        self._stored_at = time.monotonic()


def art_of(due: DueArt, body: bytes) -> TriedArt:
    """Return the hash of a picture that shows art alone, or why it has none."""
    image = decode(body)
    if isinstance(image, Unusable):
        return TriedArt(due=due, outcome=ArtOutcome.UNUSABLE, detail=f"{image.kind}: {image.detail}")
    whole = Image.fromarray(image.gray).resize(ART_SIZE_PX, Image.Resampling.BICUBIC)
    value = usable_hash(sample(whole))
    if value is None:
        return TriedArt(due=due, outcome=ArtOutcome.FLAT)
    return TriedArt(due=due, outcome=ArtOutcome.HASHED, art_hash=signed64(value))
