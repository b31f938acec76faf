"""Cards are locked in primary-key order before anything about them is decided and written."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from django.db import OperationalError, connection

from cardpicker.models import Card

T = TypeVar("T")

ATTEMPTS: Final = 4
PAUSE_S: Final = 0.05
#: PostgreSQL's codes of a deadlock and of a serialization failure.
_RETRYABLE: Final = frozenset({"40P01", "40001"})


def lock_cards(card_ids: Collection[int]) -> None:
    """Hold the rows of the given cards until the transaction ends; votes may still refer to them meanwhile."""
    rows = Card.objects.select_for_update(no_key=True).filter(pk__in=card_ids).order_by("pk")
    list(rows.values_list("pk", flat=True))


def retrying_deadlocks(unit: Callable[[], T]) -> T:
    """Run a whole transaction, again from its start when PostgreSQL broke it to end a deadlock.

    Inside a caller's transaction it runs once: the broken transaction is the caller's to repeat.
    """
    for attempt in range(1, ATTEMPTS):
        try:
            return unit()
        except OperationalError as error:
            if connection.in_atomic_block or getattr(error.__cause__, "pgcode", None) not in _RETRYABLE:
                raise
            time.sleep(PAUSE_S * attempt)
    return unit()
