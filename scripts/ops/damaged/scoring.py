"""What the product would make of a folder of labeled images: read by Stage C, judged by Stage D's calculators.

Pure compute over a file of printings, no database. No art hash of the catalog is known here, and cards are judged one by
one: what byte-identical images lend each other does not count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cardpicker.operations.scoring import BestVote, Result, ScoredRow, TruthRow, judge
from cardpicker.stage_c.compute import compute_card_evidence, extract_all, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import EXTRACTORS
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.reparse import TEXT
from cardpicker.stage_c.settings import OCR_ENGINES
from cardpicker.stage_d.run import judge as judge_by_all
from cardpicker.stage_d.verdicts import Vote
from scripts.ops import bench_reading
from scripts.ops.damaged.folder import Row
from scripts.ops.scorer_fit.printings import Printings

#: Verdicts on a number: three of what is printed, and one of what is not.
NUMBERS = (*bench_reading.VERDICTS, "invented")
Readings = Mapping[str, Reading]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredImage:
    """One image: what was voted, and what was made of its number."""

    scored: ScoredRow
    number: str | None  #: One of ``NUMBERS``; None where no number is printed and none was read.
    read: str  #: The fields that were read, in words.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How images are read; callable in another process."""

    lexicon: Lexicon
    any_size: bool  #: Small print is looked at however small the picture is; the product does not.

    def ready(self) -> None:
        """Make this process ready."""
        warm_up(self.lexicon, OCR_ENGINES[0])

    def __call__(self, path: Path, artists: tuple[str, ...]) -> dict[str, Reading]:
        """Return what is read, without the rows it was parsed from; nothing where the file is of no use."""
        context, data = ComputeContext(artists=artists), path.read_bytes()
        readings = self._of_any_size(data, context) if self.any_size else _as_the_product(data, context)
        return {name: reading for name, reading in readings.items() if name != TEXT}

    def _of_any_size(self, data: bytes, context: ComputeContext) -> dict[str, Reading]:
        image = decode(data)
        return extract_all(image, context, self.lexicon, EXTRACTORS) if isinstance(image, NormalizedImage) else {}


def _as_the_product(data: bytes, context: ComputeContext) -> dict[str, Reading]:
    found = compute_card_evidence(data, context)
    return dict(found.readings) if isinstance(found, CardEvidence) else {}


def score_folder(
    images: Path,
    rows: Sequence[tuple[TruthRow, Row]],
    printings: Printings,
    *,
    any_size: bool = False,
    processes: int = 2,
) -> Iterator[ScoredImage]:
    """Yield what became of each image, in order.

    Args:
        rows: each row as the truth file's reader has it, and as it stands in the file.

    Raises:
        OcrUnavailableError: nothing can be read.
    """
    reader = Reader(lexicon=Lexicon(set_codes=printings.codes), any_size=any_size)
    reader.ready()
    paths = [images / row["file"] for _, row in rows]
    artists = [printings.artists(row["name"]) for _, row in rows]
    with ProcessPoolExecutor(processes, initializer=partial(Reader.ready, reader)) as pool:
        for (truth, row), readings in zip(rows, pool.map(reader, paths, artists, chunksize=8), strict=True):
            vote = best_vote(row["name"], readings, printings)
            yield ScoredImage(
                scored=ScoredRow(truth=truth, card_id=0, vote=vote, result=judge(truth, vote)),
                number=number_verdict(row, readings),
                read=", ".join(f"{name} {value}" for name, value in bench_reading.read_fields(readings).items()),
            )


def best_vote(name: str, readings: Readings, printings: Printings) -> BestVote | None:
    """Return the calculators' vote of highest confidence; the earlier one where two are equal."""
    best: BestVote | None = None
    for calculator, verdict in judge_by_all(printings.subject(name, readings)).items():
        if isinstance(verdict, Vote) and (best is None or verdict.confidence > best.confidence):
            place = verdict.printing_id
            row = printings.rows[place] if place is not None else None
            best = BestVote(
                answer=f"{row.set_code} {row.collector_number}".lower() if row else "none",
                is_no_match=row is None,
                voter=calculator,
                confidence=verdict.confidence,
            )
    return best


def number_verdict(row: Row, readings: Readings) -> str | None:
    """Return whether the number that is printed was read, or one that is not; None where nothing can be said.

    That none is printed is said by an empty ``collector_number`` alone: an expected number is a real printing's.
    """
    printed = bench_reading.truths(row).get("number")
    read = bench_reading.read_fields(readings).get("number")
    if printed is None:
        return "invented" if read and "collector_number" in row else None
    return bench_reading.judge("number", read, printed)


def numbers_by_kind(images: Sequence[ScoredImage]) -> dict[str, Counter[str]]:
    """Return how often each verdict on a number was given, by kind."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for image in images:
        if image.number is not None:
            found[image.scored.truth.kind][image.number] += 1
    return found


def votes_by_calculator(images: Sequence[ScoredImage]) -> dict[str, Counter[Result]]:
    """Return how the votes of each calculator stand to the truth."""
    found: defaultdict[str, Counter[Result]] = defaultdict(Counter)
    for image in images:
        if image.scored.vote is not None:
            found[image.scored.vote.voter][image.scored.result] += 1
    return dict(sorted(found.items()))
