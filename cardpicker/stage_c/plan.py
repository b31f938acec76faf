"""What a batch knows of its cards before anything is fetched: three queries, then plain values that threads may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardpicker.models import Card, ImageEvidence
from cardpicker.models.operations import GONE
from cardpicker.stage_c.currency import current_evidence
from cardpicker.stage_c.evidence import KnownReadings
from cardpicker.stage_c.transfer import Checksums, checksums_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlan:
    """One card of a batch, as it was when the batch began."""

    card_id: int
    image_version: str
    checksums: Checksums
    source_id: int
    was_gone: bool  #: At the last attempt.
    source_kind: str
    source_location: str
    identifier: str
    resource_key: str
    name_key: str
    listed_dpi: int | None  #: Where the listing tells.
    is_current: bool  #: Its evidence needs no reading.
    known: KnownReadings | None = None  #: What older extractors read off this version of its image.
    asked_dpi: int = 0  #: Asked of the image CDN in place of the setting's; 0: the setting's.


def load_plans(card_ids: Sequence[int], *, as_unread: bool = False) -> list[CardPlan]:
    """Return the cards that their sources still list, in the order of ``card_ids``, each once.

    Args:
        as_unread: take every card for one that nothing was read off yet.
    """
    found = Card.objects.present().order_by().select_related("source", "work").in_bulk(card_ids)
    looked_at = [] if as_unread else list(found)
    current = set(current_evidence().filter(card_id__in=looked_at).values_list("card_id", flat=True))
    known = _known({card_id: found[card_id].image_version for card_id in looked_at if card_id not in current})
    return [
        _plan(found[card_id], card_id in current, known.get(card_id))
        for card_id in dict.fromkeys(card_ids)
        if card_id in found
    ]


def _known(image_versions: Mapping[int, str]) -> dict[int, KnownReadings]:
    """Return the stored readings of cards whose image is still the one that was read.

    Evidence without a manifest was taken back on purpose: it is read anew, whole.
    """
    rows = ImageEvidence.objects.filter(card_id__in=image_versions).exclude(manifest="")
    fields = rows.values_list("card_id", "image_version", "image_sha256", "extractor_versions", "readings")
    return {
        card_id: KnownReadings(image_sha256=sha256, versions=versions, readings=readings)
        for card_id, image_version, sha256, versions, readings in fields
        if image_version == image_versions[card_id] and isinstance(versions, dict) and isinstance(readings, dict)
    }


def _plan(card: Card, is_current: bool, known: KnownReadings | None) -> CardPlan:
    return CardPlan(
        card_id=card.pk,
        image_version=card.image_version,
        checksums=checksums_of(card),
        source_id=card.source.pk,
        was_gone=hasattr(card, "work") and card.work.last_outcome == GONE,
        source_kind=card.source.kind,
        source_location=card.source.location,
        identifier=card.identifier,
        resource_key=card.resource_key,
        name_key=card.name_key,
        listed_dpi=card.dpi,
        is_current=is_current,
        known=known,
    )
