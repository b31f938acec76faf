"""The frame's class: by the border's height and the print's place, never by a parsed number, and null in doubt."""

from __future__ import annotations

import pytest

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon
from cardpicker.stage_c.extractors.frame import older_frame
from cardpicker.stage_c.extractors.rows import ReadRow, ReadWord
from cardpicker.tests.card_pictures import art, card, encode


def row(text: str, left_mm: float, right_mm: float, bottom_mm: float, confidence: float = 0.9) -> ReadRow:
    words = tuple(ReadWord(text=word, confidence=confidence) for word in text.split())
    return ReadRow(
        words=words, left_mm=left_mm, top_mm=bottom_mm - 1, right_mm=right_mm, bottom_mm=bottom_mm, glyph_mm=1.0
    )


ILLUS = row("Illus. John Avon", 22.0, 41.0, 82.0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("Kev Walker", 5, 20, 82), row("© 1993-2011 Wizards of the Coast LLC 182/249", 4, 38, 84)], "2003"),
        ([ILLUS, row("© 1993-1999 Wizards of the Coast, Inc. 137/143", 16, 47, 84)], "1997"),
        ([ILLUS, row("226/276 - WOE", 25, 38, 84)], "1997"),
        ([ILLUS], "1993"),
        ([row("Illus. John Avon", 22, 41, 82, confidence=0.3)], None),
        ([row("182/249", 5, 12, 82)], None),
        ([], None),
    ],
)
def test_older_frames_differ_in_their_small_print(rows: list[ReadRow], expected: str | None) -> None:
    """Left since 2003, two rows in the middle from 1997, one row before; a number alone tells nothing."""
    assert older_frame(rows) == expected


@pytest.mark.parametrize(
    ("rows", "border_mm", "expected"),
    [
        ([row("flus. © Dan Frazier", 7, 33, 82, confidence=0.3)], 4.1, "1993"),
        ([row("fs © Dan Frazier", 7, 33, 82, confidence=0.3)], 4.1, "1993"),
        ([ILLUS], 2.8, None),
        ([row("Dan Frazier", 7, 33, 82), row("© 1993-2011 Wizards of the Coast LLC 182/249", 4, 38, 84)], 4.1, "2003"),
    ],
)
def test_the_first_frame_has_a_higher_border_and_one_row(
    rows: list[ReadRow], border_mm: float, expected: str | None
) -> None:
    """Its artist row is faint: a name of the card's artists tells it as well as `Illus.`."""
    assert older_frame(rows, border_mm=border_mm, artist_row="fs © Dan Frazier") == expected


def test_a_high_border_at_the_bottom_is_the_frame_of_2015_whatever_is_printed() -> None:
    """The drawn card has it, with and without a line; noise to the edge has no frame that could be told."""
    warm_up(Lexicon(), "tesserocr")
    noise = art(3, (630, 880))

    found = [compute_card_evidence(encode(picture), ComputeContext()) for picture in (card(), card(()), noise)]

    frames = [evidence.readings["frame"]["frame"] for evidence in found if isinstance(evidence, CardEvidence)]
    assert frames == ["2015", "2015", None]
