"""Cards whose evidence is of every fate, for comparing ways of judging them."""

from __future__ import annotations

from typing import Any

from cardpicker.models import Card, CardPrintingTag, ImageEvidence, ReviewItem
from cardpicker.stage_c.extractors.registry import manifest
from cardpicker.tests.stage_d_cases import make_printing, read_card

#: (name, readings): voted on by either calculator, asked about for several reasons, or not understood.
FATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Opt", {"collector_line": {"number": "65", "set_code": "xln", "confidence": 0.95}}),
    ("Opt", {"collector_line": {"number": "60", "set_code": "dom", "confidence": 0.7}, "artist": {"artist": "X Y"}}),
    ("Opt", {"collector_line": {"number": "65", "confidence": 0.95}}),
    ("Opt", {"artist": {"artist": "Tyler Jacobson"}, "legal_line": {"copyright_year": 2017}}),
    ("Opt", {"collector_line": {"error": "ValueError: odd"}}),
    ("Opt (2)", {"quality": {"truncated": True}}),
    ("Fire", {"collector_line": {"number": "128", "set_code": "apc", "confidence": 0.9}}),
    ("Nonesuch", {"collector_line": {"number": "65", "set_code": "xln", "confidence": 0.95}}),
    ("Opt", {}),
)


def make_judged_cards(copies: int = 1) -> list[Card]:
    """Store printings, and ``copies`` cards of each fate with evidence that is current."""
    make_printing("Opt", "xln", "65", artist="Tyler Jacobson", released_at="2017-09-29")
    make_printing("Opt", "dom", "60", artist="Tyler Jacobson", released_at="2018-04-27")
    make_printing("Fire // Ice", "apc", "128", artist="David Martin", released_at="2001-06-04")
    cards = [read_card(name, readings=readings) for _ in range(copies) for name, readings in FATES]
    ImageEvidence.objects.update(manifest=manifest())
    return cards


def outcome() -> tuple[list[Any], list[Any], list[Any]]:
    """Return votes, questions and answers as they are now, without runs and times."""
    votes = CardPrintingTag.objects.order_by("card_id", "anonymous_id")
    columns = ("card_id", "anonymous_id", "printing_id", "source", "confidence", "evidence", "image_version")
    items = ReviewItem.objects.order_by("card_id").values_list("card_id", "reason", "detail", "survivors")
    answers = Card.objects.order_by("pk").values_list("pk", "printing_tag_status", "inferred_canonical_card_id")
    return list(votes.values_list(*columns)), list(items), list(answers)
