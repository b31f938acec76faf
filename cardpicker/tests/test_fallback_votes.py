"""The fallback's votes in the database: one a card, replaced when its rules or its parameters are raised, and explained."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from cardpicker.models import (
    CanonicalCard,
    Card,
    CardPrintingTag,
    ImageEvidence,
    ReviewItem,
    SupersededVote,
    VoteSource,
)
from cardpicker.stage_d.registry import CALCULATORS, FALLBACK, stage_d_manifest
from cardpicker.stage_d.run import run_stage_d
from cardpicker.tests.stage_d_cases import make_printing, read_card

pytestmark = pytest.mark.django_db

FOOTER = {
    "collector_line": {"number": "6", "confidence": 0.96},
    "legal_line": {"copyright_year": 2008},
    "artist": {"artist": "Jeremy Enecio"},
    "frame": {"frame": "2003"},
}


def flickerwisps() -> tuple[CanonicalCard, CanonicalCard]:
    """Store two printings with the same number."""
    eve = make_printing("Flickerwisp", "eve", "6", artist="Jeremy Enecio", released_at="2008-07-25", frame="2003")
    mm3 = make_printing("Flickerwisp", "mm3", "6", artist="Jeremy Enecio", released_at="2017-03-17", frame="2015")
    return eve, mm3


def vote_of_older_rules(card: Card, printing: CanonicalCard) -> CardPrintingTag:
    """Store what the fallback said before."""
    return CardPrintingTag.objects.create(
        card=card,
        printing=printing,
        anonymous_id="stage-d-fallback-v1",
        source=VoteSource.DEDUCTION,
        confidence=0.65,
        evidence={"basis": "only survivor"},
        image_version=card.image_version,
        run_id="old",
    )


def test_a_vote_of_older_rules_is_replaced_and_not_doubled() -> None:
    """The voter keeps its name, so that a card has one live vote of it; the old one stays in the trail."""
    eve, mm3 = flickerwisps()
    card = read_card("Flickerwisp", readings=FOOTER)
    vote_of_older_rules(card, mm3)

    run_stage_d([card.pk], run_id="new")

    vote = CardPrintingTag.objects.get()
    assert (vote.printing, vote.anonymous_id, vote.run_id) == (eve, "stage-d-fallback-v1", "new")
    assert SupersededVote.objects.get().printing_id == mm3.pk


def test_a_vote_that_the_scorer_would_not_cast_is_withdrawn() -> None:
    """Below the threshold nothing is said, whatever was said before."""
    eve, _ = flickerwisps()
    card = read_card("Flickerwisp", readings={"artist": {"artist": "Jeremy Enecio"}})
    vote_of_older_rules(card, eve)

    run_stage_d([card.pk], run_id="new")

    assert not CardPrintingTag.objects.exists()
    assert ReviewItem.objects.get().survivors == sorted(CanonicalCard.objects.values_list("pk", flat=True))


def test_other_parameters_make_every_judged_card_due_again() -> None:
    """Another fit is another set of calculators, as another version is."""
    refitted = replace(FALLBACK, parameters="another")
    raised = replace(FALLBACK, version=FALLBACK.version + 1)
    manifests = {
        stage_d_manifest([calculator if each is FALLBACK else each for each in CALCULATORS])
        for calculator in (FALLBACK, refitted, raised)
    }

    assert len(manifests) == 3
    assert stage_d_manifest() in manifests


def test_a_vote_keeps_its_reasons() -> None:
    """Every feature with what was read, how it compares and what that is worth; and who came second."""
    _, mm3 = flickerwisps()
    card = read_card("Flickerwisp", readings=FOOTER)

    run_stage_d([card.pk], run_id="r1")

    evidence: dict[str, Any] = CardPrintingTag.objects.get().evidence
    assert evidence["basis"] == "all readings together"
    assert "copyright_year 2008: year of the release (x" in evidence["reasons"]
    assert "artist Jeremy Enecio: agrees (x" in evidence["reasons"]
    assert evidence["runner_up"] == mm3.pk
    assert 0 < evidence["something_else"] < 0.02


def test_the_ranking_is_explained_as_text_and_as_json() -> None:
    """With probabilities and reasons, also where there is no vote."""
    eve, mm3 = flickerwisps()
    card = read_card("Flickerwisp", readings={"artist": {"artist": "Jeremy Enecio"}})
    text, plain = StringIO(), StringIO()

    call_command("explain_printing", str(card.pk), stdout=text)
    call_command("explain_printing", str(card.pk), "--json", stdout=plain)

    verdict = json.loads(plain.getvalue())["verdicts"]["stage-d-fallback-v1"]
    assert {ranked["printing_id"] for ranked in verdict["ranking"]} == {eve.pk, mm3.pk}
    assert verdict["ranking"][0]["reasons"][0]["feature"] == "artist"
    probability = verdict["ranking"][0]["probability"]
    assert probability == verdict["ranking"][1]["probability"]
    assert f"{probability:.4f}  EVE 6 en, Flickerwisp" in text.getvalue()
    assert "artist Jeremy Enecio: agrees" in text.getvalue()


def test_evidence_of_no_candidate_has_no_ranking() -> None:
    """A name that the catalog does not know, without a line."""
    card = read_card("Nobody Knows")

    run_stage_d([card.pk], run_id="r1")

    assert not CardPrintingTag.objects.exists()
    assert ImageEvidence.objects.get().judged_by == stage_d_manifest()
