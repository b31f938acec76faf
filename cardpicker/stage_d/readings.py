"""One image's stored readings as typed values.

Stored JSON is whatever an extractor left: a key may be absent, of another type, or an error in place of a reading.
All of these become "not read", because absent evidence is never disagreement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.stage_d.matching import normalize_number

#: A collector number has at least one digit; a copyright year is one that a card can bear.
FIRST_YEAR, LAST_YEAR = 1993, 2100
#: A mark that was seen is one; that there is none must be sure.
MIN_NO_MARK_CONFIDENCE = 0.9

_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What the calculators know of an image; None stands for not read."""

    number: str | None = None  #: Normalized.
    set_code: str | None = None  #: Lower case; not necessarily a real one.
    set_size: int | None = None
    language: str | None = None
    rarity: str | None = None  #: The letter beside the number, lower case.
    row_artist: str | None = None  #: The artist printed in the collector line's own rows.
    line_confidence: float | None = None  #: 0 to 1; None where the extractor states none.
    copyright_year: int | None = None
    artist: str | None = None
    border_color: str | None = None
    frame: str | None = None  #: The class that the pixels show, such as ``1997`` or ``borderless``.
    corner_radius_mm: float | None = None
    truncated: bool = False
    list_mark: bool | None = None  #: The planeswalker mark of reprints in The List.
    art_hash: int | None = None  #: Unsigned, of the kind that the catalog's art has; None where the art is flat.

    @property
    def any_artist(self) -> str | None:
        """The artist as read anywhere on the card; the collector line's own row is read best."""
        return self.row_artist or self.artist


def parse_readings(stored: object) -> Readings:
    """Read the stored JSON, taking anything malformed for not read."""
    line, legal = _reading(stored, "collector_line"), _reading(stored, "legal_line")
    artist, quality = _reading(stored, "artist"), _reading(stored, "quality")
    year = _integer(legal.get("copyright_year"))
    return Readings(
        number=_number(line.get("number")),
        set_code=_text(line.get("set_code"), lower=True),
        set_size=_integer(line.get("set_size")),
        language=_text(line.get("language"), lower=True),
        rarity=_text(line.get("rarity"), lower=True),
        row_artist=_text(line.get("artist_in_row")),
        line_confidence=_fraction(line.get("confidence")),
        copyright_year=year if year is not None and FIRST_YEAR <= year <= LAST_YEAR else None,
        artist=_text(artist.get("artist")),
        border_color=_text(quality.get("border_color"), lower=True),
        frame=_text(_reading(stored, "frame").get("frame"), lower=True),
        corner_radius_mm=_number_of_mm(_reading(stored, "corners").get("radius_mm")),
        truncated=quality.get("truncated") is True,
        list_mark=_mark(_reading(stored, "the_list_mark")),
        art_hash=_hash(_reading(stored, "art_hash")),
    )


def _reading(stored: object, extractor: str) -> Mapping[str, object]:
    reading = stored.get(extractor) if isinstance(stored, Mapping) else None
    return reading if isinstance(reading, Mapping) and "error" not in reading else {}


def _mark(reading: Mapping[str, object]) -> bool | None:
    mark = reading.get("mark")
    if mark is False and (_fraction(reading.get("confidence")) or 0.0) < MIN_NO_MARK_CONFIDENCE:
        return None
    return mark if isinstance(mark, bool) else None


def _hash(reading: Mapping[str, object]) -> int | None:
    """Return a hash of today's kind; one of another kind or length is comparable with nothing."""
    digits = reading.get("hash")
    if reading.get("kind") != ART_HASH_KIND or not isinstance(digits, str) or _HASH.fullmatch(digits) is None:
        return None
    return int(digits, 16) or None


def _text(value: object, *, lower: bool = False) -> str | None:
    text = value.strip() if isinstance(value, str) else ""
    return (text.lower() if lower else text) or None


def _number(value: object) -> str | None:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return normalize_number(text) if any(sign.isdigit() for sign in text) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number_of_mm(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _fraction(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return min(1.0, max(0.0, float(value)))
