"""One rate for all who fetch from a destination."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cardpicker.models import FetchBudget
from cardpicker.stage_c.fetch.limiter import GOOGLE_IMAGE, MAX_HOLD_S, slow_down, take_permits


@pytest.mark.django_db
def test_permits_are_spaced_by_the_rate() -> None:
    """The first is due at once, the others one interval apart."""
    waits = take_permits(GOOGLE_IMAGE, 5, 10.0)

    assert waits[0] == pytest.approx(0.0, abs=0.09)
    assert [later - sooner for sooner, later in itertools.pairwise(waits)] == pytest.approx([0.1] * 4, abs=0.09)


@pytest.mark.django_db
def test_the_next_taker_comes_after_the_last_permit() -> None:
    """Whoever asks later waits for those who asked before."""
    take_permits(GOOGLE_IMAGE, 100, 1.0)

    [wait] = take_permits(GOOGLE_IMAGE, 1, 1.0)

    assert 90 < wait <= 100


@pytest.mark.django_db
def test_unused_time_is_not_saved_up() -> None:
    """After a quiet hour the rate is the rate, without a burst."""
    FetchBudget.objects.create(destination=GOOGLE_IMAGE, next_permit_at=timezone.now() - timedelta(hours=1))

    waits = take_permits(GOOGLE_IMAGE, 3, 1.0)

    assert waits == pytest.approx([0, 1, 2], abs=0.5)


@pytest.mark.django_db
def test_destinations_have_budgets_of_their_own() -> None:
    """One host's pressure is not another's."""
    take_permits(GOOGLE_IMAGE, 1_000, 1.0)

    assert take_permits("ELSEWHERE", 1, 1.0) == pytest.approx([0], abs=0.5)


@pytest.mark.django_db
def test_any_number_of_permits_is_one_statement() -> None:
    """The row is locked for a moment, not for the length of a batch."""
    take_permits(GOOGLE_IMAGE, 1, 1.0)

    with CaptureQueriesContext(connection) as captured:
        assert len(take_permits(GOOGLE_IMAGE, 500, 100.0)) == 500
        assert take_permits(GOOGLE_IMAGE, 0, 100.0) == []

    assert len(captured) == 1


@pytest.mark.django_db
def test_held_back_means_everybody_and_not_for_ever() -> None:
    """A wish for patience moves the next permit, at most an hour, and never nearer."""
    slow_down(GOOGLE_IMAGE, 10_000.0)
    slow_down(GOOGLE_IMAGE, 1.0)

    [wait] = take_permits(GOOGLE_IMAGE, 1, 100.0)

    assert MAX_HOLD_S - 10 < wait <= MAX_HOLD_S


@pytest.mark.django_db(transaction=True)
def test_rivals_never_get_the_same_moment() -> None:
    """Eight sessions at once draw 240 permits, and the budget moves by exactly as many intervals."""
    start = timezone.now() + timedelta(hours=1)
    FetchBudget.objects.create(destination=GOOGLE_IMAGE, next_permit_at=start)
    together = threading.Barrier(8)

    def draw(_: int) -> int:
        try:
            connection.ensure_connection()
            together.wait(30)
            return sum(len(take_permits(GOOGLE_IMAGE, 3, 10.0)) for _ in range(10))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        drawn = sum(threads.map(draw, range(8)))

    assert drawn == 240
    assert FetchBudget.objects.get().next_permit_at - start == timedelta(seconds=24)
