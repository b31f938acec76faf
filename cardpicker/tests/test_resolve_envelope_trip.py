"""The command that acknowledges trips."""

from __future__ import annotations

import getpass
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from cardpicker.models import EnvelopeBar, EnvelopeTrip
from cardpicker.stage_e import envelope
from cardpicker.tests.cluster import manage

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    """Run the command and return what it printed."""
    output = StringIO()
    call_command("resolve_envelope_trip", *arguments, stdout=output)
    return output.getvalue()


def test_open_trips_are_listed_with_what_they_gate() -> None:
    """Without arguments nothing is closed; acknowledged trips are not shown."""
    assert run() == "No trip is open.\n"
    breach = envelope.Breach(bar=EnvelopeBar.RSS, value=600, ceiling=512, detail="a process holds 600 MB")
    rss = envelope.store_trip(breach, run_id="r")
    lockout = envelope.trip_lockout("unusual traffic", run_id="r")
    closed = envelope.pause("ada", "looking")
    envelope.acknowledge_trip(closed.pk, "looked", "ada")

    lines = run().splitlines()

    assert len(lines) == 2
    by_trip = {int(line.split()[0]): line for line in lines}
    assert rss.host in by_trip[rss.pk]
    assert by_trip[rss.pk].endswith("a process holds 600 MB")
    assert "every host" in by_trip[lockout.pk]
    assert EnvelopeTrip.objects.filter(acknowledged_at__isnull=True).count() == 2


def test_trip_is_acknowledged_with_note_and_name() -> None:
    """The ledger of trips says who closed it and why, and the command says whether dispatch may resume."""
    pause, lockout = envelope.pause("ada", "looking"), envelope.trip_lockout("unusual traffic", run_id="r")

    first = run("--acknowledge-trip", str(pause.pk), "--note", "done looking", "--who", "grace")
    second = run("--acknowledge-trip", str(lockout.pk), "--note", "waited a day")

    assert "acknowledged by grace" in first
    assert "1 more open: dispatch stays halted." in first
    assert "Dispatch may resume." in second
    pause.refresh_from_db()
    lockout.refresh_from_db()
    assert (pause.acknowledged_by, pause.note) == ("grace", "done looking")
    assert (lockout.acknowledged_by, lockout.note) == (getpass.getuser(), "waited a day")


@pytest.mark.parametrize("note", [None, "", "   ", "\0"])
def test_note_is_mandatory(note: str | None) -> None:
    """A trip is not closed without a word."""
    trip = envelope.pause("ada", "looking")
    arguments = ["--acknowledge-trip", str(trip.pk)] + ([] if note is None else ["--note", note])

    with pytest.raises(CommandError, match="Write a note"):
        run(*arguments)
    assert envelope.open_trip() == trip


def test_trip_that_is_not_open_is_refused() -> None:
    """A number that is none, or a trip that somebody closed, is named."""
    trip = envelope.pause("ada", "looking")
    envelope.acknowledge_trip(trip.pk, "looked", "ada")

    with pytest.raises(CommandError, match="was acknowledged by ada"):
        run("--acknowledge-trip", str(trip.pk), "--note", "again")
    with pytest.raises(CommandError, match="There is no trip 0"):
        run("--acknowledge-trip", "0", "--note", "again")


def test_account_without_a_name_must_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container the account may have no name; then the operator says who they are."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    trip = envelope.pause("ada", "looking")
    monkeypatch.setattr(getpass, "getuser", nameless)

    with pytest.raises(CommandError, match="--who"):
        run("--acknowledge-trip", str(trip.pk), "--note", "looked")
    run("--acknowledge-trip", str(trip.pk), "--note", "looked", "--who", "grace")
    assert envelope.open_trip() is None


@pytest.mark.django_db(transaction=True)
def test_wrong_use_ends_with_one_line_and_exit_code_1() -> None:
    """An operator's mistake gets a sentence, and the trip stays open; the right call ends with 0."""
    trip = envelope.pause("ada", "looking")

    wrong = manage("resolve_envelope_trip", "--acknowledge-trip", str(trip.pk))

    assert (wrong.returncode, wrong.stderr.splitlines()[-1][:27]) == (1, "CommandError: Write a note:")
    assert "Traceback" not in wrong.stderr
    assert envelope.open_trip() == trip
    right = manage("resolve_envelope_trip", "--acknowledge-trip", str(trip.pk), "--note", "seen \udcff")
    assert right.returncode == 0, right.stderr
    assert envelope.open_trip() is None
