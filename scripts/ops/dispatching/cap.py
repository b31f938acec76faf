"""Many workers, few slots: how many dispatch at once, what becomes of the others, and whether anybody waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg2
from django.conf import settings
from django_q.models import Success

from cardpicker.models import CardWork, StageEThrottleCounter
from cardpicker.operations.admin.work import STATES
from cardpicker.stage_e.dispatch import slot_settings
from cardpicker.stage_e.outcomes import DispatchStatus
from scripts.ops.dispatching.bench import Bench, Figure, in_words

WORKERS, SLOTS = 8, 2
CARDS_AT_ONCE = 25
SAMPLE_EVERY_S = 0.05
_LOOK = """
SELECT count(*) FILTER (WHERE granted), count(*) FILTER (WHERE NOT granted) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %s
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(slots=True)
class _Seen:
    samples: int = 0
    most: int = 0
    waiting: int = 0


def measure(bench: Bench, cards: int) -> Iterator[Figure]:
    """Upload ``cards`` in small lots, each of which asks for a dispatch, and watch."""
    saved: list[int] = []
    with bench.cluster(Q_WORKERS=str(WORKERS)), _watched_slots() as seen:
        before = _throttled()
        began = time.monotonic()
        while len(saved) < cards:
            saved += bench.save(min(CARDS_AT_ONCE, cards - len(saved)))
        bench.settle()
        elapsed_s = time.monotonic() - began
        after = _throttled()
    work = CardWork.objects.filter(card__in=saved)
    states = {state: work.filter(**condition).count() for state, condition in STATES.items()}
    refused = _refused_s()
    figures: list[tuple[str, float | str, str, str, bool]] = [
        (f"{WORKERS} workers, {SLOTS} slots: cards", len(set(saved)), "", "", True),
        ("until all are settled", elapsed_s, "s", "", True),
        ("cards by state", in_words(states), "", f"{cards} done", states["done"] == cards),
        (f"samples of pg_locks, {1000 * SAMPLE_EVERY_S:.0f} ms apart", seen.samples, "", "", True),
        ("most slots held at once", seen.most, "", f"at most {SLOTS}", seen.most <= SLOTS),
        ("sessions seen waiting for a slot", seen.waiting, "", "0", not seen.waiting),
        ("throttle counter before", before, "", "", True),
        ("throttle counter after", after, "", "more than before", after > before),
        ("longest from a request to its refusal", max(refused, default=0.0), "s", "", True),
    ]
    for name, value, unit, promise, is_kept in figures:
        yield Figure(part="cap", name=name, value=value, unit=unit, promise=promise, is_kept=is_kept)


def _throttled() -> int:
    return sum(StageEThrottleCounter.objects.values_list("count", flat=True))


def _refused_s() -> list[float]:
    """Return how long each refused task took, from its request (which django-q2 calls its start) to its end."""
    refused = Success.objects.filter(result=str(DispatchStatus.THROTTLED))
    return [(stopped - started).total_seconds() for started, stopped in refused.values_list("started", "stopped")]


@contextlib.contextmanager
def _watched_slots() -> Iterator[_Seen]:
    slots = slot_settings(settings.STAGE_E)
    connect = dict(slots.connect)
    seen, ended = _Seen(), threading.Event()

    def look() -> None:
        with contextlib.closing(psycopg2.connect(**connect)) as session, session.cursor() as cursor:
            session.autocommit = True
            while not ended.wait(SAMPLE_EVERY_S):
                cursor.execute(_LOOK, [slots.namespace % 2**32])
                held, waiting = cursor.fetchone() or (0, 0)
                seen.samples, seen.most = seen.samples + 1, max(seen.most, held)
                seen.waiting += waiting

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
