"""A subject's readings held against its candidates, feature by feature, as categories of the scorer's tables.

Pure. A reading that is absent makes no comparison; a fact that the catalog lacks of one printing makes none for that
printing. Reprints of The List bear the original's line, so what the line says is held against the original's facts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
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
    """Return, for each candidate, the printing whose facts its line states: itself, or a List reprint's original.

    What the catalog knows of one of the two only holds for both.
    """
    listed = [candidate for candidate in candidates if candidate.set_code in LIST_SETS]
    if not listed:
        return list(candidates)
    originals = {c.lines[0]: c for c in candidates if c.set_code not in LIST_SETS}
    for reprint in listed:
        if (own := originals.get(reprint.lines[0])) is not None:
            originals[reprint.lines[0]] = replace(
                own,
                artist=own.artist or reprint.artist,
                rarity=own.rarity or reprint.rarity,
                frame=own.frame or reprint.frame,
            )
    return [_bearer(candidate, originals.get(candidate.lines[0])) for candidate in candidates]


def _bearer(candidate: Candidate, original: Candidate | None) -> Candidate:
    is_its = original is not None and (candidate.set_code in LIST_SETS or candidate.id == original.id)
    return original if original is not None and is_its else candidate


def line_band(readings: Readings) -> str | None:
    """Return how sure the reader is of the line; None where its number is not to be believed."""
    if is_doubtful(readings, MIN_LINE_CONFIDENCE):
        return None
    return "unsure" if is_doubtful(readings, t.SURE_LINE) else "sure"


def _line(subject: Subject, candidates: Sequence[Candidate]) -> Comparison | None:
    set_code, band, read = effective_set_code(subject), line_band(subject.readings), subject.readings.number
    number = read if band is not None else None
    if number is None:
        if set_code is None:
            return None
        codes = [t.AGREES if any(code == set_code for code, _ in c.lines) else t.DIFFERS for c in candidates]
        return Comparison(table="set_code", read=set_code, categories=codes)
    closeness: dict[str, int] = {}
    categories: list[str | None] = []
    words = _CLOSENESS if set_code is None else _WHOLE
    for candidate in candidates:
        best = len(words)
        for code, own in candidate.lines:  # A printing of several lines agrees in both halves only within one of them.
            close = closeness.get(own)
            if close is None:
                close = closeness[own] = _closeness(number, own)
            best = min(best, close if set_code is None or code == set_code else close + len(_CLOSENESS))
        categories.append(words[best])
    table = f"number/{band}" if set_code is None else f"line/{band}"
    return Comparison(table=table, read=number if set_code is None else f"{set_code} {number}", categories=categories)


#: From the closest on; where a set code was read, its agreement comes first.
_CLOSENESS: Final = (t.AGREES, t.NEAR, t.DIFFERS)
_WHOLE: Final = t.TABLES["line/sure"]


def _closeness(number: str, own: str) -> int:
    if number == own:
        return 0
    return 1 if is_near(number, own) else 2


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
