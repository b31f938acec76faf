"""Settling: how each outcome of an attempt leaves its card."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from cardpicker.models import Card, CardWork
from cardpicker.stage_c.outcomes import (
    AlreadyCurrent,
    CardGone,
    CardOutcome,
    Crashed,
    Deferred,
    Failed,
    Gone,
    LockedOut,
    Stored,
    Throttled,
    Transferred,
    Unusable,
    UnusableKind,
)
from cardpicker.stage_e import work
from cardpicker.tests.work_support import bare_cards, new_lease, state_of, work_of

pytestmark = pytest.mark.django_db

DETAIL = "what happened"
EVERY_OUTCOME: list[CardOutcome] = [
    Stored(),
    Transferred(from_card_id=1),
    AlreadyCurrent(),
    Throttled(detail=DETAIL),
    Throttled(detail=DETAIL, retry_after_s=300.0),
    LockedOut(detail=DETAIL),
    Deferred(detail=DETAIL),
    Gone(detail=DETAIL),
    Failed(detail=DETAIL),
    Crashed(detail=DETAIL),
    Unusable(kind=UnusableKind.NOT_AN_IMAGE, detail=DETAIL),
    CardGone(detail=DETAIL),
]
NEVER = None
NOW = (0.0, 0.0)


@pytest.mark.parametrize(
    ("outcome", "state", "attempts", "wait_s", "name"),
    [
        (Stored(), "leased", 2, NEVER, "stored"),
        (Transferred(from_card_id=1), "leased", 2, NEVER, "transferred"),
        (AlreadyCurrent(), "leased", 2, NEVER, "already-current"),
        (Throttled(detail=DETAIL), "due", 1, (30.0, 30.0), "throttled"),
        (Throttled(detail=DETAIL, retry_after_s=300.0), "due", 1, (300.0, 300.0), "throttled"),
        (LockedOut(detail=DETAIL), "due", 1, NOW, "locked-out"),
        (Deferred(detail=DETAIL), "due", 1, NOW, "deferred"),
        (Gone(detail=DETAIL), "due", 2, (48.0, 72.0), "gone"),
        (Failed(detail=DETAIL), "due", 2, (48.0, 72.0), "failed"),
        (Crashed(detail=DETAIL), "due", 2, (48.0, 72.0), "crashed"),
        (Unusable(kind=UnusableKind.NOT_AN_IMAGE, detail=DETAIL), "quarantined", 2, NEVER, "unusable: not-an-image"),
        (CardGone(detail=DETAIL), "done", 0, NEVER, "card-gone"),
    ],
)
def test_outcome_settles_its_card(
    outcome: CardOutcome, state: str, attempts: int, wait_s: tuple[float, float] | None, name: str
) -> None:
    """State, attempts, the next try and what operators read follow from the outcome, on the second attempt of three."""
    (card,) = bare_cards(1)
    CardWork.objects.update(attempts=1)
    lease = new_lease(max_attempts=3)
    work.claim(lease, limit=1)
    before = timezone.now()

    assert work.settle(lease, card.pk, outcome)

    settled = work_of(card)
    assert (settled.state, settled.attempts, settled.last_outcome) == (state, attempts, name)
    assert settled.last_detail == getattr(outcome, "detail", "")
    assert (settled.settled_at is None) is (state == "leased")
    if wait_s is NEVER:
        assert settled.due_at is None
    else:
        assert settled.due_at is not None
        slack = timedelta(seconds=5)
        earliest, latest = before + timedelta(seconds=wait_s[0]), timezone.now() + timedelta(seconds=wait_s[1])
        assert earliest - slack <= settled.due_at <= latest + slack


@pytest.mark.parametrize("outcome", [Gone(detail=DETAIL), Failed(detail=DETAIL), Crashed(detail=DETAIL)])
def test_last_attempt_quarantines(outcome: CardOutcome) -> None:
    """What fails as often as is allowed is set aside, with what it failed on."""
    (card,) = bare_cards(1)
    lease = new_lease(max_attempts=1)
    work.claim(lease, limit=1)

    assert work.settle(lease, card.pk, outcome)

    settled = work_of(card)
    assert (settled.state, settled.attempts, settled.last_detail) == ("quarantined", 1, DETAIL)
    assert settled.due_at is None


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=work.outcome_name)
def test_batch_that_lost_its_card_settles_nothing(outcome: CardOutcome) -> None:
    """Once the lease has gone to another, or to nobody, nothing of the row changes."""
    bare_cards(2)
    loser, winner = new_lease(), new_lease()
    taken, idle = work.claim(loser, limit=2)
    work.expire(9, owners=[loser.owner])
    assert work.claim(winner, limit=1, seeds=[taken]) == [taken]
    before = list(CardWork.objects.order_by("pk").values())

    assert not work.settle(loser, taken, outcome)
    assert not work.settle(loser, idle, outcome)

    assert list(CardWork.objects.order_by("pk").values()) == before


def test_deleted_card_settles_nothing() -> None:
    """A card deleted in mid-batch is no surprise."""
    (card,) = bare_cards(1)
    lease = new_lease()
    work.claim(lease, limit=1)
    Card.objects.filter(pk=card.pk).delete()

    assert not work.settle(lease, card.pk, Stored())
    assert not work.settle(lease, card.pk, Failed(detail=DETAIL))


@pytest.mark.parametrize("outcome", EVERY_OUTCOME, ids=work.outcome_name)
def test_image_that_changed_during_the_attempt_is_due(outcome: CardOutcome) -> None:
    """No outcome of the old image, not even the last attempt's, sets the new one aside or delays it."""
    (card,) = bare_cards(1)
    CardWork.objects.update(attempts=2)
    lease = new_lease(max_attempts=3)
    work.claim(lease, limit=1)
    Card.objects.filter(pk=card.pk).update(image_version="a new one")

    assert work.settle(lease, card.pk, outcome)
    work.close_done(lease, [card.pk])

    after = work_of(card)
    assert (after.state, after.attempts, after.reason) == ("due", 0, "image-changed")
    assert work.claim(new_lease(), limit=1) == [card.pk]


@pytest.mark.parametrize("detail", ["a\0b", "a\udcffb", "a\nb", "a \x1b b"])
def test_detail_that_no_column_holds_is_stored_without_it(detail: str) -> None:
    """NUL, halves of characters and control characters in a file's name or a server's answer cost nobody the batch."""
    (card,) = bare_cards(1)
    lease = new_lease()
    work.claim(lease, limit=1)

    assert work.settle(lease, card.pk, Failed(detail=detail + "x" * 1000))

    stored = work_of(card).last_detail
    assert stored.startswith("a b")
    assert len(stored) == 500


def test_waits_grow_and_stop_growing() -> None:
    """Each wait is about twice the last, up to an hour, and cards that failed together do not return together."""
    averages = [sum(work.retry_delay_s(attempt) for _ in range(200)) / 200 for attempt in range(1, 15)]

    assert 27 < averages[0] < 33
    assert all(later > 1.7 * earlier for earlier, later in itertools.pairwise(averages[:7]))
    assert all(3400 < average < 3800 for average in averages[8:])
    assert len({work.retry_delay_s(3) for _ in range(10)}) > 1
    assert 24 <= work.retry_delay_s(0) <= 36
    assert work.retry_delay_s(100) <= 4320


def test_throttled_card_is_not_claimed_before_its_time() -> None:
    """Patience that a server asks for is kept."""
    (card,) = bare_cards(1)
    lease = new_lease()
    work.claim(lease, limit=1)
    work.settle(lease, card.pk, Throttled(detail=DETAIL, retry_after_s=60.0))

    assert not work.is_due()
    assert work.claim(new_lease(), limit=1, seeds=[card.pk]) == []
    CardWork.objects.update(due_at=Now())
    assert work.is_due()
    assert state_of(card) == "due"
