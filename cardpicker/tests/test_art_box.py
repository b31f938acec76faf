"""The art box of an upload against the picture that a catalog has of the same art: hashes that may be compared."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.stage_c.extractors.art_hash import ART_BOX_MM
from cardpicker.stage_c.imaging.geometry import fit_card
from cardpicker.stage_c.imaging.hashing import phash64, sample
from cardpicker.stage_d.art_index import MARGIN, MATCH_DISTANCE
from cardpicker.stage_d.readings import parse_readings
from scripts.ops.samplecards.art import paint
from scripts.ops.samplecards.deck import DECK
from scripts.ops.samplecards.frames import draw_card
from scripts.ops.samplecards.specs import CardSpec, Fault, Printing, Style

PRINTING = Printing(set_code="mkm", number="12", artist="A. Painter", rarity="rare", year=2016)
#: What Scryfall calls an art crop.
ART_CROP_PX = (626, 457)
CARDS = [spec for spec in DECK if spec.style is not Style.BLANK and spec.fault is Fault.NONE][:12]


def upload_hash(spec: CardSpec, style: Style) -> int:
    """Hash the art box of an upload as Stage C does, bleed, JPEG and all."""
    drawn = replace(spec, style=style, bleed=True, dpi=200, set_size=280, rounded_corners=False)
    stream = io.BytesIO()
    draw_card(drawn, PRINTING).convert("RGB").save(stream, "JPEG", quality=80)
    gray = np.asarray(Image.open(stream).convert("L"))
    return phash64(sample(fit_card(gray).crop(gray, ART_BOX_MM, (256, 192))))


@pytest.fixture(scope="module")
def art_crops() -> list[int]:
    """Hashes of the art alone."""
    pictures = [paint(spec.scene, spec.tint, spec.file).resize(ART_CROP_PX) for spec in CARDS]
    return [phash64(sample(picture)) for picture in pictures]


@pytest.mark.parametrize("style", [Style.LINE_2015, Style.FOOTER_1997])
def test_an_upload_lies_near_its_own_art_and_far_from_any_other(style: Style, art_crops: list[int]) -> None:
    """In new frames and old ones, the same picture is a match and nearer than every other by the margin."""
    for at, spec in enumerate(CARDS):
        card = upload_hash(spec, style)
        distances = [(card ^ other).bit_count() for other in art_crops]
        own = distances.pop(at)

        assert own <= MATCH_DISTANCE / 2
        assert min(distances) >= own + MARGIN


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"kind": ART_HASH_KIND, "hash": "00000000000000ff"}, 255),
        ({"kind": ART_HASH_KIND, "hash": "ffffffffffffffff"}, 2**64 - 1),
        ({"kind": ART_HASH_KIND, "hash": None}, None),
        ({"kind": ART_HASH_KIND, "hash": "0" * 16}, None),
        ({"kind": ART_HASH_KIND, "hash": "ff"}, None),
        ({"kind": ART_HASH_KIND, "hash": 255}, None),
        ({"kind": "phash256", "hash": "00000000000000ff"}, None),
        ({"hash": "00000000000000ff"}, None),
        ({"kind": ART_HASH_KIND, "hash": "00000000000000ff", "error": "x"}, None),
    ],
)
def test_only_a_hash_of_the_catalogs_kind_is_compared(stored: dict[str, object], expected: int | None) -> None:
    """Another kind or length of hash, 0, and no hash are "not read"."""
    assert parse_readings({"art_hash": stored}).art_hash == expected
