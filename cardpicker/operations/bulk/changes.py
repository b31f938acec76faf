"""What a chunk changes: votes, questions and answers of its cards before and after, as JSON lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from cardpicker.models import CanonicalCard, Card, CardPrintingTag, ReviewItem

#: (card, what): its value; what is absent has none.
Snapshot = dict[tuple[int, str], Any]
NO_MATCH = "no such printing"


def snapshot(card_ids: Collection[int]) -> Snapshot:
    """Return what the cards' votes, questions and answers are now."""
    seen: Snapshot = {}
    votes = CardPrintingTag.objects.filter(card_id__in=card_ids)
    for card_id, voter, printing_id, confidence in votes.values_list(
        "card_id", "anonymous_id", "printing_id", "confidence"
    ):
        seen[card_id, f"vote of {voter}"] = {"printing": printing_id or NO_MATCH, "confidence": confidence}
    cards = Card.objects.filter(pk__in=card_ids)
    for card_id, status, printing_id in cards.values_list("pk", "printing_tag_status", "inferred_canonical_card_id"):
        seen[card_id, "answer"] = {"status": status, "printing": printing_id}
    items = ReviewItem.objects.filter(card_id__in=card_ids)
    for card_id, reason, survivors in items.values_list("card_id", "reason", "survivors"):
        seen[card_id, "question"] = {"reason": reason, "survivors": survivors}
    return seen


def differences(before: Snapshot, after: Snapshot) -> Iterator[Mapping[str, Any]]:
    """Yield what differs, printings named by set, number and language."""
    differing = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    both = [side.get(key) for key in differing for side in (before, after)]
    names = _names({each["printing"] for each in both if each and isinstance(each.get("printing"), int)})
    for key in differing:
        card_id, what = key
        yield {
            "card": card_id,
            "what": what,
            "before": _named(before.get(key), names),
            "after": _named(after.get(key), names),
        }


def _names(printing_ids: Collection[int]) -> dict[int, str]:
    columns = ("pk", "expansion__code", "collector_number", "language")
    rows = CanonicalCard.objects.filter(pk__in=printing_ids).values_list(*columns)
    return {pk: f"{set_code} {number} {language}" for pk, set_code, number, language in rows}


def _named(value: Mapping[str, Any] | None, names: Mapping[int, str]) -> Mapping[str, Any] | None:
    if value is None or "printing" not in value:
        return value
    return {**value, "printing": names.get(value["printing"], value["printing"])}
