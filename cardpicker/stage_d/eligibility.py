"""Which cards the calculators may judge, and why not the others."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from django.db.models import Case, CharField, F, Q, Value, When

from cardpicker.models import Card, CardType, ImageEvidence, PrintingTagStatus
from cardpicker.models.catalogue import CardQuerySet

#: Below this resolution the printed line is not believed.
MIN_DPI: Final = 200


class Ineligible(StrEnum):
    """Why the calculators leave a card alone."""

    REMOVED = "removed-from-source"
    NOT_A_CARD = "not-a-card"
    LOW_RESOLUTION = "low-resolution"
    NO_EVIDENCE = "no-evidence"
    OTHER_IMAGE = "evidence-of-another-image"
    ANSWERED = "answered-already"


#: The first that holds of a card is its reason.
_CONDITIONS: Final[tuple[tuple[Ineligible, Q], ...]] = (
    (Ineligible.REMOVED, Q(removed_at__isnull=False)),
    (Ineligible.NOT_A_CARD, ~Q(card_type=CardType.CARD)),
    (Ineligible.LOW_RESOLUTION, Q(dpi__lt=MIN_DPI)),
    (Ineligible.NO_EVIDENCE, Q(evidence__isnull=True)),
    (Ineligible.OTHER_IMAGE, ~Q(evidence__image_version=F("image_version"))),
    (Ineligible.ANSWERED, ~Q(printing_tag_status=PrintingTagStatus.UNRESOLVED)),
)


def eligible_evidence() -> Any:
    """Return the evidence rows of the cards that calculators may judge.

    A card is eligible while it is unresolved, listed, of type CARD, at least 200 dpi or of unknown resolution, and its
    evidence was read off the image it has now. Which extractors read it does not matter here: readings are what they
    are, and an absent one abstains.
    """
    return ImageEvidence.objects.filter(
        Q(card__dpi__isnull=True) | Q(card__dpi__gte=MIN_DPI),
        card__printing_tag_status=PrintingTagStatus.UNRESOLVED,
        card__card_type=CardType.CARD,
        card__removed_at__isnull=True,
        image_version=F("card__image_version"),
    )


def eligible_cards(cards: CardQuerySet) -> CardQuerySet:
    """Return those of ``cards`` that calculators may judge."""
    return cards.present().filter(
        Q(dpi__isnull=True) | Q(dpi__gte=MIN_DPI),
        printing_tag_status=PrintingTagStatus.UNRESOLVED,
        card_type=CardType.CARD,
        evidence__image_version=F("image_version"),
    )


def ineligibility() -> Case:
    """Return an expression over cards: why they are not judged, empty where they are."""
    cases = [When(condition, then=Value(reason.value)) for reason, condition in _CONDITIONS]
    return Case(*cases, default=Value(""), output_field=CharField())


def why_not_eligible(card_id: int) -> str:
    """Return why a card is not judged; empty where it is.

    Raises:
        Card.DoesNotExist: no such card.
    """
    cards = Card.objects.filter(pk=card_id).annotate(ineligible=ineligibility())
    return str(cards.values_list("ineligible", flat=True).get())
