"""A file of printings as the calculators would see it, without a database: candidates by name and by printed line."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cardpicker.catalogue.bulk_record import BadPrintingError, Printing, parse_printing
from cardpicker.catalogue.name_key import name_keys
from cardpicker.stage_d.candidates import Candidate, Line, candidates_of, printed_lines
from cardpicker.stage_d.matching import normalize_number
from cardpicker.stage_d.readings import parse_readings
from cardpicker.stage_d.subjects import Subject

#: Share of the catalog's art whose hash is taken to be known.
KNOWN_ART = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Art:
    """The art that a card shows: whose it is, and the hash that the catalog has of it."""

    illustration_id: str | None = None
    hash: int | None = None


@dataclass(slots=True, kw_only=True)
class Printings:
    """All printings of a file, with the look-ups that Stage D makes of its database."""

    rows: list[Printing] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)  #: In the order of ``rows``; an id is its index.
    by_key: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    by_line: Mapping[Line, tuple[Candidate, ...]] = field(default_factory=dict)
    codes: frozenset[str] = frozenset()
    index: Mapping[str, int] = field(default_factory=dict)  #: Of each identifier.

    def known(self, code: str | None) -> bool:
        """Tell whether a code is a set's as printed, or as tokens and promos are cataloged."""
        return code is not None and bool(self.codes & {code, f"t{code}", f"p{code}"})

    def artists(self, name: str) -> tuple[str, ...]:
        """Return the artists that Stage C is told of a name."""
        found = {c.artist for key in name_keys(name) for c in self.by_key.get(key, ()) if c.artist}
        return tuple(sorted(found))

    def subject(self, name: str, stored: object, *, hidden: Iterable[int] = (), art: Art | None = None) -> Subject:
        """Return what the calculators would be given of a card.

        Args:
            hidden: printings that the catalog is to lack.
            art: what the card shows; None leaves all art unknown.
        """
        readings, absent = parse_readings(stored), frozenset(hidden)
        named = tuple(c for c in candidates_of(name_keys(name), self.by_key) if c.id not in absent)
        known = self.known(readings.set_code)
        owners: tuple[Candidate, ...] = ()
        if known and readings.set_code and readings.number:
            line = (readings.set_code, readings.number)
            if not any(line in c.lines for c in named):
                owners = tuple(c for c in self.by_line.get(line, ()) if c.id not in absent)
        return Subject(
            card_id=1,
            readings=readings,
            candidates=tuple(self._with_art(c, art) for c in named),
            line_owners=tuple(self._with_art(c, art) for c in owners),
            set_code_known=known,
        )

    def _with_art(self, candidate: Candidate, art: Art | None) -> Candidate:
        """Give a printing the hash that the catalog would have of its art: the card's own, or an unrelated one."""
        illustration = self.rows[candidate.id].illustration_id
        if art is None or illustration is None:
            return candidate
        digest = hashlib.sha256(illustration.encode()).digest()
        if digest[8] >= KNOWN_ART * 256:
            return candidate
        own = art.hash if illustration == art.illustration_id else int.from_bytes(digest[:8], "big")
        return replace(candidate, art_hash=own) if own else candidate


def load_printings(path: Path) -> Printings:
    """Read Scryfall's objects, a JSON line each, gzip or not; objects that are no printing are left out."""
    opener = gzip.open if path.suffix == ".gz" else open
    found = Printings()
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            try:
                row = parse_printing(json.loads(line))
            except BadPrintingError:
                continue
            found.candidates.append(_candidate(len(found.rows), row))
            found.rows.append(row)
    by_key: defaultdict[str, list[Candidate]] = defaultdict(list)
    by_line: defaultdict[Line, list[Candidate]] = defaultdict(list)
    for candidate in found.candidates:
        for key in candidate.name_keys:
            by_key[key].append(candidate)
        for printed in candidate.lines:
            by_line[printed].append(candidate)
    found.by_key = {key: tuple(value) for key, value in by_key.items()}
    found.by_line = {printed: tuple(value) for printed, value in by_line.items()}
    found.codes = frozenset(row.set_code for row in found.rows)
    found.index = {row.identifier: place for place, row in enumerate(found.rows)}
    return found


def _candidate(pk: int, row: Printing) -> Candidate:
    number = normalize_number(row.collector_number)
    return Candidate(
        id=pk,
        name_keys=tuple(row.name_keys),
        set_code=row.set_code,
        number=number,
        language=row.language,
        artist=row.artist or None,
        released_at=dt.date.fromisoformat(row.released_at) if row.released_at else None,
        border_color=row.border_color or None,
        layout=row.layout,
        frame=row.frame,
        rarity=row.rarity,
        lines=printed_lines(row.set_code, number, row.layout),
    )
