"""Cards are locked in primary-key order before anything about them is decided and written."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeVar

from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS: Final = 4
PAUSE_S: Final = 0.05
#: PostgreSQL's codes of a deadlock and of a serialization failure.
_RETRYABLE: Final = frozenset({"40P01", "40001"})
_READ = """
SELECT id, image_version, printing_tag_status, inferred_canonical_card_id,
       lower(COALESCE(sha256_checksum, '')), lower(COALESCE(md5_checksum, ''))
FROM cardpicker_card WHERE id = ANY(%s) ORDER BY id
"""
_LOCK = f"{_READ} FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class LockedCard:
    """A card as it stands while it is locked, or stood when it was read."""

    id: int
    image_version: str
    status: str
    printing_id: int | None
    sha256: str  #: Empty where its source does not say.
    md5: str


def lock_cards(card_ids: Collection[int]) -> dict[int, LockedCard]:
    """Hold the given cards until the transaction ends, and return them as they then are; votes may still refer to them."""
    return _select(_LOCK, card_ids)


def read_cards(card_ids: Collection[int]) -> dict[int, LockedCard]:
    """Return the given cards as they are, without a claim on them."""
    return _select(_READ, card_ids)


def _select(sql: str, card_ids: Collection[int]) -> dict[int, LockedCard]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [sorted(card_ids)])
        return {row[0]: LockedCard(*row) for row in cursor.fetchall()}


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
            logger.warning("PostgreSQL broke a deadlock: the transaction is repeated, attempt %d", attempt + 1)
            time.sleep(PAUSE_S * attempt)
    return unit()
