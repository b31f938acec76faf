"""Ask for cards to be tried again, any number of them in one statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Case, Count, F, Q, QuerySet, Value, When
from django.db.models.functions import Now

from cardpicker.models import CardWork

REASON = "asked-for"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """What came of asking."""

    asked: int  #: Cards that are due now and were not before.
    left_alone: int  #: Cards due already, at work at this moment, or no longer listed by their source.
    by_outcome: Mapping[str, int] = field(default_factory=dict)  #: Those asked for, by how their last attempt ended.


def failed_work(*, reason: str = "", source_key: str | None = None) -> QuerySet[CardWork]:
    """Return the work of cards that are set aside or wait for another attempt.

    Args:
        reason: how the last attempt ended; also the part before a colon, so that ``unusable`` is every kind of it.
    """
    failed = CardWork.objects.filter(Q(quarantined_at__isnull=False) | Q(due_at__isnull=False, attempts__gt=0))
    if reason:
        failed = failed.filter(Q(last_outcome=reason) | Q(last_outcome__startswith=f"{reason}:"))
    return failed if source_key is None else failed.filter(card__source__key=source_key)


def ask_again(work: QuerySet[CardWork], *, is_dry_run: bool = False) -> AskedAgain:
    """Make the cards of ``work`` due now, quarantined ones included, with a fresh count of attempts.

    Asking twice does nothing the second time. A card that is being worked on is left to its worker. How the last
    attempt ended stays written until the next one ends.
    """
    chosen = CardWork.objects.filter(pk__in=work.order_by().values("pk"))
    fresh = Q(due_at__isnull=False, due_at__lte=Now(), attempts=0)
    wanted = chosen.filter(lease_owner__isnull=True, card__removed_at__isnull=True).exclude(fresh)
    with transaction.atomic():
        total = chosen.count()
        # Rows are locked in the order of their keys, as everywhere; the update itself may take them in any.
        locked = wanted.order_by("pk").select_for_update(of=("self",)).values("pk")
        outcomes = dict(wanted.order_by().values_list("last_outcome").annotate(Count("pk")))
        if is_dry_run:
            asked = sum(outcomes.values())
            return AskedAgain(asked=asked, left_alone=total - asked, by_outcome=outcomes)
        earliest = Case(When(due_at__lte=Now(), then=F("due_at")), default=Now())
        asked = CardWork.objects.filter(pk__in=locked).update(
            due_at=earliest, quarantined_at=Value(None), attempts=0, reason=REASON
        )
    return AskedAgain(asked=asked, left_alone=total - asked, by_outcome=outcomes)
