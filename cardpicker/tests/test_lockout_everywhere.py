"""A lockout that one process meets stops all of them, within one image each."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg2
import pytest
from django.conf import settings
from django.db import connection

from cardpicker.models import Card, CardWork, EnvelopeBar, EnvelopeTrip, Source
from cardpicker.stage_c.fetch.lockout_watch import LockoutWatch
from cardpicker.tests.cluster import environment
from cardpicker.tests.fake_google import Asked, FakeGoogle, Said, fake_google
from cardpicker.tests.stage_c_jobs import image

PROCESSES = 4
CARDS = 300
#: So many images arrive before one of them is answered with the page for machines, and after it they arrive again.
BEFORE = 40
LOCKOUT = Said(200, b"<html>Our systems have detected unusual traffic from your computer network.</html>")

pytestmark = pytest.mark.django_db(transaction=True)


class Doorman:
    """Serves images, but answers one request with a lockout: nobody else can learn of it from Google."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.served = 0
        self.after = 0
        self.locked_out_at = 0.0

    def answer(self, asked: Asked) -> Said | None:
        """Count, and answer."""
        if not asked.path.startswith("/images/google_drive/full/"):
            return None
        with self._lock:
            if self.locked_out_at:
                self.after += 1
            self.served += 1
            if self.served == BEFORE:
                self.locked_out_at = time.monotonic()
                return LOCKOUT
        return Said(200, image(text=asked.path[-20:-4]), {"Content-Type": "image/png"})


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with fake_google() as running:
        yield running


def make_cards() -> None:
    source = Source.objects.create(key="drive", kind="google_drive", location="folder-id-0123456789")
    Card.objects.bulk_create(
        Card(source=source, identifier=f"drive-file_{n:022}", name=f"Card {n}", name_key=f"card{n}", image_version="1")
        for n in range(CARDS)
    )


def dispatcher(google: FakeGoogle, name: str) -> subprocess.Popen[str]:
    """Start a process that dispatches until it is halted."""
    return subprocess.Popen(
        [sys.executable, "-m", "cardpicker.tests.lockout_runs", name],
        cwd=settings.BASE_DIR,
        env=environment(DJANGO_SETTINGS_MODULE="config.settings", IMAGE_WORKER_URL=google.url, GOOGLE_IMAGE_RATE="20"),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_one_lockout_stops_four_processes_within_one_image_each(google: FakeGoogle) -> None:
    """Each finishes what it has begun; no card loses an attempt, and every one is due or done."""
    make_cards()
    doorman = Doorman()
    google.before = doorman.answer
    processes = [dispatcher(google, f"run-{n}") for n in range(PROCESSES)]
    said = [process.communicate(timeout=150)[0].splitlines() for process in processes]

    assert doorman.locked_out_at
    assert doorman.after <= PROCESSES
    assert all(lines[-1] in ("completed-with-trip", "halted-open-trip") for lines in said)
    assert EnvelopeTrip.objects.get().bar == EnvelopeBar.GOOGLE_LOCKOUT
    work = CardWork.objects.all()
    assert sum(row.state == "due" for row in work) + sum(row.state == "done" for row in work) == CARDS
    assert not work.filter(due_at__isnull=False, attempts__gt=0).exists()


def test_word_of_a_lockout_reaches_whoever_listens() -> None:
    """Told by one run's thread, heard by another's; and the budget is shut for whoever begins later."""
    heard = threading.Event()
    listener, teller = LockoutWatch(lambda where: heard.set()), LockoutWatch(lambda where: None)

    teller.tell("GOOGLE_IMAGE")

    assert heard.wait(30)
    listener.close()
    teller.close()


def test_a_watch_leaves_neither_thread_nor_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed, also when it was never told anything or could not listen at all."""
    LockoutWatch(lambda where: None).close()

    def fail(*args: object, **kwargs: object) -> None:
        raise psycopg2.OperationalError("no more sessions")

    monkeypatch.setattr(connection, "get_new_connection", fail)
    deaf = LockoutWatch(lambda where: None)
    deaf.tell("GOOGLE_IMAGE")
    deaf.close()

    assert not [thread for thread in threading.enumerate() if thread.name == "lockout-watch"]
