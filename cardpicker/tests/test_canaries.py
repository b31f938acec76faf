"""When Google changes what it makes of an address: known images tell a broken way of asking from images that are gone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from cardpicker.models import Card, ImageEvidence, Source
from cardpicker.stage_c.doubt import MISSES_IN_A_ROW
from cardpicker.stage_c.hooks import StageCReport
from cardpicker.stage_c.outcomes import LockedOut
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import Behavior, MisbehavingServer, misbehaving_server
from cardpicker.tests.stage_c_jobs import image
from cardpicker.tests.stage_c_rig import Recorder, stored_ids

pytestmark = pytest.mark.django_db

KNOWN = 4

GONE = on.answer(404, b"{}", {"X-Image-Cdn-Error": "upstream-404"})
REFUSED = on.answer(403, b"{}", {"X-Image-Cdn-Error": "upstream-403"})
HTML = on.answer(502, b"{}", {"X-Image-Cdn-Error": "not-an-image"})
STAND_IN = on.answer(200, image(text="?"))


def path(number: int) -> str:
    return f"/images/google_drive/full/drive-file_{number:022}.jpg"


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


@pytest.fixture
def cards() -> list[Card]:
    """Cards of which the listing says that each is another file; the first few are read in the fixture ``known``."""
    source = Source.objects.create(key="drive", kind="google_drive", location="folder-id")
    return Card.objects.bulk_create(
        Card(
            source=source,
            identifier=f"drive-file_{number:022}",
            name=f"Card {number}",
            name_key=f"card{number}",
            image_version="1",
            md5_checksum=hashlib.md5(str(number).encode()).hexdigest(),
        )
        for number in range(KNOWN + 20)
    )


def run(recorder: Recorder, server: MisbehavingServer, cards: list[Card]) -> StageCReport:
    return recorder.run(cards, image_worker_url=server.url("/"), google_image_rate=500.0, fetch_threads=1)


@pytest.fixture
def known(server: MisbehavingServer, cards: list[Card]) -> list[Card]:
    """Cards whose images were read while all was well; all images are there."""
    server.routes |= {path(number): on.answer(200, image(text=str(number))) for number in range(len(cards))}
    assert run(Recorder(), server, cards[:KNOWN]).counts == {"Stored": KNOWN}
    server.paths.clear()
    return cards[:KNOWN]


def answer_all(server: MisbehavingServer, cards: list[Card], behavior: Behavior) -> None:
    """Let the form of address mean something else from now on: every file is answered alike."""
    server.routes |= {f"/images/google_drive/full/{card.identifier}.jpg": behavior for card in cards}


@pytest.mark.parametrize("behavior", [GONE, HTML, on.answer(502, b"{}", {"X-Image-Cdn-Error": "upstream-400"})])
@pytest.mark.usefixtures("known")
def test_when_nothing_comes_any_more_it_is_no_cards_fault(
    server: MisbehavingServer, cards: list[Card], behavior: Behavior
) -> None:
    """Known images do not come either: everything stops until a person looks, and no card has lost an attempt."""
    answer_all(server, cards, behavior)
    recorder = Recorder()

    report = run(recorder, server, cards[KNOWN:])

    assert report.locked_out is not None
    assert "no longer asked for in the right way" in report.locked_out.detail
    assert set(report.counts) <= {"LockedOut", "Deferred"}
    assert report.counts["LockedOut"] >= MISSES_IN_A_ROW
    assert [outcome for outcome in recorder.fetches if not isinstance(outcome, LockedOut)] == []
    assert sum(report.counts.values()) == 20
    assert len(server.paths) < 20


@pytest.mark.usefixtures("known")
def test_a_folder_that_is_gone_is_gone(server: MisbehavingServer, cards: list[Card]) -> None:
    """A known image comes as it did: one more fetch tells, once a batch, and the missing are what they are."""
    answer_all(server, cards[KNOWN:], GONE)
    for number in range(KNOWN):
        server.routes[path(KNOWN + 10 + number)] = on.answer(200, image(text=f"new {number}"))
    recorder = Recorder()

    report = run(recorder, server, cards[KNOWN:])

    assert report.locked_out is None
    assert report.counts == {"Gone": 16, "Stored": 4}
    assert len(server.paths) == 20 + 1
    assert {card_id for card_id, _ in recorder.settled} == {card.pk for card in cards[KNOWN:]}


@pytest.mark.usefixtures("known")
def test_one_known_image_that_is_gone_itself_proves_nothing(server: MisbehavingServer, cards: list[Card]) -> None:
    """The next one is asked."""
    answer_all(server, cards[KNOWN - 1 :], GONE)
    report = run(Recorder(), server, cards[KNOWN:])

    assert report.locked_out is None
    assert report.counts == {"Gone": 20}
    assert len(server.paths) == 20 + 2


def test_without_a_known_image_missing_ones_are_what_they_are(server: MisbehavingServer, cards: list[Card]) -> None:
    """There is nothing to compare with; the failure rate stops it."""
    server.default = GONE

    assert run(Recorder(), server, cards).counts == {"Gone": len(cards)}


@pytest.mark.usefixtures("known")
def test_a_stand_in_for_every_image_is_stored_for_none(server: MisbehavingServer, cards: list[Card]) -> None:
    """200 and a sound image, the same for all: the first was stored before the second came, and is taken back."""
    answer_all(server, cards, STAND_IN)
    recorder = Recorder()

    report = run(recorder, server, cards[KNOWN:])

    assert report.locked_out is not None
    assert "came as the same image" in report.locked_out.detail
    assert report.evidence_card_ids == ()
    left = ImageEvidence.objects.filter(card__in=cards[KNOWN:])
    assert [evidence.manifest for evidence in left] == [""]
    assert ImageEvidence.objects.filter(card__in=cards[:KNOWN]).exclude(manifest="").count() == KNOWN
    assert set(report.counts) <= {"Stored", "LockedOut", "Deferred"}
    assert len(server.paths) < 20


@pytest.mark.usefixtures("known")
def test_two_uploads_of_one_picture_are_stored(server: MisbehavingServer, cards: list[Card]) -> None:
    """A known image tells that all is well; what was held back is stored."""
    for number in (KNOWN, KNOWN + 3, KNOWN + 7):
        server.routes[path(number)] = STAND_IN

    report = run(Recorder(), server, cards[KNOWN:])

    assert report.locked_out is None
    assert report.counts == {"Stored": 20}
    assert stored_ids() == {card.pk for card in cards}
    assert len(server.paths) == 20 + 1


@pytest.mark.parametrize(("alike", "counts"), [(2, {"Stored": 4}), (3, None)])
def test_without_a_known_image_three_files_alike_are_enough(
    server: MisbehavingServer, cards: list[Card], alike: int, counts: dict[str, int] | None
) -> None:
    """Two may well be the same picture."""
    for number in range(4):
        server.routes[path(number)] = STAND_IN if number < alike else on.answer(200, image(text=str(number)))

    report = run(Recorder(), server, cards[:4])

    assert (report.locked_out is None) is (counts is not None)
    assert counts is None or report.counts == counts


def test_files_of_which_nothing_is_listed_may_be_the_same(server: MisbehavingServer, cards: list[Card]) -> None:
    """Equal bytes say nothing where the listing says nothing."""
    Card.objects.update(md5_checksum=None)
    answer_all(server, cards, STAND_IN)

    assert run(Recorder(), server, cards).counts == {"Stored": len(cards)}


@pytest.mark.usefixtures("known")
def test_a_known_image_that_comes_as_another_is_no_good_sign(server: MisbehavingServer, cards: list[Card]) -> None:
    """Files are missing, and what does come for the known ones is something else."""
    answer_all(server, cards[KNOWN:], GONE)
    for number in range(KNOWN):
        server.routes[path(number)] = on.answer(200, image(text="something else", height_px=800))

    assert run(Recorder(), server, cards[KNOWN:]).locked_out is not None


@pytest.mark.usefixtures("known")
def test_known_images_that_cannot_be_asked_for_put_everything_off(server: MisbehavingServer, cards: list[Card]) -> None:
    """Under pressure nothing is concluded, and nothing lost."""
    answer_all(server, cards[KNOWN:], GONE)
    busy = on.answer(429, b"{}", {"X-Image-Cdn-Error": "upstream-429", "Retry-After": "60"})
    answer_all(server, cards[:KNOWN], busy)
    recorder = Recorder()

    report = run(recorder, server, cards[KNOWN:])

    assert report.locked_out is None
    assert set(report.counts) <= {"Deferred", "Throttled"}
    assert sum(report.counts.values()) == 20


@pytest.mark.usefixtures("known")
def test_a_lockout_that_a_known_image_meets_is_one(server: MisbehavingServer, cards: list[Card]) -> None:
    """It is told like any other, and the card that was asked for to see is not settled."""
    answer_all(server, cards[KNOWN:], GONE)
    locked = on.answer(403, b"{}", {"X-Image-Cdn-Error": "upstream-lockout"})
    answer_all(server, cards[:KNOWN], locked)
    recorder = Recorder()

    report = run(recorder, server, cards[KNOWN:])

    assert report.locked_out is not None
    assert any(isinstance(outcome, LockedOut) for outcome in recorder.fetches)
    assert {card_id for card_id, _ in recorder.settled} == {card.pk for card in cards[KNOWN:]}
    assert set(report.counts) == {"Deferred"}
