"""The channel report: what each channel says, and "never ran" apart from "ran and found nothing"."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cardpicker.models import Card, CardType, ImageEvidence
from cardpicker.stage_d.run import run_stage_d
from cardpicker.tests.stage_d_cases import make_card, make_printing, read_card

pytestmark = pytest.mark.django_db


def report(*arguments: str) -> dict[str, Any]:
    """Return the command's JSON."""
    out = StringIO()
    call_command("channel_report", "--json", *arguments, stdout=out)
    parsed: dict[str, Any] = json.loads(out.getvalue())
    return parsed


@pytest.fixture
def cards() -> list[Card]:
    """Cards of every fate: read, read in vain, failed, not read by one extractor, of another image, not read at all."""
    make_printing("Opt", "xln", "65")
    line = {"number": "65", "set_code": "xln", "confidence": 0.95}
    cards = [
        read_card("Opt", readings={"collector_line": line, "artist": {"raw": "", "artist": None}}),
        read_card("Opt", readings={"collector_line": {"number": None, "raw": ""}, "artist": {"artist": "X Y"}}),
        read_card("Opt", readings={"collector_line": {"error": "ValueError: odd"}}),
        read_card("Opt", readings={"collector_line": line}, image_version="first"),
        read_card("Opt", card_type=CardType.TOKEN, readings={"collector_line": line}),
    ]
    run_stage_d([card.pk for card in cards], run_id="r1")
    Card.objects.filter(pk=cards[3].pk).update(image_version="second")
    return [*cards, make_card("Opt")]


@pytest.mark.usefixtures("cards")
def test_an_extractor_that_read_nothing_is_apart_from_one_that_never_ran() -> None:
    """And both from one that failed, and from cards that have no evidence of their image."""
    extractors = report()["extractors"]

    assert extractors["collector_line"] == {
        "positive": 2,
        "negative": 0,
        "asked": {},
        "abstained": {"nothing-read": 1},
        "silent": {"evidence-of-another-image": 1, "failed: ValueError": 1, "no-evidence": 1},
        "has_run": True,
    }
    assert extractors["artist"]["positive"] == 1
    assert extractors["artist"]["abstained"] == {"nothing-read": 1}
    assert extractors["artist"]["silent"]["never-ran"] == 2
    assert not extractors["geometry"]["has_run"]


@pytest.mark.usefixtures("cards")
def test_a_calculator_s_silence_has_a_reason() -> None:
    """Not eligible, not judged by today's rules, or settled by an earlier one; the rest voted, abstained or asked."""
    ineligible = {"evidence-of-another-image": 1, "not-a-card": 1, "no-evidence": 1}
    calculators = report()["calculators"]

    join_key = calculators["stage-d-join-key-v1"]
    assert (join_key["positive"], join_key["silent"]) == (1, ineligible)
    assert join_key["abstained"]["no-text"] == 2
    slow_path = calculators["stage-d-slow-path-v1"]
    assert sum(slow_path["asked"].values()) == 2
    assert slow_path["silent"] == {**ineligible, "settled-earlier": 1}

    ImageEvidence.objects.update(judged_by="older rules")
    join_key = report()["calculators"]["stage-d-join-key-v1"]
    assert not join_key["has_run"]
    assert join_key["silent"] == {**ineligible, "not-judged-by-todays-rules": 3}


def test_no_such_printing_is_a_negative() -> None:
    """A line of another card, with this card's artist, in a known set."""
    make_printing("Opt", "dom", "60", artist="Tyler Jacobson")
    make_printing("Shock", "xln", "150", artist="Jason Rainville")
    line = {"number": "150", "set_code": "xln", "confidence": 0.95}
    card = read_card("Opt", readings={"collector_line": line, "artist": {"artist": "Tyler Jacobson"}})
    run_stage_d([card.pk], run_id="r1")

    assert report()["calculators"]["stage-d-join-key-v1"]["negative"] == 1


@pytest.mark.usefixtures("cards")
def test_the_text_says_what_never_ran_and_the_check_fails_for_it() -> None:
    """Exit code 7, for whoever runs it unattended."""
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("channel_report", "--check", stdout=out, stderr=StringIO())

    assert left.value.code == 7
    assert "never ran on any card: bottom_text, geometry" in out.getvalue()
    assert "  collector_line silent: evidence-of-another-image 1, failed: ValueError 1, no-evidence 1" in out.getvalue()


@pytest.mark.usefixtures("cards")
def test_a_sample_is_drawn_and_said_and_a_source_is_kept_to() -> None:
    """Always the same cards, so that two reports can be compared."""
    first, second = report("--sample", "3"), report("--sample", "3")

    assert (first["cards"], first["drawn_from"]) == (3, 6)
    assert first == second
    assert report("--source", "cases")["cards"] == 6
    with pytest.raises(CommandError, match="No source has the key"):
        report("--source", "elsewhere")
