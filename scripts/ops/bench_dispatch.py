#!/usr/bin/env python
"""What operators are promised of dispatch, in figures, on a database, a catalog and clusters of its own.

kill: SIGKILL of a dispatching process at work. cap: eight workers, two slots. pause: from the pause to quiet, and back to
work. idle: what a cluster with nothing to do costs. web: the admin's answer times under full load.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.ops.drill.rig import FULL, built_rig

if TYPE_CHECKING:
    from scripts.ops.dispatching.bench import Bench, Figure

PARTS = ("kill", "cap", "pause", "idle", "web")


def main(arguments: Sequence[str]) -> int:
    """Measure the parts that are asked for, print a table; 1 when a promise is broken."""
    options = _parser().parse_args(arguments)
    # However it is asked to end, what it has started ends first.
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, lambda signum, frame: sys.exit(128 + signum))
    with built_rig(FULL, keep=options.keep_logs, changes=_settings(options.set)) as rig:
        # Models can be imported only now that Django is set up.
        from scripts.ops.dispatching.bench import Bench

        bench = Bench(rig)
        figures: list[Figure] = []
        for part, measure in _measures(options).items():
            if part in (options.part or PARTS):
                _say(f"measuring {part}")
                figures += measure(bench)
        _print(figures, as_json=options.json)
    return 0 if all(figure.is_kept for figure in figures) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part", nargs="*", choices=[[], *PARTS], metavar="PART", help=f"some of {', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--kills", type=int, default=5, metavar="N", help="processes to kill (default: %(default)s)")
    parser.add_argument(
        "--cards", type=int, default=500, metavar="N", help="cards of cap and pause (default: %(default)s)"
    )
    parser.add_argument("--idle-s", type=float, default=60, metavar="S", help="window of idle (default: %(default)g)")
    parser.add_argument(
        "--idle-due",
        type=int,
        default=100_000,
        metavar="N",
        help="cards that are due but paused (default: %(default)s)",
    )
    parser.add_argument("--web-s", type=float, default=60, metavar="S", help="window of web (default: %(default)g)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="measure with another setting; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print the figures for programs")
    parser.add_argument("--keep-logs", action="store_true", help="leave the logs of the clusters behind")
    return parser


def _settings(changes: Sequence[str]) -> dict[str, str]:
    """Return the clocks and sizes of an installation, and not the drill's, with what the caller changes."""
    changed = dict(change.partition("=")[::2] for change in changes)
    return {"STAGE_E_LEASE_S": "60", "STAGE_E_MICRO_BATCH_SIZE": "25", **changed}


def _measures(options: argparse.Namespace) -> dict[str, Callable[[Bench], Iterator[Figure]]]:
    from scripts.ops.dispatching import cap, idle, kill, pause, web

    return {
        "kill": lambda bench: kill.measure(bench, options.kills),
        "cap": lambda bench: cap.measure(bench, options.cards),
        "pause": lambda bench: pause.measure(bench, options.cards),
        "idle": lambda bench: idle.measure(bench, options.idle_s, options.idle_due),
        "web": lambda bench: web.measure(bench, options.web_s),
    }


def _print(figures: Sequence[Figure], *, as_json: bool) -> None:
    from cardpicker.operations.text_table import format_table

    if as_json:
        print(json.dumps([dataclasses.asdict(figure) for figure in figures], indent=1))
        return
    headings = ("part", "what", "value", "unit", "promised", "")
    rows = [
        [each.part, each.name, _written(each.value), each.unit, each.promise, "" if each.is_kept else "BROKEN"]
        for each in figures
    ]
    print("\n".join(format_table(headings, rows, right={"value"}, widest=80)))


def _written(value: float | str) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
