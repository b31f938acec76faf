"""The coordinating side: what is in flight, in order, and the threads that fetch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic

from .allocator import share_one_heap
from .pool import TICK_S, Pool
from .standing import StandingPool
from .types import Conveyed, ConveyorOutcome, ConveyorSettings, FetchRaised, I, NotComputed, Payload, describe


def run(  # noqa: PLR0913 - what, with what, how large and when to stop: one call
    items: Iterable[I],
    fetch: Callable[[I], Any],
    compute: Callable[[bytes, Any], Any],
    *,
    settings: ConveyorSettings,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[Any, ...] = (),
    should_stop: Callable[[], bool] = lambda: False,
    on_tick: Callable[[], None] = lambda: None,
    standing: StandingPool | None = None,
) -> Generator[Conveyed[I], None, None]:
    """Yield every item's result in the order of ``items``.

    An item counts as in flight from before its fetch until the consumer asks for the next result. When ``should_stop``
    turns true nothing new is pulled from ``items``, and what is in flight is finished and yielded. Both pools are gone
    when the generator ends, is closed, or raises; wrap it in ``contextlib.closing``. With ``standing``, its idle processes stay.

    Args:
        items: pulled one at a time, in the calling thread, just before each fetch.
        fetch: runs in threads; returns a ``Payload`` to compute, or anything else to yield as it is.
        compute: an importable function, run as ``compute(body, context)`` in a process.
        initializer: an importable function, run once in each process as ``initializer(*initargs)``.
        on_tick: called in the calling thread about once a second while results are awaited.
        standing: processes of earlier runs to use and to leave to later ones.

    Raises:
        WorkerInitError: the initializer raised, or processes die before they are ready.
    """
    share_one_heap()
    lender = standing or StandingPool()
    pool = lender.lend(settings, compute, initializer, initargs)
    line = _Line(items, fetch, pool, should_stop, on_tick)
    is_sound = False
    try:
        # Processes exist before any thread does: a fork copies the locks that other threads hold.
        pool.bury_dead()
        pool.start()
        yield from line.results()
        is_sound = True
    except GeneratorExit:
        # The consumer had enough; what computes for it still is of no use, the others are.
        is_sound = True
        raise
    finally:
        # The processes first: a fetch may take its time to end.
        try:
            lender.take_back(pool, is_sound=is_sound)
            if standing is None:
                lender.close()
        finally:
            line.close()


@dataclass(slots=True)
class _Job(Generic[I]):
    item: I
    fetching: Future[Any] | None = None
    outcome: ConveyorOutcome | None = None
    payload: Payload | None = None
    fetch_s: float = 0.0
    compute_s: float = 0.0


class _Line(Generic[I]):
    """The items in flight, in order, and the threads that fetch them."""

    def __init__(
        self,
        items: Iterable[I],
        fetch: Callable[[I], Any],
        pool: Pool,
        should_stop: Callable[[], bool],
        on_tick: Callable[[], None],
    ) -> None:
        self._items = iter(items)
        self._fetch = fetch
        self._pool = pool
        self._should_stop = should_stop
        self._on_tick = on_tick
        self._order: deque[_Job[I]] = deque()
        self._exhausted = False
        self._ticked_at = time.monotonic()
        self._threads = ThreadPoolExecutor(pool.settings.fetch_threads, thread_name_prefix="fetch")

    def results(self) -> Iterator[Conveyed[I]]:
        while True:
            self._advance()
            job = self._order[0] if self._order else None
            if job is not None and job.outcome is not None:
                yield Conveyed(item=job.item, outcome=job.outcome, fetch_s=job.fetch_s, compute_s=job.compute_s)
                self._order.popleft()
            elif job is None and self._exhausted:
                return
            else:
                self._pool.wait(max(0.0, self._ticked_at + TICK_S - time.monotonic()))
            self._tick()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _advance(self) -> None:
        for job in self._order:
            if job.fetching is not None and job.fetching.done():
                self._take_fetched(job)
        self._pool.assign(job for job in self._order if job.payload is not None)
        self._replace_workers()
        if not self._pool.lacking:
            self._pull()

    def _replace_workers(self) -> None:
        if not self._pool.lacking:
            return
        if self._pool.settings.start_method == "fork":
            if any(job.fetching is not None for job in self._order):
                return
            self._threads.shutdown(wait=True)
            self._threads = ThreadPoolExecutor(self._pool.settings.fetch_threads, thread_name_prefix="fetch")
        self._pool.start()

    def _pull(self) -> None:
        while not self._exhausted and len(self._order) < self._pool.settings.queue_depth:
            if self._should_stop():
                self._exhausted = True
                return
            try:
                item = next(self._items)
            except StopIteration:
                self._exhausted = True
                return
            job = _Job(item)
            self._order.append(job)
            job.fetching = self._threads.submit(_timed, self._fetch, item)
            job.fetching.add_done_callback(lambda _: self._pool.wake())

    def _take_fetched(self, job: _Job[I]) -> None:
        fetching, job.fetching = job.fetching, None
        assert fetching is not None
        error = fetching.exception()
        if error is not None:
            job.outcome = FetchRaised(detail=describe(error))
            return
        value, job.fetch_s = fetching.result()
        if isinstance(value, Payload):
            job.payload = value
        else:
            job.outcome = NotComputed(value=value)

    def _tick(self) -> None:
        if time.monotonic() - self._ticked_at >= TICK_S:
            self._on_tick()
            self._ticked_at = time.monotonic()


def _timed(function: Callable[[I], Any], item: I) -> tuple[Any, float]:
    started = time.monotonic()
    value = function(item)
    return value, time.monotonic() - started
