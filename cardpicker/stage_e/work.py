"""Work and its leases: which cards are due, who has claimed them, and how each attempt ended.

Every function is one statement whose row count decides; ``owner`` is the batch that claimed. A card is due, leased,
done or quarantined, and the four add up.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from django.db import connection, transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce, Now

from cardpicker.catalogue.text import clean_text
from cardpicker.models import CardWork
from cardpicker.stage_c.outcomes import (
    AlreadyCurrent,
    CardGone,
    CardOutcome,
    Crashed,
    Deferred,
    Failed,
    Gone,
    LockedOut,
    Stored,
    Throttled,
    Transferred,
    Unusable,
)

FIRST_RETRY_S = 30.0
LAST_RETRY_S = 3600.0
THROTTLED_RETRY_S = 30.0
SIBLINGS_PER_BATCH = 200
DETAIL_LENGTH = 500

# Rows are updated by an array of their keys: how many a claim picks the planner cannot know, and for a join with more
# than a few it would read the whole table.
_CLAIM = """
WITH seeded AS MATERIALIZED (
    SELECT card_id FROM cardpicker_cardwork
    WHERE card_id = ANY(%(seeds)s) AND due_at <= statement_timestamp() AND lease_owner IS NULL AND quarantined_at IS NULL
    ORDER BY card_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), oldest AS MATERIALIZED (
    SELECT card_id FROM cardpicker_cardwork
    WHERE due_at <= statement_timestamp() AND lease_owner IS NULL AND quarantined_at IS NULL AND card_id <> ALL(%(seeds)s)
    ORDER BY due_at, card_id LIMIT %(limit)s - (SELECT count(*) FROM seeded) FOR UPDATE SKIP LOCKED
), picked AS (
    SELECT card_id FROM seeded UNION ALL SELECT card_id FROM oldest
)
UPDATE cardpicker_cardwork AS work
SET due_at = NULL, lease_owner = %(owner)s, leased_until = statement_timestamp() + %(lease_s)s * interval '1 second',
    attempts = attempts + 1, last_batch = %(owner)s
WHERE work.card_id = ANY(ARRAY(SELECT card_id FROM picked))
RETURNING work.card_id
"""

_CLAIM_SIBLINGS = """
WITH twins AS (
    SELECT twin.id FROM cardpicker_card AS mine
    JOIN cardpicker_card AS twin ON twin.sha256_checksum = mine.sha256_checksum
    WHERE mine.id = ANY(%(cards)s)
    UNION
    SELECT twin.id FROM cardpicker_card AS mine
    JOIN cardpicker_card AS twin ON twin.md5_checksum = mine.md5_checksum
     AND (twin.sha256_checksum IS NULL OR mine.sha256_checksum IS NULL)
    WHERE mine.id = ANY(%(cards)s)
), picked AS MATERIALIZED (
    SELECT card_id FROM cardpicker_cardwork
    WHERE card_id = ANY(ARRAY(SELECT id FROM twins))
      AND due_at <= statement_timestamp() AND lease_owner IS NULL AND quarantined_at IS NULL
    ORDER BY card_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE cardpicker_cardwork AS work
SET due_at = NULL, lease_owner = %(owner)s, leased_until = statement_timestamp() + %(lease_s)s * interval '1 second',
    attempts = attempts + 1, last_batch = %(owner)s
WHERE work.card_id = ANY(ARRAY(SELECT card_id FROM picked))
RETURNING work.card_id
"""

_KEEP = """
UPDATE cardpicker_cardwork SET last_outcome = %(name)s, last_detail = '' WHERE card_id = %(card)s AND lease_owner = %(owner)s
"""

_COUNT = """
SELECT
    (SELECT count(*) FROM cardpicker_cardwork
     WHERE due_at IS NOT NULL AND lease_owner IS NULL AND quarantined_at IS NULL),
    (SELECT count(*) FROM cardpicker_cardwork WHERE lease_owner IS NOT NULL),
    (SELECT count(*) FROM cardpicker_cardwork WHERE quarantined_at IS NOT NULL),
    (SELECT count(*) FROM cardpicker_cardwork)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who claims, for how long at a time, and how often a card may be tried."""

    owner: uuid.UUID
    lease_s: float
    max_attempts: int


def claim(lease: Lease, *, limit: int, seeds: Collection[int] = ()) -> list[int]:
    """Claim up to ``limit`` due cards, the ``seeds`` among them first, then the oldest; count the attempt.

    Byte-identical due siblings of the claimed cards come along, so that one image is read once.
    """
    cards = _claim(_CLAIM, lease, limit=limit, seeds=sorted(seeds))
    if cards:
        cards += _claim(_CLAIM_SIBLINGS, lease, limit=SIBLINGS_PER_BATCH, cards=cards)
    return cards


def _claim(sql: str, lease: Lease, **parameters: int | list[int]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"owner": lease.owner, "lease_s": lease.lease_s, **parameters})
        return sorted(row[0] for row in cursor.fetchall())


def extend(lease: Lease) -> int:
    """Lengthen every lease of the batch; return how many it still has."""
    until = Now() + timedelta(seconds=lease.lease_s)
    return _update(CardWork.objects.filter(lease_owner=lease.owner), leased_until=until)


def still_claimed(lease: Lease, card_ids: Collection[int]) -> list[int]:
    """Return which of the cards the batch has not lost."""
    mine = CardWork.objects.filter(lease_owner=lease.owner, card_id__in=card_ids)
    return list(mine.order_by("pk").values_list("pk", flat=True))


def settle(lease: Lease, card_id: int, outcome: CardOutcome) -> bool:
    """Write how an attempt ended; False when the batch has lost its claim on the card, and nothing was written.

    Stored, transferred and current evidence keep the lease: the card is done only when it has been judged.
    """
    name, detail = outcome_name(outcome), clean_text(getattr(outcome, "detail", ""), DETAIL_LENGTH)
    if isinstance(outcome, Stored | Transferred | AlreadyCurrent):
        return _keep(lease, card_id, name)
    mine = CardWork.objects.filter(card_id=card_id, lease_owner=lease.owner)
    match outcome:
        case Throttled(retry_after_s=wait_s):
            return bool(_give_back(mine, name, detail, wait_s if wait_s is not None else THROTTLED_RETRY_S))
        case LockedOut() | Deferred():
            return bool(_give_back(mine, name, detail, 0.0))
        case CardGone():
            return bool(mine.update(**_ended(name, detail), attempts=0))
        case Unusable(kind=kind):
            return bool(_quarantine(mine, f"unusable: {kind.value}", detail))
        case Gone() | Failed() | Crashed():
            return _retry_or_quarantine(mine, name, detail, lease.max_attempts)
        case _:
            assert_never(outcome)


def _keep(lease: Lease, card_id: int, name: str) -> bool:
    """Write an outcome that leaves the lease as it is: what nearly every card's attempt comes to, so written out."""
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, {"name": name, "card": card_id, "owner": lease.owner})
        return bool(cursor.rowcount)


def close_done(lease: Lease, card_ids: Collection[int]) -> int:
    """End the leases of judged cards; one that became due again meanwhile stays due."""
    mine = CardWork.objects.filter(lease_owner=lease.owner, card_id__in=card_ids)
    return _update(mine, lease_owner=None, leased_until=None, attempts=0, settled_at=Now())


def release(owner: uuid.UUID, reason: str) -> int:
    """Give back every card that the batch still holds, due at once and with its attempt."""
    return _give_back(CardWork.objects.filter(lease_owner=owner), "deferred", clean_text(reason, DETAIL_LENGTH), 0.0)


def expire(max_attempts: int, *, owners: Collection[uuid.UUID] = ()) -> int:
    """End the leases that have run out and those of ``owners``, which are known to be dead.

    The attempt stays counted: a card that kills its worker is quarantined after ``max_attempts``.
    """
    over = CardWork.objects.filter(lease_owner__isnull=False).filter(
        Q(leased_until__lt=Now()) | Q(lease_owner__in=list(owners))
    )
    exhausted = Q(attempts__gte=max_attempts)
    return _update(
        over,
        lease_owner=None,
        leased_until=None,
        settled_at=Now(),
        last_outcome="interrupted",
        last_detail="the worker died or lost its lease",
        due_at=Case(When(exhausted, then=Value(None)), default=Coalesce(F("due_at"), Now())),
        quarantined_at=Case(When(exhausted, then=Now()), default=Value(None)),
    )


def mark_due(card_ids: Collection[int], reason: str) -> int:
    """Make cards due now, unless they are due already, quarantined, or no longer listed by their source."""
    idle = CardWork.objects.filter(
        card_id__in=card_ids, due_at__isnull=True, quarantined_at__isnull=True, card__removed_at__isnull=True
    )
    return _update(idle, due_at=Now(), reason=reason[:50])


def is_due() -> bool:
    """Whether any card could be claimed now."""
    return count_due(at_most=1) > 0


def count_due(*, at_most: int) -> int:
    """Return how many cards could be claimed now; counting ends at ``at_most``."""
    due = CardWork.objects.filter(due_at__lte=Now(), lease_owner__isnull=True, quarantined_at__isnull=True)
    # In the order of the index of due work: where much is due, a plan without one may read all that is done first.
    return len(due.order_by("due_at", "pk").values_list("pk")[:at_most])


def any_due(card_ids: Collection[int]) -> bool:
    """Whether any of these cards could be claimed now."""
    due = CardWork.objects.filter(due_at__lte=Now(), lease_owner__isnull=True, quarantined_at__isnull=True)
    return due.filter(card_id__in=card_ids).exists()


def count_by_state() -> Mapping[str, int]:
    """Return how many cards are due, leased, done and quarantined; the four add up to all.

    One statement, so one moment. What is not done is counted by its own indexes; only the total grows with the catalog.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COUNT)
        due, leased, quarantined, total = cursor.fetchone()
    done = total - due - leased - quarantined
    return {"due": due, "leased": leased, "done": done, "quarantined": quarantined}


def outcome_name(outcome: CardOutcome) -> str:
    """Return an outcome's name as operators read it, such as ``card-gone``."""
    letters = type(outcome).__name__
    return "".join(f"-{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(letters))


def retry_delay_s(attempts: int) -> float:
    """Return the wait before the next attempt: doubled each time, capped, with a fifth of jitter either way."""
    delay: float = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** max(0, attempts - 1))
    return delay * random.uniform(0.8, 1.2)


def _update(rows: QuerySet[CardWork], **values: Any) -> int:
    """Update many rows, locking them in the order of their keys, so that two who change the same ones never deadlock."""
    with transaction.atomic():
        keys = rows.order_by("pk").select_for_update(of=("self",)).values("pk")
        return CardWork.objects.filter(pk__in=keys).update(**values)


def _ended(name: str, detail: str) -> dict[str, Any]:
    return {
        "lease_owner": None,
        "leased_until": None,
        "settled_at": Now(),
        "last_outcome": name[:40],
        "last_detail": detail,
    }


def _after(wait_s: float) -> Coalesce:
    """Return when a card is due after a wait, unless something made it due during its lease."""
    return Coalesce(F("due_at"), Now() + timedelta(seconds=wait_s))


def _give_back(mine: QuerySet[CardWork], name: str, detail: str, wait_s: float) -> int:
    taken_back = Case(When(attempts__gt=0, then=F("attempts") - 1), default=Value(0))
    return _update(mine, **_ended(name, detail), attempts=taken_back, due_at=_after(wait_s))


def _quarantine(mine: QuerySet[CardWork], name: str, detail: str) -> int:
    """Quarantine a card, unless something made it due again during its lease."""
    fresh = Q(due_at__isnull=True)
    return mine.update(**_ended(name, detail), quarantined_at=Case(When(fresh, then=Now()), default=Value(None)))


def _retry_or_quarantine(mine: QuerySet[CardWork], name: str, detail: str, max_attempts: int) -> bool:
    attempts = mine.values_list("attempts", flat=True).first()
    if attempts is None:
        return False
    if attempts >= max_attempts:
        return bool(_quarantine(mine, name, detail))
    return bool(mine.update(**_ended(name, detail), due_at=_after(retry_delay_s(attempts))))
