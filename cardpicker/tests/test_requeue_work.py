"""requeue_work and cohorts: asking for failed cards again, and reading a named cohort."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from cardpicker.models import Card, CardWork, CatalogPass, Source
from cardpicker.tests.admin_rows import quarantine
from cardpicker.tests.stage_d_cases import make_card

pytestmark = pytest.mark.django_db


@pytest.fixture
def failed() -> list[Card]:
    """Cards set aside for three reasons, one that waits for its next attempt, and one that is done."""
    cards = [make_card("Opt") for _ in range(5)]
    CardWork.objects.update(due_at=None, attempts=0)
    for card, outcome in zip(cards, ("crashed", "unusable: truncated", "unusable: empty"), strict=False):
        quarantine(card, outcome)
    waiting = CardWork.objects.filter(card=cards[3])
    waiting.update(due_at=timezone.now() + timedelta(hours=1), attempts=2, last_outcome="failed")
    return cards


def run(*arguments: str) -> str:
    """Run the command and return what it printed."""
    out = StringIO()
    call_command("requeue_work", *arguments, stdout=out)
    return out.getvalue()


def due(cards: list[Card]) -> list[bool]:
    """Tell which cards could be claimed now, with fresh attempts."""
    rows = {row.card_id: row for row in CardWork.objects.all()}
    return [
        row.state == "due" and row.due_at is not None and row.due_at <= timezone.now() and row.attempts == 0
        for row in (rows[card.pk] for card in cards)
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], [True, True, True, True, False]),
        (["--reason", "crashed"], [True, False, False, False, False]),
        (["--reason", "unusable"], [False, True, True, False, False]),
        (["--reason", "unusable: empty"], [False, False, True, False, False]),
        (["--reason", "failed"], [False, False, False, True, False]),
        (["--source", "other"], [False] * 5),
    ],
)
def test_failed_cards_of_a_reason_become_due_once(
    failed: list[Card], arguments: list[str], expected: list[bool]
) -> None:
    """The dry run says the same and changes nothing; a second time there is nothing to ask."""
    Source.objects.create(key="other", kind="local_folder", location="/nowhere")
    shown = run(*arguments, "--dry-run")
    assert due(failed) == [False] * 5

    done = run(*arguments)

    assert due(failed) == expected
    assert shown.replace("would be made due", "made due") == done
    assert f"{sum(expected)} cards made due" in done
    assert "0 cards made due" in run(*arguments)


def test_the_reason_of_the_failure_stays_until_the_next_attempt(failed: list[Card]) -> None:
    """History is kept."""
    run("--reason", "crashed")

    assert CardWork.objects.get(card=failed[0]).last_outcome == "crashed"


def test_an_unknown_source_is_refused() -> None:
    """In one clear line."""
    with pytest.raises(CommandError, match="No source has the key 'elsewhere'"):
        run("--source", "elsewhere")


def test_a_cohort_is_a_pass_of_its_name(settings: Any) -> None:
    """Resumable by it, with a pass's scope and exit codes."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, streaming_enabled=False)
    make_card("Opt")
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("run_image_evidence_cohort", "first-hundred", "--sample", "100", stdout=out)

    assert left.value.code == 6
    assert CatalogPass.objects.get().sample == 100
    assert "resume='first-hundred'" in out.getvalue()
