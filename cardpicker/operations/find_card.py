"""The card that an operator means: by key, file or name."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from cardpicker.catalogue.name_key import name_key
from cardpicker.models import Card

SHOWN = 5


class CardNotFoundError(Exception):
    """No card, or more than one, is meant; the message says which there are."""


def find_card(text: str) -> Card:
    """Return the card whose key, identifier, file name or name is ``text``; the first of these that finds any decides.

    Raises:
        CardNotFoundError: none is meant, or several are.
    """
    ways: list[QuerySet[Card]] = []
    if text.isdecimal() and int(text) < 2**63:
        ways.append(Card.objects.filter(pk=int(text)))
    ways.append(Card.objects.filter(Q(identifier=text) | Q(identifier__endswith=f"/{text}")))
    if key := name_key(text):
        ways.append(Card.objects.filter(name_key=key))
    for way in ways:
        found = list(way.select_related("source").order_by("pk")[: SHOWN + 1])
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f"{card.pk} ({card.source.key}: {card.identifier})" for card in found[:SHOWN])
            more = ", …" if len(found) > SHOWN else ""
            raise CardNotFoundError(f"{text!r} is the name of several cards; give one by its key: {listed}{more}.")
    raise CardNotFoundError(f"No card has {text!r} as its key, identifier or name.")
