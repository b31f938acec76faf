"""Two engines on the same pictures of rows: how often they say the same, and what kind of difference there is."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.imaging.ocr import Layout, OcrEngine, OcrText

#: Letters that engines take for each other in small print.
ALIKE = str.maketrans({"0": "O", "1": "I", "l": "I", "|": "I", "!": "I", "5": "S", "8": "B", "2": "Z", "6": "G"})
_BARE = re.compile(r"[^A-Za-z0-9]")


@dataclass(slots=True, kw_only=True)
class Differences:
    """What two engines said of the same pictures."""

    kinds: Counter[str] = field(default_factory=Counter)
    letters: Counter[str] = field(default_factory=Counter)  #: Exchanges of single letters, "first>second".
    belief_moved: list[float] = field(default_factory=list)  #: Of the mean confidence where the text is the same.


def compare(shown: Sequence[tuple[NDArray[np.uint8], Layout, OcrText]], other: OcrEngine) -> Differences:
    """Show ``other`` what a first engine was shown, and sort what it says."""
    found = Differences()
    for pixels, layout, first in shown:
        second = other.read(pixels, layout=layout)
        kind = kind_of(first.text, second.text)
        found.kinds[kind] += 1
        if kind == "the same":
            found.belief_moved.append(abs(first.confidence - second.confidence))
        else:
            found.letters.update(_exchanges(first.text, second.text))
    return found


def kind_of(first: str, second: str) -> str:
    """Return the least that tells two readings of one picture apart."""
    if first == second:
        return "the same"
    if first.replace(" ", "") == second.replace(" ", ""):
        return "spaces"
    bare = [_BARE.sub("", text) for text in (first, second)]
    if bare[0] == bare[1]:
        return "bullets and points"
    if bare[0].translate(ALIKE).lower() == bare[1].translate(ALIKE).lower():
        return "letters that look alike"
    if not bare[0] or not bare[1]:
        return "one of them read nothing"
    return "other letters"


def _exchanges(first: str, second: str) -> list[str]:
    found = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag != "equal" and max(b - a, d - c) == 1:
            found.append(f"{first[a:b] or '∅'}>{second[c:d] or '∅'}")
    return found
