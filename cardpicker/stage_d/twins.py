"""Byte-identical cards: one image under several names, whose votes are one pool. Equal art never makes twins.

Files are equal by SHA-256, or by MD5 where one of them has no SHA-256.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db import connection

from cardpicker.stage_d.locking import LockedCard, lock_cards, read_cards

_FIND = """
SELECT card.id, card.sha256_checksum IS NULL <> (card.md5_checksum IS NULL)
FROM cardpicker_card AS card WHERE card.id = ANY(%(cards)s)
UNION
SELECT twin.id, twin.md5_checksum IS NULL
FROM cardpicker_card AS mine JOIN cardpicker_card AS twin ON twin.sha256_checksum = mine.sha256_checksum
WHERE mine.id = ANY(%(cards)s) AND mine.sha256_checksum <> ''
UNION
SELECT twin.id, twin.sha256_checksum IS NULL
FROM cardpicker_card AS mine JOIN cardpicker_card AS twin ON twin.md5_checksum = mine.md5_checksum
WHERE mine.id = ANY(%(cards)s) AND mine.md5_checksum <> ''
"""


@dataclass(frozen=True, slots=True)
class Pool:
    """The cards of one image, in the order of their keys."""

    cards: tuple[LockedCard, ...]


def find_twins(card_ids: Collection[int]) -> set[int]:
    """Return the cards with all that may be their twins, themselves included; those that are no more are left out."""
    found, is_partial = _find(card_ids)
    # A file known by one checksum only may lead to files that are known by the other only.
    return _find(found)[0] if is_partial else found


def lock_pools(card_ids: Collection[int]) -> list[Pool]:
    """Hold the cards and their twins until the transaction ends, in primary-key order; return the cards' pools."""
    return _pools(card_ids, lock_cards)


def read_pools(card_ids: Collection[int]) -> list[Pool]:
    """Return the cards' pools as they are, without a claim on them."""
    return _pools(card_ids, read_cards)


def _pools(card_ids: Collection[int], read: Callable[[Collection[int]], Mapping[int, LockedCard]]) -> list[Pool]:
    wanted = set(card_ids)
    pools = group_by_image(read(find_twins(wanted)).values())
    return [pool for pool in pools if any(card.id in wanted for card in pool.cards)]


def group_by_image(cards: Iterable[LockedCard]) -> list[Pool]:
    """Part cards into pools, in the order of their first cards."""
    ordered = sorted(cards, key=lambda card: card.id)
    sha256_of: dict[str, str] = {}
    for card in ordered:
        if card.md5 and card.sha256:
            sha256_of[card.md5] = min(card.sha256, sha256_of.get(card.md5, card.sha256))
    pools: defaultdict[str, list[LockedCard]] = defaultdict(list)
    for card in ordered:
        pools[_identity(card, sha256_of.get(card.md5, ""))].append(card)
    return [Pool(cards=tuple(members)) for members in pools.values()]


def _identity(card: LockedCard, sha256_of_md5: str) -> str:
    """Return what the cards of one image share."""
    if sha256 := card.sha256 or sha256_of_md5:
        return f"sha256:{sha256}"
    return f"md5:{card.md5}" if card.md5 else f"card:{card.id}"


def _find(card_ids: Collection[int]) -> tuple[set[int], bool]:
    with connection.cursor() as cursor:
        cursor.execute(_FIND, {"cards": sorted(card_ids)})
        rows = cursor.fetchall()
    return {pk for pk, _ in rows}, any(partial for _, partial in rows)
