"""The collector line's grammar: from read rows to number, set size, set code, rarity and language.

Pure text; it knows no pixels. It prefers nothing to a guess: a row that fits no layout gives no number, and a year,
a power/toughness box or a set size is never one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow
from cardpicker.stage_c.extractors.set_codes import LANGUAGES, SetCode, resolve_set_code

DIGIT = "[0-9OoQIl|SBZ]"
_ALIKE_DIGITS = str.maketrans("OoQIl|SBZ", "000111582")
RARITIES = "CURMSLTPB"
YEARS = range(1990, 2036)
LARGEST_SET = 999  #: Behind a slash; a larger size is a digit read twice.

_SLASHED = re.compile(
    rf"(?<![\w/★*|])(?P<star>[★*]?)(?P<prefix>[A-Z]{{2,3}}|)(?P<digits>{DIGIT}{{1,4}})(?P<suffix>[a-fs★*]?)"
    rf" ?/ ?(?P<size>{DIGIT}{{1,4}})(?:(?P<glued>[{RARITIES}])|(?![\w/]))(?: (?P<rarity>[{RARITIES}])(?!\w))?"
)
_PADDED = re.compile(
    rf"(?<![\w/])(?P<rarity>[{RARITIES}]) ?(?P<star>★?)(?P<prefix>)(?P<digits>{DIGIT}{{4}})(?P<suffix>[a-fs★]?)(?![\w/])"
)
_BARE_PADDED = re.compile(
    r"^(?:\W*(?P<stray>\w{0,2})\W* )?(?P<star>★?)(?P<prefix>)(?P<digits>[0O][0-9OIl]{3})(?P<suffix>[a-fs★]?)(?![\w/])"
)
_PLAIN = re.compile(
    rf"^(?P<star>★?)(?P<prefix>)(?P<digits>[0-9]{{1,4}})(?P<suffix>[a-fs★]?) (?P<rarity>[{RARITIES}])(?!\w)"
)
_LANGUAGE = re.compile(rf"({'|'.join(sorted(LANGUAGES, key=len, reverse=True))})(?![A-Za-z])")
_AFTER_SLASH = re.compile(r"^[^A-Za-z0-9]{0,4}(?P<code>[A-Z0-9]{3,5})(?![A-Za-z0-9])")
_OLD_LEGAL = re.compile(r"wizard|coast|\b(?:LLC|Inc)\b", re.IGNORECASE)
_COPYRIGHT = re.compile(r"wizard|coast|©|™|\b(?:LLC|Inc)\b|Illus", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRead:
    """A collector number as it stands in one row."""

    number: str  #: Lower case, no leading zeros, with prefix, suffix and star.
    set_size: int | None
    rarity: str | None
    rarity_confidence: float  #: 0 without a rarity.
    layout: str  #: "slash", "padded", "bare-padded" or "plain".
    exchanged: int  #: Letters taken for digits.
    confidence: float
    row: int
    legal: bool  #: It ends a legal line, as on cards of 1998 to 2014.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRead:
    """A set code as it stands in one row, with the language beside it."""

    code: SetCode
    language: str | None
    confidence: float
    row: int
    rest: str  #: What follows the language: the artist, where the layout has one.


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRead:
    """What one pass over the rows gives."""

    number: NumberRead | None
    set: SetRead | None


def parse_passes(passes: Sequence[ReadPass], known_sets: frozenset[str]) -> list[LineRead]:
    """Return the collector line of each pass; where one shows a number alone, it stands by the code row read before."""
    lines: list[LineRead] = []
    code_row: ReadRow | None = None
    for read in passes:
        line = parse_rows(read.rows, known_sets, code_row)
        lines.append(line)
        if line.set is not None and line.set.code.known:
            code_row = read.rows[line.set.row]
    return lines


def parse_rows(rows: Sequence[ReadRow], known_sets: frozenset[str], code_row: ReadRow | None = None) -> LineRead:
    """Return the collector line in ``rows``: the best number, and the set code that goes with it.

    Args:
        code_row: the row of a set code that is not among ``rows``.
    """
    sets = [read for index, row in enumerate(rows) if (read := _set_of(index, row, known_sets)) is not None]
    set_read = max(sets, key=lambda s: (s.code.known, -s.code.distance, s.confidence), default=None)
    beside = rows[set_read.row] if set_read is not None else code_row
    numbers = [found for index, row in enumerate(rows) if (found := _number_of(index, row, beside)) is not None]
    number = max(numbers, key=lambda n: (_ORDER.index(n.layout), -n.exchanged, n.confidence), default=None)
    if number is not None and set_read is None:
        set_read = _set_after_number(number, rows[number.row], known_sets)
    return LineRead(number=number, set=set_read)


_ORDER = ("bare-padded", "plain", "padded", "slash")


def _number_of(index: int, row: ReadRow, set_row: ReadRow | None) -> NumberRead | None:
    """Return the number in ``row``, by the strictest layout that fits."""
    text = row.text
    near = set_row is not None and is_beside(row, set_row)
    patterns = [("slash", _SLASHED)]
    if not _COPYRIGHT.search(text):
        patterns.append(("padded", _PADDED))
        if near:
            patterns += [("bare-padded", _BARE_PADDED), ("plain", _PLAIN)]
    for layout, pattern in patterns:
        for match in pattern.finditer(text):
            found = _number(match, layout, index, row) if row.is_whole(match.start()) else None
            if found is not None and layout == "padded" and not near and match["digits"][0] not in "0O":
                continue
            if found is not None and not _is_power_toughness(found, row, near):
                return found
    return None


def is_beside(row: ReadRow, set_row: ReadRow) -> bool:
    """Whether ``row`` is the set code's row, or stands right above it, flush with it at the left or at the right."""
    rise = set_row.bottom_mm - row.bottom_mm
    flush = min(abs(row.left_mm - set_row.left_mm), abs(row.right_mm - set_row.right_mm))
    return row is set_row or (0.5 <= rise <= 3.5 and flush <= 3.0)


def _number(match: re.Match[str], layout: str, index: int, row: ReadRow) -> NumberRead | None:
    groups = match.groupdict()
    raw = groups["digits"]
    size_raw = groups.get("size") or ""
    exchanged = sum(not c.isdigit() for c in raw + size_raw)
    if exchanged > (len(raw) + len(size_raw)) // 2:
        return None
    digits = raw.translate(_ALIKE_DIGITS)
    size = int(size_raw.translate(_ALIKE_DIGITS)) if size_raw else None
    value = int(digits)
    year = value in YEARS and len(digits) == 4
    if size is not None and not _is_plausible(groups["prefix"] + raw, size_raw, row.text, match.end()):
        return None
    if value == 0 or (year and (size is None or size in YEARS)) or size == 0:
        return None
    rarity, group = _rarity(groups)
    star = "★" if groups["star"] or groups["suffix"] in ("★", "*") else ""
    suffix = "" if groups["suffix"] in ("★", "*") else groups["suffix"]
    return NumberRead(
        number=f"{groups['prefix'].lower()}{value}{suffix}{star}",
        set_size=size,
        rarity=rarity,
        rarity_confidence=row.confidence_at(*match.span(group)) if group else 0.0,
        layout=layout,
        exchanged=exchanged,
        confidence=row.confidence_at(match.start("digits"), match.end("size" if size_raw else "digits")),
        row=index,
        legal=_OLD_LEGAL.search(row.text) is not None,
    )


def _rarity(groups: Mapping[str, str | None]) -> tuple[str | None, str | None]:
    """Return the rarity and the group that holds it; before a padded number a capital also reads as c, or as Cc."""
    for group in ("rarity", "glued", "stray"):
        letters = set((groups.get(group) or "").upper())
        if len(letters) == 1 and letters <= set(RARITIES):
            return letters.pop().lower(), group
    return None, None


def _is_plausible(digits: str, size: str, text: str, end: int) -> bool:
    """Whether no digit seems missing or invented.

    Outside legal lines numbers are padded to three digits, and a set goes on after its nominal size, but not twice over.
    """
    padded = len(digits) >= min(3, len(size)) or _OLD_LEGAL.search(text) or _AFTER_SLASH.match(text[end:])
    value, nominal = (int(re.sub(r"\D", "", part.translate(_ALIKE_DIGITS)) or 0) for part in (digits, size))
    return bool(padded) and value <= 2 * nominal and nominal <= LARGEST_SET


def _is_power_toughness(found: NumberRead, row: ReadRow, near_set: bool) -> bool:
    """Whether a slashed pair can be a power/toughness box: small numbers, unpadded, alone at the right or in large type."""
    if found.layout != "slash" or found.set_size is None or near_set:
        return False
    if found.rarity is not None and row.left_mm < 40:
        return False
    short = re.search(r"(?<!\d)\d{1,2} ?/ ?\d{1,2}(?!\d)", row.text) is not None
    return short and not _COPYRIGHT.search(row.text)


def _set_of(index: int, row: ReadRow, known: frozenset[str]) -> SetRead | None:
    """Return the set code that stands before a language in ``row``."""
    text = row.text
    for match in _LANGUAGE.finditer(text):
        head = text[: match.start()]
        found = _code_before(head, known)
        if found is not None:
            code, place = found
            if not row.is_whole(place[0]):
                continue
            if head[-1:].isalnum():  # DOMEN may be DOM EN, or a word: it needs the proof of a look-alike.
                code = SetCode(code=code.code, known=code.known, distance=max(1, code.distance))
            return SetRead(
                code=code,
                language=LANGUAGES[match.group(1)],
                confidence=row.confidence_at(*place),
                row=index,
                rest=text[match.end() :].strip(),
            )
    return None


def _code_before(head: str, known: frozenset[str]) -> tuple[SetCode, tuple[int, int]] | None:
    """Return the code at the end of ``head`` and its place, past a separator read as any one or two characters."""
    spaced = re.search(r"[^A-Za-z0-9]$", head) is not None
    tokens = list(re.finditer(r"[A-Za-z0-9]+", head))
    if not tokens or len(tokens) > 5:
        return None
    match = tokens[-2] if len(tokens[-1][0]) <= 2 and len(tokens) > 1 and spaced else tokens[-1]
    token = match[0]
    if sum(c.isupper() or c.isdigit() for c in token) * 3 < 2 * len(token):
        return None
    code = resolve_set_code(token, known)
    if code is not None and code.known:
        return code, match.span()
    # A bullet or star glued to the code reads as one more letter: GRN★EN becomes GRNYEN, DOM•EN becomes DOME EN.
    trimmed = resolve_set_code(token[:-1], known)
    if trimmed is not None and trimmed.known and trimmed.distance == 0:
        return SetCode(code=trimmed.code, known=True, distance=1), match.span()
    return (code, match.span()) if code is not None and spaced else None


def _set_after_number(number: NumberRead, row: ReadRow, known: frozenset[str]) -> SetRead | None:
    """Return the set code of a one-row footer such as ``226/276 • WOE``."""
    match = _SLASHED.search(row.text)
    if number.layout != "slash" or match is None or _COPYRIGHT.search(row.text):
        return None
    tail = row.text[match.end() :]
    found = _AFTER_SLASH.match(tail)
    code = resolve_set_code(found["code"], known) if found else None
    if found is None or code is None:
        return None
    start = match.end() + found.start("code")
    return SetRead(
        code=code,
        language=None,
        confidence=row.confidence_at(start, start + len(found["code"])),
        row=number.row,
        rest="",
    )
