"""What a person may be shown where no printing has a card's name: names that look like it, and whose art it shows.

Suggestions are shown and never voted for: a name that looks alike is as often another card as a slip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import connection

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.stage_d.catalog_memory import art_index, name_index
from cardpicker.stage_d.name_index import SUGGESTED

_HASH_BITS: Final = 64
_BEARERS: Final = """
    SELECT DISTINCT art.id, printing.name FROM cardpicker_canonicalart AS art
    JOIN cardpicker_canonicalcard AS printing
      ON printing.illustration_id = art.key OR (printing.identifier = art.key AND printing.illustration_id IS NULL)
    WHERE art.id = ANY(%s) ORDER BY printing.name, art.id
"""


class SuggestedBy(StrEnum):
    """What a suggestion goes by."""

    ART = "art"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A name of the catalog that a card may mean."""

    name: str
    similarity: float  #: 0 to 1; of the art's bits, or of the names' trigrams.
    by: SuggestedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A card whose name the catalog does not have."""

    name_keys: Sequence[str]
    art_hash: int | None


def suggest(cards: Mapping[int, Unnamed]) -> dict[int, tuple[Suggestion, ...]]:
    """Return at most five suggestions a card, those by art first, then the likest names; a few queries for any batch."""
    if not cards:
        return {}
    by_art = _by_art({pk: card.art_hash for pk, card in cards.items() if card.art_hash})
    names = name_index()
    found = {}
    for pk, card in cards.items():
        likest = [pair for key in card.name_keys for pair in names.suggest(key)]
        by_name = [
            Suggestion(name=name, similarity=similarity, by=SuggestedBy.NAME)
            for name, similarity in sorted(likest, key=lambda pair: (-pair[1], pair[0]))
        ]
        unique: dict[str, Suggestion] = {}
        for each in (*by_art.get(pk, ()), *by_name):
            unique.setdefault(each.name, each)
        found[pk] = tuple(unique.values())[:SUGGESTED]
    return found


def _by_art(hashes: Mapping[int, int]) -> dict[int, list[Suggestion]]:
    """Return the names of the art that each card shows, where it clearly shows one."""
    if not hashes:
        return {}
    nearest = dict(zip(hashes, art_index(ART_HASH_KIND).nearest(list(hashes.values())), strict=True))
    matches = {pk: art for pk, art in nearest.items() if art is not None and art.is_match}
    bearers: dict[int, list[str]] = {}
    if matches:
        with connection.cursor() as cursor:
            cursor.execute(_BEARERS, [sorted({art for match in matches.values() for art in match.ids})])
            for art, name in cursor.fetchall():
                bearers.setdefault(art, []).append(name)
    return {
        pk: [
            Suggestion(name=name, similarity=round(1 - match.distance / _HASH_BITS, 3), by=SuggestedBy.ART)
            for name in sorted({name for art in match.ids for name in bearers.get(art, ())})
        ]
        for pk, match in matches.items()
    }
