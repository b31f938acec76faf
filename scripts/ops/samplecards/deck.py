"""Every card of the sample catalog; the texts are ours, only names, numbers and artists are facts."""

from __future__ import annotations

from .line_cards import LINE_CARDS
from .other_cards import OTHER_CARDS
from .specs import CardSpec

DECK: tuple[CardSpec, ...] = (*LINE_CARDS, *OTHER_CARDS)
