"""Hints in a file's name: ``Lightning Bolt (MH2) {123} [Christopher Rush]`` tells set, number, artist and language.

Pure. What strangers write in brackets may be wrong or mean something else, so it is kept as a hint and never decides;
the name key leaves brackets out altogether.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypedDict

_NAME_MAX_LENGTH = 500
_HINT_MAX_LENGTH = 80
_TAGS_MAX = 10

_BRACKETED = re.compile(r"\(([^()\[\]{}]*)\)|\[([^()\[\]{}]*)\]|\{([^()\[\]{}]*)\}")
_NUMBER = re.compile(r"#?([a-z]{0,3}-?\d{1,4}[a-z★†]{0,2}|★\d{1,4})(?:\s*/\s*[a-z]{0,3}\d{1,4})?", re.IGNORECASE)
_SET_CODE = re.compile(r"(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{3,5}")
_SET_AND_NUMBER = re.compile(r"([A-Za-z0-9]{3,5})(?:\s*[-:#]\s*|\s+)(\S+)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ARTIST_LABEL = re.compile(r"^(?:illus(?:trated)?\.?|art(?:ist)?|by)(?:\s+by)?\s*[:.]?\s+(?=\S)", re.IGNORECASE)
_PERSON = re.compile(r"[^\W\d_][\w.'’-]*(?:\s+(?:&\s+)?[^\W\d_][\w.'’-]*){1,4}")

_NOT_SETS_TEXT = """
alt alter anime art back black bleed blue card cards clean copy crop dark dfc etch extra face fan ffc fixed flip foil
frame front full gold green hires holo ink land large light logo mini mod mpc mtg new nyx old oil page pixel print promo
proxy red retro right scan set short small snow stamp star text tex tiny token var vers vert white wide
"""
_NOT_NAMES_TEXT = """
alternate alt anime art bleed border borderless card classic custom dark edition etched extended first foil frame full
futureshifted game glass holo japanese lair land light list masterpiece modern no nyx old painted phyrexian planeswalker
promo proxy retro schematic secret set showcase special stained stamp story style text textless the upscaled variant
version white with without
"""
_LANGUAGES_TEXT = """
en: en, english
de: de, german, deutsch
fr: fr, french, français, francais
it: it, italian, italiano
es: es, sp, spanish, español, espanol
pt: pt, br, portuguese, português, portugues
ja: ja, jp, japanese
ko: ko, kr, korean
ru: ru, russian
zhs: zhs, cn, cs, chinese, simplified chinese, chinese simplified
zht: zht, tw, ct, traditional chinese, chinese traditional
ph: ph, phyrexian
"""

#: Words of three to five letters that describe a picture and name no set.
_NOT_SETS = frozenset(_NOT_SETS_TEXT.split())
#: Words that describe a picture and no person, whatever stands beside them.
_NOT_NAMES = frozenset(_NOT_NAMES_TEXT.split())
#: Scryfall's codes by what people write.
_LANGUAGES = {
    written.strip(): code
    for code, _, ways in (line.partition(":") for line in _LANGUAGES_TEXT.strip().splitlines())
    for written in ways.split(",")
}


class NameHints(TypedDict, total=False):
    """What a name's brackets say; a key is there only when something was said."""

    set_code: str  #: Lower case; not checked against the catalog.
    collector_number: str  #: Lower case, without leading zeros.
    artist: str
    language: str  #: As Scryfall spells it.
    tags: list[str]  #: Whatever else, lower case.


def parse_name_hints(name: str) -> NameHints:
    """Return the hints that ``name`` gives; the first of a kind counts, the others are tags."""
    hints: NameHints = {}
    tags: list[str] = []
    for opened, text in _bracketed(name[:_NAME_MAX_LENGTH]):
        found = _read(opened, text)
        fresh = {key: value for key, value in found.items() if key not in hints}
        if any(hints.get(key, value) != value for key, value in found.items()) or _is_tag(opened, text, found):
            tags.append(text.lower())
        hints.update(fresh)  # type: ignore[typeddict-item]
    if tags:
        hints["tags"] = list(dict.fromkeys(tags))[:_TAGS_MAX]
    return hints


def _bracketed(name: str) -> Iterator[tuple[str, str]]:
    """Yield each innermost bracket's opening sign and content; ``(EN, MH2)`` counts as two."""
    for match in _BRACKETED.finditer(name):
        opened = match.group()[0]
        for part in re.split(r"[,;|]", match.group()[1:-1]):
            text = " ".join(part.split())
            if text and text.isprintable():
                yield opened, text[:_HINT_MAX_LENGTH]


def _read(opened: str, text: str) -> NameHints:
    """Return what one bracket says; curly ones hold numbers, round ones copies and sets, square ones artists and sets."""
    if language := _LANGUAGES.get(text.lower()):
        return {"language": language}
    if opened == "{" or text.startswith("#") or "/" in text:
        number = _number(text)
        return {"collector_number": number} if number else {}
    if (both := _SET_AND_NUMBER.fullmatch(text)) and _is_set_code(both[1]) and (number := _number(both[2])):
        return {"set_code": both[1].lower(), "collector_number": number}
    if _is_set_code(text):
        return {"set_code": text.lower()}
    artist = _artist(text)
    return {"artist": artist} if artist else {}


def _is_tag(opened: str, text: str, found: NameHints) -> bool:
    """Whether a bracket without a hint is worth keeping: a year says nothing of the picture, ``(2)`` counts copies."""
    return not found and not _YEAR.fullmatch(text) and not (opened == "(" and text.isdigit())


def _number(text: str) -> str:
    match = _NUMBER.fullmatch(text)
    return re.sub(r"(?<!\d)0+(?=\d)", "", match[1].lower()) if match else ""


def _is_set_code(text: str) -> bool:
    """Whether a token may be a set's code: in capitals or with a digit, since a short word is more often a word."""
    looks_meant = text.isupper() or any(character.isdigit() for character in text)
    return (
        _SET_CODE.fullmatch(text) is not None
        and looks_meant
        and not _YEAR.fullmatch(text)
        and text.lower() not in _NOT_SETS
    )


def _artist(text: str) -> str:
    unlabeled = _ARTIST_LABEL.sub("", text)
    if unlabeled != text:
        return unlabeled
    words = re.findall(r"[^\W\d_]+", text.lower())
    return text if _PERSON.fullmatch(text) and not _NOT_NAMES.intersection(words) else ""
