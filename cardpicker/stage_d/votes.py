"""Votes: the one place that writes them. One live vote per card and voter; rivals never raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from cardpicker.models import CanonicalCard, Card, CardPrintingTag, PrintingTagStatus, VoteSource
from cardpicker.stage_d.consensus import recompute_consensus
from cardpicker.stage_d.locking import lock_cards, retrying_deadlocks
from cardpicker.stage_d.verdicts import Abstained, CalculatorReport, Verdict, Vote

if TYPE_CHECKING:
    from django.contrib.auth.models import User

_VOTE_FIELDS = ["printing", "is_no_match", "user", "source", "confidence", "evidence", "run_id", "updated_at"]


class VoteOutcome(StrEnum):
    """What casting a vote came to."""

    WRITTEN = "written"
    ALREADY_VOTED = "already-voted"
    RETRACTED = "retracted"
    NOTHING_TO_RETRACT = "nothing-to-retract"
    CARD_GONE = "card-gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanVote:
    """What a person's vote came to, and where the card stands now."""

    outcome: VoteOutcome
    status: PrintingTagStatus
    printing_id: int | None


def write_machine_votes(
    voter: str, source: VoteSource, verdicts: Mapping[int, Verdict], run_id: str
) -> CalculatorReport:
    """Make a calculator's live votes equal to its verdicts: write, keep, replace or withdraw.

    Args:
        verdicts: by card id; a card without one keeps whatever vote it has.
    """
    return retrying_deadlocks(lambda: _write_machine_votes(voter, source, verdicts, run_id))


def _write_machine_votes(
    voter: str, source: VoteSource, verdicts: Mapping[int, Verdict], run_id: str
) -> CalculatorReport:
    with transaction.atomic():
        lock_cards(verdicts)
        live = {vote.card_id: vote for vote in CardPrintingTag.objects.filter(card_id__in=verdicts, anonymous_id=voter)}
        new: list[CardPrintingTag] = []
        stale: list[int] = []
        abstained: Counter[str] = Counter()
        already_voted = 0
        for card_id, verdict in sorted(verdicts.items()):
            existing = live.get(card_id)
            if isinstance(verdict, Vote):
                vote = _machine_vote(voter, source, card_id, verdict, run_id)
                if existing is not None and _says_the_same(existing, vote):
                    already_voted += 1
                else:
                    new.append(vote)
            else:
                abstained[verdict.reason.value if isinstance(verdict, Abstained) else "routed"] += 1
                stale += [existing.pk] if existing is not None else []
        _upsert(new)
        withdrawn, _ = CardPrintingTag.objects.filter(pk__in=stale).delete()
    return CalculatorReport(
        votes_written=len(new), already_voted=already_voted, withdrawn=withdrawn, abstained=dict(abstained)
    )


def cast_human_vote(card: Card, printing: CanonicalCard | None, user: User, *, run_id: str = "") -> HumanVote:
    """Record what a person says a card shows, and settle the card if that settles it.

    Args:
        printing: None says that no such printing exists.
        user: a superuser's vote has an admin's weight.
    """
    source = VoteSource.ADMIN if user.is_superuser else VoteSource.USER
    vote = CardPrintingTag(
        card_id=card.pk,
        printing=printing,
        is_no_match=printing is None,
        anonymous_id=human_voter(user),
        user_id=user.pk,
        source=source,
        run_id=run_id,
    )
    return retrying_deadlocks(lambda: _cast(vote))


def retract_vote(card: Card, user: User) -> HumanVote:
    """Take back a person's vote; without one nothing happens."""

    def unit() -> HumanVote:
        with transaction.atomic():
            lock_cards([card.pk])
            deleted, _ = CardPrintingTag.objects.filter(card_id=card.pk, anonymous_id=human_voter(user)).delete()
            outcome = VoteOutcome.RETRACTED if deleted else VoteOutcome.NOTHING_TO_RETRACT
            return _settle(card.pk, outcome)

    return retrying_deadlocks(unit)


def human_voter(user: User) -> str:
    """Return the id under which a person votes."""
    return f"user:{user.pk}"


def _cast(vote: CardPrintingTag) -> HumanVote:
    with transaction.atomic():
        lock_cards([vote.card_id])
        existing = CardPrintingTag.objects.filter(card_id=vote.card_id, anonymous_id=vote.anonymous_id).first()
        if existing is not None and _says_the_same(existing, vote):
            return _settle(vote.card_id, VoteOutcome.ALREADY_VOTED)
        if not Card.objects.filter(pk=vote.card_id).exists():
            return _settle(vote.card_id, VoteOutcome.CARD_GONE)
        _upsert([vote])
        return _settle(vote.card_id, VoteOutcome.WRITTEN)


def _settle(card_id: int, outcome: VoteOutcome) -> HumanVote:
    recompute_consensus([card_id])
    row = Card.objects.filter(pk=card_id).values_list("printing_tag_status", "inferred_canonical_card_id").first()
    status, printing_id = row or (PrintingTagStatus.UNRESOLVED, None)
    return HumanVote(outcome=outcome, status=PrintingTagStatus(status), printing_id=printing_id)


def _machine_vote(voter: str, source: VoteSource, card_id: int, verdict: Vote, run_id: str) -> CardPrintingTag:
    return CardPrintingTag(
        card_id=card_id,
        printing_id=verdict.printing_id,
        is_no_match=verdict.printing_id is None,
        anonymous_id=voter,
        source=source,
        confidence=verdict.confidence,
        evidence=verdict.evidence,
        run_id=run_id,
    )


def _says_the_same(left: CardPrintingTag, right: CardPrintingTag) -> bool:
    fields = ("printing_id", "is_no_match", "source", "confidence", "evidence")
    return all(getattr(left, name) == getattr(right, name) for name in fields)


def _upsert(votes: list[CardPrintingTag]) -> None:
    now = timezone.now()
    for vote in votes:
        vote.updated_at = now
    CardPrintingTag.objects.bulk_create(
        votes, update_conflicts=True, unique_fields=["card", "anonymous_id"], update_fields=_VOTE_FIELDS
    )
