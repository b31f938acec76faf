"""Making cards due: by whoever asks or by what happens, without losing a lease, a quarantine or an order of locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from cardpicker.models import Card, CardWork
from cardpicker.stage_e import work
from cardpicker.stage_e.work import Lease
from cardpicker.tests.work_support import (
    PATIENCE_S,
    at_once,
    bare_cards,
    eventually,
    ids,
    new_lease,
    somebody_waits_for_us,
    state_of,
    work_of,
)

pytestmark = pytest.mark.django_db


def test_card_that_its_source_no_longer_lists_cannot_be_asked_for() -> None:
    """Making it due does not bring a removed card back."""
    (card,) = bare_cards(1)
    Card.objects.filter(pk=card.pk).update(removed_at=Now())

    assert work.mark_due([card.pk], "asked-for") == 0
    assert state_of(card) == "done"


def test_marking_leaves_due_and_quarantined_cards_alone() -> None:
    """A back-off and a quarantine are not ended by an event that says nothing new about the image."""
    idle, waiting, quarantined = bare_cards(3)
    CardWork.objects.filter(pk=idle.pk).update(due_at=None)
    later = timezone.now() + timedelta(hours=1)
    CardWork.objects.filter(pk=waiting.pk).update(due_at=later)
    CardWork.objects.filter(pk=quarantined.pk).update(due_at=None, quarantined_at=Now())

    assert work.mark_due(ids([idle, waiting, quarantined]), "manifest-raised") == 1
    assert work_of(waiting).due_at == later
    assert [state_of(card) for card in (idle, waiting, quarantined)] == ["due", "due", "quarantined"]


MANY_AT_ONCE: dict[str, Callable[[Lease, list[int]], int]] = {
    "extend": lambda lease, cards: work.extend(lease),
    "close_done": work.close_done,
    "release": lambda lease, cards: work.release(lease.owner, "halted"),
    "expire": lambda lease, cards: work.expire(3, owners=[lease.owner]),
    "mark_due": lambda lease, cards: work.mark_due(cards, "again"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", MANY_AT_ONCE)
def test_rows_are_locked_in_the_order_of_their_keys(name: str) -> None:
    """Who holds the first card and wants the last never deadlocks with who changes them all."""
    first, second, last = (card.pk for card in bare_cards(3))
    lease = new_lease()
    for card in (last, second, first):  # In the table, and in its indexes, the last card now comes first.
        work.claim(lease, limit=1, seeds=[card])
    results: list[int] = []
    rival = threading.Thread(
        target=lambda: results.extend(at_once(1, lambda _: MANY_AT_ONCE[name](lease, [first, second, last])))
    )

    with transaction.atomic():
        CardWork.objects.select_for_update().get(pk=first)
        rival.start()
        assert eventually(somebody_waits_for_us)
        CardWork.objects.select_for_update(nowait=True).get(pk=last)
    rival.join(PATIENCE_S)

    assert results == [3]
