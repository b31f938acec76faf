"""This process and what it started, as the kernel sees them: CPU by role, and memory as it goes.

CPU is counted whole also for processes that have ended, through those that reaped them. Memory is the proportional set
size: pages that processes share count once in the tree.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

import psutil

SAMPLE_S = 1.0
_MB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The tree's memory at a moment."""

    at: float  #: On the monotonic clock.
    tree_mb: float
    largest_mb: float  #: Resident memory of the largest process, its shared pages whole.


@dataclass(slots=True, kw_only=True)
class Family:
    """Who is who below this process: what other roles do is told apart, wherever their processes hang."""

    roles: dict[str, int] = field(default_factory=dict)  #: Role to the process that everything of it descends from.

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far, by role; ``parent`` is this process, ``compute`` what else it started."""
        me = psutil.Process()
        found = {"parent": time.process_time(), "compute": 0.0}
        below = {role: {pid, *_descendants(pid)} for role, pid in self.roles.items()}
        for role, pids in below.items():
            found[role] = sum(_cpu_s(pid) for pid in pids)
        apart = set().union(*below.values()) if below else set()
        found["compute"] = sum(_cpu_s(pid) for pid in _descendants(me.pid) if pid not in apart)
        return found

    def sample(self) -> Sample:
        """Measure the memory of this process and its compute processes."""
        me = psutil.Process()
        apart = {each for pid in self.roles.values() for each in (pid, *_descendants(pid))}
        tree = largest = 0.0
        for pid in (me.pid, *_descendants(me.pid)):
            if pid in apart:
                continue
            try:
                memory = psutil.Process(pid).memory_full_info()
            except psutil.Error:
                continue
            tree += getattr(memory, "pss", memory.rss) / _MB
            largest = max(largest, memory.rss / _MB)
        return Sample(at=time.monotonic(), tree_mb=tree, largest_mb=largest)


@dataclass(slots=True, kw_only=True)
class Watched:
    """What a watched block used."""

    wall_s: float = 0.0
    shares_s: dict[str, float] = field(default_factory=dict)
    others_cores: float = 0.0
    samples: list[Sample] = field(default_factory=list)

    @property
    def peak_tree_mb(self) -> float:
        """The most that the tree held at once."""
        return max((sample.tree_mb for sample in self.samples), default=0.0)

    @property
    def peak_process_mb(self) -> float:
        """The most that one process held."""
        return max((sample.largest_mb for sample in self.samples), default=0.0)

    def tree_mb_between(self, start: float, end: float) -> float:
        """Return the median of the tree's memory in a span of the monotonic clock; processes come and go in it."""
        inside = [sample.tree_mb for sample in self.samples if start <= sample.at <= end]
        return median(inside) if inside else 0.0


@contextmanager
def watched(family: Family) -> Iterator[Watched]:
    """Watch CPU and memory for the length of the block; the figures are there after it."""
    found, over = Watched(), threading.Event()
    watching_s = 0.0

    def keep_sampling() -> None:
        nonlocal watching_s
        while not over.wait(SAMPLE_S):
            found.samples.append(family.sample())
        watching_s = time.thread_time()

    thread = threading.Thread(target=keep_sampling, daemon=True, name="memory")
    before, host_before, started = family.cpu_s(), _host_busy_s(), time.monotonic()
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        found.samples.append(family.sample())
        found.wall_s = time.monotonic() - started
        after = family.cpu_s()
        found.shares_s = {role: max(0.0, after[role] - before.get(role, 0.0)) for role in after}
        others_s = _host_busy_s() - host_before - sum(found.shares_s.values())
        # To watch is no part of what is watched.
        found.shares_s["parent"] = max(0.0, found.shares_s["parent"] - watching_s)
        found.others_cores = max(0.0, others_s / found.wall_s)


def _descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _cpu_s(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    # Of the ended children only what was reaped is known, which here is all but the last few.
    return float(times.user + times.system + times.children_user + times.children_system)


def _host_busy_s() -> float:
    times = psutil.cpu_times()
    # Time that the host gave to other machines is not ours either.
    return float(sum(getattr(times, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal")))
