"""Vital signs: of the whole process tree, as it is now, with shared memory counted once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from cardpicker.stage_e.vitals import sample_vitals
from cardpicker.tests.work_support import eventually

SIZE_MB = 300
CHILD = f"""
held = None
while line := input():
    held = b"x" * ({SIZE_MB} << 20) if line == "hold" else None
    print("done", flush=True)
"""


class Child:
    """A process that holds a block of memory of its own for as long as it is told to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, word: str) -> None:
        """Have it hold or drop the block; returns once it has."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture
def child() -> Iterator[Child]:
    """A child of this process."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Child(process)
        process.kill()


def test_childs_memory_counts_while_it_is_held(child: Child) -> None:
    """A process that grows is seen, and once it has let go, the tree is as small as it was."""
    child.tell("drop")
    before = sample_vitals()

    child.tell("hold")
    grown = sample_vitals()
    child.tell("drop")
    after = sample_vitals()

    assert grown.largest_rss_mb > SIZE_MB
    assert grown.tree_rss_mb > before.tree_rss_mb + 0.9 * SIZE_MB
    assert after.tree_rss_mb < before.tree_rss_mb + 0.1 * SIZE_MB


def test_forked_child_that_does_nothing_adds_almost_nothing() -> None:
    """What a child shares with its parent is counted once."""
    if not hasattr(psutil.Process().memory_full_info(), "pss"):
        pytest.skip("not possible here: this system does not tell shared memory from a process's own")
    block = b"x" * (SIZE_MB << 20)
    before = sample_vitals()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(tell)
        os.read(told, 1)
        os._exit(0)
    os.close(told)
    try:
        during = sample_vitals()
    finally:
        os.close(tell)
        os.waitpid(pid, 0)

    assert before.tree_rss_mb > SIZE_MB
    assert during.tree_rss_mb < before.tree_rss_mb + 0.3 * SIZE_MB
    assert len(block) == SIZE_MB << 20


def test_process_that_has_ended_is_left_out(child: Child) -> None:
    """A zombie has no memory, and costs nobody the sample."""
    child.tell("hold")
    child.process.kill()
    assert eventually(lambda: psutil.Process(child.process.pid).status() == psutil.STATUS_ZOMBIE)

    assert sample_vitals().largest_rss_mb > 0
    assert sample_vitals().tree_rss_mb < sample_vitals().largest_rss_mb + SIZE_MB


def test_process_that_may_not_be_looked_into_counts_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody may see what is shared, memory is overstated rather than missed."""

    def refuse(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", refuse)
    sample = sample_vitals()

    assert sample.tree_rss_mb >= sample.largest_rss_mb > 0
