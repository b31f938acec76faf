"""The scorer: how probable each candidate printing is, beside "something else", given everything read together.

Pure. Each comparison multiplies a candidate's odds by the ratio of two measured rates: how often it comes out so for the
printing shown, and for one that is not. What was not read multiplies nothing. "Something else" stands for a custom card,
a misnamed file, and a printing that the catalog lacks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cardpicker.stage_d import scorer_tables as t
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.scorer_comparisons import Comparison, compare, line_band
from cardpicker.stage_d.scorer_parameters import ScorerParameters
from cardpicker.stage_d.subjects import Subject
from cardpicker.stage_d.verdicts import Ranked, Reason

#: What a misread number leaves right: its printing is another one of the same set.
_OF_THE_SET: Final = frozenset({"copyright_year", "language", "frame", "border", "corners"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The probabilities of a subject's candidates; with ``something_else`` they sum to 1."""

    route: str
    candidates: Sequence[Candidate]
    probabilities: Sequence[float]  #: By candidate.
    something_else: float
    comparisons: Sequence[Comparison]
    supports: Sequence[Sequence[float]]  #: By comparison and candidate: log odds.
    order: Sequence[int]  #: Of the candidates, likeliest first; the lower id among equals.

    def categories(self, place: int) -> dict[str, str]:
        """Return how one candidate compares, by feature; what says nothing of it is absent."""
        return {
            t.feature_of(comparison.table): category
            for comparison in self.comparisons
            if (category := comparison.categories[place]) is not None
        }


def score(subject: Subject, parameters: ScorerParameters) -> Scores:
    """Weigh every candidate printing of the card's name or, for a name that the catalog does not know, of its line.

    Emblems and art cards are no candidates here.
    """
    by_line = not subject.candidates
    pool = [c for c in (subject.line_owners if by_line else subject.candidates) if not c.is_apart]
    route = t.NAMED if not by_line else t.UNNAMED if subject.readings.language in (None, "en") else t.FOREIGN
    comparisons = compare(subject, pool, by_line=by_line)
    supports = [_support(comparison, parameters) for comparison in comparisons]
    sums = [sum(column) for column in zip(*supports, strict=True)] if supports else [0.0] * len(pool)
    prior_else = parameters.something_else[route]
    prior = (1.0 - prior_else) / max(1, len(pool))
    odds = [prior * math.exp(value / parameters.temperature) for value in sums]
    weighed = list(zip(comparisons, supports, strict=True))
    slip = _slip(subject, parameters, weighed, prior) if by_line and pool else 0.0
    total = math.fsum([*odds, prior_else, slip])
    probabilities = [each / total for each in odds]
    order = sorted(range(len(pool)), key=lambda place: (-probabilities[place], pool[place].id))
    return Scores(
        route=route,
        candidates=pool,
        probabilities=probabilities,
        something_else=(prior_else + slip) / total,
        comparisons=comparisons,
        supports=supports,
        order=order,
    )


def ranking(scores: Scores, parameters: ScorerParameters, limit: int) -> tuple[Ranked, ...]:
    """Return the likeliest candidates, with what each reading said of them."""
    return tuple(
        Ranked(
            printing_id=scores.candidates[place].id,
            probability=round(scores.probabilities[place], 4),
            reasons=tuple(
                Reason(
                    feature=t.feature_of(comparison.table),
                    read=comparison.read,
                    said=comparison.categories[place] or "not known of this printing",
                    odds=round(math.exp(support[place] / parameters.temperature), 3),
                )
                for comparison, support in zip(scores.comparisons, scores.supports, strict=True)
            ),
        )
        for place in scores.order[:limit]
    )


def _support(comparison: Comparison, parameters: ScorerParameters) -> list[float]:
    """Return the log odds that a comparison adds, by candidate; nothing where the catalog does not say."""
    table = parameters.support[comparison.table]
    unknown = _unknown_artist(comparison, parameters) if comparison.table.startswith("artist/") else 0.0
    return [unknown if category is None else table[category] for category in comparison.categories]


def _unknown_artist(comparison: Comparison, parameters: ScorerParameters) -> float:
    """Return the log odds for a printing whose artist the catalog lacks, where another one's artist was read.

    Printings of one name often share their artist, so the other one must not win for being better known.
    """
    if t.AGREES not in comparison.categories:
        return 0.0
    share = parameters.unknown_artist
    return math.log(share * math.exp(parameters.support[comparison.table][t.AGREES]) + 1.0 - share)


def _slip(
    subject: Subject, parameters: ScorerParameters, weighed: Sequence[tuple[Comparison, list[float]]], prior: float
) -> float:
    """Return the odds that the line that found its owners was misread, and is another card's of the same set."""
    rate = parameters.slip[line_band(subject.readings) or "unsure"]
    shared = [support for comparison, support in weighed if t.feature_of(comparison.table) in _OF_THE_SET]
    sums = [sum(column) for column in zip(*shared, strict=True)] if shared else [0.0]
    return rate / (1.0 - rate) * prior * len(sums) * math.exp(max(sums) / parameters.temperature)
