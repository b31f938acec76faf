"""Images that are known to be good: read before, in the way that images are asked for now."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db.models import F

from cardpicker.models import ImageEvidence
from cardpicker.stage_c.doubt import CANARIES_WANTED, Doubt, Known
from cardpicker.stage_c.plan import CardPlan, load_plans

if TYPE_CHECKING:
    from cardpicker.stage_c.departures import Flight

#: Of the latest, so that what is asked for was there a short while ago.
_DRAWN_FROM = 200


def find_canaries(rendition: str, *, besides: Collection[int]) -> dict[int, Known]:
    """Return a few cards, each of another image, that were last read off ``rendition``, with what was read then.

    Args:
        besides: cards that are in doubt themselves.
    """
    rows = (
        ImageEvidence.objects.filter(
            rendition=rendition,
            transferred_from__isnull=True,
            card__removed_at__isnull=True,
            image_version=F("card__image_version"),
        )
        .exclude(manifest="")
        .exclude(card_id__in=besides)
        .order_by("-pk")
        .values_list("card_id", "image_sha256", "art_hash", "width_px", "height_px")
    )
    found: dict[int, Known] = {}
    seen: set[str] = set()
    for card_id, sha256, art_hash, width_px, height_px in rows[:_DRAWN_FROM]:
        if sha256 not in seen and len(found) < CANARIES_WANTED:
            seen.add(sha256)
            found[card_id] = Known(image_sha256=sha256, art_hash=art_hash, size_px=(width_px, height_px))
    return found


def next_canary(doubt: Doubt[Flight], *, besides: Collection[int]) -> list[CardPlan]:
    """Return the known image to ask for next; none when there is no doubt, one is under way, or enough is known."""
    if doubt.wants_canaries:
        doubt.ask(find_canaries(doubt.first_in_doubt.rendition, besides=besides))
    while (card_id := doubt.next_canary()) is not None:
        plans = load_plans([card_id], as_unread=True)
        if plans:
            return plans
        doubt.canary_said(card_id, None)
    return []


def take_back(card_id: int, image_sha256: str) -> bool:
    """Take back what was read off bytes that were not the card's image; the next sweep has it read anew."""
    return bool(
        ImageEvidence.objects.filter(card_id=card_id, image_sha256=image_sha256).update(manifest="", judged_by="")
    )
