"""Stored text parsed anew: what today's parsers make of it, without the image."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from cardpicker.models import CardWork, ImageEvidence
from cardpicker.stage_c.evidence import ComputeContext, Lexicon
from cardpicker.stage_c.extractors.registry import extractor_versions, manifest
from cardpicker.stage_c.reparse import FROM_TEXT, reparse
from cardpicker.tests.stage_d_cases import make_printing, read_card

LEXICON = Lexicon(set_codes=frozenset({"xln"}))


def row(text: str, top_mm: float) -> dict[str, Any]:
    """Return a stored row at the bottom left of a card, every word of it read with confidence."""
    box = [3.0, top_mm, 20.0, top_mm + 2.0]
    return {"text": text, "box_mm": box, "glyph_mm": 1.4, "word_confidence": [0.95] * len(text.split(" "))}


ROWS: dict[str, Any] = {
    "passes": [{"variant": "gray", "rows": [row("065/279 C", 82.0), row("XLN • EN TYLER JACOBSON", 84.5)]}]
}


def test_stored_rows_give_what_an_extractor_gave_with_the_image() -> None:
    """The whole line, and the artist that the card's printings have."""
    parsed = reparse({"bottom_text": ROWS}, ComputeContext(artists=("Tyler Jacobson",)), LEXICON)

    assert set(parsed) == set(FROM_TEXT)
    line = parsed["collector_line"]
    assert (line["number"], line["set_code"], line["language"]) == ("65", "xln", "en")
    assert parsed["artist"]["artist"] == "Tyler Jacobson"


@pytest.mark.parametrize("readings", [{}, {"bottom_text": {"error": "ValueError: odd"}}], ids=["none", "failed"])
def test_nothing_is_made_of_rows_that_are_not_there(readings: dict[str, Any]) -> None:
    """Silence is not an empty line."""
    assert reparse(readings, ComputeContext(), LEXICON) == {}


@pytest.mark.django_db
def test_rows_of_an_older_reader_are_parsed_and_stay_due_to_be_read_again() -> None:
    """The parsers' versions are today's, the evidence as a whole is not."""
    card = read_card("Opt", readings={"bottom_text": ROWS})
    ImageEvidence.objects.update(extractor_versions={**extractor_versions(), "bottom_text": 0}, manifest="old")

    call_command("reparse_collector_evidence", "--write", stdout=StringIO(), stderr=StringIO())

    evidence = ImageEvidence.objects.get(card=card)
    assert (evidence.collector_number, evidence.manifest) == ("65", "old")
    assert evidence.extractor_versions == {**extractor_versions(), "bottom_text": 0}


@pytest.mark.django_db
def test_the_command_shows_what_changes_stores_it_when_told_and_asks_for_judgement(tmp_path: Path) -> None:
    """What the image itself said stays; evidence of older parsers is current again; the second time nothing changes."""
    make_printing("Opt", "xln", "65", artist="Tyler Jacobson")
    old = {
        "bottom_text": ROWS,
        "collector_line": {"number": "279", "set_code": None},
        "geometry": {"bleed_mm": 3.1},
    }
    card, bare = read_card("Opt", readings=old), read_card("Opt", readings={})
    versions = {**extractor_versions(), "collector_line": 0}
    ImageEvidence.objects.update(extractor_versions=versions, judged_by="rules", manifest="old")
    CardWork.objects.update(due_at=None)
    report = tmp_path / "changes.jsonl"

    def run(*arguments: str) -> str:
        out = StringIO()
        call_command("reparse_collector_evidence", *arguments, stdout=out, stderr=StringIO())
        return out.getvalue()

    shown = run("--diff-report", str(report))
    assert ImageEvidence.objects.get(card=card).readings == old
    changes = [json.loads(line) for line in report.read_text().splitlines()]
    assert {"card": card.pk, "what": "number", "before": "279", "after": "65"} in changes
    assert "1  number changed" in shown and "1  set_code gained" in shown

    run("--write")
    evidence = ImageEvidence.objects.get(card=card)
    assert (evidence.set_code, evidence.collector_number, evidence.judged_by) == ("xln", "65", "")
    assert (evidence.manifest, evidence.extractor_versions) == (manifest(), extractor_versions())
    assert evidence.readings["geometry"] == {"bleed_mm": 3.1}
    assert [work.card_id for work in CardWork.objects.filter(due_at__isnull=False)] == [card.pk]
    assert ImageEvidence.objects.get(card=bare).judged_by == "rules"

    again = run("--write", "--restart")
    assert "1  unchanged" in again and "made_due" not in again
