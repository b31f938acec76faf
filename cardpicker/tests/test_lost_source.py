"""A source that was taken down fails by itself: the others are read on, and it comes back with all it had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db.models.functions import Now

from cardpicker.models import Card, CardWork, EnvelopeBar, EnvelopeTrip, FetchClass, FetchOutcome, Source
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_e.dispatch import DispatchOptions, dispatch_micro_batch
from cardpicker.stage_e.fetch_window import FetchWindow, read_fetch_window, without_lost_sources
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.tests.fake_google import Asked, FakeGoogle, Said, fake_google
from cardpicker.tests.stage_c_jobs import image, obey
from cardpicker.tests.stage_e_support import options

GONE = Said(404, b'{"error": {"code": "upstream-not-found"}}', {"X-Image-Cdn-Error": "upstream-not-found"})
FETCHED, LOST = FetchClass.FETCHED, FetchClass.GONE


def fetches(*said: tuple[int | None, FetchClass]) -> list[tuple[int | None, str]]:
    """Return fetches, oldest first as told, in the order in which the window reads them."""
    return list(reversed(said))


def counted(*said: tuple[int | None, FetchClass]) -> int:
    """Return how many failures count."""
    return sum(outcome != FETCHED for _, outcome in without_lost_sources(fetches(*said)))


def test_a_run_of_one_source_that_is_gone_does_not_count() -> None:
    """As long as another source's images arrive meanwhile, also between the run's own fetches."""
    assert counted((2, FETCHED), (1, LOST), (1, LOST), (2, FETCHED), (1, LOST)) == 0
    assert counted((1, LOST), (1, LOST), (1, LOST), (2, FETCHED)) == 0


def test_what_counts_after_all() -> None:
    """Too few, other failures, an image of its own between, and fetches of no known source."""
    assert counted((1, LOST), (2, FETCHED), (1, LOST)) == 2
    assert counted((1, LOST), (1, LOST), (2, FETCHED), (1, FETCHED), (1, LOST)) == 3
    assert counted((1, LOST), (1, LOST), (2, FETCHED), (1, FetchClass.FAILED), (1, LOST)) == 4
    assert counted((None, LOST), (None, LOST), (None, LOST), (2, FETCHED)) == 3


def test_where_nothing_arrives_every_failure_counts() -> None:
    """All sources gone at once is no matter of a source, whatever arrived before, nor is the only source's."""
    assert counted((1, FETCHED), (2, FETCHED), *[(1, LOST)] * 9, *[(2, LOST)] * 9) == 18
    assert counted((1, FETCHED), *[(1, LOST)] * 9) == 9


def test_a_source_that_comes_back_is_not_blamed_for_the_time_before() -> None:
    """Its run stays left out, though its images arrive."""
    assert counted(*[(1, LOST)] * 9, (2, FETCHED), (1, FETCHED), (1, FETCHED)) == 0


@pytest.mark.django_db
def test_a_lost_source_does_not_fill_the_window() -> None:
    """The window reaches back over its fetches to those that count."""
    for source, outcome, times in ((2, FETCHED, 50), (1, LOST, 300), (2, FETCHED, 1)):
        FetchOutcome.objects.bulk_create([FetchOutcome(outcome=outcome, source_id=source) for _ in range(times)])

    assert read_fetch_window(50) == FetchWindow(fetches=50, failures=0)


class TwoFolders:
    """Serves every image but those of the folder that was taken down."""

    def __init__(self) -> None:
        self.is_down = True

    def answer(self, asked: Asked) -> Said | None:
        """Answer for the image CDN."""
        if not asked.path.startswith("/images/google_drive/"):
            return None
        if self.is_down and "lost" in asked.path:
            return GONE
        return Said(200, image(text=asked.path[-20:-4]), {"Content-Type": "image/png"})


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    """An image host on loopback."""
    with fake_google() as running:
        yield running


def cards_of(key: str, count: int) -> list[Card]:
    """Create a source in Google Drive with cards."""
    source = Source.objects.create(key=key, kind="google_drive", location=f"folder-{key}-0123456789")
    return Card.objects.bulk_create(
        Card(source=source, identifier=f"{key}-file_{n:022}", name=f"Card {n}", name_key=f"card{n}", image_version="1")
        for n in range(count)
    )


def on_loopback(google: FakeGoogle) -> DispatchOptions:
    """Return options under which a window of twenty fetches is judged."""
    told = options(micro_batch_size=10, fetch_failure_window=20, fetch_failure_minimum=10, max_attempts=2)
    settings = StageCSettings(image_worker_url=google.url, google_image_rate=200.0, compute_workers=1)
    return replace(told, stage_c=settings, parts=ComputeParts(compute=obey))


def run_dry(told: DispatchOptions) -> None:
    """Dispatch until nothing is left to do, waiting for no back-off."""
    while dispatch_micro_batch(options=told).status is not DispatchStatus.EMPTY or _hurry():
        assert not EnvelopeTrip.objects.exists()


def _hurry() -> int:
    return CardWork.objects.filter(due_at__gt=Now()).update(due_at=Now())


@pytest.mark.django_db(transaction=True)
def test_a_source_that_was_taken_down_halts_nobody(google: FakeGoogle) -> None:
    """Its cards are set aside as gone and the other source's are read; asked for again, they are read too."""
    folders = TwoFolders()
    google.before = folders.answer
    healthy, lost = cards_of("well", 20), cards_of("lost", 20)
    told = on_loopback(google)

    run_dry(told)

    assert {work.state for work in CardWork.objects.filter(card__in=healthy)} == {"done"}
    set_aside = CardWork.objects.filter(card__in=lost)
    assert {(work.state, work.last_outcome) for work in set_aside} == {("quarantined", "gone")}
    assert FetchOutcome.objects.filter(outcome=LOST).count() == len(lost)

    folders.is_down = False
    set_aside.update(quarantined_at=None, due_at=Now())
    run_dry(told)

    assert {work.state for work in CardWork.objects.all()} == {"done"}


@pytest.mark.django_db(transaction=True)
def test_an_image_host_that_knows_no_image_halts_everybody(google: FakeGoogle) -> None:
    """With no image from anywhere there is no telling a lost source from a wrong address."""
    google.before = TwoFolders().answer
    cards_of("lost", 20)
    cards_of("lost-too", 20)
    told = on_loopback(google)

    said = [dispatch_micro_batch(options=told).status for _ in range(6)]

    assert DispatchStatus.HALTED_NEW_TRIP in said
    assert EnvelopeTrip.objects.get().bar == EnvelopeBar.FETCH_FAILURE_RATE
