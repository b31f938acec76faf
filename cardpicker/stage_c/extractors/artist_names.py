"""Artist names as OCR reads them, compared on [a-z0-9] only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from cardpicker.stage_c.extractors.collector_parse import LineRead
from cardpicker.stage_c.extractors.rows import ReadPass

MATCH_RATIO = 0.85
MATCH_RATIO_ONE_WORD = 0.92
FREE_TEXT_CONFIDENCE = 0.8  #: Below it, an unmatched text is no name: its contradiction would be a veto.
FREE_TEXT_LETTERS = 5


@lru_cache(maxsize=4096)
def artist_key(name: str) -> str:
    """Return ``name`` with only its letters and digits, lower case, without diacritics."""
    plain = unicodedata.normalize("NFKD", name)
    return re.sub(r"[^a-z0-9]", "", plain.lower())


def similarity(a: str, b: str) -> float:
    """Return how alike two names are by their keys, 0 to 1."""
    return SequenceMatcher(None, artist_key(a), artist_key(b), autojunk=False).ratio()


def needed_ratio(name: str) -> float:
    """Return the similarity from which a text is ``name``: stricter for names of one word."""
    return MATCH_RATIO if len(name.split()) > 1 else MATCH_RATIO_ONE_WORD


@lru_cache(maxsize=64)  # A card's rows are asked about anew after each pass over them.
def best_artist(text: str, artists: tuple[str, ...]) -> tuple[str | None, float]:
    """Return the artist of ``artists`` whom ``text`` names, and the ratio; (None, best ratio) if none.

    The pen before a name and the frame behind it read as stray words, so a name may stand anywhere among them; a name of
    one word must end the text.
    """
    words = text.split()
    lengths = {name: len(name.split()) for name in artists}
    windows = {length: _windows(words, length) for length in set(lengths.values())}
    exact = max((name for name in artists if artist_key(name) in windows[lengths[name]]), default=None)
    if exact is not None:
        return exact, 1.0  # No other ratio is as high, and comparing a row with a hundred names takes long.
    ratio, artist = 0.0, ""
    for name in artists:
        wanted = artist_key(name)
        matcher = SequenceMatcher(None, "", wanted, autojunk=False)  # It prepares its second text, not its first.
        for key in windows[lengths[name]]:
            # A basic land has a hundred artists: most differ by their length or their letters alone.
            if 2 * min(len(key), len(wanted)) < ratio * (len(key) + len(wanted)):
                continue
            matcher.set_seq1(key)
            if matcher.quick_ratio() >= ratio:
                ratio, artist = max((ratio, artist), (matcher.ratio(), name))
    return (artist if artist and ratio >= needed_ratio(artist) else None), round(ratio, 3)


def _windows(words: Sequence[str], length: int) -> set[str]:
    """Return the keys of what may be a name of ``length`` words: the ends of the text, and its inner runs."""
    found = {artist_key(" ".join(words[skip:])) for skip in range(min(4, len(words)))}
    if length >= 2:
        for size in (length - 1, length, length + 1):
            found |= {artist_key(" ".join(words[at : at + size])) for at in range(len(words) - size + 1)}
    return found - {""}


def tidy_name(text: str) -> str:
    """Return ``text`` without the stray characters that the pen before a name and the line's end leave."""
    words = [re.sub(r"^[^\w]+", "", word) for word in text.split()]
    while words and (len(artist_key(words[0])) < 2 or not words[0][:1].isupper()):
        words.pop(0)
    return " ".join(words).strip(" .,;:|_-—'\"")


def artist_in_row(passes: Sequence[ReadPass], lines: Sequence[LineRead], artists: tuple[str, ...]) -> str | None:
    """Return the artist who stands in the set code's row, or None where none is clearly legible."""
    free: list[tuple[float, str]] = []
    for read, line in zip(passes, lines, strict=True):
        if line.set is None or not line.set.code.known:
            continue
        row = read.rows[line.set.row]
        name, _ = best_artist(line.set.rest, artists)
        if name is not None:
            return name
        text = tidy_name(line.set.rest)
        # One word may be half a name, whose contradiction would be false.
        if len(text.split()) >= 2 and len(artist_key(text)) >= FREE_TEXT_LETTERS:
            start = row.text.find(line.set.rest)
            free.append((row.confidence_at(start + line.set.rest.find(text.split()[0]), len(row.text)), text))
    belief, text = max(free, default=(0.0, ""))
    return text if belief >= FREE_TEXT_CONFIDENCE else None
