#!/usr/bin/env python
"""Hostile files among good cards through real dispatches: every good card identified, every bad file a named outcome.

Runs on a scratch product of its own. Files come half from a folder and half from a server on loopback, all named .jpg.
The kinds and the bytes follow from the seed. Ends with 1 when anything is not as it must be, a lost compute process too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.ops.hostile.stream import Mixture, read_good, stream, undisturbed
from scripts.ops.scratch_product import SAMPLE_PRINTINGS, scratch_product

if TYPE_CHECKING:
    from scripts.ops.hostile.judge import Verdict
    from scripts.ops.hostile.run import Processes

WORKERS = 2
SHOWN = 40
#: What is replaced in the course of things would hide what was lost; and a rate of failures is what is sent here.
ENVIRONMENT = {
    "STAGE_C_COMPUTE_WORKERS": str(WORKERS),
    "STAGE_C_TASKS_PER_WORKER": "1000000",
    "STAGE_E_FETCH_FAILURE_RATE_CEILING": "1",
}


def main(arguments: Sequence[str]) -> int:
    """Run the drill."""
    options = _parser().parse_args(arguments)
    if options.hostile < 1:
        print("--hostile wants at least one file", file=sys.stderr)
        return 2
    started = time.monotonic()
    mixture = Mixture(
        hostile=options.hostile,
        good_per_hostile=0 if options.hostile_per_good else options.good_per_hostile,
        hostile_per_good=options.hostile_per_good,
    )
    with scratch_product(SAMPLE_PRINTINGS, ENVIRONMENT):
        # Models can be imported only now that Django is set up.
        from scripts.ops.hostile.run import Drill

        samples = read_good()
        with Drill() as drill:
            good = drill.send(undisturbed(samples)).identified
            left_out = sorted(card.file for card in samples if card not in good)
            print(f"good cards: {len(good)} samples identified undisturbed; not so and left out: {', '.join(left_out)}")
            if not good:
                return 1
            say = _nothing if options.quiet else _say
            verdict = drill.send(stream(mixture, good, options.seed), say)
        return _tell(mixture, verdict, drill.processes, time.monotonic() - started)


def _say(text: str) -> None:
    print(text, flush=True)


def _nothing(text: str) -> None:
    pass


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostile", type=int, default=50, metavar="N", help="hostile files (default: %(default)s)")
    mixed = parser.add_mutually_exclusive_group()
    mixed.add_argument(
        "--good-per-hostile", type=_positive, default=20, metavar="N", help="good cards to each (default: %(default)s)"
    )
    mixed.add_argument(
        "--hostile-per-good", type=_positive, default=0, metavar="N", help="the other way about: one good card to N"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another stream (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="print only what it came to")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _tell(mixture: Mixture, verdict: Verdict, processes: Processes, elapsed_s: float) -> int:
    from cardpicker.operations.text_table import format_table

    lost = len(processes.pids) - WORKERS
    if lost:
        verdict.violations.append(f"{len(processes.pids)} compute processes were seen, {WORKERS} were started")
    rows = [
        [kind, str(counts.total()), ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))]
        for kind, counts in verdict.outcomes.items()
    ]
    print("\n".join(format_table(["kind", "files", "outcomes"], rows, right={"files"}, widest=110)))
    if not verdict.good:
        verdict.violations.append("no good card was sent")
    for violation in verdict.violations[:SHOWN]:
        print(f"VIOLATED: {violation}")
    print(
        f"\nhostile drill: {mixture.hostile:,} hostile files among {mixture.good:,} good cards in {elapsed_s:.0f} s;"
        f" {len(verdict.identified):,} of {verdict.good:,} good cards identified, {max(0, lost)} compute processes lost,"
        f" the largest had {processes.peak_mb:.0f} MB, {len(verdict.violations)} violations"
    )
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
