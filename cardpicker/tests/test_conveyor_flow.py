"""The conveyor's flow: order, permits, lazy pulls, ticks, draining, memory."""

from __future__ import annotations

import random
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cardpicker.stage_c.conveyor import Computed, ComputeFailed, FetchRaised, NotComputed, Payload, run
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import START_METHODS, Permits, outcomes, settings_for, to_payload

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)
MEGABYTE = 1 << 20


def test_results_come_in_the_order_of_submission_and_none_is_lost(start_method: str) -> None:
    """Neither a slow fetch nor a slow computation lets a later item pass."""
    chance = random.Random(4)
    delays = [(number, chance.random() / 50, chance.random() / 50) for number in range(60)]

    def fetch(item: tuple[int, float, float]) -> Any:
        time.sleep(item[1])
        return Payload(body=str(item[0]).encode(), context=item[2]) if item[0] % 7 else ("skipped", item[0])

    results = list(run(delays, fetch, jobs.take_time, settings=settings_for(start_method)))

    assert [result.item for result in results] == delays
    for number, result in enumerate(results):
        expected = Computed(value=str(number).encode()) if number % 7 else NotComputed(value=("skipped", number))
        assert result.outcome == expected


def test_peak_in_flight_is_the_queue_depth(start_method: str) -> None:
    """Two hundred items with slow compute and a slow consumer fill the line and never overfill it."""
    permits = Permits()
    settings = settings_for(start_method, queue_depth=6)

    def fetch(item: int) -> Payload:
        return Payload(body=b"image", context=0.004)

    for _ in run(permits.pull(200), fetch, jobs.take_time, settings=settings):
        time.sleep(0.002)
        permits.stored += 1

    assert (permits.stored, permits.peak) == (200, 6)


@pytest.mark.parametrize("where", ["fetch", "compute"])
def test_no_permit_is_lost_over_a_thousand_failures(start_method: str, where: str) -> None:
    """When everything fails the line stays as full as it may be, and every item comes out."""
    permits = Permits()

    def fetch(item: int) -> Payload:
        if where == "fetch":
            raise SystemExit(f"no good: {item}")  # not even an Exception
        return to_payload(item)

    failures = []
    for result in run(permits.pull(1000), fetch, jobs.fail, settings=settings_for(start_method)):
        failures.append(result.outcome)
        permits.stored += 1

    kind, name = (FetchRaised, "SystemExit") if where == "fetch" else (ComputeFailed, "ValueError")
    assert failures == [kind(detail=f"{name}: no good: {number}") for number in range(1000)]
    assert permits.peak == 4


def test_items_are_pulled_lazily_in_the_calling_thread(start_method: str) -> None:
    """A generator of items runs where the consumer runs, and not ahead of it."""
    pulls: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            pulls.append(threading.get_ident())
            yield number

    results = run(items(), to_payload, jobs.echo, settings=settings_for(start_method))
    assert pulls == []
    for _ in range(3):
        next(results)

    assert len(pulls) <= 2 + 4
    assert set(pulls) == {threading.get_ident()}
    results.close()


def test_a_stop_starts_nothing_new_and_drains(start_method: str) -> None:
    """What was pulled is finished and yielded; what was not stays where it is."""
    permits = Permits()
    stop = threading.Event()
    seen = []
    for result in run(
        permits.pull(100), to_payload, jobs.echo, settings=settings_for(start_method), should_stop=stop.is_set
    ):
        seen.append(result)
        if len(seen) == 5:
            stop.set()
            pulled_by_then = permits.pulled

    assert permits.pulled == pulled_by_then < 100
    assert [result.item for result in seen] == list(range(pulled_by_then))
    assert all(isinstance(result.outcome, Computed) for result in seen)


def test_a_stop_before_the_start_ends_at_once(start_method: str) -> None:
    """Nothing is pulled when it is over before it begins."""
    permits = Permits()

    assert not list(
        run(permits.pull(9), to_payload, jobs.echo, settings=settings_for(start_method), should_stop=lambda: True)
    )
    assert permits.pulled == 0


def test_ticks_come_in_the_calling_thread_while_results_are_awaited(start_method: str, tmp_path: Path) -> None:
    """A computation that only a tick can end does end."""
    gate = tmp_path / "gate"
    ticks = []

    def on_tick() -> None:
        ticks.append(threading.get_ident())
        if len(ticks) == 2:
            gate.touch()

    found = outcomes([str(gate)], jobs.wait_for_file, settings_for(start_method), on_tick=on_tick)

    assert found == [Computed(value=b"image")]
    assert set(ticks) == {threading.get_ident()}


def test_memory_is_bound_by_the_queue_depth(start_method: str) -> None:
    """Three hundred images of 3 MB never take more than the line holds, and one copy on its way to a process."""
    size = 3 * MEGABYTE
    settings = settings_for(start_method)
    tracemalloc.start()
    try:
        results = run(
            range(300), lambda item: Payload(body=b"x" * size, context=0.0), jobs.take_time, settings=settings
        )
        sizes = [len(result.outcome.value) for result in results if isinstance(result.outcome, Computed)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sizes == [size] * 300
    assert peak < (settings.queue_depth + 3) * size
