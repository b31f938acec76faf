"""Ask for cards to be tried again, any number of them in one statement."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Now

from cardpicker.models import CardWork

REASON = "asked-for"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """What came of asking."""

    asked: int  #: Cards that are due now and were not before.
    left_alone: int  #: Cards due already, at work at this moment, or no longer listed by their source.


def ask_again(work: QuerySet[CardWork]) -> AskedAgain:
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
        earliest = Case(When(due_at__lte=Now(), then=F("due_at")), default=Now())
        asked = CardWork.objects.filter(pk__in=locked).update(
            due_at=earliest, quarantined_at=Value(None), attempts=0, reason=REASON
        )
    return AskedAgain(asked=asked, left_alone=total - asked)
