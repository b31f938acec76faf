"""Fallback: when what the scorer makes of a card is a vote, and why it is none otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.fallback import judge_fallback
from cardpicker.stage_d.scorer_parameters import scorer_parameters
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Vote
from cardpicker.tests.stage_d_cases import candidate, subject

M12 = candidate(1, "m12", "182", year=2011, artist="Kev Walker")
LEA = candidate(2, "lea", "210", year=1993, artist="Anson Maddocks")
EVE = candidate(3, "eve", "6", year=2008, artist="Jeremy Enecio")
MM3 = candidate(4, "mm3", "6", year=2017, artist="Jeremy Enecio")


def judged(*candidates: Candidate, earlier: tuple[Any, ...] = (), **readings: Any) -> Vote | Abstained:
    """Return the verdict."""
    verdict = judge_fallback(subject(*candidates, **readings), earlier)
    assert isinstance(verdict, Vote | Abstained)
    return verdict


def outcome(*candidates: Candidate, **readings: Any) -> int | SkipReason | None:
    """Return the printing voted for, or the reason for none."""
    verdict = judged(*candidates, **readings)
    return verdict.printing_id if isinstance(verdict, Vote) else verdict.reason


def still_possible(*candidates: Candidate, **readings: Any) -> tuple[int, ...]:
    """Return the printings that an abstention leaves."""
    verdict = judged(*candidates, **readings)
    assert isinstance(verdict, Abstained)
    return verdict.survivors


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({"number": "6", "copyright_year": 2008}, 3),
        ({"number": "6", "copyright_year": 2008, "artist": "Jeremy Enecio"}, 3),
        ({"set_code": "eve", "artist": "Jeremy Enecio", "copyright_year": 2008}, 3),
        ({"number": "6", "copyright_year": 2008, "border_color": "white"}, 3),
        ({"number": "6"}, SkipReason.AMBIGUOUS),
        ({"artist": "Jeremy Enecio"}, SkipReason.AMBIGUOUS),
        ({"border_color": "white"}, SkipReason.AMBIGUOUS),
        ({}, SkipReason.AMBIGUOUS),
        ({"set_code": "eve"}, SkipReason.TOO_LITTLE),
        ({"set_code": "eve", "number": "7", "artist": "Jeremy Enecio"}, SkipReason.TOO_LITTLE),
        ({"set_code": "eve", "number": "123", "artist": "Jeremy Enecio"}, SkipReason.NONE_FITS),
        ({"set_code": "eve", "artist": "Kev Walker"}, SkipReason.NONE_FITS),
        ({"number": "6", "copyright_year": 2008, "row_artist": "Kev Walker"}, SkipReason.NONE_FITS),
        ({"number": "6", "copyright_year": 2002, "artist": "Jeremy Enecio"}, SkipReason.NONE_FITS),
        ({"number": "6", "copyright_year": 2008, "truncated": True}, SkipReason.TRUNCATED),
    ],
)
def test_independent_readings_that_agree_make_a_vote(readings: dict[str, Any], expected: object) -> None:
    """Less abstains, and says whether too much is possible, too little was read, or nothing fits."""
    assert outcome(EVE, MM3, **readings) == expected


def test_a_vote_is_as_sure_as_its_probability() -> None:
    """It is above the threshold, and its grounds go with it."""
    vote = judged(EVE, MM3, number="6", copyright_year=2008)

    assert isinstance(vote, Vote)
    assert vote.confidence == vote.ranking[0].probability >= scorer_parameters().threshold
    assert [ranked.printing_id for ranked in vote.ranking] == [3, 4]
    assert {reason.feature: reason.odds > 1 for reason in vote.ranking[0].reasons} == {
        "number": True,
        "copyright_year": True,
    }


def test_a_misread_number_is_weighed_by_how_sure_the_reader_is() -> None:
    """Below 0.9 a near number stays possible; year and artist then tell."""
    m14 = candidate(1, "m14", "91", year=2013, artist="Rob Alexander")
    m13 = candidate(2, "m13", "81", year=2012, artist="Rob Alexander")
    unsure: dict[str, Any] = {"number": "91", "artist": "Rob Alexander", "line_confidence": 0.8}

    assert outcome(m14, m13, number="91", artist="Rob Alexander", copyright_year=2013) == 1
    assert set(still_possible(m14, m13, **unsure)) == {1, 2}
    assert outcome(m14, m13, **unsure, copyright_year=2013) == 1


def test_set_code_and_number_of_two_printings_are_no_vote_for_either() -> None:
    """Whatever the artist; both stay possible."""
    collectors = candidate(1, "ced", "167", artist="Anson Maddocks")
    revised = candidate(2, "3ed", "168", artist="Anson Maddocks")

    left = still_possible(collectors, revised, set_code="ced", number="168", artist="Anson Maddocks")

    assert set(left) == {1, 2}


def test_an_artist_alone_does_not_choose_among_printings() -> None:
    """One agreement is a guess."""
    assert outcome(M12, LEA, artist="Kev Walker") == SkipReason.TOO_LITTLE


def test_a_printing_whose_artist_is_unknown_survives_any_artist() -> None:
    """What the catalog does not know strikes out nobody."""
    anonymous = candidate(5, "dbl", "507")

    assert still_possible(M12, anonymous, artist="Kev Walker", copyright_year=2011) == (1, 5)


def test_the_list_s_twin_survives_with_its_original() -> None:
    """It bears the original's whole line, year included, whenever it was released."""
    listed = candidate(6, "plst", "EVE-6", year=2020)
    read: dict[str, Any] = {"number": "6", "copyright_year": 2008, "artist": "Jeremy Enecio"}

    assert outcome(EVE, listed, **read) == SkipReason.AMBIGUOUS
    assert outcome(EVE, listed, **read, list_mark=True) == 6
    assert outcome(EVE, listed, **read, list_mark=False) == 3


def test_the_only_printing_of_a_name_is_no_vote_by_one_reading() -> None:
    """Customs have names of real cards, too."""
    assert outcome(LEA, artist="Anson Maddocks", set_code="lea", copyright_year=1993) == 2
    assert outcome(LEA, artist="Anson Maddocks") == SkipReason.TOO_LITTLE
    assert outcome(LEA, copyright_year=1993) == SkipReason.TOO_LITTLE
    assert outcome(LEA) == SkipReason.TOO_LITTLE
    assert outcome(LEA, artist="Kev Walker") == SkipReason.NONE_FITS


def test_art_and_age_never_make_a_vote_alone() -> None:
    """They only narrow: something that names the printing must have been read."""
    art = replace(LEA, art_hash=0xFF00FF, frame="1993")
    look: dict[str, Any] = {"art_hash": 0xFF00FF, "frame": "1993", "copyright_year": 1993, "corner_radius_mm": 4.26}

    assert outcome(art, **look) == SkipReason.TOO_LITTLE
    assert outcome(art, **look, artist="Anson Maddocks") == 2


def test_a_number_that_was_read_otherwise_is_no_ground_for_a_vote() -> None:
    """However probable a slip is, and whatever else agrees."""
    art = replace(LEA, art_hash=0xFF00FF, frame="1993", rarity="rare")
    rest: dict[str, Any] = {"artist": "Anson Maddocks", "copyright_year": 1993, "art_hash": 0xFF00FF, "rarity": "r"}

    assert outcome(art, **rest, number="210", line_confidence=0.8) == 2
    assert outcome(art, **rest, number="211", line_confidence=0.8) == SkipReason.TOO_LITTLE


def test_another_artist_forbids_a_vote_at_any_probability() -> None:
    """It came out of wrong votes, and no rate undoes it."""
    art = replace(LEA, art_hash=0xFF00FF, frame="1993", rarity="rare")
    rest: dict[str, Any] = {"set_code": "lea", "number": "210", "copyright_year": 1993, "corner_radius_mm": 4.26}
    rest |= {"art_hash": 0xFF00FF, "frame": "1993", "rarity": "r"}

    verdict = judged(art, **rest, row_artist="Kev Walker")

    assert isinstance(verdict, Abstained) and verdict.reason == SkipReason.NONE_FITS
    assert verdict.ranking[0].probability > scorer_parameters().threshold
    assert outcome(art, **rest, row_artist="Anson Maddocks") == 2


def test_a_language_speaks_against_other_languages() -> None:
    """A French line is not the English printing where the catalog has both, and may be where it has no French."""
    english = candidate(1, "ren", "5", artist="Drew Tucker")
    french = candidate(2, "ren", "5", language="fr", artist="Drew Tucker")

    ranked = judged(english, french, language="fr", artist="Drew Tucker").ranking
    assert ranked[0].printing_id == 2 and ranked[0].probability > 10 * ranked[1].probability
    assert "language" not in {
        r.feature for r in judged(english, language="de", artist="Drew Tucker").ranking[0].reasons
    }


def test_emblems_and_art_cards_are_no_candidates() -> None:
    """They are met by their own line only."""
    emblem = candidate(9, "tdom", "1", layout="emblem", artist="Kev Walker")

    assert outcome(emblem, artist="Kev Walker") == SkipReason.UNKNOWN_NAME


def test_an_earlier_vote_leaves_nothing_to_do() -> None:
    """The calculators judge in order."""
    vote = Vote(printing_id=1, confidence=0.85)

    assert outcome(EVE, earlier=(vote,), set_code="eve") == SkipReason.SETTLED_EARLIER


OWNER = replace(candidate(7, "neo", "172", year=2022, artist="Lindsey Look"), rarity="uncommon")
ANONYMOUS = replace(OWNER, artist=None)
GERMAN: dict[str, Any] = {"set_code": "neo", "number": "172", "language": "de"}
FULL: dict[str, Any] = {**GERMAN, "copyright_year": 2022, "rarity": "u"}


def test_a_translated_name_is_named_by_a_foreign_line_that_all_agrees() -> None:
    """By its artist or, where the catalog lacks that, by year and rarity."""
    assert outcome(owners=(OWNER,), **GERMAN, row_artist="LINDSEY LOOK") == 7
    assert outcome(owners=(ANONYMOUS,), **FULL, row_artist="LINDSEY LOOK") == 7


def test_an_english_line_under_an_unknown_name_takes_artist_year_and_rarity() -> None:
    """Nicknames and misspelled names are of real cards, too; a card of another name does not share the artist."""
    assert outcome(owners=(OWNER,), **{**FULL, "language": "en"}, row_artist="LINDSEY LOOK") == 7


@pytest.mark.parametrize(
    "readings",
    [
        GERMAN,
        {**GERMAN, "rarity": "u"},
        {**GERMAN, "row_artist": "Andrew Olson"},
        {**FULL, "row_artist": "Andrew Olson"},
        {**FULL, "row_artist": "LINDSEY LOOK", "line_confidence": 0.4},
        {**FULL, "row_artist": "LINDSEY LOOK", "copyright_year": 2010},
        {**FULL, "rarity": "m"},
        {**FULL, "language": "en"},
        {**FULL, "language": None},
        {**GERMAN, "copyright_year": 2023, "rarity": "c"},
    ],
)
def test_an_unknown_name_takes_a_foreign_line_without_contradiction(readings: dict[str, Any]) -> None:
    """An English line under an unknown name is as likely a custom card's."""
    assert outcome(owners=(OWNER,), **readings) == SkipReason.UNKNOWN_NAME


def test_an_english_line_under_an_unknown_name_is_no_vote_without_its_artist() -> None:
    """As a custom card's is, that was given a line of the catalog."""
    english = {**FULL, "language": "en"}

    assert outcome(owners=(ANONYMOUS,), **english, row_artist="Andrew Olson") == SkipReason.UNKNOWN_NAME
    assert outcome(owners=(OWNER,), **english, row_artist="Andrew Olson") == SkipReason.UNKNOWN_NAME


def test_a_foreign_line_under_a_known_name_is_weighed_among_that_name_s_printings() -> None:
    """The line's owner is no candidate: an English name that is not its own is a misnamed file."""
    verdict = judged(EVE, MM3, owners=(OWNER,), **FULL)

    assert isinstance(verdict, Abstained)
    assert {ranked.printing_id for ranked in verdict.ranking} == {3, 4}


def test_two_owners_of_one_line_are_said_to_be_so() -> None:
    """A reprint in The List bears it, too."""
    listed = candidate(8, "plst", "NEO-172")

    assert outcome(owners=(OWNER, listed), **FULL, row_artist="LINDSEY LOOK") == SkipReason.SAME_LINE
