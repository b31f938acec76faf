"""Requests for a dispatch: after the commit, few whatever the number of saves, and never too few."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from pytest_django import Settings

from cardpicker.models import Card, CardWork
from cardpicker.stage_e import envelope, ledger
from cardpicker.stage_e.dispatch import dispatch_for_card
from cardpicker.stage_e.requests import (
    DISPATCH_TASK,
    drop_stranded_requests,
    request_dispatch,
    waiting_requests,
)
from cardpicker.stage_e.settings import StageESettings
from cardpicker.tests.work_support import at_once, bare_card, bare_cards

#: Requests are made when a transaction commits, so these tests commit.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def streaming(settings: Settings) -> StageESettings:
    """Streaming is on, and no bar depends on what this machine is doing."""
    streaming = StageESettings(
        streaming_enabled=True, max_concurrent_dispatches=2, host_load_ceiling=1e6, rss_mb_ceiling=10**6
    )
    settings.STAGE_E = streaming
    return streaming


def queued() -> list[dict[str, Any]]:
    """Return the tasks in the queue, oldest first."""
    return [row.task for row in OrmQ.objects.order_by("pk")]


def handed_out(count: int, *, due_again_in_s: float) -> None:
    """Put requests in the queue as they are while a worker has them."""
    moment = timezone.now() + timedelta(seconds=due_again_in_s)
    OrmQ.objects.bulk_create([OrmQ(key=Conf.CLUSTER_NAME, payload="", lock=moment) for _ in range(count)])


def test_save_asks_for_its_card_once_it_is_committed() -> None:
    """The task is there after the commit and not before, and names the card and the reason."""
    card = bare_card()
    with transaction.atomic():
        card.save()
        assert queued() == []

    (task,) = queued()
    assert (task["func"], tuple(task["args"])) == (DISPATCH_TASK, (card.pk, "card-created"))


def test_nothing_is_asked_for_while_streaming_is_off(settings: Settings, streaming: StageESettings) -> None:
    """The flag is the whole truth: no task, while the cards are due all the same."""
    settings.STAGE_E = dataclasses.replace(streaming, streaming_enabled=False)

    bare_card().save()
    request_dispatch("asked-for")

    assert queued() == []
    assert CardWork.objects.get().state == "due"


def test_rolled_back_save_leaves_no_task() -> None:
    """Nobody looks for a card that was never stored."""
    with transaction.atomic():
        bare_card().save()
        transaction.set_rollback(True)

    assert queued() == []


def test_thousand_saves_of_one_transaction_are_a_task_for_each_slot() -> None:
    """A flood leaves every card due and as many to look as may be at work."""
    cards = bare_cards(1000)
    with transaction.atomic():
        for card in cards:
            card.save(update_fields=["name"])

    assert len(queued()) == 2
    assert CardWork.objects.filter(due_at__isnull=False).count() == 1000


def test_what_fits_in_one_batch_is_one_task() -> None:
    """A second dispatch would find nothing left to claim."""
    cards = bare_cards(20)
    with transaction.atomic():
        for card in cards:
            card.save(update_fields=["name"])

    assert len(queued()) == 1


def test_a_batch_at_work_leaves_one_slot_to_fill() -> None:
    """The flood's dispatches are as many as the slots, with those that run."""
    cards = bare_cards(1000)
    ledger.open_run(uuid.uuid4(), run_id="r", trigger_reason="test", slot=0, batch_size=25)
    with transaction.atomic():
        cards[0].save(update_fields=["name"])

    assert len(queued()) == 1


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_saves_of_their_own_transactions_are_a_handful_of_tasks(
    settings: Settings, streaming: StageESettings, slots: int
) -> None:
    """Twice the slots wait at most, however many saves there are."""
    settings.STAGE_E = dataclasses.replace(streaming, max_concurrent_dispatches=slots)
    for card in bare_cards(15):
        card.save()

    assert len(queued()) == 2 * slots


def test_rivals_together_leave_a_handful_of_tasks() -> None:
    """Processes that save at the same moment don't each fill the queue."""
    cards = bare_cards(40)

    def save_five(number: int) -> None:
        for card in Card.objects.filter(pk__in=[each.pk for each in cards[number::8]]):
            card.save()

    at_once(8, save_five)

    assert len(queued()) == 4


def test_save_after_a_rolled_back_savepoint_asks_again() -> None:
    """The request of an inner block that failed is gone with it, and the next save's is not taken for it."""
    card = bare_card()
    with transaction.atomic():
        with transaction.atomic():
            bare_card().save()
            transaction.set_rollback(True)
        card.save()

    assert [tuple(task["args"]) for task in queued()] == [(card.pk, "card-created")]


def test_rolled_back_savepoint_takes_no_earlier_request_along() -> None:
    """What was asked for before an inner block that failed is still asked for."""
    card = bare_card()
    with transaction.atomic():
        card.save()
        with transaction.atomic():
            bare_card().save()
            transaction.set_rollback(True)

    assert [tuple(task["args"]) for task in queued()] == [(card.pk, "card-created")]


def test_request_that_a_worker_has_is_no_answer_to_a_new_one() -> None:
    """A dispatch that runs may have looked for due cards already, so somebody else must look."""
    handed_out(10, due_again_in_s=Conf.RETRY)
    assert waiting_requests() == 0

    bare_card().save()

    assert waiting_requests() == 1


def test_requests_of_another_cluster_do_not_count() -> None:
    """What waits in another queue is nobody's answer here."""
    OrmQ.objects.bulk_create([OrmQ(key="another", payload="", lock=timezone.now()) for _ in range(10)])

    request_dispatch("asked-for")

    assert waiting_requests() == 1


def test_stranded_requests_are_dropped() -> None:
    """One that a worker has had for longer than a task may run is forgotten; those at work and those that wait stay."""
    handed_out(3, due_again_in_s=60)
    handed_out(2, due_again_in_s=Conf.RETRY)
    request_dispatch("asked-for")

    assert drop_stranded_requests() == 3

    assert OrmQ.objects.count() == 3
    assert waiting_requests() == 1
    assert drop_stranded_requests() == 0


@pytest.mark.parametrize(("is_on", "status"), [(True, "empty"), (False, "disabled")])
def test_task_of_a_deleted_card_is_no_error(
    settings: Settings, streaming: StageESettings, is_on: bool, status: str
) -> None:
    """Whoever comes for a card that is gone finds nothing to do and says so."""
    settings.STAGE_E = dataclasses.replace(streaming, streaming_enabled=is_on)
    (card,) = bare_cards(1)
    gone = card.pk
    card.delete()

    assert dispatch_for_card(gone, "card-created") == status
    assert dispatch_for_card(None, "continue") == status


def test_an_acknowledgment_asks_for_what_is_due() -> None:
    """Nothing is asked for while the trip is open; with its note comes the next request, once it is committed."""
    bare_cards(3)
    trip = envelope.pause("ada", "looking")
    assert queued() == []

    with transaction.atomic():
        envelope.acknowledge_trip(trip.pk, "looked", "ada")
        assert queued() == []

    assert [task["args"] for task in queued()] == [(None, "acknowledged")]


def test_an_acknowledgment_of_nothing_due_or_nothing_open_asks_for_nothing() -> None:
    """There is nothing to look for, or nothing has changed."""
    trip = envelope.pause("ada", "looking")
    envelope.acknowledge_trip(trip.pk, "looked", "ada")
    bare_cards(3)

    with pytest.raises(envelope.TripNotOpenError):
        envelope.acknowledge_trip(trip.pk, "again", "ada")

    assert queued() == []
