"""Whether images that do not come, or come alike, are the images' fault or the way in which they are asked for.

Through the image CDN every image is asked for in one form of address. When Google changes what it makes of that form,
every file looks missing, or every file is answered with 200 and the same stand-in. So results that look like it are held
back until images that were read before, asked for in the same way, have shown whether it still works. No I/O here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.outcomes import Deferred, Failed, Fetched, FetchOutcome, Gone, LockedOut, Throttled, Unusable

MISSES_IN_A_ROW = 5
#: Without an image that is known to be good, so many different files of the same bytes are proof enough.
ALIKE_WITHOUT_CANARY = 3
#: Known images that must all be wrong: a single one may itself be gone.
CANARIES_WANTED, CANARIES_NEEDED = 3, 2
#: Bits by which art hashes of one image may differ between two renditions of it.
SAME_ART = 10

F = TypeVar("F")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was read before off an image that is a canary now."""

    image_sha256: str
    art_hash: int | None
    size_px: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Generic[F]):
    """A result that is held back: what was read, or why nothing was."""

    flight: F
    outcome: CardEvidence | FetchOutcome


@dataclass(slots=True)
class Doubt(Generic[F]):
    """What is held back in one batch, and what the canaries say. A batch doubts once: a verdict holds to its end."""

    reason: str = ""  #: Why it is doubted that images are asked for in the right way; empty: it is not.
    is_settled: bool = False
    _held: list[Held[F]] = field(default_factory=list)
    _misses: int = 0
    _read: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  #: Cards by digest and what their files are listed as.
    _alike: dict[str, None] = field(default_factory=dict)
    _canaries: dict[int, Known] = field(default_factory=dict)
    _is_asked: bool = False
    _sent: set[int] = field(default_factory=set)
    _told: set[int] = field(default_factory=set)
    _good: int = 0
    _bad: int = 0

    @property
    def is_open(self) -> bool:
        """Whether results are being held back for the canaries."""
        return bool(self.reason) and not self.is_settled

    @property
    def is_waiting(self) -> bool:
        """Whether what is held back must stay so until a canary tells; without any, the end of the batch frees it."""
        return self.is_open and bool(self._canaries)

    @property
    def wants_canaries(self) -> bool:
        """Whether there is doubt, and nobody has looked for canaries yet."""
        return self.is_open and not self._is_asked

    @property
    def first_in_doubt(self) -> F:
        """The first flight that is held back."""
        return self._held[0].flight

    def missed(self, flight: F, outcome: FetchOutcome) -> list[Held[F]]:
        """Take a fetch that brought no image, or the news that one arrived, and return what is judged now, in order."""
        result = Held(flight=flight, outcome=outcome)
        if self.is_settled and self.verdict() is None:
            return [result]
        if self.is_settled:
            self._held.append(result)
            return []
        if isinstance(outcome, Gone | Failed | Unusable):
            self._misses += 1
            self._held.append(result)
            if self._misses >= MISSES_IN_A_ROW and not self.reason:
                self.reason = f"{self._misses} images in a row did not come, the last with {outcome.detail}"
            return []
        if isinstance(outcome, Fetched):
            self._misses = 0
        return [*([] if self.is_open else self.release()), result]

    def arrived(self, flight: F, evidence: CardEvidence, card_id: int, listed_as: str) -> bool:
        """Take an image that was read, and say whether it is held back.

        Args:
            listed_as: what the listing says of the file's bytes; empty: nothing, and then equal bytes mean nothing.
        """
        if self.is_settled and self.verdict() is not None:
            self._held.append(Held(flight=flight, outcome=evidence))
            return True
        if self.is_settled or not listed_as:
            return False
        files = self._read.setdefault(evidence.image_sha256, {})
        files.setdefault(listed_as, card_id)
        if len(files) < 2:
            return False
        self._alike[evidence.image_sha256] = None
        self.reason = self.reason or "files that are listed as different came as the same image"
        self._held.append(Held(flight=flight, outcome=evidence))
        self.is_settled = self._is_proven_without_canary()
        return True

    def suspects(self) -> list[tuple[int, str]]:
        """Return the cards whose evidence was stored before the same bytes came again, with those bytes' digest."""
        return [(next(iter(self._read[sha256].values())), sha256) for sha256 in self._alike]

    def ask(self, canaries: Mapping[int, Known]) -> None:
        """Set out to judge by ``canaries``, by card, one after the other; without any, by what is held back alone."""
        self._is_asked = True
        self._canaries = dict(canaries)
        self.is_settled = self._is_proven_without_canary()

    def next_canary(self) -> int | None:
        """Return the card to ask for next, None when enough is known or one is under way."""
        left = [card_id for card_id in self._canaries if card_id not in self._sent]
        if not left or self.is_settled or self._sent != self._told:
            return None
        self._sent.add(left[0])
        return left[0]

    def is_canary(self, card_id: int) -> bool:
        """Whether a card was asked for only to see if images come."""
        return card_id in self._canaries

    def canary_said(self, card_id: int, said: object) -> None:
        """Take what came of a canary; one that could not be asked for leaves everything held back, to be put off."""
        if isinstance(said, Throttled | LockedOut | Deferred):
            return
        self._told.add(card_id)
        if isinstance(said, CardEvidence):
            good = said.image_sha256 not in self._alike and _is_same(said, self._canaries[card_id])
            self._good, self._bad = self._good + good, self._bad + (not good)
        elif isinstance(said, Gone | Failed | Unusable):
            self._bad += 1
        self.is_settled = self._good > 0 or self._told >= self._canaries.keys()

    def _is_proven_without_canary(self) -> bool:
        alike = max((len(self._read[sha256]) for sha256 in self._alike), default=0)
        return self._is_asked and not self._canaries and alike >= ALIKE_WITHOUT_CANARY

    def verdict(self) -> LockedOut | None:
        """Return why nothing more may be asked for in this way, None when it works or nothing is known."""
        if self._good:
            return None
        if self._bad >= CANARIES_NEEDED:
            told = f"{self._bad} images that were read before do not come as they did either"
        elif self._is_proven_without_canary():
            told = f"{ALIKE_WITHOUT_CANARY} of them or more, and no image was read before that could tell otherwise"
        else:
            return None
        return LockedOut(detail=f"images are no longer asked for in the right way: {self.reason[:300]}; {told}")

    def release(self) -> list[Held[F]]:
        """Return what is held back, in order."""
        held, self._held = self._held, []
        return held


def _is_same(said: CardEvidence, known: Known) -> bool:
    """Whether a canary looks as it did: the image host may well compress it otherwise today."""
    if said.image_sha256 == known.image_sha256:
        return True
    if said.art_hash is None or known.art_hash is None:
        return said.art_hash is known.art_hash and (said.width_px, said.height_px) == known.size_px
    return ((said.art_hash ^ known.art_hash) & (2**64 - 1)).bit_count() <= SAME_ART
