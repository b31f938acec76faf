"""How printed text compares: collector numbers, set codes, artists.

Pure functions over strings; they know nothing of cards or votes. Artist comparison is three-valued, because a garbled
reading is neither agreement nor disagreement.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

#: Ratio at which two artist names are the same; a single word has less to go by and must fit better.
NAME_RATIO = 0.85
WORD_RATIO = 0.92
#: Below this ratio a reading long enough to judge names somebody else; between the two it is too garbled to say.
OTHER_NAME_RATIO = 0.6
#: Fewer letters than this cannot contradict anything.
SHORTEST_TELLING_NAME = 5

_NUMBER = re.compile(r"^([^0-9]*)0*([0-9].*)$")
_CONFUSABLE = str.maketrans({"o": "0", "q": "0", "i": "1", "l": "1", "z": "2", "s": "5", "g": "6", "b": "8"})


@lru_cache(maxsize=16384)
def normalize_number(text: str) -> str:
    """Return a collector number as it is compared: lower case, one star sign, no leading zeros."""
    compact = text.strip().lower().replace(" ", "").replace("*", "★")
    split = _NUMBER.match(compact)
    return split[1] + split[2] if split else compact


@lru_cache(maxsize=16384)
def fold_confusable(code: str) -> str:
    """Return ``code`` with the letters that OCR takes for digits folded into them, so that ``eo2`` meets ``e02``."""
    return code.lower().translate(_CONFUSABLE)


def is_near(left: str, right: str) -> bool:
    """Tell whether two strings are at most one OCR slip apart: a character lost, gained or taken for another."""
    a, b = fold_confusable(left), fold_confusable(right)
    if a == b:
        return True
    if abs(len(a) - len(b)) > 1:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    rest_a, rest_b = a[start:], b[start:]
    return rest_a[1:] == rest_b[1:] or rest_a[1:] == rest_b or rest_a == rest_b[1:]


@lru_cache(maxsize=16384)
def same_artist(read: str, artist: str) -> bool | None:
    """Tell whether a read name is ``artist``: yes, no, or too little or too garbled to say.

    Args:
        read: what was read, possibly with other words around the name.
        artist: the credited name; several artists are joined by ``&`` and each stands for all.
    """
    words = [word for word in map(_fold_name, read.split()) if word]
    if not words or not _fold_name(artist):
        return None
    best = 0.0
    for credited in re.split(r"\s+(?:&|and)\s+", artist):
        name_words = [word for word in map(_fold_name, credited.split()) if word]
        if not name_words:
            continue
        if _fits(words, name_words):
            return True
        best = max(best, _best_window(words, name_words))
    if best >= OTHER_NAME_RATIO or len("".join(words)) < SHORTEST_TELLING_NAME:
        return None
    return False


def _fits(words: list[str], name_words: list[str]) -> bool:
    enough = NAME_RATIO if len(name_words) > 1 else WORD_RATIO
    if _best_window(words, name_words) >= enough or _ratio("".join(words), "".join(name_words)) >= enough:
        return True
    # Some cards credit the family name alone.
    return len(words) == 1 and len(words[0]) >= SHORTEST_TELLING_NAME and _ratio(words[0], name_words[-1]) >= WORD_RATIO


def _best_window(words: list[str], name_words: list[str]) -> float:
    size, name = len(name_words), "".join(name_words)
    windows = ["".join(words[at : at + size]) for at in range(max(1, len(words) - size + 1))]
    return max(_ratio(window, name) for window in windows)


def _ratio(left: str, right: str) -> float:
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


def _fold_name(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]", "", plain)
