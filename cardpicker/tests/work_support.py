"""Bare cards whose files nobody reads, and rivals that act at the same moment, each on a connection of its own."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import connection, connections

from cardpicker.models import Card, CardWork, Source
from cardpicker.stage_e.work import Lease

T = TypeVar("T")
PATIENCE_S = 60.0


def bare_card(**fields: Any) -> Card:
    """Return an unsaved card of a source that every test shares."""
    name = uuid.uuid4().hex
    fields = {"identifier": name, "name": name, "image_version": name, **fields}
    return Card(source=fields.pop("source", None) or bare_source(), **fields)


def bare_cards(count: int, **fields: Any) -> list[Card]:
    """Store ``count`` cards by ``bulk_create``, in the order of their keys."""
    source = bare_source()
    return Card.objects.bulk_create([bare_card(source=source, **fields) for _ in range(count)])


def bare_source() -> Source:
    """Return the source that bare cards are of."""
    return Source.objects.get_or_create(key="bare", defaults={"kind": "local_folder", "location": "/nowhere"})[0]


def ids(cards: list[Card]) -> list[int]:
    """Return the cards' keys."""
    return [card.pk for card in cards]


def work_of(card: Card | int) -> CardWork:
    """Return a card's work as it is stored now."""
    return CardWork.objects.get(pk=card if isinstance(card, int) else card.pk)


def state_of(card: Card | int) -> str:
    """Return where a card stands now."""
    return work_of(card).state


def new_lease(**changes: Any) -> Lease:
    """Return the lease of a batch of its own."""
    return Lease(**{"owner": uuid.uuid4(), "lease_s": 60.0, "max_attempts": 3, **changes})


def at_once(count: int, act: Callable[[int], T]) -> list[T]:
    """Call ``act`` with 0 to ``count`` - 1, in threads that start together; return what it returned."""
    gate = threading.Barrier(count)

    def run(number: int) -> T:
        try:
            gate.wait(PATIENCE_S)
            return act(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def eventually(condition: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """Whether ``condition`` becomes true in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def somebody_waits_for_us() -> bool:
    """Whether another session waits for a row that this thread's session has locked."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        row = cursor.fetchone()
    return bool(row and row[0])
