"""Why a card has the answer that it has: what was read, who might be meant, what each calculator says, and the votes.

The verdicts are those of today's rules on the stored readings, judged anew and not stored; the votes are the stored ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cardpicker.models import CanonicalCard, Card, CardPrintingTag, ImageEvidence, ReviewItem, SupersededVote
from cardpicker.stage_d.art_index import art_distances
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.consensus import WEIGHTS, LiveVote, Weighing, load_votes, pool_ballots, weigh
from cardpicker.stage_d.eligibility import why_not_eligible
from cardpicker.stage_d.registry import stage_d_manifest
from cardpicker.stage_d.run import judge
from cardpicker.stage_d.subjects import Subject, load_subjects
from cardpicker.stage_d.twins import read_pools
from cardpicker.stage_d.verdicts import Verdict

#: Weights are kept in halves of a user's vote.
USER_WEIGHT = 2
QUESTION = ("reason", "detail", "survivors", "suggestions", "answerability", "run_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedVote:
    """A live vote on the card or on a twin of it."""

    card_id: int
    voter: str
    source: str
    printing_id: int | None  #: None: no such printing.
    confidence: float | None
    evidence: Mapping[str, Any]
    run_id: str
    weight: float  #: In votes of a user.
    unheard: str  #: Why it does not count; empty where it does.


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All that led to a card's answer."""

    card_id: int
    name: str
    status: str
    printing_id: int | None
    not_judged_because: str  #: Empty where the calculators may judge the card.
    judged_by_todays_rules: bool
    stored_readings: Mapping[str, Any]  #: As the extractors left them.
    readings: Mapping[str, Any]  #: As the calculators understand them.
    candidates: Sequence[Candidate] = ()
    line_owners: Sequence[Candidate] = ()
    art_distances: Mapping[int, int] = field(default_factory=dict)  #: Bits between card and printing, where known.
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    question: Mapping[str, Any] | None = None
    votes: Sequence[ExplainedVote] = ()
    weighing: Weighing
    twins: Sequence[int] = ()
    superseded: Sequence[Mapping[str, Any]] = ()
    printings: Mapping[int, str] = field(default_factory=dict)  #: Names of all printings that are mentioned.

    def as_json(self) -> dict[str, Any]:
        """Return plain values; outcomes that are no printing have the key ``none``."""
        plain = asdict(self)
        plain["weighing"] = {
            "rule": self.weighing.rule.value,
            "status": self.weighing.decision.status.value,
            "printing_id": self.weighing.decision.printing_id,
            "machines_unheard": self.weighing.machines_unheard,
            "weights": {str(key or "none"): weight / USER_WEIGHT for key, weight in self.weighing.weights.items()},
        }
        plain["verdicts"] = {
            name: {"kind": type(verdict).__name__.lower(), **asdict(verdict)} for name, verdict in self.verdicts.items()
        }
        plain["art_distances"] = {str(key): distance for key, distance in self.art_distances.items()}
        plain["printings"] = {str(key): name for key, name in self.printings.items()}
        return plain


def explain(card_id: int) -> Explanation:
    """Return why the card has the answer that it has.

    Raises:
        Card.DoesNotExist: no such card.
    """
    card = Card.objects.get(pk=card_id)
    evidence = ImageEvidence.objects.filter(card=card).first()
    subject = next(iter(load_subjects([card_id], ImageEvidence.objects.all())), None)
    verdicts = judge(subject) if subject is not None else {}
    pool = read_pools([card_id])[0]
    live = load_votes([each.id for each in pool.cards])
    heard = pool_ballots(
        [vote for votes in live.values() for vote in votes], {each.id: each.image_version for each in pool.cards}
    )
    weighing = weigh(vote.ballot for vote in heard.values())
    votes = _votes([each.id for each in pool.cards], live, heard, weighing)
    question = ReviewItem.objects.filter(card=card).values(*QUESTION).first()
    superseded = SupersededVote.objects.filter(card_id=card_id).order_by("pk")
    return Explanation(
        card_id=card.pk,
        name=card.name,
        status=card.printing_tag_status,
        printing_id=card.inferred_canonical_card_id,
        not_judged_because=why_not_eligible(card_id),
        judged_by_todays_rules=evidence is not None and evidence.judged_by == stage_d_manifest(),
        stored_readings=dict(evidence.readings) if evidence is not None else {},
        readings=_readings(subject) if subject is not None else {},
        candidates=subject.candidates if subject is not None else (),
        line_owners=subject.line_owners if subject is not None else (),
        art_distances=_art_distances(subject) if subject is not None else {},
        verdicts=verdicts,
        question=question,
        votes=votes,
        weighing=weighing,
        twins=[each.id for each in pool.cards if each.id != card_id],
        superseded=[_superseded(vote) for vote in superseded],
        printings=_printings(subject, verdicts, votes, card.inferred_canonical_card_id),
    )


def _readings(subject: Subject) -> dict[str, Any]:
    """Return the readings as plain values; a hash as digits, for JSON's numbers are shorter than it."""
    plain = asdict(subject.readings)
    art_hash = subject.readings.art_hash
    return {**plain, "art_hash": None if art_hash is None else f"{art_hash:016x}"}


def _art_distances(subject: Subject) -> dict[int, int]:
    printings = (*subject.candidates, *subject.line_owners)
    distances = art_distances(subject.readings.art_hash, [printing.art_hash for printing in printings])
    return {
        printing.id: distance for printing, distance in zip(printings, distances, strict=True) if distance is not None
    }


def _votes(
    card_ids: Sequence[int],
    live: Mapping[int, list[LiveVote]],
    heard: Mapping[str, LiveVote],
    weighing: Weighing,
) -> list[ExplainedVote]:
    pooled = {vote.age[1]: vote for votes in live.values() for vote in votes}
    rows = CardPrintingTag.objects.filter(pk__in=pooled, card_id__in=card_ids).order_by("source", "-confidence", "pk")
    return [
        ExplainedVote(
            card_id=row.card_id,
            voter=row.anonymous_id,
            source=row.source,
            printing_id=row.printing_id,
            confidence=row.confidence,
            evidence=row.evidence,
            run_id=row.run_id,
            weight=WEIGHTS[row.source] / USER_WEIGHT,
            unheard=_why_unheard(pooled[row.pk], heard, weighing),
        )
        for row in rows
    ]


def _why_unheard(vote: LiveVote, heard: Mapping[str, LiveVote], weighing: Weighing) -> str:
    counted = heard.get(vote.voter)
    if counted != vote:
        return "a later vote of the same voter counts" if counted is not None else "the card has another image now"
    if vote.is_machine and weighing.machines_unheard is not None:
        return f"machines are not heard: {weighing.machines_unheard.value}"
    return ""


def _superseded(vote: SupersededVote) -> Mapping[str, Any]:
    return {
        "voter": vote.anonymous_id,
        "printing_id": vote.printing_id,
        "confidence": vote.confidence,
        "run_id": vote.run_id,
        "change": vote.change,
        "changed_by_run_id": vote.changed_by_run_id,
        "superseded_at": vote.superseded_at.isoformat(),
    }


def _printings(
    subject: Subject | None, verdicts: Mapping[str, Verdict], votes: Sequence[ExplainedVote], answer: int | None
) -> dict[int, str]:
    mentioned = {answer, *(vote.printing_id for vote in votes)}
    for verdict in verdicts.values():
        mentioned |= {getattr(verdict, "printing_id", None), *getattr(verdict, "survivors", ())}
    if subject is not None:
        mentioned |= {candidate.id for candidate in (*subject.candidates, *subject.line_owners)}
    rows = CanonicalCard.objects.filter(pk__in=[pk for pk in mentioned if pk is not None]).order_by("pk")
    columns = ("pk", "expansion__code", "collector_number", "language", "name")
    return {
        pk: f"{set_code.upper()} {number} {language}, {name}"
        for pk, set_code, number, language, name in rows.values_list(*columns)
    }
