"""Lines as they stand on real cards, from the text of the rows to the vote or the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cardpicker.models import CanonicalCard, CardPrintingTag, ReviewItem, ReviewReason
from cardpicker.stage_c.extractors.collector_parse import parse_rows
from cardpicker.stage_c.extractors.rows import ReadRow, ReadWord
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.subjects import load_subjects
from cardpicker.tests.stage_d_cases import make_printing, read_card

pytestmark = pytest.mark.django_db

KNOWN = frozenset({"frf", "xln", "emn", "2x2", "grn", "med", "isd", "dom", "m15", "mkm", "eld", "akh", "neo"})


def line_of(*texts: str) -> dict[str, Any]:
    """Read rows as the reader does, and return what it stores of them."""
    rows = [
        ReadRow(
            words=tuple(ReadWord(text=word, confidence=0.95) for word in text.split()),
            left_mm=4.0,
            top_mm=82.6 + 1.6 * place,
            right_mm=4.0 + len(text),
            bottom_mm=83.8 + 1.6 * place,
            glyph_mm=1.1,
        )
        for place, text in enumerate(texts)
    ]
    read = parse_rows(rows, KNOWN)
    assert read.number is not None
    return {
        "number": read.number.number,
        "set_size": read.number.set_size,
        "set_code": read.set.code.code if read.set else None,
        "language": read.set.language if read.set else None,
    }


@dataclass(frozen=True)
class Real:
    """A real printing."""

    name: str
    set_code: str
    number: str
    layout: str = "normal"

    def stored(self) -> CanonicalCard:
        return make_printing(self.name, self.set_code, self.number, layout=self.layout)


REVEL = (Real("Revel in Riches", "xln", "117"), Real("Revel in Riches", "plst", "XLN-117"))
WILDCALL = (Real("Wildcall", "frf", "146"), Real("Wildcall", "ugin", "146"), Real("Wildcall", "pfrf", "146s"))
BRISELA = (
    Real("Brisela, Voice of Nightmares", "emn", "15b", "meld"),
    Real("Bruna, the Fading Light", "emn", "15a", "meld"),
)
MAYOR = (Real("Mayor of Avabruck // Howlpack Alpha", "isd", "193", "transform"),)
TREASURE = (Real("Treasure", "t2x2", "20", "token"), Real("Treasure", "txln", "7", "token"))
PINGER = (Real("Impervious Greatwurm", "grn", "273"), Real("Impervious Greatwurm", "pgrn", "273p"))
SERPOPARD = (Real("Prowling Serpopard", "akh", "180"), Real("Prowling Serpopard", "pakh", "180s"))
TEFERI = (Real("Teferi, Hero of Dominaria", "med", "GR6"), Real("Teferi, Hero of Dominaria", "dom", "207"))


@pytest.mark.parametrize(
    ("name", "rows", "printings", "expected"),
    [
        ("Howlpack Alpha", ("193/264 R", "ISD • EN  DAN SCOTT"), MAYOR, "193"),
        ("Mayor of Avabruck", ("193/264 R", "ISD • EN  DAN SCOTT"), MAYOR, "193"),
        ("Brisela, Voice of Nightmares", ("015b/205 M", "EMN • EN  CLINT CEARLEY"), BRISELA, "15b"),
        ("Brisela, Voice of Nightmares", ("015/205 M", "EMN • EN  CLINT CEARLEY"), BRISELA, "15b"),
        ("Bruna, the Fading Light", ("015a/205 R", "EMN • EN  CLINT CEARLEY"), BRISELA, "15a"),
        ("Treasure", ("020/024 T", "2X2 • EN  CHUCK LUKACS"), TREASURE, "20"),
        # A prerelease card with this line would bear a date stamp.
        ("Prowling Serpopard", ("180/269 R", "AKH • EN  TYLER JACOBSON"), SERPOPARD, "180"),
        # Totals that say nothing: a promo beyond its set's size, a set of eight that has nine, one read wrong.
        ("Impervious Greatwurm", ("273/259 M Buy-a-Box", "GRN•EN  SIMON DOMINIC"), PINGER, "273"),
        ("Impervious Greatwurm", ("273/529 M", "GRN•EN  SIMON DOMINIC"), PINGER, "273"),
        ("Teferi, Hero of Dominaria", ("GR6/008 M Masterpiece", "MED•EN  YONGJAE CHOI"), TEFERI, "GR6"),
        ("Teferi, Hero of Dominaria", ("207/269 M", "DOM•EN  CHRIS RALLIS"), TEFERI, "207"),
        ("Teferi, Hero of Dominaria", ("207/280 M", "DOM•EN  CHRIS RALLIS"), TEFERI, "207"),
    ],
)
def test_a_line_names_its_printing(
    name: str, rows: tuple[str, ...], printings: tuple[Real, ...], expected: str
) -> None:
    """Back faces by their front's number, melded backs with and without their letter, tokens, totals of any kind."""
    for printing in printings:
        printing.stored()
    card = read_card(name, line=line_of(*rows))

    run_stage_d([card.pk], run_id="r")

    vote = CardPrintingTag.objects.get(card=card)
    assert vote.printing is not None
    assert vote.printing.collector_number == expected


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("name", "rows", "printings"),
    [
        ("Wildcall", ("146/185 R", "FRF • EN  ADAM PAQUETTE"), WILDCALL),
        ("Revel in Riches", ("117/279 R", "XLN • EN  ERIC DESCHAMPS"), REVEL),
    ],
)
def test_a_line_of_several_printings_is_a_question_with_all_of_them(
    name: str, rows: tuple[str, ...], printings: tuple[Real, ...], backwards: bool
) -> None:
    """The card is known and the printing is not: nobody is picked, in whichever order the catalog has them."""
    stored = [printing.stored() for printing in (reversed(printings) if backwards else printings)]
    card = read_card(name, line=line_of(*rows))

    for _ in range(2):
        run_stage_d([card.pk], run_id="r")

        assert not CardPrintingTag.objects.exists()
        item = ReviewItem.objects.get()
        assert item.reason == ReviewReason.AMBIGUOUS
        assert "same-printed-line" in item.detail
        assert set(item.survivors) == {printing.pk for printing in stored}


def test_six_printings_of_one_art_without_a_line_are_all_asked_about() -> None:
    """The line is cut away and the art is that of all six: one of six, the same six on every repeat."""
    art = {"kind": "phash64-art-v2", "hash": "0f0f0f0f0f0f0f0f"}
    stored = [
        make_printing("Reclamation Sage", code, str(number), art_hash=0x0F0F_0F0F_0F0F_0F0F)
        for number, code in enumerate(("m15", "c14", "c17", "dmr", "cmr", "ima"), 1)
    ]
    other = make_printing("Reclamation Sage", "plg", "9", art_hash=~0x0F0F_0F0F_0F0F_0F0F)
    card = read_card("Reclamation Sage", readings={"art_hash": art})
    asked = []
    for run in ("r1", "r2"):
        run_stage_d([card.pk], run_id=run)
        asked.append(ReviewItem.objects.get().survivors)

    assert not CardPrintingTag.objects.exists()
    assert asked[0] == asked[1]
    assert set(asked[0]) == {printing.pk for printing in stored}
    assert other.pk not in asked[0]


@pytest.mark.parametrize(
    ("written", "name", "has_art"),
    [
        ("Mayor of Avabruck", "Mayor of Avabruck // Howlpack Alpha", True),
        ("Mayor of Avabruck // Howlpack Alpha", "Mayor of Avabruck // Howlpack Alpha", True),
        ("Howlpack Alpha", "Mayor of Avabruck // Howlpack Alpha", False),
        ("Ice", "Fire // Ice", False),
        ("Life (Death)", "Life // Death", True),
        ("Where", "Who // What // When // Where // Why", False),
        ("Who What When Where Why", "Who // What // When // Where // Why", True),
    ],
)
def test_a_face_is_a_candidate_and_never_has_another_face_s_art(written: str, name: str, has_art: bool) -> None:
    """Any face finds its printing; the art that the catalog knows is the first one's."""
    printing = make_printing(name, "isd", "193", art_hash=77)
    other = make_printing("Howl of the Horde", "ktk", "112", art_hash=78)
    card = read_card(written)

    (subject,) = load_subjects([card.pk])

    assert [(each.id, each.art_hash) for each in subject.candidates] == [(printing.pk, 77 if has_art else None)]
    assert other.pk not in {each.id for each in subject.candidates}


def test_a_planeswalker_is_not_taken_for_its_emblem_nor_a_card_for_a_token_of_its_name() -> None:
    """Emblem and art card share the name and a number; without their own line they are never met."""
    walker = make_printing("Ajani, Adversary of Tyrants", "m19", "3")
    make_printing("Ajani, Adversary of Tyrants Emblem", "tm19", "3", layout="emblem")
    make_printing("Ajani, Adversary of Tyrants", "am19", "3", layout="art_series")
    card = read_card("Ajani, Adversary of Tyrants", line={"number": "3", "set_code": "m19"})
    bare = read_card("Ajani, Adversary of Tyrants", line={"number": "3"})

    run_stage_d([card.pk, bare.pk], run_id="r")

    assert list(CardPrintingTag.objects.values_list("printing", flat=True)) == [walker.pk] * 2
