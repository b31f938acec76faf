"""Bulk jobs of Stage D: verdicts, consensus, and taking machine votes back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from cardpicker.models import (
    Card,
    CardPrintingTag,
    ImageEvidence,
    PrintingTagStatus,
    ReviewItem,
    VoteChange,
    VoteSource,
)
from cardpicker.operations.bulk.jobs import ChunkResult, Scope
from cardpicker.stage_d.consensus import recompute_consensus
from cardpicker.stage_d.eligibility import eligible_cards
from cardpicker.stage_d.registry import stage_d_manifest
from cardpicker.stage_d.run import StageDReport, judge_chunk
from cardpicker.stage_d.twins import lock_pools
from cardpicker.stage_d.vote_rows import delete_votes
from cardpicker.stage_e.work import mark_due

MACHINES: Final = (VoteSource.OCR, VoteSource.DEDUCTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalculateVerdicts:
    """Judge every eligible card in scope, as the stream does."""

    command: ClassVar[str] = "local_calculate_verdicts"
    needs_dry_run: ClassVar[bool] = True
    scope: Scope

    @property
    def words(self) -> str:
        """The scope and the rules: a dry run by other rules vouches for nothing."""
        return f"{self.scope.words}; calculators {stage_d_manifest()}"

    def cards(self) -> QuerySet[Card]:
        """Cards in scope whose evidence may be judged."""
        return eligible_cards(self.scope.cards())

    def apply(self, card_ids: Collection[int], run_id: str) -> ChunkResult:
        """Judge."""
        return ChunkResult(counts=verdict_counts(judge_chunk(card_ids, run_id=run_id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeConsensus:
    """Bring cards in line with their votes."""

    command: ClassVar[str] = "consensus_recompute"
    needs_dry_run: ClassVar[bool] = False
    scope: Scope

    @property
    def words(self) -> str:
        """The scope."""
        return self.scope.words

    def cards(self) -> QuerySet[Card]:
        """Cards in scope that have votes, or an answer."""
        votes = CardPrintingTag.objects.filter(card=OuterRef("pk"))
        return self.scope.cards().filter(Exists(votes) | ~Q(printing_tag_status=PrintingTagStatus.UNRESOLVED))

    def apply(self, card_ids: Collection[int], run_id: str) -> ChunkResult:
        """Recompute."""
        return ChunkResult(counts=_consensus_counts(card_ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractRun:
    """Take back what the calculators said in one run; people's votes stay."""

    command: ClassVar[str] = "retract_stage_d_by_run_id"
    needs_dry_run: ClassVar[bool] = False
    run_id: str
    rejudge: bool = False  #: Whether the cards are due for judgement at once, by the rules of now.

    @property
    def words(self) -> str:
        """The run."""
        return f"run {self.run_id}{', judged again' if self.rejudge else ''}"

    def cards(self) -> QuerySet[Card]:
        """Cards with a machine's vote or a question of that run."""
        votes = CardPrintingTag.objects.filter(card=OuterRef("pk"), run_id=self.run_id, source__in=MACHINES)
        items = ReviewItem.objects.filter(card=OuterRef("pk"), run_id=self.run_id)
        return Card.objects.filter(Exists(votes) | Exists(items))

    def apply(self, card_ids: Collection[int], run_id: str) -> ChunkResult:
        """Take back."""
        votes = CardPrintingTag.objects.filter(run_id=self.run_id)
        items = ReviewItem.objects.filter(run_id=self.run_id)
        counts = _take_back(card_ids, votes, VoteChange.RUN_RETRACTED, run_id)
        counts["questions_removed"] = items.filter(card_id__in=card_ids).delete()[0]
        if self.rejudge:
            ImageEvidence.objects.filter(card_id__in=card_ids).update(judged_by="")
            counts["made_due"] = mark_due(card_ids, "retracted")
        return ChunkResult(counts=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMachineVotes:
    """Remove machine votes, of one calculator or of all; people's votes stay."""

    command: ClassVar[str] = "purge_machine_votes"
    needs_dry_run: ClassVar[bool] = True
    scope: Scope
    voter: str = ""

    @property
    def words(self) -> str:
        """The scope and the voter."""
        return f"{self.scope.words}; {self.voter or 'every machine'}"

    def cards(self) -> QuerySet[Card]:
        """Cards in scope with such a vote."""
        return self.scope.cards().filter(Exists(self._votes().filter(card=OuterRef("pk"))))

    def apply(self, card_ids: Collection[int], run_id: str) -> ChunkResult:
        """Remove."""
        return ChunkResult(counts=_take_back(card_ids, self._votes(), VoteChange.PURGED, run_id))

    def _votes(self) -> QuerySet[CardPrintingTag]:
        votes = CardPrintingTag.objects.filter(source__in=MACHINES)
        return votes.filter(anonymous_id=self.voter) if self.voter else votes


def verdict_counts(report: StageDReport) -> dict[str, int]:
    """Return a report as flat counts."""
    counts: dict[str, int] = {"judged": report.judged, "settled": report.resolved, "questions": report.routed_to_review}
    for name, calculator in report.calculators.items():
        counts |= {
            f"{name}: votes written": calculator.votes_written,
            f"{name}: already voted": calculator.already_voted,
            f"{name}: withdrawn": calculator.withdrawn,
            **{f"{name}: {reason}": count for reason, count in calculator.abstained.items()},
        }
    return {name: count for name, count in counts.items() if count}


def _take_back(
    card_ids: Collection[int], votes: QuerySet[CardPrintingTag], change: VoteChange, run_id: str
) -> dict[str, int]:
    """Delete these cards' machine votes among ``votes``, and bring the cards in line."""
    lock_pools(card_ids)
    keys = list(votes.filter(card_id__in=card_ids, source__in=MACHINES).values_list("pk", flat=True))
    return {"votes_removed": delete_votes(keys, change, run_id), **_consensus_counts(card_ids)}


def _consensus_counts(card_ids: Collection[int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for decision in recompute_consensus(card_ids).values():
        name = f"now {decision.status.label.lower()}"
        counts[name] = counts.get(name, 0) + 1
    return counts
