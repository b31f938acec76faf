"""Render the sample catalog anew: card images, their names and the truth about them.

Reads ``sample_catalogue/printings.jsonl`` for facts and ``sample_catalogue/fonts`` for type; the same Pillow
writes the same bytes every time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from scripts.ops.samplecards.catalogue import SampleCatalogueError, load_printings, render_catalogue

CATALOGUE = PROJECT / "sample_catalogue"


def main() -> int:
    """Render into the folder asked for and say how much came of it."""
    parser = argparse.ArgumentParser(description="Render the sample catalog's images, cards.csv and truth.csv.")
    parser.add_argument("--output", type=Path, default=CATALOGUE, help="folder to write to (default: the catalog)")
    options = parser.parse_args()
    try:
        files = render_catalogue(options.output, load_printings(CATALOGUE / "printings.jsonl"))
    except (SampleCatalogueError, OSError) as error:
        print(f"render_sample_catalogue: {error}", file=sys.stderr)
        return 1
    size_kb = sum((options.output / "images" / file).stat().st_size for file in files) // 1024
    print(f"{len(files)} images, {size_kb} KB, in {options.output / 'images'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
