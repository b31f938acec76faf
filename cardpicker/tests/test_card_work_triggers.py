"""Whatever makes a card due is written by the database with its cause, however the card was written."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from cardpicker.models import Card, CardWork, PrintingTagStatus
from cardpicker.tests.stage_e_support import make_printing
from cardpicker.tests.work_support import bare_card, bare_cards, ids, state_of, work_of

pytestmark = pytest.mark.django_db

Write = Callable[[Card, dict[str, Any]], None]


def save(card: Card, changes: dict[str, Any]) -> None:
    """Change a card as a form does."""
    for name, value in changes.items():
        setattr(card, name, value)
    card.save()


def bulk_update(card: Card, changes: dict[str, Any]) -> None:
    """Change a card as a sync does."""
    for name, value in changes.items():
        setattr(card, name, value)
    Card.objects.bulk_update([card], list(changes))


def update(card: Card, changes: dict[str, Any]) -> None:
    """Change a card as a script does."""
    Card.objects.filter(pk=card.pk).update(**changes)


EVERY_WRITE = pytest.mark.parametrize("write", [save, bulk_update, update])


def settle_all(**changes: Any) -> None:
    """Put every card's work to rest."""
    CardWork.objects.update(**{"due_at": None, "reason": "", **changes})


def test_card_is_due_however_it_was_created() -> None:
    """Saved one by one or a thousand at once, every new card is due."""
    saved = bare_card()
    saved.save()
    many = bare_cards(50)

    assert {(work.state, work.reason) for work in CardWork.objects.all()} == {("due", "created")}
    assert set(CardWork.objects.values_list("pk", flat=True)) == {saved.pk, *ids(many)}


def test_card_that_is_created_removed_is_known_and_not_due() -> None:
    """A card that its source no longer lists waits for its return."""
    (card,) = bare_cards(1, removed_at="2026-01-01T00:00Z")

    assert state_of(card) == "done"


def test_rolled_back_card_leaves_no_work() -> None:
    """Work is written in the transaction of its cause, and goes with it."""
    with transaction.atomic():
        cards = ids(bare_cards(3))
        assert CardWork.objects.count() == 3
        transaction.set_rollback(True)

    assert not CardWork.objects.filter(pk__in=cards).exists()


@EVERY_WRITE
def test_rolled_back_change_leaves_work_as_it_was(write: Write) -> None:
    """An image that did not change after all is not read again."""
    (card,) = bare_cards(1)
    settle_all()
    with transaction.atomic():
        write(card, {"image_version": "another"})
        assert state_of(card) == "due"
        transaction.set_rollback(True)

    assert state_of(card) == "done"


@EVERY_WRITE
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"image_version": "another"}, "image-changed"),
        ({"name_key": "another"}, "card-changed"),
        ({"card_type": "TOKEN"}, "card-changed"),
        ({"image_version": "another", "name_key": "another"}, "image-changed"),
    ],
)
def test_change_that_matters_makes_due(write: Write, changes: dict[str, Any], reason: str) -> None:
    """A done or quarantined card whose image, name or type changed is due with a fresh count; its neighbor is not."""
    done, quarantined, neighbor = bare_cards(3)
    settle_all(attempts=2)
    CardWork.objects.filter(pk=quarantined.pk).update(quarantined_at=Now())

    write(done, changes)
    write(quarantined, changes)

    for card in (done, quarantined):
        after = work_of(card)
        assert (after.state, after.attempts, after.reason) == ("due", 0, reason)
    assert (state_of(neighbor), work_of(neighbor).attempts) == ("done", 2)


@EVERY_WRITE
def test_change_ends_a_wait(write: Write) -> None:
    """A new image does not sit out the back-off of the old one, and an older due date is not lost."""
    waiting, old = bare_cards(2)
    CardWork.objects.filter(pk=waiting.pk).update(due_at="2999-01-01T00:00Z", attempts=3)
    CardWork.objects.filter(pk=old.pk).update(due_at="2000-01-01T00:00Z")

    write(waiting, {"image_version": "another"})
    write(old, {"image_version": "another"})

    assert CardWork.objects.filter(pk=waiting.pk, due_at__lte=Now(), attempts=0).exists()
    assert CardWork.objects.filter(pk=old.pk, due_at="2000-01-01T00:00Z").exists()


@EVERY_WRITE
def test_change_during_a_lease_leaves_the_lease(write: Write) -> None:
    """The batch keeps its claim, finds out when it stores, and the card is due afterwards."""
    (card,) = bare_cards(1)
    owner = uuid.uuid4()
    settle_all(lease_owner=owner, leased_until=Now(), attempts=1)

    write(card, {"image_version": "another"})

    after = work_of(card)
    assert (after.state, after.lease_owner, after.attempts) == ("leased", owner, 0)
    assert after.due_at is not None


@EVERY_WRITE
def test_removed_card_is_not_due_until_it_returns(write: Write) -> None:
    """Removal takes a card out of the line, changes meanwhile don't bring it back, its return does."""
    (card,) = bare_cards(1)

    write(card, {"removed_at": "2026-01-01T00:00Z"})
    assert state_of(card) == "done"
    write(card, {"image_version": "another"})
    assert state_of(card) == "done"
    write(card, {"removed_at": None})

    assert (state_of(card), work_of(card).reason) == ("due", "returned")


@EVERY_WRITE
def test_return_lifts_a_quarantine(write: Write) -> None:
    """A file that was gone for good and is listed again is tried again."""
    (card,) = bare_cards(1, removed_at="2026-01-01T00:00Z")
    settle_all(quarantined_at=Now(), attempts=5)

    write(card, {"removed_at": None})

    assert (state_of(card), work_of(card).attempts) == ("due", 0)


@EVERY_WRITE
def test_change_that_does_not_matter_touches_no_work(write: Write) -> None:
    """The consensus's own writes, and corrections of what no stage reads, make nothing due and write no row."""
    done, quarantined = bare_cards(2)
    settle_all()
    CardWork.objects.filter(pk=quarantined.pk).update(quarantined_at=Now())
    printing = make_printing("Opt", "dom", "60")
    before = versions_of_work()

    for card in (done, quarantined):
        write(card, {"printing_tag_status": PrintingTagStatus.RESOLVED, "inferred_canonical_card": printing})
        write(card, {"name": "Another", "size": 7, "image_version": card.image_version})

    assert versions_of_work() == before


def test_card_whose_work_was_lost_gets_it_back() -> None:
    """A change finds no row to update and writes one."""
    (card,) = bare_cards(1)
    CardWork.objects.all().delete()

    update(card, {"image_version": "another"})

    assert state_of(card) == "due"


def test_deleted_card_takes_its_work_along() -> None:
    """No row is left that points nowhere."""
    (card,) = bare_cards(1)
    card.delete()

    assert not CardWork.objects.exists()


def test_migration_can_be_taken_back_and_run_again() -> None:
    """Backward nothing makes due any more; forward again finds the cards that were missed, and only the listed ones."""
    migration = importlib.import_module("cardpicker.migrations.0002_card_work_triggers").Migration
    (operation,) = migration.operations
    with connection.cursor() as cursor:
        cursor.execute(operation.reverse_sql)
        missed, removed = Card.objects.bulk_create([bare_card(), bare_card(removed_at="2026-01-01T00:00Z")])
        assert not CardWork.objects.exists()
        cursor.execute(operation.sql)

    assert ids([missed]) == list(CardWork.objects.values_list("pk", flat=True))
    update(removed, {"removed_at": None})
    assert state_of(removed) == "due"


def versions_of_work() -> list[tuple[Any, ...]]:
    """Return what changes in a row whenever anything writes it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT card_id, ctid::text, cmin::text FROM cardpicker_cardwork ORDER BY card_id")
        return list(cursor.fetchall())
