"""Signals: saves ask for a dispatch, and the pipeline never hears its own echo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.serializers import serialize
from django.db import connection
from django_q.models import OrmQ
from pytest_django import Settings

from cardpicker.models import Card, CardWork, ImageEvidence
from cardpicker.stage_c.evidence_row import store_evidence
from cardpicker.stage_e import signals
from cardpicker.stage_e.settings import StageESettings
from cardpicker.tests.work_support import bare_card, bare_cards, state_of, work_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def streaming(settings: Settings) -> None:
    """Streaming is on."""
    settings.STAGE_E = StageESettings(streaming_enabled=True)


def asked() -> list[tuple[int, str]]:
    """Return the card and the reason of each request in the queue."""
    return [tuple(row.task["args"]) for row in OrmQ.objects.order_by("pk")]


def evidence_of(card: Card) -> ImageEvidence:
    """Return unsaved evidence."""
    return ImageEvidence(card=card, image_version=card.image_version, image_sha256="a" * 64, manifest="m")


def test_saved_card_asks_once_and_says_why() -> None:
    """A new card and a changed one ask for themselves; connecting the receivers again doubles nothing."""
    signals.connect()
    card = bare_card()

    card.save()
    card.save()

    assert asked() == [(card.pk, "card-created"), (card.pk, "card-saved")]


def test_saved_evidence_is_judged_anew() -> None:
    """Evidence that a person or a script wrote makes its card due and asks for it."""
    (card,) = bare_cards(1)
    CardWork.objects.update(due_at=None)

    evidence_of(card).save()

    assert asked() == [(card.pk, "evidence-saved")]
    assert (state_of(card), work_of(card).reason) == ("due", "evidence-changed")


def test_pipelines_own_evidence_is_silent() -> None:
    """What Stage C stores neither asks for a dispatch nor makes its card due again."""
    (card,) = bare_cards(1)
    CardWork.objects.update(due_at=None)

    store_evidence(evidence_of(card))

    assert ImageEvidence.objects.filter(card=card).exists()
    assert asked() == []
    assert state_of(card) == "done"


def test_loaded_fixtures_ask_for_nothing(tmp_path: Path) -> None:
    """A restored dump is no event for each of its rows; its cards are due by the database's own doing."""
    (card,) = bare_cards(1)
    evidence = evidence_of(card)
    store_evidence(evidence)
    rows = json.loads(serialize("json", [card.source, card, ImageEvidence.objects.get()]))
    (tmp_path / "dump.json").write_text(json.dumps(rows))
    ImageEvidence.objects.all().delete()
    Card.objects.all().delete()

    call_command("loaddata", str(tmp_path / "dump.json"), verbosity=0)

    assert asked() == []
    assert ImageEvidence.objects.filter(card=card.pk).exists()
    assert work_of(card.pk).reason == "created"


def test_bulk_writes_ask_for_nothing_and_leave_cards_due() -> None:
    """No signal is sent under bulk_create, bulk_update and update; whoever uses them asks once, and nothing is lost."""
    cards = bare_cards(3)
    CardWork.objects.update(due_at=None)
    for card in cards:
        card.image_version = "another"
    Card.objects.bulk_update(cards[:1], ["image_version"])
    Card.objects.filter(pk=cards[1].pk).update(image_version="another")

    assert asked() == []
    assert [state_of(card) for card in cards] == ["due", "due", "done"]


def test_a_starting_worker_outlives_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so and goes on: a worker that ended would be started again and again until the database is back."""
    monkeypatch.setenv("CARDPICKER_DATABASE_URL", "postgres://nobody@127.0.0.1:1/nowhere")
    connection.close()

    signals.take_over(sender="django_q")

    monkeypatch.undo()
    connection.close()
    assert asked() == []
