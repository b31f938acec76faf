"""Consensus: what the votes on a card come to. Machines suggest, people resolve.

``decide`` is pure and exact: weights are whole numbers of half a user's vote, shares are compared by multiplication.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from cardpicker.models import Card, CardPrintingTag, ImageEvidence, PrintingTagStatus, ReviewItem, VoteSource
from cardpicker.stage_d.locking import lock_cards, retrying_deadlocks

#: In halves of a user's vote.
WEIGHTS: Final[Mapping[str, int]] = {
    VoteSource.USER: 2,
    VoteSource.ADMIN: 10,
    VoteSource.OCR: 1,
    VoteSource.DEDUCTION: 1,
}
HUMAN_SOURCES: Final = frozenset({VoteSource.USER, VoteSource.ADMIN})
MACHINE_CAP: Final = 2  #: All machines together weigh at most one user, per outcome.
RESOLVING_WEIGHT: Final = 4  #: Two users.
SHARE_NUMERATOR, SHARE_DENOMINATOR = 3, 5  #: The winner needs at least this share of all weight.


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote as consensus sees it; ``printing_id`` None is "no such printing"."""

    printing_id: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Decision:
    """A card's status, and its printing when that is RESOLVED."""

    status: PrintingTagStatus
    printing_id: int | None = None


UNRESOLVED: Final = Decision(PrintingTagStatus.UNRESOLVED)


def decide(votes: Iterable[Ballot]) -> Decision:
    """Return what the votes come to, whatever their order."""
    human: defaultdict[int | None, int] = defaultdict(int)
    machine: defaultdict[int | None, int] = defaultdict(int)
    for vote in votes:
        (human if vote.source in HUMAN_SOURCES else machine)[vote.printing_id] += WEIGHTS[vote.source]
    if not human:
        return UNRESOLVED
    if len(human) > 1 or max(human.values()) >= RESOLVING_WEIGHT:
        machine.clear()
    total = {
        outcome: human.get(outcome, 0) + min(machine.get(outcome, 0), MACHINE_CAP) for outcome in {*human, *machine}
    }
    winner = max(total, key=lambda outcome: total[outcome])
    has_weight = total[winner] >= RESOLVING_WEIGHT
    has_share = total[winner] * SHARE_DENOMINATOR >= sum(total.values()) * SHARE_NUMERATOR
    if not (winner in human and has_weight and has_share):
        return UNRESOLVED
    if winner is None:
        return Decision(PrintingTagStatus.NO_MATCH)
    return Decision(PrintingTagStatus.RESOLVED, winner)


def recompute_consensus(card_ids: Collection[int]) -> dict[int, Decision]:
    """Bring the given cards in line with their votes, in one transaction; return the decisions that changed a card.

    A card that got settled asks nobody any more, so its review item goes. One that came open again is due for
    judgement, so its evidence counts as unjudged.
    """
    return retrying_deadlocks(lambda: _recompute(card_ids))


def _recompute(card_ids: Collection[int]) -> dict[int, Decision]:
    with transaction.atomic():
        lock_cards(card_ids)
        ballots: defaultdict[int, list[Ballot]] = defaultdict(list)
        votes = CardPrintingTag.objects.filter(card_id__in=card_ids)
        for card_id, printing_id, source in votes.values_list("card_id", "printing_id", "source"):
            ballots[card_id].append(Ballot(printing_id, source))
        cards = Card.objects.filter(pk__in=card_ids).order_by("pk")
        changed: list[Card] = []
        reopened: list[int] = []
        for card in cards.only("printing_tag_status", "inferred_canonical_card"):
            decision = decide(ballots[card.pk])
            if (card.printing_tag_status, card.inferred_canonical_card_id) == (decision.status, decision.printing_id):
                continue
            if decision == UNRESOLVED:
                reopened.append(card.pk)
            card.printing_tag_status = decision.status
            card.inferred_canonical_card_id = decision.printing_id
            changed.append(card)
        Card.objects.bulk_update(changed, ["printing_tag_status", "inferred_canonical_card"])
        ImageEvidence.objects.filter(card_id__in=reopened).exclude(judged_by="").update(judged_by="")
        settled = [card.pk for card in changed if card.pk not in reopened]
        ReviewItem.objects.filter(card_id__in=settled).delete()
    return {
        card.pk: Decision(PrintingTagStatus(card.printing_tag_status), card.inferred_canonical_card_id)
        for card in changed
    }
