"""A program that owns a conveyor, for tests that kill it or look at how it ends.

``python -m cardpicker.tests.conveyor_owner START_METHOD HOW [DSN LOCK]``; it prints a line before its first process starts.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import psycopg2

from cardpicker.stage_c.conveyor import Conveyed, ConveyorSettings, Payload, run
from cardpicker.tests import conveyor_jobs as jobs

#: A generator that nobody closes, still there when the interpreter ends.
ABANDONED: list[Iterator[Conveyed[int]]] = []


def line_of(start_method: str, contexts: Iterator[object], *, workers: int = 2) -> Iterator[Conveyed[int]]:
    """Return a conveyor whose processes are told ``contexts``."""
    settings = ConveyorSettings(start_method=start_method, compute_workers=workers, queue_depth=4)

    def fetch(item: int) -> Payload:
        return Payload(body=b"image", context=next(contexts))

    return run(itertools.count(), fetch, jobs.misbehave, settings=settings)


def main(start_method: str, how: str, *database: str) -> None:
    """Do ``how``: work until killed, get stuck, count a few items, or abandon the line."""
    if database:
        dsn, lock = database
        slot = psycopg2.connect(dsn)
        slot.autocommit = True
        slot.cursor().execute("SELECT pg_advisory_lock(%s)", [int(lock)])
    print("ready", flush=True)
    match how:
        case "work":
            for _ in line_of(start_method, itertools.repeat("well")):
                pass
        case "get stuck":
            for _ in line_of(start_method, itertools.chain(["well", "well", "stop"], itertools.repeat("well"))):
                print("stuck", flush=True)
        case "count":
            print(sum(1 for _ in itertools.islice(line_of(start_method, itertools.repeat("well")), 10)), flush=True)
        case "abandon":
            ABANDONED.append(line_of(start_method, itertools.repeat("well")))
            print(type(next(ABANDONED[0]).outcome).__name__, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
