"""The crash drill, run as a person runs it: a few faults of a fixed seed on a system of its own, and not one violation."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings

PATIENCE_S = 170.0
SEED = 8


def drill(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the drill; one that takes too long is asked to end, so that what it started ends too."""
    command = [sys.executable, "-m", "scripts.ops.drill", *arguments]
    process = subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=os.environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.terminate()
    return subprocess.CompletedProcess(command, process.wait(), output, "")


@pytest.mark.timeout(240)
def test_nothing_is_lost_or_doubled_whatever_is_killed() -> None:
    """A killed worker and lost sessions, in an order and at moments that the seed chooses."""
    ended = drill("--quick", "--rounds", "2", "--seed", str(SEED), "--only", "KILL busy worker|all sessions")

    assert ended.returncode == 0, ended.stdout
    assert re.search(rf"crash drill: 2 rounds in \d+ s, 0 violations, .* seed {SEED}$", ended.stdout, re.MULTILINE)


def test_the_same_seed_chooses_the_same_faults() -> None:
    """A drill that found something can be repeated."""
    first, second = (drill("--plan", "--rounds", "30", "--seed", "5").stdout for _ in range(2))

    assert first == second and first.count("\n") == 30
    assert first != drill("--plan", "--rounds", "30", "--seed", "6").stdout
