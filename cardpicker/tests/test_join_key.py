"""Join-key: the printed line against the printings of the name."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from cardpicker.stage_d.candidates import Candidate, printed_lines
from cardpicker.stage_d.join_key import judge_join_key
from cardpicker.stage_d.matching import is_near, normalize_number, same_artist
from cardpicker.stage_d.readings import Readings, parse_readings
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Vote
from cardpicker.tests.stage_d_cases import candidate, subject

ISD = candidate(1, "isd", "51", year=2011, artist="Nils Hamm", border_color="black")
MID = candidate(2, "mid", "47", year=2021, artist="Matt Stewart", border_color="black")
DBL = candidate(3, "dbl", "47", year=2022)
OTHER = candidate(9, "mh3", "200", artist="Volkan Baga")


def verdict(*candidates: Candidate, **readings: Any) -> Vote | Abstained:
    """Judge readings against candidates."""
    judged = judge_join_key(subject(*candidates, **readings))
    assert isinstance(judged, Vote | Abstained)
    return judged


def outcome(judged: Vote | Abstained) -> tuple[int | None, float] | SkipReason:
    """Return what a verdict says, in short."""
    return (judged.printing_id, judged.confidence) if isinstance(judged, Vote) else judged.reason


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({"set_code": "isd", "number": "51"}, (1, 0.85)),
        ({"number": "51"}, (1, 0.75)),
        ({"set_code": "proxy", "number": "51", "known": False}, (1, 0.75)),
        ({"number": "47"}, SkipReason.AMBIGUOUS),
        ({"set_code": "proxy", "number": "9", "known": False}, SkipReason.UNKNOWN_SET_CODE),
        ({"number": "9"}, SkipReason.NUMBER_FITS_NONE),
        ({"set_code": "mid", "number": "9"}, SkipReason.NUMBER_FITS_NONE),
        ({"set_code": "mid"}, SkipReason.NO_TEXT),
        ({}, SkipReason.NO_TEXT),
        ({"set_code": "isd", "number": "51", "line_confidence": 0.5}, SkipReason.LOW_CONFIDENCE),
        ({"set_code": "isd", "number": "51", "line_confidence": None}, (1, 0.85)),
        ({"number": "51", "line_confidence": 0.7}, SkipReason.LOW_CONFIDENCE),
        ({"number": "51", "line_confidence": 0.7, "artist": "Nils Hamm"}, (1, 0.75)),
        ({"number": "51", "line_confidence": 0.7, "copyright_year": 2011}, (1, 0.75)),
    ],
)
def test_a_line_finds_its_printing_or_says_why_not(readings: dict[str, Any], expected: object) -> None:
    """Set and number, a number alone, and each way of finding nothing."""
    assert outcome(verdict(ISD, MID, DBL, **readings)) == expected


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({"truncated": True}, SkipReason.TRUNCATED),
        ({"copyright_year": 2008}, SkipReason.YEAR_CONTRADICTS),
        ({"copyright_year": 2009}, (1, 0.85)),
        ({"copyright_year": 2024}, (1, 0.85)),
        ({"row_artist": "Volkan Baga"}, SkipReason.ARTIST_CONTRADICTS),
        ({"row_artist": "NILS HAMM"}, (1, 0.85)),
        ({"row_artist": "Ni1s Hamn"}, (1, 0.85)),
        ({"row_artist": "xq"}, (1, 0.85)),
        ({"artist": "Volkan Baga"}, (1, 0.65)),
        ({"border_color": "white"}, (1, 0.65)),
        ({"border_color": "black", "artist": "Nils Hamm"}, (1, 0.85)),
    ],
)
def test_other_readings_withhold_or_weaken_a_match(readings: dict[str, Any], expected: object) -> None:
    """The checks after a match of set and number."""
    assert outcome(verdict(ISD, MID, set_code="isd", number="51", **readings)) == expected


def test_a_number_alone_does_not_stand_against_an_artist() -> None:
    """Where set and number would be weakened, a number alone is withheld."""
    assert outcome(verdict(ISD, MID, number="51", artist="Matt Stewart")) == SkipReason.ARTIST_CONTRADICTS


def test_a_doubtful_number_alone_stands_only_where_no_other_printing_is_one_slip_away() -> None:
    """Artist or year may strike the near one out; a sure number, or one with its set code, is taken as read."""
    m12 = candidate(1, "m12", "33", year=2011, artist="Greg Staples")
    m13 = candidate(2, "m13", "31", year=2012, artist="Rebecca Guay")

    def judged(**readings: Any) -> object:
        return outcome(verdict(m12, m13, number="31", **{"line_confidence": 0.85, **readings}))

    assert judged() == SkipReason.AMBIGUOUS
    assert judged(artist="Rebecca Guay") == (2, 0.75)
    assert judged(line_confidence=0.95) == (2, 0.75)
    assert judged(set_code="m13") == (2, 0.85)


def test_a_number_alone_does_not_stand_against_a_newer_copyright_line() -> None:
    """Without a set code a line of another year is rather another printing than a proxy's own year."""
    m12 = candidate(1, "m12", "33", year=2011)

    assert outcome(verdict(m12, number="33", copyright_year=2013)) == SkipReason.YEAR_CONTRADICTS
    assert outcome(verdict(m12, number="33", copyright_year=2010)) == (1, 0.75)
    assert outcome(verdict(m12, set_code="m12", number="33", copyright_year=2013)) == (1, 0.85)


def test_a_neighbor_in_the_set_by_the_artist_read_withholds_the_match() -> None:
    """Basic lands of one set differ by one digit and by their artists."""
    dark = candidate(1, "roe", "235", artist="Vincent Proce")
    light = candidate(2, "roe", "236", artist="John Avon")

    assert outcome(verdict(dark, light, set_code="roe", number="236", artist="Vincent Proce")) == (
        SkipReason.ARTIST_CONTRADICTS
    )


def test_what_is_not_known_of_a_printing_contradicts_nothing() -> None:
    """No release date, artist or border in the catalog is no disagreement."""
    bare = candidate(5, "dbl", "47")

    judged = verdict(bare, set_code="dbl", number="47", copyright_year=1995, row_artist="Anybody", border_color="white")

    assert outcome(judged) == (5, 0.85)


def test_the_list_s_twin_makes_a_line_ambiguous_in_any_order() -> None:
    """The List prints the original's line: the line alone cannot tell, and both survive."""
    original = candidate(1, "xln", "117", artist="Eric Deschamps", year=2017)
    listed = candidate(2, "plst", "XLN-117", artist="Eric Deschamps", year=2020)

    for pair in ((original, listed), (listed, original)):
        for readings in ({"set_code": "xln"}, {}):
            judged = verdict(*pair, number="117", artist="Eric Deschamps", copyright_year=2017, **readings)
            assert isinstance(judged, Abstained)
            assert judged.reason in (SkipReason.SAME_LINE, SkipReason.AMBIGUOUS)
            assert set(judged.survivors) == {1, 2}


def test_printings_of_one_line_are_told_apart_by_language_or_a_known_artist() -> None:
    """Only where language or artist really separates them."""
    english = candidate(1, "war", "1", language="en", artist="Magali Villeneuve")
    japanese = candidate(2, "war", "1", language="ja", artist="Yoshitaka Amano")

    assert outcome(verdict(english, japanese, set_code="war", number="1", language="ja")) == (2, 0.85)
    assert outcome(verdict(english, japanese, set_code="war", number="1", artist="Yoshitaka Amano")) == (2, 0.85)
    assert outcome(verdict(english, japanese, set_code="war", number="1")) == SkipReason.SAME_LINE
    anonymous = candidate(3, "war", "1", language="en")
    assert outcome(verdict(anonymous, japanese, set_code="war", number="1", artist="Yoshitaka Amano")) == (
        SkipReason.SAME_LINE
    )
    assert outcome(verdict(english, set_code="war", number="1", language="de")) == (1, 0.85)


@pytest.mark.parametrize(
    ("printing", "readings"),
    [
        (candidate(1, "t2x2", "20", layout="token"), {"set_code": "2x2", "number": "20"}),
        (candidate(1, "emn", "15b", layout="meld"), {"set_code": "emn", "number": "15"}),
        (candidate(1, "emn", "15b", layout="meld"), {"set_code": "emn", "number": "15b"}),
        (candidate(1, "pemn", "15bs", layout="meld"), {"set_code": "emn", "number": "15"}),
        (candidate(1, "pemn", "130as", layout="meld"), {"set_code": "emn", "number": "130a"}),
        (candidate(1, "plst", "XLN-117"), {"set_code": "xln", "number": "117"}),
        (candidate(1, "pfrf", "138"), {"set_code": "frf", "number": "138"}),
        (candidate(1, "ugin", "146"), {"set_code": "frf", "number": "146"}),
        (candidate(1, "med", "GR6"), {"set_code": "med", "number": "gr6"}),
        (candidate(1, "jud", "45★"), {"set_code": "jud", "number": "45★"}),
        (candidate(1, "e02", "13"), {"set_code": "eo2", "number": "13", "known": False}),
    ],
)
def test_printings_are_found_by_what_is_printed_on_them(printing: Candidate, readings: dict[str, Any]) -> None:
    """Tokens, melded backs, The List, promos and prefixed numbers; a confused letter in the set code too."""
    assert outcome(verdict(printing, **readings)) == (1, 0.85)


def test_promos_with_the_same_line_are_ambiguous_and_with_a_printed_suffix_are_not() -> None:
    """`frf 146` may be Ugin's Fate or a stamped card of the prerelease; later such cards say `138s` on their line."""
    same_line = (candidate(1, "frf", "146"), candidate(2, "ugin", "146"), candidate(3, "pfrf", "146s"))
    plain, prerelease = candidate(4, "eld", "138"), candidate(5, "peld", "138s")

    for order in permutations(same_line):
        judged = verdict(*order, set_code="frf", number="146")
        assert isinstance(judged, Abstained)
        assert judged.reason is SkipReason.SAME_LINE
        assert set(judged.survivors) == {1, 2, 3}
    assert outcome(verdict(same_line[0], same_line[2], set_code="frf", number="146")) == (1, 0.85)
    assert outcome(verdict(same_line[0], same_line[2], number="146")) == (1, 0.75)
    assert outcome(verdict(plain, prerelease, set_code="eld", number="138")) == (4, 0.85)
    assert outcome(verdict(plain, prerelease, set_code="eld", number="138s")) == (5, 0.85)


def test_art_cards_and_emblems_are_never_met_by_number_alone() -> None:
    """They share a name with the card and are something else."""
    art_card = candidate(2, "amid", "12", layout="art_series")

    assert outcome(verdict(MID, art_card, number="12")) == SkipReason.NUMBER_FITS_NONE
    assert outcome(verdict(MID, art_card, set_code="mid", number="12")) == SkipReason.NUMBER_FITS_NONE
    assert outcome(verdict(MID, art_card, set_code="amid", number="12")) == (2, 0.85)
    emblem = candidate(3, "tmid", "12", layout="emblem")
    assert outcome(verdict(MID, emblem, set_code="mid", number="12")) == SkipReason.NUMBER_FITS_NONE
    assert outcome(verdict(MID, emblem, set_code="tmid", number="12")) == (3, 0.85)


def test_no_such_printing_takes_a_sure_foreign_line_and_the_card_s_own_artist() -> None:
    """Without any one of its conditions it is not claimed."""
    line: dict[str, Any] = {"set_code": "mh3", "number": "200", "row_artist": "Nils Hamm"}

    assert outcome(verdict(ISD, owners=(OTHER,), **line)) == (None, 0.60)
    for change in (
        {"owners": ()},
        {"row_artist": None},
        {"row_artist": "Volkan Baga"},
        {"line_confidence": 0.7},
        {"line_confidence": None},
        {"owners": (candidate(9, "mh3", "200"),)},
    ):
        assert outcome(verdict(ISD, **{"owners": (OTHER,), **line, **change})) == SkipReason.LINE_OF_ANOTHER_CARD
    near = candidate(1, "isd", "201", artist="Nils Hamm")
    assert outcome(verdict(near, owners=(OTHER,), **line)) == SkipReason.LINE_OF_ANOTHER_CARD


def test_an_unknown_name_gets_no_vote() -> None:
    """A line that fits some card is no candidate of this one."""
    assert outcome(verdict(set_code="mh3", number="200", owners=(OTHER,))) == SkipReason.UNKNOWN_NAME


@pytest.mark.parametrize(
    ("written", "normalized"),
    [("0123", "123"), ("GR6", "gr6"), ("017a", "17a"), ("*45", "★45"), ("XLN-117", "xln-117"), ("0", "0"), ("T", "t")],
)
def test_numbers_are_compared_without_zeros_and_case(written: str, normalized: str) -> None:
    """The one spelling by which numbers are compared."""
    assert normalize_number(written) == normalized


@pytest.mark.parametrize(
    ("read", "artist", "expected"),
    [
        ("JOHN AVON", "John Avon", True),
        ("Martina Fackova", "Martina Fačková", True),
        ("Parente", "Paolo Parente", True),
        ("Izzy", "Izzy", True),
        ("1zzy", "Izzy", None),
        ("Simon Dominic Buy-a-Box", "Simon Dominic", True),
        ("Anson Maddocks", "Christopher Rush", False),
        ("Pa", "Patrick Ho", None),
        ("", "Patrick Ho", None),
        ("Kev Walker", "Kev Walker & Ron Spears", True),
    ],
)
def test_artists_agree_differ_or_cannot_be_told(read: str, artist: str, expected: bool | None) -> None:
    """Three answers, for a garbled reading is neither agreement nor disagreement."""
    assert same_artist(read, artist) is expected


def test_one_slip_is_near_and_two_are_not() -> None:
    """A character lost, gained or taken for another."""
    assert all(is_near("172", other) for other in ("172", "17", "1723", "l72", "173"))
    assert not any(is_near("172", other) for other in ("1", "271", "18", "17234"))


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "text",
        {},
        {"collector_line": None, "legal_line": [], "artist": 3, "quality": "x"},
        {"collector_line": {"error": "ValueError: no"}, "artist": {"error": "x", "artist": "Nobody"}},
        {"collector_line": {"number": "", "set_code": 7, "confidence": "high"}, "legal_line": {"copyright_year": 9}},
        {"collector_line": {"number": "promo"}, "legal_line": {"copyright_year": True}, "quality": {"truncated": None}},
    ],
)
def test_malformed_readings_are_readings_of_nothing(stored: object) -> None:
    """Whatever an extractor left, the calculators see absent evidence."""
    assert parse_readings(stored) == Readings()


def test_printed_lines_of_an_ordinary_printing_are_its_own() -> None:
    """Short codes that begin with a t or p are sets, not token or promo sets."""
    assert printed_lines("tsp", "157") == (("tsp", "157"),)
    assert printed_lines("pls", "4") == (("pls", "4"),)
