"""Temperature and threshold of the scorer, and how right its probabilities are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cardpicker.stage_d.fallback import may_vote
from cardpicker.stage_d.join_key import judge_join_key
from cardpicker.stage_d.scorer import score
from cardpicker.stage_d.scorer_parameters import ScorerParameters
from cardpicker.stage_d.verdicts import Vote
from scripts.ops.scorer_fit.samples import Sample

Z = 1.96  #: Two-sided 95 %.


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What the scorer makes of a card whose printing is known."""

    sample: Sample
    probability: float  #: Of the likeliest candidate.
    right: bool
    of_truth: float  #: The probability of what is true, a printing or something else.
    may_vote: bool
    left: bool  #: Join-key says nothing of it.


def scored(samples: Sequence[Sample], parameters: ScorerParameters) -> list[Scored]:
    """Score the cards that have candidates."""
    found = []
    for sample in samples:
        scores = score(sample.subject, parameters)
        if not scores.candidates:
            continue
        best = scores.order[0]
        of_truth = {c.id: p for c, p in zip(scores.candidates, scores.probabilities, strict=True)}
        found.append(
            Scored(
                sample=sample,
                probability=scores.probabilities[best],
                right=scores.candidates[best].id == sample.truth,
                of_truth=(
                    of_truth.get(sample.truth or -1, scores.something_else)
                    if sample.truth is not None
                    else scores.something_else
                ),
                may_vote=may_vote(sample.subject, scores),
                left=not isinstance(judge_join_key(sample.subject), Vote),
            )
        )
    return found


def mean_surprise(cards: Sequence[Scored]) -> float:
    """Return the mean negative log probability of what is true."""
    return -sum(math.log(max(card.of_truth, 1e-6)) for card in cards) / max(1, len(cards))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    if not total:
        return 0.0, 1.0
    share, spread = right / total, Z * Z / total
    center = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Votes above a threshold, and how many of them are right."""

    threshold: float
    votes: int
    right: int

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return wilson(self.right, self.votes)[0]

    def __str__(self) -> str:
        low, high = wilson(self.right, self.votes)
        share = self.right / self.votes if self.votes else 0.0
        return f"{self.right} of {self.votes} right, precision {share:.4f} [{low:.4f}, {high:.4f}] at p >= {self.threshold}"


def precision_at(cards: Sequence[Scored], threshold: float) -> Precision:
    """Return the precision of the votes at and above a probability."""
    votes = [card for card in cards if card.may_vote and card.probability >= threshold]
    return Precision(threshold=threshold, votes=len(votes), right=sum(card.right for card in votes))


def choose_threshold(cards: Sequence[Scored], thresholds: Sequence[float], wanted: float) -> Precision:
    """Return the lowest threshold at which the precision is as wanted, proven on all cards and seen on those left.

    Proven: the lower end of its interval. Those that join-key leaves are the ones that the fallback votes on, and too few
    to prove as much. Where no threshold does, the highest is returned: then hardly anything is voted for.
    """
    left = [card for card in cards if card.left]
    for threshold in sorted(thresholds):
        found, rest = precision_at(cards, threshold), precision_at(left, threshold)
        if found.low >= wanted and rest.right >= wanted * rest.votes:
            return found
    return precision_at(cards, max(thresholds))
