"""Name keys: what a card's name and a printing's name are compared by.

A key is the name's letters and digits, so case, spaces, camel case and punctuation do not matter; diacritics fall,
``&`` counts as "and". Copy marks and everything in brackets are left out on both sides: file names carry hints there,
as in ``Lightning Bolt (MH2) {123} [Artist]``, which are read elsewhere. Pure; knows no Django.
"""

from __future__ import annotations

import re
import unicodedata

KEY_MAX_LENGTH = 500

_SLASHES = str.maketrans({"\u2044": "/", "\u2215": "/", "\u29f8": "/", "\u2afd": "//"})
#: Letters to Unicode, apostrophes or marks to people.
_NOT_LETTERS = str.maketrans(dict.fromkeys("™℠ªº\u02b9\u02ba\u02bb\u02bc\u02bd\u02be\u02bf\u02c8\u02ee\ua78b\ua78c"))
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "ħ": "h", "&": "and"}
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
_NOT_ASCII_LETTERS = re.compile("[^a-z0-9]+")

_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_BRACKET_DEPTH = 4
_COPY_OF = re.compile(r"^(?:(?:copy of|kopie von|copie de|c[oó]pia de) )+", re.IGNORECASE)
_COPY_MARK = re.compile(r"(?: ?[-–—] ?(?:copy|kopie|copie|c[oó]pia)(?: \d{1,3})?)+$", re.IGNORECASE)
_FACES = re.compile(r"//+| / ")


def name_key(name: str) -> str:
    """Return the key of the whole ``name``; empty only when the name shows nothing at all.

    A name without a letter or digit, such as ``_____``, is its own key.
    """
    text = _plain(name)
    return _letters(_without_marks(text)) or _letters(text) or _symbols(name)


def name_keys(name: str) -> tuple[str, ...]:
    """Return the key of the whole ``name``, then of each face that ``//`` separates; none empty, none twice."""
    faces = (_letters(face) for face in _FACES.split(_without_marks(_plain(name))))
    return tuple(dict.fromkeys(key for key in (name_key(name), *faces) if key))


def _plain(name: str) -> str:
    """Return the name in compatibility form with single spaces and plain slashes."""
    text = name[:KEY_MAX_LENGTH]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_NOT_LETTERS)).translate(_SLASHES)
    return " ".join(text.replace("_", " ").split())


def _without_marks(text: str) -> str:
    for _ in range(_BRACKET_DEPTH):
        text, found = _BRACKETS.subn(" ", text)
        if not found:
            break
    return _COPY_MARK.sub("", _COPY_OF.sub("", " ".join(text.split())))


def _letters(text: str) -> str:
    if text.isascii():
        return _NOT_ASCII_LETTERS.sub("", text.lower().replace("&", "and"))[:KEY_MAX_LENGTH]
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    folded = unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed).translate(_LETTERS))
    return "".join(c for c in folded if c.isalnum())[:KEY_MAX_LENGTH]


def _symbols(name: str) -> str:
    return "".join(c for c in name[:KEY_MAX_LENGTH] if c.isprintable() and not c.isspace())
