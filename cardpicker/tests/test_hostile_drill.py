"""The hostile drill, run as a person runs it: a short stream of every kind of file among good cards."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from django.conf import settings

PATIENCE_S = 170.0


@pytest.mark.timeout(240)
def test_every_hostile_file_is_a_named_outcome_and_every_good_card_is_identified() -> None:
    """Through real dispatches with real compute processes, of which none is lost."""
    command = [sys.executable, "scripts/ops/hostile_drill.py", "--hostile", "42", "--hostile-per-good", "1", "--quiet"]

    ended = subprocess.run(
        command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    last = ended.stdout.splitlines()[-1]
    assert re.search(r"42 hostile files among 42 good cards .* 42 of 42 good .* 0 compute processes lost", last)
    assert last.endswith(", 0 violations")


def test_a_stream_of_nothing_is_wrong_use() -> None:
    """Nothing is started for it."""
    command = [sys.executable, "scripts/ops/hostile_drill.py", "--hostile", "0"]

    ended = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2
    assert "--hostile" in ended.stderr
