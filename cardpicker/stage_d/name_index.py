"""Names that look alike: which of the catalog's a name that is none of them may mean.

Pure. Similarity is the share of common trigrams, as PostgreSQL's pg_trgm has it, whose extension not every server
brings. What is found is for people to choose from, and is never voted for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

SUGGESTED: Final = 5
#: Below it names have little more than an ending in common.
MIN_SIMILARITY: Final = 0.3


def trigrams(key: str) -> frozenset[str]:
    """Return the trigrams of a key; its start weighs more than its end."""
    padded = f"  {key} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


class NameIndex:
    """The catalog's names by their keys, in memory: about 150 bytes a key."""

    def __init__(self, names: Mapping[str, str]) -> None:
        ordered = sorted(names.items())
        self._names = [name for _, name in ordered]
        postings: defaultdict[str, list[int]] = defaultdict(list)
        sizes = []
        for at, (key, _) in enumerate(ordered):
            grams = trigrams(key)
            sizes.append(len(grams))
            for gram in grams:
                postings[gram].append(at)
        self._postings: dict[str, NDArray[np.int32]] = {
            gram: np.array(places, dtype=np.int32) for gram, places in postings.items()
        }
        self._sizes = np.array(sizes, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._names)

    def suggest(self, key: str, count: int = SUGGESTED) -> list[tuple[str, float]]:
        """Return the names most like ``key`` with their similarity (0 to 1), best first, each name once.

        Among equals the lesser key comes first.
        """
        grams = trigrams(key)
        places = [self._postings[gram] for gram in grams if gram in self._postings]
        if not key or not places:
            return []
        shared = np.bincount(np.concatenate(places), minlength=len(self))
        similarity = shared / (self._sizes + len(grams) - shared)
        likely = np.flatnonzero(similarity >= MIN_SIMILARITY)
        found: dict[str, float] = {}
        for at in likely[np.argsort(-similarity[likely], kind="stable")]:
            found.setdefault(self._names[at], round(float(similarity[at]), 3))
            if len(found) == count:
                break
        return list(found.items())
