"""Acknowledging trips and pausing, through the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from cardpicker.models import EnvelopeBar, EnvelopeTrip
from cardpicker.stage_e.envelope import open_trip
from cardpicker.tests.admin_rows import make_staff, make_trip, superuser_client

pytestmark = pytest.mark.django_db

PAUSE = "admin:cardpicker_envelopetrip_pause"


@pytest.fixture
def admin_client(db: None) -> Client:
    """A superuser's browser."""
    return superuser_client()


def acknowledge(client: Client, trip_id: int, note: str) -> Any:
    """Send the form of a trip's page."""
    return client.post(reverse("admin:cardpicker_envelopetrip_acknowledge", args=[trip_id]), {"note": note})


def said(response: Any) -> str:
    """Return the messages that a response leaves for the next page."""
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def test_trip_is_acknowledged_with_a_note(admin_client: Client) -> None:
    """The form closes the trip under the person's name and leads back to it."""
    trip = make_trip()

    response = acknowledge(admin_client, trip.pk, "A backup ran.")

    trip.refresh_from_db()
    assert response.status_code == 302
    assert (trip.note, trip.acknowledged_by) == ("A backup ran.", "admin")
    assert "Dispatch may resume" in said(response)
    assert open_trip() is None


@pytest.mark.parametrize("note", ["", "  \n "])
def test_trip_stays_open_without_a_note(admin_client: Client, note: str) -> None:
    """A blank note is refused with a message that asks for one."""
    trip = make_trip()

    response = acknowledge(admin_client, trip.pk, note)

    trip.refresh_from_db()
    assert trip.acknowledged_at is None
    assert "note" in said(response)


def test_second_acknowledgment_changes_nothing(admin_client: Client) -> None:
    """Whoever comes second is told who was first."""
    trip = make_trip(acknowledged=True)

    response = acknowledge(admin_client, trip.pk, "Mine.")

    trip.refresh_from_db()
    assert trip.note == "seen"
    assert "ann" in said(response)


def test_unknown_trip_is_a_message(admin_client: Client) -> None:
    """A trip that is not there is said to be not there."""
    assert "no trip 424242" in said(acknowledge(admin_client, 424242, "x"))


def test_message_says_what_is_still_open(admin_client: Client) -> None:
    """Dispatch is not said to resume while another trip is open."""
    trip = make_trip()
    make_trip(EnvelopeBar.GOOGLE_LOCKOUT)

    assert "stays halted" in said(acknowledge(admin_client, trip.pk, "x"))


def test_acknowledging_needs_the_permission_and_a_post(client: Client) -> None:
    """Looking at trips is not acknowledging them, and a link cannot do it."""
    trip = make_trip()
    address = reverse("admin:cardpicker_envelopetrip_acknowledge", args=[trip.pk])
    client.force_login(make_staff("viewer", "view_envelopetrip"))
    shown = client.get(reverse("admin:cardpicker_envelopetrip_change", args=[trip.pk])).content.decode()

    assert client.post(address, {"note": "x"}).status_code == 403
    assert client.get(address).status_code == 405
    assert 'id="acknowledge"' not in shown
    client.force_login(make_staff("operator", "view_envelopetrip", "change_envelopetrip"))
    assert client.get(address).status_code == 405
    assert client.post(address, {"note": "x"}).status_code == 302
    trip.refresh_from_db()
    assert trip.acknowledged_by == "operator"


def test_strangers_are_sent_to_the_login(client: Client) -> None:
    """Without a login nothing is acknowledged or paused."""
    trip = make_trip()

    assert "/login/" in acknowledge(client, trip.pk, "x")["Location"]
    assert "/login/" in client.post(reverse(PAUSE), {"note": "x"})["Location"]
    trip.refresh_from_db()
    assert trip.acknowledged_at is None
    assert EnvelopeTrip.objects.count() == 1


def test_forged_forms_are_refused() -> None:
    """A form without the token of its page acknowledges nothing."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_staff("operator", "change_envelopetrip"))

    assert acknowledge(client, make_trip().pk, "x").status_code == 403


def test_form_is_on_open_trips_only(admin_client: Client) -> None:
    """An acknowledged trip has no form."""
    opened, closed = make_trip(), make_trip(EnvelopeBar.RSS, acknowledged=True)

    for trip, expected in ((opened, True), (closed, False)):
        text = admin_client.get(reverse("admin:cardpicker_envelopetrip_change", args=[trip.pk])).content.decode()
        assert ('id="acknowledge"' in text) is expected


def test_pause_halts_dispatch_until_acknowledged(admin_client: Client) -> None:
    """Pausing opens a trip in the person's name; acknowledging it lets dispatch resume."""
    admin_client.post(reverse(PAUSE), {"note": "Disk swap"})

    trip = open_trip()
    assert trip is not None
    assert (trip.bar, trip.opened_by, trip.detail) == (EnvelopeBar.OPERATOR_PAUSE, "admin", "Disk swap")
    acknowledge(admin_client, trip.pk, "Disk is in.")
    assert open_trip() is None


def test_second_pause_says_who_was_first(admin_client: Client) -> None:
    """A pause during a pause opens nothing."""
    admin_client.post(reverse(PAUSE), {"note": "Disk swap"})

    response = admin_client.post(reverse(PAUSE), {"note": "Me too"})

    assert EnvelopeTrip.objects.count() == 1
    assert "paused already, by admin" in said(response)


def test_pause_needs_a_note_and_the_permission(admin_client: Client, client: Client) -> None:
    """A blank note or a viewer pauses nothing."""
    admin_client.post(reverse(PAUSE), {"note": " "})
    client.force_login(make_staff("viewer", "view_envelopetrip"))

    assert client.post(reverse(PAUSE), {"note": "x"}).status_code == 403
    assert client.get(reverse(PAUSE)).status_code == 405
    assert 'id="pause"' not in client.get(reverse("admin:cardpicker_envelopetrip_changelist")).content.decode()
    assert not EnvelopeTrip.objects.exists()
