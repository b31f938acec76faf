"""Finding failed cards in the admin and asking for them again."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from cardpicker.models import Card, CardWork
from cardpicker.operations.requeue import ask_again
from cardpicker.stage_c.outcomes import Gone
from cardpicker.stage_e import work
from cardpicker.tests.admin_rows import make_card, make_run, make_source, make_staff, quarantine, superuser_client

pytestmark = pytest.mark.django_db

WORK = "admin:cardpicker_cardwork_changelist"
CARDS = "admin:cardpicker_card_changelist"


@pytest.fixture
def admin_client(db: None) -> Client:
    """A superuser's browser."""
    return superuser_client()


def ask(client: Client, *pks: int, across: bool = False, name: str = WORK, query: str = "") -> int:
    """Run the action on the chosen rows and return the answer's status."""
    form = {"action": "ask_for_cards_again", "_selected_action": list(pks), "select_across": "1" if across else "0"}
    return client.post(f"{reverse(name)}{query}", form).status_code


def states() -> list[str]:
    """Return the states of all work, in order."""
    return sorted(work.state for work in CardWork.objects.all())


@pytest.fixture
def failed(db: None) -> list[Card]:
    """Three cards, put aside for two reasons."""
    source = make_source()
    cards = [make_card(source, name=f"Card {index}") for index in range(3)]
    for card, outcome in zip(cards, ("unusable: truncated", "unusable: truncated", "gone"), strict=True):
        quarantine(card, outcome)
    return cards


def test_failed_cards_are_listed_by_reason_with_detail_and_attempts(admin_client: Client, failed: list[Card]) -> None:
    """An operator finds the cards of one reason, sees what happened, and how often it was tried."""
    text = admin_client.get(reverse(WORK), {"state": "quarantined", "outcome": "gone"}).content.decode()

    assert "Card 2" in text
    assert "Card 0" not in text
    assert "gone, at byte 9" in text
    assert '<td class="field-attempts">5</td>' in text


def test_run_leads_to_the_cards_it_failed_on_and_back(admin_client: Client, failed: list[Card]) -> None:
    """A card that a run could not read has no evidence of it, and is found by the run all the same."""
    run = make_run()
    lease = work.Lease(owner=run.batch_id, lease_s=60, max_attempts=1)
    CardWork.objects.update(quarantined_at=None, due_at=timezone.now())
    (tried,) = work.claim(lease, limit=1, seeds=[failed[1].pk])
    work.settle(lease, tried, Gone(detail="answered with 404"))

    address = f"{reverse(WORK)}?run={run.run_id}"
    links = admin_client.get(reverse("admin:cardpicker_pilotrunledger_change", args=[run.pk])).content.decode()
    listed = admin_client.get(f"{address}&outcome=gone").content.decode()
    shown = admin_client.get(reverse("admin:cardpicker_cardwork_change", args=[tried])).content.decode()

    assert address in links
    assert "Card 1" in listed and "answered with 404" in listed and "Card 2" not in listed
    assert f"{reverse('admin:cardpicker_pilotrunledger_changelist')}?q={run.batch_id}" in shown


def test_every_state_has_its_rows(admin_client: Client, failed: list[Card]) -> None:
    """The four states exclude each other and add up, as they do in the model."""
    source = make_source(key="more")
    due, leased, done = (make_card(source, name=name) for name in ("Is due", "Is leased", "Is done"))
    CardWork.objects.filter(pk=leased.pk).update(lease_owner=uuid4(), leased_until=timezone.now())
    CardWork.objects.filter(pk=done.pk).update(due_at=None)

    counts = {}
    for state in ("due", "leased", "done", "quarantined"):
        listed = admin_client.get(reverse(WORK), {"state": state}).context["cl"].queryset
        assert {work.state for work in listed} == {state}
        counts[state] = len(listed)

    assert due.work.state == "due"
    assert sum(counts.values()) == CardWork.objects.count()


def test_work_is_filtered_by_source(admin_client: Client, failed: list[Card]) -> None:
    """Another source's cards are not listed."""
    other = make_card(make_source(key="other"), name="Elsewhere")

    text = admin_client.get(reverse(WORK), {"card__source__id__exact": other.source_id}).content.decode()

    assert "Elsewhere" in text
    assert "Card 0" not in text


def test_chosen_cards_become_due_with_fresh_attempts(admin_client: Client, failed: list[Card]) -> None:
    """The chosen ones are due now; the history of the last attempt stays; the others are untouched."""
    assert ask(admin_client, failed[0].pk) == 302

    work = CardWork.objects.get(pk=failed[0].pk)
    assert (work.state, work.attempts, work.last_outcome) == ("due", 0, "unusable: truncated")
    assert work.due_at is not None
    assert work.due_at <= timezone.now()
    assert states() == ["due", "quarantined", "quarantined"]


def test_asking_across_pages_is_one_statement_and_keeps_to_the_filter(admin_client: Client) -> None:
    """All 300 cards of a reason on several pages become due by one update that names no card; other reasons stay."""
    source = make_source()
    Card.objects.bulk_create(
        Card(source=source, identifier=f"{index}", name=f"Card {index}", image_version="v") for index in range(301)
    )
    CardWork.objects.update(due_at=None, quarantined_at=timezone.now(), last_outcome="failed")
    other = CardWork.objects.latest("pk")
    CardWork.objects.filter(pk=other.pk).update(last_outcome="gone")
    first = CardWork.objects.earliest("pk").pk

    with CaptureQueriesContext(connection) as queries:
        assert ask(admin_client, first, across=True, query="?outcome=failed") == 302

    updates = [query["sql"] for query in queries if query["sql"].startswith('UPDATE "cardpicker_cardwork"')]
    assert len(updates) == 1
    assert len(updates[0]) < 2000
    assert states().count("due") == 300
    assert CardWork.objects.get(pk=other.pk).state == "quarantined"


def test_asking_twice_has_no_second_effect(failed: list[Card]) -> None:
    """A double click changes no moment and no count."""
    first = ask_again(CardWork.objects.all())
    before = list(CardWork.objects.order_by("pk").values())

    second = ask_again(CardWork.objects.all())

    assert (first.asked, first.left_alone) == (3, 0)
    assert (second.asked, second.left_alone) == (0, 3)
    assert list(CardWork.objects.order_by("pk").values()) == before


def test_asking_ends_the_wait_of_a_card_that_waits_for_its_next_try(failed: list[Card]) -> None:
    """A card whose next try lies ahead is due now."""
    later = timezone.now() + timedelta(hours=1)
    CardWork.objects.filter(pk=failed[0].pk).update(quarantined_at=None, due_at=later, attempts=2)

    ask_again(CardWork.objects.filter(pk=failed[0].pk))

    work = CardWork.objects.get(pk=failed[0].pk)
    assert work.due_at is not None
    assert work.due_at <= timezone.now()
    assert work.attempts == 0


def test_cards_at_work_and_cards_no_longer_listed_are_left_alone(failed: list[Card]) -> None:
    """A lease is not touched, and a card that its source dropped does not come back by asking."""
    leased, removed, _ = failed
    CardWork.objects.filter(pk=leased.pk).update(
        quarantined_at=None, lease_owner=uuid4(), leased_until=timezone.now() + timedelta(minutes=1)
    )
    Card.objects.filter(pk=removed.pk).update(removed_at=timezone.now())

    result = ask_again(CardWork.objects.all())

    assert (result.asked, result.left_alone) == (1, 2)
    assert CardWork.objects.get(pk=leased.pk).state == "leased"
    assert CardWork.objects.get(pk=removed.pk).state == "quarantined"


def test_list_of_cards_asks_too(admin_client: Client, failed: list[Card]) -> None:
    """The same action stands on the list of cards, filters and all."""
    assert ask(admin_client, failed[0].pk, across=True, name=CARDS, query="?work__state=x") == 302
    assert ask(admin_client, failed[0].pk, across=True, name=CARDS, query="?state=quarantined") == 302

    assert states() == ["due", "due", "due"]


def test_asking_needs_the_permission(client: Client, failed: list[Card]) -> None:
    """Whoever may only look is not offered the action, and cannot send it either."""
    client.force_login(make_staff("viewer", "view_cardwork"))

    ask(client, failed[0].pk)

    assert states() == ["quarantined"] * 3
    assert "ask_for_cards_again" not in client.get(reverse(WORK)).content.decode()
    client.force_login(make_staff("operator", "view_cardwork", "change_cardwork"))
    ask(client, failed[0].pk)
    assert states() == ["due", "quarantined", "quarantined"]


def test_page_of_a_cards_work_has_the_button(admin_client: Client, failed: list[Card]) -> None:
    """One card can be asked for from its own page."""
    text = admin_client.get(reverse("admin:cardpicker_cardwork_change", args=[failed[0].pk])).content.decode()

    assert 'id="ask-again"' in text
    assert reverse("admin:cardpicker_card_change", args=[failed[0].pk]) in text
