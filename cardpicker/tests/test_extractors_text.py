"""The text extractors on stored rows: artist, legal line and collector line, without an image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors import artist, collector_line, legal_line
from cardpicker.stage_c.extractors.artist_names import best_artist, similarity
from cardpicker.stage_c.extractors.rows import ReadPass, passes_of
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.tests.test_collector_line_parse import KNOWN, row

IMAGE = NormalizedImage(
    rgb=np.zeros((9, 9, 3), np.uint8),
    gray=np.zeros((9, 9), np.uint8),
    format="PNG",
    mode="RGB",
    source_width_px=9,
    source_height_px=9,
    reduced_by=1,
)
LEXICON = Lexicon(set_codes=KNOWN)


def stored(*texts: str, confidence: float = 0.9) -> dict[str, Reading]:
    read = ReadPass(variant="gray", rows=tuple(row(t, n, confidence=confidence) for n, t in enumerate(texts)))
    return {"bottom_text": {"passes": [read.to_json()], "engine": "test"}}


def test_stored_rows_come_back_as_they_were() -> None:
    """Evidence can be parsed again without its image."""
    read = ReadPass(variant="gray", rows=(row("123/287 R"), row("MKM • EN", 1)))

    (again,) = passes_of({"passes": [read.to_json()]})

    assert again.to_json() == read.to_json()
    assert passes_of({"error": "ValueError: x"}) == passes_of(None) == ()


def test_collector_line_has_the_keys_that_others_rely_on() -> None:
    """Number, code, language, rarity and the row's artist are in the reading."""
    so_far = stored("123/287 R", "MKM • EN JOHN AVON")

    reading = collector_line.extract(IMAGE, so_far, ComputeContext(artists=("John Avon",)), LEXICON)

    expected = {
        "number": "123", "set_size": 287, "set_code": "mkm", "set_code_known": True, "rarity": "r", "language": "en",
        "artist_in_row": "John Avon", "variant": "gray", "engine": "test", "raw": "123/287 R | MKM • EN JOHN AVON",
    }  # fmt: skip
    assert {key: reading[key] for key in expected} == expected


def test_absent_text_is_null_everywhere() -> None:
    """Silence is no disagreement: an unread band gives nulls, not errors."""
    silences: list[dict[str, Reading]] = [{}, {"bottom_text": {"error": "OcrTimeoutError: x"}}]
    for so_far in silences:
        line = collector_line.extract(IMAGE, so_far, ComputeContext(), LEXICON)
        assert line["number"] is line["set_code"] is line["artist_in_row"] is None
        assert legal_line.extract(IMAGE, so_far, ComputeContext(), LEXICON)["copyright_year"] is None
        assert artist.extract(IMAGE, so_far, ComputeContext(), LEXICON)["artist"] is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Illus. © Christopher Rush", "Christopher Rush"),
        ("Mlus. © Christopher Rush", "Christopher Rush"),
        ("—<- Christopher Rush", "Christopher Rush"),
        ("MKM • EN %© CHRISTOPHER RUSH", "Christopher Rush"),
        ("MKM • EN be CHRISTOPHFR RUSH", "Christopher Rush"),
        ("Illus. Somebody Else", "Somebody Else"),
        ("Somebody Else", None),
        ("Rush", None),
    ],
)
def test_artist_is_found_or_left_null(text: str, name: str | None) -> None:
    """Known artists are found wherever they stand; free text counts only after Illus."""
    context = ComputeContext(artists=("Christopher Rush", "Dan Frazier"))

    assert artist.extract(IMAGE, stored(text), context, LEXICON)["artist"] == name


def test_artists_of_one_word_need_a_closer_match() -> None:
    """Short names are near each other."""
    assert best_artist("Izzy", ("Izzy",))[0] == "Izzy"
    assert best_artist("Izza", ("Izzy",))[0] is None


def test_an_artist_is_found_among_what_pen_and_frame_read_as() -> None:
    """A name of several words may stand anywhere in a row; one of one word only at its end."""
    artists = ("Kev Walker", "Anson Maddocks", "Brom")

    assert best_artist("i “ ——<—> Kev Walker x igs {", artists)[0] == "Kev Walker"
    assert best_artist("the Brom of old days", artists)[0] is None


def test_the_nearest_artist_is_found_whatever_their_order() -> None:
    """A name that was read whole wins over near ones, also where two names differ by a diacritic alone."""
    near = ("Kev Walkers", "Kev Walker", "Kev Walter", "Brom")

    for artists in (near, near[::-1]):
        assert best_artist("x Kev Walker 7", artists) == ("Kev Walker", 1.0)
        assert best_artist("x Kew Walter 7", artists) == (
            "Kev Walter",
            round(similarity("Kew Walter", "Kev Walter"), 3),
        )
        assert best_artist("Jose Cabrera", (*artists, "Jose Cabrera", "José Cabrera")) == ("José Cabrera", 1.0)
        assert best_artist("", artists) == (None, 0.0)


def test_a_stored_row_keeps_that_it_is_cut() -> None:
    """A later parse of stored text must know it too."""
    for cut in (True, False):
        read = ReadPass(variant="gray", rows=(replace(row("135/269 U"), cut=cut),))
        (again,) = passes_of({"passes": [read.to_json()]})
        assert again.rows[0].cut is cut


def test_unmatched_artist_in_the_row_needs_two_clear_words() -> None:
    """Half a name would contradict the whole one."""
    for text, expected in (("MKM • EN MONTEIRO", None), ("MKM • EN CAIO MONTEIRO", "CAIO MONTEIRO")):
        reading = collector_line.extract(IMAGE, stored("123/287 R", text), ComputeContext(), LEXICON)
        assert reading["artist_in_row"] == expected
    faint = stored("123/287 R", "MKM • EN CAIO MONTEIRO", confidence=0.7)
    assert collector_line.extract(IMAGE, faint, ComputeContext(), LEXICON)["artist_in_row"] is None


@pytest.mark.parametrize(
    ("texts", "year", "marks"),
    [
        (("™ & © 2018 Wizards of the Coast",), 2018, []),
        (("™ & © 1993–2008 Wizards of the Coast, Inc. 182/249",), 2008, []),
        (("R Not For Sale", "MTG.Design"), None, ["mtg.design", "not for sale"]),
        (("WARPDANDY PROXY",), None, ["proxy"]),
        (("2018",), None, []),
        (("™ & © 2081 Wizards of the Coast",), None, []),
        (("™ & © 1993- Wizards of the Coast",), None, []),
    ],
)
def test_legal_line_gives_year_and_marks(texts: tuple[str, ...], year: int | None, marks: list[str]) -> None:
    """The latest plausible year of a legal row counts, and proxy marks are noted."""
    reading = legal_line.extract(IMAGE, stored(*texts), ComputeContext(), LEXICON)

    assert reading["copyright_year"] == year
    assert reading["proxy_marks"] == marks


def test_a_faint_year_is_null() -> None:
    """A doubtful year would veto printings."""
    so_far = stored("™ & © 2018 Wizards of the Coast", confidence=0.4)

    assert legal_line.extract(IMAGE, so_far, ComputeContext(), LEXICON)["copyright_year"] is None


@pytest.mark.parametrize(
    ("read", "year"),
    [
        ((("2011", 0.5), ("2011", 0.5)), 2011),
        ((("2014", 0.5), ("2011", 0.5), ("2011", 0.5)), 2011),
        ((("2014", 0.5), ("2011", 0.5)), None),
        ((("2014", 0.9), ("2011", 0.5), ("2011", 0.5)), 2014),
        ((("2014", 0.9), ("2011", 0.9)), None),
        ((("2011", 0.3), ("2011", 0.3)), None),
    ],
)
def test_a_year_is_read_clearly_or_fairly_and_twice(read: tuple[tuple[str, float], ...], year: int | None) -> None:
    """What was read clearly stands, unless another clear reading differs; of fair ones the majority does."""
    passes = [
        ReadPass(variant=str(n), rows=(row(f"™ & © 1993-{text} Wizards of the Coast", confidence=confidence),))
        for n, (text, confidence) in enumerate(read)
    ]

    assert legal_line.copyright_year(passes) == year
