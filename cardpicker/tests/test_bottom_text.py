"""What of the bottom band is read: the line before all else, all of it where the line is not there, and either polarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon
from cardpicker.stage_c.extractors.bottom_text import BAND_MM, line_first
from cardpicker.stage_c.extractors.rows import passes_of
from cardpicker.stage_c.imaging.geometry import fit_card
from cardpicker.stage_c.imaging.textrows import TextRow, find_rows, pack_rows
from cardpicker.tests.card_pictures import MODERN, PX_PER_MM, borderless_on_ground, card, encode, gray

RULES = (5.0, 80.6, "Flying, vigilance and a line of rules")


def evidence(picture: Image.Image) -> CardEvidence:
    warm_up(Lexicon(set_codes=frozenset({"mkm"})), "tesserocr")
    found = compute_card_evidence(encode(picture), ComputeContext(artists=("John Avon",)))
    assert isinstance(found, CardEvidence)
    return found


def find_all(picture: Image.Image) -> Sequence[TextRow]:
    pixels = gray(picture)
    return find_rows(pixels, fit_card(pixels), BAND_MM)


def texts(found: CardEvidence) -> list[str]:
    return [row.text for read in passes_of(found.readings["bottom_text"]) for row in read.rows]


def test_what_stands_above_a_line_is_not_read() -> None:
    """It costs more than the line, and says nothing that is looked for."""
    with_rules, without = evidence(card((RULES, *MODERN))), evidence(card((RULES,)))

    assert with_rules.collector_number == "123"
    assert not any("vigilance" in text for text in texts(with_rules))
    assert any("vigilance" in text for text in texts(without))
    assert with_rules.readings["bottom_text"]["ocr_calls"] == 1


def test_a_legal_line_beside_the_line_is_read_with_it() -> None:
    """Its year is evidence too, and no second call is needed for it."""
    found = evidence(card((*MODERN, (38.0, 83.8, "(c) 2024 Wizards of the Coast"))))

    assert any("2024 Wizards" in text for text in texts(found))
    assert found.readings["bottom_text"]["ocr_calls"] == 1


@pytest.mark.parametrize("cut_mm", [(2.6, 9.0, 0.0), (1.5, 0.0, 5.0), (2.0, 6.0, 3.0)])
def test_a_photograph_that_cuts_the_card_off_is_read(cut_mm: tuple[float, float, float]) -> None:
    """Where the card is not found, small print is looked for over all of the picture's bottom."""
    left, top, right = (int(mm * PX_PER_MM) for mm in cut_mm)
    picture = card()

    found = evidence(picture.crop((left, top, picture.width - right, picture.height)))

    assert (found.collector_number, found.set_code) == ("123", "mkm")


@pytest.mark.parametrize(("ground_mm", "bleed_mm"), [(6.0, 0.0), (7.0, 0.0), (7.5, 3.175), (8.5, 3.175)])
def test_a_card_that_is_taken_for_larger_than_it_is_is_read(ground_mm: float, bleed_mm: float) -> None:
    """Its line may lie above where the band of a card of that size begins."""
    found = evidence(borderless_on_ground(ground_mm, bleed_mm))

    assert (found.collector_number, found.set_code) == ("123", "mkm")


def test_a_number_that_the_picture_cuts_through_is_not_believed() -> None:
    """What is left of it may be another number."""
    picture = card()

    found = evidence(picture.crop((int(4.9 * PX_PER_MM), 0, picture.width, picture.height)))

    assert found.collector_number in ("", "123")


def mottled(seed: int) -> Image.Image:
    picture = card((), frame_bottom_mm=84.9)
    rng = np.random.default_rng(seed)
    mottle = rng.integers(120, 215, (20, 120, 3), dtype=np.uint8)
    box = [int(mm * PX_PER_MM) for mm in (2.8, 79.2, 60.2, 84.9)]
    texture = Image.fromarray(mottle).resize((box[2] - box[0], box[3] - box[1]), Image.Resampling.BICUBIC)
    picture.paste(texture, (box[0], box[1]))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=1.75 * PX_PER_MM)
    for left_mm, base_mm, text in ((5.0, 82.0, "John Avon"), (5.0, 84.2, "(c) 1993-2008 Wizards of the Coast 174/274")):
        draw.text((left_mm * PX_PER_MM, base_mm * PX_PER_MM), text, fill=(10, 8, 6), font=font, anchor="ls")
    return picture


@pytest.mark.parametrize("seed", range(3))
def test_dark_print_over_a_mottled_frame_is_read(seed: int) -> None:
    """And the row of the other polarity at its place is known, for the case that it cannot be believed."""
    picture = mottled(seed)
    pixels = gray(picture)

    rivals = [row.rival for row in find_rows(pixels, fit_card(pixels), BAND_MM) if row.rival is not None]

    assert rivals and all(rival.light for rival in rivals)
    assert evidence(picture).collector_number == "174"


def test_only_the_legal_words_beside_a_line_are_condensed() -> None:
    """A digit has no columns to spare, and without a line at the left nobody knows where the digits are."""
    line = find_all(card((*MODERN, (38.0, 84.2, "© 2024 Wizards of the Coast"))))
    legal = find_all(card(((4.0, 82.0, "Kev Walker"), (4.0, 84.0, "© 1993-2011 Wizards of the Coast LLC 182/249"))))

    assert [row.condensed < 1.0 for row in line_first(line)] == [row.box_mm[0] > 30.0 for row in line_first(line)]
    assert any(row.condensed < 1.0 for row in line_first(line))
    assert legal
    assert all(row.condensed == 1.0 for row in line_first(legal))


@pytest.mark.parametrize("condensed", [1.0, 0.7])
def test_a_column_of_the_page_has_its_place_on_the_card(condensed: float) -> None:
    """By where its first letter is, not by how far noise draws a row out, a row is cut or whole."""
    pixels = gray(card(bleed_mm=3.175))
    fit = fit_card(pixels)
    rows = [replace(row, condensed=condensed) for row in find_rows(pixels, fit, BAND_MM)]

    packed = pack_rows(pixels, fit, rows, strokes_only=False)

    assert len(rows) == 2
    for index, (top, bottom) in enumerate(packed.spans):
        inked = np.flatnonzero(packed.pixels[top:bottom].min(axis=0) < 100)
        assert packed.x_mm(index, int(inked[0])) == pytest.approx(rows[index].box_mm[0], abs=0.15)
        assert packed.x_mm(index, int(inked[-1])) == pytest.approx(rows[index].box_mm[2], abs=0.15)
