"""The mark of The List: seen, surely absent, or not to be told; and what join-key makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFilter

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.imaging.list_mark import draw_mark
from cardpicker.stage_d.join_key import judge_join_key
from cardpicker.stage_d.readings import Readings, parse_readings
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Vote
from cardpicker.tests.card_pictures import PX_PER_MM, card, encode
from cardpicker.tests.stage_d_cases import candidate, subject

Paint = Callable[[ImageDraw.ImageDraw, tuple[float, float, float, float]], None]
WHITE = (235, 235, 235)
MARK_MM = (1.5, 82.6, 3.3, 85.5)


def white_mark(draw: ImageDraw.ImageDraw, box_px: tuple[float, float, float, float]) -> None:
    draw_mark(draw, box_px, (235, 235, 235))


def marked(paint: Paint = white_mark, *, bleed_mm: float = 0.0) -> Image.Image:
    picture = card(bleed_mm=bleed_mm)
    left, top, right, bottom = ((v + bleed_mm) * PX_PER_MM for v in MARK_MM)
    paint(ImageDraw.Draw(picture), (left, top, right, bottom))
    return picture


def evidence(picture: Image.Image, **options: object) -> CardEvidence:
    warm_up(Lexicon(set_codes=frozenset({"mkm"})), "tesserocr")
    found = compute_card_evidence(encode(picture, "JPEG", **({"quality": 85} | options)), ComputeContext())
    assert isinstance(found, CardEvidence)
    return found


def reading(picture: Image.Image, **options: object) -> Reading:
    return evidence(picture, **options).readings["the_list_mark"]


@pytest.mark.parametrize("bleed_mm", [0.0, 3.175])
@pytest.mark.parametrize("scale", [1.0, 0.75])
def test_a_marked_card_is_told_from_its_original(bleed_mm: float, scale: float) -> None:
    """The mark is seen where it stands, and its absence is sure where it does not; the line is read in both."""
    for picture, expected in ((marked(bleed_mm=bleed_mm), True), (card(bleed_mm=bleed_mm), False)):
        smaller = picture.resize((int(picture.width * scale), int(picture.height * scale)))
        found = evidence(smaller)

        assert found.readings["the_list_mark"]["mark"] is expected
        assert (found.collector_number, found.set_code) == ("123", "mkm")


def test_a_mark_on_an_upside_down_card_is_seen() -> None:
    """It is looked for where the text says that the bottom left is."""
    assert reading(marked().rotate(180))["mark"] is True


@pytest.mark.parametrize("softness_px", [0, 1, 2, 3, 4, 6])
def test_a_blurred_mark_is_never_called_absent(softness_px: int) -> None:
    """Blur leads from seen to null."""
    assert reading(marked().filter(ImageFilter.GaussianBlur(softness_px)))["mark"] is not False


@pytest.mark.parametrize("level", [40, 60, 90, 140])
def test_a_faint_mark_is_never_called_absent(level: int) -> None:
    """Nor is one that foil or shade has dimmed."""
    assert reading(marked(lambda draw, box: draw_mark(draw, box, (level, level, level))))["mark"] is not False


SHAPES: dict[str, Paint] = {
    "rectangle": lambda draw, box: draw.rectangle(box, fill=WHITE),
    "ellipse": lambda draw, box: draw.ellipse(box, fill=WHITE),
    "diamond": lambda draw, box: draw.regular_polygon(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, 15), 4, 45, WHITE),
    "upside-down triangle": lambda draw, box: draw.polygon(
        [(box[0], box[1]), (box[2], box[1]), ((box[0] + box[2]) / 2, box[3])], fill=WHITE
    ),
    "stripe": lambda draw, box: draw.rectangle((box[0], box[1], box[0] + 4, box[3]), fill=WHITE),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_another_sign_is_neither_the_mark_nor_its_absence(shape: str) -> None:
    """A maker's own sign at the place says nothing."""
    assert reading(marked(SHAPES[shape]))["mark"] is None


def test_a_line_without_room_for_a_mark_says_nothing() -> None:
    """Where the picture ends beside the line, the mark may have been cut off."""
    picture = card()
    cut = picture.crop((int(2.6 * PX_PER_MM), 0, picture.width, picture.height))

    assert reading(cut)["mark"] is None


ORIGINAL = candidate(1, "xln", "117", artist="Eric Deschamps", year=2017)
LISTED = candidate(2, "plst", "XLN-117", artist="Eric Deschamps", year=2020)


@pytest.mark.parametrize("set_code", ["xln", None])
@pytest.mark.parametrize(("mark", "printing_id"), [(True, 2), (False, 1)])
def test_the_mark_decides_between_twins(mark: bool, printing_id: int, set_code: str | None) -> None:
    """With it the reprint, surely without it the original, whether or not the set code was read."""
    for pair in ((ORIGINAL, LISTED), (LISTED, ORIGINAL)):
        judged = judge_join_key(subject(*pair, set_code=set_code, number="117", copyright_year=2017, list_mark=mark))

        assert isinstance(judged, Vote)
        assert judged.printing_id == printing_id


@pytest.mark.parametrize(("mark", "only"), [(True, ORIGINAL), (False, LISTED)])
def test_a_mark_withholds_the_vote_where_the_catalogue_lacks_the_other_printing(mark: bool, only: Any) -> None:
    """The printing that the image shows is not among the candidates."""
    judged = judge_join_key(subject(only, set_code="xln", number="117", list_mark=mark))

    assert isinstance(judged, Abstained)
    assert judged.reason is SkipReason.SAME_LINE


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"mark": True, "confidence": 0.7}, True),
        ({"mark": False, "confidence": 0.95}, False),
        ({"mark": False, "confidence": 0.8}, None),
        ({"mark": False}, None),
        ({"mark": "yes", "confidence": 1.0}, None),
        ({"error": "ValueError: no", "mark": True}, None),
    ],
)
def test_only_a_sure_absence_counts(stored: dict[str, Any], expected: bool | None) -> None:
    """What is malformed or half sure is not read."""
    assert parse_readings({"the_list_mark": stored}) == Readings(list_mark=expected)
