#!/usr/bin/env python
"""What Stage C reads, field by field, against a truth file: right, wrong and blank, in all and by kind and frame.

Pure compute in this one process: no database. A contact sheet shows the bottom band of every card with a field that was
wrong or blank, so that a person can look. It shows the images themselves: keep it where the images may be kept.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cardpicker.catalogue.name_key import name_keys
from cardpicker.stage_c.compute import OcrUnavailableError, compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.artist_names import artist_key
from cardpicker.stage_c.extractors.geometry import settled_fit
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.settings import OCR_ENGINES
from cardpicker.stage_d.matching import normalize_number

FRAMES = ("1993", "1997", "2003", "2015", "borderless")
FIELDS = ("number", "set", "artist", "language", "year", "frame")
VERDICTS = ("right", "wrong", "blank")
CLEAR_WIDTH_PX = 450
MIN_RIGHT_CLEAR, MIN_RIGHT, MAX_WRONG = 0.95, 0.85, 1
TARGETS = {
    "clear_pairs_right": f"number and set both right, no photograph, at least {CLEAR_WIDTH_PX} px wide",
    "pairs_right": "number and set both right, all that print both",
    "pairs_wrong": "number or set wrong",
}
SHEET_BAND_MM = (-2.0, 77.0, 65.0, 90.0)
SHEET_SIZE = (804, 156)
CAPTION_PX = 18
Row = Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Score:
    """Verdicts of each field of one group of cards."""

    counts: dict[str, dict[str, int]] = field(
        default_factory=lambda: {name: dict.fromkeys(VERDICTS, 0) for name in FIELDS}
    )

    def add(self, name: str, verdict: str) -> None:
        """Count one verdict."""
        self.counts[name][verdict] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A card with fields that were not read right."""

    file: str
    fields: Mapping[str, str]  #: Field to "verdict: read instead of printed".


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Number and set of a card that prints both."""

    verdict: str  #: Right when both are, wrong when either is.
    clear: bool  #: No photograph, and at least ``CLEAR_WIDTH_PX`` wide.


@dataclass(slots=True, kw_only=True)
class Result:
    """All that one run found."""

    groups: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    failures: list[Failure] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)  #: Files with a number where none is printed.
    pairs: list[Pair] = field(default_factory=list)


def open_lines(path: Path) -> Iterator[dict[str, object]]:
    """Yield the printings of a file in JSON lines, gzip or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def read_catalogue(path: Path) -> tuple[Lexicon, dict[str, set[str]]]:
    """Return the lexicon, and the artists of each name key."""
    codes: set[str] = set()
    artists: dict[str, set[str]] = defaultdict(set)
    for printing in open_lines(path):
        codes.add(str(printing["set"]))
        for key in name_keys(str(printing["name"])) if printing.get("artist") else ():
            artists[key].add(str(printing["artist"]))
    return Lexicon(set_codes=frozenset(codes)), artists


def truths(row: Row) -> dict[str, str]:
    """Return what is printed on the card, as far as the truth file says; what it leaves empty is not printed or not known."""
    number = row.get("collector_number", row.get("expect_cn", ""))
    code = row.get("set", row.get("expect_set", ""))
    frame = frame_class(row)
    printed = {
        "number": normalize_number(number) if number else "",
        "set": code.lower() if number else "",
        "artist": row.get("artist", ""),
        "language": row.get("language", "") if number and code else "",
        "year": row.get("copyright_year", ""),
        "frame": frame if frame in FRAMES else "",
    }
    return {name: value for name, value in printed.items() if value}


def frame_class(row: Row) -> str:
    """Return the class of the truth file's frame: `1997-style/retro-planeswalker` is 1997."""
    frame = row.get("frame", "")
    return "borderless" if "borderless" in frame else frame.split("/")[0].split("-")[0]


def shown_as(row: Row) -> str:
    """Return the kind of image, which a damaged copy has in a column of its own."""
    return row.get("original_kind") or row.get("kind") or ""


def read_fields(readings: Mapping[str, Reading]) -> dict[str, str]:
    """Return what was read, in the spelling of ``truths``; absent where nothing was."""
    line = readings.get("collector_line", {})
    read = {
        "number": line.get("number"),
        "set": line.get("set_code") if line.get("set_code_known") else None,
        "artist": readings.get("artist", {}).get("artist"),
        "language": line.get("language"),
        "year": readings.get("legal_line", {}).get("copyright_year"),
        "frame": readings.get("frame", {}).get("frame"),
    }
    return {name: str(value) for name, value in read.items() if value is not None}


def judge(name: str, read: str | None, printed: str) -> str:
    """Return the verdict on one field; artists compare by their keys, and a family name alone is right."""
    if not read:
        return "blank"
    if name == "artist":
        ours, theirs = artist_key(read), artist_key(printed)
        return "right" if ours == theirs or (len(ours) >= 5 and theirs.endswith(ours)) else "wrong"
    return "right" if read == printed else "wrong"


def score(row: Row, readings: Mapping[str, Reading], result: Result, *, width_px: int = 0) -> None:
    """Add one card's verdicts to ``result``."""
    read, printed = read_fields(readings), truths(row)
    failed: dict[str, str] = {}
    groups = ("all", f"kind {row.get('kind') or '?'}", f"frame {frame_class(row) or '?'}")
    for name, value in printed.items():
        verdict = judge(name, read.get(name), value)
        for group in groups:
            result.groups[group].add(name, verdict)
        if verdict == "wrong" or (verdict == "blank" and name != "frame"):  # The frame abstains by design.
            failed[name] = f"{verdict}: {read.get(name, '-')} / {value}"
    if "number" in printed and "set" in printed:
        verdicts = {judge(name, read.get(name), printed[name]) for name in ("number", "set")}
        verdict = next(name for name in ("wrong", "blank", "right") if name in verdicts)
        result.pairs.append(
            Pair(verdict=verdict, clear=shown_as(row) != "photo" and width_px >= CLEAR_WIDTH_PX),
        )
    if "number" in read and "number" not in printed:
        result.invented.append(row["file"])
    if failed:
        result.failures.append(Failure(file=row["file"], fields=failed))


def measure(images: Path, rows: Sequence[Row], lexicon: Lexicon, artists: Mapping[str, set[str]]) -> Result:
    """Read every image of the truth file that is there."""
    result = Result()
    for row in rows:
        path = images / row["file"]
        if not path.is_file():
            print(f"left out: {path.name} is not in {images}", file=sys.stderr)
            continue
        known = sorted({artist for key in name_keys(row.get("name", "")) for artist in artists.get(key, ())})
        found = compute_card_evidence(path.read_bytes(), ComputeContext(artists=tuple(known)))
        if isinstance(found, CardEvidence):
            score(row, found.readings, result, width_px=min(found.width_px, found.height_px))
        else:
            score(row, {}, result)
    return result


def table(result: Result) -> list[str]:
    """Return right/wrong/blank of each field, one group a line."""
    head = ["group", *FIELDS]
    rows = [head]
    for group in sorted(result.groups, key=lambda name: (name != "all", name)):
        counts = result.groups[group].counts
        cells = ["/".join(str(counts[name][verdict]) for verdict in VERDICTS) for name in FIELDS]
        rows.append([group, *("" if cell == "0/0/0" else cell for cell in cells)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def targets(result: Result) -> dict[str, dict[str, float | bool]]:
    """Return how often number and set are both right, and how often they are wrong, against what is aimed at."""
    clear = [pair for pair in result.pairs if pair.clear]
    wrong = sum(pair.verdict == "wrong" for pair in result.pairs)
    shares = {
        "clear_pairs_right": (_share_right(clear), MIN_RIGHT_CLEAR, len(clear)),
        "pairs_right": (_share_right(result.pairs), MIN_RIGHT, len(result.pairs)),
    }
    found: dict[str, dict[str, float | bool]] = {
        name: {"value": round(value, 4), "target": target, "rows": rows, "met": value >= target}
        for name, (value, target, rows) in shares.items()
    }
    return found | {
        "pairs_wrong": {"value": wrong, "target": MAX_WRONG, "rows": len(result.pairs), "met": wrong <= MAX_WRONG}
    }


def _share_right(pairs: Sequence[Pair]) -> float:
    return sum(pair.verdict == "right" for pair in pairs) / len(pairs) if pairs else 0.0


def draw_sheet(images: Path, failures: Sequence[Failure], path: Path) -> None:
    """Write a picture of the bottom band of each failed card, with what was read and what is printed."""
    high = SHEET_SIZE[1] + CAPTION_PX
    sheet = Image.new("RGB", (SHEET_SIZE[0], high * max(1, len(failures))), (40, 40, 40))
    draw = ImageDraw.Draw(sheet)
    for place, failure in enumerate(failures):
        caption = f"{failure.file}: " + "; ".join(f"{name} {text}" for name, text in failure.fields.items())
        draw.text((4, place * high + 3), caption.encode("latin-1", "replace").decode("latin-1"), fill=(255, 220, 120))
        image = decode((images / failure.file).read_bytes())
        if isinstance(image, NormalizedImage):
            fit = settled_fit(image, {})
            sheet.paste(fit.crop(image.rgb, fit.clip(SHEET_BAND_MM), SHEET_SIZE), (0, place * high + CAPTION_PX))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


def main() -> int:
    """Print the table or one JSON object, and write the contact sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "truth", type=Path, help="CSV with file, name, set, collector_number, artist, language, frame, kind"
    )
    parser.add_argument("--images", type=Path, help="folder of the images; default: images beside the truth file")
    parser.add_argument("--printings", type=Path, default=ROOT / "sample_catalogue" / "printings.jsonl")
    parser.add_argument("--engine", choices=OCR_ENGINES, default=OCR_ENGINES[0])
    parser.add_argument("--sheet", type=Path, default=ROOT / ".local" / "reading-failures.png")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    images = arguments.images or arguments.truth.parent / "images"
    for path in (arguments.truth, images, arguments.printings):
        if not path.exists():
            print(f"there is no {path}: name the truth file, --images and --printings", file=sys.stderr)
            return 1
    lexicon, artists = read_catalogue(arguments.printings)
    try:
        warm_up(lexicon, arguments.engine)
    except OcrUnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    with arguments.truth.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    result = measure(images, rows, lexicon, artists)
    draw_sheet(images, result.failures, arguments.sheet)
    if arguments.json:
        groups = {group: score.counts for group, score in result.groups.items()}
        failures = {failure.file: dict(failure.fields) for failure in result.failures}
        report = {"groups": groups, "failures": failures, "numbers_invented": result.invented}
        print(json.dumps(report | {"targets": targets(result)}))
        return 0
    print("right/wrong/blank\n" + "\n".join(table(result)))
    for name, target in targets(result).items():
        aim = f"{'at most' if name == 'pairs_wrong' else 'at least'} {target['target']:g}"
        print(
            f"{TARGETS[name]}: {target['value']:g} of {target['rows']:g} rows, {aim}: {'yes' if target['met'] else 'no'}"
        )
    print(f"numbers where none is printed: {', '.join(result.invented) or 'none'}")
    print(f"{len(result.failures)} cards failed in some field: {arguments.sheet}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
