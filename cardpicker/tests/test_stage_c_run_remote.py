"""A batch of Stage C whose images come through the image CDN: pressure, refusals, lockouts."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cardpicker.models import Card, FetchBudget, ImageEvidence, Source
from cardpicker.stage_c.departures import Departures, Flight
from cardpicker.stage_c.evidence import ComputeContext
from cardpicker.stage_c.fetch.fetcher import Trust
from cardpicker.stage_c.fetch.limiter import GOOGLE_IMAGE, MAX_WIDENING, WIDEN_BY, take, take_permits
from cardpicker.stage_c.fetch.location import ImagePlace
from cardpicker.stage_c.outcomes import Failed, Gone, LockedOut, Throttled
from cardpicker.stage_c.plan import load_plans
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server
from cardpicker.tests.stage_c_jobs import image
from cardpicker.tests.stage_c_rig import Recorder, stored_ids

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def drive_id(number: int) -> str:
    return f"drive-file_{number:022}"


def path(number: int) -> str:
    return f"/images/google_drive/full/{drive_id(number)}.jpg"


def drive_cards(count: int, *, same_bytes: bool = False) -> list[Card]:
    source = Source.objects.create(key="drive", kind="google_drive", location="folder-id")
    digests = [hashlib.sha256(str(0 if same_bytes else n).encode()).hexdigest() for n in range(count)]
    return Card.objects.bulk_create(
        Card(
            source=source,
            identifier=drive_id(number),
            name=f"Card {number}",
            name_key=f"card{number}",
            image_version=f"v{number}",
            sha256_checksum=digest,
        )
        for number, digest in enumerate(digests)
    )


def run(recorder: Recorder, server: MisbehavingServer, cards: list[Card], dpi: int = 250) -> dict[str, int]:
    report = recorder.run(cards, image_worker_url=server.url("/"), google_image_rate=100.0, image_dpi=dpi)
    return dict(report.counts)


def serve(server: MisbehavingServer, count: int) -> None:
    server.routes |= {path(number): on.answer(200, image(text=str(number))) for number in range(count)}


def test_images_are_asked_of_the_cdn_in_the_form_it_knows(server: MisbehavingServer) -> None:
    """Identifier, tier, resolution and quality are in the URL; a rendition is not held against the listed checksum."""
    serve(server, 1)

    counts = run(Recorder(), server, drive_cards(1), dpi=247)

    assert counts == {"Stored": 1}
    assert server.paths == [f"{path(0)}?dpi=250&jpgQuality=95"]
    assert ImageEvidence.objects.get().rendition == "full dpi=250 quality=95"


def test_a_copy_of_evidence_says_which_rendition_was_read(server: MisbehavingServer) -> None:
    """Of two equal files one is read, and both know off what."""
    serve(server, 1)
    cards = drive_cards(2, same_bytes=True)

    assert run(Recorder(), server, cards, dpi=300) == {"Stored": 1, "Transferred": 1}
    assert set(ImageEvidence.objects.values_list("rendition", flat=True)) == {"full dpi=300 quality=95"}


def test_without_a_cdn_address_the_failure_says_what_to_set() -> None:
    """A missing setting is no card's fault."""
    recorder = Recorder()

    recorder.run(drive_cards(1), image_worker_url="")

    [(_, outcome)] = recorder.settled
    assert isinstance(outcome, Failed)
    assert "IMAGE_WORKER_URL" in outcome.detail


@pytest.mark.parametrize(
    "identifier", ["../x", "a?b=c", "@169.254.169.254/", "http://h/x", "short", "ä" * 30, "x" * 500]
)
def test_an_identifier_that_is_no_drive_id_reaches_nobody(server: MisbehavingServer, identifier: str) -> None:
    """Nothing from a listing can bend the URL."""
    cards = drive_cards(1)
    Card.objects.update(identifier=identifier)

    assert run(Recorder(), server, cards) == {"Unusable": 1}
    assert server.connections == 0


def test_one_throttled_image_is_no_failure_and_the_batch_goes_on(server: MisbehavingServer) -> None:
    """The card waits its turn; everybody is held back as the server asked."""
    serve(server, 6)
    server.routes[path(2)] = on.answer(429, b"", {"Retry-After": "2"})
    recorder = Recorder()

    counts = run(recorder, server, drive_cards(6))

    assert counts == {"Stored": 5, "Throttled": 1}
    assert [outcome for outcome in recorder.fetches if isinstance(outcome, Throttled)] == [
        Throttled(detail=f"429 from {server.url(path(2))}", retry_after_s=2.0)
    ]


def test_a_wish_for_patience_moves_the_shared_budget(server: MisbehavingServer) -> None:
    """Retry-After binds every process that draws on the destination."""
    server.default = on.answer(503, b"", {"Retry-After": "300"})

    run(Recorder(), server, drive_cards(1))

    budget = FetchBudget.objects.get()
    assert (budget.next_permit_at - Source.objects.get().created_at).total_seconds() > 200


def test_throttled_several_times_in_a_row_the_batch_ends(server: MisbehavingServer) -> None:
    """The destination means it: what has not begun is deferred and asks for nothing."""
    server.default = on.answer(429)
    recorder = Recorder()

    counts = run(recorder, server, drive_cards(30))

    assert counts["Throttled"] >= 3
    assert counts["Throttled"] + counts["Deferred"] == 30
    assert len(server.paths) <= 3 + 4


def test_without_a_permit_nothing_is_asked(server: MisbehavingServer) -> None:
    """A rate that is spent for longer than a fetch waits defers the cards; it is no pressure of the destination's."""
    serve(server, 6)
    take_permits(GOOGLE_IMAGE, 3_000, 100.0)
    recorder = Recorder()

    counts = run(recorder, server, drive_cards(6))

    assert counts["Throttled"] + counts.get("Deferred", 0) == 6
    assert server.paths == []
    assert take(GOOGLE_IMAGE, 1, 100.0).widening == 1.0


def test_a_moment_without_a_permit_is_no_permit(server: MisbehavingServer) -> None:
    """That a permit may be had soon is no leave to fetch, however soon it is."""
    serve(server, 1)
    [card] = drive_cards(1)
    [plan] = load_plans([card.pk])
    location = server.url(path(0))
    flight = Flight(
        plan=plan,
        place=ImagePlace(
            location=location, destination=GOOGLE_IMAGE, trust=Trust(private_hosts=frozenset({"127.0.0.1"}))
        ),
        context=ComputeContext(),
        starts_at=time.monotonic(),
        may_start=False,
    )

    with contextlib.closing(Departures(StageCSettings(), {})) as departures:
        outcome = departures.fetch(flight)

    assert isinstance(outcome, Throttled) and outcome.is_ours
    assert server.connections == 0


def test_a_lockout_leaves_a_probe_and_its_success_a_slow_ramp(server: MisbehavingServer) -> None:
    """What a destination answers is there for all who draw on its budget."""
    serve(server, 3)
    server.routes[path(0)] = on.answer(429)
    server.routes[path(1)] = on.redirect("https://accounts.google.com/ServiceLogin")
    throttled, locked_out, fine = drive_cards(3)

    run(Recorder(), server, [throttled])
    assert 1.0 < take(GOOGLE_IMAGE, 1, 100.0).widening <= WIDEN_BY
    run(Recorder(), server, [locked_out])
    assert take(GOOGLE_IMAGE, 6, 100.0).is_probe
    FetchBudget.objects.update(next_permit_at=Source.objects.get().created_at)
    assert run(Recorder(), server, [fine]) == {"Stored": 1}

    ramp = take(GOOGLE_IMAGE, 6, 100.0)
    assert not ramp.is_probe
    assert ramp.widening > MAX_WIDENING - 1


def test_one_refused_file_is_its_own_affair(server: MisbehavingServer) -> None:
    """A single 403 is that file's permission."""
    serve(server, 5)
    server.routes[path(1)] = on.answer(403)
    server.routes[path(3)] = on.answer(403)
    recorder = Recorder()

    counts = run(recorder, server, drive_cards(5))

    assert counts == {"Stored": 3, "Gone": 2}
    assert sum(isinstance(outcome, Gone) for outcome in recorder.fetches) == 2


def test_refused_files_in_a_row_are_a_lockout_that_stops_the_batch(server: MisbehavingServer) -> None:
    """Three distinct files: it is about us, also for the first two, and nothing new begins."""
    serve(server, 2)
    server.default = on.answer(403)
    recorder = Recorder()

    report = recorder.run(drive_cards(30), image_worker_url=server.url("/"), google_image_rate=100.0)

    assert report.locked_out is not None
    assert report.counts["Stored"] == 2
    assert report.counts["LockedOut"] >= 3
    assert "Gone" not in report.counts
    assert any(isinstance(outcome, LockedOut) for outcome in recorder.fetches)
    assert len(server.paths) <= 2 + 3 + 4


def test_a_lockout_loses_no_finished_work(server: MisbehavingServer) -> None:
    """What was in flight when the lockout came is stored; the rest is deferred with the reason."""
    serve(server, 12)
    server.routes[path(0)] = on.answer(200, image(text="0", seconds=1.0))
    server.routes[path(2)] = on.answer(200, b"<html>unusual traffic from your computer network</html>")
    cards = drive_cards(12)
    recorder = Recorder()

    report = recorder.run(cards, image_worker_url=server.url("/"), google_image_rate=100.0)

    assert {cards[0].pk, cards[1].pk} <= stored_ids()
    assert report.locked_out is not None
    assert recorder.names()[cards[2].pk] == "LockedOut"
    assert recorder.names()[cards[11].pk] == "Deferred"
    assert sum(report.counts.values()) == 12


def test_twins_of_a_missing_file_are_asked_for_themselves(server: MisbehavingServer) -> None:
    """Gone is about one copy; the next one is read, and the others follow that one."""
    serve(server, 4)
    server.routes[path(0)] = on.answer(404, b"no", {"X-Image-Cdn-Error": "upstream-404"})
    cards = drive_cards(4, same_bytes=True)
    recorder = Recorder()

    counts = run(recorder, server, cards)

    assert counts == {"Gone": 1, "Stored": 1, "Transferred": 2}
    assert len(server.paths) == 2


def test_permits_are_taken_several_at_a_time(server: MisbehavingServer) -> None:
    """A batch costs far fewer statements on the budget than images."""
    serve(server, 20)
    cards = drive_cards(20)
    recorder = Recorder()

    with CaptureQueriesContext(connection) as captured:
        run(recorder, server, cards)

    taken = [query for query in captured.captured_queries if "UPDATE cardpicker_fetchbudget" in query["sql"]]
    assert 1 <= len(taken) <= 20 // 4 + 1


def test_a_cut_image_of_unknown_checksum_is_a_short_body(server: MisbehavingServer) -> None:
    """It may arrive whole the next time; one that has the listed checksum never will."""
    listed, unlisted = drive_cards(2)
    cut = image(text="0", do="truncated")
    listed.sha256_checksum = hashlib.sha256(cut).hexdigest()
    unlisted.sha256_checksum = None
    Card.objects.bulk_update([listed, unlisted], ["sha256_checksum"])
    server.routes |= {path(0): on.answer(200, cut), path(1): on.answer(200, cut)}
    recorder = Recorder()

    run(recorder, server, [listed, unlisted])

    assert recorder.names() == {listed.pk: "Unusable", unlisted.pk: "Failed"}
