"""The envelope: what breaches a bar, and trips that stand until a person closes them with a note."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from cardpicker.models import EnvelopeBar, EnvelopeTrip, FetchClass, FetchOutcome
from cardpicker.models.operations import AppendOnlyError
from cardpicker.stage_e import envelope
from cardpicker.stage_e.envelope import Breach, NoteMissingError, TripNotOpenError, judge
from cardpicker.stage_e.fetch_window import FetchWindow, read_fetch_window
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals
from cardpicker.tests.work_support import at_once

SETTINGS = StageESettings(
    host_load_ceiling=7.0,
    rss_mb_ceiling=512,
    fetch_failure_rate_ceiling=0.01,
    fetch_failure_window=500,
    fetch_failure_minimum=200,
)


def vitals(load_1m: float | None = 0.0, rss_mb: float = 0.0) -> Vitals:
    """Return a sample."""
    return Vitals(load_1m=load_1m, largest_rss_mb=rss_mb, tree_rss_mb=10 * rss_mb)


def breach_of(bar: EnvelopeBar) -> Breach:
    """Return a breach of a bar."""
    return Breach(bar=bar, value=2.0, ceiling=1.0, detail="too much")


def fetched(*outcomes: FetchClass) -> None:
    """Record fetches."""
    FetchOutcome.objects.bulk_create([FetchOutcome(outcome=outcome) for outcome in outcomes])


@pytest.mark.parametrize(
    ("sample", "window", "bar"),
    [
        (vitals(), FetchWindow(), None),
        (vitals(load_1m=7.0), FetchWindow(), None),
        (vitals(load_1m=7.01), FetchWindow(), EnvelopeBar.HOST_LOAD),
        (vitals(load_1m=None), FetchWindow(), None),
        (vitals(rss_mb=512), FetchWindow(), None),
        (vitals(rss_mb=512.1), FetchWindow(), EnvelopeBar.RSS),
        (vitals(), FetchWindow(fetches=500, failures=5), None),
        (vitals(), FetchWindow(fetches=500, failures=6), EnvelopeBar.FETCH_FAILURE_RATE),
        (vitals(), FetchWindow(fetches=200, failures=2), None),
        (vitals(), FetchWindow(fetches=200, failures=3), EnvelopeBar.FETCH_FAILURE_RATE),
        (vitals(), FetchWindow(fetches=199, failures=199), None),
        (vitals(load_1m=8, rss_mb=600), FetchWindow(fetches=500, failures=500), EnvelopeBar.HOST_LOAD),
        (vitals(rss_mb=600), FetchWindow(fetches=500, failures=500), EnvelopeBar.RSS),
    ],
)
def test_bars_are_judged_in_their_order(sample: Vitals, window: FetchWindow, bar: EnvelopeBar | None) -> None:
    """Exactly the ceiling passes, the first bar breached is named, and too few fetches prove nothing."""
    breach = judge(sample, window, SETTINGS)

    assert (breach.bar if breach else None) == bar
    if breach:
        assert breach.value > breach.ceiling
        assert breach.detail


def test_minimum_above_the_window_does_not_disarm_the_bar() -> None:
    """A window that can never hold the minimum is judged when it is full."""
    settings = StageESettings(fetch_failure_window=50, fetch_failure_minimum=200)

    assert envelope.judge_fetches(FetchWindow(fetches=49, failures=49), settings) is None
    assert envelope.judge_fetches(FetchWindow(fetches=50, failures=50), settings) is not None


@pytest.mark.django_db
def test_window_holds_the_latest_fetches_only() -> None:
    """Everything but an image that arrived is a failure; what is older than the window no longer counts."""
    fetched(FetchClass.FAILED, FetchClass.FETCHED, FetchClass.GONE, FetchClass.UNUSABLE, FetchClass.FETCHED)

    assert read_fetch_window(500) == FetchWindow(fetches=5, failures=3)
    assert read_fetch_window(4) == FetchWindow(fetches=4, failures=2)


@pytest.mark.django_db
def test_window_starts_anew_when_its_trip_is_acknowledged() -> None:
    """Failures that a person has looked at don't trip again; acknowledging another bar forgives nothing."""
    fetched(*[FetchClass.FAILED] * 3)
    trip = envelope.store_trip(breach_of(EnvelopeBar.FETCH_FAILURE_RATE), run_id="r")
    other = envelope.store_trip(breach_of(EnvelopeBar.HOST_LOAD), run_id="r")

    envelope.acknowledge_trip(other.pk, "a backup ran", "ada")
    assert read_fetch_window(500).failures == 3
    envelope.acknowledge_trip(trip.pk, "the host was down", "ada")
    assert read_fetch_window(500) == FetchWindow()
    fetched(FetchClass.FAILED, FetchClass.FETCHED)
    assert read_fetch_window(500) == FetchWindow(fetches=2, failures=1)


@pytest.mark.django_db
@pytest.mark.parametrize("bar", [EnvelopeBar.HOST_LOAD, EnvelopeBar.RSS])
def test_trip_of_a_host_gates_only_that_host(bar: EnvelopeBar, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host goes on, and may trip the same bar itself."""
    trip = envelope.store_trip(breach_of(bar), run_id="r")
    assert envelope.open_trip() == trip

    monkeypatch.setattr("cardpicker.stage_e.envelope.host_name", lambda: "another-host")

    assert envelope.open_trip() is None
    assert envelope.store_trip(breach_of(bar), run_id="r") != trip


@pytest.mark.django_db
@pytest.mark.parametrize(
    "bar", [EnvelopeBar.FETCH_FAILURE_RATE, EnvelopeBar.GOOGLE_LOCKOUT, EnvelopeBar.OPERATOR_PAUSE]
)
def test_other_trips_gate_every_host(bar: EnvelopeBar, monkeypatch: pytest.MonkeyPatch) -> None:
    """What concerns the image host or a person's will stops all."""
    opening = {
        EnvelopeBar.FETCH_FAILURE_RATE: lambda: envelope.store_trip(breach_of(bar), run_id="r"),
        EnvelopeBar.GOOGLE_LOCKOUT: lambda: envelope.trip_lockout("unusual traffic", run_id="r"),
        EnvelopeBar.OPERATOR_PAUSE: lambda: envelope.pause("ada", "moving house"),
    }
    trip = opening[bar]()

    monkeypatch.setattr("cardpicker.stage_e.envelope.host_name", lambda: "another-host")

    assert envelope.open_trip() == trip
    assert opening[bar]() == trip


@pytest.mark.django_db
def test_first_bar_in_order_is_the_trip_that_is_named() -> None:
    """Whatever was opened first, operators are told of the gravest."""
    pause = envelope.pause("ada", "looking")
    assert envelope.open_trip() == pause
    load = envelope.store_trip(breach_of(EnvelopeBar.HOST_LOAD), run_id="r")
    assert envelope.open_trip() == load
    lockout = envelope.trip_lockout("unusual traffic", run_id="r")
    assert envelope.open_trip() == lockout


@pytest.mark.django_db(transaction=True)
def test_rivals_open_one_trip() -> None:
    """However many see a breach at once, there is one trip, and each is given it."""
    trips = at_once(8, lambda number: envelope.store_trip(breach_of(EnvelopeBar.RSS), run_id=f"run-{number}").pk)

    assert len(set(trips)) == 1
    assert EnvelopeTrip.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_rivals_acknowledge_once() -> None:
    """One signature closes a trip; the others are told whose it was."""
    trip = envelope.pause("ada", "looking")

    def acknowledge(number: int) -> str:
        try:
            return envelope.acknowledge_trip(trip.pk, f"note {number}", f"person {number}").acknowledged_by
        except TripNotOpenError as error:
            return str(error)

    answers = at_once(6, acknowledge)

    trip.refresh_from_db()
    assert answers.count(trip.acknowledged_by) == 1
    others = [answer for answer in answers if answer != trip.acknowledged_by]
    assert all(answer.startswith(f"Trip {trip.pk} was acknowledged by {trip.acknowledged_by} ") for answer in others)


@pytest.mark.django_db
def test_breach_after_an_acknowledgement_is_a_new_trip() -> None:
    """Acknowledging closes one trip, not the bar."""
    first = envelope.store_trip(breach_of(EnvelopeBar.RSS), run_id="r" * 100)
    envelope.acknowledge_trip(first.pk, " two lines\nof note ", " ada ")

    second = envelope.store_trip(breach_of(EnvelopeBar.RSS), run_id="r")

    first.refresh_from_db()
    assert second != first
    assert (first.note, first.acknowledged_by) == ("two lines\nof note", "ada")
    assert envelope.open_trip() == second


@pytest.mark.django_db
@pytest.mark.parametrize("blank", ["", "  \n\t", "\0", " \0 ", "\udcff", "\u00a0"])
def test_note_and_name_are_mandatory(blank: str) -> None:
    """A trip is not closed, nor dispatch paused, by somebody who says nothing or nobody who says something."""
    trip = envelope.store_trip(breach_of(EnvelopeBar.RSS), run_id="r")

    for who, note in (("ada", blank), (blank, "looked")):
        with pytest.raises(NoteMissingError):
            envelope.acknowledge_trip(trip.pk, note, who)
        with pytest.raises(NoteMissingError):
            envelope.pause(who, note)

    assert envelope.open_trip() == trip
    assert EnvelopeTrip.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "changes", [{"acknowledged_at": Now()}, {"acknowledged_at": Now(), "note": "x"}, {"note": "x"}]
)
def test_database_refuses_half_an_acknowledgement(changes: dict[str, Any]) -> None:
    """Neither a script nor the admin can close a trip without note and name, or note one that is open."""
    envelope.store_trip(breach_of(EnvelopeBar.RSS), run_id="r")

    with pytest.raises(IntegrityError), transaction.atomic():
        EnvelopeTrip.objects.update(**changes)


@pytest.mark.django_db
@pytest.mark.parametrize("trip_id", [0, -1, 10**30])
def test_trip_that_does_not_exist_is_named(trip_id: int) -> None:
    """A wrong number is an answer, however large."""
    with pytest.raises(TripNotOpenError, match=f"no trip {trip_id}"):
        envelope.acknowledge_trip(trip_id, "looked", "ada")


@pytest.mark.django_db
def test_lockout_says_what_was_seen_in_text_that_can_be_stored() -> None:
    """A refusal's page may hold anything and be of any length."""
    trip = envelope.trip_lockout("sorry\0\udcff " + "x" * 1000, run_id="r" * 100)

    trip.refresh_from_db()
    assert trip.detail.startswith("sorry x")
    assert len(trip.detail) == 500


@pytest.mark.django_db
@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_trip_cannot_be_deleted(is_acknowledged: bool, client: Client) -> None:
    """Not as a row, not as a query set, not in the admin by its most powerful user."""
    trip = envelope.pause("ada", "looking")
    if is_acknowledged:
        envelope.acknowledge_trip(trip.pk, "looked", "ada")
    client.force_login(get_user_model().objects.create_superuser("root", password="x"))

    with pytest.raises(AppendOnlyError):
        trip.delete()
    with pytest.raises(AppendOnlyError):
        EnvelopeTrip.objects.filter(pk=trip.pk).delete()
    page = client.post(reverse("admin:cardpicker_envelopetrip_delete", args=[trip.pk]), {"post": "yes"})
    client.post(
        reverse("admin:cardpicker_envelopetrip_changelist"),
        {"action": "delete_selected", "_selected_action": [trip.pk], "post": "yes"},
    )

    assert page.status_code == 403
    assert EnvelopeTrip.objects.filter(pk=trip.pk).exists()


@pytest.mark.django_db
def test_no_time_closes_a_trip() -> None:
    """Nothing resumes by itself, however long ago it stopped."""
    trip = envelope.pause("ada", "looking")
    EnvelopeTrip.objects.update(opened_at=Now() - timedelta(days=400))

    assert envelope.open_trip() == trip


@pytest.mark.django_db
def test_a_trip_outlives_every_way_of_deleting() -> None:
    """What the models refuse, the database refuses too."""
    trip = envelope.pause("me", "looking")

    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        EnvelopeTrip._base_manager.filter(pk=trip.pk).delete()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM cardpicker_envelopetrip")

    assert EnvelopeTrip.objects.filter(pk=trip.pk).exists()
