"""Votes: how machines and people cast and take back theirs. One live vote per card and voter; rivals never raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import transaction

from cardpicker.models import CanonicalCard, Card, PrintingTagStatus, VoteChange, VoteSource
from cardpicker.stage_d.consensus import settle_pools
from cardpicker.stage_d.locking import LockedCard, lock_cards, retrying_deadlocks
from cardpicker.stage_d.twins import Pool, lock_pools
from cardpicker.stage_d.verdicts import Abstained, CalculatorReport, Verdict, Vote
from cardpicker.stage_d.vote_rows import VoteRow, delete_votes, read_votes, upsert_votes

if TYPE_CHECKING:
    from django.contrib.auth.models import User


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

    def unit() -> CalculatorReport:
        with transaction.atomic():
            return store_machine_votes(voter, source, verdicts, run_id, lock_cards(verdicts))

    return retrying_deadlocks(unit)


def store_machine_votes(
    voter: str, source: VoteSource, verdicts: Mapping[int, Verdict], run_id: str, locked: Mapping[int, LockedCard]
) -> CalculatorReport:
    """Do the same for cards that the caller has locked, within its transaction; cards not locked are left alone."""
    live = read_votes(verdicts, voter)
    new: list[VoteRow] = []
    stale: list[int] = []
    abstained: Counter[str] = Counter()
    already_voted = 0
    for card_id, verdict in sorted(verdicts.items()):
        if card_id not in locked:
            continue
        vote_id, existing = live.get(card_id, (0, None))
        if isinstance(verdict, Vote):
            vote = _machine_vote(voter, source, locked[card_id], verdict, run_id)
            if existing is not None and existing.says_the_same(vote):
                already_voted += 1
            else:
                new.append(vote)
        else:
            abstained[verdict.reason.value if isinstance(verdict, Abstained) else "routed"] += 1
            stale += [vote_id] if existing is not None else []
    upsert_votes(new)
    withdrawn = delete_votes(stale, VoteChange.WITHDRAWN, run_id)
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

    def unit() -> HumanVote:
        with transaction.atomic():
            pools = lock_pools([card.pk])
            if not pools:
                return HumanVote(outcome=VoteOutcome.CARD_GONE, status=PrintingTagStatus.UNRESOLVED, printing_id=None)
            locked = _card_of(pools[0], card.pk)
            vote = VoteRow(
                card_id=card.pk,
                printing_id=printing.pk if printing is not None else None,
                voter=human_voter(user),
                user_id=user.pk,
                source=source,
                image_version=locked.image_version,
                run_id=run_id,
            )
            _, existing = read_votes([card.pk], vote.voter).get(card.pk, (0, None))
            if existing is not None and existing.says_the_same(vote):
                return _settle(pools[0], card.pk, VoteOutcome.ALREADY_VOTED)
            upsert_votes([vote])
            return _settle(pools[0], card.pk, VoteOutcome.WRITTEN)

    return retrying_deadlocks(unit)


def retract_vote(card: Card, user: User, *, run_id: str = "") -> HumanVote:
    """Take back a person's vote on an image, from each of its byte-identical cards; without one nothing happens."""

    def unit() -> HumanVote:
        with transaction.atomic():
            pools = lock_pools([card.pk])
            if not pools:
                return HumanVote(outcome=VoteOutcome.CARD_GONE, status=PrintingTagStatus.UNRESOLVED, printing_id=None)
            votes = read_votes([each.id for each in pools[0].cards], human_voter(user))
            deleted = delete_votes([vote_id for vote_id, _ in votes.values()], VoteChange.RETRACTED, run_id)
            return _settle(pools[0], card.pk, VoteOutcome.RETRACTED if deleted else VoteOutcome.NOTHING_TO_RETRACT)

    return retrying_deadlocks(unit)


def human_voter(user: User) -> str:
    """Return the id under which a person votes."""
    return f"user:{user.pk}"


def _settle(pool: Pool, card_id: int, outcome: VoteOutcome) -> HumanVote:
    changed = settle_pools([pool])
    locked = _card_of(pool, card_id)
    status, printing_id = PrintingTagStatus(locked.status), locked.printing_id
    if card_id in changed:
        status, printing_id = changed[card_id].status, changed[card_id].printing_id
    return HumanVote(outcome=outcome, status=status, printing_id=printing_id)


def _card_of(pool: Pool, card_id: int) -> LockedCard:
    return next(card for card in pool.cards if card.id == card_id)


def _machine_vote(voter: str, source: VoteSource, card: LockedCard, verdict: Vote, run_id: str) -> VoteRow:
    return VoteRow(
        card_id=card.id,
        printing_id=verdict.printing_id,
        voter=voter,
        source=source,
        confidence=verdict.confidence,
        evidence=dict(verdict.evidence),
        image_version=card.image_version,
        run_id=run_id,
    )
