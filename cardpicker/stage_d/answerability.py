"""How readily a person can answer a question: the number by which questions are put in order.

Pure. Few printings to choose from count most; then what was read, for that can be checked by eye; then whether the
printings left can be told apart by it at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Final

from cardpicker.stage_d.art_index import MATCH_DISTANCE, art_distances
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.readings import Readings
from cardpicker.stage_d.suggestions import Suggestion

HIGHEST: Final = 1000
#: Of a question where nothing was read, what remains; each of five clues adds a fifth of the rest.
WITHOUT_CLUES: Final = 0.4
#: Where a name is to be found first: at best, and with nothing to begin with.
BY_SUGGESTION: Final = 0.25
WITHOUT_ANYTHING: Final = 0.02
#: Where nothing that was read, nor the art, tells the printings apart; and where the image is cut.
INDISTINCT: Final = 0.5
TRUNCATED: Final = 0.5


def answerability(readings: Readings, left: Sequence[Candidate], suggestions: Sequence[Suggestion]) -> int:
    """Return 0 to 1000, higher where a person answers sooner.

    Args:
        left: the printings still possible.
        suggestions: names that may be meant, where none is possible.
    """
    value = _choice(len(left), suggestions)
    value *= WITHOUT_CLUES + (1 - WITHOUT_CLUES) * _clues(readings, left) / 5
    if len(left) > 1 and not _tells_apart(readings, left):
        value *= INDISTINCT
    if readings.truncated:
        value *= TRUNCATED
    return round(HIGHEST * value)


def _choice(count: int, suggestions: Sequence[Suggestion]) -> float:
    if count:
        return 1 / (1 + log2(count))
    best = max((suggestion.similarity for suggestion in suggestions), default=0.0)
    return max(WITHOUT_ANYTHING, BY_SUGGESTION * best)


def _clues(readings: Readings, left: Sequence[Candidate]) -> int:
    distances = art_distances(readings.art_hash, [candidate.art_hash for candidate in left])
    is_known_art = any(distance is not None and distance <= MATCH_DISTANCE for distance in distances)
    read = (readings.number, readings.set_code, readings.any_artist, readings.copyright_year)
    return sum(value is not None for value in read) + is_known_art


def _tells_apart(readings: Readings, left: Sequence[Candidate]) -> bool:
    """Tell whether the line was read in part, or the printings left have arts of their own."""
    arts = {candidate.art_hash for candidate in left}
    return readings.number is not None or readings.set_code is not None or (None not in arts and len(arts) == len(left))
