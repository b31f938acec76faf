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
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from cardpicker.operations.scoring import Result, Score, ScoringError, Tally, read_truth
from cardpicker.operations.text_table import format_table
from cardpicker.sources.errors import ListingError
from scripts.ops.damaged.folder import IMAGES, TRUTH, read_rows
from scripts.ops.damaged.scoring import NUMBERS, ScoredImage, numbers_by_kind, score_folder, votes_by_calculator
from scripts.ops.scorer_fit.printings import load_printings

COUNTS = (Result.RIGHT, Result.WRONG, Result.FALSE_POSITIVE, Result.ABSTAINED)
HEADINGS = ("cards", "right", "wrong", "false pos.", "abstained", "precision", "recall", "numbers: right", *NUMBERS[1:])
PROGRESS_EACH = 200


def main() -> int:
    """Print the tables or one JSON object."""
    arguments = _parser().parse_args()
    truth, images = arguments.folder / TRUTH, arguments.folder / IMAGES
    for path in (truth, images, arguments.printings):
        if not path.exists():
            print(f"there is no {path}: give a folder with {TRUTH} and {IMAGES}, and --printings", file=sys.stderr)
            return 1
    try:
        rows = list(zip(read_truth(truth), read_rows(truth, images), strict=True))
    except (ScoringError, ListingError) as error:
        print(error, file=sys.stderr)
        return 1
    wanted = [row for row in rows if not arguments.kind or row[0].kind in arguments.kind]
    there = [row for row in wanted if (images / row[0].file).is_file()]
    for missing in sorted({row[0].file for row in wanted} - {row[0].file for row in there}):
        print(f"left out: {missing} is not in {images}", file=sys.stderr)
    found = []
    printings = load_printings(arguments.printings)
    for image in score_folder(images, there, printings, any_size=arguments.any_size, processes=arguments.processes):
        found.append(image)
        if len(found) % PROGRESS_EACH == 0:
            print(f"{len(found)} of {len(there)} images", file=sys.stderr, flush=True)
    print(json.dumps(as_json(found), indent=1) if arguments.json else as_text(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help=f"folder with {TRUTH} and {IMAGES}")
    parser.add_argument("--printings", type=Path, default=ROOT / "sample_catalogue" / "printings.jsonl")
    parser.add_argument("--kind", nargs="+", metavar="KIND", help="only rows of these kinds")
    parser.add_argument("--any-size", action="store_true", help="read small print in pictures too small for it, too")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def as_json(images: Sequence[ScoredImage]) -> dict[str, object]:
    """Return the score as plain values."""
    score = Score(rows=[image.scored for image in images])
    numbers = numbers_by_kind(images)
    kinds = {
        kind: counts.as_json() | {"numbers": dict(numbers.get(kind, {}))} for kind, counts in score.by("kind").items()
    }
    return {
        "overall": score.overall.as_json(),
        "by_kind": kinds,
        "by_calculator": votes_by_calculator(images),
        "wrong": [_misstep(image) for image in _missteps(images)],
    }


def as_text(images: Sequence[ScoredImage]) -> str:
    """Return the score as tables, with each wrong vote and each wrong number named."""
    score = Score(rows=[image.scored for image in images])
    numbers = numbers_by_kind(images)
    rows = [[kind, *_cells(counts, numbers.get(kind, {}))] for kind, counts in score.by("kind").items()]
    total = {name: sum(counts[name] for counts in numbers.values()) for name in NUMBERS}
    rows.append(["all", *_cells(score.overall, total)])
    lines = [*format_table(("kind", *HEADINGS), rows, right=set(HEADINGS), widest=80), ""]
    for voter, results in votes_by_calculator(images).items():
        lines.append(f"{voter}: " + ", ".join(f"{results[result]} {result.value}" for result in COUNTS[:3]))
    lines += ["", f"wrong votes: {len(_missteps(images)) or 'none'}"]
    lines += [
        "  " + "; ".join(f"{name} {value}" for name, value in _misstep(image).items()) for image in _missteps(images)
    ]
    slipped = [image for image in images if image.number in ("wrong", "invented")]
    lines += ["", f"wrong numbers: {len(slipped) or 'none'}"]
    lines += [f"  {image.scored.truth.file}: {image.number}; read {image.read}" for image in slipped]
    return "\n".join(lines)


def _missteps(images: Sequence[ScoredImage]) -> list[ScoredImage]:
    return [image for image in images if image.scored.result in (Result.WRONG, Result.FALSE_POSITIVE)]


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


def _cells(counts: Tally, numbers: object) -> list[str]:
    values = counts.as_json()
    shares = ("-" if values[name] is None else f"{values[name]:.3f}" for name in ("precision", "recall"))
    cells = [str(values["cards"]), *(str(values[result.value]) for result in COUNTS), *shares]
    return [*cells, *(str(numbers.get(name, 0)) for name in NUMBERS)]


if __name__ == "__main__":
    sys.exit(main())
