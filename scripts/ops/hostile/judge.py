"""What became of each card that was sent, and whether that is what must become of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from cardpicker.models import CardPrintingTag, CardWork, ImageEvidence
from cardpicker.tests.hostile_images import CARD_NUMBER, CARD_SET, Hostile
from scripts.ops.hostile.stream import Good, Sent

READ = frozenset({"stored", "transferred"})


@dataclass(slots=True, kw_only=True)
class Verdict:
    """Outcomes by kind of file, and everything that is not as it must be."""

    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    violations: list[str] = field(default_factory=list)
    good: int = 0
    identified: list[Good] = field(default_factory=list)


def judge(sent: Mapping[int, Sent], verdict: Verdict) -> None:
    """Add what became of the cards ``sent``, by their keys."""
    work = CardWork.objects.in_bulk(list(sent))
    evidence = {row.card_id: row for row in ImageEvidence.objects.filter(card_id__in=sent)}
    votes: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for card_id, code, number in CardPrintingTag.objects.filter(card_id__in=sent, printing__isnull=False).values_list(
        "card_id", "printing__expansion__code", "printing__collector_number"
    ):
        votes[card_id].add((code, number))
    for card_id, each in sent.items():
        row = work[card_id]
        verdict.outcomes[each.kind][row.last_outcome or "(none)"] += 1
        if row.due_at is not None or row.lease_owner is not None or not row.last_outcome:
            verdict.violations.append(f"{each.name}: left open, last {row.last_outcome!r}")
        if each.good is not None:
            verdict.good += 1
            complaint = _judge_good(each.good, votes[card_id])
            verdict.identified += [] if complaint else [each.good]
        else:
            assert each.hostile is not None
            complaint = _judge_hostile(each.hostile, row, evidence.get(card_id))
        if complaint:
            verdict.violations.append(f"{each.name}: {complaint}")


def _judge_good(good: Good, votes: set[tuple[str, str]]) -> str:
    return "" if votes == {good.expect} else f"{good.file} is {good.expect}, the votes say {sorted(votes)}"


def _judge_hostile(file: Hostile, work: CardWork, evidence: ImageEvidence | None) -> str:
    """Return what is wrong with an outcome; empty when nothing is."""
    outcome = work.last_outcome
    if outcome not in READ:
        named = {f"unusable: {kind.value}" for kind in file.refused_as}
        return "" if outcome in named and work.last_detail else f"{outcome}: {work.last_detail}"
    if file.refused_as and not file.or_read:
        return "was read"
    if evidence is None:
        return "was read without evidence"
    errors = sorted(name for name, reading in evidence.readings.items() if "error" in reading)
    if errors:
        return f"failed in {', '.join(errors)}"
    if file.is_card and (evidence.collector_number, evidence.set_code) != (CARD_NUMBER, CARD_SET):
        return f"read as {evidence.collector_number!r} of {evidence.set_code!r}"
    return "got a hash of nothing" if file.is_blank and evidence.art_hash is not None else ""
