"""Stage D: stored evidence becomes votes, votes become a printing. No image, no network.

One transaction a chunk, its cards and their twins locked in primary-key order from the first read to the last write, so
that rivals, new evidence and people's votes wait for each other and nothing is judged from readings being replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from django.db import connection, transaction

from cardpicker.models import PrintingTagStatus
from cardpicker.stage_d.consensus import UNRESOLVED, Decision, settle_pools
from cardpicker.stage_d.eligibility import eligible_evidence
from cardpicker.stage_d.locking import retrying_deadlocks
from cardpicker.stage_d.registry import CALCULATORS, FALLBACK, JOIN_KEY, SLOW_PATH, Calculator, stage_d_manifest
from cardpicker.stage_d.subjects import Subject, load_subjects
from cardpicker.stage_d.twins import Pool, lock_pools
from cardpicker.stage_d.verdicts import CalculatorReport, Verdict

#: Few enough that a person's vote never waits long, enough that a query's cost is shared.
CHUNK: Final = 250

_MARK_JUDGED: Final = """
UPDATE cardpicker_imageevidence AS evidence SET judged_by = %(manifest)s
FROM cardpicker_card AS card
WHERE evidence.card_id = ANY(%(cards)s) AND card.id = evidence.card_id AND card.image_version = evidence.image_version
  AND evidence.judged_by <> %(manifest)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDReport:
    """What a run did."""

    calculators: Mapping[str, CalculatorReport] = field(default_factory=dict)  #: By calculator, in their order.
    judged: int = 0  #: Eligible cards with evidence.
    resolved: int = 0  #: Cards that the run's consensus settled.

    @property
    def routed_to_review(self) -> int:
        """Cards that now wait for a person."""
        return sum(report.routed for report in self.calculators.values())

    def __add__(self, other: StageDReport) -> StageDReport:
        names = dict.fromkeys([*self.calculators, *other.calculators])
        empty = CalculatorReport()
        return StageDReport(
            calculators={
                name: self.calculators.get(name, empty) + other.calculators.get(name, empty) for name in names
            },
            judged=self.judged + other.judged,
            resolved=self.resolved + other.resolved,
        )


def run_stage_d(card_ids: Collection[int] | None, *, run_id: str) -> StageDReport:
    """Judge cards by every calculator, settle them by consensus, and mark their evidence as judged.

    Args:
        card_ids: cards whose evidence the caller knows to be current; None stands for every eligible card with evidence
            of its present image, by whichever extractors.
    """
    report = empty_report()
    for chunk in _chunks(card_ids):
        report += judge_chunk(chunk, run_id=run_id)
    return report


def judge_chunk(card_ids: Collection[int], *, run_id: str) -> StageDReport:
    """Do the same for a few cards in one transaction: they change together, or not at all."""
    return _in_one_transaction(CALCULATORS, card_ids, run_id, settle=True)


def empty_report() -> StageDReport:
    """Return the report of a run that has done nothing yet; it names every calculator."""
    return StageDReport(calculators={calculator.name: CalculatorReport() for calculator in CALCULATORS})


def run_join_key_calculator(card_ids: Collection[int] | None = None, run_id: str = "") -> CalculatorReport:
    """Bring the join-key votes of the given cards, or of all, in line with their evidence."""
    return _run_one(JOIN_KEY, card_ids, run_id)


def run_fallback_calculator(card_ids: Collection[int] | None = None, run_id: str = "") -> CalculatorReport:
    """Bring the fallback votes of the given cards, or of all, in line with their evidence."""
    return _run_one(FALLBACK, card_ids, run_id)


def run_slow_path_calculator(card_ids: Collection[int] | None = None, run_id: str = "") -> CalculatorReport:
    """Bring the review items of the given cards, or of all, in line with their evidence."""
    return _run_one(SLOW_PATH, card_ids, run_id)


def judge(subject: Subject, calculators: Sequence[Calculator] = CALCULATORS) -> dict[str, Verdict]:
    """Return each calculator's verdict on a card, by its name and in order; nothing is written."""
    verdicts: dict[str, Verdict] = {}
    for calculator in calculators:
        verdicts[calculator.name] = calculator.judge(subject, tuple(verdicts.values()))
    return verdicts


def _run_one(calculator: Calculator, card_ids: Collection[int] | None, run_id: str) -> CalculatorReport:
    report = CalculatorReport()
    for chunk in _chunks(card_ids):
        done = _in_one_transaction((calculator,), chunk, run_id, settle=False)
        report += done.calculators[calculator.name]
    return report


def _chunks(card_ids: Collection[int] | None) -> Iterator[list[int]]:
    if card_ids is not None:
        ordered = sorted(set(card_ids))
        yield from (ordered[at : at + CHUNK] for at in range(0, len(ordered), CHUNK))
        return
    last = 0
    while True:
        rows = eligible_evidence().filter(card_id__gt=last).order_by("card_id").values_list("card_id", flat=True)
        chunk = list(rows[:CHUNK])
        if not chunk:
            return
        yield chunk
        last = chunk[-1]


def _in_one_transaction(
    storing: Sequence[Calculator], card_ids: Collection[int], run_id: str, *, settle: bool
) -> StageDReport:
    def unit() -> StageDReport:
        with transaction.atomic():
            pools = lock_pools(card_ids)
            if not settle:
                return _judge_and_store(storing, card_ids, pools, run_id)
            changed = _settle_settled(pools)
            if changed:
                pools = lock_pools(card_ids)
            report = _judge_and_store(storing, card_ids, pools, run_id)
            with connection.cursor() as cursor:
                cursor.execute(_MARK_JUDGED, {"cards": list(card_ids), "manifest": stage_d_manifest()})
            changed |= settle_pools(pools)
            resolved = sum(decision != UNRESOLVED for decision in changed.values())
            return replace(report, resolved=resolved)

    return retrying_deadlocks(unit)


def _settle_settled(pools: Sequence[Pool]) -> dict[int, Decision]:
    """Bring settled cards in line before anything is judged.

    One whose image was replaced may be open again, and one that has come in anew may have its twins' answer.
    """
    settled = [pool for pool in pools if any(card.status != PrintingTagStatus.UNRESOLVED for card in pool.cards)]
    return settle_pools(settled) if settled else {}


def _judge_and_store(
    storing: Sequence[Calculator], card_ids: Collection[int], pools: Sequence[Pool], run_id: str
) -> StageDReport:
    locked = {card.id: card for pool in pools for card in pool.cards}
    subjects = load_subjects(card_ids)
    upto = max(CALCULATORS.index(calculator) for calculator in storing) + 1
    judged = {subject.card_id: judge(subject, CALCULATORS[:upto]) for subject in subjects}
    reports = {
        calculator.name: calculator.store(
            {pk: verdicts[calculator.name] for pk, verdicts in judged.items()}, run_id, locked
        )
        for calculator in storing
    }
    return StageDReport(calculators=reports, judged=len(subjects))
