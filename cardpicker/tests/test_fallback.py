"""Fallback: independent readings that leave one printing."""

from __future__ import annotations

from typing import Any

import pytest

from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.fallback import judge_fallback
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Vote
from cardpicker.tests.stage_d_cases import candidate, subject

M12 = candidate(1, "m12", "182", year=2011, artist="Kev Walker")
LEA = candidate(2, "lea", "210", year=1993, artist="Anson Maddocks")
EVE = candidate(3, "eve", "6", year=2008, artist="Jeremy Enecio")
MM3 = candidate(4, "mm3", "6", year=2017, artist="Jeremy Enecio")


def outcome(*candidates: Candidate, earlier: tuple[Any, ...] = (), **readings: Any) -> int | SkipReason | None:
    """Return the printing voted for, or the reason for none."""
    judged = judge_fallback(subject(*candidates, **readings), earlier)
    assert isinstance(judged, Vote | Abstained)
    return judged.printing_id if isinstance(judged, Vote) else judged.reason


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({"number": "6", "copyright_year": 2008}, 3),
        ({"number": "6", "copyright_year": 2008, "artist": "Jeremy Enecio"}, 3),
        ({"number": "6"}, SkipReason.AMBIGUOUS),
        ({"number": "6", "copyright_year": 2017}, SkipReason.AMBIGUOUS),
        ({"artist": "Jeremy Enecio"}, SkipReason.AMBIGUOUS),
        ({"set_code": "eve", "artist": "Jeremy Enecio"}, 3),
        ({"set_code": "eve", "number": "7", "artist": "Jeremy Enecio"}, 3),
        ({"set_code": "eve", "number": "123", "artist": "Jeremy Enecio"}, SkipReason.NONE_FITS),
        ({"set_code": "eve", "artist": "Kev Walker"}, SkipReason.NONE_FITS),
        ({"set_code": "eve"}, SkipReason.TOO_LITTLE),
        ({}, SkipReason.AMBIGUOUS),
        ({"set_code": "eve", "artist": "Jeremy Enecio", "truncated": True}, SkipReason.TRUNCATED),
        ({"border_color": "white"}, SkipReason.AMBIGUOUS),
        ({"set_code": "eve", "artist": "Jeremy Enecio", "border_color": "white"}, 3),
    ],
)
def test_one_survivor_with_two_agreements_is_voted_for(readings: dict[str, Any], expected: object) -> None:
    """Anything less abstains; the border plays no part."""
    assert outcome(EVE, MM3, **readings) == expected


def test_full_agreement_outweighs_printings_that_only_a_slip_would_make() -> None:
    """Number, artist and year together choose; any two of them leave the near number possible."""
    m14 = candidate(1, "m14", "91", year=2013, artist="Rob Alexander")
    m13 = candidate(2, "m13", "81", year=2012, artist="Rob Alexander")

    assert outcome(m14, m13, number="91", artist="Rob Alexander", copyright_year=2013) == 1
    assert outcome(m14, m13, number="91", artist="Rob Alexander") == SkipReason.AMBIGUOUS
    assert outcome(m14, m13, number="91", copyright_year=2013) == SkipReason.AMBIGUOUS


def test_a_number_that_another_printing_has_is_not_taken_for_a_slip() -> None:
    """Set code and number that contradict each other are no vote, whatever the artist."""
    collectors = candidate(1, "ced", "167", artist="Anson Maddocks")
    revised = candidate(2, "3ed", "168", artist="Anson Maddocks")

    assert outcome(collectors, revised, set_code="ced", number="168", artist="Anson Maddocks") == SkipReason.NONE_FITS


def test_an_artist_alone_does_not_choose_among_printings() -> None:
    """One agreement is a guess where the name has several printings."""
    assert outcome(M12, LEA, artist="Kev Walker") == SkipReason.TOO_LITTLE


def test_a_printing_whose_artist_is_unknown_survives_any_artist() -> None:
    """What the catalog does not know strikes out nobody."""
    anonymous = candidate(5, "dbl", "507")

    assert outcome(M12, anonymous, artist="Kev Walker", copyright_year=2011) == SkipReason.AMBIGUOUS


def test_the_list_s_twin_survives_with_its_original() -> None:
    """It bears the original's whole line, year included, whenever it was released."""
    listed = candidate(6, "plst", "EVE-6", year=2020, artist="Jeremy Enecio")

    assert outcome(EVE, listed, number="6", copyright_year=2008, artist="Jeremy Enecio") == SkipReason.AMBIGUOUS


def test_the_only_printing_of_a_name_needs_something_telling() -> None:
    """Its artist or set code will do; a year or nothing at all will not."""
    assert outcome(LEA, artist="Anson Maddocks") == 2
    assert outcome(LEA, set_code="lea") == 2
    assert outcome(LEA, copyright_year=1993) == SkipReason.TOO_LITTLE
    assert outcome(LEA) == SkipReason.TOO_LITTLE
    assert outcome(LEA, artist="Kev Walker") == SkipReason.NONE_FITS


def test_a_language_strikes_out_other_languages() -> None:
    """A French line is not the English printing where the catalog has both, and may be where it has no French."""
    english = candidate(1, "ren", "5", artist="Drew Tucker")
    french = candidate(2, "ren", "5", language="fr", artist="Drew Tucker")

    assert outcome(english, french, language="fr", artist="Drew Tucker") == 2
    assert outcome(english, language="de", set_code="ren", artist="Drew Tucker") == 1


def test_an_earlier_vote_leaves_nothing_to_do() -> None:
    """The calculators judge in order."""
    vote = Vote(printing_id=1, confidence=0.85)

    assert outcome(EVE, earlier=(vote,), set_code="eve") == SkipReason.SETTLED_EARLIER


def test_an_unknown_name_is_named_by_a_whole_line_and_its_artist() -> None:
    """A translated name is not in the catalog; line and artist together are enough, either alone is not."""
    owner = candidate(7, "neo", "172", year=2022, artist="Lindsey Look")
    line: dict[str, Any] = {"set_code": "neo", "number": "172", "language": "de", "owners": (owner,)}

    assert outcome(**line, row_artist="LINDSEY LOOK") == 7
    assert outcome(**line) == SkipReason.UNKNOWN_NAME
    assert outcome(**line, row_artist="Andrew Olson") == SkipReason.UNKNOWN_NAME
    assert outcome(**line, row_artist="LINDSEY LOOK", line_confidence=0.4) == SkipReason.UNKNOWN_NAME
    assert outcome(**line, row_artist="LINDSEY LOOK", copyright_year=2010) == SkipReason.UNKNOWN_NAME
    anonymous = {**line, "owners": (candidate(7, "neo", "172"),)}
    assert outcome(**anonymous, row_artist="LINDSEY LOOK") == SkipReason.UNKNOWN_NAME
    listed = candidate(8, "plst", "NEO-172", artist="Lindsey Look")
    assert outcome(**{**line, "owners": (owner, listed)}, row_artist="LINDSEY LOOK") == SkipReason.SAME_LINE
