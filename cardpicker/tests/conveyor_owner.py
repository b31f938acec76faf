"""A program that owns a conveyor, for tests that kill it or look at how it ends.

``python -m cardpicker.tests.conveyor_owner START_METHOD HOW [DSN LOCK]``; it prints a line before its first process starts.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import psycopg2.extensions

from cardpicker.stage_c.conveyor import Conveyed, ConveyorSettings, Payload, run
from cardpicker.tests import conveyor_jobs as jobs

#: A generator that nobody closes, still there when the interpreter ends.
ABANDONED: list[Iterator[Conveyed[int]]] = []
HELD: list[psycopg2.extensions.connection] = []


def line_of(
    start_method: str, contexts: Iterator[object], compute: Callable[[bytes, Any], Any] = jobs.misbehave
) -> Iterator[Conveyed[int]]:
    """Return an endless conveyor whose processes are told ``contexts``."""
    settings = ConveyorSettings(start_method=start_method, compute_workers=2, queue_depth=4)

    def fetch(item: int) -> Payload:
        return Payload(body=b"image", context=next(contexts))

    return run(itertools.count(), fetch, compute, settings=settings)


def main(start_method: str, how: str, *database: str) -> None:
    """Do ``how``: work until killed, get stuck, go deaf, count a few items or the heaps, or abandon the line."""
    _hold(*database)
    print("ready", flush=True)
    match how:
        case "work":
            for _ in line_of(start_method, itertools.repeat("well")):
                pass
        case "get stuck":
            for _ in line_of(start_method, itertools.chain(["well", "well", "stop"], itertools.repeat("well"))):
                print("stuck", flush=True)
        case "go deaf":
            for _ in line_of(start_method, itertools.repeat("well"), jobs.miss_the_death_signal):
                pass
        case "count":
            print(sum(1 for _ in itertools.islice(line_of(start_method, itertools.repeat("well")), 10)), flush=True)
        case "count heaps":
            deque(itertools.islice(line_of(start_method, itertools.repeat("well")), 10), maxlen=0)
            ctypes.CDLL(None).malloc_stats()  # to the error output
        case "abandon":
            ABANDONED.append(line_of(start_method, itertools.repeat("well")))
            print(type(next(ABANDONED[0]).outcome).__name__, flush=True)


def _hold(dsn: str = "", lock: str = "") -> None:
    if dsn:
        slot = psycopg2.connect(dsn)
        slot.autocommit = True
        slot.cursor().execute("SELECT pg_advisory_lock(%s)", [int(lock)])
        HELD.append(slot)


if __name__ == "__main__":
    main(*sys.argv[1:])
