"""How well the machines identify: their best votes against a truth file.

Of each row whose file is a card's, the card's machine vote of highest confidence is held against what the row expects.
Rows without a card are named and counted, and score nothing.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final

from django.db.models import QuerySet

from cardpicker.models import Card, CardPrintingTag, VoteSource

MACHINES: Final = (VoteSource.OCR, VoteSource.DEDUCTION)
REQUIRED_COLUMNS: Final = ("file", "expect", "expect_set", "expect_cn")
NOT_GIVEN: Final = "(not given)"


class ScoringError(Exception):
    """The truth cannot be used; the message is one line and says what to do."""


class Expect(StrEnum):
    """What is true of an image."""

    PRINTING = "printing"
    NONE = "none"  #: No such printing exists.
    ABSTAIN = "abstain"  #: The image does not tell.


class Result(StrEnum):
    """How a card's best vote stands to the truth."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSTAINED = "abstained"
    FALSE_POSITIVE = "false_positives"  #: A printing, where none can be told.


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One line of the truth file."""

    file: str
    expect: Expect
    set_code: str = ""
    number: str = ""
    kind: str = NOT_GIVEN
    frame: str = NOT_GIVEN

    @property
    def answer(self) -> str:
        """What is expected, in words."""
        return f"{self.set_code} {self.number}" if self.expect is Expect.PRINTING else self.expect.value


@dataclass(frozen=True, slots=True, kw_only=True)
class BestVote:
    """A card's machine vote of highest confidence; ``answer`` is a printing's set and number, or ``none``."""

    answer: str
    is_no_match: bool
    voter: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One row and what the machines made of it."""

    truth: TruthRow
    card_id: int
    vote: BestVote | None
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of results over some rows. Precision and recall are None where nothing could be measured."""

    counts: Mapping[Result, int]
    right_printings: int
    expected_printings: int

    @property
    def precision(self) -> float | None:
        """Right votes among all votes."""
        votes = sum(self.counts[result] for result in (Result.RIGHT, Result.WRONG, Result.FALSE_POSITIVE))
        return self.counts[Result.RIGHT] / votes if votes else None

    @property
    def recall(self) -> float | None:
        """Right printings among the rows that expect one."""
        return self.right_printings / self.expected_printings if self.expected_printings else None

    def as_json(self) -> dict[str, int | float | None]:
        """Return the counts and ratios by name."""
        counts: dict[str, int | float | None] = {result.value: self.counts[result] for result in Result}
        return {
            **counts,
            "cards": sum(self.counts.values()),
            "precision": None if self.precision is None else round(self.precision, 4),
            "recall": None if self.recall is None else round(self.recall, 4),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The outcome of scoring a truth file."""

    rows: Sequence[ScoredRow]
    unscored: Sequence[str] = field(default_factory=tuple)  #: Files of the truth that are no card's.

    @property
    def overall(self) -> Tally:
        """All rows together."""
        return tally(self.rows)

    @property
    def missteps(self) -> list[ScoredRow]:
        """Rows voted for what they are not."""
        return [row for row in self.rows if row.result in (Result.WRONG, Result.FALSE_POSITIVE)]

    def by(self, group: str) -> dict[str, Tally]:
        """Return a tally for each ``kind`` or ``frame``, in alphabetical order."""
        groups: defaultdict[str, list[ScoredRow]] = defaultdict(list)
        for row in self.rows:
            groups[row.truth.kind if group == "kind" else row.truth.frame].append(row)
        return {name: tally(groups[name]) for name in sorted(groups)}


def tally(rows: Iterable[ScoredRow]) -> Tally:
    """Count results."""
    listed = list(rows)
    expecting = [row for row in listed if row.truth.expect is Expect.PRINTING]
    return Tally(
        counts=Counter(row.result for row in listed),
        right_printings=sum(row.result is Result.RIGHT for row in expecting),
        expected_printings=len(expecting),
    )


def read_truth(path: Path) -> list[TruthRow]:
    """Read a truth file.

    Raises:
        ScoringError: the file is missing, is no CSV with the needed columns, or a row makes no sense; names the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            skipped, lines = without_head(stream)
            reader = csv.DictReader(lines, strict=True)
            missing = [name for name in REQUIRED_COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise ScoringError(f"{path}: no column {', '.join(missing)}; needed: {', '.join(REQUIRED_COLUMNS)}.")
            rows = [_truth_row(path, skipped + reader.line_num, record) for record in reader]
    except OSError as error:
        raise ScoringError(f"{path}: cannot be read ({error.strerror}); give the path of a truth file.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ScoringError(f"{path}: is not a UTF-8 CSV file ({error}).") from error
    if not rows:
        raise ScoringError(f"{path}: has no rows.")
    repeated = [file for file, times in Counter(row.file for row in rows).items() if times > 1]
    if repeated:
        raise ScoringError(f"{path}: lists {repeated[0]!r} more than once; keep one row a file.")
    return rows


def without_head(lines: Iterable[str]) -> tuple[int, Iterator[str]]:
    """Return how many lines before its columns a truth file has, those that begin with ``#``, and the lines after them."""
    ahead, count = iter(lines), 0
    for line in ahead:
        if not line.startswith("#"):
            return count, chain([line], ahead)
        count += 1
    return count, iter(())


def _truth_row(path: Path, line: int, record: Mapping[str, str | None]) -> TruthRow:
    value = {
        name: (text or "").strip()
        for name, text in record.items()
        if isinstance(name, str) and not isinstance(text, list)
    }
    if not value.get("file"):
        raise ScoringError(f"{path} line {line}: names no file.")
    try:
        expect = Expect(value.get("expect", ""))
    except ValueError:
        allowed = ", ".join(Expect)
        raise ScoringError(f"{path} line {line}: expect is {value.get('expect')!r}; set it to {allowed}.") from None
    if expect is Expect.PRINTING and not (value.get("expect_set") and value.get("expect_cn")):
        raise ScoringError(f"{path} line {line}: expects a printing without expect_set and expect_cn.")
    return TruthRow(
        file=value["file"],
        expect=expect,
        set_code=value.get("expect_set", "").lower(),
        number=value.get("expect_cn", "").lower(),
        kind=value.get("kind") or NOT_GIVEN,
        frame=value.get("frame") or NOT_GIVEN,
    )


def score_truth(truth: Sequence[TruthRow], *, source_key: str | None = None) -> Score:
    """Score each row's cards; a file that several sources have scores once for each of them.

    Args:
        source_key: only cards of this source; None means all.
    """
    cards = Card.objects.present()
    if source_key is not None:
        cards = cards.filter(source__key=source_key)
    by_file = _cards_by_file(cards, {row.file for row in truth})
    votes = best_votes({card_id for ids in by_file.values() for card_id in ids})
    scored = [
        ScoredRow(truth=row, card_id=card_id, vote=votes.get(card_id), result=judge(row, votes.get(card_id)))
        for row in truth
        for card_id in by_file[row.file]
    ]
    return Score(rows=scored, unscored=tuple(row.file for row in truth if not by_file[row.file]))


def judge(truth: TruthRow, vote: BestVote | None) -> Result:
    """Hold one vote against one row."""
    if vote is None:
        return Result.ABSTAINED
    if truth.expect is Expect.PRINTING or vote.is_no_match:
        return Result.RIGHT if vote.answer == truth.answer else Result.WRONG
    return Result.FALSE_POSITIVE


def best_votes(card_ids: Collection[int]) -> dict[int, BestVote]:
    """Return each card's machine vote of highest confidence; the older one where two are equal."""
    rows = (
        CardPrintingTag.objects.filter(card_id__in=card_ids, source__in=MACHINES)
        .order_by("card_id", "confidence", "-pk")
        .values_list(
            "card_id",
            "printing__expansion__code",
            "printing__collector_number",
            "is_no_match",
            "anonymous_id",
            "confidence",
        )
    )
    return {
        card_id: BestVote(
            answer="none" if is_no_match else f"{set_code} {number}".lower(),
            is_no_match=is_no_match,
            voter=voter,
            confidence=confidence or 0.0,
        )
        for card_id, set_code, number, is_no_match, voter, confidence in rows
    }


def _cards_by_file(cards: QuerySet[Card], files: Collection[str]) -> dict[str, list[int]]:
    """Match cards to files by the last part of their identifier."""
    found: dict[str, list[int]] = {file: [] for file in files}
    for pk, identifier in cards.order_by("pk").values_list("pk", "identifier").iterator():
        base = PurePosixPath(identifier).name
        if base in found:
            found[base].append(pk)
    return found
