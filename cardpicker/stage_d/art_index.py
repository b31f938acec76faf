"""Distances between art hashes: of a card to its candidates, and to the nearest of the whole catalog.

Pure: numbers in, numbers out; nothing here knows Django. A hash is a 64-bit pattern, signed or unsigned; None, and the 0
that some catalogs write for it, is "no usable hash": it is near nothing and removes nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Of 64 bits: a card further than this from every art shows none of them.
MATCH_DISTANCE: Final = 20
#: How many bits further off than the nearest a rival must be to be another picture.
MARGIN: Final = 5

_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestArt:
    """The art of the catalog nearest to a card's, and how far off the next one is."""

    distance: int
    ids: tuple[int, ...]  #: Of all that have this very hash, ascending.
    runner_up: int | None  #: Distance of the nearest other art; None where there is none.

    @property
    def is_match(self) -> bool:
        """Whether the card shows this art and no other, by threshold and margin."""
        clear = self.runner_up is None or self.runner_up - self.distance >= MARGIN
        return self.distance <= MATCH_DISTANCE and clear


def art_distances(card_hash: int | None, candidate_hashes: Sequence[int | None]) -> list[int | None]:
    """Return, for each candidate, how many bits its art differs in from the card's; None where either is unknown."""
    if not card_hash:
        return [None] * len(candidate_hashes)
    return [((card_hash ^ other) & _MASK).bit_count() if other else None for other in candidate_hashes]


def keep_by_art(distances: Sequence[int | None]) -> list[bool]:
    """Tell, for each candidate, whether its art leaves it possible.

    Only where the nearest art matches is anybody removed, and then only whose art is known to be another one. Candidates
    that share the art are never told apart.
    """
    known = [distance for distance in distances if distance is not None]
    if not known or min(known) > MATCH_DISTANCE:
        return [True] * len(distances)
    limit = min(known) + MARGIN
    return [distance is None or distance < limit for distance in distances]


class ArtIndex:
    """Every art hash of the catalog, for exact nearest neighbors of a batch at a time; 24 bytes an art."""

    def __init__(self, ids: Sequence[int], hashes: Sequence[int | None]) -> None:
        pairs = [(value & _MASK, pk) for pk, value in zip(ids, hashes, strict=True) if value]
        pairs.sort()
        self._ids = np.fromiter((pk for _, pk in pairs), dtype=np.int64, count=len(pairs))
        values = np.fromiter((value for value, _ in pairs), dtype=np.uint64, count=len(pairs))
        #: Each hash once: what shares it would only repeat the work.
        self._values, starts = np.unique(values, return_index=True)
        self._starts: NDArray[np.int64] = np.append(starts, len(pairs)).astype(np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Memory that the index holds."""
        return self._ids.nbytes + self._values.nbytes + self._starts.nbytes

    def nearest(self, card_hashes: Sequence[int | None]) -> list[NearestArt | None]:
        """Return the nearest art of each card, exactly; None for a card without a hash, or an empty index.

        Of arts equally near the lowest hash is named, and ``runner_up`` then equals ``distance``.
        """
        return [self._nearest(value & _MASK) if value and len(self) else None for value in card_hashes]

    def _nearest(self, value: int) -> NearestArt:
        distances = np.bitwise_count(self._values ^ np.uint64(value))
        best = int(distances.argmin())
        distance = int(distances[best])
        runner_up = None
        if len(distances) > 1:
            distances[best] = 65
            runner_up = int(distances.min())
        of_best = self._ids[self._starts[best] : self._starts[best + 1]]
        return NearestArt(distance=distance, ids=tuple(of_best.tolist()), runner_up=runner_up)
