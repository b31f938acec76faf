"""The walk of a bulk command: card by card in key order, in chunks that never part byte-identical cards.

A chunk's result therefore depends on no other chunk's, which is what makes a dry run, taken back chunk by chunk, say
what the real run does. Which cards are in scope is asked once, at the start: a window at a time would cost a look at
the whole catalog each.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardpicker.operations.bulk.jobs import BulkJob
from cardpicker.stage_d.locking import read_cards
from cardpicker.stage_d.twins import find_twins, group_by_image


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Cards that are treated together, and the card up to which the walk has then come."""

    card_ids: tuple[int, ...]
    last_card_id: int


def cards_in_scope(job: BulkJob) -> Sequence[int]:
    """Return the keys of every card in scope, in their order; eight bytes each."""
    return array("q", job.cards().order_by("pk").values_list("pk", flat=True).iterator(chunk_size=10_000))


def chunks(in_scope: Sequence[int], *, after: int, size: int) -> Iterator[Chunk]:
    """Yield the chunks of the cards past ``after``; one may be empty, or larger than ``size`` by its cards' twins."""
    for at in range(bisect_left(in_scope, after + 1), len(in_scope), size):
        window = in_scope[at : at + size]
        yield Chunk(card_ids=_with_twins(in_scope, window, after), last_card_id=window[-1])
        after = window[-1]


def _with_twins(in_scope: Sequence[int], window: Sequence[int], after: int) -> tuple[int, ...]:
    """Return the cards of the window and their twins in scope, without those whose pool came with an earlier chunk."""
    here = set(window)
    reach = find_twins(here)
    if reach <= here:
        return tuple(window)
    taken: set[int] = set()
    for pool in group_by_image(read_cards(reach).values()):
        members = [card.id for card in pool.cards if _holds(in_scope, card.id)]
        if members and members[0] > after and not here.isdisjoint(members):
            taken.update(members)
    return tuple(sorted(taken))


def _holds(ordered: Sequence[int], card_id: int) -> bool:
    place = bisect_left(ordered, card_id)
    return place < len(ordered) and ordered[place] == card_id
