"""A subject's readings held against its candidates, feature by feature, as categories of the scorer's tables.

Pure. A reading that is absent makes no comparison; a fact that the catalog lacks of one printing makes none for that
printing. Reprints of The List bear the original's line, so what the line says is held against the original's facts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from cardpicker.stage_d import scorer_tables as t
from cardpicker.stage_d.art_index import art_distances
from cardpicker.stage_d.candidates import LIST_SETS, Candidate
from cardpicker.stage_d.join_key import MAX_YEARS_BEFORE_RELEASE, MIN_LINE_CONFIDENCE, effective_set_code, is_doubtful
from cardpicker.stage_d.matching import is_near, same_artist
from cardpicker.stage_d.readings import Readings
from cardpicker.stage_d.subjects import Subject

_RARITIES: Final = {"c": "common", "u": "uncommon", "r": "rare", "m": "mythic", "l": "common", "s": "special"}
_Value = TypeVar("_Value", bound=Hashable)
_TOKENS: Final = frozenset({"token", "double_faced_token", "emblem"})
_FRAMES: Final = frozenset({"1993", "1997", "2003", "2015"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One reading against all candidates."""

    table: str
    read: str  #: What was read, for people.
    categories: Sequence[str | None]  #: By candidate; None: the catalog does not say.


def compare(subject: Subject, candidates: Sequence[Candidate], *, by_line: bool) -> list[Comparison]:
    """Return every comparison that the readings allow.

    Args:
        by_line: the candidates were found by their line, which therefore agrees with all of them.
    """
    readings, bearers = subject.readings, _bearers(candidates)
    found = [
        None if by_line else _line(subject, candidates),
        _artist(readings, bearers, by_line=by_line),
        _year(readings, candidates, bearers),
        _language(readings, candidates),
        _rarity(readings, bearers),
        _frame(readings, candidates, bearers),
        _border(readings, candidates),
        _mark(readings, candidates),
        _art(readings, candidates),
        _corners(readings, candidates),
    ]
    return [comparison for comparison in found if comparison is not None]


def _bearers(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return, for each candidate, the printing whose facts its line states: itself, or a List reprint's original."""
    if not any(candidate.set_code in LIST_SETS for candidate in candidates):
        return list(candidates)
    originals = {c.lines[0]: c for c in candidates if c.set_code not in LIST_SETS}
    return [originals.get(c.lines[0], c) if c.set_code in LIST_SETS else c for c in candidates]


def line_band(readings: Readings) -> str | None:
    """Return how sure the reader is of the line; None where its number is not to be believed."""
    if is_doubtful(readings, MIN_LINE_CONFIDENCE):
        return None
    return "unsure" if is_doubtful(readings, t.SURE_LINE) else "sure"


def _line(subject: Subject, candidates: Sequence[Candidate]) -> Comparison | None:
    set_code, band, read = effective_set_code(subject), line_band(subject.readings), subject.readings.number
    number = read if band is not None else None
    if set_code is None and number is None:
        return None
    if number is None:
        codes = [t.AGREES if set_code in candidate.printed_sets else t.DIFFERS for candidate in candidates]
        return Comparison(table="set_code", read=str(set_code), categories=codes)
    closeness: dict[frozenset[str], str] = {}
    categories = []
    for candidate in candidates:
        numbers = candidate.printed_numbers
        close = closeness.get(numbers)
        if close is None:
            close = closeness[numbers] = _closeness(number, numbers)
        # A printing of several lines agrees in both halves only within one of them.
        if close == t.AGREES and set_code in candidate.printed_sets and (set_code, number) not in candidate.lines:
            close = t.DIFFERS
        categories.append(close if set_code is None else _WHOLE[set_code in candidate.printed_sets, close])
    table = f"number/{band}" if set_code is None else f"line/{band}"
    return Comparison(table=table, read=number if set_code is None else f"{set_code} {number}", categories=categories)


_WHOLE: Final = {
    (True, t.AGREES): t.SET_AND_NUMBER,
    (True, t.NEAR): t.SET_AND_NEAR,
    (True, t.DIFFERS): t.SET_ALONE,
    (False, t.AGREES): t.NUMBER_ALONE,
    (False, t.NEAR): t.NEAR_ALONE,
    (False, t.DIFFERS): t.NEITHER,
}


def _closeness(number: str, numbers: frozenset[str]) -> str:
    if number in numbers:
        return t.AGREES
    return t.NEAR if any(is_near(number, other) for other in numbers) else t.DIFFERS


def _artist(readings: Readings, bearers: Sequence[Candidate], *, by_line: bool) -> Comparison | None:
    read = readings.any_artist
    if read is None:
        return None
    words = {True: t.AGREES, None: t.GARBLED, False: t.DIFFERS}
    artists = {bearer.artist for bearer in bearers}
    known = {artist: words[same_artist(read, artist)] for artist in artists if artist}
    source = "owner" if by_line else "row" if readings.row_artist else "band"
    return Comparison(table=f"artist/{source}", read=read, categories=[known.get(b.artist or "") for b in bearers])


def _year(readings: Readings, candidates: Sequence[Candidate], bearers: Sequence[Candidate]) -> Comparison | None:
    read = readings.copyright_year
    if read is None:
        return None
    years = [bearer.dated.year if bearer.dated else None for bearer in bearers]
    # A reprint of The List whose original is not among the candidates bears a year that nobody knows.
    categories = _each(years, lambda year: _year_category(read, year))
    return Comparison(table="copyright_year", read=str(read), categories=categories)


def _year_category(read: int, released: int) -> str:
    if read == released:
        return t.SAME_YEAR
    if read > released:
        return t.LATER
    return t.YEAR_BEFORE if read >= released - MAX_YEARS_BEFORE_RELEASE else t.OLDER


def _language(readings: Readings, candidates: Sequence[Candidate]) -> Comparison | None:
    """Compare languages, where the catalog has the name in the one that was read: few names are there in all."""
    read = readings.language if line_band(readings) is not None else None
    if read is None or read not in {candidate.language for candidate in candidates}:
        return None
    categories = [t.AGREES if candidate.language == read else t.DIFFERS for candidate in candidates]
    return Comparison(table=f"language/{'english' if read == 'en' else 'foreign'}", read=read, categories=categories)


def _rarity(readings: Readings, bearers: Sequence[Candidate]) -> Comparison | None:
    read = readings.rarity if line_band(readings) is not None else None
    if read == "t":
        tokens: list[str | None] = [t.AGREES if bearer.layout in _TOKENS else t.DIFFERS for bearer in bearers]
        return Comparison(table="rarity", read="token", categories=tokens)
    if read not in _RARITIES:
        return None
    rarity = _RARITIES[read]
    categories = _each([b.rarity or None for b in bearers], lambda own: t.AGREES if own == rarity else t.DIFFERS)
    return Comparison(table="rarity", read=rarity, categories=categories)


def _frame(readings: Readings, candidates: Sequence[Candidate], bearers: Sequence[Candidate]) -> Comparison | None:
    read = readings.frame
    if read == "borderless":
        borders = [candidate.border_color for candidate in candidates]
        found = _each(borders, lambda border: t.AGREES if border == read else t.DIFFERS)
        return Comparison(table="frame", read=read, categories=found)
    if read not in _FRAMES:
        return None
    frames = [bearer.frame if bearer.frame in _FRAMES else None for bearer in bearers]
    categories = _each(frames, lambda frame: t.AGREES if frame == read else t.DIFFERS)
    return Comparison(table="frame", read=read, categories=categories)


def _border(readings: Readings, candidates: Sequence[Candidate]) -> Comparison | None:
    read = readings.border_color
    if read not in ("white", "black"):
        return None
    borders = [c.border_color if c.border_color in ("white", "black") else None for c in candidates]
    categories = _each(borders, lambda border: t.AGREES if border == read else t.DIFFERS)
    return Comparison(table=f"border/{read}", read=read, categories=categories)


def _mark(readings: Readings, candidates: Sequence[Candidate]) -> Comparison | None:
    if readings.list_mark is None:
        return None
    read = "seen" if readings.list_mark else "absent"
    categories = [t.AGREES if (c.set_code in LIST_SETS) == readings.list_mark else t.DIFFERS for c in candidates]
    return Comparison(table=f"list_mark/{read}", read=read, categories=categories)


def _art(readings: Readings, candidates: Sequence[Candidate]) -> Comparison | None:
    distances = art_distances(readings.art_hash, [candidate.art_hash for candidate in candidates])
    if all(distance is None for distance in distances):
        return None
    return Comparison(table="art_hash", read=f"{readings.art_hash:016x}", categories=_each(distances, _art_category))


def _art_category(distance: int) -> str:
    if distance <= t.SAME_ART_BITS:
        return t.SAME_ART
    return t.ALIKE_ART if distance <= t.ALIKE_ART_BITS else t.OTHER_ART


def _corners(readings: Readings, candidates: Sequence[Candidate]) -> Comparison | None:
    radius = readings.corner_radius_mm
    if radius is None or t.PLAIN_MM <= radius <= t.ROUND_MM:
        return None
    is_round = radius > t.ROUND_MM
    categories = [t.AGREES if (c.set_code == "lea") == is_round else t.DIFFERS for c in candidates]
    return Comparison(
        table=f"corners/{'round' if is_round else 'plain'}", read=f"{radius:.1f} mm", categories=categories
    )


def _each(values: Sequence[_Value | None], category: Callable[[_Value], str]) -> list[str | None]:
    """Return each value's category, working out each different value once."""
    known: dict[_Value | None, str | None] = {
        value: None if value is None else category(value) for value in set(values)
    }
    return [known[value] for value in values]
