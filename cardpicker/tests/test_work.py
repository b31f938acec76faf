"""Work: claimed by one, never lost, and always due, leased, done or quarantined."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from cardpicker.models import Card, CardWork
from cardpicker.operations.requeue import ask_again
from cardpicker.stage_c.outcomes import Deferred, Failed
from cardpicker.stage_e import work
from cardpicker.stage_e.work import Lease
from cardpicker.tests.work_support import (
    at_once,
    bare_card,
    bare_cards,
    ids,
    new_lease,
    state_of,
    work_of,
)

pytestmark = pytest.mark.django_db


def set_due(card: Card, moment: datetime) -> None:
    """Make a card due at a moment of the test's choice."""
    CardWork.objects.filter(pk=card.pk).update(due_at=moment)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("are_seeds", [False, True])
def test_rivals_share_the_cards_and_none_is_claimed_twice(are_seeds: bool) -> None:
    """Eight rivals that claim until nothing is due get each of 200 cards exactly once between them."""
    cards = ids(bare_cards(200))

    def drain(_: int) -> list[int]:
        mine: list[int] = []
        while claimed := work.claim(new_lease(), limit=7, seeds=cards if are_seeds else ()):
            mine += claimed
        return mine

    claimed = [card for rival in at_once(8, drain) for card in rival]

    assert sorted(claimed) == cards
    assert set(CardWork.objects.values_list("attempts", flat=True)) == {1}


def test_seeds_come_first_and_the_oldest_fill_the_batch() -> None:
    """A card that somebody waits for is not behind the backlog, and the backlog keeps its order."""
    cards = bare_cards(6)
    for age, card in enumerate(cards):
        set_due(card, timezone.now() - timedelta(hours=age + 1))

    claimed = work.claim(new_lease(), limit=3, seeds=[cards[0].pk])

    assert claimed == sorted([cards[0].pk, cards[5].pk, cards[4].pk])


def test_more_seeds_than_the_limit_fill_the_batch() -> None:
    """The limit binds seeds too; the others stay due."""
    cards = ids(bare_cards(4))

    assert work.claim(new_lease(), limit=2, seeds=[*cards[2:], cards[1]]) == cards[1:3]
    assert work.claim(new_lease(), limit=9) == [cards[0], cards[3]]


@pytest.mark.parametrize("state", ["done", "quarantined", "leased", "not yet due", "deleted"])
def test_seed_that_is_not_due_is_not_claimed(state: str) -> None:
    """Asking for a card does not override where it stands."""
    (card,) = bare_cards(1)
    rows = CardWork.objects.filter(pk=card.pk)
    match state:
        case "done":
            rows.update(due_at=None)
        case "quarantined":
            rows.update(due_at=None, quarantined_at=Now())
        case "leased":
            rows.update(lease_owner=uuid.uuid4(), leased_until=Now())
        case "not yet due":
            rows.update(due_at=Now() + timedelta(minutes=1))
        case _:
            Card.objects.filter(pk=card.pk).delete()

    assert work.claim(new_lease(), limit=5, seeds=[card.pk]) == []


def test_claim_counts_the_attempt_before_any_work() -> None:
    """Whoever dies next has been counted, and holds the card for as long as it said."""
    (card,) = bare_cards(1)
    lease = new_lease(lease_s=100.0)

    work.claim(lease, limit=1)

    claimed = work_of(card)
    assert (claimed.state, claimed.attempts, claimed.lease_owner, claimed.due_at) == ("leased", 1, lease.owner, None)
    assert claimed.leased_until is not None
    assert timedelta(seconds=90) < claimed.leased_until - timezone.now() <= timedelta(seconds=100)


@pytest.mark.parametrize(
    ("mine", "twin", "is_twin"),
    [
        ({"sha256_checksum": "a" * 64}, {"sha256_checksum": "a" * 64}, True),
        ({"md5_checksum": "a" * 32}, {"md5_checksum": "a" * 32}, True),
        ({"md5_checksum": "a" * 32, "sha256_checksum": "b" * 64}, {"md5_checksum": "a" * 32}, True),
        (
            {"md5_checksum": "a" * 32, "sha256_checksum": "b" * 64},
            {"md5_checksum": "a" * 32, "sha256_checksum": "c" * 64},
            False,
        ),
        ({}, {}, False),
    ],
)
def test_byte_identical_siblings_come_along(mine: dict[str, str], twin: dict[str, str], is_twin: bool) -> None:
    """One image is read once: due cards of the same bytes join the batch beyond its limit, others don't."""
    first, second, stranger = Card.objects.bulk_create([bare_card(**mine), bare_card(**twin), bare_card()])

    assert work.claim(new_lease(), limit=1) == [first.pk, *([second.pk] if is_twin else [])]
    assert work_of(second).attempts == int(is_twin)
    assert state_of(stranger) == "due"


@pytest.mark.parametrize("state", ["done", "leased", "quarantined"])
def test_sibling_that_is_not_due_stays_where_it_is(state: str) -> None:
    """Only due siblings join."""
    first, second = bare_cards(2, sha256_checksum="a" * 64)
    changes: dict[str, dict[str, Any]] = {
        "done": {},
        "leased": {"lease_owner": uuid.uuid4(), "leased_until": Now()},
        "quarantined": {"quarantined_at": Now()},
    }
    CardWork.objects.filter(pk=second.pk).update(due_at=None, **changes[state])

    assert work.claim(new_lease(), limit=5) == [first.pk]
    assert state_of(second) == state


def test_card_due_since_this_transaction_began_can_be_claimed_in_it() -> None:
    """Claims and marks are timed by the same clock, however long the transaction has lasted."""
    (card,) = bare_cards(1)
    CardWork.objects.update(due_at=None)
    assert work.mark_due([card.pk], "asked-for") == 1

    assert work.is_due()
    assert work.claim(new_lease(), limit=1) == [card.pk]


def test_heartbeat_lengthens_only_the_leases_of_its_batch() -> None:
    """It says how many there are; another's lease and a card it no longer holds are left alone."""
    bare_cards(3)
    short, other = new_lease(lease_s=5.0), new_lease(lease_s=5.0)
    mine, others = work.claim(short, limit=2), work.claim(other, limit=1)

    assert work.extend(Lease(owner=short.owner, lease_s=500.0, max_attempts=3)) == 2

    in_time = timezone.now() + timedelta(seconds=400)
    assert set(CardWork.objects.filter(leased_until__gt=in_time).values_list("pk", flat=True)) == set(mine)
    assert state_of(others[0]) == "leased"


def test_judged_cards_are_done_with_a_fresh_count() -> None:
    """Closing ends the named leases of the batch and no other."""
    bare_cards(3)
    lease = new_lease()
    first, second, _ = work.claim(lease, limit=3)

    assert work.close_done(new_lease(), [first, second]) == 0
    assert work.close_done(lease, [first, second]) == 2

    assert [(state_of(card), work_of(card).attempts) for card in (first, second)] == [("done", 0)] * 2
    assert work.count_by_state() == {"due": 0, "leased": 1, "done": 2, "quarantined": 0}


def test_card_that_became_due_during_its_lease_is_due_when_it_ends() -> None:
    """Nothing that happens while a card is worked on is forgotten."""
    closed, given_back = bare_cards(2)
    lease = new_lease()
    work.claim(lease, limit=2)
    assert work.mark_due(ids([closed, given_back]), "evidence-changed") == 2

    assert work.claim(new_lease(), limit=2) == []
    work.close_done(lease, [closed.pk])
    work.settle(lease, given_back.pk, Failed(detail="slow"))

    assert [state_of(closed), state_of(given_back)] == ["due", "due"]
    assert work.claim(new_lease(), limit=2) == ids([closed, given_back])


def test_release_gives_back_cards_and_attempts() -> None:
    """What a batch did not get to is due at once and has lost nothing; settled cards are not touched."""
    bare_cards(3)
    lease = new_lease()
    first, second, third = work.claim(lease, limit=3)
    work.settle(lease, third, Failed(detail="gone dark"))

    assert work.release(lease.owner, "the batch was\0 halted \udcff") == 2

    assert {work_of(card).attempts for card in (first, second)} == {0}
    assert work_of(first).last_detail == "the batch was halted"
    assert work_of(third).last_outcome == "failed"
    assert work.claim(new_lease(), limit=5) == [first, second]


def test_lease_ends_with_its_time_or_with_its_owner() -> None:
    """Cards of the silent and of the dead are due again with their attempt counted; the living keep theirs."""
    cards = bare_cards(3)
    silent, dead, alive = (new_lease() for _ in range(3))
    for lease, card in zip((silent, dead, alive), cards, strict=True):
        assert work.claim(lease, limit=1) == [card.pk]
    CardWork.objects.filter(lease_owner=silent.owner).update(leased_until=Now() - timedelta(seconds=1))

    assert work.expire(3, owners=[dead.owner]) == 2

    assert [state_of(card) for card in cards] == ["due", "due", "leased"]
    assert [work_of(card).attempts for card in cards] == [1, 1, 1]
    assert work_of(cards[0]).last_outcome == "interrupted"
    assert work.expire(3) == 0


def test_card_that_kills_its_workers_is_quarantined() -> None:
    """After the last attempt allowed, nobody is given the card any more."""
    (card,) = bare_cards(1)
    for attempt in range(1, 4):
        lease = new_lease(max_attempts=3)
        assert work.claim(lease, limit=1) == [card.pk]
        work.expire(lease.max_attempts, owners=[lease.owner])
        assert state_of(card) == ("quarantined" if attempt == 3 else "due")

    assert work.claim(new_lease(), limit=1) == []
    assert work_of(card).due_at is None


def test_states_add_up_to_all_cards() -> None:
    """Whatever is done with cards, each is in exactly one state, the one its row shows."""
    cards = bare_cards(12)
    lease = new_lease(max_attempts=1)
    claimed = work.claim(lease, limit=9)
    steps: list[Callable[[], object]] = [
        lambda: work.settle(lease, claimed[0], Failed(detail="")),
        lambda: work.settle(lease, claimed[1], Deferred(detail="")),
        lambda: work.close_done(lease, claimed[2:4]),
        lambda: work.mark_due(claimed[3:6], "again"),
        lambda: work.expire(1, owners=[lease.owner]),
        lambda: ask_again(CardWork.objects.filter(pk=claimed[0])),
    ]
    for step in steps:
        step()
        states = [each.state for each in CardWork.objects.all()]
        assert work.count_by_state() == {
            state: states.count(state) for state in ("due", "leased", "done", "quarantined")
        }
        assert len(states) == len(cards)
