"""Two engines on the same pictures of rows, word by word: how often they say the same, and what else they say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.imaging.ocr import Layout, OcrEngine, OcrText, OcrWord

SAME, POINTS, ALIKE, OTHER = "the same", "bullets and points", "letters that look alike", "other letters"
ONLY_FIRST, ONLY_SECOND = "only the first saw a word", "only the second saw a word"
MIN_OVERLAP = 0.4
#: Letters that engines take for each other in small print.
_ALIKE = str.maketrans({"0": "O", "1": "I", "l": "I", "|": "I", "!": "I", "5": "S", "8": "B", "2": "Z", "6": "G"})
_BARE = re.compile(r"[^A-Za-z0-9]")
#: What a collector line is made of: numbers, and codes of three to five capitals and digits.
_OF_THE_LINE = re.compile(r"\d|^[A-Z0-9]{3,5}$")


@dataclass(slots=True, kw_only=True)
class Differences:
    """What two engines said of the same pictures."""

    words: Counter[str] = field(default_factory=Counter)
    line_words: Counter[str] = field(default_factory=Counter)  #: Of these, what a collector line is made of.
    belief_moved: list[float] = field(default_factory=list)  #: Of the confidence in a word that is the same.


def compare(shown: Sequence[tuple[NDArray[np.uint8], Layout, OcrText]], other: OcrEngine) -> Differences:
    """Show ``other`` what a first engine was shown, and sort what it says."""
    found = Differences()
    for pixels, layout, first in shown:
        for one, two in paired(first.words, other.read(pixels, layout=layout).words):
            kind = kind_of(one.text if one else "", two.text if two else "")
            found.words[kind] += 1
            if any(word is not None and _OF_THE_LINE.search(word.text) for word in (one, two)):
                found.line_words[kind] += 1
            if one is not None and two is not None and kind == SAME:
                found.belief_moved.append(abs(one.confidence - two.confidence))
    return found


def paired(first: Sequence[OcrWord], second: Sequence[OcrWord]) -> list[tuple[OcrWord | None, OcrWord | None]]:
    """Pair the words that lie at one place; what has no counterpart stands alone."""
    left = list(second)
    pairs: list[tuple[OcrWord | None, OcrWord | None]] = []
    for word in first:
        best = max(left, key=lambda each: _overlap(word, each), default=None)
        if best is None or _overlap(word, best) < MIN_OVERLAP:
            pairs.append((word, None))
        else:
            left.remove(best)
            pairs.append((word, best))
    return pairs + [(None, word) for word in left]


def kind_of(first: str, second: str) -> str:
    """Return the least that tells two readings of one word apart."""
    if not first or not second:
        return ONLY_FIRST if first else ONLY_SECOND
    if first == second:
        return SAME
    bare = [_BARE.sub("", text) for text in (first, second)]
    if bare[0] == bare[1]:
        return POINTS
    if bare[0].translate(_ALIKE).lower() == bare[1].translate(_ALIKE).lower():
        return ALIKE
    return OTHER


def _overlap(one: OcrWord, other: OcrWord) -> float:
    """Return the shared area of two words as a share of all that they cover."""
    a, b = one.box_px, other.box_px
    shared = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return shared / max(1, sum(areas) - shared)
