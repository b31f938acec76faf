"""How the shared budgets are shown: to operators, programs and in the admin."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cardpicker.models import FetchBudget
from cardpicker.stage_c.fetch.budgets import read_budgets
from cardpicker.stage_c.fetch.limiter import (
    GOOGLE_IMAGE,
    MAX_WIDENING,
    SCRYFALL_API,
    WIDEN_BY,
    reopen,
    shut,
    slow_down,
    take,
)
from cardpicker.stage_c.settings import StageCSettings

pytestmark = pytest.mark.django_db

SETTINGS = StageCSettings()


def test_a_budget_under_no_pressure_gives_its_whole_rate() -> None:
    """Nothing was asked for, nothing is held."""
    take(GOOGLE_IMAGE, 1, 7.0)

    [budget] = read_budgets(SETTINGS)

    assert (budget.destination, budget.set_per_s, budget.now_per_s, budget.widened_by) == (GOOGLE_IMAGE, 7.0, 7.0, 1.0)
    assert (budget.is_probing, budget.pressed_at, budget.last_retry_after_s) == (False, None, None)


def test_pressure_is_told_with_what_was_asked_for() -> None:
    """The rate now, by how much it is widened, and until when nobody asks."""
    slow_down(GOOGLE_IMAGE, 40.0)

    [budget] = read_budgets(SETTINGS)

    assert budget.widened_by == pytest.approx(WIDEN_BY, abs=0.05)
    assert budget.now_per_s == pytest.approx(7 / WIDEN_BY, abs=0.3)
    assert 38 < budget.next_permit_in_s <= 40
    assert budget.last_retry_after_s == 40
    assert budget.pressed_at is not None
    slow_down(GOOGLE_IMAGE, 50.0)  # The same pressure, as the next answer tells it.
    assert read_budgets(SETTINGS)[0].last_retry_after_s == 50
    assert read_budgets(SETTINGS)[0].widened_by == pytest.approx(WIDEN_BY, abs=0.05)


def test_pressure_that_is_over_is_told_as_over() -> None:
    """The factor falls by the clock, whether anybody fetches or not; when it was stays known."""
    slow_down(GOOGLE_IMAGE, None)
    FetchBudget.objects.update(widened_at=timezone.now() - timedelta(minutes=10))

    [budget] = read_budgets(SETTINGS)

    assert (budget.widened_by, budget.now_per_s, budget.last_retry_after_s) == (1.0, 7.0, None)
    assert budget.pressed_at is not None


def test_a_lockout_is_one_a_minute_and_then_a_slow_ramp() -> None:
    """What the row says is what the limiter hands out."""
    slow_down(GOOGLE_IMAGE, 3.0)
    shut(GOOGLE_IMAGE)
    [budget] = read_budgets(SETTINGS)
    assert (budget.is_probing, budget.now_per_s, budget.last_retry_after_s) == (True, round(1 / 60, 3), None)

    reopen(GOOGLE_IMAGE, 7.0)
    [budget] = read_budgets(SETTINGS)
    assert not budget.is_probing
    assert budget.widened_by == pytest.approx(MAX_WIDENING, abs=0.1)
    assert budget.now_per_s == pytest.approx(7 / MAX_WIDENING, abs=0.05)


def test_the_status_shows_every_budget() -> None:
    """In words and as JSON."""
    slow_down(GOOGLE_IMAGE, 90.0)
    shut(SCRYFALL_API)
    text, told = StringIO(), StringIO()

    call_command("stage_e_status", stdout=text)
    call_command("stage_e_status", "--json", stdout=told)

    google, scryfall = (
        line.split() for line in text.getvalue().splitlines() if line.startswith(("GOOGLE", "SCRYFALL"))
    )
    assert (google[2], google[4], " ".join(google[-4:])) == ("7", "no", "1 min 30 s")
    assert (scryfall[1], scryfall[2], scryfall[4], scryfall[-1]) == ("0.02", "2", "yes", "-")
    budgets = json.loads(told.getvalue())["budgets"]
    assert [(each["destination"], each["is_probing"]) for each in budgets] == [
        (GOOGLE_IMAGE, False),
        (SCRYFALL_API, True),
    ]


def test_the_admin_shows_why_images_come_slowly(admin_client: Client) -> None:
    """Rate, state and what was asked for, in the list and on the row's page."""
    slow_down(GOOGLE_IMAGE, 90.0)
    shut(SCRYFALL_API)

    pages = [admin_client.get(reverse("admin:cardpicker_fetchbudget_changelist"))]
    pages += [
        admin_client.get(reverse("admin:cardpicker_fetchbudget_change", args=[budget.pk]))
        for budget in FetchBudget.objects.order_by("destination")
    ]

    listed, google, scryfall = (page.content.decode() for page in pages)
    for text in ("widened 1.", "1 min 30 s", "probing: locked out", "0.02"):
        assert text in listed
    assert "widened 1." in google
    assert "probing: locked out" in scryfall
