"""What each synthetic card of the fit is: which printing, under which name, and what a maker made of it.

Not every card shows a printing of the catalog. Customs, misnamed files and printings that the catalog lacks are what the
scorer must learn to call something else. The shares are a guess at a real catalog, on its pessimistic side.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from cardpicker.catalogue.bulk_record import Printing
from cardpicker.catalogue.name_key import name_key
from cardpicker.stage_d.candidates import APART_LAYOUTS, LIST_SETS
from scripts.ops.samplecards.specs import Style
from scripts.ops.scorer_fit.printings import Printings


class Kind(StrEnum):
    """What a card is."""

    PRINTING = "printing"
    FOREIGN = "foreign"  #: A printing in another language, under a name that the catalog does not know.
    MISSING = "missing"  #: A printing that the catalog lacks; others of the name are there.
    CUSTOM = "custom"  #: A custom card of a known name, with a line of its own or none.
    BORROWED = "borrowed"  #: A custom card of a known name, with another card's line.
    MISNAMED = "misnamed"  #: A printing under another card's name.
    INVENTED = "invented"  #: A custom card of an unknown name, with a real printing's line.


SHARES = {
    Kind.PRINTING: 0.60,
    Kind.FOREIGN: 0.12,
    Kind.MISSING: 0.06,
    Kind.CUSTOM: 0.08,
    Kind.BORROWED: 0.04,
    Kind.MISNAMED: 0.05,
    Kind.INVENTED: 0.05,
}
LANGUAGES = ("DE", "FR", "IT", "ES", "PT")
RERENDERED = 0.15  #: Of cards, in the frame of another age.
CURRENT_YEAR = 0.08  #: Of cards, with the year of the proxy's making.
YEAR_BEFORE = 0.08  #: Of cards, with the year before the release.
NO_YEAR = 0.12  #: Of cards, with other words in the place of the copyright.
SAME_ART = 0.2  #: Of customs, that show the art of a printing of the name, credit its artist, and bear another line.
INVENTED_FOREIGN = 0.04  #: Of custom cards of an unknown name, with a foreign line.
KNOWN_SET_CODE = 0.3  #: Of customs with a line of their own, with a real set's code.
WHITE_KEPT = 0.29  #: Of white borders; 56 of 79 were black in the upload.


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One card to be drawn, and what is true of it."""

    kind: Kind
    name: str
    truth: int | None  #: The printing, or None for something else.
    hidden: tuple[int, ...] = ()
    art_of: int | None  #: The printing whose art it shows; None for art of no printing.
    style: Style
    set_code: str
    number: str
    set_size: int
    language: str
    artist: str
    rarity: str
    year: int
    legal: str = ""
    marked: bool = False  #: The mark of The List.
    white_border: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Deck:
    """Printings that can be drawn, and what is asked of all of them often."""

    printings: Printings
    drawable: tuple[int, ...]
    sizes: dict[str, int]
    artists: tuple[str, ...]


def make_deck(printings: Printings) -> Deck:
    """Return what scenarios are drawn from: printings of plain numbers, whose line a sample card can bear."""
    drawable, sizes = [], dict[str, int]()
    for place, candidate in enumerate(printings.candidates):
        code, number = candidate.lines[0]
        if not number.isdigit() or len(number) > 3 or candidate.layout in APART_LAYOUTS:
            continue
        sizes[code] = max(sizes.get(code, 0), int(number))
        drawable.append(place)
    artists = tuple(sorted({row.artist for row in printings.rows if row.artist}))
    return Deck(printings=printings, drawable=tuple(drawable), sizes=sizes, artists=artists)


def draw_scenario(deck: Deck, draw: random.Random) -> Scenario:
    """Return the next card."""
    kind = draw.choices(list(SHARES), list(SHARES.values()))[0]
    place = draw.choice(deck.drawable)
    row = deck.printings.rows[place]
    other = draw.choice(deck.drawable)
    match kind:
        case Kind.PRINTING | Kind.MISSING:
            return _printed(deck, draw, kind, place, row.name)
        case Kind.FOREIGN:
            return _printed(deck, draw, kind, place, _foreign_name(draw))
        case Kind.MISNAMED:
            same = name_key(deck.printings.rows[other].name) == row.name_key
            return _printed(deck, draw, kind, place, "Custom thing" if same else deck.printings.rows[other].name)
        case Kind.BORROWED:
            return _custom(deck, draw, kind, place, line_of=other)
        case Kind.INVENTED:
            return _custom(deck, draw, kind, place, line_of=place, name=_foreign_name(draw))
        case Kind.CUSTOM:
            return _custom(deck, draw, kind, place, line_of=None)


def _foreign_name(draw: random.Random) -> str:
    return f"Zqxname {draw.randrange(10**6)}"


def _printed(deck: Deck, draw: random.Random, kind: Kind, place: int, name: str) -> Scenario:
    row, candidate = deck.printings.rows[place], deck.printings.candidates[place]
    code, number = candidate.lines[0]
    original = _original(deck, place) if row.set_code in LIST_SETS else row
    year, legal = _year(draw, int((original.released_at or "2015")[:4]))
    style = _style(draw, original, marked=row.set_code in LIST_SETS)
    return Scenario(
        kind=kind,
        name=name,
        truth=place if kind in (Kind.PRINTING, Kind.FOREIGN) else None,
        hidden=(place,) if kind is Kind.MISSING else (),
        art_of=place,
        style=style,
        set_code=code,
        number=number,
        set_size=deck.sizes[code],
        language=draw.choice(LANGUAGES) if kind is Kind.FOREIGN else row.language.upper()[:2],
        artist=original.artist or _credited(deck, draw, place),
        rarity=original.rarity,
        year=year,
        legal=legal,
        marked=row.set_code in LIST_SETS,
        white_border=row.border_color == "white" and draw.random() < WHITE_KEPT,
    )


def _custom(
    deck: Deck, draw: random.Random, kind: Kind, place: int, *, line_of: int | None, name: str | None = None
) -> Scenario:
    row, same_art = deck.printings.rows[place], draw.random() < SAME_ART
    if line_of is not None:
        code, number = deck.printings.candidates[line_of].lines[0]
        rarity = deck.printings.rows[line_of].rarity
    else:
        real = draw.random() < KNOWN_SET_CODE
        code = draw.choice(sorted(deck.sizes)) if real else "".join(draw.choices("abcdefghkmnprstuvwxz", k=3))
        number, rarity = str(draw.randrange(1, 300)), draw.choice(("common", "uncommon", "rare", "mythic"))
    foreign = kind is Kind.INVENTED and draw.random() < INVENTED_FOREIGN
    year, legal = draw.randrange(2015, 2026), draw.choice(("", "", "NOT FOR SALE", "CUSTOM PROXY"))
    if same_art and draw.random() < 0.3:
        year = int((row.released_at or "2015")[:4])
    return Scenario(
        kind=kind,
        name=name or row.name,
        truth=None,
        art_of=place if same_art else None,
        # The art and the artist of a printing, and no line that says otherwise, is a proxy of that printing.
        style=draw.choice(_LINED if same_art else (*_LINED, Style.ARTIST_1993)),
        set_code=code,
        number=number,
        set_size=max(int(number), deck.sizes.get(code, 300)),
        language=draw.choice(LANGUAGES) if foreign else "EN",
        artist=(row.artist or _credited(deck, draw, place)) if same_art else draw.choice(deck.artists),
        rarity=rarity,
        year=year,
        legal=legal,
    )


def _original(deck: Deck, place: int) -> Printing:
    """Return the printing whose line a reprint of The List bears, or itself where the catalog lacks it."""
    candidate = deck.printings.candidates[place]
    bearers = deck.printings.by_line.get(candidate.lines[0], ())
    originals = [other for other in bearers if other.set_code not in LIST_SETS]
    return deck.printings.rows[originals[0].id if originals else place]


def _credited(deck: Deck, draw: random.Random, place: int) -> str:
    """Return who a printing without a known artist credits: often the artist of another printing of the name."""
    others = deck.printings.artists(deck.printings.rows[place].name)
    return draw.choice(others) if others and draw.random() < 0.5 else draw.choice(deck.artists)


def _year(draw: random.Random, released: int) -> tuple[int, str]:
    chance = draw.random()
    if chance < NO_YEAR:
        return released, draw.choice(("NOT FOR SALE", "PROXY • NOT FOR SALE"))
    if chance < NO_YEAR + CURRENT_YEAR:
        return draw.randrange(max(released, 2018), 2027), ""
    return (released - 1 if chance > 1 - YEAR_BEFORE and released > 1993 else released), ""


_LINED = (Style.LINE_2015, Style.LINE_2015, Style.LINE_2023)
_STYLES = {"1993": Style.ARTIST_1993, "1997": Style.FOOTER_1997, "2003": Style.FOOTER_2003}


def _style(draw: random.Random, row: Printing, *, marked: bool) -> Style:
    year = int((row.released_at or "2015")[:4])
    own = _STYLES.get(row.frame, Style.LINE_2023 if year >= 2023 else Style.LINE_2015)
    if own is Style.FOOTER_1997 and year < 1998:
        own = Style.ARTIST_1993  # Numbers came in with Exodus.
    if marked and not own.is_modern:
        return Style.LINE_2015
    return draw.choice((Style.LINE_2015, Style.LINE_2023)) if draw.random() < RERENDERED else own
