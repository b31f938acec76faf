#!/usr/bin/env python
"""What the product would make of a folder of labeled images, by kind: right, wrong, abstained, and every wrong vote.

Stage C reads the images, Stage D's calculators judge them over a file of printings; no database. For folders of
`damage_cases.py`, and for any with a truth file and images.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from cardpicker.management.bulk import positive
from cardpicker.operations.scoring import Result, Score, ScoringError, Tally, TruthRow, read_truth
from cardpicker.operations.text_table import format_table
from cardpicker.sources.errors import ListingError
from cardpicker.stage_c.compute import OcrUnavailableError
from scripts.ops.damaged.folder import IMAGES, TRUTH, Row, read_rows
from scripts.ops.damaged.scoring import NUMBERS, ScoredImage, numbers_by_kind, score_folder, votes_by_calculator
from scripts.ops.scorer_fit.printings import load_printings

COUNTS = (Result.RIGHT, Result.WRONG, Result.FALSE_POSITIVE, Result.ABSTAINED)
VOTES = COUNTS[:3]
HEADINGS = ("cards", "right", "wrong", "false pos.", "abstained", "precision", "recall", "numbers: right", *NUMBERS[1:])
SAID_EVERY = 200


def main() -> int:
    """Print the tables or one JSON object."""
    arguments = _parser().parse_args()
    for path in (arguments.folder / TRUTH, arguments.folder / IMAGES, arguments.printings):
        if not path.exists():
            print(f"there is no {path}: give a folder with {TRUTH} and {IMAGES}, and --printings", file=sys.stderr)
            return 1
    try:
        found = _scored(arguments)
    except (ScoringError, ListingError, OcrUnavailableError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(as_json(found), indent=1) if arguments.json else as_text(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help=f"folder with {TRUTH} and {IMAGES}")
    parser.add_argument("--printings", type=Path, default=ROOT / "sample_catalogue" / "printings.jsonl")
    parser.add_argument("--kind", nargs="+", metavar="KIND", help="only rows of these kinds")
    parser.add_argument("--any-size", action="store_true", help="read small print in pictures too small for it, too")
    parser.add_argument("--processes", type=positive, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _scored(arguments: argparse.Namespace) -> list[ScoredImage]:
    images = arguments.folder / IMAGES
    rows = _wanted(arguments.folder / TRUTH, images, arguments.kind)
    printings = load_printings(arguments.printings)
    found: list[ScoredImage] = []
    for image in score_folder(images, rows, printings, any_size=arguments.any_size, processes=arguments.processes):
        found.append(image)
        if len(found) % SAID_EVERY == 0:
            print(f"{len(found)} of {len(rows)} images", file=sys.stderr, flush=True)
    return found


def _wanted(truth: Path, images: Path, kinds: Sequence[str] | None) -> list[tuple[TruthRow, Row]]:
    every = list(zip(read_truth(truth), read_rows(truth, images), strict=True))
    rows = [row for row in every if kinds is None or row[0].kind in kinds]
    if not rows:
        raise ScoringError(f"{truth}: has no row of kind {', '.join(kinds or ())}.")
    for row, _ in rows:
        if not (images / row.file).is_file():
            print(f"left out: {row.file} is not in {images}", file=sys.stderr)
    return [row for row in rows if (images / row[0].file).is_file()]


def as_json(images: Sequence[ScoredImage]) -> dict[str, object]:
    """Return the score as plain values."""
    score, numbers = Score(rows=[image.scored for image in images]), numbers_by_kind(images)
    return {
        "overall": score.overall.as_json(),
        "by_kind": {
            kind: {**counts.as_json(), "numbers": {name: numbers[kind][name] for name in NUMBERS}}
            for kind, counts in score.by("kind").items()
        },
        "by_calculator": votes_by_calculator(images),
        "wrong": [_misstep(image) for image in _missteps(images)],
        "wrong_numbers": [image.scored.truth.file for image in _slips(images)],
    }


def as_text(images: Sequence[ScoredImage]) -> str:
    """Return the score as a table, and below it each wrong vote and each wrong number."""
    score, numbers = Score(rows=[image.scored for image in images]), numbers_by_kind(images)
    total = {name: sum(counts[name] for counts in numbers.values()) for name in NUMBERS}
    rows = [[kind, *_cells(counts, numbers[kind])] for kind, counts in score.by("kind").items()]
    lines = [*format_table(("kind", *HEADINGS), [*rows, ["all", *_cells(score.overall, total)]], right=HEADINGS), ""]
    for voter, results in votes_by_calculator(images).items():
        lines.append(f"{voter}: " + ", ".join(f"{results[each]} {each.value.replace('_', ' ')}" for each in VOTES))
    lines += ["", f"wrong votes: {len(_missteps(images)) or 'none'}"]
    for image in _missteps(images):
        lines.append("  " + "; ".join(f"{name} {value}" for name, value in _misstep(image).items()))
    lines += ["", f"wrong numbers: {len(_slips(images)) or 'none'}"]
    lines += [f"  {image.scored.truth.file}: {image.number}; read {image.read}" for image in _slips(images)]
    return "\n".join(lines)


def _missteps(images: Sequence[ScoredImage]) -> list[ScoredImage]:
    return [image for image in images if image.scored.result in (Result.WRONG, Result.FALSE_POSITIVE)]


def _slips(images: Sequence[ScoredImage]) -> list[ScoredImage]:
    return [image for image in images if image.number in ("wrong", "invented")]


def _misstep(image: ScoredImage) -> dict[str, object]:
    scored, vote = image.scored, image.scored.vote
    return {
        "file": scored.truth.file,
        "result": scored.result.value,
        "expected": scored.truth.answer,
        "voted": vote.answer if vote else None,
        "voter": vote.voter if vote else None,
        "confidence": round(vote.confidence, 3) if vote else None,
        "read": image.read,
    }


def _cells(counts: Tally, numbers: Mapping[str, int]) -> list[str]:
    values = counts.as_json()
    shares = ("-" if share is None else f"{share:.3f}" for share in (counts.precision, counts.recall))
    cells = [str(values["cards"]), *(str(counts.counts[result]) for result in COUNTS), *shares]
    return [*cells, *(str(numbers[name]) for name in NUMBERS)]


if __name__ == "__main__":
    sys.exit(main())
