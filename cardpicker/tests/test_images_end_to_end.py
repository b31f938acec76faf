"""End to end on loopback: four dispatching processes, the Worker in its real runtime, and a Google that has bad days."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from cardpicker.models import Card, CardWork, EnvelopeBar, EnvelopeTrip, FetchBudget, ImageEvidence, Source
from cardpicker.stage_e.envelope import acknowledge_trip
from cardpicker.tests.cluster import environment
from cardpicker.tests.fake_google import FakeGoogle, Said, fake_google, refusal
from cardpicker.tests.stage_c_jobs import image
from cardpicker.tests.worker_rig import missing, running_worker

PROCESSES = 4
#: More make a longer run of the same: CARDPICKER_E2E_CARDS=2000 takes a quarter of an hour.
CARDS = int(os.environ.get("CARDPICKER_E2E_CARDS", "90"))
#: One card in so many is one of each fault, and one in five times as many is throttled.
EVERY = 30
FAULTS = ("html", "empty", "gone", "private", "broken", "throttled", "slow", "short")
CLIENT_RATE_PER_S = 7.0
WORKER_LIMIT_PER_10_S = 60
#: Where processors are short, what a run holds may leave after its permit's moment, close to what comes next.
BURST = PROCESSES * 3

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180 + CARDS)]


def identifier(number: int) -> str:
    return f"drive-file_{number:022}"


def fault(number: int) -> str:
    """Return what is wrong with an image, empty when nothing is."""
    place = number % EVERY
    found = FAULTS[place] if place < len(FAULTS) else ""
    return "" if found == "throttled" and number > EVERY and number % (5 * EVERY) > EVERY else found


class BadDays:
    """Answers for each image by its number; a throttled one is given at the second time."""

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()
        self.lock_out = False

    def __call__(self, asked: str) -> Said:
        """Answer."""
        number = int(asked.rpartition("_")[2])
        self.times[number] += 1
        body = image(text=str(number)[:3]) + b" " * 200
        if self.lock_out:
            return Said(429, b"<html>unusual traffic from your computer network</html>")
        match fault(number):
            case "html":
                return Said(200, b"<html>Virus scan warning</html>", {"Content-Type": "image/png"})
            case "empty":
                return Said(200, b"")
            case "gone":
                return Said(404, b"no")
            case "private":
                return refusal(403, "insufficientFilePermissions")
            case "broken":
                return Said(500, b"oops")
            case "throttled" if self.times[number] == 1:
                return Said(429, b"", {"Retry-After": "1"})
            case "slow":
                time.sleep(1.0)
            case "short":
                return Said(200, body[:150], {"Content-Length": str(len(body)), "Connection": "close"})
        return Said(200, body, {"Content-Type": "image/png"})


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    if reason := missing():
        pytest.skip(reason)
    with fake_google() as running:
        yield running


def make_cards() -> None:
    source = Source.objects.create(key="drive", kind="google_drive", location="folder-id-0123456789")
    Card.objects.bulk_create(
        Card(source=source, identifier=identifier(n), name=f"Card {n}", name_key=f"card{n}", image_version="1")
        for n in range(CARDS)
    )


def dispatch(worker: str) -> list[str]:
    """Let the processes dispatch until nothing waits, and return how each of them ended."""
    told = environment(
        DJANGO_SETTINGS_MODULE="config.settings", IMAGE_WORKER_URL=worker, GOOGLE_IMAGE_RATE=str(CLIENT_RATE_PER_S)
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "cardpicker.tests.lockout_runs", f"run-{n}"],
            cwd=settings.BASE_DIR,
            env=told,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(PROCESSES)
    ]
    return [process.communicate(timeout=120 + CARDS)[0].splitlines()[-1] for process in processes]


def most_in(seconds: float, moments: list[float]) -> int:
    """Return how many moments lie in the fullest window."""
    return max(sum(start <= moment < start + seconds for moment in moments) for start in moments)


def test_every_image_ends_as_what_it_is_within_the_rate(google: FakeGoogle, tmp_path: Path) -> None:
    """Good ones are read, bad ones named, throttled ones read later; a lockout then stops everybody until a person looks."""
    days = BadDays()
    google.image = days
    make_cards()
    with running_worker(google.url, tmp_path) as worker:
        assert set(dispatch(worker)) <= {"completed", "empty"}
        moments = [asked.at for asked in google.asked]
        outcomes = outcomes_by_fault()
        print(
            f"{len(moments)} requests in {moments[-1] - moments[0]:.0f} s, {most_in(10.0, moments)} in the fullest 10 s"
        )

        CardWork.objects.filter(settled_at__isnull=False).update(due_at=None)
        Card.objects.update(image_version="2")
        days.lock_out = True
        asked_before = len(google.asked)
        ended = dispatch(worker)

    assert outcomes == {
        "": {"stored"},
        "html": {"failed"},
        "empty": {"failed"},
        "gone": {"gone"},
        "private": {"gone"},
        "broken": {"failed"},
        "throttled": {"stored"},
        "slow": {"stored"},
        "short": {"failed"},
    }
    # The Worker counts by fixed windows, the client by the moment: together, never above the client's own rate.
    assert most_in(10.0, moments) <= max(WORKER_LIMIT_PER_10_S, CLIENT_RATE_PER_S * 10) + BURST
    assert set(ended) <= {"completed-with-trip", "halted-open-trip"}
    assert len(google.asked) - asked_before <= PROCESSES
    trip = EnvelopeTrip.objects.get()
    assert trip.bar == EnvelopeBar.GOOGLE_LOCKOUT
    assert FetchBudget.objects.get().is_probing
    assert not CardWork.objects.filter(due_at__isnull=False, attempts__gt=0, last_outcome="locked-out").exists()
    acknowledge_trip(trip.pk, "the fake had a bad day", "test")


def outcomes_by_fault() -> dict[str, set[str]]:
    """Return how the cards of each fault ended; evidence counts as stored."""
    read = set(ImageEvidence.objects.values_list("card_id", flat=True))
    found: dict[str, set[str]] = {}
    for work in CardWork.objects.select_related("card"):
        number = int(work.card.identifier.rpartition("_")[2])
        assert work.card_id in read or work.last_detail, "every card that was not read says why"
        found.setdefault(fault(number), set()).add("stored" if work.card_id in read else work.last_outcome)
    # One that failed may have been put off at a later try.
    return {kind: outcomes - {"throttled"} if len(outcomes) > 1 else outcomes for kind, outcomes in found.items()}
