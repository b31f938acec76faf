"""The scorer's tables: how a reading and a printing can compare, and which comparisons the parameters hold rates of.

A table belongs to one reading of one reliability; its categories are ordered from agreement to contradiction. Readings
that are parsed from the same pixels share a table (set code and number) or a feature (artist), so that they count once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

AGREES: Final = "agrees"
DIFFERS: Final = "differs"
GARBLED: Final = "garbled"

SET_AND_NUMBER: Final = "set and number agree"
SET_AND_NEAR: Final = "set agrees, number one slip off"
SET_ALONE: Final = "set agrees, number differs"
NUMBER_ALONE: Final = "number agrees, set differs"
NEAR_ALONE: Final = "number one slip off, set differs"
NEITHER: Final = "set and number differ"
NEAR: Final = "one slip off"

SAME_YEAR: Final = "year of the release"
YEAR_BEFORE: Final = "up to two years before the release"
LATER: Final = "after the release"
OLDER: Final = "too old"

SAME_ART: Final = "same art"
ALIKE_ART: Final = "art alike"
OTHER_ART: Final = "other art"

#: Confidences of the reader from which a line is sure, and below which its number counts as unread.
SURE_LINE: Final = 0.9
#: Art hashes: distances up to which art is the same, and up to which it may be.
SAME_ART_BITS, ALIKE_ART_BITS = 10, 20
#: Corners rounder than this are Alpha's, less round than that any other card's.
ROUND_MM, PLAIN_MM = 3.7, 3.3

_LINE = (SET_AND_NUMBER, SET_AND_NEAR, SET_ALONE, NUMBER_ALONE, NEAR_ALONE, NEITHER)
_PLAIN = (AGREES, DIFFERS)

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "line/sure": _LINE,
    "line/unsure": _LINE,
    "number/sure": (AGREES, NEAR, DIFFERS),
    "number/unsure": (AGREES, NEAR, DIFFERS),
    "set_code": _PLAIN,
    "artist/row": (AGREES, GARBLED, DIFFERS),
    "artist/band": (AGREES, GARBLED, DIFFERS),
    "artist/owner": (AGREES, GARBLED, DIFFERS),  # Of a printing found by its line: siblings do not share that.
    "copyright_year": (SAME_YEAR, YEAR_BEFORE, LATER, OLDER),
    "language/english": _PLAIN,
    "language/foreign": _PLAIN,
    "rarity": _PLAIN,
    "frame": _PLAIN,
    "border/white": _PLAIN,
    "border/black": _PLAIN,
    "list_mark/seen": _PLAIN,
    "list_mark/absent": _PLAIN,
    "art_hash": (SAME_ART, ALIKE_ART, OTHER_ART),
    "corners/round": _PLAIN,
    "corners/plain": _PLAIN,
}

#: Whether candidates come from the card's name or, for names that the catalog does not know, from the printed line.
NAMED, FOREIGN, UNNAMED = "named", "foreign", "unnamed"
ROUTES: Final = (NAMED, FOREIGN, UNNAMED)
BANDS: Final = ("sure", "unsure")


def feature_of(table: str) -> str:
    """Return the feature that a table belongs to."""
    return table.partition("/")[0]


#: The set code alone, the number alone and both are one feature: they are read from the same rows.
FEATURES: Final = tuple(dict.fromkeys(feature_of(table) for table in TABLES))
