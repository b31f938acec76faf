"""The scorer: probabilities that sum to 1, and what may and may not move them."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.readings import Readings, parse_readings
from cardpicker.stage_d.scorer import Scores, score
from cardpicker.stage_d.scorer_parameters import scorer_parameters
from cardpicker.stage_d.subjects import Subject
from cardpicker.tests.stage_d_cases import candidate, subject

#: Of a shared host nobody knows how long anything takes.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ARTISTS = ("Kev Walker", "Anson Maddocks", "Jeremy Enecio")
SETS = ("m12", "eve", "mm3", "plst", "lea", "ktk", "pktk")
NUMBERS = ("6", "7", "16", "91", "182", "182s")


@st.composite
def printings(draw: st.DrawFn) -> tuple[Candidate, ...]:
    """Return one to eight printings of a name."""
    count = draw(st.integers(1, 8))
    return tuple(
        replace(
            candidate(
                pk,
                (code := draw(st.sampled_from(SETS))),
                f"EVE-{number}" if (number := draw(st.sampled_from(NUMBERS))) and code == "plst" else number,
                artist=draw(st.sampled_from((None, *ARTISTS))),
                language=draw(st.sampled_from(("en", "en", "fr"))),
                border_color=draw(st.sampled_from(("black", "white", "borderless", None))),
            ),
            released_at=draw(st.sampled_from((None, dt.date(1993, 8, 5), dt.date(2008, 7, 25), dt.date(2017, 3, 17)))),
            rarity=draw(st.sampled_from(("", "common", "rare"))),
            frame=draw(st.sampled_from(("", "1993", "2003", "2015"))),
            art_hash=draw(st.sampled_from((None, 0x0F0F, 0xFF00FF00FF))),
        )
        for pk in range(1, count + 1)
    )


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "number": st.sampled_from(NUMBERS),
    "set_code": st.sampled_from((*SETS[:5], "zzz")),
    "language": st.sampled_from(("en", "fr", "de")),
    "rarity": st.sampled_from(("c", "r", "t")),
    "row_artist": st.sampled_from(ARTISTS),
    "artist": st.sampled_from(ARTISTS),
    "line_confidence": st.sampled_from((0.5, 0.8, 0.95)),
    "copyright_year": st.sampled_from((1993, 2007, 2008, 2017, 2024)),
    "border_color": st.sampled_from(("black", "white")),
    "frame": st.sampled_from(("1993", "2003", "2015", "borderless")),
    "art_hash": st.sampled_from((0x0F0F, 0xFF00FF00FF)),
    "corner_radius_mm": st.sampled_from((2.7, 3.5, 4.3)),
    "list_mark": st.booleans(),
}
readings = st.fixed_dictionaries({}, optional=FIELDS)


def scored(subject_: Subject) -> Scores:
    """Return the scores by the package's parameters."""
    return score(subject_, scorer_parameters())


def by_id(scores: Scores) -> dict[int, float]:
    """Return the probabilities by printing."""
    return {each.id: p for each, p in zip(scores.candidates, scores.probabilities, strict=True)}


@patient
@given(printings(), readings)
def test_probabilities_and_something_else_sum_to_one(pool: tuple[Candidate, ...], read: dict[str, Any]) -> None:
    """By name and by line, whatever was read."""
    for each in (subject(*pool, **read), subject(owners=pool, **read)):
        scores = scored(each)

        assert sum(scores.probabilities) + scores.something_else == pytest.approx(1.0)
        assert all(0.0 <= p <= 1.0 for p in (*scores.probabilities, scores.something_else))


@patient
@given(printings(), readings, st.randoms(use_true_random=False))
def test_the_order_of_candidates_changes_nothing(
    pool: tuple[Candidate, ...], read: dict[str, Any], chance: random.Random
) -> None:
    """Neither probabilities nor the ranking depend on it."""
    shuffled = list(pool)
    chance.shuffle(shuffled)

    first, second = scored(subject(*pool, **read)), scored(subject(*shuffled, **read))

    assert by_id(first) == pytest.approx(by_id(second))
    assert first.something_else == pytest.approx(second.something_else)


UNREAD = {
    "collector_line": {"number": None, "set_code": None, "language": None, "rarity": None, "confidence": 0.0},
    "legal_line": {"copyright_year": None, "proxy_marks": ["not for sale"]},
    "artist": {"artist": None},
    "frame": {"frame": None, "bottom_border_mm": None},
    "quality": {"border_color": None},
    "the_list_mark": {"mark": None, "confidence": 0.0},
    "art_hash": {"hash": None},
    "corners": {"radius_mm": None},
}


@patient
@given(printings(), st.sampled_from(sorted(UNREAD)))
def test_a_feature_that_was_not_read_changes_nothing(pool: tuple[Candidate, ...], extractor: str) -> None:
    """Not run, run without a reading, and failed are the same."""
    stored = {"artist": {"artist": "Kev Walker"}} if extractor != "artist" else {}
    without = Subject(card_id=1, readings=parse_readings(stored), candidates=pool)

    for reading in (UNREAD[extractor], {"error": "ValueError"}):
        with_it = Subject(card_id=1, readings=parse_readings({**stored, extractor: reading}), candidates=pool)

        assert scored(with_it).probabilities == scored(without).probabilities


def agreeing(printing: Candidate) -> dict[str, dict[str, Any]]:
    """Return, by feature, the readings that agree with a printing."""
    code, number = printing.lines[0]
    found: dict[str, dict[str, Any]] = {
        "line": {"set_code": code, "number": number},
        "list_mark": {"list_mark": printing.set_code == "plst"},
        "language": {"language": printing.language},
    }
    if printing.artist:
        found["artist"] = {"row_artist": printing.artist}
    if printing.dated:
        found["copyright_year"] = {"copyright_year": printing.dated.year}
    if printing.rarity:
        found["rarity"] = {"rarity": printing.rarity[0]}
    if printing.frame:
        found["frame"] = {"frame": printing.frame}
    if printing.art_hash:
        found["art_hash"] = {"art_hash": printing.art_hash}
    return found


@patient
@given(printings(), readings, st.data())
def test_an_agreeing_feature_never_favors_a_printing_that_agrees_less(
    pool: tuple[Candidate, ...], read: dict[str, Any], data: st.DataObject
) -> None:
    """Its odds against every other printing, and against something else, stay or rise."""
    favored = data.draw(st.sampled_from(pool))
    feature, added = data.draw(st.sampled_from(sorted(agreeing(favored).items())))
    before = {key: value for key, value in read.items() if key not in added and feature not in ("line",)}
    if feature == "artist":
        before.pop("artist", None)
    if feature in ("language", "rarity", "line"):
        before["line_confidence"] = 0.95

    first, second = scored(subject(*pool, **before)), scored(subject(*pool, **before, **added))

    old, new = by_id(first), by_id(second)
    for other in pool:
        assert new[favored.id] * old[other.id] >= old[favored.id] * new[other.id] * (1 - 1e-9)
    assert new[favored.id] * first.something_else >= old[favored.id] * second.something_else * (1 - 1e-9)


def test_two_readings_of_the_same_pixels_count_once() -> None:
    """The artist of the row is not heard again as the artist of the band."""
    pool = (candidate(1, "eve", "6", artist="Jeremy Enecio"), candidate(2, "mm3", "6", artist="Kev Walker"))

    row = scored(subject(*pool, row_artist="Jeremy Enecio"))
    both = scored(subject(*pool, row_artist="Jeremy Enecio", artist="Jeremy Enecio"))

    assert row.probabilities == both.probabilities


def test_a_printing_of_the_list_is_as_probable_as_its_original() -> None:
    """It bears the original's whole line, and the catalog knows neither its artist nor the year on it."""
    original = replace(candidate(1, "eve", "6", year=2008, artist="Jeremy Enecio"), rarity="uncommon", frame="2003")
    listed = candidate(2, "plst", "EVE-6", year=2020)
    read: dict[str, Any] = {
        "number": "6",
        "artist": "Jeremy Enecio",
        "copyright_year": 2008,
        "rarity": "u",
        "frame": "2003",
    }

    first, second = scored(subject(original, listed, **read)).probabilities

    assert first == second > 0.49


def test_what_is_known_of_a_reprint_only_holds_for_its_original() -> None:
    """Their artist is one; neither is favored for being better known."""
    original, listed = candidate(1, "eve", "6"), candidate(2, "plst", "EVE-6", artist="Jeremy Enecio")

    first, second = scored(subject(original, listed, artist="Jeremy Enecio")).probabilities
    unread, _ = scored(subject(original, listed)).probabilities

    assert first == second > unread


def test_alpha_and_beta_are_told_apart_by_their_corners_only() -> None:
    """Nothing else on the card differs."""
    alpha = candidate(1, "lea", "161", year=1993, artist="Christopher Rush")
    beta = candidate(2, "leb", "162", year=1993, artist="Christopher Rush")

    even = scored(subject(alpha, beta, artist="Christopher Rush", copyright_year=1993)).probabilities
    rounder = scored(subject(alpha, beta, artist="Christopher Rush", corner_radius_mm=4.3)).probabilities

    assert even[0] == even[1]
    assert rounder[0] > 10 * rounder[1]


def test_a_printing_whose_artist_is_unknown_is_not_beaten_for_that() -> None:
    """Printings of one name often share their artist."""
    known = candidate(1, "frf", "146", year=2015, artist="James Ryman")
    unknown = candidate(2, "ugin", "146", year=2015)

    first, second = scored(subject(known, unknown, set_code="frf", number="146", artist="James Ryman")).probabilities

    assert first < 2 * second


def test_equal_readings_of_a_name_of_hundreds_leave_each_a_small_share() -> None:
    """A basic land of which nothing was read could be any."""
    pool = tuple(candidate(pk, f"x{pk:03d}", "1") for pk in range(1, 761))

    scores = scored(Subject(card_id=1, readings=Readings(), candidates=pool))

    assert max(scores.probabilities) == pytest.approx((1 - scores.something_else) / 760)
