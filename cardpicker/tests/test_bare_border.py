"""The mark of The List where the line leaves no room for it: in the border's corner, on frames of all years."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon
from cardpicker.stage_c.imaging.list_mark import draw_mark
from cardpicker.tests.card_pictures import PX_PER_MM, Line, card, encode

BoxMm = tuple[float, float, float, float]
FRAMES: dict[str, tuple[float, tuple[Line, ...]]] = {
    "2003": (84.9, ((7.0, 82.4, "Kev Walker"), (5.0, 84.3, "(c) 1993-2008 Wizards of the Coast, Inc. 6/180"))),
    "1997": (84.8, ((24.0, 81.4, "Illus. John Avon"), (16.0, 83.6, "(c) 1993-1999 Wizards of the Coast 137/143"))),
    "1993": (84.0, ((8.0, 81.4, "Illus. (c) John Avon"),)),
    "mirrored": (80.5, ((46.0, 83.8, "123/287 R"), (34.0, 85.6, "MKM * EN   JOHN AVON"))),
    "nothing legible": (84.9, ()),
}
#: Beside a line's place, and in the bottom border.
PLACES: tuple[BoxMm, ...] = ((1.2, 82.2, 3.1, 84.8), (3.0, 85.2, 4.8, 87.5))


def drawn(frame: str, mark: BoxMm | None = None, *, level: int = 235, bleed_mm: float = 0.0) -> Image.Image:
    bottom, lines = FRAMES[frame]
    picture = card(lines, bleed_mm=bleed_mm, frame_bottom_mm=bottom)
    if mark is not None:
        left, top, right, low = ((v + bleed_mm) * PX_PER_MM for v in mark)
        draw_mark(ImageDraw.Draw(picture), (left, top, right, low), (level, level, level))
    return picture


def mark_of(picture: Image.Image) -> object:
    warm_up(Lexicon(set_codes=frozenset({"mkm"})), "tesserocr")
    found = compute_card_evidence(encode(picture, "JPEG", quality=85), ComputeContext())
    assert isinstance(found, CardEvidence)
    return found.readings["the_list_mark"]["mark"]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(("bleed_mm", "scale"), [(0.0, 1.0), (3.175, 1.0), (0.0, 0.6), (3.175, 1.6)])
def test_a_bare_border_has_surely_no_mark(frame: str, bleed_mm: float, scale: float) -> None:
    """On every frame, so that an original is told from its reprint."""
    picture = drawn(frame, bleed_mm=bleed_mm)

    assert mark_of(picture.resize((int(picture.width * scale), int(picture.height * scale)))) is False


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("scale", [1.0, 0.6])
def test_a_marked_border_is_never_called_bare(frame: str, place: BoxMm, scale: float) -> None:
    """Wherever in the corner it stands."""
    picture = drawn(frame, place)

    assert mark_of(picture.resize((int(picture.width * scale), int(picture.height * scale)))) is not False


def test_a_mark_in_the_bottom_border_is_seen() -> None:
    """Where it stands free, its outline tells."""
    assert mark_of(drawn("2003", PLACES[1])) is True


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("softness_px", [1, 3, 6, 10])
def test_a_blurred_mark_in_the_corner_is_never_called_absent(place: BoxMm, softness_px: int) -> None:
    """Blur leads from seen to null."""
    assert mark_of(drawn("2003", place).filter(ImageFilter.GaussianBlur(softness_px))) is not False


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("level", [50, 70, 110])
def test_a_faint_mark_in_the_corner_is_never_called_absent(place: BoxMm, level: int) -> None:
    """Nor is one that shade has dimmed."""
    assert mark_of(drawn("2003", place, level=level)) is not False


def test_a_makers_text_in_the_corner_says_nothing() -> None:
    """What stands there may cover a mark."""
    picture = drawn("2003")
    ImageDraw.Draw(picture).text(
        (6 * PX_PER_MM, 85.5 * PX_PER_MM), "A MAKER", fill=(200, 200, 200), font=ImageFont.load_default(size=18)
    )

    assert mark_of(picture) is None


def test_a_corner_that_is_cut_off_says_nothing() -> None:
    """A border that is not seen whole may have borne a mark."""
    picture = drawn("2003")

    assert mark_of(picture.crop((int(2.0 * PX_PER_MM), 0, picture.width, picture.height))) is None
    assert mark_of(picture.crop((0, 0, picture.width, int(86.0 * PX_PER_MM)))) is None


def test_a_dim_picture_says_nothing() -> None:
    """A mark too would hardly stand out."""
    assert mark_of(drawn("2003").point(lambda level: level // 4)) is None
