"""explain_printing: everything that led to a card's answer, and the rule that did."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.models import Card, CardPrintingTag, CardType, ImageEvidence, PrintingTagStatus, VoteSource
from cardpicker.stage_d.eligibility import Ineligible, eligible_cards, eligible_evidence, ineligibility
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.votes import cast_human_vote, retract_vote
from cardpicker.tests.stage_d_cases import make_card, make_printing, make_user, read_card

pytestmark = pytest.mark.django_db

LINE = {"number": "65", "set_code": "xln"}


def explain(card: Card | str) -> str:
    """Return the command's text."""
    out = StringIO()
    call_command("explain_printing", str(card.pk if isinstance(card, Card) else card), stdout=out)
    return out.getvalue()


def explain_json(card: Card) -> dict[str, Any]:
    """Return the command's JSON."""
    out = StringIO()
    call_command("explain_printing", str(card.pk), "--json", stdout=out)
    explained: dict[str, Any] = json.loads(out.getvalue())
    return explained


def test_a_settled_card_is_explained_from_its_readings_to_the_rule() -> None:
    """Text and JSON name the line, the candidates, each calculator's verdict, each vote and the rule."""
    opt = make_printing("Opt", "xln", "65", artist="Tyler Jacobson")
    make_printing("Opt", "dom", "60")
    card = read_card("Opt", line=LINE, sha256_checksum="a" * 64)
    twin = make_card("Opt again", sha256_checksum="a" * 64)
    run_stage_d([card.pk], run_id="r1")
    cast_human_vote(card, opt, make_user("ann"))
    cast_human_vote(twin, opt, make_user("bob"))

    text = explain(card)
    explained = explain_json(card)

    assert "answer: RESOLVED, XLN 65 en, Opt" in text
    assert "rule: the winner has the weight of two users" in text
    assert f"byte-identical cards, votes pooled: {twin.pk}" in text
    assert "stage-d-join-key-v1: votes for XLN 65 en, Opt at 0.85; basis set+number" in text
    assert "no: machines are not heard: people-suffice" in text
    assert "DOM 60 en, Opt" in text and "Tyler Jacobson" in text
    assert explained["weighing"]["weights"] == {str(opt.pk): 2.0}
    assert explained["weighing"]["rule"] == "resolved"
    assert explained["readings"]["number"] == "65"
    assert explained["stored_readings"]["collector_line"]["set_code"] == "xln"
    assert {(vote["card_id"], vote["weight"]) for vote in explained["votes"]} == {
        (card.pk, 0.5),
        (card.pk, 1.0),
        (twin.pk, 1.0),
    }
    assert explained["verdicts"]["stage-d-join-key-v1"]["kind"] == "vote"
    assert explained["not_judged_because"] == "answered-already"


def test_an_open_card_is_explained_with_what_is_still_possible() -> None:
    """Why each calculator abstained, what was asked, and votes that were live once."""
    opt = make_printing("Opt", "xln", "65")
    card, ann = read_card("Opt"), make_user("ann")
    run_stage_d([card.pk], run_id="r1")
    cast_human_vote(card, opt, ann)
    retract_vote(card, ann)

    text = explain(card)

    assert "answer: UNRESOLVED" in text
    assert "machines alone never settle a card (no-person-voted)" in text
    assert "stage-d-join-key-v1: abstains, no-text" in text
    assert "question stored for a person: NO_TEXT" in text
    assert f"was once: user:{ann.pk} for XLN 65 en, Opt (run -), retracted" in text
    assert "not judged by today's calculators" not in text


def test_art_and_names_that_may_be_meant_are_explained() -> None:
    """How far each candidate's art is off, what an unknown name may mean, and how readily people can answer."""
    near, far = make_printing("Opt", "xln", "65", art_hash=0b1011), make_printing("Opt", "dom", "60", art_hash=-1)
    hashed = {"art_hash": {"kind": ART_HASH_KIND, "hash": "000000000000000f"}}
    card, unknown = read_card("Opt", readings=hashed), read_card("Optt")
    run_stage_d([card.pk, unknown.pk], run_id="r1")

    explained, text = explain_json(card), explain(unknown)

    assert explained["readings"]["art_hash"] == "000000000000000f"
    assert explained["art_distances"] == {str(near.pk): 1, str(far.pk): 60}
    assert explained["question"]["survivors"] == [near.pk]
    assert explained["question"]["answerability"] > 0
    assert "candidates: printings of the card's name (0)" in text
    assert "UNKNOWN_NAME" in text and "may mean: Opt (name 0." in text
    assert "answerability" in text


def test_a_vote_that_does_not_count_says_why() -> None:
    """A twin's later vote of the same voter, and a vote on another image."""
    opt, dom = make_printing("Opt", "xln", "65"), make_printing("Opt", "dom", "60")
    card, twin = (make_card("Opt", md5_checksum="b" * 32) for _ in range(2))
    ann = make_user("ann")
    cast_human_vote(card, opt, ann)
    cast_human_vote(twin, dom, ann)
    CardPrintingTag.objects.create(
        card=card, printing=opt, anonymous_id="machine", source=VoteSource.OCR, image_version="another"
    )

    unheard = {vote["voter"]: vote["unheard"] for vote in explain_json(card)["votes"] if vote["unheard"]}

    assert unheard == {
        f"user:{ann.pk}": "a later vote of the same voter counts",
        "machine": "the card has another image now",
    }


def test_a_card_without_evidence_is_explained_too() -> None:
    """There is nothing to judge, and that is said."""
    text = explain(make_card("Opt"))

    assert "calculators leave it alone: no-evidence" in text
    assert "none: there is no evidence to judge" in text


@pytest.mark.parametrize("way", ["key", "identifier", "file", "name"])
def test_a_card_is_found_by_key_file_or_unique_name(way: str) -> None:
    """The first way that finds one decides."""
    card = make_card("Llanowar Elves", identifier="folder/elves.png")
    make_card("Opt", identifier="folder/opt.png")
    given = {"key": str(card.pk), "identifier": card.identifier, "file": "elves.png", "name": "llanowar-elves"}

    assert explain(given[way]).startswith(f"card {card.pk}: Llanowar Elves")


def test_a_name_of_several_cards_lists_them_and_an_unknown_one_says_so() -> None:
    """In one line, exit code 1."""
    first, second = make_card("Opt", identifier="a.png"), make_card("Opt", identifier="b.png")

    with pytest.raises(CommandError, match=rf"several cards.*{first.pk} \(cases: a.png\), {second.pk} \(cases: b.png"):
        explain("opt")
    with pytest.raises(CommandError, match="No card has 'Nonesuch'"):
        explain("Nonesuch")


def test_why_a_card_is_left_alone_agrees_with_which_are_judged() -> None:
    """Each reason has a card, and exactly the cards without a reason are eligible."""
    fields: dict[str, dict[str, Any]] = {
        "": {},
        Ineligible.NOT_A_CARD: {"card_type": CardType.TOKEN},
        Ineligible.LOW_RESOLUTION: {"dpi": 150},
        Ineligible.OTHER_IMAGE: {"image_version": "another"},
        Ineligible.ANSWERED: {"printing_tag_status": PrintingTagStatus.NO_MATCH},
        Ineligible.REMOVED: {"removed_at": "2026-01-01T00:00:00Z"},
    }
    cards = {reason: read_card("Opt") for reason in fields}
    for reason, card in cards.items():
        Card.objects.filter(pk=card.pk).update(**fields[reason])
    cards[Ineligible.NO_EVIDENCE] = make_card("Opt")

    found = dict(Card.objects.annotate(why=ineligibility()).values_list("pk", "why"))

    assert found == {card.pk: str(reason) for reason, card in cards.items()}
    assert list(eligible_evidence()) == list(ImageEvidence.objects.filter(card=cards[""]))
    assert list(eligible_cards(Card.objects.all())) == [cards[""]]
