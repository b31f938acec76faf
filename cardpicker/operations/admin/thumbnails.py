"""A card's image within a page."""

from __future__ import annotations

import hashlib

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cardpicker.models import Card
from cardpicker.operations.images import cdn_address


def thumbnail(card: Card, *, large: bool = False) -> SafeString:
    """Show a card's image: from the image CDN where it serves the card, else through our own view.

    Args:
        card: with its source at hand, or each picture costs a query.
        large: for a page of its own rather than a row of a list.
    """
    return format_html(
        '<img class="thumbnail{}" src="{}" alt="{}" loading="lazy" decoding="async" referrerpolicy="no-referrer">',
        " thumbnail-large" if large else "",
        cdn_address(card) or _own_address(card),
        f"Image of {card.name}",
    )


def _own_address(card: Card) -> str:
    """Return the view's address, which changes with the image, so that browsers may keep what they have."""
    version = hashlib.sha256(card.image_version.encode()).hexdigest()[:12]
    return f"{reverse('card-thumbnail', args=[card.pk])}?v={version}"
