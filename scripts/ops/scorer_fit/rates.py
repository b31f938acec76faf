"""Rates of the scorer's tables, counted from cards whose printing is known.

A comparison is counted for the printing shown, and for all printings of the name where the card shows none of them; such
a card counts once, however many there are. Two printings of a name are told apart by the same ratios: what both agree in
cancels out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cardpicker.stage_d import scorer_tables as t
from cardpicker.stage_d.scorer_comparisons import compare, line_band
from scripts.ops.scorer_fit.samples import Sample

#: Added to every count: a thing never seen is rare, not impossible.
PSEUDO = 0.5
#: A real card counts as much as so many synthetic ones.
CASE_WEIGHT = 5.0
_Key = TypeVar("_Key")
Tally = defaultdict[_Key, float]
Cell = tuple[str, str]
Split = tuple[str, bool]
_SET_RIGHT = (t.SET_AND_NUMBER, t.SET_AND_NEAR, t.SET_ALONE)

#: Not counted, because neither samples nor cases show them often enough: stated by whoever measured them, with doubt added.
ASSUMED: dict[str, dict[str, tuple[float, float]]] = {
    "language/foreign": {t.AGREES: (0.97, 0.10), t.DIFFERS: (0.03, 0.90)},
    # The 18 labeled cards of other sets that show their corners measure 2.5 to 2.9 mm with a deviation of 0.1.
    "corners/round": {t.AGREES: (0.95, 0.005), t.DIFFERS: (0.05, 0.995)},
    "corners/plain": {t.AGREES: (0.95, 0.90), t.DIFFERS: (0.05, 0.10)},
    "border/white": {t.AGREES: (0.90, 0.30), t.DIFFERS: (0.10, 0.70)},
    "border/black": {t.AGREES: (0.90, 0.85), t.DIFFERS: (0.10, 0.15)},
}
#: Below 1 where a feature is weak, or partly said by another one.
WEIGHTS = {
    "line": 1.0,
    "number": 1.0,
    "set_code": 1.0,
    "artist": 1.0,
    "copyright_year": 0.9,  # Set and year know of each other.
    "language": 0.7,  # Of the set code's row.
    "rarity": 1.0,
    "frame": 0.5,  # Of the year's age, and makers re-render frames.
    "border": 0.3,  # Makers re-render borders.
    "list_mark": 1.0,
    "art_hash": 0.4,  # Who shows the art names its artist.
    "corners": 1.0,
}


@dataclass(slots=True)
class Counts:
    """Weighted counts by table and category, and of what a route's cards are."""

    match: Tally[Cell] = field(default_factory=lambda: defaultdict(float))
    other: Tally[Cell] = field(default_factory=lambda: defaultdict(float))  #: Of cards that show something else.
    routes: Tally[Split] = field(default_factory=lambda: defaultdict(float))  #: Route, whether it shows something else.
    lines: Tally[Split] = field(default_factory=lambda: defaultdict(float))  #: Band, whether the number is misread.
    artists: Tally[bool] = field(default_factory=lambda: defaultdict(float))  #: Whether two printings share the artist.

    def add(self, more: Counts) -> None:
        """Add other counts to these."""
        for name in ("match", "other", "routes", "lines", "artists"):
            mine, theirs = getattr(self, name), getattr(more, name)
            for key, value in theirs.items():
                mine[key] += value


def count(samples: Iterable[Sample]) -> Counts:
    """Count cards."""
    counts = Counts()
    for sample in samples:
        _count(sample, counts, CASE_WEIGHT if sample.is_case else 1.0)
    return counts


def _count(sample: Sample, counts: Counts, weight: float) -> None:
    subject = sample.subject
    by_line = not subject.candidates
    pool = [c for c in (subject.line_owners if by_line else subject.candidates) if not c.is_apart]
    if not pool:
        return
    place = next((i for i, candidate in enumerate(pool) if candidate.id == sample.truth), None)
    route = t.NAMED if not by_line else t.UNNAMED if subject.readings.language in (None, "en") else t.FOREIGN
    band = line_band(subject.readings) or "unsure"
    if by_line and place is None and sample.truth_sets & pool[0].printed_sets:
        counts.lines[band, True] += weight
        return
    counts.routes[route, place is None] += weight
    if by_line and place is not None:
        counts.lines[band, False] += weight
    for comparison in compare(subject, pool, by_line=by_line):
        others = [category for i, category in enumerate(comparison.categories) if i != place and category is not None]
        for category in others if place is None else ():
            counts.other[comparison.table, category] += weight / len(others)
        if place is not None and (shown := comparison.categories[place]) is not None:
            counts.match[comparison.table, shown] += weight
            if shown in _SET_RIGHT:
                counts.lines[band, shown != t.SET_AND_NUMBER] += weight
    artists = [candidate.artist for i, candidate in enumerate(pool) if i != place and candidate.artist]
    if place is not None and pool[place].artist and artists:
        same = sum(artist == pool[place].artist for artist in artists) / len(artists)
        counts.artists[True] += weight * same
        counts.artists[False] += weight * (1 - same)


def parameters_from(counts: Counts, *, temperature: float, threshold: float, version: int) -> dict[str, Any]:
    """Return the content of a file of parameters, without where it comes from."""
    return {
        "form": 1,
        "version": version,
        "temperature": temperature,
        "threshold": threshold,
        "something_else": {route: _share(counts.routes, route) for route in t.ROUTES},
        "slip": {band: _share(counts.lines, band) for band in t.BANDS},
        "unknown_artist": _round((counts.artists[True] + PSEUDO) / (sum(counts.artists.values()) + 2 * PSEUDO)),
        "weights": WEIGHTS,
        "tables": {table: _table(counts, table, categories) for table, categories in t.TABLES.items()},
    }


def _share(counted: Tally[Split], key: str) -> float:
    yes, no = counted[key, True], counted[key, False]
    return _round((yes + PSEUDO) / (yes + no + 2 * PSEUDO))


def _table(counts: Counts, table: str, categories: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    if table in ASSUMED:
        return {c: {"match": ASSUMED[table][c][0], "other": ASSUMED[table][c][1], "assumed": True} for c in categories}
    match, other = _shares(counts.match, table, categories), _shares(counts.other, table, categories)
    best = match[categories[0]] / other[categories[0]]
    if best < 1.0:  # Too few seen to tell: then agreement says nothing.
        best, other[categories[0]] = 1.0, match[categories[0]] - 1e-5
    for category in categories[1:]:  # And nothing says more than agreement.
        other[category] = max(other[category], 1.01 * match[category] / best)
    return {
        category: {
            "match": _round(match[category]),
            "other": _round(other[category]),
            "matches": round(counts.match[table, category], 1),
            "others": round(counts.other[table, category], 1),
        }
        for category in categories
    }


def _shares(counted: Tally[Cell], table: str, categories: tuple[str, ...]) -> dict[str, float]:
    total = sum(counted[table, category] for category in categories) + PSEUDO * len(categories)
    return {category: (counted[table, category] + PSEUDO) / total for category in categories}


def _round(value: float) -> float:
    return min(0.9999, max(0.00001, round(value, 6)))
