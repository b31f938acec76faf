"""How the shared rate yields to pressure and comes back, and what holds where the database gives no permits."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg2
import pytest
from django.db import OperationalError, connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cardpicker.models import FetchBudget
from cardpicker.stage_c.fetch import purse as purse_module
from cardpicker.stage_c.fetch.destinations import destination_of, rate_per_s, redirect_hosts
from cardpicker.stage_c.fetch.limiter import (
    DECAY_PER_S,
    GOOGLE_IMAGE,
    MAX_AHEAD_S,
    MAX_WIDENING,
    ONE_PRESSURE_S,
    PROBE_EVERY_S,
    SCRYFALL_API,
    SCRYFALL_IMAGE,
    WIDEN_BY,
    reopen,
    shut,
    slow_down,
    take,
    take_permits,
)
from cardpicker.stage_c.fetch.purse import PERMITS_AT_ONCE, SAFE_SHARE, Purse
from cardpicker.stage_c.settings import StageCSettings

RATE = 10.0


def steps(waits: tuple[float, ...] | list[float]) -> list[float]:
    return [later - sooner for sooner, later in itertools.pairwise(waits)]


def let_pass(seconds: float) -> None:
    """Make it as if so much time had passed for the budget."""
    moved = timedelta(seconds=seconds)
    FetchBudget.objects.update(widened_at=F("widened_at") - moved, next_permit_at=F("next_permit_at") - moved)


@pytest.mark.django_db
def test_pressure_widens_everybodys_interval_by_a_factor_up_to_a_limit() -> None:
    """Each new pressure multiplies; the last ones change nothing any more."""
    seen = []
    for _ in range(12):
        slow_down(GOOGLE_IMAGE, None)
        seen.append(take(GOOGLE_IMAGE, 1, RATE).widening)
        let_pass(ONE_PRESSURE_S + 1)

    assert seen[0] == pytest.approx(WIDEN_BY, rel=0.01)
    assert seen[1] / seen[0] == pytest.approx(WIDEN_BY, rel=0.1)
    assert seen[-1] == pytest.approx(MAX_WIDENING, rel=0.01)


@pytest.mark.django_db
def test_many_answers_to_one_pressure_widen_once() -> None:
    """What was in flight when it began is not new pressure."""
    for _ in range(5):
        slow_down(GOOGLE_IMAGE, None)

    assert steps(take(GOOGLE_IMAGE, 3, RATE).waits_s) == pytest.approx([WIDEN_BY / RATE] * 2, rel=0.02)


@pytest.mark.django_db
def test_a_widened_interval_falls_back_in_a_straight_line() -> None:
    """As much in the first half of the way as in the second; then the rate is the rate again."""
    for _ in range(12):
        slow_down(GOOGLE_IMAGE, None)
        let_pass(ONE_PRESSURE_S + 1)
    slow_down(GOOGLE_IMAGE, None)
    whole_s = (MAX_WIDENING - 1) / DECAY_PER_S

    let_pass(whole_s / 2)
    halfway = take(GOOGLE_IMAGE, 1, RATE).widening
    let_pass(whole_s)

    assert halfway == pytest.approx((MAX_WIDENING + 1) / 2, rel=0.02)
    assert steps(take(GOOGLE_IMAGE, 3, RATE).waits_s) == pytest.approx([1 / RATE] * 2, rel=0.02)


@pytest.mark.django_db
def test_a_second_wish_for_patience_counts_though_it_widens_nothing() -> None:
    """Of several answers the longest wait holds."""
    slow_down(GOOGLE_IMAGE, 5.0)
    slow_down(GOOGLE_IMAGE, 50.0)

    assert take_permits(GOOGLE_IMAGE, 1, RATE)[0] > 40


@pytest.mark.django_db
def test_after_a_lockout_one_probe_at_a_time() -> None:
    """However many permits are asked for, and by whomever: one now, the next a minute later."""
    take_permits(GOOGLE_IMAGE, 1, RATE)
    shut(GOOGLE_IMAGE)

    probe, next_probe = take(GOOGLE_IMAGE, 6, RATE), take(GOOGLE_IMAGE, 6, RATE)

    assert probe.is_probe and next_probe.is_probe
    assert len(probe.waits_s) == len(next_probe.waits_s) == 1
    assert next_probe.waits_s[0] - probe.waits_s[0] == pytest.approx(PROBE_EVERY_S, abs=2)


@pytest.mark.django_db
def test_a_probe_that_succeeds_begins_a_slow_ramp() -> None:
    """Not the whole rate at once; and a second success does not begin it anew."""
    shut(GOOGLE_IMAGE)
    take(GOOGLE_IMAGE, 6, RATE)

    reopen(GOOGLE_IMAGE, RATE)
    ramp = take(GOOGLE_IMAGE, 3, RATE)
    let_pass(100)
    reopen(GOOGLE_IMAGE, RATE)

    assert not ramp.is_probe
    assert steps(ramp.waits_s) == pytest.approx([MAX_WIDENING / RATE] * 2, rel=0.02)
    assert ramp.waits_s[0] < 2
    assert take(GOOGLE_IMAGE, 1, RATE).widening == pytest.approx(MAX_WIDENING - 100 * DECAY_PER_S, rel=0.02)


@pytest.mark.django_db
def test_a_permit_that_is_too_far_away_is_not_taken() -> None:
    """Nobody waits that long, so the queue does not grow by it."""
    take_permits(GOOGLE_IMAGE, 1_000, RATE)
    before = FetchBudget.objects.get().next_permit_at

    refused = take(GOOGLE_IMAGE, 6, RATE, max_wait_s=20)

    assert refused.waits_s == ()
    assert 90 < refused.come_back_s <= 100
    assert FetchBudget.objects.get().next_permit_at == before


@pytest.mark.django_db
def test_a_row_left_in_the_far_future_is_brought_back() -> None:
    """The database's clock was set back; nobody waits for hours on it."""
    FetchBudget.objects.create(destination=GOOGLE_IMAGE, next_permit_at=timezone.now() + timedelta(days=1))

    assert take(GOOGLE_IMAGE, 1, RATE, max_wait_s=20).waits_s[0] < 5
    assert MAX_AHEAD_S < 86_400


@pytest.mark.django_db
def test_images_cost_less_than_one_statement_in_five() -> None:
    """Permits are spent one by one and taken several at a time, but not more than are wanted."""
    purse = Purse(GOOGLE_IMAGE, RATE, 20)
    take_permits(GOOGLE_IMAGE, 1, RATE)

    with CaptureQueriesContext(connection) as captured:
        moments = [purse.next(wanted).starts_at for wanted in range(60, 0, -1)]

    assert moments == sorted(moments)
    assert len(captured) == math.ceil(60 / PERMITS_AT_ONCE) < 0.2 * 60


@pytest.mark.django_db
def test_a_refused_run_does_not_ask_again_and_again() -> None:
    """Until the moment that it was told, it knows the answer."""
    take_permits(GOOGLE_IMAGE, 1_000, RATE)
    purse = Purse(GOOGLE_IMAGE, RATE, 20)

    with CaptureQueriesContext(connection) as captured:
        permits = [purse.next(25) for _ in range(25)]

    assert not any(permit.is_granted for permit in permits)
    assert permits[-1].starts_at - time.monotonic() > 80
    assert len(captured) == 2


@pytest.mark.django_db
def test_permits_taken_before_the_pressure_are_given_up() -> None:
    """What is taken after it keeps to the wider interval."""
    purse = Purse(GOOGLE_IMAGE, RATE, 20)
    purse.next(6)
    slow_down(GOOGLE_IMAGE, 10.0)
    purse.drop()

    assert purse.next(6).starts_at - time.monotonic() > 5


@pytest.fixture
def held_row() -> Iterator[None]:
    """The budget's row, locked by a session that does not end."""
    FetchBudget.objects.get_or_create(destination=GOOGLE_IMAGE)
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    with psycopg2.connect(**parameters) as rival, rival.cursor() as cursor:
        cursor.execute("SELECT 1 FROM cardpicker_fetchbudget FOR UPDATE")
        yield
        rival.rollback()
    rival.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("held_row")
def test_a_locked_row_is_not_waited_for_for_ever() -> None:
    """Within seconds the run paces itself, and its connection is as good as before."""
    purse = Purse(GOOGLE_IMAGE, RATE, 20)
    started = time.monotonic()

    first = purse.next(6).starts_at

    assert time.monotonic() - started < 30
    assert first <= time.monotonic()
    assert FetchBudget.objects.count() == 1


def test_without_the_database_a_run_paces_itself_at_a_safe_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen processes that do so keep to the rate together; what had been widened stays so."""

    def fail(*args: object, **kwargs: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(purse_module, "take", fail)
    purse = Purse(GOOGLE_IMAGE, RATE, 20)

    moments = [purse.next(6).starts_at for _ in range(4)]

    assert steps(moments) == pytest.approx([1 / (RATE * SAFE_SHARE)] * 3)
    assert 16 * RATE * SAFE_SHARE <= RATE


@pytest.mark.django_db
def test_pacing_alone_follows_the_last_permit_and_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losing the database in mid-run is no reason to be faster."""
    slow_down(GOOGLE_IMAGE, None)
    purse = Purse(GOOGLE_IMAGE, RATE, 20)
    last = [purse.next(6).starts_at for _ in range(6)][-1]

    def fail(*args: object, **kwargs: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(purse_module, "take", fail)

    assert purse.next(6).starts_at - last == pytest.approx(WIDEN_BY / (RATE * SAFE_SHARE), rel=0.02)


@pytest.mark.parametrize(
    ("host", "budget", "rate"),
    [
        ("lh4.googleusercontent.com", GOOGLE_IMAGE, 7.0),
        ("drive.google.com", GOOGLE_IMAGE, 7.0),
        ("cards.scryfall.io", SCRYFALL_IMAGE, 10.0),
        ("api.scryfall.com", SCRYFALL_API, 2.0),
        ("scryfall.io.evil.example", "", 7.0),
        ("evilgoogleusercontent.com", "", 7.0),
        ("images.example", "", 7.0),
    ],
)
def test_hosts_have_the_budget_of_their_owner(host: str, budget: str, rate: float) -> None:
    """Whichever source names them."""
    assert destination_of(host) == budget
    assert rate_per_s(budget, StageCSettings()) == rate


def test_redirects_stay_with_the_owner_or_where_the_operator_allows() -> None:
    """An unknown host leads nowhere else by itself."""
    settings = StageCSettings(redirect_hosts=" Cdn.Example , .cdn.example,")

    assert redirect_hosts("images.example", StageCSettings()) == frozenset()
    assert redirect_hosts("images.example", settings) == {"cdn.example", ".cdn.example"}
    assert ".googleusercontent.com" in redirect_hosts("drive.google.com", StageCSettings())


@pytest.mark.django_db(transaction=True)
def test_two_runs_share_what_one_of_them_learns() -> None:
    """A process that was never throttled keeps to the interval of the one that was."""
    learned: list[float] = []

    def other() -> None:
        try:
            learned.extend(steps(take(GOOGLE_IMAGE, 3, RATE).waits_s))
        finally:
            connection.close()

    slow_down(GOOGLE_IMAGE, None)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join(30)

    assert learned == pytest.approx([WIDEN_BY / RATE] * 2, rel=0.02)
