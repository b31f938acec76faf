"""Set codes as OCR reads them: the one known code that a token can have meant, or none.

Characters are exchanged only for those that look alike in the line's typeface; two codes at equal distance are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

LANGUAGES = {
    "EN": "en", "DE": "de", "FR": "fr", "IT": "it", "ES": "es", "SP": "es", "PT": "pt", "JA": "ja", "JP": "ja",
    "KO": "ko", "KR": "ko", "RU": "ru", "ZHS": "zhs", "CS": "zhs", "ZHT": "zht", "CT": "zht", "PH": "ph",
}  # fmt: skip
MAX_DISTANCE = 2
CODE_LENGTH = (3, 5)

_ALIKE = ("0OQD", "1IL", "2Z", "5S", "8B", "6G")


def _neighbors() -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for group in _ALIKE:
        for letter in group:
            found.setdefault(letter, set()).update(set(group) - {letter})
    return {letter: "".join(sorted(others)) for letter, others in found.items()}


CONFUSABLE = _neighbors()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCode:
    """A set code as understood: lower case, whether the catalog knows it, and how many characters were exchanged."""

    code: str
    known: bool
    distance: int


def resolve_set_code(token: str, known: frozenset[str]) -> SetCode | None:
    """Return what ``token`` says, or None when it cannot be a set code or could be two.

    An unknown token of the right shape is returned as unknown: it was printed there, and it proves nothing.
    """
    upper = token.upper()
    if not CODE_LENGTH[0] <= len(upper) <= CODE_LENGTH[1] or not upper.isalnum() or not upper.isascii():
        return None
    if upper.isdigit():
        return None
    if upper.lower() in known:
        return SetCode(code=upper.lower(), known=True, distance=0)
    return _nearest(upper, known) or SetCode(code=upper.lower(), known=False, distance=0)


def _nearest(upper: str, known: frozenset[str]) -> SetCode | None:
    for distance in range(1, MAX_DISTANCE + 1):
        reached = {code for code in _variants(upper, distance) if code in known}
        if len(reached) == 1:
            return SetCode(code=reached.pop(), known=True, distance=distance)
        if reached:
            return None
    return None


def _variants(upper: str, distance: int) -> set[str]:
    """Return every string that exchanges exactly ``distance`` characters of ``upper`` for look-alikes, lower case."""
    found: set[str] = set()
    for places in combinations(range(len(upper)), distance):
        for letters in product(*(CONFUSABLE.get(upper[place], "") for place in places)):
            changed = list(upper)
            for place, letter in zip(places, letters, strict=True):
                changed[place] = letter
            found.add("".join(changed).lower())
    return found
