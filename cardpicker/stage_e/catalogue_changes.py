"""Printings that came or changed make the cards of their names due: what no name had may be answered now."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.db import connection

from cardpicker.catalogue.name_key import name_keys as keys_of
from cardpicker.models import Card, PrintingTagStatus
from cardpicker.stage_e.work import mark_due

REASON: Final = "catalog-changed"
#: Cards of one statement.
STEP: Final = 2_000

_NAMED = """
SELECT card.id FROM unnest(%s::text[]) AS touched(key) JOIN cardpicker_card AS card ON card.name_key = touched.key
WHERE card.removed_at IS NULL AND card.printing_tag_status = %s
"""


def mark_names_due(name_keys: Collection[str]) -> int:
    """Make open cards that printings of these keys may answer due for judgement; return how many were not due already.

    Cards are marked in the order of their keys, a bounded number a statement, so the caller's transaction waits for
    nobody who waits for it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, [sorted(name_keys), PrintingTagStatus.UNRESOLVED])
        found = {pk for (pk,) in cursor.fetchall()}
    ordered = sorted(found | _by_face(frozenset(name_keys)))
    return sum(mark_due(ordered[at : at + STEP], REASON) for at in range(0, len(ordered), STEP))


def _by_face(name_keys: frozenset[str]) -> set[int]:
    """Return the open cards of several faces one of which has such a key; there are few, and no index knows faces."""
    split = Card.objects.present().filter(name__contains="//", printing_tag_status=PrintingTagStatus.UNRESOLVED)
    rows = split.order_by().values_list("pk", "name").iterator()
    return {pk for pk, name in rows if not name_keys.isdisjoint(keys_of(name))}
