"""``python -m scripts.ops.drill``: play rounds, print a table, exit 1 if anything was violated."""

from __future__ import annotations

import argparse
import random
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scripts.ops.drill.faults import DISK_FULL, Fault, choose
from scripts.ops.drill.rig import FULL, QUICK, Rig, built_rig
from scripts.ops.drill.small_disk import why_not

if TYPE_CHECKING:
    from scripts.ops.drill.rounds import Round

ROUNDS = 50
CARDS, QUICK_CARDS = 30, 14
SAMPLES, QUICK_SAMPLES = 16, 5
HEADINGS = ("round", "fault", "moment s", "settled s", "cluster s", "re-reads", "violations", "hit")
RIGHT = {"round", "moment s", "settled s", "cluster s", "re-reads", "violations"}


def main(arguments: Sequence[str]) -> int:
    """Run the drill."""
    options = _parser().parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    no_disk = why_not()
    faults = choose(options.rounds, seed, options.only, with_disk=not no_disk)
    if no_disk:
        print(f"left out: {DISK_FULL}, since {no_disk}", file=sys.stderr)
    if not faults:
        print(f"no round to play: no fault is named like {options.only!r}", file=sys.stderr)
        return 2
    if options.plan:
        print("\n".join(f"{number} {fault.name}" for number, fault in enumerate(faults, 1)))
        return 0
    repeat = shlex.join([*arguments, *([] if options.seed is not None else ["--seed", str(seed)])])
    print(f"seed {seed}: repeat with {repeat}", flush=True)
    fills_disk = any(fault.name == DISK_FULL for fault in faults)
    # However it is asked to end, what it has started ends first.
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, lambda signum, frame: sys.exit(128 + signum))
    with built_rig(QUICK if options.quick else FULL, keep=options.keep_logs, small_disk=fills_disk) as rig:
        return _drill(rig, faults, seed, quick=options.quick)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crash_drill.sh",
        description="Hurt a running system of its own at random moments, and check after each time that nothing is lost,"
        " done twice, held by nobody or told wrongly.",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="faults to do (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="repeat the faults, moments and cards of an earlier drill"
    )
    parser.add_argument("--quick", action="store_true", help="short stops and little work, for a first look")
    parser.add_argument("--only", metavar="REGEX", default="", help="only faults whose names match")
    parser.add_argument("--plan", action="store_true", help="print the fault of each round and end")
    parser.add_argument("--keep-logs", action="store_true", help="leave the logs of cluster and sweep behind")
    return parser


def _drill(rig: Rig, faults: Sequence[Fault], seed: int, *, quick: bool) -> int:
    # Models can be imported only now that Django is set up.
    from cardpicker.operations.text_table import format_table
    from scripts.ops.drill import audit
    from scripts.ops.drill.catalog import Catalog
    from scripts.ops.drill.rounds import measure, play

    audit.install()
    began = time.monotonic()
    catalog = Catalog(rig.images, rig.web.url, QUICK_SAMPLES if quick else SAMPLES)
    rig.cluster.supervise()
    expected = measure(rig, catalog)
    print(f"undisturbed: {len(expected)} samples read and judged in {time.monotonic() - began:.1f} s", flush=True)
    played: list[Round] = []
    for number, fault in enumerate(faults, start=1):
        cards = QUICK_CARDS if quick else CARDS
        played.append(play(rig, catalog, expected, fault, seed * 1000 + number, cards))
        print(" ".join(_row(number, played[-1])), flush=True)
        for violation in played[-1].violations:
            print(f"  VIOLATED: {violation}", flush=True)
    print("\n" + "\n".join(format_table(HEADINGS, [_row(n, each) for n, each in enumerate(played, 1)], right=RIGHT)))
    return _verdict(played, seed, time.monotonic() - began)


def _row(number: int, each: Round) -> list[str]:
    return [
        str(number),
        each.fault,
        f"{each.moment_s:.2f}",
        f"{each.settled_s:.1f}",
        f"{each.recovered_s:.1f}",
        str(each.rereads),
        str(len(each.violations)),
        each.hit,
    ]


def _verdict(played: Sequence[Round], seed: int, elapsed_s: float) -> int:
    violated = [f"round {n} ({each.fault}): {v}" for n, each in enumerate(played, 1) for v in each.violations]
    missed = sum(each.hit == "no target" for each in played)
    worst = max(played, key=lambda each: each.settled_s)
    print(
        f"\ncrash drill: {len(played)} rounds in {elapsed_s:.0f} s, {len(violated)} violations, {missed} without a target,"
        f" slowest to settle {worst.settled_s:.1f} s ({worst.fault}), {sum(each.rereads for each in played)} re-reads;"
        f" seed {seed}"
    )
    print("\n".join(violated))
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
