"""What a batch knows of its cards before anything is fetched: two queries, then plain values that threads may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cardpicker.models import Card
from cardpicker.stage_c.currency import current_evidence
from cardpicker.stage_c.transfer import Checksums, checksums_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlan:
    """One card of a batch, as it was when the batch began."""

    card_id: int
    image_version: str
    checksums: Checksums
    source_kind: str
    source_location: str
    identifier: str
    resource_key: str
    name_key: str
    is_current: bool  #: Its evidence needs no reading.


def load_plans(card_ids: Sequence[int]) -> list[CardPlan]:
    """Return the cards that their sources still list, in the order of ``card_ids``, each once."""
    found = Card.objects.present().order_by().select_related("source").in_bulk(card_ids)
    current = set(current_evidence().filter(card_id__in=card_ids).values_list("card_id", flat=True))
    return [_plan(found[card_id], card_id in current) for card_id in dict.fromkeys(card_ids) if card_id in found]


def _plan(card: Card, is_current: bool) -> CardPlan:
    return CardPlan(
        card_id=card.pk,
        image_version=card.image_version,
        checksums=checksums_of(card),
        source_kind=card.source.kind,
        source_location=card.source.location,
        identifier=card.identifier,
        resource_key=card.resource_key,
        name_key=card.name_key,
        is_current=is_current,
    )
