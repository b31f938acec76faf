#!/usr/bin/env python
"""CPU seconds and OCR calls per card, and memory growth, over a folder of images; both OCR engines in one run.

Pure compute in this one process: no database, no queue, no fetch. Engines take turns on each image, so that their ratio
holds whatever else the machine does.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median, quantiles

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cardpicker.stage_c.compute import OcrUnavailableError, compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon
from cardpicker.stage_c.settings import OCR_ENGINES

IMAGES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}
WARM_IMAGES = 10  #: Caches and pools fill; memory is compared from here on.


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one engine cost."""

    cpu_s: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    numbers: int = 0
    refused: int = 0


def read_set_codes(path: Path) -> frozenset[str]:
    """Return the set codes of a printings file in JSON lines, gzip or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return frozenset(str(json.loads(line)["set"]) for line in lines if line.strip())


def cpu_s() -> float:
    """Return the CPU seconds of this process and of the children it has reaped."""
    times = os.times()  # In ticks of 10 ms, too coarse for this process's own share.
    return time.process_time() + times.children_user + times.children_system


def measure(image: bytes, engine: str, lexicon: Lexicon, tally: Tally) -> None:
    """Read ``image`` once with ``engine`` and add what it cost."""
    warm_up(lexicon, engine)
    before = cpu_s()
    evidence = compute_card_evidence(image, ComputeContext())
    tally.cpu_s.append(cpu_s() - before)
    if not isinstance(evidence, CardEvidence):
        tally.refused += 1
        return
    calls = evidence.readings.get("bottom_text", {}).get("ocr_calls")
    tally.calls.append(int(calls) if isinstance(calls, int) else 0)
    tally.numbers += bool(evidence.collector_number)


def available(engines: Sequence[str]) -> list[str]:
    """Return the engines that pass their self-test; the others are named on stderr."""
    found = []
    for engine in engines:
        try:
            warm_up(Lexicon(), engine)
        except OcrUnavailableError as error:
            print(f"left out: {error}", file=sys.stderr)
        else:
            found.append(engine)
    return found


def table(tallies: dict[str, Tally]) -> list[str]:
    """Return the aligned table of what the engines cost."""
    head = ("engine", "cards", "refused", "numbers", "CPU s median", "mean", "p90", "calls median", "mean", "max")
    rows: list[tuple[str, ...]] = [head]
    for engine, tally in tallies.items():
        tail = quantiles(tally.cpu_s, n=10)[-1] if len(tally.cpu_s) > 1 else tally.cpu_s[0]
        calls = tally.calls or [0]
        rows.append(
            (
                engine,
                str(len(tally.cpu_s)),
                str(tally.refused),
                str(tally.numbers),
                *(f"{value:.3f}" for value in (median(tally.cpu_s), mean(tally.cpu_s), tail)),
                *(f"{value:.1f}" for value in (median(calls), mean(calls), max(calls))),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def main() -> int:
    """Print one table, the ratio of the engines and the growth of memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of card images")
    parser.add_argument("--printings", type=Path, default=ROOT / "sample_catalogue" / "printings.jsonl")
    parser.add_argument("--engine", action="append", choices=OCR_ENGINES, help="default: every engine that works here")
    parser.add_argument("--rounds", type=int, default=1, help="times over the folder; more show memory growth")
    arguments = parser.parse_args()
    paths = sorted(p for p in arguments.folder.glob("*") if p.suffix.lower() in IMAGES)
    engines = available(arguments.engine or OCR_ENGINES)
    if not paths or not engines or not arguments.printings.is_file():
        print("nothing to measure: give a folder with images, a printings file and a working engine", file=sys.stderr)
        return 1
    lexicon = Lexicon(set_codes=read_set_codes(arguments.printings))
    tallies = {engine: Tally() for engine in engines}
    process, warm_rss = psutil.Process(), 0
    for count, path in enumerate(paths * max(1, arguments.rounds), start=1):
        image = path.read_bytes()
        for engine in engines:
            measure(image, engine, lexicon, tallies[engine])
        if count <= WARM_IMAGES:
            warm_rss = process.memory_info().rss
    rss = process.memory_info().rss
    print("\n".join(table(tallies)))
    if len(engines) == 2:
        one, other = (sum(tallies[engine].cpu_s) for engine in engines)
        print(f"CPU of {engines[1]} / {engines[0]}: {other / one:.2f}")
    print(f"RSS {rss / 1e6:.0f} MB; growth since image {WARM_IMAGES}: {(rss - warm_rss) / 1e6:+.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
