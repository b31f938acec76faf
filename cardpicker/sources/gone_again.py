"""Cards whose image could not be had although their source still lists them: asked for once more, a day later.

An image host forgets links and takes sources offline for a while. As long as a listing has a card, that its image was
missing the last time is no verdict for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from cardpicker.models import CardWork
from cardpicker.models.operations import GONE

REASON: Final = "listed-still"
#: From one try to the next.
AGAIN_AFTER: Final = timedelta(hours=20)


def ask_again(source_id: int, listed: Collection[int]) -> int:
    """Make the quarantined cards among ``listed`` due whose image was gone long enough ago; one try each.

    Their attempts are left as they are, so that one more failure quarantines them again.
    """
    set_aside = CardWork.objects.filter(
        card__source_id=source_id,
        card__removed_at__isnull=True,
        last_outcome=GONE,
        quarantined_at__lt=Now() - AGAIN_AFTER,
    )
    with transaction.atomic():
        found = set_aside.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True)
        again = [pk for pk in found if pk in listed]
        return CardWork.objects.filter(pk__in=again).update(quarantined_at=None, due_at=Now(), reason=REASON)
