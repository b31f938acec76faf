#!/usr/bin/env python
"""Time and peak memory of an import of printings, run as an operator runs it: once, then again.

Uses the database of the environment and changes it: the first figure means a first import only on an empty catalog.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def measure(command: list[str]) -> dict[str, float | int | str]:
    """Run ``command`` and return its last line of output, exit code, seconds, CPU seconds and peak RSS in MB."""
    started = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "exit_code": process.returncode,
        "elapsed_s": round(time.monotonic() - started, 2),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_rss_mb": round(usage.ru_maxrss * unit / 1_000_000, 1),
        "said": output.splitlines()[-1] if output else "",
    }


def main() -> int:
    """Measure as often as asked; one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="location", required=True, metavar="PATH|URL")
    parser.add_argument("--runs", type=int, default=2)
    arguments = parser.parse_args()
    location = Path(arguments.location)
    source = str(location.resolve()) if location.exists() else arguments.location
    command = [sys.executable, "manage.py", "import_canonical_card_data", "--from", source]
    worst = 0
    for run in range(1, arguments.runs + 1):
        measured = measure(command)
        print(json.dumps({"run": run, **measured}), flush=True)
        worst = max(worst, int(measured["exit_code"]))
    return worst


if __name__ == "__main__":
    sys.exit(main())
