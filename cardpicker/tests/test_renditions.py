"""Renditions of one image: what holds for each, and when a larger one is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from PIL import Image

from cardpicker.models import Card, ImageEvidence, Source
from cardpicker.sources import drive_files
from cardpicker.stage_c import renditions
from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon
from cardpicker.stage_c.renditions import MIN_LEGIBLE_PX, larger_dpi
from cardpicker.stage_d.art_index import MATCH_DISTANCE
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.card_pictures import card, encode
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server
from cardpicker.tests.stage_c_jobs import image
from cardpicker.tests.stage_c_rig import Recorder

DRIVE_ID = "drive-file_0123456789"
PATH = f"/images/google_drive/full/{DRIVE_ID}.jpg"


def test_resolution_means_the_same_height_everywhere() -> None:
    """The listing, the image CDN and the escalation turn one into the other by one number."""
    worker = (Path(settings.BASE_DIR) / "image-cdn" / "src" / "parameters.ts").read_text(encoding="utf-8")

    assert drive_files.HEIGHT_PX_AT_300_DPI == renditions.HEIGHT_PX_AT_300_DPI
    assert f"const HEIGHT_PX_AT_300_DPI = {renditions.HEIGHT_PX_AT_300_DPI};" in worker


def rendition(height_px: int, quality: int) -> CardEvidence:
    """Read the same card as the image CDN would hand it out."""
    whole = card(bleed_mm=3.175)
    size = (round(whole.width * height_px / whole.height), height_px)
    shown = encode(whole.resize(size, Image.Resampling.LANCZOS), "JPEG", quality=quality)
    found = compute_card_evidence(shown, ComputeContext(artists=("John Avon",)))
    assert isinstance(found, CardEvidence)
    return found


@pytest.mark.parametrize(
    ("height_px", "quality"),
    [(1702, 95), (1110, 95), (925, 95), (925, 60), (800, 95), (800, 60), (555, 95), (400, 95), (400, 40)],
)
def test_decision_limits_hold_for_every_rendition(height_px: int, quality: int) -> None:
    """The art is the same art in each; a number is the right one or none, and none at all in the smallest."""
    warm_up(Lexicon(set_codes=frozenset({"mkm"})), "tesserocr")
    original, shown = rendition(2000, 95), rendition(height_px, quality)

    assert original.art_hash is not None
    assert shown.art_hash is not None
    assert ((original.art_hash ^ shown.art_hash) & (2**64 - 1)).bit_count() <= MATCH_DISTANCE // 2
    assert original.collector_number == "123"
    expected = {"123"} if height_px >= 800 else {"123", ""} if height_px >= MIN_LEGIBLE_PX else {""}
    assert shown.collector_number in expected


def test_too_small_a_rendition_costs_no_ocr_and_says_why() -> None:
    """Nothing is read into specks."""
    warm_up(Lexicon(), "tesserocr")
    text = rendition(400, 95).readings["bottom_text"]

    assert text["ocr_calls"] == 0
    assert text["detail"] == "too small for its small print"


@pytest.mark.parametrize(
    ("asked_dpi", "size", "listed_dpi", "larger"),
    [
        (100, (270, 370), None, 250),
        (100, (270, 370), 600, 250),
        (100, (270, 370), 100, None),  # The listing says that this is all.
        (100, (150, 200), None, None),  # It came smaller than it was asked for: there is no more of it.
        (100, (370, 500), None, None),  # Large enough.
        (250, (270, 370), 600, None),  # Asking the same again gives the same.
    ],
)
def test_a_larger_one_is_asked_for_where_there_is_one(
    asked_dpi: int, size: tuple[int, int], listed_dpi: int | None, larger: int | None
) -> None:
    """Nobody enlarges an image, so asking for more than there is costs a permit for nothing."""
    assert larger_dpi(asked_dpi, *size, listed_dpi) == larger


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def by_resolution(visit: on.Visit) -> bool:
    """Answer with a picture as large as it was asked for."""
    dpi = int(visit.path.partition("dpi=")[2].partition("&")[0])
    return on.answer(200, image(text=str(dpi), height_px=dpi * 1110 // 300))(visit)


@pytest.mark.django_db
@pytest.mark.parametrize(("listed_dpi", "asked"), [(None, [100, 250]), (600, [100, 250]), (100, [100])])
def test_escalation_is_one_more_fetch_under_the_budget(
    server: MisbehavingServer, listed_dpi: int | None, asked: list[int]
) -> None:
    """The small one is not stored; the large one is, as what it is, and its twin copies that."""
    server.routes[PATH] = by_resolution
    source = Source.objects.create(key="drive", kind="google_drive", location="folder-id")
    cards = [
        Card.objects.create(
            source=source, identifier=identifier, name="A", image_version="1", dpi=listed_dpi, md5_checksum="0" * 32
        )
        for identifier in (DRIVE_ID, f"{DRIVE_ID}-twin")
    ]

    recorder = Recorder()
    report = recorder.run(cards, image_worker_url=server.url("/"), google_image_rate=100.0, image_dpi=100)

    assert [int(path.partition("dpi=")[2].partition("&")[0]) for path in server.paths] == asked
    assert report.counts == {"Stored": 1, "Transferred": 1}
    assert set(ImageEvidence.objects.values_list("rendition", flat=True)) == {f"full dpi={asked[-1]} quality=95"}
    assert report.fetched == len(asked)


@pytest.mark.django_db
def test_a_larger_one_that_does_not_come_leaves_the_card_as_it_was(server: MisbehavingServer) -> None:
    """It is asked for again later; nothing of the small one is kept meanwhile."""

    def only_small(visit: on.Visit) -> bool:
        if "dpi=100" in visit.path:
            return by_resolution(visit)
        headers = {"Retry-After": "5", "X-Image-Cdn-Error": "rate-limited"}
        return on.answer(429, json.dumps({}).encode(), headers)(visit)

    server.routes[PATH] = only_small
    source = Source.objects.create(key="drive", kind="google_drive", location="folder-id")
    one = Card.objects.create(source=source, identifier=DRIVE_ID, name="A", image_version="1")
    recorder = Recorder()

    recorder.run([one], image_worker_url=server.url("/"), google_image_rate=100.0, image_dpi=100)

    assert recorder.names() == {one.pk: "Throttled"}
    assert not ImageEvidence.objects.exists()
