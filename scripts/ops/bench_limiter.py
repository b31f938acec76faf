#!/usr/bin/env python
"""Whether many processes keep to one shared rate, and what that costs the database: ``bench_limiter.py --processes 16``.

Each process takes permits as a run does, waits for their moments and counts them instead of fetching. The budget is
one of its own in the environment's database, and is removed at the end.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

DESTINATION = "BENCHMARK"
#: Whoever begins late would take what was left over from the start.
WARM_UP_S = 3.0
MAX_WAIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one process did."""

    moments: list[float]  #: Of its permits, on the clock that all processes of this host share.
    statements: int


def spend(rate_per_s: float, seconds: float, together: Barrier) -> Share:
    """Spend permits until the time is over."""
    import django

    django.setup()
    from django.db import connection

    from cardpicker.stage_c.fetch.purse import Purse

    statements = 0

    def count(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        nonlocal statements
        statements += 1
        return execute(sql, params, many, context)

    connection.ensure_connection()
    purse = Purse(DESTINATION, rate_per_s, MAX_WAIT_S)
    moments: list[float] = []
    together.wait(120)
    ends_at = time.monotonic() + WARM_UP_S + seconds
    with connection.execute_wrapper(count):
        while (permit := purse.next(10_000)).starts_at < ends_at:
            time.sleep(max(0.0, permit.starts_at - time.monotonic()))
            if permit.is_granted:
                moments.append(time.monotonic())
    return Share(moments=moments, statements=statements)


def _child(rate_per_s: float, seconds: float, together: Barrier, shares: multiprocessing.Queue[Share]) -> None:
    shares.put(spend(rate_per_s, seconds, together))


def main() -> int:
    """Measure once; one JSON object, exit code 1 when the rate is off by more than allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--rate", type=float, default=7.0, help="permits per second of all processes")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--tolerance", type=float, default=0.05)
    arguments = parser.parse_args()
    _renew_budget()
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(arguments.processes)
    shares: multiprocessing.Queue[Share] = context.Queue()
    children = [
        context.Process(target=_child, args=(arguments.rate, arguments.seconds, together, shares))
        for _ in range(arguments.processes)
    ]
    for child in children:
        child.start()
    found = [shares.get(timeout=arguments.seconds + 180) for _ in children]
    for child in children:
        child.join(30)
    _renew_budget(keep=False)
    moments = sorted(moment for share in found for moment in share.moments)
    counted = [
        moment for moment in moments if moments[0] + WARM_UP_S <= moment < moments[0] + WARM_UP_S + arguments.seconds
    ]
    rate = len(counted) / arguments.seconds
    result = {
        "processes": arguments.processes,
        "set_per_s": arguments.rate,
        "measured_per_s": round(rate, 3),
        "off_by": round(rate / arguments.rate - 1, 4),
        "most_in_10_s": max(sum(start <= moment < start + 10 for moment in moments) for start in moments),
        "statements_per_image": round(sum(share.statements for share in found) / max(1, len(moments)), 3),
    }
    print(json.dumps(result))
    return 0 if abs(rate / arguments.rate - 1) <= arguments.tolerance else 1


def _renew_budget(*, keep: bool = True) -> None:
    """Forget the budget of an earlier measurement; the first to fetch from a destination makes its row, once for all."""
    import django

    django.setup()
    from cardpicker.models import FetchBudget

    FetchBudget.objects.filter(destination=DESTINATION).delete()
    if keep:
        FetchBudget.objects.create(destination=DESTINATION)


if __name__ == "__main__":
    sys.exit(main())
