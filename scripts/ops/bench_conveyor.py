"""Measure the conveyor: throughput by number of processes, what a pool costs to start, how many items are in flight.

Ratios compare lines of one run, so they hold on a busy host too; the figures themselves do not.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cardpicker.stage_c.conveyor import Computed, ConveyorSettings, Payload, run

START_METHODS = ("forkserver", "fork")
STARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is conveyed."""

    items: int
    body: bytes
    rounds: int  #: How often compute hashes the body: its CPU time.


def burn(body: bytes, rounds: int) -> str:
    """Hash ``body`` ``rounds`` times."""
    digest = ""
    for _ in range(rounds):
        digest = hashlib.sha256(body).hexdigest()
    return digest


def calibrate(body: bytes, compute_ms: float) -> int:
    """Return how many rounds take about ``compute_ms``."""
    rounds = 1
    while True:
        started = time.process_time()
        burn(body, rounds)
        elapsed_ms = 1000 * (time.process_time() - started)
        if elapsed_ms >= compute_ms / 2:
            return max(1, round(rounds * compute_ms / elapsed_ms))
        rounds *= 2


def plain_loop(load: Load) -> float:
    """Return the items per second of one process without a conveyor."""
    started = time.monotonic()
    for _ in range(load.items):
        burn(load.body, load.rounds)
    return load.items / (time.monotonic() - started)


def conveyed(load: Load, settings: ConveyorSettings) -> tuple[float, int]:
    """Return the items per second after the first result, and the most items in flight."""
    pulled = stored = peak = 0
    first_at = 0.0

    def items() -> Iterator[int]:
        nonlocal pulled, peak
        for number in range(load.items):
            pulled += 1
            peak = max(peak, pulled - stored)
            yield number

    def fetch(item: int) -> Payload:
        return Payload(body=bytes(load.body), context=load.rounds)

    for result in run(items(), fetch, burn, settings=settings):
        if not isinstance(result.outcome, Computed):
            raise SystemExit(f"item {result.item}: {result.outcome}")
        stored += 1
        first_at = first_at or time.monotonic()
    return (load.items - 1) / (time.monotonic() - first_at), peak


def start_costs(settings: ConveyorSettings) -> list[float]:
    """Return the seconds from nothing to one stored result and an ended pool, for several pools in a row."""
    costs = []
    for _ in range(STARTS):
        started = time.monotonic()
        list(run([0], lambda _: Payload(body=b"", context=1), burn, settings=settings))
        costs.append(time.monotonic() - started)
    return costs


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: words to the left, figures to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    print(f"\n{title}")
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200, metavar="N", help="items in a run (default: %(default)s)")
    parser.add_argument(
        "--image-mb", type=float, default=3.0, metavar="MB", help="size of an item (default: %(default)s)"
    )
    parser.add_argument(
        "--compute-ms", type=float, default=40.0, metavar="MS", help="CPU time of an item (default: %(default)s)"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="numbers of processes to try"
    )
    options = parser.parse_args()
    if options.items < 2 or options.image_mb <= 0 or options.compute_ms <= 0 or min(options.workers) < 1:
        parser.error("wants at least 2 items, 1 worker, and sizes above 0")

    body = os.urandom(int(options.image_mb * 2**20))
    load = Load(items=options.items, body=body, rounds=calibrate(body, options.compute_ms))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{load.items} items of {options.image_mb:g} MB, {load.rounds} rounds of hashing each, {cores} usable cores")

    starts = []
    for method in START_METHODS:
        first, *later = start_costs(ConveyorSettings(start_method=method, compute_workers=max(options.workers)))
        later_s = sorted(later)[len(later) // 2]
        starts.append([method, str(max(options.workers)), f"{1000 * first:.0f} ms", f"{1000 * later_s:.0f} ms"])

    alone = plain_loop(load)
    rows = [["plain loop", "", "1", f"{alone:.1f}", "1.00", "", ""]]
    for method in START_METHODS:
        for workers in options.workers:
            settings = ConveyorSettings(start_method=method, compute_workers=workers, queue_depth=2 * workers)
            rate, peak = conveyed(load, settings)
            depth = str(settings.queue_depth)
            rows.append(["conveyor", method, str(workers), f"{rate:.1f}", f"{rate / alone:.2f}", depth, str(peak)])
    header = ["throughput", "start method", "processes", "items/s", "ratio", "queue depth", "peak in flight"]
    show("Throughput against one process that only computes", header, rows)
    show(
        "A pool from nothing to one result and its end",
        ["start method", "processes", "first", "later (median)"],
        starts,
    )


if __name__ == "__main__":
    main()
