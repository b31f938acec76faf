"""dispatch_micro_batch: its gates in their order, each without a trace of work."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from cardpicker.models import (
    CardWork,
    EnvelopeBar,
    EnvelopeTrip,
    FetchClass,
    FetchOutcome,
    PilotRunLedger,
    Source,
    StageEThrottleCounter,
)
from cardpicker.stage_e import envelope
from cardpicker.stage_e.concurrency import SlotSettings, try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import dispatch_for_card, dispatch_micro_batch, slot_settings
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.stage_e.vitals import Vitals
from cardpicker.tests.stage_e_support import HEALTHY, make_cards, make_source, options, states

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder that cards come from."""
    return make_source(tmp_path / "cards")


@pytest.fixture
def taken_slots() -> Iterator[None]:
    """Both slots of this host, held by somebody else."""
    settings = slot_settings(options().settings)
    with try_acquire_dispatch_slot(settings) as first, try_acquire_dispatch_slot(settings) as second:
        assert (first, second) == (0, 1)
        yield


def test_disabled_leaves_no_trace(source: Source) -> None:
    """With the flag off nothing is claimed, counted or recorded."""
    cards = make_cards(source, 1)
    off = dataclasses.replace(options(), settings=dataclasses.replace(options().settings, streaming_enabled=False))

    assert dispatch_micro_batch(options=off).status is DispatchStatus.DISABLED
    assert states(cards) == ["due"] and not PilotRunLedger.objects.exists()


def test_an_open_trip_halts_before_a_slot_is_taken(source: Source, taken_slots: None) -> None:
    """The trip's gate stands before the slot's: with both closed, the trip is what is told, and nothing is counted."""
    cards = make_cards(source, 1)
    trip = envelope.pause("me", "looking")

    outcome = dispatch_micro_batch(options=options())

    assert (outcome.status, outcome.trip_id) == (DispatchStatus.HALTED_OPEN_TRIP, trip.pk)
    assert states(cards) == ["due"] and not StageEThrottleCounter.objects.filter(count__gt=0).exists()


def test_no_free_slot_is_counted_and_leaves_no_ledger_row(source: Source, taken_slots: None) -> None:
    """A throttled dispatch raises the counter and nothing else."""
    cards = make_cards(source, 1)

    outcome = dispatch_micro_batch(options=options())

    assert outcome.status is DispatchStatus.THROTTLED
    assert StageEThrottleCounter.objects.get().count == 1
    assert states(cards) == ["due"] and not PilotRunLedger.objects.exists()


def test_a_slot_connection_that_cannot_be_opened_fails_closed(source: Source) -> None:
    """Without a connection for the slot nothing runs."""
    make_cards(source, 1)
    nowhere = options(lock_dsn="host=127.0.0.1 port=1 dbname=none user=none connect_timeout=2")

    outcome = dispatch_micro_batch(options=nowhere)

    assert outcome.status is DispatchStatus.THROTTLED and "cannot be opened" in outcome.detail
    assert not PilotRunLedger.objects.exists()


@pytest.mark.parametrize(
    ("vitals", "bar"),
    [
        (dataclasses.replace(HEALTHY, load_1m=7.01), EnvelopeBar.HOST_LOAD),
        (dataclasses.replace(HEALTHY, largest_rss_mb=512.1), EnvelopeBar.RSS),
        (dataclasses.replace(HEALTHY, load_1m=9, largest_rss_mb=9999), EnvelopeBar.HOST_LOAD),
    ],
)
def test_a_fresh_breach_stores_a_trip_and_claims_nothing(source: Source, vitals: Vitals, bar: EnvelopeBar) -> None:
    """The first bar breached is the one that is stored; the next dispatch finds it open."""
    cards = make_cards(source, 1)

    first = dispatch_micro_batch(options=options(sample=lambda: vitals))
    second = dispatch_micro_batch(options=options())

    assert first.status is DispatchStatus.HALTED_NEW_TRIP
    assert (second.status, second.trip_id) == (DispatchStatus.HALTED_OPEN_TRIP, first.trip_id)
    assert EnvelopeTrip.objects.get().bar == bar
    assert states(cards) == ["due"] and not PilotRunLedger.objects.exists()


def test_a_failure_rate_above_its_bar_halts_every_host(source: Source) -> None:
    """The window is shared, so its trip gates all hosts."""
    make_cards(source, 1)
    kinds = [FetchClass.FAILED] * 3 + [FetchClass.FETCHED] * 197
    FetchOutcome.objects.bulk_create(FetchOutcome(outcome=kind) for kind in kinds)

    outcome = dispatch_micro_batch(options=options())

    assert outcome.status is DispatchStatus.HALTED_NEW_TRIP
    trip = EnvelopeTrip.objects.get()
    assert (trip.bar, trip.host, trip.value) == (EnvelopeBar.FETCH_FAILURE_RATE, "", 0.015)


def test_nothing_due_is_empty_and_leaves_no_ledger_row(source: Source) -> None:
    """Due later is not due now."""
    make_cards(source, 1)
    CardWork.objects.update(due_at=timezone.now() + timedelta(hours=1))

    assert dispatch_micro_batch(options=options()).status is DispatchStatus.EMPTY
    assert not PilotRunLedger.objects.exists()


def test_a_deleted_cards_task_is_a_no_op() -> None:
    """The task's card is only a wish."""
    assert dispatch_for_card(987654321, "event") in {"empty", "disabled"}


def test_slots_are_counted_per_host(source: Source, taken_slots: None) -> None:
    """Another host's slots are its own."""
    here = slot_settings(options().settings)
    with try_acquire_dispatch_slot(SlotSettings(connect=here.connect, slots=2, scope="elsewhere")) as slot:
        assert slot == 0
