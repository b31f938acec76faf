"""What a calculator can say of a card (a vote, an abstention, a question to a person), and what came of saying it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cardpicker.models import ReviewReason
from cardpicker.stage_d.suggestions import Suggestion

EvidenceSummary = dict[str, str | int | float | None]


class SkipReason(StrEnum):
    """Why a calculator said nothing."""

    UNKNOWN_NAME = "unknown-name"
    NO_TEXT = "no-text"
    LOW_CONFIDENCE = "low-confidence"
    AMBIGUOUS = "ambiguous"
    SAME_LINE = "same-printed-line"
    UNKNOWN_SET_CODE = "unknown-set-code"
    NUMBER_FITS_NONE = "number-fits-none"
    LINE_OF_ANOTHER_CARD = "line-of-another-card"
    TRUNCATED = "truncated-image"
    YEAR_CONTRADICTS = "year-contradicts"
    ARTIST_CONTRADICTS = "artist-contradicts"
    NONE_FITS = "none-fits"
    TOO_LITTLE = "too-little-evidence"
    SETTLED_EARLIER = "settled-earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What one reading says of one printing: above 1 its odds multiply in the printing's favor, below 1 against it."""

    feature: str
    read: str
    said: str
    odds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A printing with its probability, and why it has that."""

    printing_id: int
    probability: float
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A printing, or None for "no such printing", and what that rests on."""

    printing_id: int | None
    confidence: float
    evidence: EvidenceSummary = field(default_factory=dict)
    ranking: tuple[Ranked, ...] = ()  #: The likeliest printings, where they were weighed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstained:
    """No vote; ``survivors`` are the printings still possible, best first."""

    reason: SkipReason
    survivors: tuple[int, ...] = ()
    ranking: tuple[Ranked, ...] = ()  #: The likeliest printings, where they were weighed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A question to a person."""

    reason: ReviewReason
    detail: str
    survivors: tuple[int, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()  #: Names that may be meant where the card's own is unknown.
    answerability: int = 0  #: 0 to 1000: how readily a person can answer.


Verdict = Vote | Abstained | Routed


@dataclass(frozen=True, slots=True, kw_only=True)
class CalculatorReport:
    """What one calculator did to a batch."""

    votes_written: int = 0
    already_voted: int = 0
    withdrawn: int = 0
    routed: int = 0
    abstained: Mapping[str, int] = field(default_factory=dict)  #: By reason.

    def __add__(self, other: CalculatorReport) -> CalculatorReport:
        return CalculatorReport(
            votes_written=self.votes_written + other.votes_written,
            already_voted=self.already_voted + other.already_voted,
            withdrawn=self.withdrawn + other.withdrawn,
            routed=self.routed + other.routed,
            abstained=dict(Counter(self.abstained) + Counter(other.abstained)),
        )
