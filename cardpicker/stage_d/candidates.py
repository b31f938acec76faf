"""The printings that a card may show: by its name, and by the line printed on it.

Each takes the same few queries for any batch. What a printing has printed on it is not always what the catalog calls
it: tokens drop the ``t`` of their set, promos the ``p``, reprints in The List keep the original's whole line.
"""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.db import connection

from cardpicker.models import CanonicalExpansion
from cardpicker.stage_d.matching import normalize_number

Line = tuple[str, str]  #: Set code and collector number as printed, both normalized.

#: Objects that share a card's name and are something else: named by their own set code, or not at all.
APART_LAYOUTS = frozenset({"art_series", "emblem"})

#: Sets of reprints that bear the original's line; their numbers here name it, as in ``XLN-117``.
LIST_SETS = ("plst", "ulst")

_STAMPED = (
    "pktk pfrf pdtk pori pbfz pogw psoi pemn pkld paer pakh phou pxln prix pdom pbbd pm19 pgrn prna pwar pmh1 pm20"
)
#: Prerelease cards that the catalog numbers with an ``s``, and that bear a date stamp and the ordinary card's line;
#: from 2019's fall on the ``s`` is printed.
STAMPED_SETS = frozenset(_STAMPED.split())

_LIST_NUMBER = re.compile(r"^([a-z0-9]{3,5})-(.+)$")
# Raw, because the ORM spends longer on a list of thousands than the server does on the look-up. Keys come as an array,
# because for a join of unknown size the planner would read the whole catalog.
_READ = """
    SELECT printing.id, printing.name_keys, expansion.code, printing.collector_number, printing.language, artist.name,
           printing.released_at, printing.border_color, printing.layout, printing.frame, printing.art_hash,
           printing.rarity
    FROM cardpicker_canonicalcard AS printing
    JOIN cardpicker_canonicalexpansion AS expansion ON expansion.id = printing.expansion_id
    LEFT JOIN cardpicker_canonicalartist AS artist ON artist.id = printing.artist_id
    WHERE printing.id = ANY(ARRAY({wanted}))
    ORDER BY printing.id
"""
# One index look-up a key: an overlap with a long array is planned as a scan of the whole catalog.
_NAMED = _READ.format(wanted="""
    SELECT named.id FROM unnest(%s::text[]) AS asked(key)
    JOIN cardpicker_canonicalcard AS named ON named.name_keys @> ARRAY[asked.key]::varchar[]
""")
# A join keeps the lookup exact: two IN lists would fetch every set's every number.
_OWNERS = _READ.format(wanted="""
    SELECT owner.id FROM unnest(%s::text[], %s::text[]) AS asked(code, number)
    JOIN cardpicker_canonicalexpansion AS owning ON owning.code = asked.code
    JOIN cardpicker_canonicalcard AS owner
      ON owner.expansion_id = owning.id AND owner.collector_number = asked.number
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A printing as the calculators see it."""

    id: int
    name_keys: tuple[str, ...] = ()
    set_code: str
    number: str
    language: str = "en"
    artist: str | None = None
    released_at: datetime.date | None = None
    border_color: str | None = None
    layout: str = ""
    frame: str = ""
    rarity: str = ""
    art_hash: int | None = None  #: Signed; of the art alone, shared by all printings of the illustration.
    lines: tuple[Line, ...]  #: The lines that may be printed on it, likeliest first.

    @property
    def is_apart(self) -> bool:
        """Whether it is an emblem or an art card."""
        return self.layout in APART_LAYOUTS

    @property
    def is_stamped(self) -> bool:
        """Whether it is a prerelease card that only a date stamp tells from the ordinary card."""
        return self.set_code in STAMPED_SETS and self.number.endswith("s")

    @property
    def dated(self) -> datetime.date | None:
        """The release that its copyright line can be held against; List reprints bear the original's line."""
        return None if self.set_code in LIST_SETS else self.released_at

    @property
    def printed_sets(self) -> frozenset[str]:
        """The set codes that may be printed on it."""
        return _codes(self.lines)

    @property
    def printed_numbers(self) -> frozenset[str]:
        """The numbers that may be printed on it."""
        return _numbers(self.lines)


@lru_cache(maxsize=65_536)
def _codes(lines: tuple[Line, ...]) -> frozenset[str]:
    return frozenset(code for code, _ in lines)


@lru_cache(maxsize=65_536)
def _numbers(lines: tuple[Line, ...]) -> frozenset[str]:
    return frozenset(number for _, number in lines)


@lru_cache(maxsize=65_536)
def printed_lines(set_code: str, number: str, layout: str = "") -> tuple[Line, ...]:
    """Return the (set code, number) lines that a printing may bear.

    Args:
        set_code: the catalog's code, lower case.
        number: the catalog's number, normalized.
        layout: the catalog's layout; empty where unknown.
    """
    own = (set_code, number)
    if layout in APART_LAYOUTS:
        return (own,)
    listed = _LIST_NUMBER.match(number)
    if set_code in LIST_SETS and listed:
        return ((listed[1], normalize_number(listed[2])), own)
    lines = [own]
    if set_code == "ugin":
        lines.insert(0, ("frf", number))
    elif len(set_code) > 3 and set_code[0] in "pt":
        lines.insert(0, (set_code[1:], number))
    if set_code in STAMPED_SETS and number.endswith("s"):  # As in ``is_stamped``.
        lines.insert(0, (set_code[1:], number[:-1]))
    likeliest_set, likeliest_number = lines[0]
    if layout == "meld" and likeliest_number.endswith("b"):
        # The melded back is numbered with a letter in the catalog; cards have been seen with and without it.
        lines.append((likeliest_set, likeliest_number[:-1]))
    return tuple(lines)


def load_candidates(name_keys: Collection[str]) -> dict[str, tuple[Candidate, ...]]:
    """Return the printings of each name key that has any, in the order of their ids."""
    if not name_keys:
        return {}
    wanted = set(name_keys)
    found: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in _read(_NAMED, [sorted(wanted)]):
        for key in candidate.name_keys:
            if key in wanted:
                found[key].append(_shown_by(key, candidate))
    return {key: tuple(candidates) for key, candidates in found.items()}


def load_line_owners(lines: Collection[Line]) -> dict[Line, tuple[Candidate, ...]]:
    """Return, whatever their names, the printings that may bear each of ``lines``."""
    if not lines:
        return {}
    wanted = set(lines)
    spelled = sorted({spelling for line in wanted for spelling in _spellings(line)})
    asked = [[code for code, _ in spelled], [number for _, number in spelled]]
    found: defaultdict[Line, list[Candidate]] = defaultdict(list)
    for candidate in _read(_OWNERS, asked):
        for line in candidate.lines:
            if line in wanted:
                found[line].append(candidate)
    return {line: tuple(owners) for line, owners in found.items()}


def load_known_sets(codes: Collection[str]) -> frozenset[str]:
    """Return those of ``codes`` that the catalog has, as they are printed or as token and promo sets."""
    if not codes:
        return frozenset()
    spelled = {prefix + code for code in codes for prefix in ("", "t", "p")}
    known = set(CanonicalExpansion.objects.filter(code__in=sorted(spelled)).values_list("code", flat=True))
    return frozenset(code for code in codes if known & {code, f"t{code}", f"p{code}"})


def _shown_by(key: str, candidate: Candidate) -> Candidate:
    """Return the candidate as the face that ``key`` names: the catalog's art is the first face's, and no other's."""
    if candidate.art_hash is not None and key in _later_faces(candidate.name_keys):
        return replace(candidate, art_hash=None)
    return candidate


@lru_cache(maxsize=65_536)
def _later_faces(keys: tuple[str, ...]) -> frozenset[str]:
    """Return the keys of all faces but the first: a whole name's key is followed by those that it is made of."""
    whole, faces = keys[0] if keys else "", keys[1:]
    for count in range(2, len(faces) + 1):
        if "".join(faces[:count]) == whole:
            return frozenset(faces[1:count])
    return frozenset()


def candidates_of(name_keys: Iterable[str], by_key: Mapping[str, tuple[Candidate, ...]]) -> tuple[Candidate, ...]:
    """Return a card's candidates: those of its whole name, or those of its faces when the whole name has none."""
    keys = list(name_keys)
    if keys and (whole := by_key.get(keys[0])):
        return whole
    faces = {candidate.id: candidate for key in keys[1:] for candidate in by_key.get(key, ())}
    return tuple(faces[pk] for pk in sorted(faces))


def _spellings(line: Line) -> Iterable[Line]:
    """Yield the catalog's spellings of a printed line; `printed_lines` then says which of them are meant."""
    code, number = line
    numbers = {number, number.upper(), f"{number}b"}
    yield from ((prefix + code, spelled) for prefix in ("", "t", "p") for spelled in numbers)
    if f"p{code}" in STAMPED_SETS:
        yield from ((f"p{code}", f"{spelled}s") for spelled in numbers)
    yield from ((listed, f"{code.upper()}-{spelled}") for listed in LIST_SETS for spelled in numbers)
    if code == "frf":
        yield "ugin", number


def _read(sql: str, parameters: list[list[str]]) -> list[Candidate]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [_candidate(row) for row in cursor.fetchall()]


def _candidate(row: tuple[Any, ...]) -> Candidate:
    pk, keys, set_code, raw_number, language, artist, released_at, border_color, layout, frame, art_hash, rarity = row
    number = normalize_number(raw_number)
    return Candidate(
        id=pk,
        name_keys=tuple(keys),
        set_code=set_code,
        number=number,
        language=language,
        artist=artist,
        released_at=released_at,
        border_color=border_color or None,
        layout=layout,
        frame=frame,
        art_hash=art_hash,
        rarity=rarity,
        lines=printed_lines(set_code, number, layout),
    )
