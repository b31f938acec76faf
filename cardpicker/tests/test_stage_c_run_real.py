"""A batch of Stage C with the real extraction, over every kind of bad input there is."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from cardpicker.models import CanonicalExpansion, ImageEvidence
from cardpicker.stage_c.outcomes import Unusable, UnusableKind
from cardpicker.tests.stage_c_rig import Recorder, add_cards

pytestmark = pytest.mark.django_db


def picture(mode: str = "RGB", size: tuple[int, int] = (400, 560)) -> Image.Image:
    drawn = Image.new("RGB", size, (90, 120, 60))
    draw = ImageDraw.Draw(drawn)
    draw.rectangle((10, 10, size[0] - 10, size[1] - 10), outline=(0, 0, 0), width=8)
    draw.ellipse((60, 80, size[0] - 60, 300), fill=(200, 40, 40))
    return drawn.convert(mode)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def rotated_by_exif() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(picture().rotate(90, expand=True), "JPEG", exif=exif)


GOOD: dict[str, Callable[[], bytes]] = {
    "plain": lambda: encoded(picture(), "JPEG"),
    "cmyk": lambda: encoded(picture("CMYK"), "JPEG"),
    "16-bit": lambda: encoded(picture("I;16"), "PNG"),
    "palette": lambda: encoded(picture("P"), "PNG"),
    "transparent": lambda: encoded(picture("RGBA"), "WEBP"),
    "animated": lambda: encoded(picture(), "GIF", save_all=True, append_images=[picture("L")]),
    "rotated-by-exif": rotated_by_exif,
}
BAD: dict[str, tuple[Callable[[], bytes], UnusableKind | None]] = {
    "text": (lambda: b"this is not a picture", UnusableKind.NOT_AN_IMAGE),
    "html": (lambda: b"<!DOCTYPE html><html></html>", UnusableKind.NOT_AN_IMAGE),
    "noise": (lambda: bytes(range(256)) * 8, UnusableKind.NOT_AN_IMAGE),
    "empty": (lambda: b"", UnusableKind.EMPTY),
    "30000-wide": (lambda: encoded(picture("1", (30_000, 300)), "PNG"), UnusableKind.TOO_MANY_PIXELS),
    "header-only": (lambda: encoded(picture(), "PNG")[:60], None),
    "pdf": (lambda: b"%PDF-1.7\n\x00\x01", None),
    "tiny": (lambda: encoded(picture(size=(160, 160)).resize((8, 8)), "PNG"), UnusableKind.TOO_SMALL),
}


def test_every_bad_image_has_its_name_and_every_odd_one_is_read(tmp_path: Path) -> None:
    """All kinds in one batch: what is a picture gets evidence, what is none a reason, and nobody another's."""
    CanonicalExpansion.objects.create(code="mkm", name="Murders at Karlov Manor")
    names = [*GOOD, *BAD]
    bodies = [*(make() for make in GOOD.values()), *(make() for make, _ in BAD.values())]
    cards = add_cards(tmp_path / "cards", bodies)
    recorder = Recorder()

    report = recorder.run(cards, parts=None)

    outcomes = {names[cards.index(card)]: dict(recorder.settled)[card.pk] for card in cards}
    assert {name for name, outcome in outcomes.items() if not isinstance(outcome, Unusable)} == set(GOOD)
    kinds = {name: outcome.kind for name, outcome in outcomes.items() if isinstance(outcome, Unusable)}
    assert {name: kind for name, kind in kinds.items() if BAD[name][1]} == {n: k for n, (_, k) in BAD.items() if k}
    assert report.counts == {"Stored": len(GOOD), "Unusable": len(BAD)}
    upright = ImageEvidence.objects.get(card=cards[names.index("rotated-by-exif")])
    assert upright.readings.keys() == ImageEvidence.objects.get(card=cards[0]).readings.keys()
    assert not any("error" in reading for row in ImageEvidence.objects.all() for reading in row.readings.values())


def test_a_truncated_picture_is_marked_as_such(tmp_path: Path) -> None:
    """Half a file is never taken for a whole one: refused, or read with the mark that votes are withheld by."""
    whole = encoded(picture(size=(900, 1260)), "JPEG", quality=95)
    [card] = add_cards(tmp_path / "cards", [whole[: len(whole) * 2 // 3]])
    recorder = Recorder()

    recorder.run([card], parts=None)

    [(_, outcome)] = recorder.settled
    row = ImageEvidence.objects.first()
    assert isinstance(outcome, Unusable) or (row is not None and row.readings["quality"]["truncated"] is True)
