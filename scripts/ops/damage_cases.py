#!/usr/bin/env python
"""Damaged copies of a truth file's images: smaller, softer, turned, stretched, tinted, on other grounds, compressed.

Writes a new folder with images, their names and a truth file whose `kind` is the damage, for `score_damaged.py`,
`bench_reading.py` and `score_identification`. Equal images, kinds and seeds give equal copies.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from cardpicker.management.bulk import positive
from cardpicker.operations.scoring import ScoringError
from cardpicker.sources.errors import ListingError
from scripts.ops.damaged.folder import IMAGES, TRUTH, FolderError, read_rows, write_copies
from scripts.ops.damaged.kinds import KINDS, Damage, scaled_to


def main() -> int:
    """Write the folder, and say what was left out."""
    arguments = _parser().parse_args()
    images = arguments.images or arguments.truth.parent / IMAGES
    if not images.is_dir():
        print(f"there is no folder {images}: give --images", file=sys.stderr)
        return 1
    damages = _wanted(arguments)
    try:
        rows = read_rows(arguments.truth, images)
        left_out = write_copies(
            images, rows, damages, arguments.out, seed=arguments.seed, processes=arguments.processes
        )
    except (ScoringError, ListingError, FolderError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for reason in left_out:
        print(f"left out: {reason}", file=sys.stderr)
    print(f"{len(rows) - len(left_out)} images, {len(damages)} kinds: {arguments.out / TRUTH}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truth", type=Path, help="CSV with file, expect, expect_set, expect_cn and what else there is")
    parser.add_argument("out", type=Path, help="folder to make")
    parser.add_argument("--images", type=Path, help="folder of the images; default: images beside the truth file")
    parser.add_argument("--kind", nargs="+", choices=sorted(KINDS), metavar="KIND", help=f"some of {', '.join(KINDS)}")
    parser.add_argument(
        "--scaled-to",
        nargs="+",
        type=positive,
        default=[],
        metavar="PX",
        help="copies with so many pixels on the longer side, of what is not smaller; alone, in place of the kinds",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=positive, default=2)
    return parser


def _wanted(arguments: argparse.Namespace) -> list[Damage]:
    kinds = arguments.kind or ([] if arguments.scaled_to else list(KINDS))
    return [*(KINDS[name] for name in kinds), *(scaled_to(px) for px in arguments.scaled_to)]


if __name__ == "__main__":
    sys.exit(main())
