"""Why the machines said nothing of cards that show a printing, and whether the truth is among what they left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models.functions import Lower

from cardpicker.models import CanonicalCard, ReviewItem, ReviewReason
from cardpicker.operations.scoring import Expect, Result, Score, ScoredRow

NOT_ASKED = "no-question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstention:
    """A card that no machine voted on."""

    file: str
    card_id: int
    expected: str
    reason: str  #: Of the stored question.
    detail: str
    survivors: int
    truth_survives: bool | None  #: None where the truth is no printing that the catalog has.

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstentions:
    """All of a score's abstentions."""

    rows: Sequence[Abstention] = ()
    unknown_printings: Sequence[str] = field(default_factory=tuple)  #: Expected, and not in the catalog.

    @property
    def by_reason(self) -> Mapping[str, int]:
        """How many have each reason."""
        return Counter(row.reason for row in self.rows)

    @property
    def ambiguous(self) -> list[Abstention]:
        """Those between several printings, where the true one is in the catalog."""
        return [row for row in self.rows if row.reason == ReviewReason.AMBIGUOUS and row.truth_survives is not None]

    @property
    def ambiguous_share(self) -> float | None:
        """The share of the ambiguous ones whose true printing is still possible; None where there are none."""
        rows = self.ambiguous
        return round(sum(bool(row.truth_survives) for row in rows) / len(rows), 4) if rows else None

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "abstained": [row.as_json() for row in self.rows],
            "abstained_by_reason": dict(sorted(self.by_reason.items())),
            "ambiguous": {
                "cards": len(self.ambiguous),
                "truth_survives": sum(bool(row.truth_survives) for row in self.ambiguous),
                "share": self.ambiguous_share,
            },
            "unknown_printings": list(self.unknown_printings),
        }


def read_abstentions(score: Score) -> Abstentions:
    """Look up why the score's cards have no vote."""
    silent = [row for row in score.rows if row.result is Result.ABSTAINED]
    known = _known_printings(score.rows)
    questions = ReviewItem.objects.in_bulk([row.card_id for row in silent], field_name="card_id")
    return Abstentions(
        rows=[_abstention(row, questions.get(row.card_id), known.get(row.truth.answer, set())) for row in silent],
        unknown_printings=tuple(
            sorted(
                {
                    row.truth.answer
                    for row in score.rows
                    if row.truth.expect is Expect.PRINTING and row.truth.answer not in known
                }
            )
        ),
    )


def _abstention(row: ScoredRow, question: ReviewItem | None, truth: set[int]) -> Abstention:
    survivors = question.survivors if question is not None else []
    return Abstention(
        file=row.truth.file,
        card_id=row.card_id,
        expected=row.truth.answer,
        reason=question.reason if question is not None else NOT_ASKED,
        detail=question.detail if question is not None else "",
        survivors=len(survivors),
        truth_survives=not truth.isdisjoint(survivors) if truth else None,
    )


def _known_printings(rows: Iterable[ScoredRow]) -> dict[str, set[int]]:
    """Return the catalog's printings for each expected answer that it has; several where languages share a number."""
    wanted = {row.truth.answer for row in rows if row.truth.expect is Expect.PRINTING}
    found: dict[str, set[int]] = {}
    printings = (
        CanonicalCard.objects.annotate(number=Lower("collector_number"))
        .filter(expansion__code__in={answer.split(" ")[0] for answer in wanted}, number__in=_numbers(wanted))
        .values_list("pk", "expansion__code", "number")
    )
    for pk, set_code, number in printings:
        if f"{set_code} {number}" in wanted:
            found.setdefault(f"{set_code} {number}", set()).add(pk)
    return found


def _numbers(answers: Iterable[str]) -> set[str]:
    return {answer.partition(" ")[2] for answer in answers}
