#!/usr/bin/env python
"""Time and buffers of Stage E's hot statements at 10,000, 100,000 and 1,000,000 cards, on a scratch database of its own.

What runs once a batch or oftener must not grow with the catalog: beyond 1.5 times its cost at the smallest size it is
marked, with the reason where it is known. Every call is rolled back. Building a million cards takes a few minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.ops.embedded.keeper import kept_server

SIZES = (10_000, 100_000, 1_000_000)
REPEATS = 7
FLAT = 1.5
#: Below these, a ratio is noise.
NOISE_MS, NOISE_BUFFERS = 2.0, 60

_CARDS = """
INSERT INTO cardpicker_card (source_id, identifier, name, name_key, card_type, extension, size, sha256_checksum,
    image_version, printing_tag_status, created_at)
SELECT %(source)s, 'card ' || n, 'Name ' || n %% 5000, 'name' || n %% 5000, 'CARD', 'jpg', 100000,
    encode(sha256(convert_to((n / 2)::text, 'UTF8')), 'hex'), n::text, 'UNRESOLVED', now()
FROM generate_series(%(low)s, %(high)s) AS n
"""
_EVIDENCE = """
INSERT INTO cardpicker_imageevidence (card_id, image_version, image_sha256, manifest, extractor_versions, readings,
    width_px, height_px, set_code, collector_number, elapsed_ms, run_id, judged_by, created_at, updated_at)
SELECT id, image_version, sha256_checksum, %(manifest)s, '{}', '{"collector_line": {"number": "65", "set_code": "xln"}}',
    600, 816, 'xln', '65', 900, 'bench', %(judged)s, now(), now()
FROM cardpicker_card WHERE identifier IN (SELECT 'card ' || n FROM generate_series(%(low)s, %(high)s) AS n)
"""
#: One card in ten is due, a few are quarantined, a batch's worth of leases has run out; the others are done.
_WORK = """
UPDATE cardpicker_cardwork SET
    due_at = CASE WHEN card_id %% 10 = 0 THEN now() - card_id %% 100000 * interval '1 second' END,
    quarantined_at = CASE WHEN card_id %% 1000 = 1 THEN now() END,
    last_outcome = CASE WHEN card_id %% 1000 = 1 THEN 'gone' ELSE 'stored' END, settled_at = now()
"""
_LEASES = """
UPDATE cardpicker_cardwork SET due_at = NULL, lease_owner = %(owner)s, leased_until = now() - interval '1 second'
WHERE card_id IN (SELECT card_id FROM cardpicker_cardwork WHERE card_id %% 10 = 5 ORDER BY card_id LIMIT 50)
"""
_RUNS = """
INSERT INTO cardpicker_pilotrunledger (batch_id, run_id, trigger_reason, status, reason, host, pid, process_started_at,
    slot, started_at, heartbeat_at, finished_at, elapsed_s, batch_size, stage_c_stored, stage_c_transferred,
    stage_c_current, stage_c_unusable, stage_c_crashed, stage_c_deferred, fetch_throttled, fetch_failed, stage_d_votes,
    already_voted, stage_d_review, stage_d_resolved, yields, peak_rss_mb, peak_tree_rss_mb)
SELECT gen_random_uuid(), 'bench-' || n, 'event', 'COMPLETED', '', 'bench', 1, now(), 0, at, at, at + interval '4 seconds',
    4, 25, 25, 0, 0, 0, 0, 0, 0, 0, 20, 0, 5, 0, '{}', 100, 200
FROM (SELECT n, now() - n * interval '5 seconds' AS at FROM generate_series(%(low)s / 25, %(high)s / 25) AS n) AS past
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something that Stage E does, and why it may grow where it may."""

    name: str
    act: Callable[[], object]
    grows_because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call cost: the median of several, and the pages that its statements touched."""

    time_ms: float
    buffers: int


def main() -> int:
    """Build, measure and print; 1 when something grows that may not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N", help="cards, ascending")
    parser.add_argument("--explain", metavar="OPERATION", help="print the plans of one operation at the largest size")
    options = parser.parse_args()
    sizes = sorted(options.sizes)
    with kept_server(None) as server:
        _set_up_django(server.url)
        operations = _operations()
        costs: dict[str, list[Cost]] = {operation.name: [] for operation in operations}
        built = 0
        for size in sizes:
            _say(f"building {size:,} cards")
            _build(built + 1, size)
            built = size
            for operation in operations:
                costs[operation.name].append(_measure(operation))
        if options.explain:
            _explain(next(each for each in operations if each.name == options.explain))
        return _report(sizes, operations, costs)


def _set_up_django(url: str) -> None:
    import django
    from django.core.management import call_command

    os.environ |= {"CARDPICKER_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
    os.environ["STAGE_E_STREAMING_ENABLED"] = "1"
    # A million rows are made in one statement.
    os.environ["CARDPICKER_STATEMENT_TIMEOUT_S"] = "3600"
    os.environ["STAGE_E_HOST_LOAD_CEILING"] = "10000"
    django.setup()
    call_command("migrate", verbosity=0)


def _build(low: int, high: int) -> None:
    """Add cards ``low`` to ``high`` with evidence, work and the runs that made it, and refresh the statistics."""
    from django.db import connection

    from cardpicker.models import Source
    from cardpicker.stage_c.extractors.registry import manifest
    from cardpicker.stage_d.registry import stage_d_manifest

    source, _ = Source.objects.get_or_create(key="bench", defaults={"kind": "local_folder", "location": "/nowhere"})
    known: dict[str, Any] = {
        "source": source.pk,
        "low": low,
        "high": high,
        "manifest": manifest(),
        "judged": stage_d_manifest(),
    }
    with connection.cursor() as cursor:
        for statement in (_CARDS, _EVIDENCE, _WORK, _RUNS):
            cursor.execute(statement, known)
        cursor.execute(_LEASES, {"owner": uuid.uuid4()})
        for table in ("card", "imageevidence", "cardwork", "pilotrunledger"):
            cursor.execute(f"VACUUM (FREEZE, ANALYZE) cardpicker_{table}")


def _operations() -> list[Operation]:
    from django.conf import settings

    from cardpicker.models import Card, CardWork
    from cardpicker.stage_c.outcomes import Stored
    from cardpicker.stage_e import ledger, requests, work
    from cardpicker.stage_e.burial import bury_runs
    from cardpicker.stage_e.concurrency import try_acquire_dispatch_slot
    from cardpicker.stage_e.dispatch import dispatch_micro_batch, slot_settings
    from cardpicker.stage_e.status import read_status
    from cardpicker.stage_e.sweep import reconcile
    from cardpicker.stage_e.vitals import Vitals

    lease = work.Lease(owner=uuid.uuid4(), lease_s=60, max_attempts=5)
    calm = Vitals(load_1m=0.1, largest_rss_mb=50, tree_rss_mb=100)

    def seeds() -> list[int]:
        return list(CardWork.objects.filter(card_id__lt=5000, due_at__isnull=False).values_list("pk", flat=True)[:25])

    def settled_batch() -> None:
        claimed = work.claim(lease, limit=25)
        for card_id in claimed:
            work.settle(lease, card_id, Stored())
        work.extend(lease)
        work.close_done(lease, claimed)

    def throttled() -> None:
        slot = slot_settings(settings.STAGE_E)
        with contextlib.ExitStack() as held:
            for _ in range(slot.slots):
                held.enter_context(try_acquire_dispatch_slot(slot))
            dispatch_micro_batch()

    return [
        Operation(name="claim the oldest, and siblings", act=lambda: work.claim(lease, limit=25)),
        Operation(name="claim seeds, and siblings", act=lambda: work.claim(lease, limit=25, seeds=seeds())),
        Operation(name="claim, settle, close a batch", act=settled_batch),
        Operation(name="expire leases, bury runs", act=lambda: work.expire(5, owners=bury_runs())),
        Operation(name="heartbeat", act=lambda: (work.extend(lease), ledger.beat(lease.owner))),
        Operation(name="is anything due", act=work.is_due),
        Operation(name="waiting requests", act=requests.waiting_requests),
        Operation(name="throttled dispatch", act=throttled),
        Operation(
            name="image changed on 25 cards",
            act=lambda: Card.objects.filter(pk__in=range(100, 125)).update(image_version="new"),
        ),
        Operation(
            name="count by state",
            act=work.count_by_state,
            grows_because="every row of work is counted: asked for by a person, not by a batch",
        ),
        Operation(
            name="status",
            act=lambda: read_status(settings.STAGE_E, "cardpicker-slot", 1, calm),
            grows_because="it counts by state, and due cards by reason",
        ),
        Operation(
            name="reconcile (a whole sweep)",
            act=lambda: reconcile(5),
            grows_because="it compares every card with its evidence: once in five minutes, by one process",
        ),
    ]


def _measure(operation: Operation) -> Cost:
    times = []
    for _ in range(REPEATS):
        with _rolled_back():
            started = time.perf_counter()
            operation.act()
            times.append(1000 * (time.perf_counter() - started))
    return Cost(time_ms=statistics.median(times), buffers=sum(_buffers(plan) for _, plan in _plans(operation)))


def _explain(operation: Operation) -> None:
    for sql, plan in _plans(operation, form="TEXT"):
        print(f"\n{' '.join(sql.split())[:300]}\n{plan}")


def _plans(operation: Operation, form: str = "JSON") -> list[tuple[str, Any]]:
    """Run an operation with each of its statements explained before it is executed."""
    from django.db import connection

    found: list[tuple[str, Any]] = []

    def explained(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(("SELECT", "UPDATE", "INSERT", "DELETE", "WITH")) and not many:
            with context["connection"].connection.cursor() as cursor:
                cursor.execute("SAVEPOINT explained")
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT {form}) {sql}", params)
                rows = cursor.fetchall()
                found.append((sql, rows[0][0][0] if form == "JSON" else "\n".join(row[0] for row in rows)))
                cursor.execute("ROLLBACK TO SAVEPOINT explained")
        return execute(sql, params, many, context)

    with _rolled_back(), connection.execute_wrapper(explained):
        operation.act()
    return found


def _buffers(plan: Any) -> int:
    top = plan["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


@contextlib.contextmanager
def _rolled_back() -> Iterator[None]:
    from django.db import transaction

    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _report(sizes: Sequence[int], operations: Sequence[Operation], costs: dict[str, list[Cost]]) -> int:
    from cardpicker.operations.text_table import format_table

    headings = ["operation", *(f"{size:,} ms" for size in sizes), *(f"{size:,} pages" for size in sizes), "growth", ""]
    rows, guilty = [], []
    for operation in operations:
        measured = costs[operation.name]
        growth = _growth(measured)
        verdict = "flat" if growth <= FLAT else operation.grows_because or "GROWS"
        guilty += [operation.name] if verdict == "GROWS" else []
        times = [f"{cost.time_ms:.1f}" for cost in measured]
        pages = [f"{cost.buffers:,}" for cost in measured]
        rows.append([operation.name, *times, *pages, f"{growth:.1f}×", verdict])
    print("\n".join(format_table(headings, rows, right=set(headings[1:-1]), widest=90)))
    print(
        f"\n{len(guilty)} operations grow with the catalog that may not" + (f": {', '.join(guilty)}" if guilty else "")
    )
    return 1 if guilty else 0


def _growth(measured: Sequence[Cost]) -> float:
    """Return the larger of the growths of time and pages, from the smallest size to the largest, noise left out."""
    first, last = measured[0], measured[-1]
    in_time = max(last.time_ms, NOISE_MS) / max(first.time_ms, NOISE_MS)
    in_pages = max(last.buffers, NOISE_BUFFERS) / max(first.buffers, NOISE_BUFFERS)
    # Pages are what is the same on a busy host; time alone counts where no page is touched.
    return in_pages if first.buffers else in_time


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
