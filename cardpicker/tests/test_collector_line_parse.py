"""The collector line's grammar, on rows as an engine reads them: layouts, confusions, and what is never a number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cardpicker.stage_c.extractors.collector_parse import LineRead, parse_rows
from cardpicker.stage_c.extractors.rows import ReadRow, ReadWord
from cardpicker.stage_c.extractors.set_codes import resolve_set_code

KNOWN = frozenset(
    {"mkm", "dom", "woe", "2x2", "mh1", "mh3", "e02", "med", "grn", "ori", "cn2", "fdn", "neo", "tsp", "m12"}
)


def row(text: str, place: int = 0, left_mm: float = 4.0, confidence: float = 0.9, glyph_mm: float = 1.1) -> ReadRow:
    top = 82.6 + 1.6 * place
    return ReadRow(
        words=tuple(ReadWord(text=word, confidence=confidence) for word in text.split()),
        left_mm=left_mm,
        top_mm=top,
        right_mm=left_mm + len(text),
        bottom_mm=top + 1.2,
        glyph_mm=glyph_mm,
    )


def parse(*texts: str) -> LineRead:
    return parse_rows([row(text, place) for place, text in enumerate(texts)], KNOWN)


@pytest.mark.parametrize(
    ("texts", "number", "size", "code", "language", "rarity"),
    [
        (("123/287 R", "MKM • EN JOHN AVON"), "123", 287, "mkm", "en", "r"),
        (("007/287 C", "MKM * DE %& JOHN AVON"), "7", 287, "mkm", "de", "c"),
        (("R 0123", "MKM « EN JOHN AVON"), "123", None, "mkm", "en", "r"),
        (("c 0100", "FDN ¢ DE ALEXANDER MOKHOV"), "100", None, "fdn", "de", "c"),
        (("Cc 0100", "FDN ¢ DE ALEXANDER MOKHOV"), "100", None, "fdn", "de", "c"),
        (("M 0060", "ORI ¢ EN be JAIME JONES"), "60", None, "ori", "en", "m"),
        (("M0060", "ORI ¢ EN"), "60", None, "ori", "en", "m"),
        (("273/259 M Buy-a-Box", "GRN*EN SIMON DOMINIC"), "273", 259, "grn", "en", "m"),
        (("GR6/008 M Masterpiece", "MED*EN YONGJAE CHOI"), "gr6", 8, "med", "en", "m"),
        (("015b/205 M", "DOM • EN"), "15b", 205, "dom", "en", "m"),
        (("★045/205 M", "DOM • EN"), "45★", 205, "dom", "en", "m"),
        (("123/287 R", "DOME EN JOHN AVON"), "123", 287, "dom", "en", "r"),
        (("273/259 M", "GRNYEN SIMON DOMINIC"), "273", 259, "grn", "en", "m"),
        (("123/287R", "DOMEN JOHN AVON"), "123", 287, "dom", "en", "r"),
        (("Illus. Brian Valeza", "226/276 - WOE"), "226", 276, "woe", None, None),
        (("Illus. Martina", "097/281 * MH1."), "97", 281, "mh1", None, None),
        (("020/024 T", "2X2 * EN % CHUCK LUKACS"), "20", 24, "2x2", "en", "t"),
        (("Kev Walker", "™ & © 1993–2008 Wizards of the Coast, Inc. 182/249"), "182", 249, None, None, None),
        (("™ & © 1993-2008 Wizards of the Coast, Inc. 6/180",), "6", 180, None, None, None),
        (("Illus. Patrick Ho", "© 1993-1999 Wizards of the Coast, Inc. 137/143"), "137", 143, None, None, None),
        (("255/301 R", "TSP « EN GREG HILDEBRANDT"), "255", 301, "tsp", "en", "r"),
        (("123/287 R MKM • EN JOHN AVON",), "123", 287, "mkm", "en", "r"),
    ],
)
def test_every_known_layout_is_parsed(
    texts: tuple[str, ...],
    number: str,
    size: int | None,
    code: str | None,
    language: str | None,
    rarity: str | None,
) -> None:
    """Number, set size, set code, language and rarity come from where each layout prints them."""
    line = parse(*texts)

    assert line.number is not None
    assert (line.number.number, line.number.set_size, line.number.rarity) == (number, size, rarity)
    assert (line.set.code.code if line.set else None) == code
    assert (line.set.language if line.set else None) == language


@pytest.mark.parametrize(
    "text",
    [
        "3/3",
        "2/1",
        "9/10",
        "™ & © 2018 Wizards of the Coast",
        "© 1993/1999 Wizards of the Coast",
        "R 2018",
        "2018",
        "0000",
        "000/287 R",
        "105/006 R",
        "7/279 R",
        "uly 1177279 R",
        "Deal 3 damage to target creature",
        "T: Add 1. R 12",
    ],
)
def test_what_is_no_number_gives_none(text: str) -> None:
    """Power and toughness, years, set sizes, cut numbers and rules text are never a number."""
    assert parse(text).number is None


@pytest.mark.parametrize(
    ("token", "code", "known", "distance"),
    [
        ("MKM", "mkm", True, 0),
        ("EO2", "e02", True, 1),
        ("2XZ", "2x2", True, 1),
        ("MH1", "mh1", True, 0),
        ("MHI", "mh1", True, 1),
        ("FON", "fdn", True, 1),
        ("CNZ", "cn2", True, 1),
        ("XYZ", "xyz", False, 0),
    ],
)
def test_a_misread_code_reaches_the_one_known_code(token: str, code: str, known: bool, distance: int) -> None:
    """Characters are exchanged only for look-alikes, and the distance is kept."""
    found = resolve_set_code(token, KNOWN)

    assert found is not None
    assert (found.code, found.known, found.distance) == (code, known, distance)


def test_two_known_codes_at_one_distance_are_none() -> None:
    """There is no guess between two."""
    found = resolve_set_code("M1S", frozenset({"m15", "mis"}))

    assert found is not None
    assert not found.known


@pytest.mark.parametrize("token", ["287", "12", "ABCDEF", "M-1", "ÄBC"])
def test_what_has_no_codes_shape_is_none(token: str) -> None:
    """Digits alone, and tokens too short or too long, are no set codes."""
    assert resolve_set_code(token, KNOWN) is None


def test_a_rarity_glued_to_the_size_is_no_code() -> None:
    """``281M`` after a slash is a size and a rarity."""
    line = parse_rows([row("123/281M")], KNOWN | {"281m"})

    assert line.set is None
    assert line.number is not None
    assert (line.number.set_size, line.number.rarity) == (281, "m")


def test_power_and_toughness_at_the_right_do_not_hide_the_number() -> None:
    """A box of large digits in the same band is passed over."""
    rows = [row("4/3", 0, left_mm=52.0, glyph_mm=2.2), row("180/269 R", 0), row("DOM + EN TYLER JACOBSON", 1)]

    line = parse_rows(rows, KNOWN)

    assert line.number is not None
    assert line.number.number == "180"


def test_mirrored_line_is_read_at_the_right() -> None:
    """The layout may stand flush right."""
    rows = [
        row("WARPDANDY PROXY", 0, left_mm=20.0),
        row("M 0255", 0, left_mm=46.0),
        row("TSP * EN GREG HILDEBRANDT", 1, left_mm=30.0),
    ]

    line = parse_rows(rows, KNOWN)

    assert line.number is not None
    assert line.number.number == "255"
    assert line.set is not None
    assert line.set.code.code == "tsp"


def test_a_row_that_the_picture_cuts_off_gives_nothing_from_its_first_word() -> None:
    """Half a zero reads as a one, and half a code as another."""
    rows = [replace(row("135/269 U"), cut=True), replace(row("MH1 • EN COLIN BOYER", 1), cut=True)]

    assert parse_rows(rows, KNOWN) == LineRead(number=None, set=None)
    assert parse_rows([replace(row("U 135/269"), cut=True)], KNOWN).number is not None


def test_a_set_of_thousands_is_a_digit_read_twice() -> None:
    """No set numbers its cards beyond hundreds behind a slash."""
    assert parse("0886/2439 C", "MKM + EN JOHN AVON").number is None


def test_a_rarity_comes_with_the_belief_in_it() -> None:
    """A line without one says so."""
    rows = [row("123/287 R", confidence=0.7), row("MKM • EN", 1)]
    number, bare = parse_rows(rows, KNOWN).number, parse("226/276 - WOE").number

    assert number is not None and (number.rarity, number.rarity_confidence) == ("r", 0.7)
    assert bare is not None and (bare.rarity, bare.rarity_confidence) == (None, 0.0)
