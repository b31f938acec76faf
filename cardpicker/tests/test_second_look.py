"""What of the small print is looked at again: what is in doubt, and nothing that was read well."""

from __future__ import annotations

from collections.abc import Sequence

from cardpicker.stage_c.extractors.collector_parse import parse_passes
from cardpicker.stage_c.extractors.consensus import doubts
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow
from cardpicker.stage_c.extractors.second_look import rows_in_doubt
from cardpicker.stage_c.imaging.textrows import TextRow
from cardpicker.tests.test_collector_line_parse import KNOWN, row

LEGAL = row("™ & © 2024 Wizards of the Coast", 0, left_mm=36.0, confidence=0.95)


def found(read: ReadRow, rival: TextRow | None = None) -> TextRow:
    return TextRow(
        box_mm=(read.left_mm, read.top_mm, read.right_mm, read.bottom_mm),
        glyph_height_mm=read.glyph_mm,
        light=True,
        contrast=90.0,
        glyphs=len(read.text),
        clarity=5.0,
        score=1.0,
        rival=rival,
    )


def shown_again(*looks: Sequence[ReadRow], artist: str = "JOHN AVON") -> list[str]:
    """Return the texts, as the first look read them, of the rows that are looked at again."""
    passes = [ReadPass(variant="gray", rows=tuple(rows)) for rows in looks]
    lines = parse_passes(passes, KNOWN)
    places = {read.top_mm * 100 + read.left_mm: read.text for read in looks[0]}
    weak = rows_in_doubt(
        [found(read) for read in looks[0]], passes, lines, doubts(lines), lambda read: artist in read.text
    )
    return [places[again.box_mm[1] * 100 + again.box_mm[0]] for again in weak]


def test_a_faint_number_by_a_clear_code_is_all_that_is_read_again() -> None:
    """The code, the artist and the legal words are settled, and cost more than the number."""
    rows = [row("123/287 R", 0, confidence=0.5), LEGAL, row("MKM • EN JOHN AVON", 1)]

    assert shown_again(rows) == ["123/287 R"]


def test_a_name_that_is_no_artist_of_the_card_is_read_again_with_the_number() -> None:
    """It may be the right name, read badly."""
    rows = [row("123/287 R", 0, confidence=0.5), LEGAL, row("MKM • EN JQHM AVQN", 1)]

    assert shown_again(rows) == ["123/287 R", "MKM • EN JQHM AVQN"]


def test_a_number_that_was_read_twice_leaves_a_faint_code_alone_in_doubt() -> None:
    """A number needs a code or a second reading behind it; then only the look-alike of a code is left."""
    first = [row("123/287 R", 0), LEGAL, row("MHI • EN JOHN AVON", 1, confidence=0.2)]

    assert shown_again(first) == ["123/287 R", "MHI • EN JOHN AVON"]
    assert shown_again(first, [row("123/287 R", 0)]) == ["MHI • EN JOHN AVON"]


def test_a_number_that_was_not_read_is_looked_for_beside_the_code() -> None:
    """Not in the legal words, though these have digits too, and not in stains."""
    stain = row("~ -~ ~_", 3, left_mm=30.0, confidence=0.1)
    rows = [row("x1~", 0, confidence=0.2), LEGAL, row("MKM • EN JOHN AVON", 1), stain]

    assert shown_again(rows) == ["x1~"]


def test_the_number_of_a_legal_line_is_looked_for_there() -> None:
    """Cards without a set code have it at the line's end."""
    rows = [row("John Avon", 0), row("© 1993-2011 Wizards of the Coast LLC 182240", 1, confidence=0.6)]

    assert shown_again(rows, artist="John Avon") == ["© 1993-2011 Wizards of the Coast LLC 182240"]


def test_a_settled_line_has_no_row_in_doubt() -> None:
    """Two looks that agree leave nothing to look for."""
    rows = [row("123/287 R", 0), LEGAL, row("MKM • EN JOHN AVON", 1)]

    assert shown_again(rows) == []


def test_a_number_alone_stands_by_the_code_that_was_read_before() -> None:
    """A short pair of digits is a power and toughness box, unless it stands at a set code."""
    first = ReadPass(variant="gray", rows=(row("~", 0), row("PRM • EN JOHN AVON", 1)))
    second = ReadPass(variant="strokes", rows=(row("1/1", 0),))

    alone, beside = (parse_passes(passes, KNOWN | {"prm"})[-1].number for passes in ([second], [first, second]))

    assert alone is None
    assert beside is not None
    assert beside.number == "1"
