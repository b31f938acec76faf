"""The walk of a bulk command: card by card in key order, in chunks that never part byte-identical cards.

A chunk's result therefore depends on no other chunk's, which is what makes a dry run, taken back chunk by chunk, say
what the real run does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cardpicker.operations.bulk.jobs import BulkJob
from cardpicker.stage_d.twins import find_twins, read_pools


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Cards that are treated together, and the card up to which the walk has then come."""

    card_ids: tuple[int, ...]
    last_card_id: int


def chunks(job: BulkJob, *, after: int, size: int) -> Iterator[Chunk]:
    """Yield the chunks of the cards past ``after``; one may be empty, or larger than ``size`` by its cards' twins."""
    while window := list(job.cards().filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:size]):
        yield Chunk(card_ids=_with_twins(job, window, after), last_card_id=window[-1])
        after = window[-1]


def _with_twins(job: BulkJob, window: list[int], after: int) -> tuple[int, ...]:
    """Return the cards of the window and their twins in scope, without those whose pool came with an earlier chunk."""
    here = set(window)
    twins = find_twins(here) - here
    if not twins:
        return tuple(window)
    in_scope = here | set(job.cards().filter(pk__in=twins).values_list("pk", flat=True))
    taken: set[int] = set()
    for pool in read_pools(here):
        members = [card.id for card in pool.cards if card.id in in_scope]
        if members[0] > after:
            taken.update(members)
    return tuple(sorted(taken))
