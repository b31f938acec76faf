"""Collector numbers in small print: what the reader makes of them, and that a misread one names no printing."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from cardpicker.models import CardPrintingTag, ReviewItem
from cardpicker.stage_c.extractors.collector_parse import LineRead, parse_rows
from cardpicker.stage_c.extractors.rows import ReadRow, ReadWord
from cardpicker.stage_c.imaging import ocr
from cardpicker.stage_c.imaging.ocr import Layout
from cardpicker.stage_d.run import run_stage_d
from cardpicker.tests.stage_d_cases import make_printing, read_card

TRUTH = {"123/281 R": "123", "0012/0271 M": "12", "017a/271 U": "17a", "123/281 “R”": "123"}


def read(text: str, height_px: int) -> tuple[str, LineRead]:
    """Draw a line so many pixels high, read it as Stage C does, and parse it."""
    font = ImageFont.load_default(size=height_px)
    picture = Image.new("L", (int(font.getlength(text)) + 4 * height_px, 3 * height_px), 255)
    ImageDraw.Draw(picture).text((2 * height_px, height_px), text, fill=0, font=font)
    got = ocr.tested_engine("tesserocr").read(np.asarray(picture, dtype=np.uint8), layout=Layout.LINE)
    words = tuple(ReadWord(text=word, confidence=got.confidence) for word in got.text.split())
    row = ReadRow(words=words, left_mm=4.0, top_mm=82.6, right_mm=20.0, bottom_mm=83.8, glyph_mm=1.1)
    return got.text, parse_rows([row], frozenset({"mkm"}))


@pytest.mark.parametrize("height_px", [16, 24, 40])
@pytest.mark.parametrize("text", TRUTH)
def test_a_number_is_read_right_or_not_at_all(text: str, height_px: int) -> None:
    """Letters are never forced into digits: the rarity beside the number does not become a part of it."""
    raw, line = read(text, height_px)

    assert raw
    assert line.number is None or line.number.number == TRUTH[text]
    assert line.number is not None or height_px < 24


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("line", "voted"),
    [
        ({"number": "123", "set_code": "mkm", "set_size": 281}, True),
        ({"number": "123", "set_code": "mkm", "set_size": 2812}, True),
        ({"number": "1238", "set_code": "mkm"}, False),
        ({"number": "123", "set_code": "m20"}, False),
        ({"number": "2812"}, False),
    ],
)
def test_a_number_is_believed_only_where_the_card_has_it(line: dict[str, object], voted: bool) -> None:
    """Whatever was read, a vote takes a printing of the card's own name with that set and number."""
    make_printing("Murder", "mkm", "123")
    make_printing("Murder", "m20", "109")
    make_printing("Opt", "mkm", "128")
    card = read_card("Murder", line=line)

    run_stage_d([card.pk], run_id="r")

    assert CardPrintingTag.objects.filter(card=card).exists() is voted
    assert ReviewItem.objects.filter(card=card).exists() is not voted
