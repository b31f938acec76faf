"""Consensus: what the votes on an image come to. Machines suggest, people resolve.

``weigh`` is pure and exact: weights are whole numbers of half a user's vote, shares are compared by multiplication.
Byte-identical cards are one image: their votes are pooled, each voter counts once, and all of them get the result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db import connection, transaction

from cardpicker.models import ImageEvidence, PrintingTagStatus, ReviewItem, VoteSource
from cardpicker.stage_d.locking import LockedCard, retrying_deadlocks
from cardpicker.stage_d.twins import Pool, lock_pools

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


_VOTES = """
SELECT id, card_id, anonymous_id, printing_id, source, image_version, updated_at
FROM cardpicker_cardprintingtag WHERE card_id = ANY(%s)
"""
_SETTLE = """
UPDATE cardpicker_card AS card SET printing_tag_status = decided.status, inferred_canonical_card_id = decided.printing_id
FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) AS decided(card_id, status, printing_id)
WHERE card.id = decided.card_id
"""


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


class Rule(StrEnum):
    """Which rule led to the decision."""

    NO_PERSON = "no-person-voted"
    TOO_LIGHT = "winner-too-light"
    SMALL_SHARE = "winner-share-too-small"
    NO_PERSON_FOR_WINNER = "no-person-for-the-winner"
    RESOLVED = "resolved"


class MachinesUnheard(StrEnum):
    """Why the machines' weight was dropped before the winner was chosen."""

    PEOPLE_DISAGREE = "people-disagree"
    PEOPLE_SUFFICE = "people-suffice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """The decision and how it came about; weights are in halves of a user's vote, by outcome."""

    decision: Decision
    rule: Rule
    weights: Mapping[int | None, int] = field(default_factory=dict)
    machines_unheard: MachinesUnheard | None = None


@dataclass(frozen=True, slots=True)
class LiveVote:
    """A stored vote as it is pooled; the latest of a voter's has the highest ``age``."""

    card_id: int
    voter: str
    ballot: Ballot
    image_version: str
    age: tuple[datetime, int]  #: When it was cast, and its row's key.

    @property
    def is_machine(self) -> bool:
        """Whether no person cast it."""
        return self.ballot.source not in HUMAN_SOURCES


UNRESOLVED: Final = Decision(PrintingTagStatus.UNRESOLVED)


def decide(votes: Iterable[Ballot]) -> Decision:
    """Return what the votes come to, whatever their order."""
    return weigh(votes).decision


def weigh(votes: Iterable[Ballot]) -> Weighing:
    """Return what the votes come to, whatever their order, and by which rule."""
    human: defaultdict[int | None, int] = defaultdict(int)
    machine: defaultdict[int | None, int] = defaultdict(int)
    for vote in votes:
        (human if vote.source in HUMAN_SOURCES else machine)[vote.printing_id] += WEIGHTS[vote.source]
    if not human:
        capped = {outcome: min(weight, MACHINE_CAP) for outcome, weight in machine.items()}
        return Weighing(decision=UNRESOLVED, rule=Rule.NO_PERSON, weights=capped)
    unheard = None
    if len(human) > 1 or max(human.values()) >= RESOLVING_WEIGHT:
        unheard = MachinesUnheard.PEOPLE_DISAGREE if len(human) > 1 else MachinesUnheard.PEOPLE_SUFFICE
        machine.clear()
    total = {
        outcome: human.get(outcome, 0) + min(machine.get(outcome, 0), MACHINE_CAP) for outcome in {*human, *machine}
    }
    # A tie never resolves, so which of its outcomes is called the winner changes no decision.
    winner = max(total, key=lambda outcome: total[outcome])
    rule = _rule(winner in human, total[winner], sum(total.values()))
    decision = UNRESOLVED
    if rule is Rule.RESOLVED:
        status = PrintingTagStatus.NO_MATCH if winner is None else PrintingTagStatus.RESOLVED
        decision = Decision(status, winner)
    return Weighing(decision=decision, rule=rule, weights=total, machines_unheard=unheard)


def pool_ballots(votes: Iterable[LiveVote], image_versions: Mapping[int, str]) -> dict[str, LiveVote]:
    """Return the vote of each voter that counts for an image: the latest on any of its cards.

    Args:
        image_versions: by card, for all cards of the image. A vote on an image that its card no longer has is not heard.
    """
    latest: dict[str, LiveVote] = {}
    for vote in votes:
        if vote.image_version not in ("", image_versions[vote.card_id]):
            continue
        if vote.voter not in latest or latest[vote.voter].age < vote.age:
            latest[vote.voter] = vote
    return latest


def load_votes(card_ids: Collection[int]) -> dict[int, list[LiveVote]]:
    """Return the live votes of the cards that have any."""
    votes: defaultdict[int, list[LiveVote]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_VOTES, [sorted(card_ids)])
        rows = cursor.fetchall()
    for pk, card_id, voter, printing_id, source, image_version, updated_at in rows:
        votes[card_id].append(
            LiveVote(card_id, voter, Ballot(printing_id, source), image_version, age=(updated_at, pk))
        )
    return votes


def recompute_consensus(card_ids: Collection[int]) -> dict[int, Decision]:
    """Bring the given cards and their twins in line with their votes, in one transaction.

    A card that got settled asks nobody any more, so its review item goes. One that came open again is due for
    judgement, so its evidence counts as unjudged.

    Returns:
        The decisions that changed a card, by card.
    """

    def unit() -> dict[int, Decision]:
        with transaction.atomic():
            return settle_pools(lock_pools(card_ids))

    return retrying_deadlocks(unit)


def settle_pools(pools: Collection[Pool]) -> dict[int, Decision]:
    """Do the same for pools that the caller has locked, within its transaction."""
    votes = load_votes([card.id for pool in pools for card in pool.cards])
    changed: dict[int, Decision] = {}
    for pool in pools:
        decision = _decide_pool(pool, votes)
        changed |= {card.id: decision for card in pool.cards if not _says(card, decision)}
    if changed:
        _store(changed)
    return changed


def _rule(has_person: bool, weight: int, total: int) -> Rule:
    if weight < RESOLVING_WEIGHT:
        return Rule.TOO_LIGHT
    if weight * SHARE_DENOMINATOR < total * SHARE_NUMERATOR:
        return Rule.SMALL_SHARE
    return Rule.RESOLVED if has_person else Rule.NO_PERSON_FOR_WINNER


def _decide_pool(pool: Pool, votes: Mapping[int, list[LiveVote]]) -> Decision:
    cast = [vote for card in pool.cards for vote in votes.get(card.id, ())]
    if not cast:
        return UNRESOLVED
    heard = pool_ballots(cast, {card.id: card.image_version for card in pool.cards})
    return decide(vote.ballot for vote in heard.values())


def _says(card: LockedCard, decision: Decision) -> bool:
    return (card.status, card.printing_id) == (decision.status, decision.printing_id)


def _store(changed: Mapping[int, Decision]) -> None:
    ordered = sorted(changed)
    statuses = [changed[pk].status.value for pk in ordered]
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, [ordered, statuses, [changed[pk].printing_id for pk in ordered]])
    reopened = [pk for pk in ordered if changed[pk] == UNRESOLVED]
    if reopened:
        ImageEvidence.objects.filter(card_id__in=reopened).exclude(judged_by="").update(judged_by="")
    settled = [pk for pk in ordered if changed[pk] != UNRESOLVED]
    if settled:
        ReviewItem.objects.filter(card_id__in=settled).delete()
