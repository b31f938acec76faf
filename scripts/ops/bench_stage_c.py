#!/usr/bin/env python
"""What reading a card costs, from a bare loop to whole dispatches with a database, over a folder of images, in one run.

Ratios compare stages of one run. On a shared host the clock says less than the CPU: the last column says how many cores
were in use by others meanwhile. ``--flat N`` sends N cards, each in bytes of its own, through dispatches and compares
the memory after 1,000 with that after N.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cardpicker.operations.text_table import format_table
from cardpicker.stage_c.compute import OcrUnavailableError
from cardpicker.stage_c.evidence import Lexicon
from cardpicker.stage_c.settings import OCR_ENGINES, StageCSettings, usable_cores
from scripts.ops.stage_c_bench.conveyed import measure_conveyor
from scripts.ops.stage_c_bench.cost import HEADINGS, Cost, ratios
from scripts.ops.stage_c_bench.dispatches import Progress, built_rig, measure_dispatch
from scripts.ops.stage_c_bench.family import Watched
from scripts.ops.stage_c_bench.loops import measure_bare_loops, measure_compute, measure_floor
from scripts.ops.stage_c_bench.pictures import Picture, read_pictures

STAGES = ("floor", "compute", "loops", "conveyor", "dispatch")
FIRST_MARK = 1_000
WINDOW = 500  #: Cards before a mark over which memory is taken: compute processes are replaced within it.
#: What is told of a long run at its marks: the whole tree, and whose it is.
MEMORY = ("tree_mb", "own_mb", "parent_mb", "compute_mb", "files_mb")
TARGETS = {"conveyor_share": 0.85, "dispatch_to_conveyor": 0.75}


@dataclass(slots=True, kw_only=True)
class Report:
    """All that one run found."""

    costs: dict[str, Cost] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)

    def add(self, cost: Cost, seen: Watched | None = None) -> None:
        """Add a stage."""
        self.costs[cost.stage] = cost
        if seen is not None:
            self.memory[cost.stage] = {
                "peak_process_mb": round(seen.peak_process_mb, 1),
                "peak_tree_mb": round(seen.peak_tree_mb, 1),
            }

    def add_flatness(self, cards: int, seen: Watched, progress: Progress) -> None:
        """Add the tree's memory at the marks of a long run."""
        marks = [*range(FIRST_MARK, cards, FIRST_MARK), cards] if cards > FIRST_MARK else [cards // 2, cards]
        window = min(WINDOW, marks[0])
        at = {
            mark: {each: seen.between(progress.moment(mark - window), progress.moment(mark), each) for each in MEMORY}
            for mark in marks
        }
        flat = {f"{measure}_at_{mark}": round(found[measure], 1) for mark, found in at.items() for measure in MEMORY}
        first, last = at[marks[0]], at[marks[-1]]
        for name, measure in (("growth", "tree_mb"), ("own_growth", "own_mb")):
            flat[name] = round(last[measure] / first[measure] - 1, 4) if first[measure] else 0.0
        self.memory["flat"] = flat


def measure(options: argparse.Namespace) -> Report:
    """Run the stages that are asked for, each on the same pictures."""
    pictures, lexicon = read_pictures(options.folder, options.printings)
    if not pictures:
        raise SystemExit(f"there is no image in {options.folder}")
    report, stages = Report(), set(options.stages)
    if "floor" in stages:
        report.add(measure_floor(pictures, options.rounds))
    for engine in (options.engine or OCR_ENGINES[:1]) if "compute" in stages else ():
        try:
            report.add(measure_compute(pictures, lexicon, engine, options.rounds))
        except OcrUnavailableError as error:
            print(f"left out: {error}", file=sys.stderr)
    if "loops" in stages:
        report.add(measure_bare_loops(pictures, lexicon, usable_cores(), options.cards))
    if options.flat or stages & {"conveyor", "dispatch"}:
        _measure_product(options, pictures, lexicon, report)
    return report


def _measure_product(
    options: argparse.Namespace, pictures: Sequence[Picture], lexicon: Lexicon, report: Report
) -> None:
    cores = usable_cores()
    with built_rig(options.folder, options.printings, cores) as rig:
        if "conveyor" in options.stages:
            settings = replace(StageCSettings(), compute_workers=cores)
            report.add(*measure_conveyor(pictures, lexicon, rig.web, settings, options.cards))
        if "dispatch" in options.stages:
            cost, seen, progress = measure_dispatch(rig, pictures, options.cards)
            report.add(cost, seen)
            report.outcomes = progress.outcomes
        if options.flat:
            cost, seen, progress = measure_dispatch(rig, pictures, options.flat)
            report.add(replace(cost, stage="flat run"), seen)
            report.add_flatness(options.flat, seen, progress)
            report.outcomes = progress.outcomes


def tell(report: Report) -> None:
    """Print the table, the ratios and the memory."""
    cores = usable_cores()
    print("\n".join(format_table(HEADINGS, [cost.row() for cost in report.costs.values()], right=set(HEADINGS[1:]))))
    print()
    for name, value in ratios(report.costs, cores).items():
        target = TARGETS.get(name)
        print(f"{name.replace('_', ' ')}: {value:.2f}" + (f" (target {target} or more)" if target else ""))
    for stage, figures in report.memory.items():
        if stage == "flat":
            print("\n".join(_flat_lines(figures)))
            continue
        told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in figures.items())
        print(f"memory, {stage}: {told}")
    if report.outcomes:
        print("outcomes: " + ", ".join(f"{name} {count:,}" for name, count in sorted(report.outcomes.items())))


def _flat_lines(figures: Mapping[str, float]) -> list[str]:
    """Return a line for each mark of a long run, and one for the growth between the first and the last."""
    marks = [name.rpartition("_")[2] for name in figures if name.startswith("tree_mb_at_")]
    lines = [
        f"memory at {int(mark):,} cards: tree {figures[f'tree_mb_at_{mark}']:g} MB, its own {figures[f'own_mb_at_{mark}']:g}"
        f" (parent {figures[f'parent_mb_at_{mark}']:g}, compute {figures[f'compute_mb_at_{mark}']:g}),"
        f" files {figures[f'files_mb_at_{mark}']:g}"
        for mark in marks
    ]
    return [*lines, f"memory growth: tree {figures['growth']:.1%}, its own {figures['own_growth']:.1%}"]


def main() -> int:
    """Measure, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of card images; a cards.csv in it gives their names")
    parser.add_argument("--printings", type=Path, default=ROOT / "sample_catalogue" / "printings.jsonl")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES, help="default: all of them")
    parser.add_argument("--engine", action="append", choices=OCR_ENGINES, help="of the compute stage; may be repeated")
    parser.add_argument("--rounds", type=int, default=2, help="times over the folder in the loops of one process")
    parser.add_argument("--cards", type=int, default=300, help="cards of a stage that runs on all cores")
    parser.add_argument("--flat", type=int, default=0, metavar="N", help="dispatch N cards and compare the memory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if not options.folder.is_dir() or not options.printings.is_file():
        print("name a folder of images and a --printings file", file=sys.stderr)
        return 1
    report = measure(options)
    if options.json:
        print(
            json.dumps(
                {
                    "cores": usable_cores(),
                    "stages": {name: cost.figures() for name, cost in report.costs.items()},
                    "ratios": ratios(report.costs, usable_cores()),
                    "memory_mb": report.memory,
                    "outcomes": report.outcomes,
                }
            )
        )
        return 0
    tell(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
